"""Candidate queries and the parts that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph.compute.algebra import Condition, Path, Query
from tgraph.compute.linking import Span

ASSUMED_CLASS, ASSUMED_PROPERTY, ASSUMED_VERB = 0.9, 0.8, 0.7
"""How sure a candidate is whose class, or measured property, the question doesn't name, and one
whose verb says no more than that a thing has a value."""


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """A query that a question may mean: the words that it accounts for, how sure each of its links
    is, and the reasons in words. ``is_computing`` tells a computation from looking a value up."""

    query: Query
    span: Span
    scores: tuple[float, ...]
    reasons: tuple[str, ...]
    is_computing: bool = True


@dataclass(frozen=True, slots=True)
class QueryPart:
    """A part of a candidate: conditions, or a measured path, with its words and sureness."""

    span: Span = frozenset()
    scores: tuple[float, ...] = ()
    reasons: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    only: tuple[NamedNode, ...] = ()
    path: Path | None = None

    def __add__(self, other: QueryPart) -> QueryPart:
        return QueryPart(
            self.span | other.span,
            self.scores + other.scores,
            self.reasons + other.reasons,
            self.conditions + other.conditions,
            self.only + other.only,
            self.path or other.path,
        )


def sum_parts(parts: Sequence[QueryPart]) -> QueryPart:
    """Return the parts as one."""
    total = QueryPart()
    for part in parts:
        total += part
    return total
