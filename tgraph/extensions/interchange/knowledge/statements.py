"""What a graph knows, read for those who take it elsewhere: entities, edges, claims, and its hash.

Knowledge is what the standing evidence says (``tgraph.index.knowledge``): entities with types,
labels, aliases and descriptions, edges with weights, keywords and descriptions, claims, and the
names of types and relations. Communities, reports and summaries are derived from it and are no part
of it, nor is what leads from it to the record (``tg:summary``, ``tg:original``).
"""

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
from tgraph.store.statements import edge_of, nquads, stated

_OURS = (v.TG, v.type_iri(""))
_KINDS = ("EntityType", "Relation", "Entity", "Edge", "Claim")
_INTO_THE_RECORD = frozenset((v.tg("summary"), v.tg("original")))
_AT_ONCE = 256
_PLACES = 20
"""Of an edge at most so many places are written."""

T = TypeVar("T")


class KnowledgeHash(NamedTuple):
    """The RDFC-1.0 hash (SHA-256) of knowledge, and how much that is."""

    hash: str
    quads: int
    entities: int
    edges: int
    claims: int


@dataclass(frozen=True, slots=True)
class ExportedEntity:
    """An entity. ``type`` is the name of its type, ``classes`` are types of other vocabularies."""

    iri: str
    label: str
    type: str
    aliases: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportedEdge:
    """An edge with its attributes; ``relation`` is the name of its predicate."""

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
        """The IRI of an entity, or the text of a literal."""
        return text_of(self.triple.object)

    @property
    def is_attribute(self) -> bool:
        """Whether the object is a literal."""
        return isinstance(self.triple.object, Literal)


@dataclass(frozen=True, slots=True)
class ExportedClaim:
    """A claim under the canonical names of whom it is about; ``object`` is empty where that is
    nobody else, dates are empty where none is said."""

    iri: str
    subject: str
    object: str
    type: str
    status: str
    description: str
    started: str = ""
    ended: str = ""


