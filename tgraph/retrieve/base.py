"""The retrieval interface: one module per mode, all reading only knowledge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tgraph.errors import EvidenceError
from tgraph.index.authority import Authorities, read_authorities
from tgraph.index.catalogue_table import CatalogueTable
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
from tgraph.retrieve.reasons import WORDING
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
    """Evidence omitted from a question because the evidence disagrees with the stored text."""

    count: int = 0
    said: dict[str, None] = field(default_factory=dict)

    def add(self, error: EvidenceError) -> None:
        self.count += 1
        self.said[left_out(error)] = None


class BoundedCache(Generic[CacheKey, CachedItem]):
    """A bounded cache of read items; a full cache is emptied.

    Items read with ``doubts`` are not cached, so each question reading such an item reports the
    doubts."""

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
        """Return the same cache, reporting doubts to another question."""
        return BoundedCache(self._limit, doubts, self._held)

    @property
    def _cached_items(self) -> dict[CacheKey, CachedItem]:
        return self._held[0]

    def __contains__(self, key: CacheKey) -> bool:
        return key in self._cached_items

    def get_all(
        self,
        keys: Iterable[CacheKey],
        read: Callable[[list[CacheKey]], Mapping[CacheKey, CachedItem]],
    ) -> dict[CacheKey, CachedItem]:
        """Return the keys' items; ``read`` gets all unknown keys at once.

        Keys without an item from ``read`` are requested again next time."""
        distinct_keys = list(dict.fromkeys(keys))
        items = self._cached_items
        cached_items = {key: items[key] for key in distinct_keys if key in items}
        missing = [key for key in distinct_keys if key not in cached_items]
        before = self._doubts.count
        fresh = read(missing) if missing else {}
        all_items = {**cached_items, **fresh}
        if self._doubts.count > before:
            return {key: all_items[key] for key in distinct_keys if key in all_items}
        if len(self._cached_items) + len(fresh) > self._limit:
            self._held[0] = {}  # a question that is being answered keeps what it holds
        if len(fresh) <= self._limit:
            self._cached_items.update(fresh)
        return {key: all_items[key] for key in distinct_keys if key in all_items}

    def load_item(self, key: CacheKey, read: Callable[[], CachedItem]) -> CachedItem:
        """Return a key's item, reading items not yet cached."""
        items = self._cached_items
        if key in items:
            return items[key]
        before = self._doubts.count
        item = read()
        if self._doubts.count > before:
            return item
        if len(items) >= self._limit:
            self._held[0] = {}
        self._cached_items[key] = item
        return item


@dataclass(frozen=True, slots=True)
class Keywords:
    """A question's keywords on two levels (LightRAG, Guo and others 2024).

    ``low`` contains named things, ``high`` themes; ``dropped`` counts problems during keyword
    extraction."""

    low: tuple[str, ...] = ()
    high: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def all_keywords(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.low, *self.high]))


@dataclass(frozen=True, slots=True)
class Question:
    """A question with preceding turns and concepts.

    ``stands_alone`` says the question is understandable without the turns. ``sparql`` is the query
    that a person wrote in place of the one of the session ``revises``."""

    text: str
    history: tuple[Turn, ...] = ()
    concepts: tuple[str, ...] = ()
    keywords: Keywords = field(default_factory=Keywords)
    stands_alone: bool = False
    sparql: str = ""
    revises: str = ""

    @property
    def needed_turns(self) -> tuple[Turn, ...]:
        """The turns needed for understanding the question."""
        return () if self.stands_alone else self.history


def return_none() -> None:
    """Return None, for a state without prepared tables."""


