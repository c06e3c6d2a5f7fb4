"""Knowledge reading for export: entities, edges, claims, and a knowledge hash.

Knowledge is the content of standing evidence (``tgraph.index.knowledge``): entities with types,
labels, aliases and descriptions, edges with weights, keywords and descriptions, claims, and
names of types and relations. Communities, reports and summaries are derived from knowledge and
excluded, as are links from knowledge to the record (``tg:summary``, ``tg:original``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import NamedTuple, TypeVar

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.engine.open_collection import OpenCollection
from tgraph.index.claims import claims_of
from tgraph.index.evidence import EvidenceReader, left_out, stored_evidence
from tgraph.index.sources import Texts
from tgraph.model import Evidence
from tgraph.store.base import Store, Term, text_of
from tgraph.store.statements import build_statements, edge_of, format_nquads

_OURS = (v.TG, v.type_iri(""))
_KINDS = ("EntityType", "Relation", "Entity", "Edge", "Claim")
_INTO_THE_RECORD = frozenset((v.tg("summary"), v.tg("original")))
_AT_ONCE = 256
_PLACES = 20
"""Of an edge at most so many places are written."""

T = TypeVar("T")


class KnowledgeHash(NamedTuple):
    """An RDFC-1.0 hash (SHA-256) of knowledge, with counts."""

    hash: str
    quads: int
    entities: int
    edges: int
    claims: int


@dataclass(frozen=True, slots=True)
class ExportedEntity:
    """An exported entity: ``type`` is its type name, ``classes`` are types from other
    vocabularies."""

    iri: str
    label: str
    type: str
    aliases: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportedEdge:
    """An exported edge with attributes; ``relation`` is its predicate name."""

    iri: str
    triple: Triple
    relation: str
    weight: float
    keywords: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return text_of(self.triple.subject)

    @property
    def object(self) -> str:
        """An entity IRI, or literal text."""
        return text_of(self.triple.object)

    @property
    def is_attribute(self) -> bool:
        """True if the edge's object is a literal."""
        return isinstance(self.triple.object, Literal)


@dataclass(frozen=True, slots=True)
class ExportedClaim:
    """An exported claim with canonical entity names; ``object`` is empty without a second
    entity, dates are empty if unknown."""

    iri: str
    subject: str
    object: str
    type: str
    status: str
    description: str
    started: str = ""
    ended: str = ""


