"""Journals: what happens is written down, frame by frame, before anybody is told of it.

A frame is a mark, a length, a CRC-32 and a JSON object on a line; where that has long texts, it
stands with a list of their places and lengths in bytes, and they follow the line as they are. The
mark begins with a byte that UTF-8 never has, so that reading goes on behind a damaged frame. The
owner holds a lock on the file for as long as it writes: whoever finds a journal unlocked knows that
its owner has finished or died.
"""

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
    """The open journal of one session; what was appended outlives the process."""

    def __init__(self, path: Path) -> None:
        """A new journal. ``StoreError`` where there is one already, or none can be written."""
        self.path = path
        self._handle = -1
        if path.exists():
            raise StoreError(f"{path} is there already.", "Give each session its own UUID.")
        with disk_errors():
            make_folder(path.parent)
            self._handle = _create(path)
        self._end = len(MAGIC)

    def append(self, frame: Frame, *, sync: bool = True) -> None:
        """Write the frame. After a failure the journal ends with the frame before.

        With ``sync`` it and all before it are on disk when this returns; without, they outlive a
        kill but perhaps not a power cut, until a later frame is synced.
        """
        parts = _packed(frame)
        with disk_errors():
            try:
                end = self._end
                for part in parts:
                    _write(self._handle, part, end)
                    end += len(part)
                if sync:
                    os.fdatasync(self._handle)
            except BaseException:  # an interruption too must leave no part of a frame
                with suppress(OSError):
                    os.ftruncate(self._handle, self._end)
                raise
        self._end = end

    def close(self) -> None:
        """Release the journal to the next writer."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _create(path: Path) -> int:
    """The handle of a new journal, locked before anybody can see it under its name."""
    unnamed = path.with_name(f".{path.name}.tmp")
    for last_try in (False, False, True):
        handle = os.open(unnamed, _CREATE, allowed_in(path.parent))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            _write(handle, MAGIC, 0)
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


def _packed(frame: Frame) -> list[bytes]:
    """The bytes of a frame, in pieces."""
    lengths: list[tuple[list[str], int]] = []
    long: list[bytes] = []

    def short(members: Mapping[str, Any], *path: str) -> dict[str, Any]:
        found = {}
        for name, value in members.items():
            if isinstance(value, str) and len(value) > _LONG:
                long.append(value.encode("utf-8", "surrogatepass"))
                lengths.append(([*path, name], len(long[-1])))
            elif isinstance(value, Mapping) and not path:
                found[name] = short(value, name)
            else:
                found[name] = value
        return found

    brief = short(frame)
    shown = [brief, lengths] if long else brief
    line = json.dumps(shown, ensure_ascii=False, separators=(",", ":")) + "\n"
    parts = [line.encode("utf-8", "surrogatepass"), *long]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [_HEAD.pack(MARK, sum(map(len, parts)), checksum), *parts]


def _unpacked(payload: bytes) -> Frame:
    line, _, rest = payload.partition(b"\n")
    found = json.loads(line.decode("utf-8", "surrogatepass"))
    frame, lengths = found if isinstance(found, list) else (found, ())
    offset = 0
    for (*path, name), length in lengths:
        within = frame
        for step in path:
            within = within[step]
        within[name] = rest[offset : offset + length].decode("utf-8", "surrogatepass")
        offset += length
    whole: Frame = frame
    return whole


def _write(handle: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written


@dataclass(frozen=True, slots=True)
class JournalContent:
    """What a journal holds: its frames, and in how many places something between them was lost.

    A torn last frame is no loss: it was never acknowledged.
    """

    frames: tuple[Frame, ...]
    damaged: int = 0


def read_journal(path: Path) -> JournalContent:
    """The frames of a journal. Frames behind a damaged place are found and read."""
    return journal_content(path.read_bytes())


def journal_content(data: bytes) -> JournalContent:
    """The same of a journal's bytes."""
    frames: list[Frame] = []
    damaged = 0
    offset = len(MAGIC)
    if len(data) < offset:
        return JournalContent(())
    if data[:offset] != MAGIC:
        first = data.find(MARK)
        damaged, offset = 1, first if first >= 0 else len(data)
    while offset < len(data):
        found = _frame_at(data, offset)
        if found is None:
            offset, lost = _resume(data, offset)
            damaged += lost
            continue
        frame, offset = found
        frames.append(frame)
    return JournalContent(tuple(frames), damaged)


def _frame_at(data: bytes, offset: int) -> tuple[Frame, int] | None:
    """The frame that begins here and where the next one does; None where there is no whole one."""
    if offset + _HEAD.size > len(data):
        return None
    mark, length, checksum = _HEAD.unpack_from(data, offset)
    start = offset + _HEAD.size
    payload = data[start : start + length]
    if mark != MARK or len(payload) != length or zlib.crc32(payload) != checksum:
        return None
    return _unpacked(payload), start + length


def _resume(data: bytes, offset: int) -> tuple[int, bool]:
    """Where reading goes on behind a place that holds no frame, and whether something was lost."""
    following = data.find(MARK, offset + 1)
    while following >= 0 and _frame_at(data, following) is None:
        following = data.find(MARK, following + 1)
    if following >= 0:
        return following, True
    return len(data), not _is_torn(data, offset)


def _is_torn(data: bytes, offset: int) -> bool:
    """Whether the file just ends too early, as when its writer was killed."""
    head = data[offset : offset + _HEAD.size]
    if len(head) < _HEAD.size:
        return MARK.startswith(head[: len(MARK)])
    mark, length, _ = _HEAD.unpack(head)
    return bool(mark == MARK and len(data) < offset + _HEAD.size + length)


def is_free(path: Path) -> bool:
    """Whether the journal's owner has finished or died; False where the journal is gone."""
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
