"""The small language in which the record is written: a call states things about one resource."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, serialize

from tgraph import vocabulary as v

Value = NamedNode | Literal | str | int | float | bool | datetime
"""What may be stated: a term, or a plain value; a ``str`` is a text (an IRI is a ``NamedNode``)."""

_INTEGER, _DATE_TIME = v.xsd("integer"), v.xsd("dateTime")

Statable = Value | Iterable[Value] | None


def iri(value: str) -> NamedNode:
    return NamedNode(value)


def literal(value: str | int | float | bool | datetime) -> Literal:
    """The canonical literal: xsd:integer, xsd:double (six decimals), xsd:dateTime in UTC..."""
    if isinstance(value, datetime):
        return Literal(_time(value), datatype=_DATE_TIME)
    if isinstance(value, str):
        return Literal(_storable(value))
    if isinstance(value, bool):
        return Literal(value)
    if isinstance(value, int):
        return Literal(str(value), datatype=_INTEGER)
    return v.canonical(Literal(round(value, 6)))


def _time(moment: datetime) -> str:
    """The canonical form: in UTC, with no more digits of a fraction than it has."""
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if moment.microsecond else text) + "Z"


def _storable(text: str) -> str:
    """Text that RDF can hold: lone surrogates become replacement characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


_PREFIXED = (RdfFormat.TRIG, RdfFormat.TURTLE)


class Statements:
    """Quads about to be written into one graph."""

    def __init__(self, graph: NamedNode | DefaultGraph) -> None:
        self.graph = graph
        self.quads: list[Quad] = []

    def add(self, subject: str, *pairs: tuple[NamedNode, Statable]) -> NamedNode:
        """State each (predicate, value) of the subject; None and empty lists state nothing."""
        node, graph, quads = NamedNode(subject), self.graph, self.quads
        for predicate, value in pairs:
            if isinstance(value, NamedNode):
                quads.append(Quad(node, predicate, value, graph))
            elif value is not None:
                quads += [Quad(node, predicate, term, graph) for term in _terms(value)]
        return node


def _terms(value: Statable) -> Iterable[NamedNode | Literal]:
    if value is None:
        return ()
    if isinstance(value, NamedNode):
        return (value,)
    if isinstance(value, str | int | float | datetime):
        return (literal(value),)
    if isinstance(value, Literal):
        return (v.canonical(value),)
    return [term for item in value for term in _terms(item)]


def to_bytes(
    quads: Iterable[Quad] | Iterable[Triple], chosen: RdfFormat = RdfFormat.N_QUADS
) -> bytes:
    """The quads or triples serialised, with tgraph's prefixes where the format has any."""
    prefixes = v.PREFIXES if chosen in _PREFIXED else None
    data = serialize(quads, format=chosen, prefixes=prefixes)
    assert data is not None  # it is None only when writing to a file
    return data


def nquads(quads: Iterable[Quad]) -> str:
    """The quads as N-Quads text, in their order."""
    return to_bytes(quads).decode("utf-8")


def reifier(edge: str, triple: Triple) -> Quad:
    """The edge IRI as a named reifier of its triple, in the source graph."""
    return Quad(NamedNode(edge), v.RDF_REIFIES, triple, v.SOURCE_GRAPH)
