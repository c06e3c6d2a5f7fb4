"""Linking: the entities and edges that keywords lead to, each keyword by itself.

A question about several things is about each of them: were its keywords one text, what lies between
them would be nearest, and what only one of them is like would not be found.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

from tgraph.retrieve.base import Context
from tgraph.retrieve.seeds import match_names

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Link:
    """An entity or edge with the keyword that led to it; ``method`` is ``name`` or ``vector``."""

    iri: str
    keyword: str
    score: float
    method: str


def linked_entities(
    keywords: Sequence[str], count: int, least_score: float, context: Context
) -> list[Link]:
    """At most ``count`` entities, the keywords taking turns: first what is called so, then what is
    nearest to the keyword, down to ``least_score`` (cosine)."""
    near = _nearest("entity", keywords, count, least_score, context)
    named = [
        [Link(entity, keyword, 1.0, "name") for entity in match_names(keyword, context.store)]
        for keyword in keywords
    ]
    pairs = zip(named, near, strict=True)
    return in_turn([[*exact, *others] for exact, others in pairs], _iri)[:count]


def linked_edges(
    keywords: Sequence[str], count: int, least_score: float, context: Context
) -> list[Link]:
    """At most ``count`` edges, the keywords taking turns, the nearest to each first."""
    return in_turn(_nearest("edge", keywords, count, least_score, context), _iri)[:count]


def _nearest(
    kind: str, keywords: Sequence[str], count: int, least_score: float, context: Context
) -> list[list[Link]]:
    if not keywords:
        return []
    results = context.vectors[kind].search(context.embed(list(keywords)), count)
    return [
        [Link(iri, keyword, max(0.0, s), "vector") for iri, s in hits if s >= least_score]
        for keyword, hits in zip(keywords, results, strict=True)
    ]


def _iri(link: Link) -> str:
    return link.iri


def in_turn(lists: Iterable[Sequence[T]], key: Callable[[T], Hashable]) -> list[T]:
    """The first of each list, then the second of each, and so on; what has come is passed over."""
    absent = object()
    found: dict[Hashable, T] = {}
    for row in zip_longest(*lists, fillvalue=absent):
        for item in row:
            if item is not absent:
                found.setdefault(key(item), item)  # type: ignore[arg-type]
    return list(found.values())
