"""Ontology effects in a store state: knowledge properties of document edges, and reasons for
exclusion from an ontology."""

from __future__ import annotations

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.explain.as_of.names import values_of
from tgraph.index.sources import text_value
from tgraph.index.standing_knowledge import StandingEvidence, term_value
from tgraph.store.base import Store

_FIT = v.tg("OntologyFit")


class OntologyAsOf:
    """An ontology reader over a store state; results are empty without a guiding ontology."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._texts = StandingEvidence(store, lambda _: True)
        fits = store.match(None, v.RDF_TYPE, _FIT, v.KNOWLEDGE_GRAPH)
        self.is_led = next(fits, None) is not None

    def meaning(self, edge: str) -> str:
        """Return the knowledge property label of a document edge if it differs from the edge's
        predicate; otherwise an empty string."""
        document_triple = self._texts.triple(edge) if self.is_led else None
        for knowledge_edge in self._knowledge_edges(edge) if document_triple is not None else ():
            triple = self._texts.triple(knowledge_edge)
            if (
                triple is not None
                and document_triple is not None
                and triple.predicate != document_triple.predicate
            ):
                labels = self._property_values(triple.predicate, v.RDFS_LABEL)
                return labels[0] if labels else triple.predicate.value
        return ""

    def outside(self, subject: str) -> str:
        """Return the reason for a document edge or entity outside the ontology; otherwise an
        empty string."""
        if not self.is_led:
            return ""
        names = [subject, *self._knowledge_edges(subject), *self._merged_names(subject)]
        reasons = (
            self._property_values(NamedNode(name), v.tg("outsideOntology")) for name in names
        )
        return next((reason for reason_list in reasons for reason in reason_list), "")

    def is_left_out(self, subject: str) -> bool:
        """Tell whether ontology exclusion explains a subject's absence from knowledge."""
        nodes = map(NamedNode, (subject, *self._knowledge_edges(subject)))
        types = (self._store.match(node, v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH) for node in nodes)
        return bool(self.outside(subject)) and not any(
            next(type_quads, None) for type_quads in types
        )

    def _knowledge_edges(self, edge: str) -> list[str]:
        quads = self._store.match(None, v.tg("original"), NamedNode(edge), v.KNOWLEDGE_GRAPH)
        return [term_value(quad.subject) for quad in quads]

    def _merged_names(self, subject: str) -> list[str]:
        """Return other names of the subject in knowledge, current or past."""
        node = NamedNode(subject)
        quads = list(self._store.match(None, v.tg("mergedFrom"), node, v.SOURCE_GRAPH))
        names = [term_value(quad.subject) for quad in quads]
        for quad in self._store.match(None, v.tg("absorbed"), node, v.SOURCE_GRAPH):
            merge = term_value(quad.subject)
            if not text_value(self._store, merge, v.prov("invalidatedAtTime")):
                names.append(text_value(self._store, merge, v.tg("canonical")))
        return names

    def _property_values(self, subject: NamedNode, predicate: NamedNode) -> list[str]:
        return sorted(values_of(self._store, subject.value, predicate, v.KNOWLEDGE_GRAPH))
