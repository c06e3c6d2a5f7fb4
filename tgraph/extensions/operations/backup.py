"""Backups: a graph's folder saved to one file during normal work, and restored to a new folder.

A backup is a tar file with the ground truth, and the vectors, of each collection as last
published: the checkpoint of the store, the librarian's contents, and journals kept for
inspection. Its last member, ``backup.json``, has the SHA-256 of every other member; a file
without ``backup.json`` is no backup."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from tgraph.engine.progress import (
    CountProgress,
    OnMessage,
    OnProgress,
    Progress,
    count_progress,
    ignore_message,
    ignore_progress,
)
from tgraph.engine.saved_collections import (
    SavedCollection,
    SavedFile,
    SummingReader,
    check_file,
    open_published,
    publish_saved,
    put_in_place,
    scratch_beside,
)
from tgraph.errors import (
    FormatError,
    StoreError,
    UsageError,
)
from tgraph.models.base import current_time
from tgraph.store.files import (
    disk_errors,
    make_folder,
    move_file,
    new_file,
    sweep_files,
    temporary_file,
)
from tgraph.store.folder import MARKER, GraphFolder
from tgraph.version import __version__

LIST = "backup.json"
FORMAT = 1
SETTINGS = "tgraph.toml"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Backup:
    """A created or restored backup: file, graph folder, creation time, contents, and content
    size in bytes."""

    file: str
    root: str
    made: str
    collections: tuple[SavedCollection, ...]
    files: int
    bytes: int


# --- making one ---


def back_up(
    root: Path,
    file: Path,
    *,
    clock: Callable[[], datetime] = current_time,
    progress: OnProgress = ignore_progress,
    message: OnMessage = ignore_message,
) -> Backup:
    """Write all collections to a backup file, whole or not at all, and verify the file.

    Others may index and ask meanwhile: each collection is saved as published at the start, with
    every session that had ended. The check of the record that restoring makes is made before.
    Raises ``UsageError`` if the file exists already; ``StoreError`` if something in the graph is
    damaged, or is erased meanwhile; ``VerificationError`` if the record is not intact."""
    graph = GraphFolder.open(root)
    _check_target(file)
    with ExitStack() as stack, disk_errors():
        published, items = [], list(_shared_files(root))
        for name in graph.collections():
            contents = stack.enter_context(open_published(graph.collection(name), root, message))
            if contents is not None:
                published.append(contents)
                items += contents.files
        saved = [contents.saved for contents in published]
        if not saved:
            raise UsageError(f"{root} holds nothing yet.", "Run `tgraph index PATH...` first.")
        sweep_files(file.parent, file.name)
        with temporary_file(file.parent, file.name) as out:
            os.fchmod(out.fileno(), 0o600)
            listed = _write_archive(out, items, saved, clock(), progress)
            out.flush()
            _verify_archive(Path(out.name), progress)
            for number, contents in enumerate(published):
                contents.check()
                progress(Progress("Checking", number + 1, len(published)))
            _check_target(file)
            move_file(out, file)
    return _describe_backup(file, root, listed)


def _check_target(file: Path) -> None:
    if file.exists():
        raise UsageError(f"{file} is there already.", "Name another file.")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"{file} can't be written: its folder doesn't exist.")


def _shared_files(root: Path) -> Iterator[SavedFile]:
    for name in (MARKER, SETTINGS):
        if (root / name).is_file():
            yield SavedFile(name, root / name)


def _write_archive(
    out: BinaryIO,
    items: list[SavedFile],
    saved: list[SavedCollection],
    made: datetime,
    progress: OnProgress,
) -> dict[str, Any]:
    """Write items, followed by the item list; return the list."""
    files: dict[str, tuple[int, str]] = {}
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for number, item in enumerate(items):
            files[item.name] = check_file(item, partial(_add_file, archive, item.name))
            progress(Progress("Backing up", number + 1, len(items)))
        listed = {
            "format": FORMAT,
            "tgraph": __version__,
            "made": made.isoformat(),
            "collections": [asdict(collection) for collection in saved],
            "files": files,
        }
        data = json.dumps(listed, indent=1).encode()
        archive.addfile(_tar_member(LIST, len(data)), io.BytesIO(data))
    return listed


def _add_file(archive: tarfile.TarFile, name: str, reader: SummingReader, size: int) -> None:
    archive.addfile(_tar_member(name, size), reader)


def _tar_member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


# --- reading one ---


def restore_backup(
    file: str | Path, root: str | Path, *, progress: OnProgress = ignore_progress
) -> Backup:
    """Restore a backup to a new folder, complete and checked, or not at all.

    Every file is checked by its sum, and each collection's integrity up to the head of its
    chain. Raises ``UsageError`` if the folder is not empty, ``StoreError`` if the file is no
    backup or is damaged, ``VerificationError`` if the record is not intact."""
    file, root = Path(file), Path(root)
    if root.exists() and not (root.is_dir() and not any(root.iterdir())):
        raise UsageError(f"{root} is there already.", "Name a new folder.")
    with disk_errors(), scratch_beside(root) as scratch:
        listed = _unpack_files(file, scratch, progress)
        for number, record in enumerate(listed["collections"]):
            saved = SavedCollection(**record)
            publish_saved(GraphFolder.open(scratch).collection(saved.name), saved)
            progress(Progress("Checking", number + 1, len(listed["collections"])))
        put_in_place(scratch, root)
    return _describe_backup(file, root, listed)


def _describe_backup(file: Path, root: Path, listed: Mapping[str, Any]) -> Backup:
    saved = tuple(SavedCollection(**record) for record in listed["collections"])
    size = sum(size for size, _ in listed["files"].values())
    return Backup(str(file), str(root), listed["made"], saved, len(listed["files"]), size)


def _unpack_files(file: Path, target: Path, progress: OnProgress) -> dict[str, Any]:
    """Write listed backup files below the folder; return the list."""

    def write_content(name: str, content: Iterator[bytes]) -> None:
        path = target / name
        make_folder(path.parent, durable=False)
        with new_file(path) as out:
            out.writelines(content)

    return _read_archive(file, write_content, count_progress(progress, "Restoring kB"))


def _verify_archive(file: Path, progress: OnProgress) -> None:
    """Read the written backup and compare files with the list."""

    def skip(name: str, content: Iterator[bytes]) -> None:
        for _ in content:
            pass

    _read_archive(file, skip, count_progress(progress, "Verifying kB"))


def _read_archive(
    file: Path,
    keep: Callable[[str, Iterator[bytes]], None],
    progress: CountProgress,
) -> dict[str, Any]:
    """Read all files of a backup, with progress in kB; return the list.

    Raises ``StoreError`` if the files differ from the list."""
    sums_by_name: dict[str, list[Any]] = {}
    listed: dict[str, Any] | None = None
    total = file.stat().st_size // 1000 if file.is_file() else 0
    try:
        with tarfile.open(file, "r:") as archive:
            for member in archive:
                if member.name == LIST:
                    listed = json.loads(_member_content(archive, member).read())
                    break
                _check_name(member)
                summed = sha256()
                keep(member.name, _read_blocks(_member_content(archive, member), summed.update))
                sums_by_name[member.name] = [member.size, summed.hexdigest()]
                progress(archive.offset // 1000, total)
    except FileNotFoundError:
        raise UsageError(f"There is no file {file}.") from None
    except (tarfile.TarError, ValueError, EOFError, zlib.error) as error:
        raise _not_whole(file) from error
    if listed is None or not isinstance(listed.get("format"), int):
        raise _not_whole(file)
    if listed["format"] > FORMAT:
        raise FormatError(
            f"{file} was written by a newer tgraph.", "Upgrade with `pip install -U tgraph-rag`."
        )
    if listed["files"] != sums_by_name:
        wrong = sorted(
            name
            for name in {*listed["files"], *sums_by_name}
            if listed["files"].get(name) != sums_by_name.get(name)
        )
        raise StoreError(f"The backup {file} is damaged at {wrong[0]}.", "Use another one.")
    progress(total, total)
    return listed


def _not_whole(file: Path) -> StoreError:
    return StoreError(f"{file} is not a whole backup of tgraph's.", "Use another one.")


def _member_content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> BinaryIO:
    content = archive.extractfile(member)
    if content is None:
        raise tarfile.TarError(f"{member.name} is no file")
    return content  # type: ignore[return-value]


def _read_blocks(content: BinaryIO, told: Callable[[bytes], None]) -> Iterator[bytes]:
    while block := content.read(_BLOCK):
        told(block)
        yield block


def _check_name(member: tarfile.TarInfo) -> None:
    """Reject archive members that would be written outside a graph folder."""
    parts = PurePosixPath(member.name).parts
    inside = member.name in (MARKER, SETTINGS) or parts[:1] == ("collections",)
    if not member.isreg() or not inside or ".." in parts:
        raise tarfile.TarError(f"{member.name} is not part of a graph")
