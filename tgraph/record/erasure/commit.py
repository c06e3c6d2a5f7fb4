"""An erasure on its way to the disk: prepared aside, made final by one file, then carried out."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.librarian import Librarian
from tgraph.record.activities import Activity, responsible, state_entity
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
from tgraph.store.statements import Statements, iri

_COMMIT = "commit.json"


class PreparedErasure:
    """A prepared erasure. Only the holder of the write lock may make or carry out one.

    ``erasure/`` in the collection's folder holds the new store and the new texts. Once
    ``commit.json`` is there the erasure will be carried out, by whoever takes the write lock next;
    before that nothing happened. Each step may be repeated.
    """

    def __init__(self, folder: CollectionFolder) -> None:
        self.path = folder.path / "erasure"
        self._folder = folder
        self.librarian = Librarian(self.path / "librarian")
        """Where texts are put that take the place of others."""

    def begin(self) -> None:
        """An empty place; what a process left there that died before it committed is gone."""
        with disk_errors():
            shutil.rmtree(self.path, ignore_errors=True)
            make_folder(self.path)

    @property
    def quads(self) -> Path:
        """The file of N-Quads that the new store is made of."""
        return self.path / "quads.nq"

    def build_store(self) -> None:
        """Make the new store of ``quads``."""
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
        """From here on it will be carried out: the texts ``removed`` leave the librarian, and the
        vectors too unless they still fit. ``sequence`` is the last entry of the new chain."""
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
        """Whether there is anything of an erasure, committed or not."""
        return self.path.exists()

    def swap(self) -> None:
        """Put the new store and the new texts of a committed erasure in their places, before the
        store is opened."""
        if not self.is_committed():
            return
        with disk_errors():
            if (self.path / "store").exists():
                shutil.rmtree(self._folder.store, ignore_errors=True)
                (self.path / "store").rename(self._folder.store)
                sync_folder(self._folder.path)
            Librarian(self._folder.librarian).adopt(self.librarian)
            if not self._values["vectors"]:
                shutil.rmtree(self._folder.vectors, ignore_errors=True)

    def is_published(self) -> bool:
        pointer = read_pointer(self._folder)
        return pointer is not None and pointer.sequence >= int(self._values["sequence"])

    def clear(self) -> None:
        """Once the new store is published: delete what only the old one needed."""
        librarian = Librarian(self._folder.librarian)
        with disk_errors():
            for key in self._values["removed"]:
                librarian.remove(key)
            shutil.rmtree(self._folder.cache, ignore_errors=True)
            for path in self._folder.journals.glob("*.damaged"):
                path.unlink(missing_ok=True)
        remove_unpinned(self._folder)

    def end(self) -> None:
        """It is done, or was never begun in earnest: nothing of it stays, and what was deleted
        doesn't come back with the power."""
        with disk_errors():
            if self.is_committed():
                sync_folders(self._folder.path)
                (self.path / _COMMIT).unlink()
                sync_folder(self.path)
            shutil.rmtree(self.path, ignore_errors=True)

    @property
    def _values(self) -> dict[str, Any]:
        return read_json(self.path / _COMMIT) or {}


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What was rewritten (a bundle or a batch), with its hash before and after."""

    subject: str
    before: str
    after: str


def erasure_quads(
    uuid: str,
    document: str,
    reason: str,
    person: str | None,
    collection: str,
    times: tuple[datetime, datetime],
    rewritings: Iterable[Rewriting],
    removed: Iterable[str],
) -> list[Quad]:
    """The bundle of an erasure: the hashes of what it rewrote, and those of the texts it removed
    from the librarian (design, section 3.7)."""
    out = Statements(NamedNode(v.bundle_iri(uuid)))
    kinds, agents = ("Erasure",), responsible(person)
    subject = Activity(
        v.erasure_iri(uuid), kinds, "Erasure of a document", *times, agents, used=(document,)
    ).state(
        out,
        (v.tg("reason"), reason),
        (v.tg("collection"), collection),
        (v.tg("removedText"), sorted(removed)),
    )
    for number, each in enumerate(rewritings):
        state_entity(
            out,
            v.session_part_iri("rewriting", uuid, number),
            "Rewriting",
            (v.tg("rewrote"), iri(each.subject)),
            (v.tg("previousHash"), each.before),
            (v.tg("hash"), each.after),
            by=subject,
        )
    return out.quads
