"""A collection that is open: its newest published state, and what a retriever reads of it."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.progress import (
    OnMessage,
    OnProgress,
    Progress,
    RunSetup,
    Watching,
    silent,
)
from tgraph.errors import StoreError, UsageError
from tgraph.index.evidence import left_out, stored_evidence
from tgraph.index.evidence_cache import LazyTable, LookupTable, load_table
from tgraph.index.reports.report_cache import load_report_cache
from tgraph.index.sources import Texts
from tgraph.index.vectors.items import KINDS, PLURALS
from tgraph.index.vectors.vector_index import DamagedIndexError, StaleIndexError, VectorSet, load
from tgraph.librarian import Librarian
from tgraph.model import Turn
from tgraph.models.base import Embedder
from tgraph.record.ledger import Ledger
from tgraph.retrieve.base import Context
from tgraph.settings import Settings
from tgraph.store.folder import CollectionFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import Pointer, Snapshot, must_be_mended, read_pointer

if TYPE_CHECKING:
    from tgraph.store.base import Store


@dataclass(eq=False)
class LazyVectors(Mapping[str, VectorSet]):
    """The vector sets below a folder by kind. ``repair`` is told what is wrong with one and gives
    a set that fits."""

    folder: Path
    generation: int
    embedder: Embedder
    repair: Callable[[str, str], VectorSet]

    def __post_init__(self) -> None:
        self._sets: dict[str, VectorSet] = {}

    def __getitem__(self, kind: str) -> VectorSet:
        if kind not in self._sets:
            try:
                self._sets[kind] = load(
                    self.folder, kind, generation=self.generation, agent=self.embedder.agent
                )
            except (StaleIndexError, DamagedIndexError) as error:
                self._sets[kind] = self.repair(kind, error.message)
        return self._sets[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)


def _embedding(progress: OnProgress, kind: str, done: int, total: int) -> None:
    progress(Progress("Embedding", done, total, detail=PLURALS[kind]))


R = TypeVar("R")

FOLD_PATIENCE = 10.0
"""Seconds to wait for a writer before the record is read as it was last published."""


KEPT_PAST = 2
"""Generations of earlier knowledge that are kept open."""


class Closeable(Protocol):
    """Something open that is let go of later."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PastKnowledge:
    """Knowledge as it was, and what ``close`` takes away again."""

    context: Context
    opened: ExitStack

    def close(self) -> None:
        self.opened.close()


def now() -> datetime:
    return datetime.now(UTC)


def new_uuid() -> str:
    return str(uuids.uuid4())


