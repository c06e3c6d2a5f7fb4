"""Files that are derived from knowledge: each is named by its content and never changed in place;
whoever names it keeps its size and sums, by which it is checked when it is opened.

A ``DataSet`` is a few data files and a JSON file, the head, that names them and is written last.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from tgraph.errors import StoreError
from tgraph.store.files import (
    allowed_in,
    disk_errors,
    link_file,
    make_folder,
    read_json,
    write_json,
)

Loaded = TypeVar("Loaded")

CHECKED_WHOLE = 64 * 2**20
_BLOCK = 2**20


class DamagedIndexError(StoreError):
    """A file isn't what was written; indexing again makes it anew."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A written data file; both checksums cover the complete file."""

    name: str
    size: int
    crc32: int
    sha256: str


def write_data(folder: Path, stem: str, write: Callable[[Path], None]) -> DataFile:
    """Write a file through ``write``, durably, and rename it after its content.

    Raises ``StoreError`` if the disk fails; nothing is left behind then."""
    temporary = folder / f".{stem}.{os.getpid()}.tmp"
    try:
        make_folder(folder)
        write(temporary)
        temporary.chmod(allowed_in(folder))
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        size, crc32, digest = _compute_checksums(temporary)
        name = f"{stem}.{digest[:16]}"
        temporary.replace(folder / name)
    except (OSError, RuntimeError) as error:  # RuntimeError: hnswlib can't write
        raise unwritable_error(folder, error) from error
    finally:
        temporary.unlink(missing_ok=True)
    return DataFile(name, size, crc32, digest)


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """Data files in a folder, by role in a set."""

    folder: Path
    files: Mapping[str, DataFile]

    def link(self, folder: Path) -> dict[str, DataFile]:
        """Link the files into another folder too. Raises ``StoreError`` if the disk fails."""
        try:
            make_folder(folder)
            for file in self.files.values():
                if not (folder / file.name).exists():
                    link_file(self.folder / file.name, folder / file.name)
        except OSError as error:
            raise unwritable_error(folder, error) from error
        return dict(self.files)


FileHead = Mapping[str, Any]
"""The content of a head: format, generation, data files, and the facts of the set."""

ONLY_FILE = "file"
"""The role of the file of a set that has one file; the head names the file under this key."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """The data files ``STEM.*`` and ``STEM-*`` of a folder, with the head ``STEM.json``."""

    stem: str
    format: int

    @property
    def head(self) -> str:
        """The name of the head's file."""
        return f"{self.stem}.json"

    def write_head(
        self, folder: Path, generation: int, files: Mapping[str, DataFile], **facts: object
    ) -> None:
        """Name the ``files``, by role, as the set of a generation of the knowledge, atomically and
        durably; then remove the other data files of the set.

        Raises ``StoreError`` when the disk fails.
        """
        files_by_role = {role: asdict(file) for role, file in files.items()}
        listed = files_by_role if files_by_role.keys() == {ONLY_FILE} else {"files": files_by_role}
        with disk_errors():
            state = {"format": self.format, "generation": generation}
            write_json(folder / self.head, {**state, **facts, **listed})
            current = {self.head, *(file.name for file in files.values())}
            for path in folder.glob(f"{self.stem}[.-]*"):
                if path.name not in current:
                    path.unlink(missing_ok=True)

    def load(
        self,
        folder: Path,
        generation: int,
        open_files: Callable[[Mapping[str, DataFile], FileHead], Loaded],
        **facts: object,
    ) -> Loaded | None:
        """Return the result of ``open_files``, which gets the files by role and the head.

        Returns None where the head or a file is missing or damaged, or where the head has another
        format or generation or other ``facts``.
        """
        expected = {"format": self.format, "generation": generation, **facts}
        try:
            head = read_json(folder / self.head) or {}
            if any(head[name] != value for name, value in expected.items()):
                return None
            files_by_role = {ONLY_FILE: head[ONLY_FILE]} if ONLY_FILE in head else head["files"]
            files = {role: DataFile(**file) for role, file in files_by_role.items()}
            return open_files(files, head)
        except (OSError, AttributeError, KeyError, TypeError, ValueError, StoreError):
            return None


def unwritable_error(folder: Path, error: Exception) -> StoreError:
    return StoreError(
        f"The index can't be written to {folder}: {error}.",
        "Make room or allow writing there, then index again.",
    )


def _compute_checksums(path: Path) -> tuple[int, int, str]:
    crc32, digest, size = 0, sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            crc32, size = zlib.crc32(block, crc32), size + len(block)
            digest.update(block)
    return size, crc32, digest.hexdigest()


def check_file(path: Path, file: DataFile, *, whole: bool, verify: bool = False) -> None:
    """Raise ``DamagedIndexError`` unless a file has the expected size and checksum."""
    try:
        size = path.stat().st_size
        if size != file.size:
            raise build_damage_error(path, f"it has {size} bytes instead of {file.size}")
        if verify and _compute_checksums(path) != (file.size, file.crc32, file.sha256):
            raise build_damage_error(path, "its SHA-256 is another")
        if whole and not verify and _compute_crc32(path) != file.crc32:
            raise build_damage_error(path, "its checksum is another")
    except OSError as error:
        raise build_damage_error(path, error.strerror or str(error)) from error


def _compute_crc32(path: Path) -> int:
    crc32 = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            crc32 = zlib.crc32(block, crc32)
    return crc32


def build_damage_error(path: Path, reason: str) -> DamagedIndexError:
    return DamagedIndexError(f"The index is damaged: {path}: {reason}.", "Index again.")
