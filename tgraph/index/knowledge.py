"""Knowledge derived from evidence: what the default graph says, and nothing else writes it.

Knowledge is a function of the standing evidence and of nothing else: not of the order in which it
came, nor of what stood before. A change recomputes what it touches: the entities and edges whose
evidence or whose canonical name changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.extract.resolution import Name, resolve
from tgraph.index.decisions import NO_DECISIONS, Decisions, amends
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
from tgraph.index.ontology_fit import End, EntityFit, OntologyFit, ends_of
from tgraph.index.standing_knowledge import (
    Properties,
    StandingEvidence,
    Weigh,
    commonest,
    distinct,
    type_of,
    value,
)
from tgraph.index.touched import Touched
from tgraph.store.base import Store
from tgraph.store.statements import (
    Pair,
    SpooledQuads,
    Statements,
    edge_of,
    iri,
    reifier,
)

_CLAIMED = ("subject", "object")
_MINTED_TERMS = (v.relation_iri(""), v.type_iri(""))


Progress = Callable[[int, int], None]
Describe = Callable[[str, Sequence[Properties]], list[Pair]]
"""What knowledge says of a subject with this evidence, to describe it."""


@dataclass(slots=True)
class KnowledgeChange:
    """Quads to add to and to remove from the store, and the merges that were made and undone."""

    added: SpooledQuads = field(default_factory=SpooledQuads)
    removed: list[Quad] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    unmerged: dict[str, str] = field(default_factory=dict)


class Derivation:
    """Recomputes knowledge in a store whose source graph is already up to date."""

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
        """``merges`` maps absorbed entities to canonical ones as of now; ``stands`` tells whether a
        chunk's document still stands; ``decisions`` are those of people; ``describe``
        says how a subject is described, by default in every way that the texts have; ``weigh``
        tells what evidence counts for that does not count as it is; ``fit`` brings entities and
        edges under an ontology; ``scratch`` is a folder for what a large change does not hold in
        memory."""
        self._store = store
        self._fit = fit
        self._fits: dict[str, EntityFit] = {}
        self._members: dict[str, list[str]] = {}
        self._texts = StandingEvidence(store, stands, weigh)
        self._old = dict(merges)
        self._decisions = decisions
        self._describe = describe or Descriptions(store, None).of
        self._new: dict[str, str] = {}
        self._denied: set[str] = set()
        self._change = KnowledgeChange(SpooledQuads(scratch))
        self._relation_names: dict[str, set[str]] = {}
        self._gone: set[Quad] = set()
        self._labelled: set[object] = set()
        self._terms: dict[str, set[str]] = {"Relation": set(), "EntityType": set()}

    def run(
        self, touched: Touched, progress: Progress = lambda done, total: None
    ) -> KnowledgeChange:
        """The change that brings the default graph up to date with the touched evidence."""
        around = self._neighbourhood(touched.entities)  # the merges of others stay as they are
        kept = {k: c for k, c in self._old.items() if k not in around}
        named = [name for _, name in sorted(around.items()) if name is not None]
        self._new = {**kept, **resolve(named, self._decisions.splits, self._decisions.joins)}
        self._change.merged = {k: c for k, c in self._new.items() if self._old.get(k) != c}
        self._change.unmerged = {k: c for k, c in self._old.items() if self._new.get(k) != c}
        renamed = set(self._change.merged) | set(self._change.unmerged)
        self._members = _inverted(self._new)
        self._denied = {edge_of(self._now(triple)) for triple in self._decisions.denied}
        names = touched.entities | renamed | self._ends(touched)
        entities = {mapping.get(e, e) for e in names for mapping in (self._old, self._new)}
        moved = renamed | self._reclassified(entities)
        originals = dict(touched.edges)
        for entity in sorted(moved):
            originals.update(self._edges_naming(entity))
            for triple in self._decisions.denied:  # which knowledge lacks
                originals.update(self._stated_of(triple, entity))
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
            desired = claim_quads(claim, self._claimed(claim), self._new)
            self._replace(existing, [] if self._is_left_out(desired) else desired)
        progress(len(edges) + len(entities), len(edges) + len(entities))
        return self._change

    # --- resolution ---

    def _neighbourhood(self, entities: set[str]) -> dict[str, Name | None]:
        """Every entity that shares a key or an alias with these, directly or through others, and
        what it is called; None where no evidence of it counts."""
        found: dict[str, Name | None] = {}
        keys: set[str] = set()
        queue = set(entities)
        absorbed = _inverted(self._old)
        while queue:
            entity = queue.pop()
            if entity in found:
                continue
            found[entity] = self._name(entity)
            canonical = self._old.get(entity, entity)
            queue |= {canonical, *absorbed.get(canonical, ()), *self._texts.same_as(entity)}
            queue.update(self._decisions.partners(entity))
            for key in self._texts.keys_of(entity) - keys:
                keys.add(key)
                queue |= self._texts.entities_with(key)
        return found

    def _edges_naming(self, entity: str) -> dict[str, Triple]:
        """The edges of the texts with the entity at an end, under whatever names knowledge has
        them. It lacks those between two names of one entity: what names either names them."""
        found: dict[str, Triple] = {}
        known = self._old.get(entity, entity)
        for one in {entity, known, *(k for k, c in self._old.items() if c == known)}:
            found |= self._texts.edges_naming(entity, one)
        node = NamedNode(known)
        for end in (None, node), (node, None):
            subject, obj = end
            for quad in self._store.match(subject, None, obj, v.KNOWLEDGE_GRAPH):
                if v.is_statement(quad.predicate):
                    found |= self._stated_of(quad.triple, entity)
        return found

    def _stated_of(self, triple: Triple, entity: str) -> dict[str, Triple]:
        """The edges of the texts that this one of knowledge is, as far as they name the entity."""
        edge = edge_of(triple)
        texts = {e: self._texts.triple(e) for e in (edge, *self._texts.merged_into(edge))}
        node = NamedNode(entity)
        return {e: t for e, t in texts.items() if t and node in (t.subject, t.object)}

    def _name(self, entity: str) -> Name | None:
        evidence = self._of_entity(entity)
        if not evidence:
            return None
        stated = [item for item in self._texts.of_entity(entity) if not amends(item)]
        return Name(
            entity,
            commonest(stated, "name"),
            type_of(evidence),
            frozenset(distinct(evidence, "aliasKey")),
            frozenset(distinct(evidence, "same")),
        )

    # --- what people decided ---

    def _of_entity(self, *members: str) -> list[Properties]:
        """The evidence of an entity under these names as it counts; none of names denied."""
        kept = [member for member in members if not self._decisions.drops(member)]
        stated = (item for member in kept for item in self._texts.of_entity(member))
        return self._decisions.prevailing(list(stated))

    def _of_edge(self, original: str, triple: Triple) -> list[Properties]:
        """The evidence of an edge of the texts, unless one of its ends is denied."""
        ends = (triple.subject, triple.object)
        return [] if any(map(self._decisions.drops, ends)) else self._texts.of_edge(original)

    def _claimed(self, claim: str) -> list[Properties]:
        """The evidence of a claim, unless it is about what is denied."""
        evidence = self._texts.of_claim(claim)
        about = (term for item in evidence for p in _CLAIMED for term in item.get(p, ()))
        return [] if any(map(self._decisions.drops, about)) else evidence

    # --- edges ---

    def _refresh_edges(
        self, originals: Mapping[str, Triple], more: int, progress: Progress
    ) -> dict[str, Triple]:
        """Bring the edges that the originals were, and are now, up to date; returns those."""
        edges: dict[str, Triple] = {}
        sources: dict[str, dict[str, Triple]] = {}  # of those that texts know by other names
        for original, triple in originals.items():
            for canonical in dict.fromkeys(self._ways(original, triple)):
                if (edge := edge_of(canonical)) == original:
                    edges[original] = canonical
                else:
                    edges[edge] = canonical
                    sources.setdefault(edge, {})[original] = triple
        for done, edge in enumerate(sorted(edges), 1):
            known = {edge: originals[edge]} if edge in originals else {}
            self._refresh_edge(edge, edges[edge], known | sources.get(edge, {}))
            progress(done, len(edges) + more)
        return edges

    def _refresh_edge(self, edge: str, triple: Triple, known: Mapping[str, Triple]) -> None:
        originals = self._originals(edge, known)
        stated = {original: self._of_edge(original, told) for original, told in originals.items()}
        evidence = [item for items in stated.values() for item in items]
        desired: list[Quad] = []
        if evidence and edge in self._denied:
            self._link(edge, triple, originals)  # found again once it is denied no more
            evidence = []
        evidence = self._decisions.prevailing(evidence)
        outside = self._outside(triple) if evidence else ""
        if evidence and triple.subject != triple.object and outside and self._is_strict:
            desired = outside_quads(edge, outside)
            self._link(edge, triple, originals)
        elif evidence and triple.subject != triple.object:
            desired = [Quad(triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH)]
            others = [original for original in originals if stated[original] and original != edge]
            desired += edge_quads(edge, evidence, others, self._describe(edge, evidence))
            desired += outside_quads(edge, outside)
            self._link(edge, triple, originals)
            names = self._relation_names.setdefault(triple.predicate.value, set())
            names.add(self._relation_name(triple.predicate, evidence))
        existing = list(self._store.match(NamedNode(edge), None, None, v.KNOWLEDGE_GRAPH))
        existing += self._store.match(
            triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH
        )
        self._replace(existing, desired)

    def _originals(self, edge: str, known: Mapping[str, Triple]) -> dict[str, Triple]:
        """The edges of the texts that are this edge under the new names, sorted; some are
        ``known``."""
        candidates = dict(known)
        for original in (edge, *self._texts.merged_into(edge)):
            triple = known[original] if original in known else self._texts.triple(original)
            if triple is not None:
                candidates[original] = triple
        return {e: t for e, t in sorted(candidates.items()) if edge_of(self._now(t)) == edge}

    def _ways(self, original: str, triple: Triple) -> Iterator[Triple]:
        """What an edge of the texts was in knowledge, and what it is now."""
        yield _under(self._old, triple)
        yield self._now(triple)
        node = NamedNode(original)
        for quad in self._store.match(None, v.tg("original"), node, v.KNOWLEDGE_GRAPH):
            known = self._texts.triple(value(quad.subject))
            if known is not None:
                yield known

    def _now(self, triple: Triple) -> Triple:
        """The triple with canonical names, as the ontology has it."""
        canonical = _under(self._new, triple)
        return self._fit.edge(canonical, self._entity_fit).triple if self._fit else canonical

    def _link(self, edge: str, triple: Triple, originals: Iterable[str]) -> None:
        """A canonical edge that the texts know by other names: its reifier, and whence it comes."""
        others = [original for original in originals if original != edge]
        if not others:
            return
        out = Statements(v.SOURCE_GRAPH)
        out.add(edge, (v.tg("mergedFrom"), map(iri, others)))
        out.quads.append(reifier(edge, triple))
        for original in others:
            node = NamedNode(original)
            for quad in self._store.match(None, v.tg("contains"), node, v.SOURCE_GRAPH):
                out.add(value(quad.subject), (v.tg("contains"), iri(edge)))
        self._change.added += out.quads

    # --- relations ---

    def _name_relation(self, relation: NamedNode, refreshed: Mapping[str, Triple]) -> None:
        """The relation's label: of the names that its edges have, the first without capitals."""
        named = self._is_entity(relation.value)
        roles = (v.tg("Relation"),) if named else (v.tg("Relation"), None)
        existing = [
            quad
            for quad in self._store.match(relation, None, None, v.KNOWLEDGE_GRAPH)
            if (quad.object if quad.predicate == v.RDF_TYPE else None) in roles
            and not v.is_statement(quad.predicate)
        ]
        names = set(self._relation_names.get(relation.value, ()))
        labels = [value(q.object) for q in existing if q.predicate == v.RDFS_LABEL]
        for label in labels if not named else [] if names else [""]:
            if label not in names:
                names |= self._names_elsewhere(relation, label, refreshed)
        out = Statements(v.KNOWLEDGE_GRAPH)
        if names:
            own = None if named else relation_label(names)
            out.add(relation.value, (v.RDF_TYPE, v.tg("Relation")), (v.RDFS_LABEL, own))
        self._replace(existing, out.quads)

    def _is_entity(self, term: str) -> bool:
        """Whether a relation or type is an entity too: then its label is that of the entity."""
        if term.startswith(_MINTED_TERMS):
            return False
        return term not in self._new and bool(self._texts.of_entity(term))

    def _names_elsewhere(
        self, relation: NamedNode, label: str, refreshed: Mapping[str, Triple]
    ) -> set[str]:
        """The names that edges which did not change give the relation; only the label where one of
        them gives it, for then it is still the first of all."""
        names = set()
        for quad in self._store.match(None, relation, None, v.KNOWLEDGE_GRAPH):
            edge = edge_of(quad.triple)
            if edge not in refreshed:
                originals = self._originals(edge, {})
                evidence = [item for own in originals.items() for item in self._of_edge(*own)]
                evidence = self._decisions.prevailing(evidence)
                names.add(self._relation_name(relation, evidence))
                if label in names:
                    return {label}
        return names

    def _relation_name(self, relation: NamedNode, evidence: Sequence[Properties]) -> str:
        """What a relation is called: by the ontology, or by the evidence of one of its edges."""
        own = self._fit.label(relation.value) if self._fit else ""
        return own or commonest(evidence, "name")

    # --- entities ---

    def _evidence(self, entity: str) -> list[Properties]:
        """That of the entity and of those that it has absorbed, as it counts."""
        return self._of_entity(*sorted({entity, *self._members.get(entity, ())}))

    def _refresh_entity(self, entity: str) -> None:
        evidence = self._evidence(entity)
        existing = []
        for quad in self._store.match(NamedNode(entity), None, None, v.KNOWLEDGE_GRAPH):
            role = value(quad.object).removeprefix(v.TG) if quad.predicate == v.RDF_TYPE else ""
            if role in self._terms:
                self._terms[role].add(entity)
            elif not v.is_statement(quad.predicate):
                existing.append(quad)
        known = evidence and entity not in self._new
        fit = self._entity_fit(entity)
        if known and fit.reason and self._is_strict:
            self._replace(existing, outside_quads(entity, fit.reason))
            return
        described = self._describe(entity, evidence) if known else []
        desired = self._entity_quads(entity, evidence, described) if known else []
        self._replace([*existing, *self._old_labels(desired)], desired)

    def _entity_quads(
        self, entity: str, evidence: Sequence[Properties], described: Sequence[Pair]
    ) -> list[Quad]:
        fit = self._entity_fit(entity)
        terms = KnownTerms(self._is_entity, self._class_label)
        quads = entity_quads(entity, evidence, described, terms, fit.iri)
        return quads + outside_quads(entity, fit.reason)

    def _class_label(self, kind: str) -> str:
        """What the ontology calls a class; nothing where it does not know it."""
        return self._fit.ontology.label(kind) if self._fit else ""

    def _old_labels(self, desired: Iterable[Quad]) -> list[Quad]:
        """The labels that the types of an entity have, each type once."""
        kinds = {q.subject for q in desired if q.object == v.tg("EntityType")} - self._labelled
        self._labelled |= kinds
        return [
            quad
            for kind in kinds
            if isinstance(kind, NamedNode) and not self._is_entity(kind.value)
            for quad in self._store.match(kind, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)
        ]

    # --- the ontology ---

    @property
    def _is_strict(self) -> bool:
        return self._fit is not None and self._fit.strict

    def _entity_fit(self, entity: str) -> EntityFit:
        """How a canonical entity fits; well where there is no ontology."""
        if self._fit is None:
            return EntityFit()
        if entity not in self._fits:
            stated = partial(self._stated, entity)
            self._fits[entity] = self._fit.entity(self._evidence(entity), stated)
        return self._fits[entity]

    def _stated(self, entity: str) -> Iterator[End]:
        """The ends of the statements of the texts that are the entity."""
        members = {entity, *self._members.get(entity, ())}
        named = {e: t for m in sorted(members) for e, t in self._edges_naming(m).items()}
        for edge, triple in named.items():
            if self._texts.of_edge(edge):
                yield from ends_of(members, triple)

    def _outside(self, triple: Triple) -> str:
        return self._fit.edge(triple, self._entity_fit).reason if self._fit else ""

    def _is_left_out(self, claim: Sequence[Quad]) -> bool:
        """Whether a claim is about what the ontology keeps out of knowledge."""
        about = (v.tg("subject"), v.tg("object"))
        ends = (value(quad.object) for quad in claim if quad.predicate in about)
        return self._is_strict and any(self._entity_fit(end).reason for end in ends)

    def _ends(self, touched: Touched) -> set[str]:
        """What touched edges join: under an ontology they tell what class it is of."""
        triples = touched.edges.values() if self._fit else ()
        ends = (end for triple in triples for end in (triple.subject, triple.object))
        return {end.value for end in ends if isinstance(end, NamedNode)}

    def _reclassified(self, entities: Iterable[str]) -> set[str]:
        """The names of those of the canonical entities whose class is not what it was: edges may
        mean something else with them."""
        found: set[str] = set()
        for entity in sorted(entities) if self._fit else ():
            node, fit = NamedNode(entity), self._entity_fit(entity)
            quads = list(self._store.match(node, None, None, v.KNOWLEDGE_GRAPH))
            kinds = {value(q.object) for q in quads if q.predicate == v.RDF_TYPE}
            outside = {value(q.object) for q in quads if q.predicate == v.tg("outsideOntology")}
            same = (fit.iri in kinds) if fit.iri else bool(outside)
            if not same or outside != ({fit.reason} if fit.reason else set()):
                found |= {entity, *self._members.get(entity, ())}
        return found

    def _forget_types(self) -> set[str]:
        """Types that no entity is of any more leave knowledge; which these are."""
        removed = set(self._change.removed)
        left = {quad.object for quad in removed if quad.predicate == v.RDF_TYPE}
        if not left:
            return set()
        kept = {quad.object for quad in self._change.added if quad.predicate == v.RDF_TYPE}
        forgotten = set()
        for kind in sorted(left - kept, key=str):
            if not isinstance(kind, NamedNode) or kind.value.startswith(v.TG):
                continue
            users = self._store.match(None, v.RDF_TYPE, kind, v.KNOWLEDGE_GRAPH)
            if all(quad in removed for quad in users):
                forgotten.add(kind.value)
                gone = [Quad(kind, v.RDF_TYPE, v.tg("EntityType"), v.KNOWLEDGE_GRAPH)]
                if not self._is_entity(kind.value) and not self._is_relation(kind):
                    gone += self._store.match(kind, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)
                self._replace([quad for quad in gone if self._holds(quad)], [])
        return forgotten

    def _name_types(self, kinds: Iterable[str]) -> None:
        """Types that were entities and are no more have a label of their own again."""
        for kind in sorted(kinds):
            if not self._is_entity(kind):
                self._change.added += type_quads(kind, self._class_label(kind))

    def _holds(self, quad: Quad) -> bool:
        return next(self._store.match(*quad), None) is not None

    def _is_relation(self, kind: NamedNode) -> bool:
        return self._holds(Quad(kind, v.RDF_TYPE, v.tg("Relation"), v.KNOWLEDGE_GRAPH))

    # --- changes ---

    def _replace(self, existing: Iterable[Quad], desired: Iterable[Quad]) -> None:
        """Shared descriptions (types) are kept: only what is about the subject is removed. What was
        removed and is desired for another reason is added again: additions come last."""
        before, after = set(existing), list(desired)
        gone = sorted(before - set(after), key=str)
        self._change.removed += gone
        self._change.added += [q for q in after if q not in before or q in self._gone]
        self._gone.update(gone)


def _inverted(merges: Mapping[str, str]) -> dict[str, list[str]]:
    """For each canonical entity, those that it has absorbed."""
    found: dict[str, list[str]] = {}
    for absorbed, canonical in merges.items():
        found.setdefault(canonical, []).append(absorbed)
    return found


def _under(mapping: Mapping[str, str], triple: Triple) -> Triple:
    """The triple with canonical names; itself where it has these."""
    subject, obj = triple.subject, triple.object
    assert isinstance(subject, NamedNode)
    one = mapping.get(subject.value)
    other = mapping.get(obj.value) if isinstance(obj, NamedNode) else None
    if one is None and other is None:
        return triple
    ends = NamedNode(one) if one else subject, NamedNode(other) if other else obj
    return Triple(ends[0], triple.predicate, ends[1])
