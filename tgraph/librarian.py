"""The librarian keeps bytes by their hash: documents, texts of pages, answers, calls, batches.

What it holds is truth, never a cache: content goes in before anything refers to it and comes out
checked against its hash. Of many contents none is synced by itself, and until all are their files
have a name of their own: so whoever puts one of them again knows that it is not durable yet.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from tgraph.errors import StoreError
from tgraph.foreign_bytes import unpack_stored
from tgraph.store.files import (
    disk_errors,
    make_folder,
    move_file,
    sweep_files,
    sync_files,
    sync_folder,
    temporary_file,
    write_atomic,
)

_GZIP_FROM = 512
_LEVEL = 6
"""A tenth smaller than at level 3, for 4 ms a megabyte; what level 9 saves takes twice the time."""

_QUICK = 3
"""Of contents in parts, which may have gigabytes."""
_BLOCK = 65_536
_LOOSE = "+"
"""Begins the name of a file that need not have reached the disk yet."""


class Librarian:
    """A folder of content-addressed files, the larger ones compressed; hashes are of contents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def store_content(self, content: bytes, *, durable: bool = True) -> str:
        """Store the content and return its hexadecimal SHA-256.

        A damaged existing copy is replaced; a copy stored by another writer is made durable
        too. If a single statement will refer to many contents, none needs to be ``durable``
        individually: ``sync`` all contents before making the statement."""
        key = sha256(content).hexdigest()
        there = self._find_file(key) is not None
        if not there or self._read_intact(key) is None:
            self._write_file(
                key, content, durable=durable or there
            )  # in the place of a damaged one
        elif durable:
            self.sync([key])
        return key

    def _write_file(self, key: str, content: bytes, *, durable: bool) -> None:
        large = len(content) >= _GZIP_FROM
        packed = gzip.compress(content, _LEVEL, mtime=0) if large else content
        suffix = ".gz" if packed is not content else ""
        with disk_errors():
            path = self._content_path(key, suffix)
            if durable:
                self._make_durable_folder(path.parent)
                write_atomic(path, packed, scratch=self._scratch_folder)
            else:
                write_atomic(_loose_path(path), packed, durable=False, scratch=self._scratch_folder)

    def put_text(self, text: str) -> str:
        return self.store_content(text.encode("utf-8", "surrogatepass"))

    def sync(self, keys: Iterable[str]) -> None:
        """Make previously stored, nondurable contents durable."""
        paths = {path for key in keys if (path := self._find_file(key)) and _is_loose(path)}
        with disk_errors():
            _sync_there(paths)
            for path in paths:
                with suppress(FileNotFoundError):
                    path.replace(path.with_name(path.name.removeprefix(_LOOSE)))

    def put_parts(self, parts: Iterable[bytes]) -> str:
        """Store content given in parts, as in ``put``; the content may exceed memory."""
        hasher = sha256()
        with disk_errors(), temporary_file(self._scratch_folder, "parts") as file:
            with gzip.GzipFile("", "wb", _QUICK, file, mtime=0) as packed:
                for block in _join_blocks(parts):
                    hasher.update(block)
                    packed.write(block)
            key = hasher.hexdigest()
            if self._read_intact(key) is None:
                path = self._content_path(key, ".gz")
                self._make_durable_folder(path.parent)
                move_file(file, path)
            else:
                self.sync([key])
        return key

    def read_content(self, key: str) -> bytes:
        """Return verified content by hash; raise ``StoreError`` if missing or damaged."""
        content = self._read_intact(key)
        if content is None:
            path = self._find_file(key)
            raise _damage_error(key, path) if path else _missing_error(key)
        return content

    def get_text(self, key: str) -> str:
        return self.read_content(key).decode("utf-8", "surrogatepass")

    def lines(self, key: str) -> Iterator[bytes]:
        """Yield lines, including line ends, of content possibly larger than memory.

        Raises ``StoreError`` if the content is missing, and at the end if the content read
        differs from the content stored."""
        file = self._open_file(key)
        if file is None:
            raise _missing_error(key)
        hasher = sha256()
        with file:
            try:
                for line in gzip.GzipFile(fileobj=file) if _is_packed(file) else file:
                    hasher.update(line)
                    yield line
            except (OSError, EOFError, zlib.error) as error:
                raise _damage_error(key, file.name) from error
        if hasher.hexdigest() != key:
            raise _damage_error(key, file.name)

    def keys(self) -> Iterator[str]:
        """Yield hashes of all stored contents, each once, in order."""
        files = (path for path in self.folder.glob("*/*") if path.parent != self._scratch_folder)
        yield from sorted({path.name.removesuffix(".gz").removeprefix(_LOOSE) for path in files})

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield hashes and files of durable contents, in hash order.

        The file of a content ``removed`` meanwhile no longer exists."""
        paths = (path for path in self.folder.glob("??/*") if not _is_loose(path))
        for path in sorted(paths, key=lambda path: path.name):
            yield path.name.removesuffix(".gz"), path

    def find_damaged(self) -> Iterator[tuple[str, Path]]:
        """Yield hashes and files of damaged durable contents."""
        for key, path in self.files():
            if self._read_intact(key) is None and path.exists():
                yield key, path

    def has_content(self, key: str) -> bool:
        return self._find_file(key) is not None

    def adopt(self, other: Librarian) -> None:
        """Adopt all contents of another librarian durably; both must share a file system.

        The other librarian then has no contents left. The operation can be repeated after a
        crash."""
        with disk_errors():
            for key in list(other.keys()):
                path = other._find_file(key)
                if path is not None:
                    target = self._content_path(key, path.suffix)
                    make_folder(target.parent)
                    path.replace(target)
            for folder in (*self.folder.glob("*/"), self.folder):
                sync_folder(folder)

    def remove(self, key: str) -> None:
        """Delete the content with the given hash; missing content is no error."""
        for suffix in (".gz", ""):
            path = self._content_path(key, suffix)
            path.unlink(missing_ok=True)
            _loose_path(path).unlink(missing_ok=True)

    def sweep(self) -> int:
        """Delete what writers that died left unfinished; returns how many files that were."""
        return sweep_files(self._scratch_folder)

    def _make_durable_folder(self, folder: Path) -> None:
        """Create the folder durably, including a folder created earlier for nondurable
        contents."""
        if not folder.is_dir():
            make_folder(folder)
        elif all(map(_is_loose, folder.iterdir())):
            sync_folder(self.folder)

    @property
    def _scratch_folder(self) -> Path:
        return self.folder / "tmp"

    def _content_path(self, key: str, suffix: str) -> Path:
        if len(key) != 64 or not set(key) <= set("0123456789abcdef"):
            raise StoreError(f"{key!r} is not a content hash.")
        return self.folder / key[:2] / f"{key}{suffix}"

    def _find_file(self, key: str) -> Path | None:
        durable = self._content_path(key, ".gz"), self._content_path(key, "")
        for path in (*durable, *map(_loose_path, durable), *durable):  # it may just be renamed
            if os.path.exists(path):  # noqa: PTH110  asked for each call of a run
                return path
        return None

    def _read_intact(self, key: str) -> bytes | None:
        """Return content if present and undamaged; otherwise None."""
        file = self._open_file(key)
        if file is None:
            return None
        with disk_errors(), file:
            data = file.read()
        try:
            content = unpack_stored(data) if _is_packed(file) else data
        except ValueError:
            return None
        return content if sha256(content).hexdigest() == key else None

    def _open_file(self, key: str) -> BinaryIO | None:
        """Open the content's file; return None if missing."""
        path = self._find_file(key)
        if path is None:
            return None
        with disk_errors():
            try:
                return path.open("rb")
            except FileNotFoundError:  # synced, or removed, in this moment
                return self._open_file(key)


def _loose_path(path: Path) -> Path:
    return path.with_name(f"{_LOOSE}{path.name}")


def _is_loose(path: Path) -> bool:
    return path.name.startswith(_LOOSE)


def _sync_there(paths: set[Path]) -> None:
    """Sync existing files; missing files were handled by another process."""
    while paths:
        try:
            sync_files(paths)
        except FileNotFoundError:
            paths = {path for path in paths if path.exists()}
        else:
            return


def _is_packed(file: BinaryIO) -> bool:
    return file.name.endswith(".gz")


def _missing_error(key: str) -> StoreError:
    return StoreError(f"The librarian does not hold {key}.", "Was it erased?")


def _damage_error(key: str, path: Path | str) -> StoreError:
    return StoreError(
        f"The librarian's copy of {key} is damaged ({path}).", "Restore the file from a backup."
    )


def _join_blocks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The parts, small ones joined: compressing has a price for each."""
    block = bytearray()
    for part in parts:
        block += part
        if len(block) >= _BLOCK:
            yield bytes(block)
            block.clear()
    yield bytes(block)
