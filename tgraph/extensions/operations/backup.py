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
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from pydantic import BaseModel, Field, StrictInt, ValidationError

from tgraph.engine.checks import PATIENCE
from tgraph.engine.graph import KnowledgeGraph
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
from tgraph.engine.settings_file import keep_harmless_settings
from tgraph.errors import (
    FormatError,
    StoreError,
    UsageError,
)
from tgraph.extensions.operations.derived_renewal import renew_derived
from tgraph.models.base import current_time
from tgraph.settings import load_settings
from tgraph.store.files import (
    disk_errors,
    make_folder,
    move_file,
    new_file,
    sweep_files,
    temporary_file,
)
from tgraph.store.folder import MARKER, SETTINGS, GraphFolder
from tgraph.version import __version__
from tgraph.vocabulary import collection_iri

LIST = "backup.json"
FORMAT = 1
_BLOCK = 1 << 20
_LARGEST_READ = 64 << 20
_MOST_FILES = 5_000_000
_LIST_SIZE, _ENTRY_SIZE = 1_000_000, 200
"""Bytes of the list of files: of what is said of all of them, and of each beside its name."""
_SAVED_FOLDERS = ("store", "vectors", "librarian", "journals")


class _BackupFormat(BaseModel):
    """The format number of a backup's list, which lists of newer versions have too."""

    format: StrictInt = Field(ge=1)


class _BackupList(_BackupFormat):
    """The list at the end of a backup."""

    made: datetime
    collections: tuple[SavedCollection, ...] = Field(min_length=1)
    files: dict[str, tuple[StrictInt, str]]


@dataclass(frozen=True, slots=True)
class Backup:
    """A created or restored backup: file, graph folder, creation time, contents, and content
    size in bytes.

    ``withheld`` has the settings of the backup, without secrets, that were not restored:
    addresses, keys, and files that would be read."""

    file: str
    root: str
    made: str
    collections: tuple[SavedCollection, ...]
    files: int
    bytes: int
    withheld: Mapping[str, Any] = field(default_factory=dict)


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
            _write_archive(out, items, saved, clock(), progress)
            out.flush()
            listed = _verify_archive(Path(out.name), progress)
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
) -> None:
    """Write items, followed by the item list."""
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


def _add_file(archive: tarfile.TarFile, name: str, reader: SummingReader, size: int) -> None:
    archive.addfile(_tar_member(name, size), reader)


def _tar_member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


# --- reading one ---


def restore_backup(
    file: str | Path,
    root: str | Path,
    *,
    accept_settings: bool = False,
    progress: OnProgress = ignore_progress,
    message: OnMessage = ignore_message,
) -> Backup:
    """Restore a backup to a new folder, complete and checked, or not at all; what is derived is
    made anew or compared.

    Every file is checked by its sum, and each collection's integrity up to the head of its
    chain. Settings that name addresses, keys or files are restored with ``accept_settings``
    alone, for the next key would be sent to an address of the backup. Raises ``UsageError`` if
    the folder is not empty, ``StoreError`` if the file is no backup or is damaged,
    ``VerificationError`` if the record is not intact."""
    file, root = Path(file), Path(root)
    if root.exists() and not (root.is_dir() and not any(root.iterdir())):
        raise UsageError(f"{root} is there already.", "Name a new folder.")
    with disk_errors(), scratch_beside(root) as scratch:
        listed = _unpack_files(file, scratch, progress)
        withheld = {} if accept_settings else keep_harmless_settings(scratch / SETTINGS)
        for number, saved in enumerate(listed.collections):
            publish_saved(GraphFolder.open(scratch).collection(saved.name), saved)
            _renew_collection(scratch, saved.name, message)
            progress(Progress("Checking", number + 1, len(listed.collections)))
        put_in_place(scratch, root)
    return replace(_describe_backup(file, root, listed), withheld=withheld)


def _renew_collection(root: Path, name: str, message: OnMessage) -> None:
    settings = load_settings(root, {"collection": name})
    unsigned = settings.integrity.model_copy(update={"signing_key": None})
    changed = {"integrity": unsigned, "prompts": None}  # no entry is added, no model is asked
    settings = settings.model_copy(update=changed)
    with KnowledgeGraph(GraphFolder.open(root), settings, message=message) as graph:
        ledger = graph.opened.ledger
        with ledger.open(timeout=PATIENCE) as (store, _):
            renew_derived(graph.opened, store)
            ledger.publish(store)


def _describe_backup(file: Path, root: Path, listed: _BackupList) -> Backup:
    size = sum(size for size, _ in listed.files.values())
    made = listed.made.isoformat()
    return Backup(str(file), str(root), made, listed.collections, len(listed.files), size)


def _unpack_files(file: Path, target: Path, progress: OnProgress) -> _BackupList:
    """Write listed backup files below the folder; return the list."""

    def write_content(name: str, content: Iterator[bytes]) -> None:
        path = target / name
        make_folder(path.parent, durable=False)
        with new_file(path) as out:
            out.writelines(content)

    return _read_archive(file, write_content, count_progress(progress, "Restoring kB"))


