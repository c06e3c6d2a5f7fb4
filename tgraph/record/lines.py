"""Statements that are written down as N-Quads when they are made, for a record is long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from pyoxigraph import DefaultGraph, Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.store.statements import Statable, Statements, literal

_INTEGER = '"^^<http://www.w3.org/2001/XMLSchema#integer>'


class Lines(Statements):
    """Statements about one graph as N-Quads: the same as those of ``Statements``, in its order.

    A third of the time of making quads first and serialising them then.
    """

    def __init__(self, graph: NamedNode | DefaultGraph) -> None:
        super().__init__(graph)
        self._end = f" {graph} .\n"
        self._lines: list[str] = []

    def add(self, subject: str, *pairs: tuple[NamedNode, Statable]) -> NamedNode:
        """As ``Statements.add``."""
        node = NamedNode(subject)
        start, end, lines = str(node), self._end, self._lines
        for predicate, value in pairs:
            if value is not None:
                head = f"{start} {predicate} "
                lines += [f"{head}{term}{end}" for term in _terms(value)]
        return node

    def add_all(
        self,
        subjects: Iterable[tuple[str, Sequence[Statable]]],
        predicates: Sequence[NamedNode],
        *always: tuple[NamedNode, Statable],
    ) -> None:
        """State the same of many subjects: ``always``, and of each its values of the predicates, in
        their order."""
        heads = [f" {predicate} " for predicate in predicates]
        end, lines = self._end, self._lines
        tails = [f" {p} {term}{end}" for p, value in always for term in _terms(value)]
        for subject, values in subjects:
            start = str(NamedNode(subject))
            lines += [start + tail for tail in tails]
            for head, value in zip(heads, values, strict=True):
                if value is not None:
                    lines += [f"{start}{head}{term}{end}" for term in _terms(value)]

    def take(self) -> str:
        """What was stated since the last time."""
        lines, self._lines = self._lines, []
        return "".join(lines)


@lru_cache(maxsize=4096)
def _number(value: float) -> str:
    return str(literal(value))


def _terms(value: Statable) -> Sequence[str]:
    """Each of the terms as N-Quads has it."""
    kind = type(value)
    if kind is NamedNode:
        return (str(value),)
    if kind is int:
        return (f'"{value}{_INTEGER}',)
    if kind is float and value:  # 0.0 and -0.0 are one key, and two literals
        return (_number(value),)  # type: ignore[arg-type]
    if isinstance(value, str | int | float | datetime):
        return (str(literal(value)),)
    if isinstance(value, Literal):
        return (str(v.canonical(value)),)
    assert not isinstance(value, NamedNode)  # which has no subclasses
    return [term for item in value or () for term in _terms(item)]
