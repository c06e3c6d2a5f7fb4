"""Statements: a subject, predicates, values.

``Statements`` makes quads; pyoxigraph writes and reads the quads (``to_bytes``, ``trig``,
``nquads``, ``read_trig``, ``read_nquads``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Self

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, parse, serialize

from tgraph import vocabulary as v
from tgraph.foreign_bytes import DEEPEST

Value = NamedNode | Literal | str | int | float | bool | datetime
"""What may be stated: a term, or a plain value; a ``str`` is a text (an IRI is a ``NamedNode``)."""

Statable = Value | Iterable[Value] | None
Pair = tuple[NamedNode, Statable]

_INTEGER, _DOUBLE, _DATE_TIME = map(v.xsd, ("integer", "double", "dateTime"))


def iri_node(value: str) -> NamedNode:
    return NamedNode(value)


def canonical_literal(value: str | int | float | bool | datetime) -> Literal:
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
    return v.canonicalise_literal(Literal(number))


def _value_terms(value: Statable) -> Iterable[NamedNode | Literal]:
    if isinstance(value, NamedNode):
        return (value,)
    if isinstance(value, str | int | float | datetime):
        return (canonical_literal(value),)
    if isinstance(value, Literal):
        return (v.canonicalise_literal(value),)
    return [term for item in value or () for term in _value_terms(item)]


class Statements:
    """Quads for writing into one graph."""

    def __init__(self, graph: NamedNode | DefaultGraph) -> None:
        self.graph = graph
        self.quads: list[Quad] = []

    def add(self, subject: str, *pairs: Pair) -> NamedNode:
        """State each (predicate, value) pair of a subject; None and empty lists add nothing."""
        node, graph = NamedNode(subject), self.graph
        self.quads += [
            Quad(node, predicate, term, graph)
            for predicate, value in pairs
            for term in _value_terms(value)
        ]
        return node

    def take_quads(self) -> list[Quad]:
        """Return quads stated since the last call."""
        quads, self.quads = self.quads, []
        return quads


def read_nquads(text: str | bytes) -> list[Quad]:
    """Return the quads of N-Quads that tgraph or a store wrote, in their order.

    ``SyntaxError`` where the text is damaged, or nests triple terms deeper than ``DEEPEST``: a
    replica's journal or a log may bring it, and the parser calls itself."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if data.count(_TRIPLE) > DEEPEST and any(map(_is_deep, data.splitlines())):
        raise SyntaxError(f"More than {DEEPEST} triple terms are in each other")
    return list(parse(text, RdfFormat.N_QUADS, lenient=True))


_TRIPLE = b"<<("
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"')


def _is_deep(line: bytes) -> bool:
    return line.count(_TRIPLE) > DEEPEST and _STRING.sub(b"", line).count(_TRIPLE) > DEEPEST


def read_trig(text: str) -> list[Quad]:
    """Return the quads of TriG in their order. ``SyntaxError`` where the text is damaged, or has
    brackets that are nested deeper than ``DEEPEST``."""
    if sum(map(text.count, ("<<", "[", "("))) > DEEPEST:
        _check_brackets(text)
    return list(parse(text, RdfFormat.TRIG))


_TRIG_TOKEN = re.compile(
    r"""\"{3}(?:[^"\\]++|\\.|"(?!""))*+\"{3}|'{3}(?:[^'\\]++|\\.|'(?!''))*+'{3}"""
    r"""|"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+'|<[^<>\s]*+>|\#[^\n]*+"""
    r"""|(?P<opening><<|[\[(])|(?P<closing>>>|[\])])""",
    re.S,
)


def _check_brackets(text: str) -> None:
    depth = 0
    for token in _TRIG_TOKEN.finditer(text):
        if token["opening"]:
            depth += 1
        elif token["closing"]:
            depth -= 1
        if depth > 2 * DEEPEST:  # a triple term opens two
            raise SyntaxError(f"More than {DEEPEST} triple terms or lists are in each other")


def to_bytes(
    quads: Iterable[Quad] | Iterable[Triple], chosen: RdfFormat = RdfFormat.N_QUADS
) -> bytes:
    """Serialise quads or triples, using tgraph prefixes where the format supports prefixes."""
    prefixes = v.PREFIXES if chosen in (RdfFormat.TRIG, RdfFormat.TURTLE) else None
    data = serialize(quads, format=chosen, prefixes=prefixes)
    assert data is not None  # it is None only when writing to a file
    return data


def format_nquads(quads: Iterable[Quad]) -> str:
    """The quads as N-Quads text, in their order."""
    return to_bytes(quads).decode("utf-8")


def trig(quads: Iterable[Quad]) -> str:
    """The quads as TriG text with tgraph's prefixes, in their order; no quads give an
    empty text."""
    rows = list(quads)
    return to_bytes(rows, RdfFormat.TRIG).decode("utf-8") if rows else ""


SPOOLED = 50_000
"""Quads that ``SpooledQuads`` has in memory, about 500 bytes each."""


class SpooledQuads:
    """Quads in insertion order, spooled to a private file in ``folder`` when numerous.

    Callers must ``close`` the spool."""

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
        """Yield all quads; additions during iteration are forbidden."""
        if self._file is not None:
            self._file.seek(0)
            yield from parse(self._file, RdfFormat.N_QUADS, lenient=True)
        yield from self._last

    def close(self) -> None:
        """Discard all quads."""
        self._last = []
        if self._file is not None:
            self._file.close()


def edge_of(triple: Triple) -> str:
    """Return the edge IRI of a triple without blank nodes."""
    assert isinstance(triple.subject, NamedNode)
    assert isinstance(triple.object, NamedNode | Literal)
    return v.edge_iri(triple.subject, triple.predicate, triple.object)


def build_statements(graph: NamedNode | DefaultGraph, subject: str, *pairs: Pair) -> list[Quad]:
    """Return quads stating properties of one subject in a graph."""
    out = Statements(graph)
    out.add(subject, *pairs)
    return out.quads


def reifier_quad(edge: str, triple: Triple) -> Quad:
    """Return a source graph quad naming an edge IRI as reifier of its triple."""
    return Quad(NamedNode(edge), v.RDF_REIFIES, triple, v.SOURCE_GRAPH)
