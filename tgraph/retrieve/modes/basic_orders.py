"""Where the modes ``basic`` and ``naive`` cut: the chunks by their likeness to the question."""

from __future__ import annotations

from tgraph.retrieve.base import Context
from tgraph.retrieve.basic import in_conversation
from tgraph.retrieve.orders import (
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    iris,
    nearest,
    unlike,
)


def nearest_chunk_orders(
    name: str,
    cutoff: int,
    least: float,
    missing: Missing,
    search: RecordedSearch,
    context: Context,
) -> Orders:
    """The chunks, nearest to the question first, cut by a limit of that name; and what is less
    like it than ``least``."""
    if not missing.chunks:
        return
    hits = nearest(context, "chunk", in_conversation(search.question))
    if not hits:
        why = f"it is not among the {cutoff} chunks nearest to the question ({name})"
        yield CutOff(name, cutoff, None, why)
    why = f"chunks by likeness to the question, of which the first {cutoff} were taken ({name})"
    yield RankedOrder(name, cutoff, iris(hits), missing.chunks, why)
    yield from unlike(hits, missing.chunks, least, "the question")


def basic_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    own = context.settings.basic_search
    return nearest_chunk_orders("k", own.k, own.least_score, missing, search, context)


def naive_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    own = context.settings.naive_search
    return nearest_chunk_orders("k", own.k, own.least_score, missing, search, context)
