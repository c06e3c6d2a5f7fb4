"""What RocksDB's table files hold, its blocks unpacked: a search of bytes sees all of it.

The format is that of RocksDB's block-based tables (facebook/rocksdb, wiki, "Rocksdb BlockBasedTable
Format"), and LZ4's block format (lz4/lz4, doc/lz4_Block_format.md).
"""

from __future__ import annotations

from collections.abc import Iterator

_MAGIC = 0x88E241B785F4CFF7
_FOOTER, _TRAILER = 53, 5
_PLAIN, _LZ4 = 0, 4


def blocks_of(table: bytes) -> Iterator[bytes]:
    """Every block of a table file, unpacked: those of data, and their index."""
    footer = table[-_FOOTER:]
    assert int.from_bytes(footer[-8:], "little") == _MAGIC
    version = int.from_bytes(footer[-12:-8], "little")
    if version >= 6:
        index = _named_index(table, int.from_bytes(footer[9:13], "little"))
    else:
        _, at = _varint(footer, 1)
        _, at = _varint(footer, at)
        start, at = _varint(footer, at)
        index = start, _varint(footer, at)[0]
    found = _block(table, *index)
    yield found
    yield from (_block(table, *handle) for handle in _handles(found))


def _named_index(table: bytes, size: int) -> tuple[int, int]:
    """Where the index is, as the list of the other blocks says, which ends before the footer."""
    listed = _block(table, len(table) - _FOOTER - _TRAILER - size, size)
    start, at = _varint(listed, listed.index(b"rocksdb.index") + len(b"rocksdb.index"))
    return start, _varint(listed, at)[0]


def _block(table: bytes, start: int, size: int) -> bytes:
    data, kind = table[start : start + size], table[start + size]
    if kind == _PLAIN:
        return data
    assert kind == _LZ4, f"blocks of the kind {kind} can't be unpacked here"
    length, at = _varint(data, 0)
    found = _unpacked(data, at)
    assert len(found) == length
    return found


def _handles(index: bytes) -> Iterator[tuple[int, int]]:
    """The places of the data blocks. An entry has how much of the key it shares with the one
    before and the rest of the key; its place is given in full where it shares nothing, else by how
    much its size differs, as the next follows at once."""
    restarts = int.from_bytes(index[-4:], "little")
    end, at = len(index) - 4 * (restarts + 1), 0
    start = size = 0
    while at < end:
        shared, at = _varint(index, at)
        rest, at = _varint(index, at)
        at += rest
        if shared:
            change, at = _varint(index, at)
            start += size + _TRAILER
            size += (change >> 1) ^ -(change & 1)
        else:
            start, at = _varint(index, at)
            size, at = _varint(index, at)
        yield start, size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _unpacked(data: bytes, at: int) -> bytes:
    out = bytearray()
    while at < len(data):
        token = data[at]
        literals, at = _length(data, at + 1, token >> 4)
        out += data[at : at + literals]
        at += literals
        if at < len(data):
            back = int.from_bytes(data[at : at + 2], "little")
            again, at = _length(data, at + 2, token & 15)
            start, left = len(out) - back, again + 4
            while left > 0:
                part = out[start : start + left]
                out += part
                left -= len(part)
    return bytes(out)


def _length(data: bytes, at: int, value: int) -> tuple[int, int]:
    if value == 15:
        while True:
            value += data[at]
            at += 1
            if data[at - 1] != 255:
                break
    return value, at
