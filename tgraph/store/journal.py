"""Session journals: events are written frame by frame before anyone learns of them.

A frame consists of mark, length, CRC-32 and a JSON object on one line; long texts are listed
with places and byte lengths, and follow the line unchanged. The mark begins with a byte never
occurring in UTF-8, so reading resumes after damaged frames. The owner locks the file while
writing: an unlocked journal means its owner finished or died."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tgraph.errors import StoreError
from tgraph.store.files import (
    FileLock,
    allowed_in,
    disk_errors,
    make_folder,
    store_error,
    sync_folder,
)

MAGIC = b"TGJ1"
MARK = b"\xffTGF"
_HEAD = struct.Struct(">4sII")
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_LONG = 200  # characters; a shorter text is escaped in no time
Frame = Mapping[str, Any]


class Journal:
    """An open session journal; appended frames survive the process."""

    def __init__(self, path: Path) -> None:
        """Create a journal; raise ``StoreError`` for existing or unwritable files."""
        self.path = path
        self._handle = -1
        if path.exists():
            raise StoreError(f"{path} is there already.", "Give each session its own UUID.")
        with disk_errors():
            make_folder(path.parent)
            self._handle = _create_journal(path)
        self._end = len(MAGIC)

    def append(self, frame: Frame, *, sync: bool = True) -> None:
        """Append a frame; after failures, the journal ends with the preceding frame.

        With ``sync``, all frames are on disk upon return; without ``sync``, frames survive a
        kill but perhaps no power cut, until a later synced frame."""
        parts = _pack_frame(frame)
        with disk_errors():
            try:
                end = self._end
                for part in parts:
                    _write_bytes(self._handle, part, end)
                    end += len(part)
                if sync:
                    os.fdatasync(self._handle)
            except BaseException:  # an interruption too must leave no part of a frame
                with suppress(OSError):
                    os.ftruncate(self._handle, self._end)
                raise
        self._end = end

    def close(self) -> None:
        """Release the journal for other writers."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _create_journal(path: Path) -> int:
    """Create a journal, locked before its name becomes visible; return its handle."""
    unnamed = path.with_name(f".{path.name}.tmp")
    for last_try in (False, False, True):
        handle = os.open(unnamed, _CREATE, allowed_in(path.parent))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            _write_bytes(handle, MAGIC, 0)
            unnamed.rename(path)
            sync_folder(path.parent)
            return handle
        except BaseException as error:
            os.close(handle)
            with suppress(OSError):
                unnamed.unlink(missing_ok=True)
            swept = isinstance(error, FileNotFoundError)  # before it was locked
            if last_try or not swept:
                raise
    raise AssertionError("unreachable")


def _pack_frame(frame: Frame) -> list[bytes]:
    """Return frame bytes in pieces."""
    lengths: list[tuple[list[str], int]] = []
    long: list[bytes] = []

    def short(members: Mapping[str, Any], *path: str) -> dict[str, Any]:
        short_members = {}
        for name, value in members.items():
            if isinstance(value, str) and len(value) > _LONG:
                long.append(value.encode("utf-8", "surrogatepass"))
                lengths.append(([*path, name], len(long[-1])))
            elif isinstance(value, Mapping) and not path:
                short_members[name] = short(value, name)
            else:
                short_members[name] = value
        return short_members

    brief = short(frame)
    header = [brief, lengths] if long else brief
    line = json.dumps(header, ensure_ascii=False, separators=(",", ":")) + "\n"
    parts = [line.encode("utf-8", "surrogatepass"), *long]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [_HEAD.pack(MARK, sum(map(len, parts)), checksum), *parts]


def _unpack_frame(payload: bytes) -> Frame:
    line, _, texts = payload.partition(b"\n")
    header = json.loads(line.decode("utf-8", "surrogatepass"))
    frame, lengths = header if isinstance(header, list) else (header, ())
    offset = 0
    for (*path, name), length in lengths:
        target = frame
        for step in path:
            target = target[step]
        target[name] = texts[offset : offset + length].decode("utf-8", "surrogatepass")
        offset += length
    complete_frame: Frame = frame
    return complete_frame


def _write_bytes(handle: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written


@dataclass(frozen=True, slots=True)
class JournalContent:
    """Journal content: frames, and the number of damaged places.

    A torn last frame counts as no damage: the frame was never acknowledged."""

    frames: tuple[Frame, ...]
    damaged: int = 0


def read_journal(path: Path) -> JournalContent:
    """Read journal frames, including frames after damaged places."""
    return journal_content(path.read_bytes())


def journal_content(data: bytes) -> JournalContent:
    """Parse journal bytes into frames, skipping damaged places."""
    frames: list[Frame] = []
    damaged = 0
    offset = len(MAGIC)
    if len(data) < offset:
        return JournalContent(())
    if data[:offset] != MAGIC:
        first = data.find(MARK)
        damaged, offset = 1, first if first >= 0 else len(data)
    while offset < len(data):
        frame_match = _frame_at(data, offset)
        if frame_match is None:
            offset, lost = _find_next_frame(data, offset)
            damaged += lost
            continue
        frame, offset = frame_match
        frames.append(frame)
    return JournalContent(tuple(frames), damaged)


def _frame_at(data: bytes, offset: int) -> tuple[Frame, int] | None:
    """Return the complete frame at an offset, plus the following offset; incomplete frames
    return None."""
    if offset + _HEAD.size > len(data):
        return None
    mark, length, checksum = _HEAD.unpack_from(data, offset)
    start = offset + _HEAD.size
    payload = data[start : start + length]
    if mark != MARK or len(payload) != length or zlib.crc32(payload) != checksum:
        return None
    return _unpack_frame(payload), start + length


def _find_next_frame(data: bytes, offset: int) -> tuple[int, bool]:
    """Return the next readable offset after damage, and whether data were lost."""
    following = data.find(MARK, offset + 1)
    while following >= 0 and _frame_at(data, following) is None:
        following = data.find(MARK, following + 1)
    if following >= 0:
        return following, True
    return len(data), not _is_torn(data, offset)


def _is_torn(data: bytes, offset: int) -> bool:
    """Return whether the file ends within a frame, like after killing its writer."""
    head = data[offset : offset + _HEAD.size]
    if len(head) < _HEAD.size:
        return MARK.startswith(head[: len(MARK)])
    mark, length, _ = _HEAD.unpack(head)
    return bool(mark == MARK and len(data) < offset + _HEAD.size + length)


def is_free(path: Path) -> bool:
    """Return whether the journal owner finished or died; missing journals return False."""
    try:
        lock = FileLock.try_acquire(path, exclusive=False, create=False)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise store_error(error) from error
    if lock is None:
        return False
    lock.release()
    return True