@dataclass(slots=True)
class Context:
    """A retriever's context: a published collection state, or the part left by ``filters``.

    ``reader``, if present, finds answers in passages. ``reports`` returns the state's
    communities and reports, ``table`` the state's evidence and counts, and ``catalogue`` the
    classes and properties that questions compute with, where prepared.
    ``doubts`` concern omitted evidence, ``notes`` contains facts about the state readers must
    know beside the answers; ``generation`` is the knowledge generation, ``wording`` that of the
    session (``tgraph.retrieve.reasons``)."""

    store: Store
    texts: Texts
    vectors: Mapping[str, VectorIndex]
    embedder: Embedder
    settings: Settings
    reader: Reader | None = None
    sink: CallSink = no_sink
    filters: Filters = NO_FILTERS
    reports: Callable[[], ReportTable | None] = return_none
    table: Callable[[], LookupTable | None] = return_none
    catalogue: Callable[[], CatalogueTable | None] = return_none
    doubts: Doubts = field(default_factory=Doubts)
    notes: tuple[str, ...] = ()
    generation: int = 0
    wording: int = WORDING
    _memory: dict[str, BoundedCache[Any, Any]] = field(default_factory=dict)
    _embedded: dict[str, NDArray[float32]] = field(default_factory=dict)

    def over_store(self, store: Store) -> Context:
        """Return the context of another state's store, without what was made ready for this state:
        reports, the look-up table and the catalogue."""
        return replace(
            self,
            store=store,
            texts=self.texts.with_store(store),
            reports=return_none,
            table=return_none,
            catalogue=return_none,
            _memory={},
        )

    @property
    def limits(self) -> GraphSettings:
        return self.settings.graph

    @property
    def evidence(self) -> EvidenceReader:
        """The state's evidence reader; doubts about evidence go to the question."""
        return EvidenceReader(self.graph.evidence, self.texts, self.doubt)

    @property
    def large_graphs(self) -> Collection[str]:
        """As ``lexical_documents``."""
        return self.read_once("large graphs", lambda: lexical_documents(self.store))

    @property
    def graph(self) -> GraphSource:
        """Look-ups in the state's knowledge."""
        return self.read_once(
            "source of the graph", lambda: self.table() or StoredGraph(self.store)
        )

    def doubt(self, error: EvidenceError) -> None:
        """Omit evidence disagreeing with the stored text, or raise the error under strict
        settings."""
        if self.settings.integrity.strict:
            raise error
        self.doubts.add(error)

    @property
    def authorities(self) -> Authorities:
        """Document authorities set by hand."""
        return self.read_once("authorities", lambda: read_authorities(self.store))

    def for_question(self, sink: CallSink) -> Context:
        """Return the same state for another question, sending calls to ``sink``; thread-safe."""
        return replace(self, sink=sink, doubts=Doubts(), _embedded={})

    def embed(self, texts: Sequence[str]) -> NDArray[float32]:
        """Return the texts' vectors, one row each; each text is embedded once per question."""
        import numpy as np

        new = list(dict.fromkeys(text for text in texts if text not in self._embedded))
        if new:
            for text, vector in zip(new, self.embedder.embed(new, self.sink), strict=True):
                self._embedded[text] = vector
        return np.stack([self._embedded[text] for text in texts])

    def at_hand(self, text: str) -> NDArray[float32] | None:
        """Return an already embedded text's vector, or the mean of all embedded vectors for
        another text.

        Return None if no text was embedded. No embedding is computed."""
        import numpy as np

        if text in self._embedded or not self._embedded:
            return self._embedded.get(text)
        mean: NDArray[float32] = np.mean([*self._embedded.values()], axis=0, dtype=np.float32)
        return mean

    def read_once(self, name: str, read: Callable[[], Once]) -> Once:
        """Return a value read for the first question needing the value, then cached as long as
        the state is open."""
        value: Once = self.open_cache(name, 1).load_item(name, read)
        return value

    def open_cache(self, name: str, limit: int) -> BoundedCache[Any, Any]:
        """Return the cache with the given name, living while the published state is open."""
        cache = self._memory.setdefault(name, BoundedCache(limit))
        return cache.for_question(self.doubts)


Rank = Callable[[str, Sequence[str], CallSink], list[tuple[int, float]]]
"""Ranks texts for a question: the index and score of each, best first."""

SeedFilter = Callable[[Question, Sequence[Candidate], Context], Sequence[str]]
"""Which of the edges are worth starting from, by IRI: the model's part, where it has one."""


class Services(Protocol):
    """Services borrowed by retrievers from higher steps."""

    @property
    def rerank(self) -> Rank | None:
        """The text reranker; None if reranking lacks configuration."""

    @property
    def filter_edges(self) -> SeedFilter | None:
        """A model's edge filter; None without a model."""

    @property
    def fills_prompts(self) -> bool:
        """Tell whether retrieval goes on while a prompt's budget lasts, as it does beside a
        model."""


class Retriever(Protocol):
    """A retriever of candidates, deterministic: same question and knowledge, same candidates.

    ``step`` is the retrieval activity's class; ``matches_entities`` says whether retrieval
    starts from entities."""

    @property
    def step(self) -> str: ...

    @property
    def matches_entities(self) -> bool: ...

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """Return candidates ranked from 1 without gaps, observing all context limits.

        Each candidate has its evidence, except that evidence of reports may be left to
        ``reports.add_report_evidence``."""


def in_conversation(question: Question) -> str:
    """Return the search text: the question, plus earlier user questions needed for
    understanding."""
    return "\n".join([question.text, *(turn.question for turn in reversed(question.needed_turns))])
