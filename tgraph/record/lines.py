"""Statements that are written down as TriG when they are made, for a record is long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from tgraph import vocabulary as v
from tgraph.record.terms import terms
from tgraph.store.statements import Statable, Statements

_HEAD = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in v.PREFIXES.items())
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Lines(Statements):
    """Statements about one graph as TriG: the same as those of ``Statements``, in its order.

    A third of the time of making quads first and serialising them then.
    """

    def __init__(self, graph: NamedNode) -> None:
        super().__init__(graph)
        self._lines: list[str] = []

    def add(self, subject: str, *pairs: tuple[NamedNode, Statable]) -> NamedNode:
        """As ``Statements.add``."""
        node = NamedNode(subject)
        said = [line for p, value in pairs if (line := _predicated(_named(p), value))]
        if said:
            self._lines.append(f"{node} {';'.join(said)}.\n")
        return node

    def add_all(
        self,
        subjects: Iterable[tuple[str, Sequence[Statable]]],
        predicates: Sequence[NamedNode],
        *always: tuple[NamedNode, Statable],
    ) -> None:
        """State the same of many subjects: ``always``, and of each its values of the predicates, in
        their order."""
        rows = rows_of(subjects, predicates, *always)
        self._lines += [f"{NamedNode(subject)} {row}.\n" for subject, row in rows]

    def add_numbered(
        self, subject: str, predicate: NamedNode, prefix: str, ends: Sequence[str]
    ) -> None:
        """State of the subject that it has the IRIs which begin so, with each of the ends."""
        if ends:
            start = _open(prefix)
            objects = f">,{start}".join(ends)
            self._lines.append(f"{NamedNode(subject)} {_named(predicate)} {start}{objects}>.\n")

    def add_rows(self, prefix: str, rows: Sequence[str]) -> None:
        """State rows that lack only the beginning of their subject, which is the same of all."""
        if rows:
            start = _open(prefix)
            self._lines.append(start + start.join(rows))

    def take(self) -> str:
        """What was stated since the last time."""
        lines, self._lines = self._lines, []
        return "".join([_HEAD, f"{self.graph} {{\n", *lines, "}\n"]) if lines else ""


def quads_of(text: str) -> list[Quad]:
    """What ``Lines.take`` gave, as quads, in their order. ``SyntaxError`` where it is damaged."""
    return list(parse(text, RdfFormat.TRIG))


def rows_of(
    subjects: Iterable[tuple[str, Sequence[Statable]]],
    predicates: Sequence[NamedNode],
    *always: tuple[NamedNode, Statable],
) -> Iterator[tuple[str, str]]:
    """For each of the subjects that anything is said of, what ``Lines.add_all`` says of it."""
    names = [_named(predicate) for predicate in predicates]
    start = [line for p, value in always if (line := _predicated(_named(p), value))]
    for subject, values in subjects:
        found = zip(names, values, strict=True)
        said = start + [line for name, value in found if (line := _predicated(name, value))]
        if said:
            yield subject, ";".join(said)


def stated(predicate: NamedNode, value: Statable) -> str:
    """What a row says of its subject, if that is all; nothing where there is no value."""
    return _predicated(_named(predicate), value)


def _open(prefix: str) -> str:
    """The IRI that begins so, without its end. ``ValueError`` where it is none."""
    return str(NamedNode(prefix)).removesuffix(">")


def _predicated(name: str, value: Statable) -> str:
    """The predicate with its objects; nothing where there are none."""
    if value is None:
        return ""
    if type(value) is int or type(value) is NamedNode:
        return f"{name} {value}"
    objects = terms(value)
    return f"{name} {','.join(objects)}" if objects else ""


@lru_cache(maxsize=4096)
def _named(predicate: NamedNode) -> str:
    """The IRI by one of tgraph's prefixes where it has one."""
    for name, namespace in v.PREFIXES.items():
        local = predicate.value.removeprefix(namespace)
        if local != predicate.value and _PLAIN.fullmatch(local):
            return f"{name}:{local}"
    return str(predicate)
