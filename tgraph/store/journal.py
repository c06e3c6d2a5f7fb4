"""Journals: what happens is written down, frame by frame, before anybody is told of it.

A frame is a length, a CRC-32 and a JSON object; a torn or damaged tail is not read. The owner holds
a lock on the file for as long as it writes, so that whoever finds a journal unlocked knows that its
owner has finished or died.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tgraph.store.files import sync_folder
from tgraph.store.oxigraph import disk_errors

MAGIC = b"TGJ1"
_HEAD = struct.Struct(">II")
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
Frame = Mapping[str, Any]


class Journal:
    """The open journal of one session; every ``append`` is on disk when it returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with disk_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            unnamed = path.with_name(f".{path.name}.new")
            self._handle = os.open(unnamed, _CREATE, 0o666)
            fcntl.flock(self._handle, fcntl.LOCK_EX)  # before anybody can see it under its name
            os.write(self._handle, MAGIC)
            unnamed.rename(path)
            sync_folder(path.parent)
        self._end = len(MAGIC)

    def append(self, frame: Frame) -> None:
        """Write the frame and sync it. After a failure the journal ends with the frame before."""
        payload = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )
        data = _HEAD.pack(len(payload), zlib.crc32(payload)) + payload
        with disk_errors():
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._handle, view) :]
                os.fdatasync(self._handle)
            except OSError:
                os.ftruncate(self._handle, self._end)
                os.lseek(self._handle, self._end, os.SEEK_SET)
                raise
        self._end += len(data)

    def close(self) -> None:
        """Release the journal to the next writer."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def read_frames(path: Path) -> Iterator[Frame]:
    """The frames of a journal up to its end or the first that is torn or damaged."""
    data = path.read_bytes()
    if data[: len(MAGIC)] != MAGIC:
        return
    offset = len(MAGIC)
    while offset + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, offset)
        payload = data[offset + _HEAD.size : offset + _HEAD.size + length]
        if len(payload) != length or zlib.crc32(payload) != checksum:
            return
        yield json.loads(payload.decode("utf-8", "surrogatepass"))
        offset += _HEAD.size + length


def is_free(path: Path) -> bool:
    """Whether the journal's owner has finished or died."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True
