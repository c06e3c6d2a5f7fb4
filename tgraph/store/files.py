"""Durable file operations: whole files or none, locks that die with their process, clear errors."""

from __future__ import annotations

import errno
import fcntl
import glob
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from tgraph.errors import DamagedStoreError, StoreError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_DAMAGE = ("Corruption", "IO error: No such file or directory: While open")
_DAMAGED_FILE = re.compile(r"(?: in |: |file )(/.+?/store/[\w.-]+)")
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class disk_errors:  # noqa: N801  a context manager that reads as a phrase
    """Turns what the operating system or RocksDB says into a ``StoreError`` with a remedy."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | RuntimeError):
            raise store_error(error) from error


def store_error(error: BaseException, store: Path | str = "its folder") -> StoreError:
    """What the failure means for the user, as one sentence with its remedy."""
    text = " ".join(str(error).split())
    code = getattr(error, "errno", None)
    if code in _FULL or "No space left" in text or "quota exceeded" in text:
        return StoreError(
            "The disk is full; nothing that was acknowledged is lost.",
            "Free some space and run the command again.",
        )
    if code in _FORBIDDEN or "Read-only file system" in text or "Permission denied" in text:
        return StoreError(f"The graph folder can't be written ({text}).", "Check its permissions.")
    if found := _damage(text, store):
        return found
    return StoreError(f"The store failed: {text}.", "Run `tgraph doctor` to look into it.")


def _damage(text: str, store: Path | str) -> DamagedStoreError | None:
    """What RocksDB says where a file of its is damaged or gone."""
    if not any(sign in text for sign in _DAMAGE):
        return None
    place = _DAMAGED_FILE.search(text)
    return DamagedStoreError(place[1]) if place else DamagedStoreError(store, text.lower())


def sync_folder(path: Path | str) -> None:
    """Make renames and new names in the folder (or a file's content) durable."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_files(paths: Iterable[Path]) -> None:
    """Make whole files, their names and the folders that hold them durable."""
    files = sorted(map(str, paths))
    folders = {file.rpartition(os.sep)[0] for file in files}
    for path in (*files, *sorted(folders), *sorted({f.rpartition(os.sep)[0] for f in folders})):
        sync_folder(path)


def sync_folders(path: Path) -> None:
    """Make the names in the folder and in all below it durable, and so what is gone from them."""
    for folder, _, _ in os.walk(path):
        sync_folder(folder)


def make_folder(path: Path, *, private: bool = False, durable: bool = True) -> None:
    """Make the folder and those above it; one that is there is no error.

    A ``private`` one is for its owner alone; who makes it wider makes what is written there as
    wide, since files take no more than the folder they are made in allows.
    """
    if path.is_dir():
        return
    make_folder(path.parent, durable=durable)
    try:
        path.mkdir(0o700 if private else allowed_in(path.parent, 0o777))
    except FileExistsError:
        if not path.is_dir():
            raise
    if durable:
        sync_folder(path.parent)


def user_data() -> Path:
    """The folder of the user's own data (XDG base directories), which may not be there yet."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    root = base if base.is_absolute() else Path("~/.local/share").expanduser()
    return root / "tgraph"


def write_atomic(
    path: Path, data: bytes, *, durable: bool = True, scratch: Path | None = None
) -> None:
    """Replace the file by ``data``: a reader, and a crash, sees the old or the new, never a part.

    The data is first written to a locked temporary file in ``scratch`` (on the same file system; by
    default the file's own folder), where ``sweep`` finds it if this process dies.
    """
    if not os.path.isdir(path.parent):  # noqa: PTH112
        make_folder(path.parent, durable=durable)
    with temporary(scratch or path.parent, path.name) as file:
        file.write(data)
        move(file, path, durable=durable)


def write_private(path: Path, data: bytes) -> None:
    """As ``write_atomic``, for the owner alone; a file that was there keeps its permissions."""
    with private_file(path) as file:
        file.write(data)


@contextmanager
def private_file(path: Path) -> Iterator[BinaryIO]:
    """A file to be written bit by bit, as ``write_private``: it takes its place at the end."""
    permissions = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    with temporary(path.parent, path.name) as file:
        os.fchmod(file.fileno(), permissions)
        yield file
        move(file, path, durable=False)


@contextmanager
def temporary(scratch: Path, name: str) -> Iterator[BinaryIO]:
    """A new locked file in the folder, for ``move``; it is gone afterwards where it was not moved.

    ``sweep`` finds it if this process dies.
    """
    while True:
        path = f"{scratch}{os.sep}.{name}.{os.getpid()}.{time.monotonic_ns()}.tmp"
        with new_file(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not os.fstat(file.fileno()).st_nlink:  # swept in the moment before it was locked
                continue
            try:
                yield file
            finally:
                with suppress(OSError):
                    os.unlink(path)  # noqa: PTH108  thousands a run
            return


def allowed_in(folder: Path | str, most: int = 0o666) -> int:
    """The permissions of what is made in the folder: those of them that it has itself."""
    return most & (os.stat(folder).st_mode | 0o700)  # noqa: PTH116  thousands a run


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, allowed_in(os.path.dirname(path) or "."))  # noqa: PTH120


def new_file(path: Path | str) -> BinaryIO:
    """A file that must not be there yet, as wide as the folder that it is made in."""
    try:
        return open(path, "xb", opener=_opener)
    except FileNotFoundError:
        make_folder(Path(path).parent)
        return open(path, "xb", opener=_opener)


def move(file: BinaryIO, path: Path, *, durable: bool = True) -> None:
    """Give a temporary file its name, once its content is durable."""
    file.flush()
    if durable:
        os.fsync(file.fileno())
    os.replace(file.name, path)  # noqa: PTH105
    if durable:
        sync_folder(path.parent)


def link_file(path: Path, copy: Path) -> None:
    """A hard link, or a copy where the file system has none."""
    try:
        os.link(path, copy)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EXDEV):
            raise
        shutil.copy2(path, copy)


def sweep(folder: Path, name: str = "") -> int:
    """Delete the temporary files (those for the ``name``) of processes that died; returns how many
    there were.

    A file that is still being written is locked by its writer, so no clock decides.
    """
    count = 0
    for path in folder.glob(f".{glob.escape(name)}*.tmp"):
        with suppress(FileNotFoundError, PermissionError):
            lock = FileLock.try_acquire(path, create=False)
            if lock is not None:
                path.unlink(missing_ok=True)
                lock.release()
                count += 1
    return count


def write_json(path: Path, value: object) -> None:
    write_atomic(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file; None where there is no such file or it is no JSON object.

    ``StoreError`` where the file is there and can't be read.
    """
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(f"{path} can't be read: {reason}.", "Check its permissions.") from error
    return value if isinstance(value, dict) else None


class FileLock:
    """An advisory lock on a file, shared or exclusive, released when the process ends."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    @classmethod
    def try_acquire(
        cls, path: Path, *, exclusive: bool = True, create: bool = True
    ) -> FileLock | None:
        """The lock, or None while somebody else holds it. ``OSError`` where there can be none."""
        flags = (os.O_RDWR | os.O_CREAT) if create else os.O_RDONLY
        permissions = allowed_in(path.parent) if create else 0
        handle = os.open(path, flags | os.O_CLOEXEC, permissions)
        mode = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        try:
            fcntl.flock(handle, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        return cls(handle)

    def sign(self) -> None:
        """Leave the process's number in the file, for whoever waits."""
        if self._handle is not None:
            with suppress(OSError):  # a full disk is no reason not to hold the lock
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, b"%d\n" % os.getpid(), 0)

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
    with disk_errors():
        make_folder(path.parent)
        lock = FileLock.try_acquire(path)
    if lock is None:
        waiting()
        lock = _wait(path, timeout)
    lock.sign()
    try:
        yield
    finally:
        lock.release()


def _wait(path: Path, timeout: float | None) -> FileLock:
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = 0.002
    while deadline is None or time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
        with disk_errors():
            lock = FileLock.try_acquire(path)
        if lock is not None:
            return lock
    with suppress(OSError):
        owner = path.read_text("ascii", "replace").strip()
        if owner.isdigit():
            raise StoreError(
                f"Process {owner} has been writing to the graph for {timeout:g} seconds.",
                "Try again when it has finished.",
            )
    raise StoreError("Another process is writing to the graph.", "Try again in a moment.")
