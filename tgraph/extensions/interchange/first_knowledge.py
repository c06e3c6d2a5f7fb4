"""Knowledge of a large graph that is the first of its collection, derived as it is read.

It is what ``Derivation`` would derive of the same evidence, for all that follows from the graph's
own statements one by one: ``audit knowledge`` says so, and tests. What does not (a statement that
is made twice, names that may be one, several descriptions) is ``touched``, and derived from the
record as anything.
"""

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
from tgraph.store.statements import Statements, reifier, to_bytes


@dataclass(frozen=True, slots=True)
class _PlainEntity:
    """What all evidence of an entity says, as long as it is one name, type and description."""

    name: str
    type: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def and_(self, told: ExtractedEntity) -> _PlainEntity | None:
        """With what another evidence says; None where it says otherwise."""
        described = {self.description, told.description} - {""}
        if (self.name, self.type) != (told.name, told.type) or len(described) > 1:
            return None
        return replace(
            self,
            description="".join(described),
            aliases=_together(self.aliases, told.aliases),
            classes=_together(self.classes, told.classes),
        )

    def properties(self, entity: str) -> Properties:
        return {
            "entity": [NamedNode(entity)],
            "name": [Literal(self.name)],
            "entityType": [Literal(self.type)],
            "alias": [Literal(alias) for alias in self.aliases],
            "entityClass": [NamedNode(kind) for kind in self.classes],
        }


def _together(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other))) if other else one


class FirstKnowledge:
    """Takes what the graph states, stretch by stretch, and says what knowledge is of it.

    What it says stays so: a run doesn't remove what it added. So the edges wait in a file until all
    is taken. ``close`` it.
    """

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
        """Whether the edge has not been taken before."""
        return _number(edge) not in self._counts

    def take(
        self, extraction: Extraction, edges: Mapping[str, Triple], stated: Iterable[str]
    ) -> None:
        """Take a stretch in, with its edges; ``stated`` are those of each piece of evidence."""
        for entity in extraction.entities:
            self._take_entity(entity)
        for told in extraction.relationships:
            assert isinstance(told.predicate, NamedNode)
            self._relations[told.predicate.value] = told.label
        new = (reifier(edge, triple) for edge, triple in edges.items() if self.is_new(edge))
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
                yield from out.take()
        for relation in sorted(used):
            label = None if relation in self._entities else self._relations[relation]
            out.add(relation, (v.RDF_TYPE, v.tg("Relation")), (v.RDFS_LABEL, label))
        yield from out.take()

    def _of_entities(self) -> Iterator[Quad]:
        shared: dict[Quad, None] = {}
        terms = KnownTerms(self._entities.__contains__)
        for entity, known in self._entities.items():
            if known is None or entity in self._same:
                self.touched.entities.add(entity)
                continue
            described = [(v.tg("description"), known.description or None)]
            evidence = [known.properties(entity)]
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
            said = told.description, told.aliases, told.classes
            self._entities[entity] = _PlainEntity(told.name, told.type, *said)
        elif (known := self._entities[entity]) is not None:
            self._entities[entity] = known.and_(told)


def _number(edge: str) -> int:
    return int(edge[-16:], 16)
