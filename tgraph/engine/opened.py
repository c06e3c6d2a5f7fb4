"""A collection that is open: its newest published state, and what a retriever reads of it."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tgraph import vocabulary as v
from tgraph.engine.parts import Parts
from tgraph.engine.progress import OnMessage, OnProgress, mute
from tgraph.engine.vectors import LazyVectors
from tgraph.errors import StoreError
from tgraph.index.lookup_table import LazyTable, LookupTable, load_table
from tgraph.index.shelf import load_shelf
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.model import Turn
from tgraph.record.ledger import Ledger
from tgraph.retrieve.base import Context
from tgraph.settings import Settings
from tgraph.store.folder import GraphFolder
from tgraph.store.snapshot import Snapshot, must_be_mended, read_pointer

if TYPE_CHECKING:
    from tgraph.index.vectors import VectorSet
    from tgraph.store.base import Store

FOLD_PATIENCE = 10.0
"""Seconds to wait for a writer before the record is read as it was last published."""


def now() -> datetime:
    return datetime.now(UTC)


def new_uuid() -> str:
    return str(uuids.uuid4())


class Opened:
    """What every half of ``KnowledgeGraph`` stands on: folder, ledger, snapshots, parts."""

    def __init__(
        self,
        folder: GraphFolder,
        settings: Settings,
        *,
        create: bool = False,
        clock: Callable[[], datetime] = now,
        uuid: Callable[[], str] = new_uuid,
        parts: Parts | None = None,
        message: OnMessage = mute,
    ) -> None:
        self.root = folder.path
        self.settings = settings
        self._folder = folder.collection(settings.collection, create=create)
        self._clock = clock
        self._uuid = uuid
        self._message = message
        self._catalogue = v.collection_iri(settings.explain_collection)
        signing_key = settings.integrity.signing_key
        self._ledger = Ledger(self._folder, self._catalogue, clock, signing_key)
        self._parts = parts or Parts(settings, self._folder.cache)
        self._record: Snapshot | None = None
        self._knowledge: Snapshot | None = None
        self._table: LazyTable[LookupTable | None] | None = None
        self._context: Context | None = None
        self._replaced: list[Snapshot | LazyTable[LookupTable | None]] = []
        self._asking = 0
        self._turns: list[Turn] = []

    # --- life ---

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Fold the sessions asked here into the store and let go of the folder."""
        self._release()
        self._parts.close()
        if self._ledger.waiting():
            try:
                self._ledger.fold(timeout=FOLD_PATIENCE)
            except StoreError as error:
                self._message(f"Sessions stay in their journals for now: {error.message}")

    def _release(self) -> None:
        """Let go of every snapshot."""
        open_ = [*self._replaced, self._table, self._knowledge, self._record]
        self._context = self._table = self._knowledge = self._record = None
        self._replaced = []
        for each in open_:
            if each is not None:
                each.close()

    @property
    def collection(self) -> str:
        return self._folder.name

    @property
    def librarian(self) -> Librarian:
        return self._ledger.librarian

    def read(self) -> Store:
        """The newest published state with every finished session in it, for reading.

        Where a writer keeps the lock for too long it is the state without the newest sessions, and
        ``message`` says so.
        """
        if self._ledger.waiting():
            try:
                self._ledger.fold(timeout=FOLD_PATIENCE)
            except StoreError as error:
                self._message(f"The newest sessions are not shown yet: {error.message}")
        pointer = read_pointer(self._folder)
        if self._record is None or self._record.pointer != pointer:
            if self._record is not None:
                self._record.close()
            self._record = self._open_snapshot()
        return self._record.store

    def _generation(self) -> int:
        return self._knowledge.pointer.generation if self._knowledge else 0

    def _open_context(self) -> Context:
        """The newest published knowledge, kept open until something newer is published."""
        if must_be_mended(self._folder):
            self.read()
        pointer = read_pointer(self._folder)
        fresh = self._knowledge and pointer and self._generation() == pointer.generation
        if self._context is None or not fresh:
            self._replace_knowledge()
            assert self._knowledge is not None
            assert self._table is not None
            self._context = Context(
                self._knowledge.store,
                Texts(self._knowledge.store, self.librarian),
                LazyVectors(
                    self._knowledge.vectors,
                    self._generation(),
                    self._parts.embedder,
                    self._rebuild_vectors,
                ),
                self._parts.embedder,
                self.settings,
                shelf=partial(load_shelf, self._knowledge.vectors, self._generation()),
                table=self._table,
            )
        return self._context

    def _replace_knowledge(self) -> None:
        """The newest snapshot; the one before stays open while a question is still answered."""
        if self._knowledge is not None:
            self._replaced += [self._table, self._knowledge] if self._table else [self._knowledge]
            self._context = self._table = self._knowledge = None
        if not self._asking:
            for each in self._replaced:
                each.close()
            self._replaced = []
        snapshot = self._open_snapshot()
        if snapshot.pointer.generation == 0:
            snapshot.close()
            raise self._nothing_indexed()
        self._knowledge = snapshot
        self._table = LazyTable(partial(load_table, snapshot.vectors, self._generation()))

    def _nothing_indexed(self) -> StoreError:
        return StoreError(
            f"Nothing has been indexed into the collection {self.collection!r} yet.",
            "Run `tgraph index PATH...` first.",
        )

    def _open_snapshot(self) -> Snapshot:
        snapshot = Snapshot.open(self._folder)
        if snapshot is None:
            raise self._nothing_indexed()
        return snapshot

    def _rebuild_vectors(self, kind: str, problem: str) -> VectorSet:
        """Vectors are derived: where they don't fit they are made again, and kept if possible."""
        from tgraph.index.items import items_of
        from tgraph.index.vectors import build

        assert self._knowledge is not None
        self._message(f"The {kind} vectors are rebuilt: {problem}")
        items = items_of(kind, self._knowledge.store, self.librarian)
        vectors = build(kind, items, self._parts.embedder)
        try:
            with self._ledger.open(timeout=FOLD_PATIENCE) as (store, _):
                if self._ledger.generation(store) == self._generation():
                    vectors.save(self._folder.vectors, self._generation())
                    self._ledger.publish(store)
                del store
        except StoreError as error:
            self._message(f"The rebuilt vectors could not be kept: {error.message}")
        return vectors

    def _run_options(self, progress: OnProgress, message: OnMessage | None) -> dict[str, Any]:
        self._ledger.check_key()
        return {
            "ledger": self._ledger,
            "parts": self._parts,
            "settings": self.settings,
            "uuid": self._uuid(),
            "clock": self._clock,
            "catalogue": self._catalogue,
            "progress": progress,
            "message": message or self._message,
        }
