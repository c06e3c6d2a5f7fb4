"""Backups: a graph's folder in one file, taken while others work, and a folder made of it again.

A backup is a tar file with what is truth, and the vectors, of each collection as it was last
published: the checkpoint of the store, the librarian's contents, and journals kept for inspection.
Its last member, ``backup.json``, has the SHA-256 of every other; a file without it is no backup.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from tgraph.engine.checks import PATIENCE, check
from tgraph.engine.open_collection import now
from tgraph.engine.progress import OnMessage, OnProgress, Progress, mute, silent
from tgraph.errors import (
    DamagedStoreError,
    FormatError,
    StoreError,
    UsageError,
    VerificationError,
)
from tgraph.librarian import Librarian
from tgraph.record.ledger import Ledger
from tgraph.settings import load_settings
from tgraph.store.files import (
    FileLock,
    disk_errors,
    make_folder,
    move,
    new_file,
    sweep,
    sync_folder,
    temporary,
)
from tgraph.store.folder import MARKER, CollectionFolder, GraphFolder
from tgraph.store.snapshot import Snapshot
from tgraph.store.sums import sums_of
from tgraph.version import __version__
from tgraph.vocabulary import collection_iri

LIST = "backup.json"
FORMAT = 1
SETTINGS = "tgraph.toml"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class SavedCollection:
    """A collection of a backup: the generation of its knowledge, and the end of its chain."""

    name: str
    catalogue: str
    generation: int
    sequence: int
    head: str


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


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file of a graph: its name below the graph's folder, and what its content must be."""

    name: str
    path: Path
    sum: str = ""
    key: str = ""


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


@contextmanager
def published(
    folder: CollectionFolder, root: Path, message: OnMessage
) -> Iterator[tuple[SavedCollection, list[SavedFile]] | None]:
    """What is published of the collection, with every session that has ended, and its files, which
    stay until the end; None where it holds nothing. ``StoreError`` where something is erased
    meanwhile."""
    before = {key for key, _ in Librarian(folder.librarian).files()}
    settings = load_settings(root, {"collection": folder.name})
    catalogue = collection_iri(settings.explain_collection)
    ledger = Ledger(folder, catalogue, now, settings.integrity.signing_key)
    if ledger.waiting():
        try:
            ledger.fold(timeout=PATIENCE)
        except StoreError as error:
            message(f"The newest sessions are left out: {error.message}")
    snapshot = Snapshot.open(folder)
    if snapshot is None:
        yield None
        return
    with closing(snapshot):
        pointer = snapshot.pointer
        files = list(_files_of(folder, snapshot))
        if before - {file.key for file in files}:
            raise _erased_meanwhile()
        yield (
            SavedCollection(
                folder.name, catalogue, pointer.generation, pointer.sequence, pointer.head
            ),
            files,
        )


def _shared_files(root: Path) -> Iterator[SavedFile]:
    for name in (MARKER, SETTINGS):
        if (root / name).is_file():
            yield SavedFile(name, root / name)


def _files_of(folder: CollectionFolder, snapshot: Snapshot) -> Iterator[SavedFile]:
    """The files of a collection as it is published."""
    base = f"collections/{folder.name}"
    sums = sums_of(snapshot.path / "store")
    for path in sorted((snapshot.path / "store").iterdir()):
        yield SavedFile(f"{base}/store/{path.name}", path, sums.get(path.name, (0, ""))[1])
    for path in sorted(snapshot.vectors.rglob("*")):
        if path.is_file():
            yield SavedFile(f"{base}/vectors/{path.relative_to(snapshot.vectors).as_posix()}", path)
    for key, path in Librarian(folder.librarian).files():
        yield SavedFile(f"{base}/librarian/{path.parent.name}/{path.name}", path, key=key)
    for path in sorted(folder.journals.glob("*.damaged")):
        yield SavedFile(f"{base}/journals/{path.name}", path)


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


