"""Backups: a graph's folder in one file, taken while others work, and a folder made of it again.

A backup is a tar file with what is truth, and the vectors, of each collection as it was last
published: the checkpoint of the store, the librarian's contents, and journals kept for inspection.
Its last member, ``backup.json``, has the SHA-256 of every other; a file without it is no backup.
"""

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

from tgraph.engine.open_collection import now
from tgraph.engine.progress import OnMessage, OnProgress, Progress, mute, silent
from tgraph.engine.saved_collections import (
    SavedCollection,
    SavedFile,
    SummingReader,
    checked,
    publish_saved,
    published,
    put_in_place,
    scratch_beside,
)
from tgraph.errors import (
    FormatError,
    StoreError,
    UsageError,
)
from tgraph.store.files import (
    disk_errors,
    make_folder,
    move,
    new_file,
    sweep,
    temporary,
)
from tgraph.store.folder import MARKER, GraphFolder
from tgraph.version import __version__

LIST = "backup.json"
FORMAT = 1
SETTINGS = "tgraph.toml"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made, or restored: its file, the graph's folder, when it was made, what it
    holds, and the bytes of that."""

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
    clock: Callable[[], datetime] = now,
    progress: OnProgress = silent,
    message: OnMessage = mute,
) -> Backup:
    """Write all collections of the graph into the file, whole or not at all, and read it again.

    Others may index and ask meanwhile: of each collection it holds what was published when it
    began, with every session that had ended. ``UsageError`` where the file is there already;
    ``StoreError`` where something in the graph is damaged, or is erased meanwhile.
    """
    graph = GraphFolder.open(root)
    _check_target(file)
    with ExitStack() as stack, disk_errors():
        saved, items = [], list(_shared_files(root))
        for name in graph.collections():
            found = stack.enter_context(published(graph.collection(name), root, message))
            if found is not None:
                collection, files = found
                saved.append(collection)
                items += files
        if not saved:
            raise UsageError(f"{root} holds nothing yet.", "Run `tgraph index PATH...` first.")
        sweep(file.parent, file.name)
        with temporary(file.parent, file.name) as out:
            os.fchmod(out.fileno(), 0o600)
            listed = _write(out, items, saved, clock(), progress)
            out.flush()
            _verify(Path(out.name), progress)
            _check_target(file)
            move(out, file)
    return _described(file, root, listed)


def _check_target(file: Path) -> None:
    if file.exists():
        raise UsageError(f"{file} is there already.", "Name another file.")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"{file} can't be written: its folder doesn't exist.")


def _shared_files(root: Path) -> Iterator[SavedFile]:
    for name in (MARKER, SETTINGS):
        if (root / name).is_file():
            yield SavedFile(name, root / name)


def _write(
    out: BinaryIO,
    items: list[SavedFile],
    saved: list[SavedCollection],
    made: datetime,
    progress: OnProgress,
) -> dict[str, Any]:
    """Write the items and then the list of them, which is returned."""
    files: dict[str, tuple[int, str]] = {}
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for number, item in enumerate(items):
            files[item.name] = checked(item, partial(_add, archive, item.name))
            progress(Progress("Backing up", number + 1, len(items)))
        listed = {
            "format": FORMAT,
            "tgraph": __version__,
            "made": made.isoformat(),
            "collections": [asdict(each) for each in saved],
            "files": files,
        }
        data = json.dumps(listed, indent=1).encode()
        archive.addfile(_member(LIST, len(data)), io.BytesIO(data))
    return listed


def _add(archive: tarfile.TarFile, name: str, reader: SummingReader, size: int) -> None:
    archive.addfile(_member(name, size), reader)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


# --- reading one ---


def restore(file: str | Path, root: str | Path, *, progress: OnProgress = silent) -> Backup:
    """Make a folder of a backup. It is there when all of it has been checked, or not at all: every
    file by its sum, and each collection's integrity up to the head of its chain.

    ``UsageError`` where the folder holds something, ``StoreError`` where the file is no backup or
    is damaged, ``VerificationError`` where the record in it is not intact.
    """
    file, root = Path(file), Path(root)
    if root.exists() and not (root.is_dir() and not any(root.iterdir())):
        raise UsageError(f"{root} is there already.", "Name a new folder.")
    with disk_errors(), scratch_beside(root) as scratch:
        listed = _unpack(file, scratch, progress)
        for number, each in enumerate(listed["collections"]):
            saved = SavedCollection(**each)
            publish_saved(GraphFolder.open(scratch).collection(saved.name), saved)
            progress(Progress("Checking", number + 1, len(listed["collections"])))
        put_in_place(scratch, root)
    return _described(file, root, listed)


def _described(file: Path, root: Path, listed: Mapping[str, Any]) -> Backup:
    saved = tuple(SavedCollection(**each) for each in listed["collections"])
    size = sum(size for size, _ in listed["files"].values())
    return Backup(str(file), str(root), listed["made"], saved, len(listed["files"]), size)


def _unpack(file: Path, target: Path, progress: OnProgress) -> dict[str, Any]:
    """Write the files of the backup below the folder, each as it is listed; the list."""

    def keep(name: str, content: Iterator[bytes]) -> None:
        path = target / name
        make_folder(path.parent, durable=False)
        with new_file(path) as out:
            out.writelines(content)

    return _read(
        file,
        keep,
        lambda done, total: progress(Progress("Restoring kB", done // 1000, total // 1000)),
    )


def _verify(file: Path, progress: OnProgress) -> None:
    """Read what was written, and compare it with its list."""

    def skip(name: str, content: Iterator[bytes]) -> None:
        for _ in content:
            pass

    _read(
        file,
        skip,
        lambda done, total: progress(Progress("Verifying kB", done // 1000, total // 1000)),
    )


def _read(
    file: Path,
    keep: Callable[[str, Iterator[bytes]], None],
    progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """Go through the files of a backup; its list. ``StoreError`` where they are not as listed."""
    found: dict[str, list[Any]] = {}
    listed: dict[str, Any] | None = None
    total = file.stat().st_size if file.is_file() else 0
    try:
        with tarfile.open(file, "r:") as archive:
            for member in archive:
                if member.name == LIST:
                    listed = json.loads(_content(archive, member).read())
                    break
                _check_name(member)
                summed = sha256()
                keep(member.name, _blocks(_content(archive, member), summed.update))
                found[member.name] = [member.size, summed.hexdigest()]
                progress(archive.offset, total)
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
    if listed["files"] != found:
        wrong = sorted(
            name
            for name in {*listed["files"], *found}
            if listed["files"].get(name) != found.get(name)
        )
        raise StoreError(f"The backup {file} is damaged at {wrong[0]}.", "Use another one.")
    progress(total, total)
    return listed


def _not_whole(file: Path) -> StoreError:
    return StoreError(f"{file} is not a whole backup of tgraph's.", "Use another one.")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> BinaryIO:
    content = archive.extractfile(member)
    if content is None:
        raise tarfile.TarError(f"{member.name} is no file")
    return content  # type: ignore[return-value]


def _blocks(content: BinaryIO, told: Callable[[bytes], None]) -> Iterator[bytes]:
    while block := content.read(_BLOCK):
        told(block)
        yield block


def _check_name(member: tarfile.TarInfo) -> None:
    """A member that would be written elsewhere than into a graph is no part of a backup."""
    parts = PurePosixPath(member.name).parts
    inside = member.name in (MARKER, SETTINGS) or parts[:1] == ("collections",)
    if not member.isreg() or not inside or ".." in parts:
        raise tarfile.TarError(f"{member.name} is not part of a graph")
