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
from tgraph.shortages import explain_shortage

_DAMAGE = ("Corruption", "IO error: No such file or directory: While open")
_DAMAGED_FILE = re.compile(r"(?: in |: |file )(/.+?/store/[\w.-]+)")


class disk_errors:  # noqa: N801  a context manager that reads as a phrase
    """A context manager converting operating system and RocksDB errors into ``StoreError`` with
    a remedy."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | RuntimeError):
            raise store_error(error) from error


def store_error(error: BaseException, store: Path | str = "its folder") -> StoreError:
    """Explain a storage failure in one sentence, with a remedy."""
    text = " ".join(str(error).split())
    if damage := _find_damage(text, store):
        return damage
    shortage = explain_shortage(error)
    if isinstance(shortage, StoreError):
        return shortage
    return StoreError(f"The store failed: {text}.", "Run `tgraph doctor` to look into it.")


def _find_damage(text: str, store: Path | str) -> DamagedStoreError | None:
    """Return an error for damaged or missing RocksDB files, or None."""
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
    """Make file contents, file names and containing folders durable."""
    files = sorted(map(str, paths))
    folders = {file.rpartition(os.sep)[0] for file in files}
    for path in (*files, *sorted(folders), *sorted({f.rpartition(os.sep)[0] for f in folders})):
        sync_folder(path)


def sync_folders(path: Path) -> None:
    """Make names and deletions durable throughout a folder tree."""
    for folder, _, _ in os.walk(path):
        sync_folder(folder)


def make_folder(path: Path, *, private: bool = False, durable: bool = True) -> None:
    """Create a folder with missing parents; existing folders cause no error.

    A ``private`` folder is accessible only to its owner; widening its permissions also widens
    new contents, since files take no more permissions than their folder allows."""
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
    """Return the user's data folder (XDG base directories), possibly missing."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    root = base if base.is_absolute() else Path("~/.local/share").expanduser()
    return root / "tgraph"


def write_atomic(
    path: Path, data: bytes, *, durable: bool = True, scratch: Path | None = None
) -> None:
    """Replace file contents with ``data`` atomically: readers and crashes see old or new
    contents, never a mixture.

    Data first go to a locked temporary file in ``scratch`` (same file system; default: target
    folder), where ``sweep_files`` finds leftovers of dead processes."""
    if not os.path.isdir(path.parent):  # noqa: PTH112
        make_folder(path.parent, durable=durable)
    with temporary_file(scratch or path.parent, path.name) as file:
        file.write(data)
        move_file(file, path, durable=durable)


def write_private(path: Path, data: bytes) -> None:
    """Write a file atomically, readable only by its owner; existing files keep their
    permissions."""
    with private_file(path) as file:
        file.write(data)


@contextmanager
def private_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a private file for incremental writing; on exit, the file replaces ``path``."""
    permissions = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    with temporary_file(path.parent, path.name) as file:
        os.fchmod(file.fileno(), permissions)
        yield file
        move_file(file, path, durable=False)


@contextmanager
def temporary_file(scratch: Path, name: str) -> Iterator[BinaryIO]:
    """Yield a new locked temporary file for ``move_file``; delete the file afterwards unless
    moved.

    ``sweep_files`` deletes leftovers of dead processes."""
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
    """Return permissions for new folder contents: ``most``, limited by the folder's
    permissions."""
    return most & (os.stat(folder).st_mode | 0o700)  # noqa: PTH116  thousands a run


def _open_with_permissions(path: str, flags: int) -> int:
    return os.open(path, flags, allowed_in(os.path.dirname(path) or "."))  # noqa: PTH120


def new_file(path: Path | str) -> BinaryIO:
    """Create a new file with permissions inherited from its folder; existing files raise an
    error."""
    try:
        return open(path, "xb", opener=_open_with_permissions)
    except FileNotFoundError:
        make_folder(Path(path).parent)
        return open(path, "xb", opener=_open_with_permissions)


def move_file(file: BinaryIO, path: Path, *, durable: bool = True) -> None:
    """Rename a temporary file to its final path after syncing its content."""
    file.flush()
    if durable:
        os.fsync(file.fileno())
    os.replace(file.name, path)  # noqa: PTH105
    if durable:
        sync_folder(path.parent)


def link_file(path: Path, copy: Path) -> None:
    """Create a hard link, or a copy on file systems without hard links."""
    try:
        os.link(path, copy)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EXDEV):
            raise
        shutil.copy2(path, copy)


def sweep_files(folder: Path, name: str = "") -> int:
    """Delete temporary files (optionally for one ``name``) of dead processes; return the number
    deleted.

    Active writers lock their files, so deletion needs no clock."""
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
    """Read a JSON object file; return None for missing files or other JSON.

    Raise ``StoreError`` for unreadable files."""
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
        """Acquire a file lock; return None while another process holds the lock.

        Raise ``OSError`` where locking is impossible."""
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
        """Write the process id into the lock file, informing waiting processes."""
        if self._handle is not None:
            with suppress(OSError):  # a full disk is no reason not to hold the lock
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


@contextmanager
def hold_lock(
    path: Path, *, timeout: float | None, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold a file lock; wait up to ``timeout`` seconds (None: forever), then raise
    ``StoreError``.

    ``waiting`` is called once if another process holds the lock."""
    with disk_errors():
        make_folder(path.parent)
        lock = FileLock.try_acquire(path)
    if lock is None:
        waiting()
        lock = _wait_for_lock(path, timeout)
    lock.sign()
    try:
        yield
    finally:
        lock.release()


def _wait_for_lock(path: Path, timeout: float | None) -> FileLock:
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
                "Try again when the process has finished.",
            )
    raise StoreError("Another process is writing to the graph.", "Try again in a moment.")
