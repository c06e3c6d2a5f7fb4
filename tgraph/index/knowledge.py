"""Knowledge derived from evidence: what the default graph says, and nothing else writes it.

Knowledge is a function of the standing evidence and of the merges. A change recomputes what it
touches: the entities and edges whose evidence or whose canonical name changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.extract.resolve import Name, resolve
from tgraph.store.base import Store
from tgraph.store.statements import Statements, iri, reifier

Properties = Mapping[str, Sequence[NamedNode | Literal]]
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Touched:
    """The entities and edges, as named in the texts, whose evidence has changed."""

    entities: set[str] = field(default_factory=set)
    edges: dict[str, Triple] = field(default_factory=dict)


@dataclass(slots=True)
class KnowledgeChange:
    """Quads to add to and to remove from the store, and the merges that were made and undone."""

    added: list[Quad] = field(default_factory=list)
    removed: list[Quad] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    unmerged: dict[str, str] = field(default_factory=dict)


class Derivation:
    """Recomputes knowledge in a store whose source graph is already up to date."""

    def __init__(
        self, store: Store, merges: Mapping[str, str], stands: Callable[[str], bool]
    ) -> None:
        """``merges`` maps absorbed entities to canonical ones as of now; ``stands`` tells whether a
        chunk's document still stands."""
        self._store = store
        self._old = dict(merges)
        self._stands = stands
        self._new: dict[str, str] = {}
        self._change = KnowledgeChange()
        self._cache: dict[str, list[Properties]] = {}

    def run(
        self, touched: Touched, progress: Progress = lambda done, total: None
    ) -> KnowledgeChange:
        """The change that brings the default graph up to date with the touched evidence."""
        self._new = self._resolve(touched.entities)
        self._change.merged = {k: c for k, c in self._new.items() if self._old.get(k) != c}
        self._change.unmerged = {k: c for k, c in self._old.items() if self._new.get(k) != c}
        renamed = set(self._change.merged) | set(self._change.unmerged)
        entities = touched.entities | renamed
        originals = dict(touched.edges)
        for entity in sorted(renamed):
            originals.update(self._originals_around(self._old.get(entity, entity)))
        edges: dict[str, Triple] = {}
        for triple in originals.values():
            for mapping in (self._old, self._new):
                canonical = _under(mapping, triple)
                edges[_edge(canonical)] = canonical
        sources = self._sources(originals)
        total = len(edges) + len(entities)
        for done, (edge, triple) in enumerate(sorted(edges.items())):
            self._refresh_edge(edge, triple, sources.get(edge, {}))
            progress(done + 1, total)
        canonical_entities = {m.get(e, e) for e in entities for m in (self._old, self._new)}
        for entity in sorted(canonical_entities):
            self._refresh_entity(entity)
        progress(total, total)
        return self._change

    # --- resolution ---

    def _resolve(self, touched: Iterable[str]) -> dict[str, str]:
        """The merges after the change: those of other entities stay as they are."""
        around = self._neighbourhood(set(touched))
        kept = {k: c for k, c in self._old.items() if k not in around}
        names = [self._name(entity) for entity in sorted(around)]
        return {**kept, **resolve(name for name in names if name is not None)}

    def _neighbourhood(self, entities: set[str]) -> set[str]:
        """Every entity that shares a key or an alias with these, directly or through others."""
        found: set[str] = set()
        queue = set(entities)
        by_canonical: dict[str, set[str]] = {}
        for absorbed, canonical in self._old.items():
            by_canonical.setdefault(canonical, {canonical}).add(absorbed)
        while queue:
            entity = queue.pop()
            if entity in found:
                continue
            found.add(entity)
            queue |= by_canonical.get(self._old.get(entity, entity), set())
            for key in self._keys(entity):
                queue |= self._with_key(key)
        return found

    def _keys(self, entity: str) -> set[str]:
        return {
            term.value
            for item in self._evidence_of("entity", entity)
            for name in ("nameKey", "aliasKey")
            for term in item.get(name, ())
        }

    def _with_key(self, key: str) -> set[str]:
        found = set()
        for predicate in ("nameKey", "aliasKey"):
            for quad in self._store.match(None, v.tg(predicate), Literal(key), v.SOURCE_GRAPH):
                for other in self._store.match(quad.subject, v.tg("entity"), None, v.SOURCE_GRAPH):
                    found.add(other.object.value)  # type: ignore[union-attr]
        return found

    def _name(self, entity: str) -> Name | None:
        evidence = self._evidence_of("entity", entity)
        if not evidence:
            return None
        return Name(
            entity,
            _commonest(evidence, "name"),
            _commonest(evidence, "entityType"),
            frozenset(term.value for item in evidence for term in item.get("aliasKey", ())),
        )

    # --- edges ---

    def _originals_around(self, canonical: str) -> dict[str, Triple]:
        node = NamedNode(canonical)
        found: dict[str, Triple] = {}
        quads = [
            *self._store.match(node, None, None, v.KNOWLEDGE_GRAPH),
            *self._store.match(None, None, node, v.KNOWLEDGE_GRAPH),
        ]
        for quad in quads:
            if is_statement(quad.predicate):
                for edge in self._originals(_edge(quad.triple)):
                    triple = self._triple(edge)
                    if triple is not None:
                        found[edge] = triple
        return found

    def _originals(self, edge: str) -> list[str]:
        merged = self._store.match(NamedNode(edge), v.tg("mergedFrom"), None, v.KNOWLEDGE_GRAPH)
        return [edge, *(quad.object.value for quad in merged)]  # type: ignore[union-attr]

    def _triple(self, edge: str) -> Triple | None:
        quads = self._store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        triple = next((quad.object for quad in quads), None)
        return triple if isinstance(triple, Triple) else None

    def _sources(self, originals: Mapping[str, Triple]) -> dict[str, dict[str, Triple]]:
        """For each canonical edge, the edges of the texts that become it."""
        found: dict[str, dict[str, Triple]] = {}
        for edge, triple in originals.items():
            for mapping in (self._old, self._new):
                found.setdefault(_edge(_under(mapping, triple)), {})[edge] = triple
        return found

    def _refresh_edge(self, edge: str, triple: Triple, known: Mapping[str, Triple]) -> None:
        candidates = dict(known)
        for original in self._originals(edge):
            found = self._triple(original)
            if found is not None:
                candidates[original] = found
        mine = sorted(e for e, t in candidates.items() if _edge(_under(self._new, t)) == edge)
        evidence = [item for original in mine for item in self._evidence_of("edge", original)]
        desired: list[Quad] = []
        if evidence and triple.subject != triple.object:
            desired = [Quad(triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH)]
            desired += _edge_attributes(edge, evidence, [e for e in mine if e != edge])
            self._reify(edge, triple, mine)
            self._name_predicate(triple.predicate, _commonest(evidence, "name"))
        node = NamedNode(edge)
        existing = list(self._store.match(node, None, None, v.KNOWLEDGE_GRAPH))
        existing += self._store.match(
            triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH
        )
        self._replace(existing, desired)

    def _reify(self, edge: str, triple: Triple, originals: Sequence[str]) -> None:
        """The reifier of a canonical edge that the texts know by other names, and its subgraphs."""
        others = [original for original in originals if original != edge]
        if not others:
            return
        out = Statements(v.SOURCE_GRAPH)
        out.quads.append(reifier(edge, triple))
        for original in others:
            containing = self._store.match(
                None, v.tg("contains"), NamedNode(original), v.SOURCE_GRAPH
            )
            for quad in containing:
                assert isinstance(quad.subject, NamedNode)
                out.add(quad.subject.value, (v.tg("contains"), iri(edge)))
        self._add(out.quads)

    def _name_predicate(self, predicate: NamedNode, label: str) -> None:
        if next(self._store.match(predicate, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH), None) is None:
            out = Statements(v.KNOWLEDGE_GRAPH)
            out.add(predicate.value, (v.RDF_TYPE, v.tg("Relation")), (v.RDFS_LABEL, label))
            self._add(out.quads)

    # --- entities ---

    def _refresh_entity(self, entity: str) -> None:
        members = sorted({entity, *(k for k, c in self._new.items() if c == entity)})
        absorbed = entity in self._new
        evidence = [e for m in members for e in self._evidence_of("entity", m)]
        desired = [] if absorbed or not evidence else self._entity_quads(entity, evidence)
        existing = [
            quad
            for quad in self._store.match(NamedNode(entity), None, None, v.KNOWLEDGE_GRAPH)
            if not is_statement(quad.predicate)
        ]
        self._replace(existing, desired)

    def _entity_quads(self, entity: str, evidence: Sequence[Properties]) -> list[Quad]:
        own = [e for e in evidence if e["entity"][0].value == entity] or evidence
        label = _commonest(own, "name")
        kind = _commonest(evidence, "entityType") or "concept"
        names = {t.value for e in evidence for p in ("name", "alias") for t in e.get(p, ())}
        out = Statements(v.KNOWLEDGE_GRAPH)
        out.add(
            entity,
            (v.RDF_TYPE, [v.tg("Entity"), iri(v.type_iri(kind))]),
            (v.RDFS_LABEL, label),
            (v.SKOS_ALT_LABEL, sorted(names - {label})),
            (v.tg("description"), _distinct(evidence, "description")),
        )
        out.add(v.type_iri(kind), (v.RDF_TYPE, v.tg("EntityType")), (v.RDFS_LABEL, kind))
        return out.quads

    # --- evidence ---

    def _evidence_of(self, role: str, subject: str) -> list[Properties]:
        """The standing evidence of an entity or an edge of the texts, in the order of its IRIs."""
        if subject not in self._cache:
            quads = self._store.match(None, v.tg(role), NamedNode(subject), v.SOURCE_GRAPH)
            items = [self._properties(quad.subject) for quad in sorted(quads, key=_subject)]
            self._cache[subject] = [
                item
                for item in items
                if "wasDerivedFrom" in item and self._stands(item["wasDerivedFrom"][0].value)
            ]
        return self._cache[subject]

    def _properties(self, subject: object) -> Properties:
        found: dict[str, list[NamedNode | Literal]] = {}
        assert isinstance(subject, NamedNode)
        for quad in self._store.match(subject, None, None, v.SOURCE_GRAPH):
            name = quad.predicate.value.rpartition("#")[2].rpartition("/")[2]
            assert isinstance(quad.object, NamedNode | Literal)
            found.setdefault(name, []).append(quad.object)
        return found

    # --- changes ---

    def _replace(self, existing: Iterable[Quad], desired: Iterable[Quad]) -> None:
        """Shared descriptions (types) are kept: only what is about the subject is removed."""
        before, after = set(existing), list(desired)
        self._change.removed += sorted(before - set(after), key=str)
        self._add([quad for quad in after if quad not in before])

    def _add(self, quads: Iterable[Quad]) -> None:
        self._change.added += quads


