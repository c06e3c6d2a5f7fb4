"""Knowledge of a large graph, derived while reading, if the graph opens its collection.

``Derivation`` would derive the same knowledge from the same evidence, wherever knowledge
follows from single statements of the graph: ``audit knowledge`` and tests check the equality.
Other cases (a statement made twice, names of possibly one entity, several descriptions) are
``touched``, and derived from the record as usual."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import Self

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse

from tgraph import vocabulary as v
from tgraph.index.evidence import DEFAULT_STRENGTH
from tgraph.index.knowledge_quads import KnownTerms, entity_quads
from tgraph.index.standing_knowledge import Properties
from tgraph.index.touched import Touched
from tgraph.model import ExtractedEntity, Extraction
from tgraph.store.base import text_of
from tgraph.store.statements import Statements, reifier_quad, to_bytes


@dataclass(frozen=True, slots=True)
class _PlainEntity:
    """Combined evidence of an entity, while all evidence agrees on name, type and description."""

    name: str
    type: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def combine_with(self, told: ExtractedEntity) -> _PlainEntity | None:
        """Combine the entity with further evidence; return None if the evidence contradicts."""
        described = {self.description, told.description} - {""}
        if (self.name, self.type) != (told.name, told.type) or len(described) > 1:
            return None
        return replace(
            self,
            description="".join(described),
            aliases=_unite_texts(self.aliases, told.aliases),
            classes=_unite_texts(self.classes, told.classes),
        )

    def properties(self, entity: str) -> Properties:
        return {
            "entity": [NamedNode(entity)],
            "name": [Literal(self.name)],
            "entityType": [Literal(self.type)],
            "alias": [Literal(alias) for alias in self.aliases],
            "entityClass": [NamedNode(kind) for kind in self.classes],
        }


def _unite_texts(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other))) if other else one


class FirstKnowledge:
    """A collector of graph statements, taken in stretches, that derives knowledge from the
    statements.

    Derived knowledge is final: a run doesn't remove its own additions. Edges therefore wait in
    a file until all stretches are taken. Call ``close`` afterwards."""

    def __init__(self) -> None:
        self.touched = Touched()
        self._counts: dict[int, int] = {}
        self._entities: dict[str, _PlainEntity | None] = {}
        self._same: set[str] = set()
        self._relations: dict[str, str] = {}
        self._edges = TemporaryFile()  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._edges.close()

    def is_new(self, edge: str) -> bool:
        """Return whether the edge is new to the collector."""
        return _number(edge) not in self._counts

    def add_extraction(
        self, extraction: Extraction, edges: Mapping[str, Triple], stated: Iterable[str]
    ) -> None:
        """Collect a stretch and its edges; ``stated`` contains the stated edge of each
        evidence."""
        for entity in extraction.entities:
            self._take_entity(entity)
        for relationship in extraction.relationships:
            assert isinstance(relationship.predicate, NamedNode)
            self._relations[relationship.predicate.value] = relationship.label
        new = (reifier_quad(edge, triple) for edge, triple in edges.items() if self.is_new(edge))
        self._edges.write(to_bytes(new))
        for edge in filter(None, stated):
            self._counts[_number(edge)] = self._counts.get(_number(edge), 0) + 1

    def quads(self) -> Iterator[Quad]:
        """What knowledge has of it; then all that is ``touched`` is known."""
        yield from self._of_edges()
        yield from self._of_entities()

    def _of_edges(self) -> Iterator[Quad]:
        out, used = Statements(v.KNOWLEDGE_GRAPH), set()
        weight = (v.tg("weight"), DEFAULT_STRENGTH)
        self._edges.seek(0)
        for quad in parse(self._edges, RdfFormat.N_QUADS, lenient=True):
            edge, triple = text_of(quad.subject), quad.object
            assert isinstance(triple, Triple)
            ends = text_of(triple.subject), text_of(triple.object)
            if self._counts[_number(edge)] > 1 or not self._same.isdisjoint(ends):
                self.touched.edges[edge] = triple
            elif triple.subject != triple.object:
                used.add(triple.predicate.value)
                yield Quad(triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH)
                out.add(edge, (v.RDF_TYPE, v.tg("Edge")), weight)
                yield from out.take_quads()
        for relation in sorted(used):
            label = None if relation in self._entities else self._relations[relation]
            out.add(relation, (v.RDF_TYPE, v.tg("Relation")), (v.RDFS_LABEL, label))
        yield from out.take_quads()

    def _of_entities(self) -> Iterator[Quad]:
        shared: dict[Quad, None] = {}
        terms = KnownTerms(self._entities.__contains__)
        for entity, plain_entity in self._entities.items():
            if plain_entity is None or entity in self._same:
                self.touched.entities.add(entity)
                continue
            described = [(v.tg("description"), plain_entity.description or None)]
            evidence = [plain_entity.properties(entity)]
            for quad in entity_quads(entity, evidence, described, terms):
                if quad.subject.value == entity and quad.object != v.tg("EntityType"):  # type: ignore[union-attr]
                    yield quad
                else:
                    shared[quad] = None
        yield from shared

    def _take_entity(self, told: ExtractedEntity) -> None:
        entity = told.iri
        if told.same:
            self._same.update((entity, *told.same))
        if entity not in self._entities:
            attributes = told.description, told.aliases, told.classes
            self._entities[entity] = _PlainEntity(told.name, told.type, *attributes)
        elif (plain_entity := self._entities[entity]) is not None:
            self._entities[entity] = plain_entity.combine_with(told)


def _number(edge: str) -> int:
    return int(edge[-16:], 16)
