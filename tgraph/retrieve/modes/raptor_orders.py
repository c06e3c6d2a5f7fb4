"""Where the modes ``raptor`` and ``raptor-traversal`` cut: the nodes of the tree of summaries, all
together or layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from tgraph.errors import TgraphError
from tgraph.index.tree import TreeNode, is_chunk, summary_title
from tgraph.retrieve.base import Context
from tgraph.retrieve.basic import in_conversation
from tgraph.retrieve.orders import (
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    iris,
)
from tgraph.retrieve.raptor import layers, nearest_nodes, tree_of
from tgraph.store.base import Store


def raptor_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The nodes of all levels together."""
    cutoff, wanted = context.settings.raptor_search.k, _carriers(missing, context)
    order: Sequence[str] = ()
    with suppress(TgraphError):
        every = sum(len(context.vectors[kind]) for kind in ("summary", "chunk"))
        vector = context.embed([in_conversation(search.question)])
        order = iris(nearest_nodes(vector, max(1, every), context))
    if wanted and not order:
        why = f"it is not among the {cutoff} nodes of the tree nearest to the question (k)"
        yield CutOff("k", cutoff, None, why)
    why = f"nodes of the tree by likeness to the question, of which the first {cutoff} were taken"
    yield RankedOrder("k", cutoff, order, wanted, f"{why} (k)")


def traversal_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The layers of the tree, from the lowest that was come to: in it, or above it, the way down
    was cut."""
    cutoff, tree = context.settings.raptor_search.top_k, tree_of(context)
    family = _family(tree, _carriers(missing, context))
    found: list[Sequence[str]] = []
    with suppress(TgraphError):
        vector = context.embed([in_conversation(search.question)])
        found = [iris(layer) for layer in layers(vector, cutoff, context)]
    if family and not any(found):
        why = f"of each layer of the tree {cutoff} nodes were followed, others than lead to it"
        yield CutOff("top-k", cutoff, None, f"{why} (top-k)")
    for depth, layer in reversed(list(enumerate(found, 1))):
        who = partial(_node, depth, context.store)
        why = f"by likeness to the question, and {cutoff} were followed (top-k)"
        yield RankedOrder("top-k", cutoff, layer, family, why, who)


def _node(depth: int, store: Store, node: str) -> str:
    who = "it" if is_chunk(node) else f"the summary “{summary_title(store, node)}” above it"
    return f"in layer {depth} from the top of the tree {who}"


def _carriers(missing: Missing, context: Context) -> set[str]:
    """The chunks that it stands in, and the summaries that speak of it."""
    return {*missing.chunks, *(iri for iri in tree_of(context) if missing.tells(iri))}


def _family(tree: Mapping[str, TreeNode], items: set[str]) -> set[str]:
    """The items and all that is above them."""
    found = set(items)
    for node in tree.values():  # in the order of their levels
        if found.intersection(node.members):
            found.add(node.iri)
    return found
