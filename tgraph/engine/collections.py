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
from tgraph.errors import StoreError, UsageError
from tgraph.explain.trace.documents import list_documents
from tgraph.store.files import allowed_in, disk_errors, exclusive, make_folder, sync_folder
from tgraph.store.folder import CollectionFolder, GraphFolder
from tgraph.store.journal import is_free
from tgraph.store.snapshot import Snapshot, pinned

_DELETED = "deleted-"
_PATIENCE = 2.0
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """A collection: its standing documents, the entries in the chain of its record, the generation
    of its knowledge, and the bytes of its folder."""

    name: str
    documents: int
    entries: int
    generation: int
    bytes: int


def list_collections(root: str | Path) -> list[CollectionSummary]:
    """The collections of the graph's folder by name, each as it was last published."""
    graph = GraphFolder.open(Path(root))
    return [_summary(graph.collection(name)) for name in graph.collections()]


def _summary(folder: CollectionFolder) -> CollectionSummary:
    size = _size(folder.path)
    snapshot = Snapshot.open(folder)
    if snapshot is None:
        return CollectionSummary(folder.name, 0, 0, 0, size)
    with closing(snapshot):
        documents = {each.document for each in list_documents(snapshot.store) if each.standing}
        pointer = snapshot.pointer
    return CollectionSummary(
        folder.name, len(documents), pointer.sequence, pointer.generation, size
    )


def _size(path: Path) -> int:
    """The bytes below the path; a file that the store and a snapshot share counts once."""
    found = (each.stat() for each in path.rglob("*") if each.is_file())
    return sum({(each.st_dev, each.st_ino): each.st_size for each in found}.values())


def create_collection(root: str | Path, name: str) -> None:
    """Make an empty collection, and the graph's folder where there is none. ``UsageError`` where
    there is one of that name."""
    graph = GraphFolder.create(Path(root))
    graph.new_collection(name)
    graph.collection(name, create=True)


def copy_collection(
    root: str | Path,
    name: str,
    copy: str,
    *,
    progress: OnProgress = silent,
    message: OnMessage = mute,
) -> SavedCollection:
    """Make a collection that holds what the other one holds, its record included, while others work
    there: what was published, with every session that had ended.

    Each file is compared with its sum on the way, and the integrity of the copy is checked. From
    there on the two have nothing to do with each other. ``UsageError`` where there is a collection
    of that name or the other holds nothing, ``StoreError`` where something is damaged or is erased
    meanwhile, ``VerificationError`` where the record is not intact.
    """
    graph = GraphFolder.open(Path(root))
    source, target = graph.collection(name), graph.new_collection(copy)
    with disk_errors(), scratch_beside(target.path) as scratch:
        with published(source, graph.path, message) as found:
            if found is None:
                raise UsageError(f"The collection {name!r} holds nothing yet.")
            saved, files = found
            for number, file in enumerate(files):
                checked(file, partial(_write, _below(scratch, file, source)))
                progress(Progress("Copying", number + 1, len(files)))
        publish_saved(CollectionFolder(scratch), replace(saved, name=copy))
        scratch.chmod(allowed_in(target.path.parent, 0o777))
        put_in_place(scratch, target.path)
    return replace(saved, name=copy)


def _below(scratch: Path, file: SavedFile, source: CollectionFolder) -> Path:
    return scratch / Path(file.name).relative_to(Path("collections") / source.name)


def _write(path: Path, reader: SummingReader, size: int) -> None:
    make_folder(path.parent, durable=False)
    with path.open("xb") as out:
        while block := reader.read(_BLOCK):
            out.write(block)


def rename_collection(root: str | Path, name: str, new: str) -> None:
    """Give a collection another name. ``StoreError`` while somebody is at work in it."""
    graph = GraphFolder.open(Path(root))
    source, target = graph.collection(name), graph.new_collection(new)
    with disk_errors(), _alone(source):
        source.path.rename(target.path)
        sync_folder(target.path.parent)


def delete_collection(root: str | Path, name: str) -> None:
    """Delete a collection with its documents and all of its record, for good. ``StoreError`` while
    somebody is at work in it."""
    graph = GraphFolder.open(Path(root))
    source = graph.collection(name)
    base = source.path.parent
    gone = base / f".{name}.{_DELETED}{secrets.token_hex(4)}"
    with disk_errors():
        with _alone(source):
            source.path.rename(gone)
            sync_folder(base)
        for left in base.glob(f".*.{_DELETED}*"):  # this one, and those of processes that died
            shutil.rmtree(left, ignore_errors=True)
        sync_folder(base)
    if gone.exists():
        raise StoreError(f"{gone} could not be deleted.", "Delete this folder by hand.")


@contextmanager
def _alone(folder: CollectionFolder) -> Iterator[None]:
    """Nobody else indexes, writes, asks or reads; ``StoreError`` where somebody does."""
    with (
        exclusive(folder.index_lock, timeout=_PATIENCE),
        exclusive(folder.write_lock, timeout=_PATIENCE),
    ):
        journals = folder.journals.glob("*.journal") if folder.journals.is_dir() else ()
        asked = [path for path in journals if not is_free(path)]
        if asked or pinned(folder):
            raise StoreError(
                f"The collection {folder.name!r} is in use: somebody asks or reads there.",
                "Try again when they have finished.",
            )
        yield
