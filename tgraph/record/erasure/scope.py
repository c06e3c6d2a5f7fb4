"""What in a collection comes from a document: by derivation, and by names it brought in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.sources import derived
from tgraph.store.base import Store

_ENTITY, _RELATION, _TYPE = (f"{v.URN}{kind}:" for kind in ("entity", "relation", "type"))
_SKOLEM = f"{v.URN}skolem:"
NAMED = (_ENTITY, _RELATION, _TYPE)
"""What is named by words: such an IRI is text too."""

MARKED_NAME = re.compile(r":erased-[0-9a-f]{16}$")
"""How an IRI ends that took the place of one that was named by words."""

_BACKWARD = (v.prov("wasDerivedFrom"), v.tg("point"))
_FORWARD = (v.oa("hasTarget"), v.oa("hasSelector"), v.tg("document"))
_NAMING = (
    *(v.tg("entity"), v.tg("subject"), v.tg("object")),
    *(v.tg("same"), v.tg("entityClass"), v.tg("graph"), v.prov("hadPrimarySource")),
)
_SHARED = tuple(v.PREFIXES.values())


@dataclass(slots=True)
class ErasureScope:
    """What comes from a document, or from documents that were erased before (``gone``): what these
    had in common with it was kept for its sake.

    ``resources`` are all that derives from them, through every step, the documents included.
    ``before`` are those that derive from the documents that were erased before only.
    ``edges`` are the triples that only it states, by the IRI of the edge; ``evidence`` and
    ``claims`` are its own; ``names`` are the IRIs of entities, relations and types that only it
    brought in, ``grouped`` communities that one of those is a member of.
    """

    document: str
    gone: set[str]
    resources: set[str]
    pages: set[str]
    before: set[str] = field(default_factory=set)
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
                if isinstance(quad.object, Literal) and value_of(quad.subject) in self.resources:
                    yield quad.object.value


def find_scope(store: Store, document: str) -> ErasureScope:
    """What comes from the document, which must have been retracted: what knowledge still holds
    comes from others too."""
    gone = {
        value_of(used.object)
        for erasure in store.match(None, v.RDF_TYPE, v.tg("Erasure"), None)
        for used in store.match(erasure.subject, v.prov("used"), None, erasure.graph_name)
    } - {document}  # that were erased before
    found = ErasureScope(document, gone, {document, *gone}, set(derived(store, document, "Page")))
    fresh = {document}
    _spread(store, fresh)
    _spread(store, found.resources)
    found.before = found.resources - fresh
    found.evidence = typed(store, "Evidence") & fresh
    found.subgraphs = typed(store, "Subgraph") & fresh
    _find_edges(store, found)
    own, others = _stated(store, found, {v.tg("claim"): found.evidence})
    found.claims = own - others
    _find_names(store, found)
    found.resources |= found.edges.keys() | found.claims
    _spread(store, found.resources)
    for name in sorted(found.names):
        for quad in store.match(None, v.tg("member"), NamedNode(name), None):
            found.grouped.add(value_of(quad.subject))
    for former in sorted(found.grouped):
        for quad in store.match(NamedNode(former), v.tg("community"), None, v.SOURCE_GRAPH):
            found.grouped.add(value_of(quad.object))
    return found


def typed(store: Store, kind: str) -> set[str]:
    """The resources of the class ``tg:KIND`` in the source graph."""
    return {value_of(q.subject) for q in store.match(None, v.RDF_TYPE, v.tg(kind), v.SOURCE_GRAPH)}


def _spread(store: Store, resources: set[str]) -> None:
    """Add what is derived from the resources, and the parts of citations and answers."""
    queue = list(resources)
    while queue:
        node = NamedNode(queue.pop())
        near = [
            value_of(quad.subject)
            for predicate in _BACKWARD
            for quad in store.match(None, predicate, node, None)
        ]
        near += [
            value_of(quad.object)
            for predicate in _FORWARD
            for quad in store.match(node, predicate, None, None)
        ]
        new = set(near) - resources
        resources |= new
        queue += new


def _stated(
    store: Store, found: ErasureScope, roles: Mapping[NamedNode, set[str]]
) -> tuple[set[str], set[str]]:
    """What the properties name for these resources, and what they name for others."""
    own: set[str] = set()
    others: set[str] = set()
    for predicate, mine in roles.items():
        for quad in store.match(None, predicate, None, v.SOURCE_GRAPH):
            subject = value_of(quad.subject)
            if subject not in found.before:
                (own if subject in mine else others).add(value_of(quad.object))
    return own, others


def _find_edges(store: Store, found: ErasureScope) -> None:
    roles = {v.tg("edge"): found.evidence, v.tg("contains"): found.subgraphs}
    own, others = _stated(store, found, roles)
    for quad in store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH):
        others.add(value_of(quad.subject))
    for edge in own - others:
        for quad in store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH):
            assert isinstance(quad.object, Triple)
            found.edges[edge] = quad.object


def _find_names(store: Store, found: ErasureScope) -> None:
    own: set[str] = set()
    others: set[str] = set()
    for predicate in _NAMING:
        for quad in store.match(None, predicate, None, v.SOURCE_GRAPH):
            mine = value_of(quad.subject) in found.resources
            (own if mine else others).add(value_of(quad.object))
    for quad in store.match(None, v.tg("entityType"), None, v.SOURCE_GRAPH):
        mine = value_of(quad.subject) in found.resources
        (own if mine else others).add(v.type_iri(value_of(quad.object)))
    for quad in store.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
        assert isinstance(quad.object, Triple)
        mine = value_of(quad.subject) in found.edges
        (own if mine else others).update(_parts(quad.object))
    for quad in store.match(None, None, None, v.KNOWLEDGE_GRAPH):
        others.update(_parts(quad.triple))
    found.names = {name for name in own - others if is_named(name) and not MARKED_NAME.search(name)}


def is_named(name: str) -> bool:
    """Whether an IRI is one of words, or one that a graph brought: both are text too."""
    if name.startswith(v.URN):
        return name.startswith((*NAMED, _SKOLEM))
    return v.is_iri(name) and not name.startswith(_SHARED)


def _parts(triple: Triple) -> Iterator[str]:
    for term in (triple.subject, triple.predicate, triple.object):
        if isinstance(term, NamedNode):
            yield term.value


def value_of(term: object) -> str:
    """The IRI or the text of a term; what else there is as N-Triples has it."""
    return term.value if isinstance(term, NamedNode | Literal) else str(term)
