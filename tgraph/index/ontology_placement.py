"""Where entities, edges and claims stand under the ontology that leads a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.index.counted_evidence import CountedEvidence
from tgraph.index.name_resolution import Merges, rename_ends
from tgraph.index.ontology_fit import EntityFit, OntologyFit, StatementEnd, ends_of
from tgraph.index.standing_knowledge import Properties, commonest_value, term_value
from tgraph.index.text_edges import TextEdges
from tgraph.index.touched import Touched
from tgraph.store.base import Store


class OntologyPlacement:
    """Fits canonical entities and edges to an ontology; without one all fit as they are."""

    def __init__(
        self, fit: OntologyFit | None, evidence: CountedEvidence, merges: Merges, edges: TextEdges
    ) -> None:
        self._fit = fit
        self._evidence = evidence
        self._merges = merges
        self._edges = edges
        self._fits: dict[str, EntityFit] = {}

    @property
    def is_strict(self) -> bool:
        """Whether what does not fit is kept out of knowledge."""
        return self._fit is not None and self._fit.strict

    def entity_fit(self, entity: str) -> EntityFit:
        """How a canonical entity fits."""
        if self._fit is None:
            return EntityFit()
        if entity not in self._fits:
            evidence = self._evidence.of_entity(*self._merges.names(entity))
            self._fits[entity] = self._fit.entity(evidence, partial(self._stated_ends, entity))
        return self._fits[entity]

    def _stated_ends(self, entity: str) -> Iterator[StatementEnd]:
        """Yield statement ends, from the texts, that denote the entity."""
        names = self._merges.names(entity)
        edges = {e: t for name in names for e, t in self._edges.naming(name).items()}
        for edge, triple in edges.items():
            if self._evidence.texts.of_edge(edge):
                yield from ends_of(set(names), triple)

    def canonical(self, triple: Triple) -> Triple:
        """Return the triple with canonical names, adapted to the ontology."""
        renamed = rename_ends(self._merges.now, triple)
        return self._fit.edge(renamed, self.entity_fit).triple if self._fit else renamed

    def reason_outside(self, triple: Triple) -> str:
        """Why an edge is outside the ontology; empty where it is not."""
        return self._fit.edge(triple, self.entity_fit).reason if self._fit else ""

    def keeps_out(self, claim: Iterable[Quad]) -> bool:
        """Return whether a claim concerns an entity excluded from knowledge by the ontology."""
        properties = (v.tg("subject"), v.tg("object"))
        ends = (term_value(quad.object) for quad in claim if quad.predicate in properties)
        return self.is_strict and any(self.entity_fit(end).reason for end in ends)

    def ends(self, touched: Touched) -> set[str]:
        """The entities that touched edges join: the edges decide on the classes of these."""
        triples = touched.edges.values() if self._fit else ()
        ends = (end for triple in triples for end in (triple.subject, triple.object))
        return {end.value for end in ends if isinstance(end, NamedNode)}

    def find_reclassified(self, store: Store, entities: Iterable[str]) -> set[str]:
        """The names of those of the canonical entities whose class is not the class that the
        knowledge of the store has: edges may mean something else with them."""
        names: set[str] = set()
        for entity in sorted(entities) if self._fit else ():
            node, fit = NamedNode(entity), self.entity_fit(entity)
            quads = list(store.match(node, None, None, v.KNOWLEDGE_GRAPH))
            kinds = {term_value(q.object) for q in quads if q.predicate == v.RDF_TYPE}
            outside = {
                term_value(q.object) for q in quads if q.predicate == v.tg("outsideOntology")
            }
            same = (fit.iri in kinds) if fit.iri else bool(outside)
            if not same or outside != ({fit.reason} if fit.reason else set()):
                names.update(self._merges.names(entity))
        return names

    def class_label(self, kind: str) -> str:
        """The name of a class in the ontology; empty where the ontology lacks the class."""
        return self._fit.ontology.label(kind) if self._fit else ""

    def relation_name(self, relation: NamedNode, evidence: Sequence[Properties]) -> str:
        """The name of a relation, by the ontology or by the evidence of one of its edges."""
        label = self._fit.label(relation.value) if self._fit else ""
        return label or commonest_value(evidence, "name")
