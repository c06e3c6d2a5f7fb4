"""What a candidate costs in a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tgraph.model import Edge, Evidence, Item
from tgraph.models.tokens import count_tokens
from tgraph.retrieve.base import Context
from tgraph.retrieve.memory import Remembered

FRAME = 24
"""Tokens of the JSON around an item: its id, keys and quotation marks."""


def cost_of(
    item: Edge | Item, tokens: int | None = None, evidence: tuple[Evidence, ...] = ()
) -> int:
    """The tokens of the line by which a model is shown the item. ``tokens`` is the length of its
    text where that is known; an edge is shown with the quotes of its evidence."""
    if isinstance(item, Edge):
        texts = [item.text, *(each.quote for each in evidence)]
        return FRAME + sum(map(count_tokens, texts))
    return (
        FRAME + count_tokens(item.label) + (count_tokens(item.text) if tokens is None else tokens)
    )


def edge_cost(edge: Edge, places: Sequence[Evidence], context: Context) -> int:
    """As ``cost_of`` an edge; what its text and each quote cost is counted once."""
    known: Remembered[str, int] = context.remembered("tokens of edges and quotes", 100_000)
    texts = [(edge.iri, edge.text), *((place.iri, place.quote) for place in places)]
    return FRAME + sum(known.get(iri, partial(count_tokens, text)) for iri, text in texts)
