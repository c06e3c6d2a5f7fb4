"""The storage of a replica's log: files below a URL, which any package of ``fsspec`` can reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from tgraph.engine.progress import CountProgress
from tgraph.errors import EndpointError, StoreError, TgraphError, UsageError, VerificationError
from tgraph.foreign_bytes import unpack_stored
from tgraph.models.concurrency import run_parallel
from tgraph.store.files import hold_lock, make_folder, write_atomic

LOG, CONTENTS, DERIVED, JOURNALS = "log", "contents", "derived", "journals"
"""The folders below the URL."""

_MOST_BYTES = {LOG: 1 << 30, CONTENTS: 1 << 30, DERIVED: 4 << 30, JOURNALS: 256 << 20}
"""Bytes of a file that is read from storage, packed, by folder: whoever can write there can leave
one of any size."""

AGAIN = "Ship to another place, or find out who changed it."

_TRANSFERS = 16
"""Files on their way at the same time, where the storage is a server."""

_REMEDY = "Run: pip install 'tgraph-rag[replicas]'"


class Storage:
    """File storage below a URL, accessed by file name.

    Raise ``EndpointError`` if the storage is unreachable."""

    def __init__(self, url: str) -> None:
        """``UsageError`` where the extra ``replicas`` isn't installed or nothing knows the URL."""
        try:
            core: Any = import_module("fsspec.core")
        except ImportError as error:
            raise UsageError("fsspec isn't installed.", _REMEDY) from error
        try:
            self._files, self._base = core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            remedy = "Name a folder, or a URL whose package is installed."
            raise UsageError(f"{url} can't be used: {_reason(error)}.", remedy) from error
        except Exception as error:  # some packages connect here, each with errors of its own
            raise _storage_error(url, error) from error
        self._is_local = self._files.protocol in ("file", ("file", "local"))
        self.url = str(self._base) if self._is_local else url
        """The same wherever a command runs, so that a replica knows whom it follows."""
        self._files.use_listings_cache = False
        if "s3" in self._files.protocol:
            self._files.retries = 1  # botocore tries again too: 25 times its patience is hours
        self._at_once = _TRANSFERS if getattr(self._files, "async_impl", False) else 1

    def transfer_files(
        self,
        names: Sequence[str],
        work: Callable[[str], bool],
        progress: CountProgress = lambda done, total: None,
    ) -> int:
        """Transfer files, concurrently if useful, and return the number of files for which
        ``work`` did a transfer."""
        step, transferred = 8 * self._at_once, 0
        for at in range(0, len(names), step):
            progress(at, len(names))
            transferred += sum(run_parallel(names[at : at + step], work, self._at_once))
        return transferred

    def names(self, folder: str) -> set[str]:
        """Return file names inside a folder, or an empty set if missing."""
        with self._convert_errors():
            self._files.invalidate_cache()
            try:
                paths = self._files.ls(f"{self._base}/{folder}", detail=False)
            except FileNotFoundError:
                return set()
            names = {str(name).rstrip("/").rpartition("/")[2] for name in paths}
            return {name for name in names if not name.startswith(".")}

    def has_file(self, folder: str, name: str) -> bool:
        with self._convert_errors():
            self._files.invalidate_cache()
            return bool(self._files.exists(f"{self._base}/{folder}/{name}"))

    def find(self, folder: str, name: str) -> bytes | None:
        """Return file content, or None if missing.

        Raise ``VerificationError`` for more bytes than a file of the folder has, and for what is no
        file; a size that the storage states is not asked for."""
        most, path = _MOST_BYTES[folder], f"{self._base}/{folder}/{name}"
        with self._convert_errors():
            if self._is_local and Path(path).exists() and not Path(path).is_file():
                raise VerificationError(f"{folder}/{name} at {self.url} is no file.", AGAIN)
            try:
                content: bytes = self._files.cat_file(path, start=0, end=most + 1)
            except FileNotFoundError:
                return None
        if len(content) > most:
            raise VerificationError(
                f"{folder}/{name} at {self.url} has more than {most:,} bytes, the limit.", AGAIN
            )
        return content

    def read(self, folder: str, name: str) -> bytes:
        """Return file content. Raise ``VerificationError`` if the file is missing."""
        content = self.find(folder, name)
        if content is None:
            raise VerificationError(f"{folder}/{name} is missing at {self.url}.", AGAIN)
        return content

    def read_packed(self, folder: str, key: str, label: str) -> bytes:
        """Return the unpacked content of a file named by the SHA-256 of the content.

        Raise ``VerificationError``, with the ``label`` of the file, if the content is missing,
        damaged or other content."""
        try:
            content = unpack_stored(self.read(folder, key))
        except ValueError as error:
            raise VerificationError(
                f"{label} at {self.url} can't be read: {error}.", AGAIN
            ) from error
        if sha256(content).hexdigest() != key:
            raise VerificationError(f"{label} at {self.url} is another one.", AGAIN)
        return content

    def write(self, folder: str, name: str, data: bytes) -> None:
        """Write a file atomically, replacing an existing file."""
        with self._convert_errors():
            if self._is_local:
                path = Path(self._base) / folder / name
                make_folder(path.parent)
                write_atomic(path, data)
            else:  # object storage has whole objects only
                self._write_object(folder, name, data, "overwrite")

    def create(self, folder: str, name: str, data: bytes) -> bool:
        """Create a file atomically and return True, or return False if the file exists."""
        with self._convert_errors():
            try:
                if self._is_local:
                    return self._create_here(Path(self._base) / folder / name, data)
                self._write_object(folder, name, data, "create")
            except FileExistsError:
                return False
            return True

    def delete(self, folder: str, names: Iterable[str]) -> None:
        with self._convert_errors():
            for name in names:
                with suppress(FileNotFoundError):
                    self._files.rm_file(f"{self._base}/{folder}/{name}")

    def _create_here(self, path: Path, data: bytes) -> bool:
        with hold_lock(Path(self._base) / ".lock", timeout=None):
            if path.exists():
                return False
            make_folder(path.parent)
            write_atomic(path, data)
            return True

    def _write_object(self, folder: str, name: str, data: bytes, mode: str) -> None:
        path = f"{self._base}/{folder}/{name}"
        try:
            self._files.pipe_file(path, data, mode=mode)
        except FileNotFoundError:  # where there are folders
            self._files.makedirs(f"{self._base}/{folder}", exist_ok=True)
            self._files.pipe_file(path, data, mode=mode)

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert storage errors to ``EndpointError``, because each storage package has its own
        errors."""
        try:
            yield
        except Exception as error:
            cause = error.__cause__ if isinstance(error, StoreError) else error
            if cause is None or isinstance(cause, TgraphError):
                raise
            raise _storage_error(self.url, cause) from error


def _storage_error(place: str, error: BaseException) -> EndpointError:
    if isinstance(error, PermissionError):
        return EndpointError(f"{place} refuses access: {_reason(error)}.", "Check the credentials.")
    return EndpointError(
        f"{place} can't be reached: {_reason(error)}.",
        "Nothing is lost: the next time goes on from here.",
    )


def _reason(error: BaseException) -> str:
    """Return a one-line error reason."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(reason).split()).rstrip(".")
