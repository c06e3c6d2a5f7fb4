"""A session's record with everything that it refers to, and without triple terms where wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.record.bundle import ERASURE, EVALUATION, INFLUENCE, INVALIDATION, VERIFICATION
from tgraph.store.base import Store

_PROV = (
    "wasDerivedFrom wasGeneratedBy specializationOf wasRevisionOf wasAssociatedWith"
    " qualifiedAssociation agent hadPlan used"
)
_FOLLOWED = frozenset(
    (*map(v.prov, _PROV.split()), *map(v.tg, ("edge", "mergedFrom", "sentence")))
) | {v.dcterms("isPartOf")}
_RECORDS = (VERIFICATION, INFLUENCE, EVALUATION, INVALIDATION, ERASURE)


def session_quads(store: Store, bundle: str) -> list[Quad]:
    """The quads of a bundle and, from the source graph, of all that they refer to: agents, plans,
    reifiers, evidence, chunks, pages, documents, extractions."""
    graph = NamedNode(bundle)
    own = list(store.match(None, None, None, graph))
    described = {quad.subject for quad in own}
    queue = [term for quad in own for term in (quad.object,) if isinstance(term, NamedNode)]
    found: list[Quad] = []
    seen: set[NamedNode] = set()
    while queue:
        node = queue.pop()
        if node in seen or node in described:
            continue
        seen.add(node)
        for quad in store.match(node, None, None, v.SOURCE_GRAPH):
            if quad.predicate == v.tg("call"):
                continue  # the thousands of an index run, none of which is described here
            found.append(quad)
            if quad.predicate in _FOLLOWED and isinstance(quad.object, NamedNode):
                queue.append(quad.object)
    return sorted(own, key=str) + sorted(found, key=str)


def catalogue_quads(store: Store, bundle: str, catalogue: str) -> list[Quad]:
    """What the catalogue says of the bundle."""
    return sorted(store.match(NamedNode(bundle), None, None, NamedNode(catalogue)), key=str)


def bundle_of(store: Store, catalogue: str, name: str) -> str | None:
    """The bundle of the verification, influence analysis or other record that has the IRI and is
    no session; None where there is none."""
    for kind in _RECORDS:
        if name.startswith(kind.subject_iri("")):
            with suppress(ValueError):  # what a person types need not be an IRI
                named = NamedNode(name)
                for quad in store.match(None, kind.subject_property, named, NamedNode(catalogue)):
                    assert isinstance(quad.subject, NamedNode)
                    return quad.subject.value
    return None


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
