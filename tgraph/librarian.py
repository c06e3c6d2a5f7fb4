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
from tgraph.store.files import (
    disk_errors,
    make_folder,
    move,
    sweep,
    sync_files,
    sync_folder,
    temporary,
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

    def put(self, content: bytes, *, durable: bool = True) -> str:
        """Keep the content and return its SHA-256 in hexadecimal.

        A copy that was there and is damaged is replaced; one that somebody else put is made durable
        too. Of many contents that one statement will refer to, none needs to be ``durable`` by
        itself: ``sync`` them all before it is made.
        """
        key = sha256(content).hexdigest()
        there = self._existing(key) is not None
        if not there or self._intact(key) is None:
            self._write(key, content, durable=durable or there)  # in the place of a damaged one
        elif durable:
            self.sync([key])
        return key

    def _write(self, key: str, content: bytes, *, durable: bool) -> None:
        large = len(content) >= _GZIP_FROM
        packed = gzip.compress(content, _LEVEL, mtime=0) if large else content
        suffix = ".gz" if packed is not content else ""
        with disk_errors():
            path = self._path(key, suffix)
            if durable:
                self._settle(path.parent)
                write_atomic(path, packed, scratch=self._scratch)
            else:
                write_atomic(_loose(path), packed, durable=False, scratch=self._scratch)

    def put_text(self, text: str) -> str:
        return self.put(text.encode("utf-8", "surrogatepass"))

    def sync(self, keys: Iterable[str]) -> None:
        """Make the contents durable that were put without being so."""
        found = {path for key in keys if (path := self._existing(key)) and _is_loose(path)}
        with disk_errors():
            _sync_there(found)
            for path in found:
                with suppress(FileNotFoundError):
                    path.replace(path.with_name(path.name.removeprefix(_LOOSE)))

    def put_parts(self, parts: Iterable[bytes]) -> str:
        """As ``put``, of a content that comes in parts and may be larger than the memory."""
        hasher = sha256()
        with disk_errors(), temporary(self._scratch, "parts") as file:
            with gzip.GzipFile("", "wb", _QUICK, file, mtime=0) as packed:
                for block in _blocks(parts):
                    hasher.update(block)
                    packed.write(block)
            key = hasher.hexdigest()
            if self._intact(key) is None:
                path = self._path(key, ".gz")
                self._settle(path.parent)
                move(file, path)
            else:
                self.sync([key])
        return key

    def get(self, key: str) -> bytes:
        """The content of the hash, checked. ``StoreError`` where it is missing or damaged."""
        content = self._intact(key)
        if content is None:
            path = self._existing(key)
            raise _damaged(key, path) if path else _missing(key)
        return content

    def get_text(self, key: str) -> str:
        return self.get(key).decode("utf-8", "surrogatepass")

    def lines(self, key: str) -> Iterator[bytes]:
        """The lines of a content that may be larger than the memory, each with its line end.

        ``StoreError`` where it is missing, and at the end where what was read is not what was put.
        """
        file = self._open(key)
        if file is None:
            raise _missing(key)
        hasher = sha256()
        with file:
            try:
                for line in gzip.GzipFile(fileobj=file) if _is_packed(file) else file:
                    hasher.update(line)
                    yield line
            except (OSError, EOFError, zlib.error) as error:
                raise _damaged(key, file.name) from error
        if hasher.hexdigest() != key:
            raise _damaged(key, file.name)

    def keys(self) -> Iterator[str]:
        """The names of the files that it keeps contents in, as hashes, each once, in order."""
        files = (path for path in self.folder.glob("*/*") if path.parent != self._scratch)
        yield from sorted({path.name.removesuffix(".gz").removeprefix(_LOOSE) for path in files})

    def files(self) -> Iterator[tuple[str, Path]]:
        """The contents that are durable, by hash in order, each with the file that it is kept in.
        One that is ``removed`` meanwhile has none any more."""
        found = (path for path in self.folder.glob("??/*") if not _is_loose(path))
        for path in sorted(found, key=lambda path: path.name):
            yield path.name.removesuffix(".gz"), path

    def damaged(self) -> Iterator[tuple[str, Path]]:
        """The same of those whose file is not what was put."""
        for key, path in self.files():
            if self._intact(key) is None and path.exists():
                yield key, path

    def has(self, key: str) -> bool:
        return self._existing(key) is not None

    def adopt(self, other: Librarian) -> None:
        """Take over, durably, all that another librarian on the same file system keeps, which then
        has it no more. After a crash it can be done again."""
        with disk_errors():
            for key in list(other.keys()):
                path = other._existing(key)
                if path is not None:
                    target = self._path(key, path.suffix)
                    make_folder(target.parent)
                    path.replace(target)
            for folder in (*self.folder.glob("*/"), self.folder):
                sync_folder(folder)

    def remove(self, key: str) -> None:
        """Forget the content of the hash; one that is not there is no error."""
        for suffix in (".gz", ""):
            path = self._path(key, suffix)
            path.unlink(missing_ok=True)
            _loose(path).unlink(missing_ok=True)

    def sweep(self) -> int:
        """Delete what writers that died left unfinished; returns how many files that were."""
        return sweep(self._scratch)

    def _settle(self, folder: Path) -> None:
        """Make the folder, durably, also where it was made for contents that are not."""
        if not folder.is_dir():
            make_folder(folder)
        elif all(map(_is_loose, folder.iterdir())):
            sync_folder(self.folder)

    @property
    def _scratch(self) -> Path:
        return self.folder / "tmp"

    def _path(self, key: str, suffix: str) -> Path:
        if len(key) != 64 or not set(key) <= set("0123456789abcdef"):
            raise StoreError(f"{key!r} is not a content hash.")
        return self.folder / key[:2] / f"{key}{suffix}"

    def _existing(self, key: str) -> Path | None:
        durable = self._path(key, ".gz"), self._path(key, "")
        for path in (*durable, *map(_loose, durable), *durable):  # it may just be renamed
            if os.path.exists(path):  # noqa: PTH110  asked for each call of a run
                return path
        return None

    def _intact(self, key: str) -> bytes | None:
        """The content, if it is there and is what it should be."""
        file = self._open(key)
        if file is None:
            return None
        with disk_errors(), file:
            data = file.read()
        try:
            content = gzip.decompress(data) if _is_packed(file) else data
        except (OSError, EOFError, zlib.error):
            return None
        return content if sha256(content).hexdigest() == key else None

    def _open(self, key: str) -> BinaryIO | None:
        """The file of the content, None where there is none."""
        path = self._existing(key)
        if path is None:
            return None
        with disk_errors():
            try:
                return path.open("rb")
            except FileNotFoundError:  # synced, or removed, in this moment
                return self._open(key)


def _loose(path: Path) -> Path:
    return path.with_name(f"{_LOOSE}{path.name}")


def _is_loose(path: Path) -> bool:
    return path.name.startswith(_LOOSE)


def _sync_there(paths: set[Path]) -> None:
    """Sync the files that are there; of others somebody else saw to it."""
    while paths:
        try:
            sync_files(paths)
        except FileNotFoundError:
            paths = {path for path in paths if path.exists()}
        else:
            return


def _is_packed(file: BinaryIO) -> bool:
    return file.name.endswith(".gz")


def _missing(key: str) -> StoreError:
    return StoreError(f"The librarian does not hold {key}.", "Was it erased?")


def _damaged(key: str, path: Path | str) -> StoreError:
    return StoreError(
        f"The librarian's copy of {key} is damaged ({path}).", "Put the file back from a backup."
    )


def _blocks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The parts, small ones joined: compressing has a price for each."""
    block = bytearray()
    for part in parts:
        block += part
        if len(block) >= _BLOCK:
            yield bytes(block)
            block.clear()
    yield bytes(block)
