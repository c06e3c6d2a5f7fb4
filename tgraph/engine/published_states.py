"""Published states of a collection, open for readers in any thread of the process."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tgraph.engine.components import Components
from tgraph.engine.progress import OnMessage, OnProgress, Progress, Watching
from tgraph.errors import EmptyCollectionError, StoreError
from tgraph.index.catalogue_table import CatalogueTable, load_catalogue
from tgraph.index.data_files import DamagedIndexError
from tgraph.index.evidence import left_out, stored_evidence
from tgraph.index.lookup_table import LookupTable, load_table
from tgraph.index.reports.report_table import ReportTable, load_reports
from tgraph.index.sources import KeptPages, Texts
from tgraph.index.sqlite_files import LazyTable
from tgraph.index.vectors.base import StaleIndexError, VectorIndex, VectorStore
from tgraph.index.vectors.items import KINDS, PLURALS
from tgraph.models.base import Embedder
from tgraph.record.ledger import Ledger
from tgraph.retrieve.base import Context
from tgraph.store.folder import CollectionFolder
from tgraph.store.snapshot import Pointer, Snapshot, must_be_mended, read_pointer

if TYPE_CHECKING:
    from tgraph.store.base import Store

FOLD_PATIENCE = 10.0
"""Seconds to wait for a writer before the record is read as it was last published."""

KEPT_PAST = 2
"""Generations of earlier knowledge that are kept open."""

KEPT_CONTEXTS = 4
"""Ways of reading the newest knowledge, by their settings, that are kept."""


class Closeable(Protocol):
    """A resource with a ``close`` method."""

    def close(self) -> None: ...


class Leases:
    """Reader leases: a replaced resource is closed after all its possible readers have
    finished."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: Counter[int] = Counter()
        self._replaced: list[tuple[int, Closeable]] = []
        self._epoch = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep resources obtained inside open until exit."""
        with self._lock:
            epoch = self._epoch
            self._readers[epoch] += 1
        try:
            yield
        finally:
            with self._lock:
                self._readers[epoch] -= 1
                self._readers += Counter()  # without those that nobody is in any more
            self._close_unread()

    def replace(self, *items: Closeable | None) -> None:
        """Mark items as replaced and close them once unread."""
        with self._lock:
            self._replaced += [(self._epoch, item) for item in items if item is not None]
            self._epoch += 1
        self._close_unread()

    def _close_unread(self) -> None:
        with self._lock:
            oldest = min(self._readers, default=self._epoch)
            unread = [item for epoch, item in self._replaced if epoch < oldest]
            self._replaced = [
                replaced_item for replaced_item in self._replaced if replaced_item[0] >= oldest
            ]
        for item in unread:
            item.close()

    def close_all(self) -> None:
        """Close replaced items regardless of readers."""
        with self._lock:
            replaced, self._replaced = self._replaced, []
        for _, item in replaced:
            item.close()


@dataclass(eq=False)
class LazyVectors(Mapping[str, VectorIndex]):
    """Vector sets in a folder by kind, loaded on demand.

    ``repair`` receives a kind and the problem with its set, and returns a matching set."""

    folder: Path
    generation: int
    vector_store: VectorStore
    embedder: Embedder
    repair: Callable[[str, str], VectorIndex]

    def __post_init__(self) -> None:
        self._sets: dict[str, VectorIndex] = {}
        self._loading = threading.Lock()

    def __getitem__(self, kind: str) -> VectorIndex:
        with self._loading:
            if kind not in self._sets:
                self._sets[kind] = self._load_vectors(kind)
            return self._sets[kind]

    def _load_vectors(self, kind: str) -> VectorIndex:
        agent = self.embedder.agent
        try:
            return self.vector_store.open_vectors(
                self.folder, kind, generation=self.generation, agent=agent
            )
        except (StaleIndexError, DamagedIndexError) as error:
            return self.repair(kind, error.message)

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)


@dataclass(frozen=True, slots=True)
class PastKnowledge:
    """Past knowledge with resources that ``close`` releases."""

    context: Context
    opened: ExitStack

    def close(self) -> None:
        self.opened.close()


@dataclass(eq=False)
class OpenKnowledge:
    """An open published generation of knowledge: resources shared by its contexts, and contexts
    by way of reading."""

    snapshot: Snapshot
    texts: Texts
    vectors: LazyVectors
    table: LazyTable[LookupTable | None]
    reports: LazyTable[ReportTable | None]
    catalogue: LazyTable[CatalogueTable | None]
    contexts: OrderedDict[str, Context] = field(default_factory=OrderedDict)
    past: OrderedDict[tuple[int, str], PastKnowledge] = field(default_factory=OrderedDict)

    @property
    def generation(self) -> int:
        return self.snapshot.pointer.generation

    def close(self) -> None:
        for past in self.past.values():
            past.close()
        self.table.close()
        self.reports.close()
        self.catalogue.close()
        self.snapshot.close()


class PublishedStates:
    """The newest published record and knowledge of a collection, replaced at each new
    publication.

    ``watching`` observes vectors being rebuilt, and ``message`` reports damage."""

    def __init__(
        self,
        folder: CollectionFolder,
        ledger: Ledger,
        parts: Components,
        message: OnMessage,
        watching: Watching,
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._parts = parts
        self._message = message
        self._watching = watching
        self._lock = threading.RLock()
        self._folding = threading.Lock()
        self._warned: set[str] = set()
        self._record: Snapshot | None = None
        self._knowledge: OpenKnowledge | None = None
        self._asking = 0
        self.leases = Leases()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Register a question in progress."""
        with self.leases.reading():
            with self._lock:
                self._asking += 1
            try:
                yield
            finally:
                with self._lock:
                    self._asking -= 1

    @property
    def is_asked(self) -> bool:
        return self._asking > 0

    def fold(self, otherwise: str) -> None:
        """Fold finished sessions into the store; report ``otherwise`` if folding must wait."""
        with self._folding:
            if self._folder.pointer.exists() and must_be_mended(self._folder):
                self._warn_once("The published state is damaged and is rebuilt from the store.")
            if self._ledger.waiting():
                try:
                    self._ledger.fold(timeout=FOLD_PATIENCE)
                except StoreError as error:
                    self._message(f"{otherwise}: {error.message}")

    def release(self) -> None:
        """Close all open states and replaced items."""
        with self._lock:
            open_ = self._knowledge, self._record
            self._knowledge = self._record = None
        self.leases.close_all()
        for state in open_:
            if state is not None:
                state.close()

    def record(self) -> Store:
        """Return the newest published store, including every finished session."""
        self.fold("The newest sessions are not shown yet")
        with self._lock:
            pointer = self._read_pointer()
            if self._record is None or self._record.pointer != pointer:
                self.leases.replace(self._record)
                self._record = None
                self._record = self.snapshot()
            return self._record.store

    @property
    def newest(self) -> OpenKnowledge | None:
        """Open published knowledge, or None."""
        return self._knowledge

    def knowledge(self) -> OpenKnowledge:
        """Return the newest published knowledge.

        Raise ``StoreError`` if nothing is indexed."""
        if must_be_mended(self._folder):
            self.record()
        with self._lock:
            pointer, knowledge = self._read_pointer(), self._knowledge
            if knowledge is None or pointer is None or knowledge.generation != pointer.generation:
                self.leases.replace(knowledge)
                self._knowledge = None
                knowledge = self._knowledge = self._open_knowledge()
            return knowledge

    def kept_pages(self) -> KeptPages | None:
        """Return cached pages of newest knowledge, or None if absent."""
        try:
            return _pages_of(self.knowledge().table)
        except StoreError:
            return None

    def context(self, how: str, make: Callable[[OpenKnowledge], Context]) -> Context:
        """Return the newest knowledge context for reading key ``how``, unchanged until the next
        publication."""
        with self._lock:
            knowledge = self.knowledge()
            contexts = knowledge.contexts
            if how not in contexts:
                contexts[how] = make(knowledge)
            contexts.move_to_end(how)
            while len(contexts) > KEPT_CONTEXTS:
                contexts.popitem(last=False)
            return contexts[how]

    def past(self, generation: int, how: str, open_: Callable[[], PastKnowledge]) -> Context:
        """Return knowledge at a past generation; recently used generations stay open."""
        with self._lock:
            past = self.knowledge().past
            if (generation, how) not in past:
                while len(past) >= KEPT_PAST:
                    self.leases.replace(past.popitem(last=False)[1])
                past[generation, how] = open_()
            return past[generation, how].context

    def _open_knowledge(self) -> OpenKnowledge:
        snapshot = self.snapshot()
        generation = snapshot.pointer.generation
        if generation == 0:
            snapshot.close()
            raise self._nothing_indexed()
        repair = partial(self._rebuild_vectors, snapshot.store, generation)
        table = LazyTable(partial(load_table, snapshot.vectors, generation))
        return OpenKnowledge(
            snapshot,
            Texts(snapshot.store, self._ledger.librarian, partial(_pages_of, table)),
            LazyVectors(
                snapshot.vectors,
                generation,
                self._parts.vector_store,
                self._parts.embedder,
                repair,
            ),
            table,
            LazyTable(partial(load_reports, snapshot.vectors, generation)),
            LazyTable(partial(load_catalogue, snapshot.vectors, generation)),
        )

    def _nothing_indexed(self) -> StoreError:
        return EmptyCollectionError(
            f"Nothing has been indexed into the collection {self._folder.name!r} yet.",
            "Run `tgraph index PATH...` first.",
        )

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the newest published state; the caller closes it.

        Raise ``StoreError`` if nothing is published."""
        snapshot = self.readable()
        if snapshot is None:
            raise self._nothing_indexed()
        return snapshot

    def readable(self) -> Snapshot | None:
        """Return the newest snapshot, or a store view if snapshot repair fails, or None before
        any publication."""
        try:
            return Snapshot.open(self._folder)
        except StoreError as error:
            try:
                snapshot = Snapshot.of_store(self._folder, self._describe_store)
            except StoreError:
                raise error from None
            self._warn_once(f"{error.message} The store itself is read. {error.remedy}")
            return snapshot

    def _read_pointer(self) -> Pointer | None:
        """Return the published pointer, or None if the pointer is damaged too."""
        with suppress(StoreError):
            return read_pointer(self._folder)
        return None

    def _describe_store(self, store: Store) -> Pointer:
        generation, head = self._ledger.state(store)
        return Pointer(0, generation, head.sequence, head.hash)

    def _warn_once(self, message: str) -> None:
        """Send a warning message once."""
        if message not in self._warned:
            self._warned.add(message)
            self._message(message)

    def _rebuild_vectors(
        self, store: Store, generation: int, kind: str, problem: str
    ) -> VectorIndex:
        """Rebuild mismatched vectors, and store the new vectors if possible: vectors are
        derived data."""
        from tgraph.index.vectors.items import items_of

        librarian = self._ledger.librarian
        with self._watching() as (progress, message):
            texts = Texts(store, librarian)
            places = stored_evidence(store, texts, lambda error: message(left_out(error)))
            items = items_of(kind, store, librarian, places)
            message(f"The {kind} vectors are rebuilt: {problem}")
            embedding_progress = partial(_report_embedding, progress, kind)
            vectors = self._parts.vector_store.build_vectors(
                kind, items, self._parts.embedder, progress=embedding_progress
            )
        try:
            with self._ledger.open(timeout=FOLD_PATIENCE) as (newest, _):
                if self._ledger.generation(newest) == generation:
                    vectors.save(self._folder.vectors, generation)
                    self._ledger.publish(newest)
                del newest
        except StoreError as error:
            self._message(f"The rebuilt vectors could not be kept: {error.message}")
        return vectors


def _pages_of(table: LazyTable[LookupTable | None]) -> KeptPages | None:
    tables = table()
    return None if tables is None else tables.pages


def _report_embedding(progress: OnProgress, kind: str, done: int, total: int) -> None:
    progress(Progress("Embedding", done, total, detail=PLURALS[kind]))
