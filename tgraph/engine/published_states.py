"""What is published of a collection, open for whoever reads it, in any thread of the process."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tgraph.engine.progress import OnMessage, OnProgress, Progress, Watching
from tgraph.errors import NothingIndexedError, StoreError
from tgraph.index.data_files import DamagedIndexError
from tgraph.index.evidence import left_out, stored_evidence
from tgraph.index.lookup_table import LookupTable, load_table
from tgraph.index.reports.report_table import ReportTable, load_reports
from tgraph.index.sources import KeptPages, Texts
from tgraph.index.sqlite_files import LazyTable
from tgraph.index.vectors.base import StaleIndexError, VectorIndex
from tgraph.index.vectors.items import KINDS, PLURALS
from tgraph.index.vectors.stores import vector_store
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
    """Something open that is let go of later."""

    def close(self) -> None: ...


class Leases:
    """Who reads: what was replaced is closed when nobody reads any more who may have been given
    it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: Counter[int] = Counter()
        self._replaced: list[tuple[int, Closeable]] = []
        self._epoch = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Nothing that is given out meanwhile is closed before the end."""
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
        """What is given out no longer."""
        with self._lock:
            self._replaced += [(self._epoch, item) for item in items if item is not None]
            self._epoch += 1
        self._close_unread()

    def _close_unread(self) -> None:
        with self._lock:
            oldest = min(self._readers, default=self._epoch)
            unread = [item for epoch, item in self._replaced if epoch < oldest]
            self._replaced = [each for each in self._replaced if each[0] >= oldest]
        for item in unread:
            item.close()

    def close_all(self) -> None:
        """Close what was replaced, whoever reads it."""
        with self._lock:
            replaced, self._replaced = self._replaced, []
        for _, item in replaced:
            item.close()


@dataclass(eq=False)
class LazyVectors(Mapping[str, VectorIndex]):
    """The vector sets below a folder by kind. ``repair`` is told what is wrong with one and gives
    a set that fits."""

    folder: Path
    generation: int
    embedder: Embedder
    repair: Callable[[str, str], VectorIndex]

    def __post_init__(self) -> None:
        self._sets: dict[str, VectorIndex] = {}
        self._loading = threading.Lock()

    def __getitem__(self, kind: str) -> VectorIndex:
        with self._loading:
            if kind not in self._sets:
                self._sets[kind] = self._loaded(kind)
            return self._sets[kind]

    def _loaded(self, kind: str) -> VectorIndex:
        agent = self.embedder.agent
        try:
            return vector_store().open_vectors(
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
    """Knowledge as it was, and what ``close`` takes away again."""

    context: Context
    opened: ExitStack

    def close(self) -> None:
        self.opened.close()


@dataclass(eq=False)
class OpenKnowledge:
    """A published generation of knowledge, open: what contexts of it share, and those that were
    made, by how it is read."""

    snapshot: Snapshot
    texts: Texts
    vectors: LazyVectors
    table: LazyTable[LookupTable | None]
    reports: LazyTable[ReportTable | None]
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
        self.snapshot.close()


class PublishedStates:
    """The newest published record and the newest knowledge of one collection, each replaced when
    something newer is published. ``watching`` is told of vectors that have to be made again, and
    ``message`` of what is damaged."""

    def __init__(
        self,
        folder: CollectionFolder,
        ledger: Ledger,
        embedder: Callable[[], Embedder],
        message: OnMessage,
        watching: Watching,
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._embedder = embedder
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
        """A question is answered meanwhile."""
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
        """Bring finished sessions into the store; ``otherwise`` is said where that must wait."""
        with self._folding:
            if self._folder.pointer.exists() and must_be_mended(self._folder):
                self._warn("What is published is damaged; it is made anew of the store.")
            if self._ledger.waiting():
                try:
                    self._ledger.fold(timeout=FOLD_PATIENCE)
                except StoreError as error:
                    self._message(f"{otherwise}: {error.message}")

    def release(self) -> None:
        """Let go of everything."""
        with self._lock:
            open_ = self._knowledge, self._record
            self._knowledge = self._record = None
        self.leases.close_all()
        for each in open_:
            if each is not None:
                each.close()

    def record(self) -> Store:
        """The newest published state with every finished session in it."""
        self.fold("The newest sessions are not shown yet")
        with self._lock:
            pointer = self._pointer()
            if self._record is None or self._record.pointer != pointer:
                self.leases.replace(self._record)
                self._record = None
                self._record = self.snapshot()
            return self._record.store

    @property
    def newest(self) -> OpenKnowledge | None:
        """The knowledge that is open, where there is one."""
        return self._knowledge

    def knowledge(self) -> OpenKnowledge:
        """The newest published knowledge. ``StoreError`` where nothing has been indexed."""
        if must_be_mended(self._folder):
            self.record()
        with self._lock:
            pointer, known = self._pointer(), self._knowledge
            if known is None or pointer is None or known.generation != pointer.generation:
                self.leases.replace(known)
                self._knowledge = None
                known = self._knowledge = self._open_knowledge()
            return known

    def kept_pages(self) -> KeptPages | None:
        """What lies ready of the pages of the newest knowledge; None where nothing does."""
        try:
            return _pages_of(self.knowledge().table)
        except StoreError:
            return None

    def context(self, how: str, make: Callable[[OpenKnowledge], Context]) -> Context:
        """The newest knowledge as it is read ``how``: the same as long as nothing newer is
        published."""
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
        """Knowledge as it was at a generation; the last ones are kept open."""
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
            LazyVectors(snapshot.vectors, generation, self._embedder(), repair),
            table,
            LazyTable(partial(load_reports, snapshot.vectors, generation)),
        )

    def _nothing_indexed(self) -> StoreError:
        return NothingIndexedError(
            f"Nothing has been indexed into the collection {self._folder.name!r} yet.",
            "Run `tgraph index PATH...` first.",
        )

    def snapshot(self) -> Snapshot:
        """The newest published state, for whoever closes it; ``StoreError`` where there is none."""
        snapshot = self.readable()
        if snapshot is None:
            raise self._nothing_indexed()
        return snapshot

    def readable(self) -> Snapshot | None:
        """The newest snapshot or, where it is damaged and can't be made anew, the store itself;
        None where nothing has been published."""
        try:
            return Snapshot.open(self._folder)
        except StoreError as error:
            try:
                found = Snapshot.of_store(self._folder, self._described)
            except StoreError:
                raise error from None
            self._warn(f"{error.message} The store itself is read. {error.remedy}")
            return found

    def _pointer(self) -> Pointer | None:
        """What is published; None where that is damaged too."""
        with suppress(StoreError):
            return read_pointer(self._folder)
        return None

    def _described(self, store: Store) -> Pointer:
        generation, head = self._ledger.state(store)
        return Pointer(0, generation, head.sequence, head.hash)

    def _warn(self, message: str) -> None:
        """Say it, once."""
        if message not in self._warned:
            self._warned.add(message)
            self._message(message)

    def _rebuild_vectors(
        self, store: Store, generation: int, kind: str, problem: str
    ) -> VectorIndex:
        """Vectors are derived: where they don't fit they are made again, and kept if possible."""
        from tgraph.index.vectors.items import items_of

        librarian = self._ledger.librarian
        with self._watching() as (progress, message):
            texts = Texts(store, librarian)
            places = stored_evidence(store, texts, lambda error: message(left_out(error)))
            items = items_of(kind, store, librarian, places)
            message(f"The {kind} vectors are rebuilt: {problem}")
            shown = partial(_embedding, progress, kind)
            vectors = vector_store().build_vectors(kind, items, self._embedder(), progress=shown)
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


def _embedding(progress: OnProgress, kind: str, done: int, total: int) -> None:
    progress(Progress("Embedding", done, total, detail=PLURALS[kind]))