class Knowledge:
    """The knowledge in a store, in an order that depends on nothing but what it says."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._nodes = {kind: self._instances(kind) for kind in _KINDS}
        self._edges = {node.value for node in self._nodes["Edge"]}
        self._claims: dict[NamedNode, list[Quad]] = {}
        for node in self._nodes["Claim"]:
            renamed = self._renamed(list(self._about(node)))
            self._claims.setdefault(NamedNode(text_of(renamed[0].subject)), renamed)

    def _instances(self, kind: str) -> list[NamedNode]:
        found = self._store.match(None, v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH)
        nodes = (quad.subject for quad in found)
        return sorted((node for node in nodes if isinstance(node, NamedNode)), key=str)

    # --- as RDF ---

    def quads(self) -> Iterator[Quad]:
        """All of it for a reader's eye: types and relations, each entity with its edges, claims."""
        for node in (*self._nodes["EntityType"], *self._nodes["Relation"]):
            yield from self._about(node)
        for node in self._nodes["Entity"]:
            said = self._about(node)
            yield from (quad for quad in said if not v.is_statement(quad.predicate))
            for quad in said:
                if v.is_statement(quad.predicate):
                    yield quad
                    yield from self._about(NamedNode(edge_of(quad.triple)))
        for node in sorted(self._claims, key=str):
            yield from self._claims[node]

    def canonical_lines(self) -> Iterator[str]:
        """The canonical N-Quads of all of it (RDFC-1.0; there are no blank nodes): its sorted
        lines, since no IRI contains the end of one."""
        named = [node for kind in _KINDS if kind != "Claim" for node in self._nodes[kind]]
        for node in sorted({*named, *self._claims}, key=str):
            quads = self._claims[node] if node in self._claims else self._about(node)
            yield from sorted(set(nquads(quads).splitlines(keepends=True)))

    def hash(self) -> KnowledgeHash:
        """The hash of the canonical lines."""
        hasher, quads = sha256(), 0
        for line in self.canonical_lines():
            hasher.update(line.encode())
            quads += 1
        entities, edges = len(self._nodes["Entity"]), len(self._nodes["Edge"])
        return KnowledgeHash(hasher.hexdigest(), quads, entities, edges, len(self._claims))

    def _about(self, node: NamedNode) -> list[Quad]:
        """What knowledge says of a thing; of an edge also which triple it is."""
        found = [
            quad
            for quad in self._store.match(node, None, None, v.KNOWLEDGE_GRAPH)
            if quad.predicate not in _INTO_THE_RECORD and self._is_known(quad)
        ]
        if node.value in self._edges and (triple := self._triple(node)):
            found.append(Quad(node, v.RDF_REIFIES, triple, v.KNOWLEDGE_GRAPH))
        return sorted(found, key=str)

    def _is_known(self, quad: Quad) -> bool:
        return not v.is_statement(quad.predicate) or edge_of(quad.triple) in self._edges

    def _triple(self, edge: NamedNode) -> Triple | None:
        found = self._store.match(edge, v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        triple = next((quad.object for quad in found), None)
        return triple if isinstance(triple, Triple) else None

    def _renamed(self, said: Sequence[Quad]) -> list[Quad]:
        """A claim named by what it says under the canonical names, as whoever takes it in will
        name it."""
        by = _values(said)
        parts = ("subject", "object", "claimType", "claimStatus", "description")
        dates = (str(d) if (d := _first(by, name)) else "" for name in ("claimStart", "claimEnd"))
        name = v.claim_iri(*(text_of(_first(by, part)) for part in parts), *dates)
        pairs = [(q.predicate, q.object) for q in said]
        return stated(
            v.KNOWLEDGE_GRAPH,
            name,
            *((p, o) for p, o in pairs if isinstance(o, NamedNode | Literal)),
        )

    # --- as values ---

    def entities(self) -> Iterator[ExportedEntity]:
        """All entities, by IRI."""
        types = self.labels("EntityType")
        for node in self._nodes["Entity"]:
            said = _values(self._about(node))
            kinds = (types.get(text_of(term), "") for term in said.get(v.RDF_TYPE.value, ()))
            yield ExportedEntity(
                node.value,
                text_of(_first(said, v.RDFS_LABEL.value)) or node.value,
                next(filter(None, sorted(kinds)), ""),
                _texts(said, v.SKOS_ALT_LABEL.value),
                _texts(said, "description"),
                tuple(one for one in _texts(said, v.RDF_TYPE.value) if not one.startswith(_OURS)),
            )

    def edges(self) -> Iterator[ExportedEdge]:
        """All edges, by subject, predicate and object."""
        relations = self.labels("Relation")
        for node in self._nodes["Entity"]:
            for quad in self._about(node):
                if v.is_statement(quad.predicate):
                    name = relations.get(quad.predicate.value, quad.predicate.value)
                    yield self._edge(edge_of(quad.triple), quad.triple, name)

    def _edge(self, iri: str, triple: Triple, relation: str) -> ExportedEdge:
        said = _values(self._about(NamedNode(iri)))
        weight = float(text_of(_first(said, "weight")) or 0)
        keywords, descriptions = _texts(said, "keyword"), _texts(said, "description")
        return ExportedEdge(iri, triple, relation, weight, keywords, descriptions)

    def claims(self) -> Iterator[ExportedClaim]:
        """All claims, by IRI."""
        parts = ("subject", "object", "claimType", "claimStatus", "description")
        for node in sorted(self._claims, key=str):
            said = _values(self._claims[node])
            named = (text_of(_first(said, part)) for part in (*parts, "claimStart", "claimEnd"))
            yield ExportedClaim(node.value, *named)

    def labels(self, kind: str = "Entity") -> dict[str, str]:
        """The label of each entity, type (``EntityType``) or relation (``Relation``), by IRI."""
        return {
            node.value: text_of(_first(_values(self._about(node)), v.RDFS_LABEL.value))
            for node in self._nodes[kind]
        }


def _values(quads: Iterable[Quad]) -> dict[str, list[Term]]:
    """What is said, by predicate; tgraph's own by their short names."""
    found: dict[str, list[Term]] = {}
    for quad in quads:
        found.setdefault(quad.predicate.value.removeprefix(v.TG), []).append(quad.object)
    return found


def _first(said: dict[str, list[Term]], name: str) -> Term | None:
    return next(iter(said.get(name, ())), None)


def _texts(said: dict[str, list[Term]], name: str) -> tuple[str, ...]:
    return tuple(sorted(text_of(term) for term in said.get(name, ())))


@dataclass(frozen=True)
class KnowledgeSource:
    """What is written: knowledge, and where its evidence is read."""

    store: Store
    texts: Texts
    evidence: EvidenceReader

    @cached_property
    def knowledge(self) -> Knowledge:
        """What the store knows."""
        return Knowledge(self.store)

    def places(self) -> Iterator[tuple[str, tuple[Evidence, ...]]]:
        """Each entity, edge and claim that has evidence, by IRI, with its places."""
        knowledge = self.knowledge
        for some in _batches(entity.iri for entity in knowledge.entities()):
            found = self.evidence.of_entities(some)
            for entity in some:
                yield entity, tuple(place for place, _ in found.get(entity, ()))
        for some in _batches(edge.iri for edge in knowledge.edges()):
            stands = self.evidence.of_edges(some, _PLACES)
            yield from ((edge, stands.get(edge, ())) for edge in some)
        yield from sorted(self._claimed().items())

    def _claimed(self) -> dict[str, tuple[Evidence, ...]]:
        entities = [entity.iri for entity in self.knowledge.entities()]
        said = claims_of(self.store, self.texts, entities, self.evidence.doubt)
        return {claim.iri: claim.evidence for claims in said.values() for claim in claims}


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    while some := list(islice(left, _AT_ONCE)):
        yield some


def knowledge_source(opened: OpenCollection) -> KnowledgeSource:
    """What the collection knows, for an export; evidence that can't be quoted is told of."""
    store = opened.read()
    texts = Texts(store, opened.librarian)
    told = stored_evidence(store, texts, lambda error: opened.message(left_out(error)))
    return KnowledgeSource(store, texts, told)
