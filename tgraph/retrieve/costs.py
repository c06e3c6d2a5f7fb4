"""What a candidate costs in a prompt, without loading a tokenizer's ranks."""

from __future__ import annotations

from tgraph.model import Edge, Evidence, Item

_BYTES_OF_A_TOKEN = 3
"""Prose has more than that on average (about 4.3 in English), so the estimate is on the safe side;
the prompt as a whole is counted exactly where it comes near its limit."""

FRAME = 24
"""Tokens of the JSON around an item: its id, keys and quotation marks."""


def estimate(text: str) -> int:
    """About as many tokens as the text has, seldom fewer."""
    return len(text.encode("utf-8", "surrogatepass")) // _BYTES_OF_A_TOKEN + 1


def cost_of(
    item: Edge | Item, tokens: int | None = None, evidence: tuple[Evidence, ...] = ()
) -> int:
    """The tokens of the line by which a model is shown the item. ``tokens`` is the length of its
    text where that is known; an edge is shown with the quotes of its evidence."""
    if isinstance(item, Edge):
        return FRAME + estimate(item.text) + sum(estimate(each.quote) for each in evidence)
    return FRAME + estimate(item.label) + (estimate(item.text) if tokens is None else tokens)
