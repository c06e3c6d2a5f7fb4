"""Files that are derived from knowledge: each is named by its content and never changed in place;
whoever names it keeps its size and sums, by which it is checked when it is opened."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tgraph.errors import StoreError
from tgraph.store.files import allowed_in, link_file, make_folder

CHECKED_WHOLE = 64 * 2**20
_BLOCK = 2**20


class DamagedIndexError(StoreError):
    """A file isn't what was written; indexing again makes it anew."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file as it was written; both checksums are over the whole of it."""

    name: str
    size: int
    crc32: int
    sha256: str


def write_data(folder: Path, stem: str, write: Callable[[Path], None]) -> DataFile:
    """Writes a file through ``write``, durably, and names it after its content.

    Raises ``StoreError`` when the disk fails; nothing is left behind then.
    """
    temporary = folder / f".{stem}.{os.getpid()}.tmp"
    try:
        make_folder(folder)
        write(temporary)
        temporary.chmod(allowed_in(folder))
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        size, crc32, digest = _checksums(temporary)
        name = f"{stem}.{digest[:16]}"
        temporary.replace(folder / name)
    except (OSError, RuntimeError) as error:  # RuntimeError: hnswlib can't write
        raise unwritable(folder, error) from error
    finally:
        temporary.unlink(missing_ok=True)
    return DataFile(name, size, crc32, digest)


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """Data files that lie in a folder, by their role in a set."""

    folder: Path
    files: Mapping[str, DataFile]

    def link(self, folder: Path) -> dict[str, DataFile]:
        """Have them in another folder too. Raises ``StoreError`` where the disk fails."""
        try:
            make_folder(folder)
            for file in self.files.values():
                if not (folder / file.name).exists():
                    link_file(self.folder / file.name, folder / file.name)
        except OSError as error:
            raise unwritable(folder, error) from error
        return dict(self.files)


def unwritable(folder: Path, error: Exception) -> StoreError:
    return StoreError(
        f"The index can't be written to {folder}: {error}.",
        "Make room or allow writing there, then index again.",
    )


def _checksums(path: Path) -> tuple[int, int, str]:
    crc32, digest, size = 0, sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            crc32, size = zlib.crc32(block, crc32), size + len(block)
            digest.update(block)
    return size, crc32, digest.hexdigest()


def check_file(path: Path, file: DataFile, *, whole: bool, verify: bool = False) -> None:
    """Raises ``DamagedIndexError`` unless the file has this size and checksum."""
    try:
        size = path.stat().st_size
        if size != file.size:
            raise damaged(path, f"it has {size} bytes instead of {file.size}")
        if verify and _checksums(path) != (file.size, file.crc32, file.sha256):
            raise damaged(path, "its SHA-256 is another")
        if whole and not verify and _crc32(path) != file.crc32:
            raise damaged(path, "its checksum is another")
    except OSError as error:
        raise damaged(path, error.strerror or str(error)) from error


def _crc32(path: Path) -> int:
    crc32 = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            crc32 = zlib.crc32(block, crc32)
    return crc32


def damaged(path: Path, reason: str) -> DamagedIndexError:
    return DamagedIndexError(f"The index is damaged: {path}: {reason}.", "Index again.")
