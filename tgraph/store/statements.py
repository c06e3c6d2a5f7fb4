"""The small language in which everything is stated: of a subject, predicates with their values.

``Statements`` makes quads. ``NQuads`` and ``TriG`` write the same statements down at once, since
an index run lists hundreds of thousands and the record of a question is long: N-Quads take a
quarter of the time of making quads first and serialising them then, TriG a third.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Self

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, parse, serialize

from tgraph import vocabulary as v

Value = NamedNode | Literal | str | int | float | bool | datetime
"""What may be stated: a term, or a plain value; a ``str`` is a text (an IRI is a ``NamedNode``)."""

Statable = Value | Iterable[Value] | None
Pair = tuple[NamedNode, Statable]

_INTEGER, _DOUBLE, _DATE_TIME = map(v.xsd, ("integer", "double", "dateTime"))


def iri(value: str) -> NamedNode:
    return NamedNode(value)


def literal(value: str | int | float | bool | datetime) -> Literal:
    """The canonical literal: xsd:integer, xsd:double (six decimals), xsd:dateTime in UTC, with no
    more digits of a fraction than it has; lone surrogates become replacement characters."""
    if isinstance(value, datetime):
        text = value.astimezone(UTC).replace(tzinfo=None).isoformat()
        text = text.rstrip("0") if value.microsecond else text
        return Literal(f"{text}Z", datatype=_DATE_TIME)
    if isinstance(value, str):
        return Literal(value.encode("utf-8", "replace").decode())
    if isinstance(value, bool):
        return Literal(value)
    if isinstance(value, int):
        return Literal(str(value), datatype=_INTEGER)
    number = round(value, 6)
    if 1e-3 <= abs(number) < 1e9:  # at most 15 digits, which Python writes as Oxigraph does
        return Literal(float.__repr__(number).removesuffix(".0"), datatype=_DOUBLE)
    return v.canonical(Literal(number))


def _terms(value: Statable) -> Iterable[NamedNode | Literal]:
    if isinstance(value, NamedNode):
        return (value,)
    if isinstance(value, str | int | float | datetime):
        return (literal(value),)
    if isinstance(value, Literal):
        return (v.canonical(value),)
    return [term for item in value or () for term in _terms(item)]


_TYPED_INTEGER = f'"^^{_INTEGER}'
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]')


def _written(value: Statable) -> Sequence[str]:
    """Each of the ``_terms`` of the value, in their order."""
    write = _WRITERS.get(type(value))
    if write is not None:
        return (write(value),)
    if isinstance(value, str | int | float | datetime):
        return (str(literal(value)),)
    assert not isinstance(value, NamedNode | Literal)  # which have no subclasses
    return [term for item in value or () for term in _written(item)]


@lru_cache(maxsize=4096)
def _written_number(value: float) -> str:
    """Not of 0.0 and -0.0, which are one key and two literals."""
    return str(literal(value))


_WRITERS: dict[type, Callable[[Any], str]] = {
    NamedNode: str,
    str: lambda text: str(literal(text)) if _ESCAPED.search(text) else f'"{text}"',
    int: lambda value: f'"{value}{_TYPED_INTEGER}',
    float: lambda value: _written_number(value) if value else str(literal(value)),
    Literal: lambda value: str(v.canonical(value)),
}


class Writer(ABC):
    """Takes statements about one graph."""

    def __init__(self, graph: NamedNode | DefaultGraph) -> None:
        self.graph = graph

    def add(self, subject: str, *pairs: Pair) -> NamedNode:
        """State each (predicate, value) of the subject; None and empty lists state nothing."""
        node = NamedNode(subject)
        self._state(node, pairs)
        return node

    @abstractmethod
    def _state(self, subject: NamedNode, pairs: Iterable[Pair]) -> None: ...


class Statements(Writer):
    """Quads about to be written into one graph."""

    def __init__(self, graph: NamedNode | DefaultGraph) -> None:
        super().__init__(graph)
        self.quads: list[Quad] = []

    def _state(self, subject: NamedNode, pairs: Iterable[Pair]) -> None:
        graph = self.graph
        self.quads += [
            Quad(subject, p, term, graph) for p, value in pairs for term in _terms(value)
        ]


class NQuads(Writer):
    """The statements as N-Quads, in their order, each a line."""

    def __init__(self, graph: NamedNode | DefaultGraph) -> None:
        super().__init__(graph)
        self._end = f" {graph} .\n" if isinstance(graph, NamedNode) else " .\n"
        self._lines: list[str] = []

    def _state(self, subject: NamedNode, pairs: Iterable[Pair]) -> None:
        start, end = str(subject), self._end
        self._lines += [
            f"{start}{_spaced(p)}{term}{end}" for p, value in pairs for term in _written(value)
        ]

    def take(self) -> list[str]:
        """What was stated since the last time, each statement by itself."""
        lines, self._lines = self._lines, []
        return lines


class TriG(Writer):
    """The statements as TriG, a subject to a line."""

    def __init__(self, graph: NamedNode) -> None:
        super().__init__(graph)
        self._lines: list[str] = []

    def _state(self, subject: NamedNode, pairs: Iterable[Pair]) -> None:
        if said := _row(pairs):
            self._lines.append(f"{subject} {said}.\n")

    def add_numbered(
        self, subject: str, predicate: NamedNode, prefix: str, ends: Sequence[str]
    ) -> None:
        """State of the subject that it has the IRIs which begin so, with each of the ends."""
        if ends:
            start = _open(prefix)
            objects = f">,{start}".join(ends)
            self._lines.append(f"{NamedNode(subject)} {_named(predicate)} {start}{objects}>.\n")

    def add_rows(self, prefix: str, rows: Sequence[str]) -> None:
        """State rows (``trig_row``) whose subjects all begin with the prefix."""
        if rows:
            start = _open(prefix)
            self._lines.append(start + start.join(rows))

    def take(self) -> str:
        """What was stated since the last time."""
        lines, self._lines = self._lines, []
        return "".join([_HEAD, f"{self.graph} {{\n", *lines, "}\n"]) if lines else ""


_HEAD = "".join(f"@prefix {name}: <{namespace}> .\n" for name, namespace in v.PREFIXES.items())
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def trig_row(end: str, *pairs: Pair) -> str:
    """What is said of a subject whose IRI ends so, for ``TriG.add_rows``; "" if that is nothing."""
    said = _row(pairs)
    return f"{end}> {said}.\n" if said else ""


def _row(pairs: Iterable[Pair]) -> str:
    said = ((p, ",".join(_written(value))) for p, value in pairs)
    return ";".join([f"{_named(p)} {objects}" for p, objects in said if objects])


def _open(prefix: str) -> str:
    """The IRI that begins so, without its end. ``ValueError`` where it is none."""
    return str(NamedNode(prefix)).removesuffix(">")


@lru_cache(maxsize=4096)
def _named(predicate: NamedNode) -> str:
    """The IRI by one of tgraph's prefixes where it has one."""
    for name, namespace in v.PREFIXES.items():
        local = predicate.value.removeprefix(namespace)
        if local != predicate.value and _PLAIN.fullmatch(local):
            return f"{name}:{local}"
    return str(predicate)


