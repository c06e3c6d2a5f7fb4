"""Which limit kept something from the candidates where retrieval is run once more to find out.

With the limit lifted, over what the session read and with the vectors on its record.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from tgraph.errors import TgraphError
from tgraph.explain.expected import Expected
from tgraph.explain.nearest_limits import Limit, nth
from tgraph.explain.read_again import Asked
from tgraph.explain.traced import Trace
from tgraph.index.contexts import spelled_out
from tgraph.model import EntityMatch
from tgraph.retrieve.base import Context
from tgraph.retrieve.basic import in_conversation
from tgraph.retrieve.contextual import ContextualRetriever, word_index
from tgraph.retrieve.labels import reified
from tgraph.retrieve.local import around
from tgraph.retrieve.ppr import OFTEN, PprRetriever

_ALL = 1 << 30


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
        ways = {"contextual": self._fused, "ppr": self._walked, "local": self._out}
        with suppress(TgraphError):
            return ways.get(self._trace.mode, lambda: None)()
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
        rank = _first([candidate.item.iri for candidate in found], chunks)
        how = "as the server ranked them" if asked.rank else "by meaning and words together"
        why = f"it is the {nth(rank)} of {len(found)} chunks {how}, of which the first {own.k} were"
        if rank:
            return Limit("k", own.k, rank, f"{why} taken (k)") if rank > own.k else None
        text = in_conversation(asked.question)
        vector = self._context.embed([spelled_out(text)])
        near = self._context.vectors["context"].search(vector, _ALL)[0]
        worded = word_index(self._context).search(text, _ALL)
        ranks = [_first([iri for iri, _ in hits], chunks) for hits in (near, worded)]
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
        rank = _first(order, chunks)
        if rank:
            why = f"it is the {nth(rank)} of {len(order)} chunks in the order of the walk, of which"
            why = f"{why} the first {own.passages} were taken (passages)"
            return Limit("passages", own.passages, rank, why) if rank > own.passages else None
        vector = self._context.embed([in_conversation(self._asked.question)])
        near = self._context.vectors["chunk"].search(vector, _ALL)[0]
        rank = _first([iri for iri, _ in near], chunks)
        if not rank:
            return None
        often = max(OFTEN, own.passages)
        why = f"it is the {nth(rank)} of {len(near)} chunks by likeness to the question, and beside"
        why += f" the first {own.dense_chunks} (dense-chunks) only the {often} were ranked at which"
        return Limit("dense-chunks", own.dense_chunks, rank, f"{why} the walk is most often")

    def _out(self) -> Limit | None:
        """Local search takes so many of the edges that lead out of the matched entities."""
        trace, settings = self._trace, self._asked.settings
        matches = [EntityMatch(m.entity, m.label, m.concept, 0.0, "") for m in trace.matches]
        inside = {match.entity for match in matches}
        if not inside or not self._expected.edges:
            return None
        limits = settings.graph.model_copy(update={"max_subgraph_size": 0})
        wide = settings.local_search.model_copy(update={"top_k_relationships": _ALL})
        context = replace(
            self._context, settings=settings.model_copy(update={"graph": limits}), _memory={}
        )
        order = around(matches, wide, context).cut
        known = reified(context.store, order)
        out = [i for i in order if i in known and not inside.issuperset(_ends(known[i]))]
        rank = _first(out, self._expected.edges)
        cutoff = settings.local_search.top_k_relationships * len(inside)
        if rank <= cutoff:
            return None
        why = (
            f"it is the {nth(rank)} of {len(out)} edges that lead out of the {len(inside)} matched"
        )
        why = (
            f"{why} entities, and {cutoff} were taken ({settings.local_search.top_k_relationships}"
        )
        return Limit("top-k-relationships", cutoff, rank, f"{why} for each, top-k-relationships)")


def _ends(edge: object) -> set[str]:
    ends = getattr(edge, "subject", None), getattr(edge, "object", None)
    return {getattr(end, "value", "") for end in ends}


def _first(order: Sequence[str], items: Collection[str]) -> int:
    """The place of the first of the items, from 1; 0 where there is none."""
    return next((n for n, iri in enumerate(order, 1) if iri in items), 0)
