"""The interface of retrieval: one module per mode, all of them reading knowledge only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tgraph.errors import EvidenceError
from tgraph.index.authority import Authorities, read_authorities
from tgraph.index.evidence import EvidenceReader, left_out
from tgraph.index.graph_source import GraphSource
from tgraph.index.lookup_table import LookupTable
from tgraph.index.reports.report_table import ReportTable
from tgraph.index.sources import Texts, lexical_documents
from tgraph.index.stored_graph import StoredGraph
from tgraph.model import Candidate, Retrieval, Turn
from tgraph.models.base import CallSink, Embedder, no_sink
from tgraph.models.reader import Reader
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.retrieve.modes.graph import GraphSettings
from tgraph.settings import Settings
from tgraph.store.base import Store

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from tgraph.index.vectors.base import VectorIndex


CacheKey = TypeVar("CacheKey")
CachedItem = TypeVar("CachedItem")
Once = TypeVar("Once")


@dataclass(slots=True)
class Doubts:
    """Evidence that a question left out, since it is not what the stored text says."""

    count: int = 0
    said: dict[str, None] = field(default_factory=dict)

    def add(self, error: EvidenceError) -> None:
        self.count += 1
        self.said[left_out(error)] = None


class BoundedCache(Generic[CacheKey, CachedItem]):
    """A bounded store of what was read: when it is full, it starts again from nothing. What was
    read with ``doubts`` is not kept, so that each question that reads it has them."""

    def __init__(
        self,
        limit: int,
        doubts: Doubts | None = None,
        held: list[dict[CacheKey, CachedItem]] | None = None,
    ) -> None:
        self._limit = limit
        self._doubts = doubts or Doubts()
        self._held = [{}] if held is None else held

    def for_question(self, doubts: Doubts) -> BoundedCache[CacheKey, CachedItem]:
        """The same store for another question."""
        return BoundedCache(self._limit, doubts, self._held)

    @property
    def _items(self) -> dict[CacheKey, CachedItem]:
        return self._held[0]

    def __contains__(self, key: CacheKey) -> bool:
        return key in self._items

    def get_all(
        self,
        keys: Iterable[CacheKey],
        read: Callable[[list[CacheKey]], Mapping[CacheKey, CachedItem]],
    ) -> dict[CacheKey, CachedItem]:
        """The items of the keys. ``read`` gets those that are not known, all at once.

        What ``read`` has nothing for is asked for again the next time.
        """
        wanted = list(dict.fromkeys(keys))
        items = self._items
        known = {key: items[key] for key in wanted if key in items}
        missing = [key for key in wanted if key not in known]
        before = self._doubts.count
        fresh = read(missing) if missing else {}
        found = {**known, **fresh}
        if self._doubts.count > before:
            return {key: found[key] for key in wanted if key in found}
        if len(self._items) + len(fresh) > self._limit:
            self._held[0] = {}  # a question that is being answered keeps what it holds
        if len(fresh) <= self._limit:
            self._items.update(fresh)
        return {key: found[key] for key in wanted if key in found}

    def get(self, key: CacheKey, read: Callable[[], CachedItem]) -> CachedItem:
        """The item of one key, read where it is not known."""
        items = self._items
        if key in items:
            return items[key]
        before = self._doubts.count
        item = read()
        if self._doubts.count > before:
            return item
        if len(items) >= self._limit:
            self._held[0] = {}
        self._items[key] = item
        return item


@dataclass(frozen=True, slots=True)
class Keywords:
    """What a question is about on two levels (LightRAG, Guo and others 2024).

    ``low`` are the things that it names, ``high`` its themes; ``dropped`` counts what went wrong in
    finding them."""

    low: tuple[str, ...] = ()
    high: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.low, *self.high]))


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the turns before it and the concepts that it is about.

    ``stands_alone`` says that it needs none of the turns to be understood."""

    text: str
    history: tuple[Turn, ...] = ()
    concepts: tuple[str, ...] = ()
    keywords: Keywords = field(default_factory=Keywords)
    stands_alone: bool = False

    @property
    def needed(self) -> tuple[Turn, ...]:
        """The turns that say what is asked."""
        return () if self.stands_alone else self.history


def nothing() -> None:
    """For a state of which nothing lies ready."""


