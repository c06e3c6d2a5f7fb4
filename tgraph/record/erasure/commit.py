"""Erasure commits: an erasure is prepared aside, made final by a single file, then carried out."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.librarian import Librarian
from tgraph.record.activities import Activity, responsible_agents, state_entity
from tgraph.store.files import (
    disk_errors,
    make_folder,
    read_json,
    sync_folder,
    sync_folders,
    write_json,
)
from tgraph.store.folder import CollectionFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import read_pointer, remove_unpinned
from tgraph.store.statements import Statements, iri_node

_COMMIT = "commit.json"


class PreparedErasure:
    """A prepared erasure; only the write lock's holder may prepare or carry out an erasure.

    ``erasure/`` in the collection's folder holds the new store and the new texts. Once
    ``commit.json`` exists, the next holder of the write lock will carry out the erasure; before
    ``commit.json`` exists, nothing has happened. Each step may be repeated."""

    def __init__(self, folder: CollectionFolder) -> None:
        self.path = folder.path / "erasure"
        self._folder = folder
        self.librarian = Librarian(self.path / "librarian")
        """Where texts are put that take the place of others."""

    def begin(self) -> None:
        """Create an empty erasure folder, deleting leftovers of a process killed before its
        commit."""
        with disk_errors():
            shutil.rmtree(self.path, ignore_errors=True)
            make_folder(self.path)

    @property
    def quads(self) -> Path:
        """The N-Quads file used for building the new store."""
        return self.path / "quads.nq"

    def build_store(self) -> None:
        """Build the new store from ``quads``."""
        store = OxigraphStore.open(self.path / "store")
        try:
            store.load(self.quads)
            store.flush()
        finally:
            store.close()
        with disk_errors():
            self.quads.unlink()
            sync_folder(self.path)

    def commit(self, removed: Iterable[str], sequence: int, *, vectors: bool) -> None:
        """Commit the erasure, making execution certain.

        The texts ``removed`` will leave the librarian, and the vectors too unless ``vectors``
        says the vectors still fit. ``sequence`` is the last entry number of the new chain."""
        self.librarian.sync(self.librarian.keys())
        values = {"removed": sorted(removed), "sequence": sequence, "vectors": vectors}
        with disk_errors():
            for brought_in in (self._folder.staging, self._folder.journals):
                if brought_in.exists():  # what is gone there would bring the text back
                    sync_folder(brought_in)
            write_json(self.path / _COMMIT, values)

    # --- carrying out ---

    def is_committed(self) -> bool:
        return (self.path / _COMMIT).exists()

    def is_left(self) -> bool:
        """Return whether any erasure files exist, committed or uncommitted."""
        return self.path.exists()

    def swap(self) -> None:
        """Move a committed erasure's new store and new texts into place, before opening the
        store."""
        if not self.is_committed():
            return
        with disk_errors():
            if (self.path / "store").exists():
                shutil.rmtree(self._folder.store, ignore_errors=True)
                (self.path / "store").rename(self._folder.store)
                sync_folder(self._folder.path)
            Librarian(self._folder.librarian).adopt(self.librarian)
            if not self._read_commit_values["vectors"]:
                shutil.rmtree(self._folder.vectors, ignore_errors=True)

    def is_published(self) -> bool:
        pointer = read_pointer(self._folder)
        return pointer is not None and pointer.sequence >= int(self._read_commit_values["sequence"])

    def clear(self) -> None:
        """Delete data needed only by the old store, after publishing the new store."""
        librarian = Librarian(self._folder.librarian)
        with disk_errors():
            for key in self._read_commit_values["removed"]:
                librarian.remove(key)
            shutil.rmtree(self._folder.cache, ignore_errors=True)
            for path in self._folder.journals.glob("*.damaged"):
                path.unlink(missing_ok=True)
        remove_unpinned(self._folder)

    def end(self) -> None:
        """Finish an erasure, completed or never committed: remove all erasure files.

        Deletions are synced, so deleted data does not return after a power failure."""
        with disk_errors():
            if self.is_committed():
                sync_folders(self._folder.path)
                (self.path / _COMMIT).unlink()
                sync_folder(self.path)
            shutil.rmtree(self.path, ignore_errors=True)

    @property
    def _read_commit_values(self) -> dict[str, Any]:
        return read_json(self.path / _COMMIT) or {}


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A rewritten bundle or batch: subject IRI, hash before rewriting, hash after rewriting."""

    subject: str
    before: str
    after: str


def erasure_quads(
    uuid: str,
    documents: Sequence[str],
    reason: str,
    person: str | None,
    collection: str,
    times: tuple[datetime, datetime],
    rewritings: Iterable[Rewriting],
    removed: Iterable[str],
) -> list[Quad]:
    """Return the bundle of an erasure of a document in all its readings: hashes of rewritten
    bundles or batches, plus hashes of texts removed from the librarian (design, section 3.7)."""
    out = Statements(NamedNode(v.bundle_iri(uuid)))
    kinds, agents = ("Erasure",), responsible_agents(person)
    subject = Activity(
        v.erasure_iri(uuid), kinds, "Erasure of a document", *times, agents, used=tuple(documents)
    ).state(
        out,
        (v.tg("reason"), reason),
        (v.tg("collection"), collection),
        (v.tg("removedText"), sorted(removed)),
    )
    for number, rewriting in enumerate(rewritings):
        state_entity(
            out,
            v.session_part_iri("rewriting", uuid, number),
            "Rewriting",
            (v.tg("rewrote"), iri_node(rewriting.subject)),
            (v.tg("previousHash"), rewriting.before),
            (v.tg("hash"), rewriting.after),
            by=subject,
        )
    return out.quads