def _verify_archive(file: Path, progress: OnProgress) -> _BackupList:
    """Read the written backup and compare files with the list; return the list."""

    def skip(name: str, content: Iterator[bytes]) -> None:
        for _ in content:
            pass

    return _read_archive(file, skip, count_progress(progress, "Verifying kB"))


def _read_archive(
    file: Path,
    keep: Callable[[str, Iterator[bytes]], None],
    progress: CountProgress,
) -> _BackupList:
    """Read all files of a backup, with progress in kB; return the list.

    Raises ``StoreError`` if the files differ from the list."""
    sums_by_name: dict[str, tuple[int, str]] = {}
    data = b""
    total = file.stat().st_size // 1000 if file.is_file() else 0
    try:
        with (
            _BoundedReads(file, "rb") as source,
            tarfile.open(fileobj=source, mode="r:") as archive,
        ):
            for member in archive:
                archive.members = []  # type: ignore[attr-defined]  # each takes a kilobyte
                if member.name == LIST:
                    data = _read_list(archive, member, sums_by_name)
                    break
                _check_member(member, file, len(sums_by_name))
                summed = sha256()
                keep(member.name, _read_blocks(_member_content(archive, member), summed.update))
                sums_by_name[member.name] = member.size, summed.hexdigest()
                progress(archive.offset // 1000, total)
    except FileNotFoundError:
        raise UsageError(f"There is no file {file}.") from None
    except (tarfile.TarError, ValueError, EOFError, RecursionError, zlib.error) as error:
        raise _not_whole(file) from error
    listed = _parse_list(file, data)
    if listed.files != sums_by_name:
        wrong = sorted(
            name
            for name in {*listed.files, *sums_by_name}
            if listed.files.get(name) != sums_by_name.get(name)
        )
        raise StoreError(f"The backup {file} is damaged at {wrong[0]}.", "Use another one.")
    progress(total, total)
    return listed


def _parse_list(file: Path, data: bytes) -> _BackupList:
    """Return the list of a backup, a claim of whoever wrote the file; every listed file belongs
    to a listed collection, whose record is checked."""
    try:
        if _BackupFormat.model_validate_json(data).format > FORMAT:
            raise FormatError(
                f"{file} was written by a newer tgraph.",
                "Upgrade with `pip install -U tgraph-rag`.",
            )
        listed = _BackupList.model_validate_json(data)
    except ValidationError as error:
        raise _not_whole(file) from error
    names = [collection.name for collection in listed.collections]
    owners = {PurePosixPath(name).parts[1] for name in listed.files if "/" in name}
    catalogues = all(c.catalogue.startswith(collection_iri("")) for c in listed.collections)
    if sorted(names) != sorted(owners) or not catalogues:
        raise _not_whole(file)
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


class _BoundedReads(io.FileIO):
    """A file of which nothing large is read at once: headers of an archive state any size."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= _LARGEST_READ:
            raise tarfile.TarError(f"more than {_LARGEST_READ:,} bytes belong to a header")
        data = bytearray()
        while len(data) < size and (block := super().read(size - len(data))):
            data += block
        return bytes(data)


def _read_list(
    archive: tarfile.TarFile, member: tarfile.TarInfo, sums_by_name: Mapping[str, Any]
) -> bytes:
    """Return the list of files, which is as long as the files of the archive make it."""
    allowed = _LIST_SIZE + sum(_ENTRY_SIZE + 6 * len(name) for name in sums_by_name)
    if member.size > allowed or not _is_plain(member):
        raise tarfile.TarError(f"{LIST} is longer than a list of the files")
    return _member_content(archive, member).read()


def _is_plain(member: tarfile.TarInfo) -> bool:
    """Return whether a member's bytes lie in the archive as they are."""
    return member.isreg() and not member.issparse()


def _check_member(member: tarfile.TarInfo, file: Path, number: int) -> None:
    """Reject archive members that would be written outside a graph folder, or that unpack to more
    than the archive holds."""
    if member.issparse():
        raise StoreError(
            f"{file} has the sparse file {member.name}, which would take {member.size:,} bytes:"
            f" a backup holds at most its own {file.stat().st_size:,}.",
            "Use a backup that tgraph wrote.",
        )
    if number >= _MOST_FILES:
        raise StoreError(
            f"{file} has more than {_MOST_FILES:,} files, the limit of a backup.",
            "Use a backup that tgraph wrote.",
        )
    parts = PurePosixPath(member.name).parts
    inside = member.name in (MARKER, SETTINGS) or (
        parts[:1] == ("collections",) and len(parts) > 3 and parts[2] in _SAVED_FOLDERS
    )
    waiting = parts[2:3] == ("journals",) and not member.name.endswith(".damaged")
    if not _is_plain(member) or not inside or waiting or ".." in parts:
        raise tarfile.TarError(f"{member.name} is not part of a graph")