@dataclass(slots=True)
class Context:
    """What a retriever reads: one published state of one collection, or what ``filters`` leave.

    ``reader`` finds answers in passages, where there is one. ``reports`` gives the communities and
    reports of a published state, and ``table`` its evidence and what was counted of it, where they
    lie ready. ``doubts`` are about evidence that had to be left out, ``notes`` what a reader must
    know of this state beside its answers; ``generation`` is that of the knowledge."""

    store: Store
    texts: Texts
    vectors: Mapping[str, VectorIndex]
    embedder: Embedder
    settings: Settings
    reader: Reader | None = None
    sink: CallSink = no_sink
    filters: Filters = NO_FILTERS
    reports: Callable[[], ReportTable | None] = nothing
    table: Callable[[], LookupTable | None] = nothing
    doubts: Doubts = field(default_factory=Doubts)
    notes: tuple[str, ...] = ()
    generation: int = 0
    _memory: dict[str, BoundedCache[Any, Any]] = field(default_factory=dict)
    _embedded: dict[str, NDArray[float32]] = field(default_factory=dict)

    @property
    def limits(self) -> GraphSettings:
        return self.settings.graph

    @property
    def evidence(self) -> EvidenceReader:
        """The evidence of this state, in doubt of which the question is."""
        return EvidenceReader(self.graph.evidence, self.texts, self.doubt)

    @property
    def large_graphs(self) -> Collection[str]:
        """As ``lexical_documents``."""
        return self.once("large graphs", lambda: lexical_documents(self.store))

    @property
    def graph(self) -> GraphSource:
        """Look-ups in the knowledge of this state."""
        return self.once("source of the graph", lambda: self.table() or StoredGraph(self.store))

    def doubt(self, error: EvidenceError) -> None:
        """Leave out evidence that is not what the stored text says, or raise the error where the
        settings are strict."""
        if self.settings.integrity.strict:
            raise error
        self.doubts.add(error)

    @property
    def authorities(self) -> Authorities:
        """What documents were weighed by hand."""
        return self.once("authorities", lambda: read_authorities(self.store))

    def for_question(self, sink: CallSink) -> Context:
        """The same state for one more question, whose calls go to ``sink``; thread-safe."""
        return replace(self, sink=sink, doubts=Doubts(), _embedded={})

    def embed(self, texts: Sequence[str]) -> NDArray[float32]:
        """The vectors of the texts, one row each; a text is embedded once per question."""
        import numpy as np

        new = list(dict.fromkeys(text for text in texts if text not in self._embedded))
        if new:
            for text, vector in zip(new, self.embedder.embed(new, self.sink), strict=True):
                self._embedded[text] = vector
        return np.stack([self._embedded[text] for text in texts])

    def at_hand(self, text: str) -> NDArray[float32] | None:
        """The vector of a text that was embedded for the question, of another one the mean of all
        that were; None where none was. Nothing is embedded for it."""
        import numpy as np

        if text in self._embedded or not self._embedded:
            return self._embedded.get(text)
        mean: NDArray[float32] = np.mean([*self._embedded.values()], axis=0, dtype=np.float32)
        return mean

    def once(self, name: str, read: Callable[[], Once]) -> Once:
        """What is read at the first question that needs it, and kept as long."""
        found: Once = self.remembered(name, 1).get(name, read)
        return found

    def remembered(self, name: str, limit: int) -> BoundedCache[Any, Any]:
        """The store of that name, which lives as long as the published state is open."""
        known = self._memory.setdefault(name, BoundedCache(limit))
        return known.for_question(self.doubts)


Rank = Callable[[str, Sequence[str], CallSink], list[tuple[int, float]]]
"""Ranks texts for a question: the index and score of each, best first."""

SeedFilter = Callable[[Question, Sequence[Candidate], Context], Sequence[str]]
"""Which of the edges are worth starting from, by IRI: the model's part, where it has one."""


class Services(Protocol):
    """What a retriever may borrow of the steps above it."""

    @property
    def rerank(self) -> Rank | None:
        """What ranks texts for a question anew; None where nothing is set."""

    @property
    def filter_edges(self) -> SeedFilter | None:
        """A model's choice among edges; None where there is no model."""


class Retriever(Protocol):
    """Finds candidates for a question. The same question over the same knowledge finds the same.

    ``step`` is the class of its activity; ``matches_entities`` tells whether it starts from
    entities.
    """

    @property
    def step(self) -> str: ...

    @property
    def matches_entities(self) -> bool: ...

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """The candidates, ranked from 1 without gaps, every limit of the context observed.

        Each has its evidence, except that of reports may be left to ``reports.grounded``."""


def in_conversation(question: Question) -> str:
    """What is searched for: the question, and the user's questions before it that it needs."""
    return "\n".join([question.text, *(turn.question for turn in reversed(question.needed))])
