"""What an ontology made of things, in one state of a store: the property that an edge of the texts
is in knowledge, and why something is outside."""

from __future__ import annotations

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.explain.as_of.names import values_of
from tgraph.index.sources import text_value
from tgraph.index.standing_knowledge import StandingEvidence, value
from tgraph.store.base import Store

_FIT = v.tg("OntologyFit")


class OntologyAsOf:
    """Reads one state of a store; where no ontology led it there is nothing to tell."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._texts = StandingEvidence(store, lambda _: True)
        fits = store.match(None, v.RDF_TYPE, _FIT, v.KNOWLEDGE_GRAPH)
        self.is_led = next(fits, None) is not None

    def meaning(self, edge: str) -> str:
        """The label of the property that an edge of the texts has in knowledge, where that is not
        its own predicate; empty where it is."""
        own = self._texts.triple(edge) if self.is_led else None
        for known in self._became(edge) if own is not None else ():
            triple = self._texts.triple(known)
            if triple is not None and own is not None and triple.predicate != own.predicate:
                labels = self._said(triple.predicate, v.RDFS_LABEL)
                return labels[0] if labels else triple.predicate.value
        return ""

    def outside(self, subject: str) -> str:
        """Why an edge of the texts, or an entity, is outside the ontology; empty where it is
        not."""
        if not self.is_led:
            return ""
        found = [subject, *self._became(subject), *self._merged(subject)]
        reasons = (self._said(NamedNode(one), v.tg("outsideOntology")) for one in found)
        return next((reason for said in reasons for reason in said), "")

    def is_left_out(self, subject: str) -> bool:
        """Whether that is why knowledge does not have it."""
        known = map(NamedNode, (subject, *self._became(subject)))
        types = (self._store.match(node, v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH) for node in known)
        return bool(self.outside(subject)) and not any(next(found, None) for found in types)

    def _became(self, edge: str) -> list[str]:
        quads = self._store.match(None, v.tg("original"), NamedNode(edge), v.KNOWLEDGE_GRAPH)
        return [value(quad.subject) for quad in quads]

    def _merged(self, subject: str) -> list[str]:
        """What it has been in knowledge under other names, now or once."""
        node = NamedNode(subject)
        quads = list(self._store.match(None, v.tg("mergedFrom"), node, v.SOURCE_GRAPH))
        found = [value(quad.subject) for quad in quads]
        for quad in self._store.match(None, v.tg("absorbed"), node, v.SOURCE_GRAPH):
            merge = value(quad.subject)
            if not text_value(self._store, merge, v.prov("invalidatedAtTime")):
                found.append(text_value(self._store, merge, v.tg("canonical")))
        return found

    def _said(self, subject: NamedNode, predicate: NamedNode) -> list[str]:
        return sorted(values_of(self._store, subject.value, predicate, v.KNOWLEDGE_GRAPH))
