"""The layout of a graph folder and of each collection in it.

graph.json                   what this folder is, and the format of its stores
tgraph.toml                  settings, where somebody wrote them
collections/NAME/
    store/                   Oxigraph; opened only by the holder of the write lock
    vectors/                 vector indexes of the newest knowledge, and what lies ready beside them
    snapshots/N/             checkpoints of store and vectors, for readers; N.pin is their lock
    current.json             the pointer: which snapshot is published
    journals/                sessions that wait to be folded in; *.damaged are kept for inspection
    staging/RUN/             an index run's changes until they are in the store
    librarian/               documents, texts, answers, calls, batches
    cache/                   replies and extractions that need not be paid for twice
    replica.json             what a replica follows, and how far it is
    shipped.json             where the last shipment ended
    write.lock, index.lock   held by the writer, and by the index run; they name its process
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tgraph.errors import FormatError, NoCollectionError, NotAGraphError, UsageError
from tgraph.store.files import disk_errors, make_folder, read_json, sweep, write_json

FORMAT = 1
"""The format that this tgraph writes; it reads this and every older one."""

MARKER = "graph.json"
_NAME = re.compile(r"[\w][\w.@+-]{0,99}", re.UNICODE)


class CollectionFolder:
    """The paths of one collection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.store = path / "store"
        self.vectors = path / "vectors"
        self.snapshots = path / "snapshots"
        self.pointer = path / "current.json"
        self.journals = path / "journals"
        self.staging = path / "staging"
        self.librarian = path / "librarian"
        self.cache = path / "cache"
        self.write_lock = path / "write.lock"
        self.index_lock = path / "index.lock"
        self.replica = path / "replica.json"


@dataclass(frozen=True, slots=True)
class GraphFolder:
    """A folder that holds a graph of a format that this tgraph can read."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> GraphFolder:
        """The graph at the path, made where there is none; the folder may hold other files."""
        if path.exists() and not path.is_dir():
            raise NotAGraphError(f"{path} is a file.", "Name a folder.")
        with disk_errors():
            make_folder(path, private=True)
            sweep(path)
            if not (path / MARKER).exists():
                write_json(path / MARKER, {"format": FORMAT, "kind": "tgraph graph"})
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> GraphFolder:
        """The graph at the path; ``NotAGraphError`` if there is none, ``FormatError`` if newer."""
        marker = read_json(path / MARKER)
        if marker is None or not isinstance(marker.get("format"), int):
            problem = "is not a tgraph graph" if path.exists() else "does not exist"
            raise NotAGraphError(
                f"{path} {problem}.",
                "Make one with `tgraph index PATH... --root FOLDER`, or name another folder.",
            )
        if marker["format"] > FORMAT:
            raise FormatError(
                f"{path} was written by a newer tgraph (format {marker['format']}, "
                f"this one reads up to {FORMAT}).",
                "Upgrade with `pip install -U tgraph-rag`.",
            )
        return cls(path)

    @classmethod
    def find(cls, start: Path) -> GraphFolder:
        """The graph in the folder or its nearest parent that holds one."""
        for folder in (start, *start.parents):
            if os.access(folder / MARKER, os.R_OK):
                return cls.open(folder)
        raise NotAGraphError(
            f"There is no tgraph graph in {start} or above it.",
            "Make one with `tgraph index PATH...`, or name its folder.",
        )

    def collection(self, name: str, *, create: bool = False) -> CollectionFolder:
        """The collection's folder; ``UsageError`` for a bad name, ``NoCollectionError`` where there
        is none."""
        folder = self._folder(name)
        if create:
            with disk_errors():
                make_folder(folder.path.parent, private=True)
                make_folder(folder.path)
        elif not folder.path.is_dir():
            known = ", ".join(self.collections()) or "none yet"
            raise NoCollectionError(
                f"There is no collection {name!r} in {self.path} (there are: {known}).",
                "Make it with `tgraph index PATH... -C NAME`.",
            )
        return folder

    def new_collection(self, name: str) -> CollectionFolder:
        """The folder of a collection that is still to be made; ``UsageError`` for a bad name, and
        where there is one of it."""
        folder = self._folder(name)
        if folder.path.exists():
            raise UsageError(
                f"There is a collection {name!r} already in {self.path}.", "Use another name."
            )
        return folder

    def _folder(self, name: str) -> CollectionFolder:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} can't be the name of a collection.",
                "Use letters, digits and . _ - @ +, at most 100 of them, the first a letter, a "
                "digit or _.",
            )
        return CollectionFolder(self.path / "collections" / name)

    def collections(self) -> Iterator[str]:
        """The names of the collections, sorted."""
        base = self.path / "collections"
        if base.is_dir():
            names = (entry.name for entry in base.iterdir() if entry.is_dir())
            yield from sorted(name for name in names if _NAME.fullmatch(name))
