"""Where the modes of LightRAG cut: what the keywords lead to, and the chunks of that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tgraph.errors import TgraphError
from tgraph.retrieve.base import Context
from tgraph.retrieve.lightrag import LightRetriever
from tgraph.retrieve.linking import in_turn
from tgraph.retrieve.modes.basic_orders import nearest_chunk_orders
from tgraph.retrieve.modes.lightrag import LEGS
from tgraph.retrieve.orders import (
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    nearest,
    rerun,
    unlike,
)
from tgraph.retrieve.seeds import match_names

_LIFTED = {
    "chunk_top_k": 1 << 20,
    "related_chunk_number": 1 << 12,
    "max_entity_tokens": 1 << 24,
    "max_relationship_tokens": 1 << 24,
}
"""The limits on chunks in the order in which they are lifted, each beside those before it, and how
far."""

_MANY = {"entity": "entities", "edge": "edges"}


def lightrag_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The entities and edges in the order of the keywords, then the chunks."""
    own = context.settings.lightrag_search
    levels = list(_levels(missing, search, context))
    for level in levels:
        yield level.order(own.top_k)
    for level in levels:
        if level.wanted.isdisjoint(level.linked):
            yield from level.unlike(own.least_score)
    if "chunks" in LEGS[search.mode]:
        name, most = "chunk-top-k", own.chunk_top_k
        yield from nearest_chunk_orders(name, most, own.least_score, missing, search, context)
    if missing.chunks:
        try:
            yield from _picked(missing, search, context)
        except TgraphError:
            yield from _unpicked(missing, search, context)


@dataclass(frozen=True, slots=True)
class _Level:
    """What the keywords of one level lead to, in turn, and all that each of them is like."""

    kind: str
    wanted: frozenset[str]
    linked: Sequence[str]
    hits: Mapping[str, Sequence[tuple[str, float]]]

    def order(self, top_k: int) -> RankedOrder:
        why = f"{_MANY[self.kind]} that the keywords lead to, and {top_k} were taken (top-k)"
        return RankedOrder("top-k", top_k, self.linked, self.wanted, why)

    def unlike(self, least: float) -> Orders:
        """The keyword that it is most like, and not enough."""
        best = max(self.hits, key=lambda word: _score(self.hits[word], self.wanted), default="")
        return unlike(self.hits.get(best, ()), self.wanted, least, f"“{best}”")


def _levels(missing: Missing, search: RecordedSearch, context: Context) -> Iterator[_Level]:
    """Entities by the keywords of the low level, edges by the others."""
    words, least = search.question.keywords, context.settings.lightrag_search.least_score
    ends = frozenset(missing.ends(context.store))
    for kind, keywords, wanted in (
        ("entity", words.low, ends),
        ("edge", words.high, missing.edges),
    ):
        hits = {word: nearest(context, kind, word) for word in keywords}
        lists = [
            [
                *(match_names(word, context.store) if kind == "entity" else ()),
                *(iri for iri, score in near if score >= least),
            ]
            for word, near in hits.items()
        ]
        yield _Level(kind, wanted, in_turn(lists, str), hits)


def _score(hits: Sequence[tuple[str, float]], items: Collection[str]) -> float:
    return next((score for iri, score in hits if iri in items), -1.0)


def _picked(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """Chunks are taken of what the keywords lead to, as far as that has room: the first limit that
    lets one in when it is lifted after those before it."""
    own = context.settings.lightrag_search

    def lets_in(values: Mapping[str, int]) -> bool:
        settings = own.model_copy(update=dict(values))
        found = LightRetriever(LEGS[search.mode], settings).retrieve(search.question, context)
        return any(candidate.item.iri in missing.chunks for candidate in found.candidates)

    beside: dict[str, int] = {}
    for field, most in _LIFTED.items():
        yield from _lifted(field, int(getattr(own, field)), dict(beside), lets_in)
        beside[field] = most


def _lifted(
    field: str, cutoff: int, beside: Mapping[str, int], lets_in: Callable[[Mapping[str, int]], bool]
) -> Orders:
    name = field.replace("_", "-")
    yield from rerun(
        name,
        cutoff,
        _LIFTED[field],
        lambda value: lets_in({**beside, field: value}),
        lambda rank: (
            f"its chunk is among the candidates from {name} {rank} on, and it was {cutoff}"
        ),
    )


def _unpicked(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """As ``_picked``, where the order of the chunks can't be known any more."""
    named = missing.spoken_of(context.store)
    labels = [match.label for match in search.matches if match.entity in named]
    if labels:
        own = context.settings.lightrag_search
        why = f"its chunk speaks of {labels[0]}, and {own.chunk_top_k} chunks at most were taken,"
        why = f"{why} {own.related_chunk_number} of an entity (chunk-top-k, related-chunk-number)"
        yield CutOff("chunk-top-k", own.chunk_top_k, None, why)
