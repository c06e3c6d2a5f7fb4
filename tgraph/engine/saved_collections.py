"""Published collection files, copied elsewhere and published there."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from tgraph.engine.checks import PATIENCE
from tgraph.engine.checks.integrity import check_snapshot
from tgraph.engine.progress import OnMessage
from tgraph.errors import DamagedStoreError, StoreError, UsageError, VerificationError
from tgraph.explain.integrity.check import Integrity, check_integrity
from tgraph.librarian import Librarian
from tgraph.models.base import current_time
from tgraph.record.chain import Head
from tgraph.record.ledger import Ledger
from tgraph.settings import load_settings
from tgraph.store.files import FileLock, sync_folder
from tgraph.store.folder import CollectionFolder
from tgraph.store.snapshot import Snapshot
from tgraph.store.sums import sums_of
from tgraph.vocabulary import collection_iri

_BLOCK = 1 << 20
_LOCK = ".restoring"


@dataclass(frozen=True, slots=True)
class SavedCollection:
    """A collection within a backup: knowledge generation and chain end."""

    name: str
    catalogue: str
    generation: int
    sequence: int
    head: str


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A graph file: name below the graph's folder, and checksums of its content."""

    name: str
    path: Path
    sum: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class PublishedCollection:
    """A collection as published, with the files of that state."""

    saved: SavedCollection
    files: list[SavedFile]
    snapshot: Snapshot
    librarian: Librarian

    def check(self) -> None:
        """Make the check that restoring the files makes.

        Raises ``VerificationError`` if the record is not intact."""
        saved = self.saved
        head = Head(saved.sequence, saved.head)
        _require_intact(
            check_integrity(self.snapshot.store, self.librarian, saved.catalogue, head),
            f"The record of the collection {saved.name} is not intact, so that a backup of it could"
            " not be restored",
            "`tgraph audit integrity` names every problem; mend them, or keep an older backup.",
        )


@contextmanager
def open_published(
    folder: CollectionFolder, root: Path, message: OnMessage
) -> Iterator[PublishedCollection | None]:
    """Open the published state of a collection, with every ended session, and its files.

    The files stay until the end; None is returned for an empty collection. Raises
    ``StoreError`` if something is erased meanwhile."""
    before = {key for key, _ in Librarian(folder.librarian).files()}
    settings = load_settings(root, {"collection": folder.name})
    catalogue = collection_iri(settings.explain_collection)
    ledger = Ledger(folder, catalogue, current_time, settings.integrity.signing_key)
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
        place = pointer.generation, pointer.sequence, pointer.head
        saved = SavedCollection(folder.name, catalogue, *place)
        yield PublishedCollection(saved, files, snapshot, ledger.librarian)


def _files_of(folder: CollectionFolder, snapshot: Snapshot) -> Iterator[SavedFile]:
    """Yield files of a published collection."""
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


def _erased_meanwhile() -> StoreError:
    return StoreError("A document was erased from the graph meanwhile.", "Begin again.")


def check_file(item: SavedFile, take: Callable[[SummingReader, int], object]) -> tuple[int, str]:
    """Have ``take`` read the whole file, given reader and size; return size and checksum.

    Raises ``StoreError`` if the file differs from its checksums, or is gone."""
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
            f"The librarian's copy of {item.key} is damaged ({item.path}), so the collection is"
            " not copied.",
            "Restore the file from an older backup, or index the document again.",
        )
    return size, reader.sum.hexdigest()


def _content_of(item: SavedFile) -> Any:
    """Return a decompressor for compressed librarian content; None for other files."""
    return zlib.decompressobj(31) if item.key and item.path.suffix == ".gz" else None


class SummingReader(io.RawIOBase):
    """A reader computing checksums of a file and its decompressed content."""

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
                waiting = data
                while waiting:
                    self._content.update(self._unpack.decompress(waiting, _BLOCK))
                    waiting = self._unpack.unconsumed_tail
            except zlib.error:
                self._broken = True
        return data

    def content_sum(self) -> str:
        return "" if self._broken else self._content.hexdigest()


@contextmanager
def scratch_beside(root: Path) -> Iterator[Path]:
    """Create a scratch folder beside the new folder; delete scratch folders of dead processes."""
    parent = root.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"{root} can't be made: the folder above it doesn't exist.")
    prefix = f".{root.name}.restoring-"
    for stale_lock in parent.glob(f"{prefix}*/{_LOCK}"):
        if lock := FileLock.try_acquire(stale_lock, create=False):
            shutil.rmtree(stale_lock.parent, ignore_errors=True)
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
    """Rename a finished folder from ``scratch_beside`` to its final name, after syncing to
    disk."""
    (scratch / _LOCK).unlink()
    os.sync()
    scratch.rename(folder)
    sync_folder(folder.absolute().parent)


def publish_saved(folder: CollectionFolder, saved: SavedCollection) -> None:
    """Publish a collection's files in their new folder; check the published state against
    ``saved``.

    Raises ``VerificationError`` if the record is not intact."""
    ledger = Ledger(folder, saved.catalogue, current_time)
    with ledger.open(timeout=PATIENCE) as (store, _):
        snapshot = Snapshot.open(folder)
        if snapshot is None:
            raise StoreError(f"The saved collection {saved.name} holds nothing.")
        with closing(snapshot):
            head = saved.head if saved.sequence else None
            integrity = check_snapshot(store, snapshot, ledger.librarian, saved.catalogue, head)
    _require_intact(
        integrity,
        f"The saved record of the collection {saved.name} is not intact",
        "Check the original with `tgraph audit integrity`, or use another backup.",
    )


def _require_intact(integrity: Integrity, problem: str, remedy: str) -> None:
    if not integrity.ok:
        first = integrity.problems[0]
        raise VerificationError(
            f"{problem} ({len(integrity.problems):,} problems; the first: {first.kind} "
            f"{first.what} {first.subject}).",
            remedy,
        )
