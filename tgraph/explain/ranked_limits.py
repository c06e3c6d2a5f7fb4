"""Which limit kept something from the candidates where retrieval is run once more to find out.

With the limit lifted, over what the session read and with the vectors on its record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from tgraph import vocabulary as v
from tgraph.errors import TgraphError
from tgraph.explain.expected import Expected
from tgraph.explain.nearest_limits import Limit, first_of, least_value, nth
from tgraph.explain.read_again import Asked
from tgraph.explain.traced import Trace
from tgraph.index.contexts import spelled_out
from tgraph.index.sources import text_value
from tgraph.retrieve.base import Context, Keywords
from tgraph.retrieve.basic import in_conversation
from tgraph.retrieve.contextual import ContextualRetriever, word_index
from tgraph.retrieve.lightrag import LightRetriever
from tgraph.retrieve.modes.lightrag import LEGS
from tgraph.retrieve.ppr import OFTEN, PprRetriever

_ALL = 1 << 30
_LIGHT = {
    "chunk_top_k": 1 << 20,
    "related_chunk_number": 1 << 12,
    "max_entity_tokens": 1 << 24,
    "max_relationship_tokens": 1 << 24,
}
"""LightRAG's limits on chunks in the order in which they are lifted, and how far."""


class Ranked:
    """Looks for one expected thing in the retrieval of one session."""

    def __init__(self, trace: Trace, expected: Expected, context: Context, asked: Asked) -> None:
        self._trace = trace
        self._expected = expected
        self._context = context
        self._asked = asked

    def find(self) -> Limit | None:
        """The limit with rank and cut-off; None where this mode is no such, where nothing links the
        expected to the question, or where a vector is on no record."""
        ways = {"contextual": self._fused, "ppr": self._walked}
        light = self._trace.mode in LEGS
        way = self._picked if light else ways.get(self._trace.mode)
        with suppress(TgraphError):
            return way() if way else None
        return self._unpicked() if light else None

    def find_edge(self) -> Limit | None:
        """As ``find``, of a fact: the limit on the edges that a walk starts from."""
        with suppress(TgraphError):
            if self._trace.mode == "ppr" and self._expected.kind == "fact":
                return self._seed()
        return None

    def _fused(self) -> Limit | None:
        """Contextual retrieval takes so many chunks by words and meaning together."""
        asked, chunks = self._asked, self._expected.chunks
        own = asked.settings.contextual_search
        if not chunks:
            return None
        lifted = own.model_copy(update={"k": _ALL})
        retriever = ContextualRetriever(lifted, asked.rank, asked.settings.rerank.pool)
        found = retriever.retrieve(asked.question, self._context).candidates
        rank = first_of([candidate.item.iri for candidate in found], chunks)
        how = "as the server ranked them" if asked.rank else "by meaning and words together"
        why = f"it is the {nth(rank)} of {len(found)} chunks {how}, of which the first {own.k} were"
        if rank:
            return Limit("k", own.k, rank, f"{why} taken (k)") if rank > own.k else None
        text = in_conversation(asked.question)
        vector = self._context.embed([spelled_out(text)])
        near = self._context.vectors["context"].search(vector, _ALL)[0]
        worded = word_index(self._context).search(text, _ALL)
        ranks = [first_of([iri for iri, _ in hits], chunks) for hits in (near, worded)]
        if not any(ranks):
            return None
        ways = zip(ranks, ("meaning", "words"), strict=True)
        said = " and ".join(f"the {nth(rank)} by {way}" for rank, way in ways if rank)
        why = f"it is {said} in its context, and the first {own.pool} of each were fused (pool)"
        return Limit("pool", own.pool, min(filter(None, ranks)), why)

    def _walked(self) -> Limit | None:
        """Graph ranking takes so many of the chunks that it ranks."""
        own, chunks = self._asked.settings.ppr_search, self._expected.chunks
        if not chunks:
            return None
        every = (*self._trace.selected, *self._trace.rejected)
        kept = [item.item for item in every if item.kind == "edge"]
        retriever = PprRetriever(own, lambda question, edges, context: kept)
        order = retriever.order(self._asked.question, self._context)
        rank = first_of(order, chunks)
        if rank:
            why = f"it is the {nth(rank)} of {len(order)} chunks in the order of the walk, of which"
            why = f"{why} the first {own.passages} were taken (passages)"
            return Limit("passages", own.passages, rank, why) if rank > own.passages else None
        vector = self._context.embed([in_conversation(self._asked.question)])
        near = self._context.vectors["chunk"].search(vector, _ALL)[0]
        rank = first_of([iri for iri, _ in near], chunks)
        if not rank:
            return None
        often = max(OFTEN, own.passages)
        why = f"it is the {nth(rank)} of {len(near)} chunks by likeness to the question, and beside"
        why += f" the first {own.dense_chunks} (dense-chunks) only the {often} were ranked at which"
        return Limit("dense-chunks", own.dense_chunks, rank, f"{why} the walk is most often")

    def _seed(self) -> Limit | None:
        """The walk starts from so many of the edges nearest to the question."""
        own, edges = self._asked.settings.ppr_search, self._expected.edges
        vector = self._context.embed([in_conversation(self._asked.question)])
        near = self._context.vectors["edge"].search(vector, _ALL)[0]
        rank, most = first_of([iri for iri, _ in near], edges), own.top_k_edges
        if not rank:
            return None
        chunk = self._walked()
        beside = f"; and its chunk: {chunk.reason}" if chunk else ""
        why = f"it is the {nth(rank)} of {len(near)} edges by likeness to the question, and the"
        if rank > most:
            why = f"{why} walk starts from the first {most} (top-k-edges){beside}"
            return Limit("top-k-edges", most, rank, why)
        if own.filter and any(call.label.endswith("select_edges") for call in self._trace.calls):
            why = f"{why} model did not choose it among the first {most} to start from (filter)"
            return Limit("filter", None, rank, f"{why}{beside}")
        return None

    def _picked(self) -> Limit | None:
        """LightRAG takes so many chunks of what the keywords lead to, as far as that has room. The
        first limit that lets one in when it is lifted after those before it."""
        trace, chunks = self._trace, self._expected.chunks
        own = self._asked.settings.lightrag_search
        if not chunks:
            return None
        words = Keywords(trace.keywords.get("low", ()), trace.keywords.get("high", ()))
        question = replace(self._asked.question, keywords=words)

        def lets_in(values: Mapping[str, int]) -> bool:
            settings = own.model_copy(update=dict(values))
            found = LightRetriever(LEGS[trace.mode], settings).retrieve(question, self._context)
            return any(candidate.item.iri in chunks for candidate in found.candidates)

        lifted: dict[str, int] = {}
        for field, most in _LIGHT.items():
            if lets_in({**lifted, field: most}):
                return _beyond(field, int(getattr(own, field)), lets_in, lifted)
            lifted[field] = most
        return None

    def _unpicked(self) -> Limit | None:
        """As ``_picked``, where the order of the chunks can't be known any more."""
        store, expected = self._context.store, self._expected
        named = {text_value(store, item, v.tg("entity")) for item in expected.evidence}
        labels = [m.label for m in self._trace.matches if m.entity in named]
        if not labels or not expected.chunks:
            return None
        own = self._asked.settings.lightrag_search
        why = f"its chunk speaks of {labels[0]}, and {own.chunk_top_k} chunks at most were taken,"
        why = f"{why} {own.related_chunk_number} of an entity (chunk-top-k, related-chunk-number)"
        return Limit("chunk-top-k", own.chunk_top_k, None, why)


def _beyond(
    field: str, cutoff: int, lets_in: Callable[[Mapping[str, int]], bool], lifted: Mapping[str, int]
) -> Limit:
    """The limit with the least value that lets it in, beside what is lifted already."""
    name = field.replace("_", "-")
    rank = least_value(lambda n: lets_in({**lifted, field: n}), cutoff, _LIGHT[field])
    why = f"its chunk is among the candidates from {name} {rank} on, and it was {cutoff}"
    return Limit(name, cutoff, rank, why)
