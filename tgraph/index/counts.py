"""How many relationships entities have, and how many tokens chunks: of some, or of all at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.index.knowledge import is_statement
from tgraph.store.base import Store, select, text_of

MOST_COUNTED = 2_000
"""Relationships of an entity that are looked at, each way."""


def degree_of(store: Store, entity: str) -> int:
    """How many relationships and attributes an entity has, at most ``MOST_COUNTED`` each way."""
    node = NamedNode(entity)
    outgoing = store.match(node, None, None, v.KNOWLEDGE_GRAPH)
    incoming = store.match(None, None, node, v.KNOWLEDGE_GRAPH)
    return sum(1 for way in (outgoing, incoming) for _ in islice(_statements(way), MOST_COUNTED))


def degrees(store: Store) -> dict[str, int]:
    """``degree_of`` every entity that has any."""
    outgoing: Counter[str] = Counter()
    incoming: Counter[str] = Counter()
    for row in select(store, "index/predicates", union=False):
        predicate = row["predicate"]
        if isinstance(predicate, NamedNode) and is_statement(predicate):
            for quad in store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
                outgoing[text_of(quad.subject)] += 1
                if isinstance(quad.object, NamedNode):
                    incoming[quad.object.value] += 1
    return {
        entity: min(outgoing[entity], MOST_COUNTED) + min(incoming[entity], MOST_COUNTED)
        for entity in outgoing.keys() | incoming.keys()
    }


def _statements(quads: Iterable[Quad]) -> Iterable[Quad]:
    return (quad for quad in quads if is_statement(quad.predicate))


def tokens_of(store: Store, chunks: Sequence[str]) -> dict[str, int]:
    """The lengths of the chunks in tokens, as counted when they were made."""
    nodes = [NamedNode(chunk) for chunk in chunks]
    rows = select(store, "retrieve/chunk-tokens", {"chunks": nodes})
    return {text_of(row["chunk"]): int(text_of(row["tokens"])) for row in rows}


def all_tokens(store: Store) -> dict[str, int]:
    """``tokens_of`` every chunk."""
    rows = select(store, "index/chunk-tokens")
    return {text_of(row["chunk"]): int(text_of(row["tokens"])) for row in rows}