@lru_cache(maxsize=4096)
def _spaced(predicate: NamedNode) -> str:
    return f" {predicate} "


def read_nquads(lines: Iterable[str]) -> list[Quad]:
    """What ``NQuads.take`` gave, as quads, in their order."""
    return list(parse("".join(lines), RdfFormat.N_QUADS, lenient=True))


def read_trig(text: str) -> list[Quad]:
    """What ``TriG.take`` gave, as quads, in their order. ``SyntaxError`` where it is damaged."""
    return list(parse(text, RdfFormat.TRIG))


def to_bytes(
    quads: Iterable[Quad] | Iterable[Triple], chosen: RdfFormat = RdfFormat.N_QUADS
) -> bytes:
    """The quads or triples serialised, with tgraph's prefixes where the format has any."""
    prefixes = v.PREFIXES if chosen in (RdfFormat.TRIG, RdfFormat.TURTLE) else None
    data = serialize(quads, format=chosen, prefixes=prefixes)
    assert data is not None  # it is None only when writing to a file
    return data


def nquads(quads: Iterable[Quad]) -> str:
    """The quads as N-Quads text, in their order."""
    return to_bytes(quads).decode("utf-8")


SPOOLED = 50_000
"""Quads that ``SpooledQuads`` has in memory, about 500 bytes each."""


class SpooledQuads:
    """Quads in the order in which they came; where they are many, in a file in the folder that
    nobody else sees. ``close`` it."""

    def __init__(self, folder: Path | None = None, in_memory: int = SPOOLED) -> None:
        self._folder = folder
        self._limit = in_memory
        self._last: list[Quad] = []
        self._file: BinaryIO | None = None

    def __iadd__(self, quads: Iterable[Quad]) -> Self:
        self._last += quads
        if len(self._last) > self._limit:
            if self._file is None:
                self._file = TemporaryFile(dir=self._folder)  # noqa: SIM115
            self._file.write(to_bytes(self._last))
            self._last = []
        return self

    def __iter__(self) -> Iterator[Quad]:
        """All of them; none may be added meanwhile."""
        if self._file is not None:
            self._file.seek(0)
            yield from parse(self._file, RdfFormat.N_QUADS, lenient=True)
        yield from self._last

    def close(self) -> None:
        """They are gone."""
        self._last = []
        if self._file is not None:
            self._file.close()


def edge_of(triple: Triple) -> str:
    """The IRI of the edge that a triple without blank nodes is."""
    assert isinstance(triple.subject, NamedNode)
    assert isinstance(triple.object, NamedNode | Literal)
    return v.edge_iri(triple.subject, triple.predicate, triple.object)


def stated(graph: NamedNode | DefaultGraph, subject: str, *pairs: Pair) -> list[Quad]:
    """What is said of one subject in the graph."""
    out = Statements(graph)
    out.add(subject, *pairs)
    return out.quads


def reifier(edge: str, triple: Triple) -> Quad:
    """The edge IRI as a named reifier of its triple, in the source graph."""
    return Quad(NamedNode(edge), v.RDF_REIFIES, triple, v.SOURCE_GRAPH)