class OpenCollection:
    """What all that a graph can do stands on: folder, ledger, snapshots, parts."""

    def __init__(
        self,
        folder: CollectionFolder,
        settings: Settings,
        clock: Callable[[], datetime],
        uuid: Callable[[], str],
        parts: Components | None,
        message: OnMessage,
        watching: Watching | None = None,
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.clock = clock
        self.uuid = uuid
        self.message = message
        self.watching = watching or (lambda: nullcontext((silent, self.message)))
        self.catalogue = v.collection_iri(settings.explain_collection)
        signing_key = settings.integrity.signing_key
        self.ledger = Ledger(self.folder, self.catalogue, clock, signing_key)
        self.parts = parts or Components(settings, self.folder.cache)
        self.asking = 0
        self.turns: list[Turn] = []
        self._warned: set[str] = set()
        self._record: Snapshot | None = None
        self._knowledge: Snapshot | None = None
        self._table: LazyTable[LookupTable | None] | None = None
        self._context: Context | None = None
        self._past: dict[int, PastKnowledge] = {}
        self._replaced: list[Closeable] = []

    def close(self) -> None:
        """Fold the sessions asked here into the store and let go of the folder."""
        self.release()
        self.parts.close()
        self._fold("Sessions stay in their journals for now")

    def _fold(self, otherwise: str) -> None:
        if self.folder.pointer.exists() and must_be_mended(self.folder):
            self._warn("What is published of the graph is damaged; it is made anew of its store.")
        if self.ledger.waiting():
            try:
                self.ledger.fold(timeout=FOLD_PATIENCE)
            except StoreError as error:
                self.message(f"{otherwise}: {error.message}")

    def release(self) -> None:
        """Let go of every snapshot."""
        past = self._past.values()
        open_ = [*self._replaced, *past, self._table, self._knowledge, self._record]
        self._context = self._table = self._knowledge = self._record = None
        self._replaced, self._past = [], {}
        for each in open_:
            if each is not None:
                each.close()

    @property
    def librarian(self) -> Librarian:
        return self.ledger.librarian

    def read(self) -> Store:
        """The newest published state with every finished session in it, for reading.

        Where a writer keeps the lock for too long it is the state without the newest sessions, and
        ``message`` says so.
        """
        self._fold("The newest sessions are not shown yet")
        pointer = self._pointer()
        if self._record is None or self._record.pointer != pointer:
            if self._record is not None:
                self._record.close()
            self._record = self._open_snapshot()
        return self._record.store

    @property
    def generation(self) -> int:
        """That of the knowledge that questions read."""
        return self._knowledge.pointer.generation if self._knowledge else 0

    def context(self) -> Context:
        """The newest published knowledge, kept open until something newer is published."""
        if must_be_mended(self.folder):
            self.read()
        pointer = self._pointer()
        fresh = self._knowledge and pointer and self.generation == pointer.generation
        if self._context is None or not fresh:
            self._replace_knowledge()
            assert self._knowledge is not None
            assert self._table is not None
            self._context = Context(
                self._knowledge.store,
                Texts(self._knowledge.store, self.librarian),
                LazyVectors(
                    self._knowledge.vectors,
                    self.generation,
                    self.parts.embedder,
                    self._rebuild_vectors,
                ),
                self.parts.embedder,
                self.settings,
                reader=self.parts.reader,
                shelf=partial(load_report_cache, self._knowledge.vectors, self.generation),
                table=self._table,
            )
        return self._context

    def context_as_of(self, generation: int) -> Context:
        """Knowledge as it was at a generation, with its vectors; that of the newest is what
        ``context`` gives. The last ones are kept open. ``StoreError`` where it can't be read."""
        context = self.context()
        if generation == self.generation:
            return context
        if generation not in self._past:
            while len(self._past) >= KEPT_PAST:
                self._replaced.append(self._past.pop(next(iter(self._past))))
            self._close_replaced()
            self._past[generation] = self._open_past(context, generation)
        return self._past[generation].context

    def _open_past(self, now: Context, generation: int) -> PastKnowledge:
        from tgraph.explain.as_of.store import as_of, without_erased
        from tgraph.explain.as_of.vectors import PastVectors, SavedVectors, VectorsOnRecord
        from tgraph.models.client import Client

        assert self._knowledge is not None
        assert isinstance(now.store, OxigraphStore)
        own, librarian = now.embedder, self.librarian
        saved = SavedVectors(self._knowledge.vectors, self.generation)
        with ExitStack() as opened:
            past = opened.enter_context(as_of(now.store, librarian, generation))
            store, notes = without_erased(past)
            near = None if isinstance(own, Client) else own  # a server's calls would go unrecorded
            embedder = VectorsOnRecord(own.agent, past, librarian, own, near)
            vectors = PastVectors(store, librarian, saved, embedder)
            texts = now.texts.over(store)
            context = Context(store, texts, vectors, own, self.settings, now.reader, notes=notes)
            return PastKnowledge(context, opened.pop_all())

    def _close_replaced(self) -> None:
        """Close what nobody reads any more: not while a question is still answered."""
        if not self.asking:
            for each in self._replaced:
                each.close()
            self._replaced = []

    def _replace_knowledge(self) -> None:
        """The newest snapshot; the one before stays open while a question is still answered."""
        if self._knowledge is not None:
            self._replaced += [*self._past.values(), self._knowledge]
            self._replaced += [self._table] if self._table else []
            self._past = {}
            self._context = self._table = self._knowledge = None
        self._close_replaced()
        snapshot = self._open_snapshot()
        if snapshot.pointer.generation == 0:
            snapshot.close()
            raise self._nothing_indexed()
        self._knowledge = snapshot
        self._table = LazyTable(partial(load_table, snapshot.vectors, self.generation))

    def _nothing_indexed(self) -> StoreError:
        return StoreError(
            f"Nothing has been indexed into the collection {self.folder.name!r} yet.",
            "Run `tgraph index PATH...` first.",
        )

    def _open_snapshot(self) -> Snapshot:
        snapshot = self._readable()
        if snapshot is None:
            raise self._nothing_indexed()
        return snapshot

    def _pointer(self) -> Pointer | None:
        """What is published; None where that is damaged too."""
        with suppress(StoreError):
            return read_pointer(self.folder)
        return None

    def _readable(self) -> Snapshot | None:
        """The newest snapshot or, where it is damaged and can't be made anew, the store itself."""
        try:
            return Snapshot.open(self.folder)
        except StoreError as error:
            try:
                found = Snapshot.of_store(self.folder, self._described)
            except StoreError:
                raise error from None
            self._warn(f"{error.message} The store itself is read. {error.remedy}")
            return found

    def _described(self, store: Store) -> Pointer:
        generation, head = self.ledger.state(store)
        return Pointer(0, generation, head.sequence, head.hash)

    def _warn(self, message: str) -> None:
        """Say it, once."""
        if message not in self._warned:
            self._warned.add(message)
            self.message(message)

    def _rebuild_vectors(self, kind: str, problem: str) -> VectorSet:
        """Vectors are derived: where they don't fit they are made again, and kept if possible."""
        from tgraph.index.vectors.items import items_of
        from tgraph.index.vectors.vector_index import build

        assert self._knowledge is not None
        store = self._knowledge.store
        with self.watching() as (progress, message):
            texts = Texts(store, self.librarian)
            places = stored_evidence(store, texts, lambda error: message(left_out(error)))
            items = items_of(kind, store, self.librarian, places)
            message(f"The {kind} vectors are rebuilt: {problem}")
            shown = partial(_embedding, progress, kind)
            vectors = build(kind, items, self.parts.embedder, progress=shown)
        try:
            with self.ledger.open(timeout=FOLD_PATIENCE) as (store, _):
                if self.ledger.generation(store) == self.generation:
                    vectors.save(self.folder.vectors, self.generation)
                    self.ledger.publish(store)
                del store
        except StoreError as error:
            self.message(f"The rebuilt vectors could not be kept: {error.message}")
        return vectors

    @property
    def knowledge(self) -> Store | None:
        """The knowledge that questions read, where there has been one."""
        return self._knowledge.store if self._knowledge is not None else None

    def snapshot(self) -> Snapshot:
        """The newest published state, for whoever closes it."""
        snapshot = self._readable()
        if snapshot is None:
            raise UsageError("Nothing has been recorded yet.", "Run `tgraph index PATH...`.")
        return snapshot

    def record(self, kind: Callable[[Path, str, Callable[[], datetime]], R]) -> R:
        """A record of that kind, begun."""
        return kind(self.folder.journals, self.uuid(), self.clock)

    def setup(self, progress: OnProgress = silent, message: OnMessage | None = None) -> RunSetup:
        """What a change of the graph is made with."""
        self.ledger.check_key()
        return RunSetup(
            ledger=self.ledger,
            parts=self.parts,
            settings=self.settings,
            uuid=self.uuid(),
            clock=self.clock,
            catalogue=self.catalogue,
            progress=progress,
            message=message or self.message,
        )
