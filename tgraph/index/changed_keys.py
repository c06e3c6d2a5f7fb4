"""Changes of a graph traced to keys of derived data.

A change is known by its quads and by the subjects of its evidence. Data derived from any other
key is unchanged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.index.sources import chunks_of_document, document_of_accession, parts_of_page
from tgraph.index.standing_knowledge import term_value
from tgraph.index.touched import Touched
from tgraph.store.base import Store
from tgraph.store.statements import edge_of

_ACCESSION, _EDGE, _CLAIM = (f"{v.URN}{kind}" for kind in ("accession:", "edge", "claim:"))
_ABOUT = (v.tg("subject"), v.tg("object"))
_OF_DOCUMENTS = v.document_iri(""), f"{v.URN}page:"


@dataclass(frozen=True, slots=True)
class ChangedKeys:
    """Resources (entities, relations, types, chunks, reports, whatever knowledge says something
    of), edges with what they state as far as that is known, claims and documents, by IRI."""

    resources: Collection[str] = ()
    edges: Mapping[str, Triple | None] = field(default_factory=dict)
    claims: Collection[str] = ()
    documents: Collection[str] = ()
    chunks: Collection[str] = ()

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield entity pairs linked by edges, for edges between two resources."""
        for triple in filter(None, self.edges.values()):
            if isinstance(triple.subject, NamedNode) and isinstance(triple.object, NamedNode):
                yield triple.subject.value, triple.object.value


MOST = 100_000
"""Keys that are worth looking at one by one."""


def changed_keys(
    store: Store, quads: Iterable[Quad], touched: Touched, merges: Mapping[str, str]
) -> ChangedKeys | None:
    """Return changed keys of a store, from quads added or removed and ``touched`` subjects of
    changed evidence; None if too many.

    ``merges`` are the standing merges. A renamed resource changes the edges containing it, and
    claims about it."""
    change_reader = _ChangeReader(store, touched, merges)
    for quad in quads:
        change_reader.record_quad(quad)
    for resource in change_reader.renamed:
        change_reader.take_around(NamedNode(resource))
        if change_reader.size > MOST:
            return None
    return change_reader.complete()


class _ChangeReader:
    def __init__(self, store: Store, touched: Touched, merges: Mapping[str, str]) -> None:
        self._store = store
        self._resources = {*touched.entities, *(merges.get(e, e) for e in touched.entities)}
        self._edges: dict[str, Triple | None] = dict(touched.edges)
        self._claims = set(touched.claims)
        self._documents: set[str] = set()
        self.renamed: set[str] = set()

    @property
    def size(self) -> int:
        return len(self._resources) + len(self._edges)

    def record_quad(self, quad: Quad) -> None:
        """Record keys changed by a quad added or removed."""
        subject = quad.subject.value if isinstance(quad.subject, NamedNode) else ""
        if quad.graph_name == v.KNOWLEDGE_GRAPH:
            self._take_knowledge(quad, subject)
        elif subject.startswith(_ACCESSION):
            self._documents.add(document_of_accession(self._store, subject))
        elif subject.startswith(_OF_DOCUMENTS):
            self._documents.add(parts_of_page(subject)[0])

    def _take_knowledge(self, quad: Quad, subject: str) -> None:
        self._resources.add(subject)
        if v.is_statement(quad.predicate):
            self._edges[edge_of(quad.triple)] = quad.triple
        elif quad.predicate == v.RDFS_LABEL:
            self.renamed.add(subject)
        elif subject.startswith(_EDGE):
            self._edges.setdefault(subject, None)
            if quad.predicate == v.tg("original"):
                self._edges.setdefault(term_value(quad.object), None)
        elif quad.predicate in _ABOUT:
            self._resources.add(term_value(quad.object))

    def take_around(self, node: NamedNode) -> None:
        """Record statements and claims involving a resource."""
        match = partial(self._store.match, graph=v.KNOWLEDGE_GRAPH)
        for quad in chain(match(node), match(None, node), match(None, None, node)):
            if v.is_statement(quad.predicate):
                self._edges[edge_of(quad.triple)] = quad.triple
            elif quad.predicate in _ABOUT and quad.object == node:
                self._claims.add(term_value(quad.subject))

    def complete(self) -> ChangedKeys:
        """Return all changed keys, including keys reached from these."""
        store, edges = self._store, self._edges
        for edge in list(edges):
            for name in _named_otherwise(store, edge):
                edges.setdefault(name, None)
        for edge in [edge for edge, triple in edges.items() if triple is None]:
            edges[edge] = _find_triple(store, edge)
        for triple in filter(None, edges.values()):
            self._resources |= {end.value for end in triple if isinstance(end, NamedNode)}
        self._claims |= {name for name in self._resources if name.startswith(_CLAIM)}
        for claim in self._claims:
            for quad in store.match(NamedNode(claim), None, None, v.KNOWLEDGE_GRAPH):
                if quad.predicate in _ABOUT:
                    self._resources.add(term_value(quad.object))
        documents = self._documents - {""}
        chunks = {chunk for document in documents for chunk in chunks_of_document(store, document)}
        return ChangedKeys(self._resources, edges, self._claims, documents, chunks)


def _named_otherwise(store: Store, edge: str) -> set[str]:
    """Return knowledge edges corresponding to a text edge."""
    quads = store.match(None, v.tg("original"), NamedNode(edge), v.KNOWLEDGE_GRAPH)
    return {term_value(quad.subject) for quad in quads}


def _find_triple(store: Store, edge: str) -> Triple | None:
    quads = store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
    return next((quad.object for quad in quads if isinstance(quad.object, Triple)), None)
