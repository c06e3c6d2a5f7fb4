"""Layout of graph folders and collection folders.

graph.json                   folder identity, and store format
tgraph.toml                  settings, if written
collections/NAME/
    store/                   Oxigraph; opened only by the write lock holder
    vectors/                 vector indexes of the newest knowledge, and prepared files beside them
    snapshots/N/             checkpoints of store and vectors, for readers; N.pin is their lock
    current.json             the pointer: the published snapshot
    journals/                sessions awaiting folding; *.damaged are kept for inspection
    staging/RUN/             changes of an index run before entering the store
    librarian/               documents, texts, answers, calls, batches
    cache/                   replies and extractions, kept to avoid paying twice
    replica.json             source and progress of a replica
    shipped.json             end of the last shipment
    write.lock, index.lock   held by the writer, and by the index run; contain the process id"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tgraph.errors import FormatError, NoCollectionError, NotAGraphError, UsageError
from tgraph.store.files import disk_errors, make_folder, read_json, sweep_files, write_json

FORMAT = 1
"""The format that this tgraph writes; it reads this and every older one."""

MARKER, SETTINGS = "graph.json", "tgraph.toml"
_ROOT = 0
_NAME = re.compile(r"[\w][\w.@+-]{0,99}", re.UNICODE)


def check_owner(folder: Path) -> None:
    """Raise ``UsageError`` for a graph that was come across, not named, and is another user's: its
    settings say where questions and keys are sent."""
    paths = [path for name in ("", MARKER, SETTINGS) if (path := folder / name).exists()]
    if {path.stat().st_uid for path in paths} - {os.geteuid(), _ROOT}:
        raise UsageError(
            f"The nearest graph, {folder}, belongs to another user, whose settings may send"
            " questions and keys elsewhere.",
            "Name its folder, if you trust its owner.",
        )


class CollectionFolder:
    """File paths of one collection."""

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
    """A graph folder in a format readable by this tgraph."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> GraphFolder:
        """Open the graph at a path, creating missing graphs; the folder may contain other
        files."""
        if path.exists() and not path.is_dir():
            raise NotAGraphError(f"{path} is a file.", "Name a folder.")
        with disk_errors():
            make_folder(path, private=True)
            sweep_files(path)
            if not (path / MARKER).exists():
                write_json(path / MARKER, {"format": FORMAT, "kind": "tgraph graph"})
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> GraphFolder:
        """Open an existing graph; raise ``NotAGraphError`` for other folders, ``FormatError``
        for newer formats."""
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
        """Open the graph in a folder or its nearest parent; raise ``NotAGraphError`` otherwise."""
        for folder in (start, *start.parents):
            if os.access(folder / MARKER, os.R_OK):
                check_owner(folder)
                return cls.open(folder)
        raise NotAGraphError(
            f"There is no tgraph graph in {start} or above it.",
            "Make one with `tgraph index PATH...`, or name its folder.",
        )

    def collection(self, name: str, *, create: bool = False) -> CollectionFolder:
        """Return a collection folder; raise ``UsageError`` for invalid names,
        ``NoCollectionError`` for missing collections."""
        folder = self._collection_folder(name)
        if create:
            with disk_errors():
                make_folder(folder.path.parent, private=True)
                make_folder(folder.path)
        elif not folder.path.is_dir():
            existing_names = ", ".join(self.collections()) or "none yet"
            raise NoCollectionError(
                f"There is no collection {name!r} in {self.path} (there are: {existing_names}).",
                "Make it with `tgraph index PATH... -C NAME`.",
            )
        return folder

    def new_collection(self, name: str) -> CollectionFolder:
        """Return a folder for a new collection; raise ``UsageError`` for invalid or existing
        names."""
        folder = self._collection_folder(name)
        if folder.path.exists():
            raise UsageError(
                f"There is a collection {name!r} already in {self.path}.", "Use another name."
            )
        return folder

    def _collection_folder(self, name: str) -> CollectionFolder:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} can't be the name of a collection.",
                "Use letters, digits and . _ - @ +, at most 100 of them, the first a letter, a "
                "digit or _.",
            )
        return CollectionFolder(self.path / "collections" / name)

    def collections(self) -> Iterator[str]:
        """Yield collection names, sorted."""
        base = self.path / "collections"
        if base.is_dir():
            names = (entry.name for entry in base.iterdir() if entry.is_dir())
            yield from sorted(name for name in names if _NAME.fullmatch(name))
