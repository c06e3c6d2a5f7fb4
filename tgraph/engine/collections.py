"""The collections of a graph's folder: listed, made, copied, renamed, deleted.

What is copied or made is there whole or not at all, and what is renamed or deleted goes in one
step, with nobody at work in it.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tgraph.engine.progress import OnMessage, OnProgress, Progress, ignore_message, ignore_progress
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
from tgraph.errors import StoreError, UsageError
from tgraph.explain.trace.documents import list_documents
from tgraph.store.files import allowed_in, disk_errors, hold_lock, make_folder, sync_folder
from tgraph.store.folder import CollectionFolder, GraphFolder
from tgraph.store.journal import is_free
from tgraph.store.snapshot import Snapshot, list_pinned_snapshots

_DELETED = "deleted-"
_PATIENCE = 2.0
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """A collection summary: standing documents, chain entries, knowledge generation, and folder
    size in bytes."""

    name: str
    documents: int
    entries: int
    generation: int
    bytes: int


def list_collections(root: str | Path) -> list[CollectionSummary]:
    """Return summaries of the collections as last published, sorted by name."""
    graph = GraphFolder.open(Path(root))
    return [_summarise_collection(graph.collection(name)) for name in graph.collections()]


def _summarise_collection(folder: CollectionFolder) -> CollectionSummary:
    size = _folder_size(folder.path)
    snapshot = Snapshot.open(folder)
    if snapshot is None:
        return CollectionSummary(folder.name, 0, 0, 0, size)
    with closing(snapshot):
        documents = {
            document.document for document in list_documents(snapshot.store) if document.standing
        }
        pointer = snapshot.pointer
    return CollectionSummary(
        folder.name, len(documents), pointer.sequence, pointer.generation, size
    )


def _folder_size(path: Path) -> int:
    """Return the bytes below the path; files shared by store and snapshot count once."""
    stats = (entry.stat() for entry in path.rglob("*") if entry.is_file())
    return sum({(entry.st_dev, entry.st_ino): entry.st_size for entry in stats}.values())


def create_collection(root: str | Path, name: str) -> None:
    """Create an empty collection, and the graph's folder if missing.

    Raises ``UsageError`` if the name is taken."""
    graph = GraphFolder.create(Path(root))
    graph.new_collection(name)
    graph.collection(name, create=True)


def copy_collection(
    root: str | Path,
    name: str,
    copy: str,
    *,
    progress: OnProgress = ignore_progress,
    message: OnMessage = ignore_message,
) -> SavedCollection:
    """Copy a collection, including its record, during normal work: the published state, with
    every ended session.

    Each file is compared with its checksum, and the integrity of the copy is checked.
    Afterwards both collections are independent. Raises ``UsageError`` if the new name is taken
    or the source is empty, ``StoreError`` if something is damaged or is erased meanwhile,
    ``VerificationError`` if the record is not intact."""
    graph = GraphFolder.open(Path(root))
    source, target = graph.collection(name), graph.new_collection(copy)
    with disk_errors(), scratch_beside(target.path) as scratch:
        with open_published(source, graph.path, message) as contents:
            if contents is None:
                raise UsageError(f"The collection {name!r} is empty.")
            saved = contents.saved
            for number, file in enumerate(contents.files):
                check_file(file, partial(_write_file, _scratch_path(scratch, file, source)))
                progress(Progress("Copying", number + 1, len(contents.files)))
        publish_saved(CollectionFolder(scratch), replace(saved, name=copy))
        scratch.chmod(allowed_in(target.path.parent, 0o777))
        put_in_place(scratch, target.path)
    return replace(saved, name=copy)


def _scratch_path(scratch: Path, file: SavedFile, source: CollectionFolder) -> Path:
    return scratch / Path(file.name).relative_to(Path("collections") / source.name)


def _write_file(path: Path, reader: SummingReader, size: int) -> None:
    make_folder(path.parent, durable=False)
    with path.open("xb") as out:
        while block := reader.read(_BLOCK):
            out.write(block)


def rename_collection(root: str | Path, name: str, new: str) -> None:
    """Rename a collection.

    Raises ``StoreError`` while somebody is at work in the collection."""
    graph = GraphFolder.open(Path(root))
    source, target = graph.collection(name), graph.new_collection(new)
    with disk_errors(), _hold_exclusively(source):
        source.path.rename(target.path)
        sync_folder(target.path.parent)


def delete_collection(root: str | Path, name: str) -> None:
    """Delete a collection permanently, with documents and record.

    Raises ``StoreError`` while somebody is at work in the collection."""
    graph = GraphFolder.open(Path(root))
    source = graph.collection(name)
    base = source.path.parent
    gone = base / f".{name}.{_DELETED}{secrets.token_hex(4)}"
    with disk_errors():
        with _hold_exclusively(source):
            source.path.rename(gone)
            sync_folder(base)
        for leftover in base.glob(f".*.{_DELETED}*"):  # this one, and those of processes that died
            shutil.rmtree(leftover, ignore_errors=True)
        sync_folder(base)
    if gone.exists():
        raise StoreError(f"{gone} could not be deleted.", "Delete this folder by hand.")


@contextmanager
def _hold_exclusively(folder: CollectionFolder) -> Iterator[None]:
    """Nobody else indexes, writes, asks or reads; ``StoreError`` where somebody does."""
    with (
        hold_lock(folder.index_lock, timeout=_PATIENCE),
        hold_lock(folder.write_lock, timeout=_PATIENCE),
    ):
        journals = folder.journals.glob("*.journal") if folder.journals.is_dir() else ()
        open_journals = [path for path in journals if not is_free(path)]
        if open_journals or list_pinned_snapshots(folder):
            raise StoreError(
                f"The collection {folder.name!r} is in use by another process.",
                "Try again when the other process has finished.",
            )
        yield
