"""Where the mode ``ppr`` cuts: the edges that the walk starts from, the chunks that it ranks, and
those that it may rank."""

from __future__ import annotations

from contextlib import suppress

from tgraph.errors import TgraphError
from tgraph.retrieve.base import Context
from tgraph.retrieve.basic import in_conversation
from tgraph.retrieve.orders import (
    ALL,
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    first_cut,
    iris,
)
from tgraph.retrieve.ppr import OFTEN, PprRetriever


def ppr_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The edges to start from, where a fact is missing, then the chunks."""
    if missing.kind == "fact":
        with suppress(TgraphError):
            yield from _starts(missing, search, context)
    with suppress(TgraphError):
        yield from _walked(missing, search, context)
    cutoff = context.settings.ppr_search.passages
    if missing.chunks and search.items >= cutoff:
        why = f"the walk came to {cutoff} chunks before it (passages); its rank is not on record"
        yield CutOff("passages", cutoff, None, why)


def _starts(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The walk starts from so many of the edges nearest to the question."""
    own = context.settings.ppr_search
    most = own.top_k_edges
    order = _near("edge", search, context)
    at = RankedOrder("top-k-edges", most, order, missing.edges, "").standing
    chosen = own.filter and any(call.endswith("select_edges") for call in search.calls)
    if at is None or (at.rank <= most and not chosen):
        return
    chunk = first_cut(_walked(missing, search, context))
    beside = f"; and its chunk: {chunk.reason}" if chunk else ""
    why = f"it is {at} edges by likeness to the question, and the"
    if at.rank > most:
        why = f"{why} walk starts from the first {most} (top-k-edges){beside}"
        yield CutOff("top-k-edges", most, at.rank, why)
    else:
        why = f"{why} model did not choose it among the first {most} to start from (filter)"
        yield CutOff("filter", None, at.rank, f"{why}{beside}")


def _walked(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """Graph ranking takes so many of the chunks that it ranks."""
    if not missing.chunks:
        return
    own, kept = context.settings.ppr_search, list(search.candidates)
    order = PprRetriever(own, lambda *_: kept).order(search.question, context)
    most = own.passages
    why = f"chunks in the order of the walk, of which the first {most} were taken (passages)"
    yield RankedOrder("passages", most, order, missing.chunks, why)
    if missing.chunks.isdisjoint(order):
        often = max(OFTEN, own.passages)
        why = f"chunks by likeness to the question, and beside the first {own.dense_chunks}"
        why = f"{why} (dense-chunks) only the {often} were ranked at which the walk is most often"
        near = RankedOrder("", 0, _near("chunk", search, context), missing.chunks, "")
        if at := near.standing:
            yield CutOff("dense-chunks", own.dense_chunks, at.rank, f"it is {at} {why}")


def _near(kind: str, search: RecordedSearch, context: Context) -> list[str]:
    """All of a kind, nearest to the question first."""
    vector = context.embed([in_conversation(search.question)])
    return iris(context.vectors[kind].search(vector, ALL)[0])
