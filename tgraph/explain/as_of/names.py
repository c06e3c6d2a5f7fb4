"""Past names and paths of recorded resources, including resources deleted from knowledge.

Knowledge holds labels from standing documents. A record also mentions resources known only from
documents retracted, changed or erased since; their evidence and accessions stay in the source
graph. Retrieval never reads names here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import chain

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.evidence import documents_of
from tgraph.index.sources import text_value
from tgraph.index.standing_knowledge import StandingEvidence, commonest_value
from tgraph.index.stored_graph import StoredGraph
from tgraph.model import Edge, Object
from tgraph.record.erasure.scope import MARKED_NAME
from tgraph.retrieve.labels import local_name, read_reified_edges
from tgraph.store.base import Graph, Store


class NamesAsOf:
    """A name reader over a single store state, with a name cache.

    Knowledge and standing accessions come first; other sources are read only if these have no
    name."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stated = StandingEvidence(store, lambda _: True)
        self._names: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._documents: dict[str, tuple[str, str]] = {}

    def entity(self, entity: str) -> str:
        """Return an entity name: label, else most frequent evidence name (standing or not),
        else erasure mark, else an empty string."""
        if entity not in self._names:
            label = self._knowledge_label(entity) or commonest_value(
                self._stated.of_entity(entity), "name"
            )
            self._names[entity] = label or mark_of(entity)
        return self._names[entity]

    def claim(self, claim: str) -> str:
        """Return the most frequent claim description in evidence, standing or not; empty
        without evidence."""
        return commonest_value(self._stated.of_claim(claim), "description")

    def edges(self, edges: Iterable[str]) -> dict[str, Edge]:
        """Return edges by IRI with labels, found like entity names, or local names as fallback;
        IRIs without a reified triple are left out."""
        return {
            iri: replace(
                edge,
                subject_label=self._term_label(edge.subject, edge.subject_label),
                predicate_label=self._relation_label(iri, edge),
                object_label=self._term_label(edge.object, edge.object_label),
            )
            for iri, edge in read_reified_edges(StoredGraph(self._store), edges).items()
        }

    def read_documents(self, documents: Collection[str]) -> None:
        """Read titles and paths of standing documents in one batch."""
        self._documents |= documents_of(self._store, documents)

    def document(self, document: str) -> tuple[str, str]:
        """Return document title and path from the standing accession, else from the last ended
        accession."""
        if document not in self._documents:
            standing = documents_of(self._store, {document}).get(document)
            self._documents[document] = standing or self._former_document(document)
        return self._documents[document]

    # --- what was lost ---

    def _term_label(self, term: Object, label: str) -> str:
        if isinstance(term, Literal) or label != local_name(term.value):
            return label
        return self.entity(term.value) or label

    def _relation_label(self, iri: str, edge: Edge) -> str:
        """Return the relation label from knowledge, else its name in edge evidence."""
        relation, label = edge.predicate.value, edge.predicate_label
        if label != local_name(relation) or self._knowledge_label(relation):
            return label
        evidence = map(self._stated.of_edge, (iri, *self._stated.merged_into(iri)))
        evidence_name = commonest_value(list(chain.from_iterable(evidence)), "name")
        return evidence_name or mark_of(relation) or label

    def _knowledge_label(self, iri: str) -> str:
        if iri not in self._labels:
            labels = values_of(self._store, iri, v.RDFS_LABEL, v.KNOWLEDGE_GRAPH)
            self._labels[iri] = next(iter(labels), "")
        return self._labels[iri]

    def _former_document(self, document: str) -> tuple[str, str]:
        accession_pattern = v.prov("specializationOf"), NamedNode(document), v.SOURCE_GRAPH
        ended: dict[str, list[str]] = {}
        for quad in self._store.match(None, *accession_pattern):
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
    graph: Graph,
    kind: type[Literal] | type[NamedNode] = Literal,
) -> list[str]:
    """Return property values of a subject in a graph: literal texts, or IRIs according to
    ``kind``."""
    quads = store.match(NamedNode(subject), predicate, None, graph)
    return [quad.object.value for quad in quads if isinstance(quad.object, kind)]


def mark_of(iri: str) -> str:
    """Return the erasure mark inside an IRI; empty if missing."""
    match = MARKED_NAME.search(iri)
    return f"[erased {match[0].rpartition('-')[2]}]" if match else ""
