"""Collection content originating from a document: by derivation, or by names introduced by the
document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.sources import derived_items, readings_of
from tgraph.store.base import Store, match_record

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
    """Resources originating from a document in all its ``readings``, or from previously erased
    documents (``gone``).

    Content shared with the previously erased documents was kept for the document's sake.
    ``resources`` contains everything derived from these documents through every step, the
    documents included. ``before`` contains resources derived only from previously erased
    documents. ``edges`` maps edge IRIs to triples stated only by the document; ``evidence`` and
    ``claims`` belong to the document; ``names`` contains IRIs of entities, relations and types
    introduced only by the document, ``grouped`` communities with such a member."""

    readings: set[str]
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
        """Yield literal values of the resources' given properties."""
        for predicate in predicates:
            for quad in match_record(store, None, predicate):
                if isinstance(quad.object, Literal) and value_of(quad.subject) in self.resources:
                    yield quad.object.value


def find_scope(store: Store, document: str) -> ErasureScope:
    """Return the scope of a retracted document; statements still held by knowledge come from
    other documents too."""
    gone = {
        value_of(used.object)
        for erasure in match_record(store, None, v.RDF_TYPE, v.tg("Erasure"))
        for used in store.match(erasure.subject, v.prov("used"), None, erasure.graph_name)
    }
    fresh = set(readings_of(store, document))
    gone -= fresh  # what is left was erased before
    pages = {page for reading in fresh for page in derived_items(store, reading, "Page")}
    scope = ErasureScope(set(fresh), gone, fresh | gone, pages)
    _add_derived(store, fresh)
    _add_derived(store, scope.resources)
    scope.before = scope.resources - fresh
    scope.evidence = find_resources_of_class(store, "Evidence") & fresh
    scope.subgraphs = find_resources_of_class(store, "Subgraph") & fresh
    _find_edges(store, scope)
    own_claims, other_claims = _split_property_values(store, scope, {v.tg("claim"): scope.evidence})
    scope.claims = own_claims - other_claims
    _find_names(store, scope)
    scope.resources |= scope.edges.keys() | scope.claims
    _add_derived(store, scope.resources)
    scope.resources |= _find_queries(scope.resources)
    for name in sorted(scope.names):
        for graph in (v.KNOWLEDGE_GRAPH, v.SOURCE_GRAPH):
            members = store.match(None, v.tg("member"), NamedNode(name), graph)
            scope.grouped.update(value_of(quad.subject) for quad in members)
    for former in sorted(scope.grouped):
        for quad in store.match(NamedNode(former), v.tg("community"), None, v.SOURCE_GRAPH):
            scope.grouped.add(value_of(quad.object))
    return scope


def find_resources_of_class(store: Store, kind: str) -> set[str]:
    """The resources of the class ``tg:KIND`` in the source graph."""
    return {value_of(q.subject) for q in store.match(None, v.RDF_TYPE, v.tg(kind), v.SOURCE_GRAPH)}


def _add_derived(store: Store, resources: set[str]) -> None:
    """Add resources derived from the given resources, plus parts of citations and answers."""
    queue = list(resources)
    while queue:
        node = NamedNode(queue.pop())
        near = [
            value_of(quad.subject)
            for predicate in _BACKWARD
            for quad in match_record(store, None, predicate, node)
        ]
        near += [
            value_of(quad.object)
            for predicate in _FORWARD
            for quad in match_record(store, node, predicate)
        ]
        new = set(near) - resources
        resources |= new
        queue += new


def _find_queries(resources: Iterable[str]) -> set[str]:
    """Return the computed queries of the answers among the resources: the answer derives from
    the witnesses of a result, and the result is beside them."""
    answers = v.answer_iri("")
    return {
        v.session_part_iri("query", iri.removeprefix(answers))
        for iri in resources
        if iri.startswith(answers)
    }


def _split_property_values(
    store: Store, found: ErasureScope, roles: Mapping[NamedNode, set[str]]
) -> tuple[set[str], set[str]]:
    """Return property values of the resources listed in ``roles``, and property values of other
    resources."""
    own_values: set[str] = set()
    other_values: set[str] = set()
    for predicate, mine in roles.items():
        for quad in store.match(None, predicate, None, v.SOURCE_GRAPH):
            subject = value_of(quad.subject)
            if subject not in found.before:
                (own_values if subject in mine else other_values).add(value_of(quad.object))
    return own_values, other_values


def _find_edges(store: Store, found: ErasureScope) -> None:
    roles = {v.tg("edge"): found.evidence, v.tg("contains"): found.subgraphs}
    own_edges, other_edges = _split_property_values(store, found, roles)
    for quad in store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH):
        other_edges.add(value_of(quad.subject))
    for edge in own_edges - other_edges:
        for quad in store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH):
            assert isinstance(quad.object, Triple)
            found.edges[edge] = quad.object


def _find_names(store: Store, found: ErasureScope) -> None:
    own_names: set[str] = set()
    other_names: set[str] = set()
    for predicate in _NAMING:
        for quad in store.match(None, predicate, None, v.SOURCE_GRAPH):
            mine = value_of(quad.subject) in found.resources
            (own_names if mine else other_names).add(value_of(quad.object))
    for quad in store.match(None, v.tg("entityType"), None, v.SOURCE_GRAPH):
        mine = value_of(quad.subject) in found.resources
        (own_names if mine else other_names).add(v.type_iri(value_of(quad.object)))
    for quad in store.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
        assert isinstance(quad.object, Triple)
        mine = value_of(quad.subject) in found.edges
        (own_names if mine else other_names).update(_iterate_triple_iris(quad.object))
    for quad in store.match(None, None, None, v.KNOWLEDGE_GRAPH):
        other_names.update(_iterate_triple_iris(quad.triple))
    found.names = {
        name for name in own_names - other_names if is_named(name) and not MARKED_NAME.search(name)
    }


def is_named(name: str) -> bool:
    """Return whether an IRI consists of words or comes from an imported graph; both kinds are
    text too."""
    if name.startswith(v.URN):
        return name.startswith((*NAMED, _SKOLEM))
    return v.is_iri(name) and not name.startswith(_SHARED)


def _iterate_triple_iris(triple: Triple) -> Iterator[str]:
    for term in (triple.subject, triple.predicate, triple.object):
        if isinstance(term, NamedNode):
            yield term.value


def value_of(term: object) -> str:
    """Return a term's IRI or text; other terms use N-Triples syntax."""
    return term.value if isinstance(term, NamedNode | Literal) else str(term)
