"""A record without triple terms, for engines and libraries that have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v


def classic(quads: Iterable[Quad]) -> Iterator[Quad]:
    """The same quads without triple terms, for engines and libraries that have none.

    ``edge rdf:reifies <<( s p o )>>`` becomes ``edge a rdf:Statement`` with subject, predicate and
    object; everything is in the default graph.
    """
    for quad in dict.fromkeys(quads):
        if isinstance(quad.object, Triple):
            yield from _statement(quad.subject, quad.object)
        else:
            yield Quad(quad.subject, quad.predicate, quad.object, DefaultGraph())


def _statement(edge: object, triple: Triple) -> Iterator[Quad]:
    assert isinstance(edge, NamedNode)
    parts: tuple[tuple[str, object], ...] = (
        ("type", NamedNode(v.RDF + "Statement")),
        ("subject", triple.subject),
        ("predicate", triple.predicate),
        ("object", triple.object),
    )
    for name, term in parts:
        assert isinstance(term, NamedNode | Literal)
        yield Quad(edge, NamedNode(v.RDF + name), term, DefaultGraph())
