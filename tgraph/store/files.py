"""Durable file operations: whole files or none, and locks that die with their process."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tgraph.errors import StoreError


def sync_folder(folder: Path) -> None:
    """Make renames and new names in the folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomic(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace the file by ``data``: a reader, and a crash, sees the old or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def write_json(path: Path, value: object) -> None:
    write_atomic(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file; None where there is no such file or it is no JSON object."""
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return value if isinstance(value, dict) else None


class FileLock:
    """An advisory lock on a file, shared or exclusive, released when the process ends."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    @classmethod
    def try_acquire(cls, path: Path, *, exclusive: bool = True, create: bool = True) -> FileLock | None:
        """The lock, or None while another process holds it."""
        flags = (os.O_RDWR | os.O_CREAT) if create else os.O_RDONLY
        handle = os.open(path, flags | os.O_CLOEXEC, 0o666)
        mode = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        try:
            fcntl.flock(handle, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return cls(handle)

    def release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


@contextmanager
def exclusive(
    path: Path, *, timeout: float | None, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the lock; wait for it up to ``timeout`` seconds (None: for ever), else ``StoreError``.

    ``waiting`` is called once when the lock turns out to be held by somebody else.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = None if timeout is None else time.monotonic() + timeout
    told, pause = False, 0.002
    while (lock := FileLock.try_acquire(path)) is None:
        if not told:
            waiting()
            told = True
        if deadline is not None and time.monotonic() >= deadline:
            raise StoreError("Another process is writing to the graph.", "Try again in a moment.")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    try:
        yield
    finally:
        lock.release()
