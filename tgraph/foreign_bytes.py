"""Bytes that others made: primitives that read them within limits."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

DEEPEST = 100
"""Brackets in each other that are read: a parser that calls itself ends with its process."""
PACKED_RATIO = 200
"""Times that packed bytes may grow; texts rarely reach 50."""
SMALL_UNPACKED = 1_000_000
"""Bytes that anything may unpack to, however small it is."""
SMALL_STORED, _MOST_STORED = 256 << 20, 16 << 30
"""Bytes that a content of a graph may unpack to, however small it is, and at most."""
_BLOCK = 1 << 20
_TREE_MEMORY, _TREE_NODE = 512 << 20, 128
"""Bytes that a tree may take, and those that a list or object of it takes, at least."""
_GZIP = b"\x1f\x8b"
_OPENING, _CLOSING = b"[{", b"]}"


class OversizeError(ValueError):
    """An error for foreign bytes beyond a limit, which the message names."""


def is_gzip(content: bytes) -> bool:
    return content.startswith(_GZIP)


def unpack_gzip(
    content: bytes, most: int, ratio: int = PACKED_RATIO, small: int = SMALL_UNPACKED
) -> bytes:
    """Return the content of gzip members: at most ``most`` bytes, and at most ``ratio`` times
    their size, or ``small`` bytes if that is more.

    Raise ``OversizeError`` beyond that, and ``ValueError`` for damaged bytes."""
    allowed = min(most, max(small, ratio * len(content)))
    blocks, size = [], 0
    for block in unpack_blocks(content):
        size += len(block)
        if size > allowed:
            raise OversizeError(
                f"It unpacks from {len(content):,} to more than {allowed:,} bytes, the limit"
            )
        blocks.append(block)
    return b"".join(blocks)


def unpack_stored(content: bytes) -> bytes:
    """As ``unpack_gzip``, with the limits of contents that a graph keeps, which a backup or a
    replica may have brought."""
    return unpack_gzip(content, _MOST_STORED, small=SMALL_STORED)


def unpack_lines(content: bytes) -> Iterator[str]:
    """Yield lines of gzip members with the limits of ``unpack_stored``, one in memory at a time.

    Raise ``OversizeError`` beyond them, and the errors of ``gzip`` for damaged bytes."""
    allowed = min(_MOST_STORED, max(SMALL_STORED, PACKED_RATIO * len(content)))
    rest = allowed
    with gzip.open(BytesIO(content)) as file:
        while line := file.readline(rest + 1):
            rest -= len(line)
            if rest < 0:
                raise OversizeError(
                    f"it unpacks from {len(content):,} to more than {allowed:,} bytes, the limit"
                )
            yield line.decode("utf-8", "surrogatepass")


def unpack_blocks(content: bytes) -> Iterator[bytes]:
    rest = content
    while rest:
        member, waiting = zlib.decompressobj(31), rest
        while not member.eof:
            try:
                block = member.decompress(waiting, _BLOCK)
            except zlib.error:
                raise ValueError("It is a damaged gzip archive") from None
            waiting = member.unconsumed_tail
            if not block and not waiting and not member.eof:
                raise ValueError("It is a damaged gzip archive")
            yield block
        rest = member.unused_data.lstrip(b"\0")


def check_nesting(content: bytes, deepest: int = DEEPEST) -> None:
    """Raise ``OversizeError`` for JSON whose brackets are nested deeper than ``deepest``.

    Takes linear time and no stack, whatever the bytes are."""
    if content.count(b"[") + content.count(b"{") <= deepest:
        return
    depth = 0
    for match in _TOKENS.finditer(content):
        mark = match[0]
        if mark in _OPENING:
            depth += 1
            if depth > deepest:
                raise OversizeError(f"Its brackets are more than {deepest} deep in each other")
        elif mark in _CLOSING:
            depth -= 1


_TOKENS = re.compile(rb'[\[\]{}]|"(?:[^"\\]++|\\.)*+"', re.S)


def check_size_of_tree(content: bytes, memory: int) -> None:
    """Raise ``OversizeError`` where JSON has more lists and objects than fit into the memory."""
    brackets, most = content.count(b"[") + content.count(b"{"), memory // _TREE_NODE
    if brackets > most:
        raise OversizeError(f"It has {brackets:,} lists and objects, and {most:,} fit into memory")


def parse_json(content: str | bytes, memory: int = _TREE_MEMORY, deepest: int = DEEPEST) -> Any:
    """Return the value of JSON; raise ``OversizeError`` beyond the limits, and ``ValueError`` for
    what is no JSON."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    check_size_of_tree(data, memory)
    check_nesting(data, deepest)
    return json.loads(content)


def parse_yaml(text: str, aliases: int = 0, deepest: int = DEEPEST) -> Any:
    """Return the value of YAML; raise ``OversizeError`` for more aliases or deeper nesting, and
    ``yaml.YAMLError`` or ``ValueError`` for what is no YAML.

    A few lines of aliases unfold to gigabytes, and nesting takes quadratic time."""
    import yaml

    opening = (
        yaml.BlockSequenceStartToken,
        yaml.BlockMappingStartToken,
        yaml.FlowSequenceStartToken,
        yaml.FlowMappingStartToken,
    )
    closing = yaml.BlockEndToken, yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken
    depth = count = 0
    for token in yaml.scan(text, yaml.SafeLoader):
        depth += isinstance(token, opening)
        depth -= isinstance(token, closing)
        count += isinstance(token, yaml.AliasToken)
        if count > aliases:
            raise OversizeError(f"It has more than {aliases} aliases")
        if depth > deepest:
            raise OversizeError(f"Its brackets are more than {deepest} deep in each other")
    return yaml.safe_load(text)


def check_file_size(path: Path, most: int) -> None:
    """Raise ``OversizeError`` for a file of more bytes; ``OSError`` if there is none."""
    size = path.stat().st_size
    if size > most:
        raise OversizeError(f"It has {size:,} bytes, and {most:,} is the limit")