class Knowledge:
    """Knowledge in a store, in an order determined by content alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._nodes = {kind: self._kind_instances(kind) for kind in _KINDS}
        self._edges = {node.value for node in self._nodes["Edge"]}
        self._claims: dict[NamedNode, list[Quad]] = {}
        for node in self._nodes["Claim"]:
            renamed = self._canonical_claim(list(self._node_quads(node)))
            self._claims.setdefault(NamedNode(text_of(renamed[0].subject)), renamed)

    def _kind_instances(self, kind: str) -> list[NamedNode]:
        type_quads = self._store.match(None, v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH)
        nodes = (quad.subject for quad in type_quads)
        return sorted((node for node in nodes if isinstance(node, NamedNode)), key=str)

    # --- as RDF ---

    def quads(self) -> Iterator[Quad]:
        """Yield knowledge quads in reading order: types and relations, entities with their
        edges, claims."""
        for node in (*self._nodes["EntityType"], *self._nodes["Relation"]):
            yield from self._node_quads(node)
        for node in self._nodes["Entity"]:
            entity_quads = self._node_quads(node)
            yield from (quad for quad in entity_quads if not v.is_statement(quad.predicate))
            for quad in entity_quads:
                if v.is_statement(quad.predicate):
                    yield quad
                    yield from self._node_quads(NamedNode(edge_of(quad.triple)))
        for node in sorted(self._claims, key=str):
            yield from self._claims[node]

    def canonical_lines(self) -> Iterator[str]:
        """Yield canonical N-Quads of knowledge (RDFC-1.0, without blank nodes): sorted lines,
        valid because IRIs contain no line breaks."""
        unclaimed_nodes = [node for kind in _KINDS if kind != "Claim" for node in self._nodes[kind]]
        for node in sorted({*unclaimed_nodes, *self._claims}, key=str):
            quads = self._claims[node] if node in self._claims else self._node_quads(node)
            yield from sorted(set(format_nquads(quads).splitlines(keepends=True)))

    def hash(self) -> KnowledgeHash:
        """Return the hash of canonical lines, with counts."""
        hasher, quads = sha256(), 0
        for line in self.canonical_lines():
            hasher.update(line.encode())
            quads += 1
        entities, edges = len(self._nodes["Entity"]), len(self._nodes["Edge"])
        return KnowledgeHash(hasher.hexdigest(), quads, entities, edges, len(self._claims))

    def _node_quads(self, node: NamedNode) -> list[Quad]:
        """Return sorted knowledge quads about a node; for an edge, include its reified triple."""
        quads = [
            quad
            for quad in self._store.match(node, None, None, v.KNOWLEDGE_GRAPH)
            if quad.predicate not in _INTO_THE_RECORD and self._is_known(quad)
        ]
        if node.value in self._edges and (triple := self._edge_triple(node)):
            quads.append(Quad(node, v.RDF_REIFIES, triple, v.KNOWLEDGE_GRAPH))
        return sorted(quads, key=str)

    def _is_known(self, quad: Quad) -> bool:
        return not v.is_statement(quad.predicate) or edge_of(quad.triple) in self._edges

    def _edge_triple(self, edge: NamedNode) -> Triple | None:
        reifying_quads = self._store.match(edge, v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        triple = next((quad.object for quad in reifying_quads), None)
        return triple if isinstance(triple, Triple) else None

    def _canonical_claim(self, said: Sequence[Quad]) -> list[Quad]:
        """Return claim quads under an IRI derived from canonical names, the IRI that an
        importer assigns too."""
        by = _values_by_predicate(said)
        parts = ("subject", "object", "claimType", "claimStatus", "description")
        dates = (
            str(d) if (d := _first_value(by, name)) else "" for name in ("claimStart", "claimEnd")
        )
        name = v.claim_iri(*(text_of(_first_value(by, part)) for part in parts), *dates)
        pairs = [(q.predicate, q.object) for q in said]
        return build_statements(
            v.KNOWLEDGE_GRAPH,
            name,
            *((p, o) for p, o in pairs if isinstance(o, NamedNode | Literal)),
        )

    # --- as values ---

    def entities(self) -> Iterator[ExportedEntity]:
        """Yield all entities, sorted by IRI."""
        types = self.labels("EntityType")
        for node in self._nodes["Entity"]:
            values = _values_by_predicate(self._node_quads(node))
            kinds = (types.get(text_of(term), "") for term in values.get(v.RDF_TYPE.value, ()))
            yield ExportedEntity(
                node.value,
                text_of(_first_value(values, v.RDFS_LABEL.value)) or node.value,
                next(filter(None, sorted(kinds)), ""),
                _sorted_texts(values, v.SKOS_ALT_LABEL.value),
                _sorted_texts(values, "description"),
                tuple(
                    class_iri
                    for class_iri in _sorted_texts(values, v.RDF_TYPE.value)
                    if not class_iri.startswith(_OURS)
                ),
            )

    def edges(self) -> Iterator[ExportedEdge]:
        """All edges, by subject, predicate and object."""
        relations = self.labels("Relation")
        for node in self._nodes["Entity"]:
            for quad in self._node_quads(node):
                if v.is_statement(quad.predicate):
                    name = relations.get(quad.predicate.value, quad.predicate.value)
                    yield self._export_edge(edge_of(quad.triple), quad.triple, name)

    def _export_edge(self, iri: str, triple: Triple, relation: str) -> ExportedEdge:
        values = _values_by_predicate(self._node_quads(NamedNode(iri)))
        weight = float(text_of(_first_value(values, "weight")) or 0)
        keywords, descriptions = (
            _sorted_texts(values, "keyword"),
            _sorted_texts(values, "description"),
        )
        return ExportedEdge(iri, triple, relation, weight, keywords, descriptions)

    def claims(self) -> Iterator[ExportedClaim]:
        """Yield all claims, sorted by IRI."""
        parts = ("subject", "object", "claimType", "claimStatus", "description")
        for node in sorted(self._claims, key=str):
            values = _values_by_predicate(self._claims[node])
            claim_values = (
                text_of(_first_value(values, part)) for part in (*parts, "claimStart", "claimEnd")
            )
            yield ExportedClaim(node.value, *claim_values)

    def labels(self, kind: str = "Entity") -> dict[str, str]:
        """The label of each entity, type (``EntityType``) or relation (``Relation``), by IRI."""
        return {
            node.value: text_of(
                _first_value(_values_by_predicate(self._node_quads(node)), v.RDFS_LABEL.value)
            )
            for node in self._nodes[kind]
        }


def _values_by_predicate(quads: Iterable[Quad]) -> dict[str, list[Term]]:
    """Return values by predicate, using short names for tgraph predicates."""
    values: dict[str, list[Term]] = {}
    for quad in quads:
        values.setdefault(quad.predicate.value.removeprefix(v.TG), []).append(quad.object)
    return values


def _first_value(said: dict[str, list[Term]], name: str) -> Term | None:
    return next(iter(said.get(name, ())), None)


def _sorted_texts(said: dict[str, list[Term]], name: str) -> tuple[str, ...]:
    return tuple(sorted(text_of(term) for term in said.get(name, ())))


@dataclass(frozen=True)
class KnowledgeSource:
    """An export source: knowledge, plus access to its evidence."""

    store: Store
    texts: Texts
    evidence: EvidenceReader

    @cached_property
    def knowledge(self) -> Knowledge:
        """Knowledge in the store."""
        return Knowledge(self.store)

    def places(self) -> Iterator[tuple[str, tuple[Evidence, ...]]]:
        """Yield entities, edges and claims by IRI, each with evidence places."""
        knowledge = self.knowledge
        for batch in _split_batches(entity.iri for entity in knowledge.entities()):
            entity_evidence = self.evidence.of_entities(batch)
            for entity in batch:
                yield entity, tuple(place for place, _ in entity_evidence.get(entity, ()))
        for batch in _split_batches(edge.iri for edge in knowledge.edges()):
            stands = self.evidence.of_edges(batch, _PLACES)
            yield from ((edge, stands.get(edge, ())) for edge in batch)
        yield from sorted(self._claim_evidence().items())

    def _claim_evidence(self) -> dict[str, tuple[Evidence, ...]]:
        entities = [entity.iri for entity in self.knowledge.entities()]
        entity_claims = claims_of(self.store, self.texts, entities, self.evidence.doubt)
        return {claim.iri: claim.evidence for claims in entity_claims.values() for claim in claims}


def _split_batches(items: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(items)
    while batch := list(islice(remaining, _AT_ONCE)):
        yield batch


def knowledge_source(opened: OpenCollection) -> KnowledgeSource:
    """Return collection knowledge for export, reporting evidence that can't be quoted."""
    store = opened.read()
    texts = Texts(store, opened.librarian)
    evidence = stored_evidence(store, texts, lambda error: opened.message(left_out(error)))
    return KnowledgeSource(store, texts, evidence)
