"""What in a collection comes from a document: by derivation, and by names it brought in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.sources import derived
from tgraph.store.base import Store

_ENTITY, _RELATION, _TYPE = (f"{v.URN}{kind}:" for kind in ("entity", "relation", "type"))
NAMED = (_ENTITY, _RELATION, _TYPE)
"""What is named by words: such an IRI is text too."""

_BACKWARD = (v.prov("wasDerivedFrom"), v.tg("point"))
_FORWARD = (v.oa("hasTarget"), v.oa("hasSelector"), v.tg("document"))
_NAMING = (v.tg("entity"), v.tg("subject"), v.tg("object"))


@dataclass(slots=True)
class Affected:
    """What comes from a document.

    ``resources`` are all that derives from it, through every step, the document included.
    ``edges`` are the triples that only it states, by the IRI of the edge; ``evidence`` and
    ``claims`` are its own; ``names`` are the IRIs of entities, relations and types that only it
    brought in, ``grouped`` communities that one of those is a member of.
    """

    document: str
    resources: set[str]
    pages: set[str]
    evidence: set[str] = field(default_factory=set)
    subgraphs: set[str] = field(default_factory=set)
    edges: dict[str, Triple] = field(default_factory=dict)
    claims: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    grouped: set[str] = field(default_factory=set)

    def literals(self, store: Store, predicates: Iterable[NamedNode]) -> Iterator[str]:
        """What is said of the resources by the properties."""
        for predicate in predicates:
            for quad in store.match(None, predicate, None, None):
                if isinstance(quad.object, Literal) and _value(quad.subject) in self.resources:
                    yield quad.object.value


def find_affected(store: Store, document: str) -> Affected:
    """What comes from the document, which must have been retracted: what knowledge still holds
    comes from others too."""
    pages = set(derived(store, document, "Page"))
    found = Affected(document, {document}, pages)
    evidence = _typed(store, "Evidence")
    subgraphs = _typed(store, "Subgraph")
    _spread(store, found.resources)
    found.evidence = evidence & found.resources
    found.subgraphs = subgraphs & found.resources
    _find_edges(store, found)
    _find_claims(store, found)
    _find_names(store, found)
    found.resources |= found.edges.keys() | found.claims
    _spread(store, found.resources)
    for name in sorted(found.names):
        for quad in store.match(None, v.tg("member"), NamedNode(name), None):
            found.grouped.add(_value(quad.subject))
    for former in sorted(found.grouped):
        for quad in store.match(NamedNode(former), v.tg("community"), None, v.SOURCE_GRAPH):
            found.grouped.add(_value(quad.object))
    return found


def _typed(store: Store, kind: str) -> set[str]:
    return {_value(q.subject) for q in store.match(None, v.RDF_TYPE, v.tg(kind), v.SOURCE_GRAPH)}


def _spread(store: Store, resources: set[str]) -> None:
    """Add what is derived from the resources, and the parts of citations and answers."""
    queue = list(resources)
    while queue:
        node = NamedNode(queue.pop())
        near = [
            _value(quad.subject)
            for predicate in _BACKWARD
            for quad in store.match(None, predicate, node, None)
        ]
        near += [
            _value(quad.object)
            for predicate in _FORWARD
            for quad in store.match(node, predicate, None, None)
        ]
        new = set(near) - resources
        resources |= new
        queue += new


def _find_edges(store: Store, found: Affected) -> None:
    own: set[str] = set()
    others: set[str] = set()
    for predicate, mine in ((v.tg("edge"), found.evidence), (v.tg("contains"), found.subgraphs)):
        for quad in store.match(None, predicate, None, v.SOURCE_GRAPH):
            if isinstance(quad.object, NamedNode):
                (own if _value(quad.subject) in mine else others).add(quad.object.value)
    for quad in store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH):
        others.add(_value(quad.subject))
    for edge in own - others:
        for quad in store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH):
            assert isinstance(quad.object, Triple)
            found.edges[edge] = quad.object


def _find_claims(store: Store, found: Affected) -> None:
    others: set[str] = set()
    for quad in store.match(None, v.tg("claim"), None, v.SOURCE_GRAPH):
        mine = _value(quad.subject) in found.evidence
        (found.claims if mine else others).add(_value(quad.object))
    found.claims -= others


def _find_names(store: Store, found: Affected) -> None:
    own: set[str] = set()
    others: set[str] = set()
    for predicate in _NAMING:
        for quad in store.match(None, predicate, None, v.SOURCE_GRAPH):
            mine = _value(quad.subject) in found.evidence
            (own if mine else others).add(_value(quad.object))
    for quad in store.match(None, v.tg("entityType"), None, v.SOURCE_GRAPH):
        mine = _value(quad.subject) in found.evidence
        (own if mine else others).add(v.type_iri(_value(quad.object)))
    for quad in store.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
        assert isinstance(quad.object, Triple)
        mine = _value(quad.subject) in found.edges
        (own if mine else others).update(_parts(quad.object))
    for quad in store.match(None, None, None, v.KNOWLEDGE_GRAPH):
        others.update(_parts(quad.triple))
    found.names = {name for name in own - others if name.startswith(NAMED)}


def _parts(triple: Triple) -> Iterator[str]:
    for term in (triple.subject, triple.predicate, triple.object):
        if isinstance(term, NamedNode):
            yield term.value


def _value(term: object) -> str:
    return term.value if isinstance(term, NamedNode | Literal) else str(term)
