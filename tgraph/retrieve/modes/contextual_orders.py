"""Where the mode ``contextual`` cuts: the chunks as they were fused or ranked, and the two searches
before that."""

from __future__ import annotations

from contextlib import suppress

from tgraph.errors import TgraphError
from tgraph.index.contexts import spelled_out
from tgraph.retrieve.base import Context
from tgraph.retrieve.basic import in_conversation
from tgraph.retrieve.contextual import ContextualRetriever, word_index
from tgraph.retrieve.orders import (
    ALL,
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    iris,
    nth,
    place_in,
)


def contextual_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The chunks, those of the pool first."""
    if not missing.chunks:
        return
    with suppress(TgraphError):
        yield from _fused(missing, search, context)
    cutoff = context.settings.contextual_search.k
    if search.items >= cutoff:
        why = f"{cutoff} chunks fit the question better (k); its rank is not on record"
        yield CutOff("k", cutoff, None, why)


def _fused(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    settings, question = context.settings, search.question
    own = settings.contextual_search
    order = ContextualRetriever(own, search.rank, settings.rerank.pool).order(question, context)
    how = "as the server ranked them" if search.rank else "by meaning and words together"
    why = f"chunks {how}, of which the first {own.k} were taken (k)"
    yield RankedOrder("k", own.k, order, missing.chunks, why)
    if not missing.chunks.isdisjoint(order):
        return
    text = in_conversation(question)
    near = context.vectors["context"].search(context.embed([spelled_out(text)]), ALL)[0]
    worded = word_index(context).search(text, ALL)
    ways = {"meaning": place_in(iris(near), missing.chunks)}
    ways["words"] = place_in(iris(worded), missing.chunks)
    ranks = {way: rank for way, rank in ways.items() if rank}
    if ranks:
        said = " and ".join(f"the {nth(rank)} by {way}" for way, rank in ranks.items())
        why = f"it is {said} in its context, and the first {own.pool} of each were fused (pool)"
        yield CutOff("pool", own.pool, min(ranks.values()), why)
