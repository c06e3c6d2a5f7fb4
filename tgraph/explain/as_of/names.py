"""What a record speaks of, by the names and paths that it had, though knowledge has lost them.

Knowledge has the labels of what standing documents say. A record also speaks of what only a
document says that was retracted, changed or erased since; its evidence and its accessions stay in
the source graph. Retrieval never reads names here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import chain

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.evidence import documents_of
from tgraph.index.sources import text_value
from tgraph.index.standing_knowledge import StandingEvidence, commonest
from tgraph.index.stored_graph import StoredGraph
from tgraph.model import Edge, Object
from tgraph.record.erasure.scope import MARKED_NAME
from tgraph.retrieve.labels import local_name, reified
from tgraph.store.base import Graph, Store


class NamesAsOf:
    """Reads one state of a store, each name once. What knowledge or a standing accession says goes
    first; only where they say nothing more is looked up."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stated = StandingEvidence(store, lambda _: True)
        self._names: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._documents: dict[str, tuple[str, str]] = {}

    def entity(self, entity: str) -> str:
        """Its label; else the name that most of its evidence has, standing or not; else the mark of
        an erasure; empty where there is none of these."""
        if entity not in self._names:
            found = self._label(entity) or commonest(self._stated.of_entity(entity), "name")
            self._names[entity] = found or mark_of(entity)
        return self._names[entity]

    def claim(self, claim: str) -> str:
        """What most of its evidence, standing or not, says that it claims; empty without any."""
        return commonest(self._stated.of_claim(claim), "description")

    def edges(self, edges: Iterable[str]) -> dict[str, Edge]:
        """What the edge IRIs reify, with labels that are found in the same way, and local names
        where that fails; an IRI that reifies nothing is left out."""
        return {
            iri: replace(
                edge,
                subject_label=self._end(edge.subject, edge.subject_label),
                predicate_label=self._relation(iri, edge),
                object_label=self._end(edge.object, edge.object_label),
            )
            for iri, edge in reified(StoredGraph(self._store), edges).items()
        }

    def read_documents(self, documents: Collection[str]) -> None:
        """Look those of the documents up at once that stand."""
        self._documents |= documents_of(self._store, documents)

    def document(self, document: str) -> tuple[str, str]:
        """Title and path: that of the standing accession, else of the one that ended last."""
        if document not in self._documents:
            standing = documents_of(self._store, {document}).get(document)
            self._documents[document] = standing or self._former(document)
        return self._documents[document]

    # --- what was lost ---

    def _end(self, term: Object, label: str) -> str:
        if isinstance(term, Literal) or label != local_name(term.value):
            return label
        return self.entity(term.value) or label

    def _relation(self, iri: str, edge: Edge) -> str:
        """The relation as the evidence of the edge names it, where knowledge has no label."""
        relation, label = edge.predicate.value, edge.predicate_label
        if label != local_name(relation) or self._label(relation):
            return label
        evidence = map(self._stated.of_edge, (iri, *self._stated.merged_into(iri)))
        named = commonest(list(chain.from_iterable(evidence)), "name")
        return named or mark_of(relation) or label

    def _label(self, iri: str) -> str:
        if iri not in self._labels:
            found = values_of(self._store, iri, v.RDFS_LABEL, v.KNOWLEDGE_GRAPH)
            self._labels[iri] = next(iter(found), "")
        return self._labels[iri]

    def _former(self, document: str) -> tuple[str, str]:
        about = v.prov("specializationOf"), NamedNode(document), v.SOURCE_GRAPH
        ended: dict[str, list[str]] = {}
        for quad in self._store.match(None, *about):
            assert isinstance(quad.subject, NamedNode)
            accession = quad.subject.value
            time = v.in_time(text_value(self._store, accession, v.prov("invalidatedAtTime")))
            ended.setdefault(time, []).append(text_value(self._store, accession, v.tg("path")))
        path = min(ended[max(ended)]) if ended else ""
        return text_value(self._store, document, v.dcterms("title")), path


def values_of(
    store: Store,
    subject: str,
    predicate: NamedNode,
    graph: Graph | None,
    kind: type[Literal] | type[NamedNode] = Literal,
) -> list[str]:
    """The texts that a graph (None: any) gives a property, or with ``kind`` the IRIs."""
    quads = store.match(NamedNode(subject), predicate, None, graph)
    return [quad.object.value for quad in quads if isinstance(quad.object, kind)]


def mark_of(iri: str) -> str:
    """The mark for what was named by words that an erasure took; empty for any other IRI."""
    found = MARKED_NAME.search(iri)
    return f"[erased {found[0].rpartition('-')[2]}]" if found else ""
