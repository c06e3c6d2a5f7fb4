"""The storage of a replica's log: files below a URL, which any package of ``fsspec`` can reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from tgraph.errors import EndpointError, StoreError, TgraphError, UsageError, VerificationError
from tgraph.models.concurrency import together
from tgraph.store.files import exclusive, make_folder, write_atomic

LOG, CONTENTS, DERIVED, JOURNALS = "log", "contents", "derived", "journals"
"""The folders below the URL."""

AGAIN = "Ship to another place, or find out who changed it."

_TRANSFERS = 16
"""Files on their way at the same time, where the storage is a server."""

_REMEDY = "Run: pip install 'tgraph-rag[replicas]'"
Progress = Callable[[int, int], None]


def unseen(done: int, total: int) -> None:
    """Progress that nobody is shown."""


class Storage:
    """The files below a URL, by name; ``EndpointError`` where they can't be reached."""

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
            raise UsageError(f"{url!r} can't be used: {error}.", remedy) from error
        self._is_local = self._files.protocol in ("file", ("file", "local"))
        self.url = str(self._base) if self._is_local else url
        """The same wherever a command runs, so that a replica knows whom it follows."""
        self._files.use_listings_cache = False
        if "s3" in self._files.protocol:
            self._files.retries = 1  # botocore tries again too: 25 times its patience is hours
        self._at_once = _TRANSFERS if getattr(self._files, "async_impl", False) else 1

    def each(self, names: Sequence[str], work: Callable[[str], bool], progress: Progress) -> int:
        """Transfer each of the files, several at the same time where that is of use; for how many
        of them ``work`` was done."""
        step, done = 8 * self._at_once, 0
        for at in range(0, len(names), step):
            progress(at, len(names))
            done += sum(together(names[at : at + step], work, self._at_once))
        return done

    def names(self, folder: str) -> set[str]:
        """The names of the files of a folder; none where it isn't there."""
        with self._reached():
            self._files.invalidate_cache()
            try:
                found = self._files.ls(f"{self._base}/{folder}", detail=False)
            except FileNotFoundError:
                return set()
            names = {str(name).rstrip("/").rpartition("/")[2] for name in found}
            return {name for name in names if not name.startswith(".")}

    def has(self, folder: str, name: str) -> bool:
        with self._reached():
            self._files.invalidate_cache()
            return bool(self._files.exists(f"{self._base}/{folder}/{name}"))

    def find(self, folder: str, name: str) -> bytes | None:
        """The file; None where there is none. By its beginning, so that none asks for its size."""
        with self._reached():
            try:
                found: bytes = self._files.cat_file(f"{self._base}/{folder}/{name}", start=0)
            except FileNotFoundError:
                return None
            return found

    def read(self, folder: str, name: str) -> bytes:
        """``VerificationError`` where there is no such file."""
        found = self.find(folder, name)
        if found is None:
            raise VerificationError(f"{folder}/{name} is missing at {self.url}.", AGAIN)
        return found

    def write(self, folder: str, name: str, data: bytes) -> None:
        """Whole or not at all, in the place of one that is there."""
        with self._reached():
            if self._is_local:
                path = Path(self._base) / folder / name
                make_folder(path.parent)
                write_atomic(path, data)
            else:  # object storage has whole objects only
                self._pipe(folder, name, data, "overwrite")

    def create(self, folder: str, name: str, data: bytes) -> bool:
        """Whole or not at all, unless there is one; whether there was none."""
        with self._reached():
            try:
                if self._is_local:
                    return self._create_here(Path(self._base) / folder / name, data)
                self._pipe(folder, name, data, "create")
            except FileExistsError:
                return False
            return True

    def delete(self, folder: str, names: Iterable[str]) -> None:
        with self._reached():
            for name in names:
                with suppress(FileNotFoundError):
                    self._files.rm_file(f"{self._base}/{folder}/{name}")

    def _create_here(self, path: Path, data: bytes) -> bool:
        with exclusive(Path(self._base) / ".lock", timeout=None):
            if path.exists():
                return False
            make_folder(path.parent)
            write_atomic(path, data)
            return True

    def _pipe(self, folder: str, name: str, data: bytes, mode: str) -> None:
        path = f"{self._base}/{folder}/{name}"
        try:
            self._files.pipe_file(path, data, mode=mode)
        except FileNotFoundError:  # where there are folders
            self._files.makedirs(f"{self._base}/{folder}", exist_ok=True)
            self._files.pipe_file(path, data, mode=mode)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """What goes wrong with a storage, as one error: each package has its own."""
        try:
            yield
        except Exception as error:
            found = error.__cause__ if isinstance(error, StoreError) else error
            if found is None or isinstance(found, TgraphError):
                raise
            raise self._failure(found) from error

    def _failure(self, error: BaseException) -> EndpointError:
        if isinstance(error, PermissionError):
            return EndpointError(
                f"{self.url} refuses access: {_reason(error)}.", "Check the credentials."
            )
        return EndpointError(
            f"{self.url} can't be reached: {_reason(error)}.",
            "Nothing is lost: the next time goes on from here.",
        )


def _reason(error: BaseException) -> str:
    """What is wrong, in one line."""
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(said).split()).rstrip(".")