def _erased_meanwhile() -> StoreError:
    return StoreError("Something was erased from the graph meanwhile.", "Begin again.")


def _add(archive: tarfile.TarFile, name: str, reader: SummingReader, size: int) -> None:
    archive.addfile(_member(name, size), reader)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


def checked(item: SavedFile, take: Callable[[SummingReader, int], object]) -> tuple[int, str]:
    """Have ``take`` read the whole file, which is given with its size; the size and the sum.

    ``StoreError`` where it is not what it must be, or is gone.
    """
    try:
        file = item.path.open("rb")
    except FileNotFoundError:
        raise _erased_meanwhile() from None
    with file:
        size = os.fstat(file.fileno()).st_size
        reader = SummingReader(file, _content_of(item))
        take(reader, size)
    if item.sum and reader.sum.hexdigest() != item.sum:
        raise DamagedStoreError(item.path)
    if item.key and reader.content_sum() != item.key:
        raise StoreError(
            f"The librarian's copy of {item.key} is damaged ({item.path}), and would be copied.",
            "Put the file back from an older backup, or index its document again.",
        )
    return size, reader.sum.hexdigest()


def _content_of(item: SavedFile) -> Any:
    """What unpacks a content of the librarian, None where nothing has to be."""
    return zlib.decompressobj(31) if item.key and item.path.suffix == ".gz" else None


class SummingReader(io.RawIOBase):
    """Sums up what is read of a file, and what it is unpacked."""

    def __init__(self, file: BinaryIO, unpack: Any) -> None:
        self.sum = sha256()
        self._content = sha256()
        self._file = file
        self._unpack = unpack
        self._broken = False

    def read(self, size: int | None = -1, /) -> bytes:
        data = self._file.read(-1 if size is None else size)
        self.sum.update(data)
        if self._unpack is None:
            self._content.update(data)
        elif not self._broken:
            try:
                self._content.update(self._unpack.decompress(data))
            except zlib.error:
                self._broken = True
        return data

    def content_sum(self) -> str:
        return "" if self._broken else self._content.hexdigest()


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


_LOCK = ".restoring"


@contextmanager
def scratch_beside(root: Path) -> Iterator[Path]:
    """A folder beside the new one; what processes that died left of theirs is deleted."""
    parent = root.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"{root} can't be made: the folder above it doesn't exist.")
    prefix = f".{root.name}.restoring-"
    for left in parent.glob(f"{prefix}*/{_LOCK}"):
        if lock := FileLock.try_acquire(left, create=False):
            shutil.rmtree(left.parent, ignore_errors=True)
            lock.release()
    scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    lock = FileLock.try_acquire(scratch / _LOCK)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if lock is not None:
            lock.release()


def put_in_place(scratch: Path, folder: Path) -> None:
    """Give a finished folder of ``scratch_beside`` its name, once all in it is durable."""
    (scratch / _LOCK).unlink()
    os.sync()
    scratch.rename(folder)
    sync_folder(folder.absolute().parent)


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


def publish_saved(folder: CollectionFolder, saved: SavedCollection) -> None:
    """Publish a collection's files in their new folder, and check that they are what was saved.
    ``VerificationError`` where the record is not intact."""
    ledger = Ledger(folder, saved.catalogue, now)
    with ledger.open(timeout=PATIENCE) as (store, _):
        snapshot = Snapshot.open(folder)
        if snapshot is None:
            raise StoreError(f"The saved collection {saved.name} holds nothing.")
        with closing(snapshot):
            head = saved.head if saved.sequence else None
            found = check(store, snapshot, ledger.librarian, saved.catalogue, head)
    if not found.ok:
        first = found.problems[0]
        raise VerificationError(
            f"The saved record of the collection {saved.name} is not intact "
            f"({len(found.problems):,} problems; the first: {first.kind} {first.what} "
            f"{first.subject}).",
            "Look at the original with `tgraph audit integrity`, or use another backup.",
        )
