"""Where the modes of LightRAG cut: what the keywords lead to, and the chunks of that."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tgraph.errors import TgraphError
from tgraph.retrieve.base import Context
from tgraph.retrieve.lightrag import LightRetriever
from tgraph.retrieve.linking import linked_edges, linked_entities
from tgraph.retrieve.modes.basic_orders import nearest_chunk_orders
from tgraph.retrieve.modes.lightrag import LEGS
from tgraph.retrieve.orders import (
    ALL,
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    iris,
    nearest,
    place_in,
    rerun,
    unlike,
)

_LIFTED = {
    "chunk_top_k": 1 << 20,
    "related_chunk_number": 1 << 12,
    "max_entity_tokens": 1 << 24,
    "max_relationship_tokens": 1 << 24,
}
"""The limits on chunks in the order in which they are lifted, each beside those before it, and how
far."""


def lightrag_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The entities and edges in the order of the keywords, then the chunks: those nearest to the
    question, and those of what the keywords lead to."""
    own = context.settings.lightrag_search
    try:
        yield from _linked(missing, search, context)
        if "chunks" in LEGS[search.mode]:
            name, most = "chunk-top-k", own.chunk_top_k
            yield from nearest_chunk_orders(name, most, own.least_score, missing, search, context)
        if missing.chunks:
            yield from _picked(missing, search, context)
    except TgraphError:
        yield from _unpicked(missing, search, context)


def _linked(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The entities that the keywords of the low level lead to, and the edges by the others; then
    what no keyword leads to, for it is too unlike."""
    own, words = context.settings.lightrag_search, search.question.keywords
    ends = missing.ends(context.store)
    entities = linked_entities(words.low, ALL, own.least_score, context)
    edges = linked_edges(words.high, ALL, own.least_score, context)
    orders = [
        RankedOrder(
            "top-k",
            own.top_k,
            [link.iri for link in links],
            wanted,
            f"{many} that the keywords lead to, and {own.top_k} were taken (top-k)",
        )
        for many, links, wanted in (("entities", entities, ends), ("edges", edges, missing.edges))
    ]
    yield from orders
    kinds = (("entity", words.low), ("edge", words.high))
    for order, (kind, keywords) in zip(orders, kinds, strict=True):
        if order.standing is None:
            yield from _unlike(kind, keywords, order.wanted, own.least_score, context)


def _unlike(
    kind: str, keywords: Sequence[str], wanted: Collection[str], least: float, context: Context
) -> Orders:
    """The keyword that it is most like, and not enough."""
    hits = {word: nearest(context, kind, word) for word in keywords}
    scores = {
        word: found[place - 1][1]
        for word, found in hits.items()
        if (place := place_in(iris(found), wanted))
    }
    if scores:
        best = max(scores, key=lambda word: scores[word])
        yield from unlike(hits[best], wanted, least, f"“{best}”")


def _picked(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """Chunks are taken of what the keywords lead to, as far as that has room: the first limit that
    lets one in when it is lifted after those before it."""
    own = context.settings.lightrag_search

    def lets_in(values: Mapping[str, int]) -> bool:
        settings = own.model_copy(update=dict(values))
        found = LightRetriever(LEGS[search.mode], settings).retrieve(search.question, context)
        return any(candidate.item.iri in missing.chunks for candidate in found.candidates)

    beside: dict[str, int] = {}
    for limit, most in _LIFTED.items():
        yield from rerun(own, limit, most, beside, lets_in, "its chunk is among the candidates")
        beside[limit] = most


def _unpicked(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """As ``_picked``, where the order of the chunks can't be known any more."""
    named = missing.spoken_of(context.store)
    labels = [match.label for match in search.matches if match.entity in named]
    if labels and missing.chunks:
        own = context.settings.lightrag_search
        why = f"its chunk speaks of {labels[0]}, and {own.chunk_top_k} chunks at most were taken,"
        why = f"{why} {own.related_chunk_number} of an entity (chunk-top-k, related-chunk-number)"
        yield CutOff("chunk-top-k", own.chunk_top_k, None, why)
