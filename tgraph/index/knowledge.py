"""Knowledge derived from evidence: the content of the default graph, written by this module
only.

Knowledge is a function of the standing evidence alone: arrival order and earlier knowledge have
no influence. A change recomputes touched items: entities and edges whose evidence or canonical
name changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.index.counted_evidence import CountedEvidence
from tgraph.index.decisions import NO_DECISIONS, Decisions
from tgraph.index.descriptions import Descriptions
from tgraph.index.knowledge_quads import (
    KnownTerms,
    claim_quads,
    edge_quads,
    entity_quads,
    outside_quads,
    relation_label,
    type_quads,
)
from tgraph.index.name_resolution import Merges, rename_ends, resolve_names
from tgraph.index.ontology_fit import OntologyFit
from tgraph.index.ontology_placement import OntologyPlacement
from tgraph.index.standing_knowledge import (
    Properties,
    StandingEvidence,
    Weigh,
    term_value,
)
from tgraph.index.text_edges import TextEdges
from tgraph.index.touched import Touched
from tgraph.store.base import Store
from tgraph.store.statements import (
    Pair,
    SpooledQuads,
    Statements,
    edge_of,
    iri_node,
    reifier_quad,
)

_MINTED_TERMS = (v.relation_iri(""), v.type_iri(""))


OnCount = Callable[[int, int], None]
Describe = Callable[[str, Sequence[Properties]], list[Pair]]
"""What knowledge says of a subject with this evidence, to describe it."""


@dataclass(slots=True)
class KnowledgeChange:
    """Quads to add and remove, plus merges created and undone."""

    added: SpooledQuads = field(default_factory=SpooledQuads)
    removed: list[Quad] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    unmerged: dict[str, str] = field(default_factory=dict)
    _gone: set[Quad] = field(default_factory=set)

    def replace(self, existing: Iterable[Quad], desired: Iterable[Quad]) -> None:
        """Have the desired quads in place of the existing ones. Shared descriptions (types) are
        kept: only what is about the subject is removed. A quad that was removed and is desired for
        another reason is added again: additions come last."""
        before, after = set(existing), list(desired)
        gone = sorted(before - set(after), key=str)
        self.removed += gone
        self.added += [q for q in after if q not in before or q in self._gone]
        self._gone.update(gone)


class Derivation:
    """A derivation recomputing store knowledge, given a current source graph."""

    def __init__(
        self,
        store: Store,
        merges: Mapping[str, str],
        stands: Callable[[str], bool],
        decisions: Decisions = NO_DECISIONS,
        describe: Describe | None = None,
        weigh: Weigh | None = None,
        fit: OntologyFit | None = None,
        scratch: Path | None = None,
    ) -> None:
        """Create a derivation.

        ``merges`` maps absorbed entities to current canonical entities; ``stands`` returns
        whether a chunk's document still stands; ``decisions`` contains decisions by people;
        ``describe`` returns the description of a subject, by default all descriptions from the
        texts; ``weigh`` selects evidence that counts differently from its record; ``fit``
        brings entities and edges under an ontology; ``scratch`` is a folder for data that a
        large change does not hold in memory."""
        self._store = store
        self._fit = fit
        self._texts = StandingEvidence(store, stands, weigh)
        self._evidence = CountedEvidence(self._texts, decisions)
        self._place(Merges(dict(merges), dict(merges)))
        self._decisions = decisions
        self._describe = describe or Descriptions(store, None).describe_subject
        self._denied: set[str] = set()
        self._change = KnowledgeChange(SpooledQuads(scratch))
        self._relation_names: dict[str, set[str]] = {}
        self._labelled: set[object] = set()
        self._terms: dict[str, set[str]] = {"Relation": set(), "EntityType": set()}

    def run(
        self, touched: Touched, progress: OnCount = lambda done, total: None
    ) -> KnowledgeChange:
        """Return the change that updates the default graph for touched evidence."""
        before = self._merges.before
        merges = resolve_names(self._evidence, self._decisions, before, touched.entities)
        self._place(merges)
        self._change.merged, self._change.unmerged = merges.new_merges, merges.removed_merges
        renamed = set(merges.new_merges) | set(merges.removed_merges)
        placement = self._placement
        self._denied = {edge_of(placement.canonical(t)) for t in self._decisions.denied}
        names = touched.entities | renamed | placement.ends(touched)
        entities = {mapping.get(e, e) for e in names for mapping in (before, merges.now)}
        moved = renamed | placement.find_reclassified(self._store, entities)
        originals = dict(touched.edges)
        for entity in sorted(moved):
            originals.update(self._edges.naming(entity))
            for triple in self._decisions.denied:  # which knowledge lacks
                originals.update(self._edges.stated_of(triple, entity))
        edges = self._refresh_edges(originals, len(entities), progress)
        for entity in sorted(entities):
            self._refresh_entity(entity)
        for relation in sorted(
            {t.predicate.value for t in edges.values()} | self._terms["Relation"]
        ):
            self._name_relation(NamedNode(relation), edges)
        self._name_types(self._terms["EntityType"] - self._forget_types())
        for claim in sorted(touched.claims.union(*map(self._texts.claims_naming, sorted(moved)))):
            existing = self._store.match(NamedNode(claim), None, None, v.KNOWLEDGE_GRAPH)
            desired = claim_quads(claim, self._evidence.of_claim(claim), merges.now)
            self._change.replace(existing, [] if placement.keeps_out(desired) else desired)
        progress(len(edges) + len(entities), len(edges) + len(entities))
        return self._change

    def _place(self, merges: Merges) -> None:
        """Have entities and edges under these merges."""
        self._merges = merges
        self._edges = TextEdges(self._store, self._texts, merges)
        self._placement = OntologyPlacement(self._fit, self._evidence, merges, self._edges)

    # --- edges ---

    def _refresh_edges(
        self, originals: Mapping[str, Triple], more: int, progress: OnCount
    ) -> dict[str, Triple]:
        """Update former and current knowledge edges of the originals; return the updated edges."""
        edges: dict[str, Triple] = {}
        sources: dict[str, dict[str, Triple]] = {}  # of those that texts know by other names
        for original, triple in originals.items():
            for canonical in dict.fromkeys(self._edge_forms(original, triple)):
                if (edge := edge_of(canonical)) == original:
                    edges[original] = canonical
                else:
                    edges[edge] = canonical
                    sources.setdefault(edge, {})[original] = triple
        for position, edge in enumerate(sorted(edges), 1):
            known_triples = {edge: originals[edge]} if edge in originals else {}
            self._refresh_edge(edge, edges[edge], known_triples | sources.get(edge, {}))
            progress(position, len(edges) + more)
        return edges

    def _refresh_edge(self, edge: str, triple: Triple, known: Mapping[str, Triple]) -> None:
        originals = self._original_edges(edge, known)
        evidence_by_original = {
            original: self._evidence.of_edge(original, original_triple)
            for original, original_triple in originals.items()
        }
        evidence = [item for items in evidence_by_original.values() for item in items]
        desired: list[Quad] = []
        if evidence and edge in self._denied:
            self._link_originals(edge, triple, originals)  # found again once it is denied no more
            evidence = []
        evidence = self._decisions.prevailing(evidence)
        outside = self._placement.reason_outside(triple) if evidence else ""
        if evidence and triple.subject != triple.object and outside and self._placement.is_strict:
            desired = outside_quads(edge, outside)
            self._link_originals(edge, triple, originals)
        elif evidence and triple.subject != triple.object:
            desired = [Quad(triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH)]
            other_originals = [
                original
                for original in originals
                if evidence_by_original[original] and original != edge
            ]
            desired += edge_quads(edge, evidence, other_originals, self._describe(edge, evidence))
            desired += outside_quads(edge, outside)
            self._link_originals(edge, triple, originals)
            names = self._relation_names.setdefault(triple.predicate.value, set())
            names.add(self._placement.relation_name(triple.predicate, evidence))
        existing = list(self._store.match(NamedNode(edge), None, None, v.KNOWLEDGE_GRAPH))
        existing += self._store.match(
            triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH
        )
        self._change.replace(existing, desired)

    def _original_edges(self, edge: str, known: Mapping[str, Triple]) -> dict[str, Triple]:
        """Return text edges that become the given edge under new names, sorted; ``known``
        contains triples already read."""
        candidates = dict(known)
        for original in (edge, *self._texts.merged_into(edge)):
            triple = known[original] if original in known else self._texts.triple(original)
            if triple is not None:
                candidates[original] = triple
        return {
            e: t
            for e, t in sorted(candidates.items())
            if edge_of(self._placement.canonical(t)) == edge
        }

    def _edge_forms(self, original: str, triple: Triple) -> Iterator[Triple]:
        """Yield former and current knowledge triples of a text edge."""
        yield rename_ends(self._merges.before, triple)
        yield self._placement.canonical(triple)
        node = NamedNode(original)
        for quad in self._store.match(None, v.tg("original"), node, v.KNOWLEDGE_GRAPH):
            original_triple = self._texts.triple(term_value(quad.subject))
            if original_triple is not None:
                yield original_triple

    def _link_originals(self, edge: str, triple: Triple, originals: Iterable[str]) -> None:
        """Record the reifier and origins of a canonical edge that the texts express under other
        names."""
        other_originals = [original for original in originals if original != edge]
        if not other_originals:
            return
        out = Statements(v.SOURCE_GRAPH)
        out.add(edge, (v.tg("mergedFrom"), map(iri_node, other_originals)))
        out.quads.append(reifier_quad(edge, triple))
        for original in other_originals:
            node = NamedNode(original)
            for quad in self._store.match(None, v.tg("contains"), node, v.SOURCE_GRAPH):
                out.add(term_value(quad.subject), (v.tg("contains"), iri_node(edge)))
        self._change.added += out.quads

    # --- relations ---

    def _name_relation(self, relation: NamedNode, refreshed: Mapping[str, Triple]) -> None:
        """Update the relation's label: the first lower-case name among the edges' names."""
        is_entity = self._is_entity(relation.value)
        roles = (v.tg("Relation"),) if is_entity else (v.tg("Relation"), None)
        existing = [
            quad
            for quad in self._store.match(relation, None, None, v.KNOWLEDGE_GRAPH)
            if (quad.object if quad.predicate == v.RDF_TYPE else None) in roles
            and not v.is_statement(quad.predicate)
        ]
        names = set(self._relation_names.get(relation.value, ()))
        labels = [term_value(q.object) for q in existing if q.predicate == v.RDFS_LABEL]
        for label in labels if not is_entity else [] if names else [""]:
            if label not in names:
                names |= self._names_elsewhere(relation, label, refreshed)
        out = Statements(v.KNOWLEDGE_GRAPH)
        if names:
            own_label = None if is_entity else relation_label(names)
            out.add(relation.value, (v.RDF_TYPE, v.tg("Relation")), (v.RDFS_LABEL, own_label))
        self._change.replace(existing, out.quads)

    def _is_entity(self, term: str) -> bool:
        """Return whether a relation or type is also an entity, sharing the entity's label."""
        if term.startswith(_MINTED_TERMS):
            return False
        return term not in self._merges.now and bool(self._texts.of_entity(term))

    def _names_elsewhere(
        self, relation: NamedNode, label: str, refreshed: Mapping[str, Triple]
    ) -> set[str]:
        """Return names given to the relation by unchanged edges.

        If an unchanged edge gives the current label, only the label is returned: the label
        still sorts first."""
        names = set()
        for quad in self._store.match(None, relation, None, v.KNOWLEDGE_GRAPH):
            edge = edge_of(quad.triple)
            if edge not in refreshed:
                originals = self._original_edges(edge, {})
                evidence = [
                    item
                    for original_pair in originals.items()
                    for item in self._evidence.of_edge(*original_pair)
                ]
                evidence = self._decisions.prevailing(evidence)
                names.add(self._placement.relation_name(relation, evidence))
                if label in names:
                    return {label}
        return names

    # --- entities ---

    def _refresh_entity(self, entity: str) -> None:
        evidence = self._evidence.of_entity(*self._merges.names(entity))
        existing = []
        for quad in self._store.match(NamedNode(entity), None, None, v.KNOWLEDGE_GRAPH):
            role = (
                term_value(quad.object).removeprefix(v.TG) if quad.predicate == v.RDF_TYPE else ""
            )
            if role in self._terms:
                self._terms[role].add(entity)
            elif not v.is_statement(quad.predicate):
                existing.append(quad)
        is_canonical = evidence and entity not in self._merges.now
        fit = self._placement.entity_fit(entity)
        if is_canonical and fit.reason and self._placement.is_strict:
            self._change.replace(existing, outside_quads(entity, fit.reason))
            return
        described = self._describe(entity, evidence) if is_canonical else []
        desired = self._entity_quads(entity, evidence, described) if is_canonical else []
        self._change.replace([*existing, *self._old_labels(desired)], desired)

    def _entity_quads(
        self, entity: str, evidence: Sequence[Properties], described: Sequence[Pair]
    ) -> list[Quad]:
        fit = self._placement.entity_fit(entity)
        terms = KnownTerms(self._is_entity, self._placement.class_label)
        quads = entity_quads(entity, evidence, described, terms, fit.iri)
        return quads + outside_quads(entity, fit.reason)

    def _old_labels(self, desired: Iterable[Quad]) -> list[Quad]:
        """Return existing labels of an entity's types, each type once."""
        kinds = {q.subject for q in desired if q.object == v.tg("EntityType")} - self._labelled
        self._labelled |= kinds
        return [
            quad
            for kind in kinds
            if isinstance(kind, NamedNode) and not self._is_entity(kind.value)
            for quad in self._store.match(kind, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)
        ]

    def _forget_types(self) -> set[str]:
        """Remove types without entities from knowledge; return the removed types."""
        removed = set(self._change.removed)
        removed_types = {quad.object for quad in removed if quad.predicate == v.RDF_TYPE}
        if not removed_types:
            return set()
        added_types = {quad.object for quad in self._change.added if quad.predicate == v.RDF_TYPE}
        forgotten = set()
        for kind in sorted(removed_types - added_types, key=str):
            if not isinstance(kind, NamedNode) or kind.value.startswith(v.TG):
                continue
            users = self._store.match(None, v.RDF_TYPE, kind, v.KNOWLEDGE_GRAPH)
            if all(quad in removed for quad in users):
                forgotten.add(kind.value)
                gone = [Quad(kind, v.RDF_TYPE, v.tg("EntityType"), v.KNOWLEDGE_GRAPH)]
                if not self._is_entity(kind.value) and not self._is_relation(kind):
                    gone += self._store.match(kind, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)
                self._change.replace([quad for quad in gone if self._store_contains(quad)], [])
        return forgotten

    def _name_types(self, kinds: Iterable[str]) -> None:
        """Restore type labels for types that are no longer entities."""
        for kind in sorted(kinds):
            if not self._is_entity(kind):
                self._change.added += type_quads(kind, self._placement.class_label(kind))

    def _store_contains(self, quad: Quad) -> bool:
        return next(self._store.match(*quad), None) is not None

    def _is_relation(self, kind: NamedNode) -> bool:
        return self._store_contains(Quad(kind, v.RDF_TYPE, v.tg("Relation"), v.KNOWLEDGE_GRAPH))