def is_statement(predicate: NamedNode) -> bool:
    """Whether triples of the predicate are statements of the corpus, not tgraph's own."""
    return not predicate.value.startswith((v.TG, v.RDF, v.RDFS, v.SKOS, v.PROV, v.DCTERMS))


def _edge(triple: Triple) -> str:
    assert isinstance(triple.subject, NamedNode)
    assert isinstance(triple.object, NamedNode | Literal)
    return v.edge_iri(triple.subject, triple.predicate, triple.object)


def _under(mapping: Mapping[str, str], triple: Triple) -> Triple:
    """The triple with canonical names."""
    subject, obj = triple.subject, triple.object
    assert isinstance(subject, NamedNode)
    subject = NamedNode(mapping.get(subject.value, subject.value))
    if isinstance(obj, NamedNode):
        obj = NamedNode(mapping.get(obj.value, obj.value))
    return Triple(subject, triple.predicate, obj)


def _edge_attributes(
    edge: str, evidence: Sequence[Properties], merged_from: Sequence[str]
) -> list[Quad]:
    strengths = [float(item["strength"][0].value) for item in evidence if "strength" in item]
    out = Statements(v.KNOWLEDGE_GRAPH)
    out.add(
        edge,
        (v.RDF_TYPE, v.tg("Edge")),
        (v.tg("weight"), float(sum(strengths))),
        (v.tg("description"), _distinct(evidence, "description")),
        (v.tg("keyword"), _distinct(evidence, "keyword")),
        (v.tg("mergedFrom"), map(iri, merged_from)),
    )
    return out.quads


def _commonest(evidence: Sequence[Properties], name: str) -> str:
    counts = Counter(term.value for item in evidence for term in item.get(name, ()))
    if not counts:
        return ""
    return min(counts, key=lambda value: (-counts[value], -len(value), value))


def _distinct(evidence: Sequence[Properties], name: str) -> list[str]:
    return sorted({term.value for item in evidence for term in item.get(name, ())})


def _subject(quad: Quad) -> str:
    return str(quad.subject)
