"""Seed entities: where in the graph a question begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError, nearest_names
from tgraph.model import EntityMatch
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.labels import Triple as Statement
from tgraph.retrieve.labels import labels_of
from tgraph.store.base import Store

Hits = Sequence[tuple[str, float]]
_BY_VECTOR = 4
"""Entities that a concept leads to by vector."""

_WORD = re.compile(r"[\w'’.-]*\w")
_WORDS = 8
"""Of a name that is looked for in a question."""


def match_entities(question: Question, nearest: Hits, context: Context) -> list[EntityMatch]:
    """The seed entities, best first, at most ``entity_limit``, each with the concept it came from.

    Names that the question contains come first, then the ends of the edges nearest to it and the
    entities nearest to its concepts.
    """
    concepts = question.concepts or (question.text,)
    found: dict[str, EntityMatch] = {}
    named = ((e, c, 1.0, "name") for c in concepts for e in match_names(c, context.store))
    for entity, concept, score, method in (
        *named,
        *((e, question.text, s, "edge") for e, s in _ends(nearest, context)),
        *_by_vector(concepts, context),
    ):
        if entity not in found or score > found[entity].score:
            found[entity] = EntityMatch(entity, "", concept, score, method)
    ranked = sorted(found.values(), key=lambda m: (m.method != "name", -m.score, m.entity))
    ranked = ranked[: context.limits.entity_limit]
    return labelled(ranked, context.store)


def match_given(names: Sequence[str], context: Context) -> list[EntityMatch]:
    """The entities that a user starts from. ``UsageError`` for a name that no entity has."""
    found = {
        entity: EntityMatch(entity, "", name, 1.0, "name")
        for name in names
        for entity in entities_named(name, context.store)
    }
    return labelled(list(found.values()), context.store)


def entities_named(name: str, store: Store) -> list[str]:
    """The entities of that name or IRI. ``UsageError`` where there is none."""
    found = [name] if is_entity(name, store) else match_names(name, store)
    if not found:
        nearest = nearest_names(name, entity_names(store))
        raise UnknownNameError(f"There is no entity called {name!r}.", nearest)
    return found


def is_entity(iri: str, store: Store) -> bool:
    """Whether the text is the IRI of an entity that knowledge has."""
    if not v.is_iri(iri):
        return False
    typed = store.match(NamedNode(iri), v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH)
    return next(typed, None) is not None


def labelled(matches: Sequence[EntityMatch], store: Store) -> list[EntityMatch]:
    """The matches with the labels of their entities."""
    labels = labels_of(store, [NamedNode(match.entity) for match in matches])
    return [replace(match, label=labels[NamedNode(match.entity)]) for match in matches]


def _by_vector(concepts: Sequence[str], context: Context) -> Iterable[tuple[str, str, float, str]]:
    results = context.vectors["entity"].search(context.embed(list(concepts)), _BY_VECTOR)
    for concept, hits in zip(concepts, results, strict=True):
        for entity, score in hits:
            yield entity, concept, max(score, 0.0) * 0.8, "vector"


def entity_names(store: Store) -> Iterator[str]:
    """The labels of all entities."""
    for entity in store.match(None, v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH):
        for quad in store.match(entity.subject, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH):
            if isinstance(quad.object, Literal):
                yield quad.object.value


def match_names(concept: str, store: Store) -> list[str]:
    """Entities called exactly so: by label or alias, letter case and white space aside."""
    exact = NamedNode(v.entity_iri(concept))
    found = set()
    if next(store.match(exact, v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH), None):
        found.add(exact.value)
    for variant in dict.fromkeys([concept, concept.title(), concept.lower(), concept.upper()]):
        for predicate in (v.RDFS_LABEL, v.SKOS_ALT_LABEL):
            for quad in store.match(None, predicate, Literal(variant), v.KNOWLEDGE_GRAPH):
                assert isinstance(quad.subject, NamedNode)
                if is_entity(quad.subject.value, store):
                    found.add(quad.subject.value)
    return sorted(found)


def names_within(text: str, store: Store) -> list[tuple[str, str]]:
    """The entities that the text names, each with the words that do; of names that overlap the
    longest counts."""
    words = [match.span() for match in _WORD.finditer(text)]
    found: dict[str, str] = {}
    taken: set[int] = set()
    for length in range(min(len(words), _WORDS), 0, -1):
        for first in range(len(words) - length + 1):
            places = range(first, first + length)
            if not taken.isdisjoint(places):
                continue
            name = text[words[first][0] : words[first + length - 1][1]]
            if entities := match_names(name, store):
                taken.update(places)
                found |= {entity: name for entity in entities if entity not in found}
    return list(found.items())


def _ends(nearest: Hits, context: Context) -> Iterable[tuple[str, float]]:
    for edge, score in nearest:
        triple = triple_of(edge, context)
        for term in (triple[0], triple[2]) if triple else ():
            if isinstance(term, NamedNode):
                yield term.value, max(score, 0.0)


def triple_of(edge: str, context: Context) -> Statement | None:
    """What an edge's IRI stands for."""

    def read() -> tuple[object, ...] | None:
        reified = context.store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        quad = next(reified, None)
        if quad is None or not isinstance(quad.object, Triple):
            return None
        return quad.object.subject, quad.object.predicate, quad.object.object

    triple: Statement | None = context.remembered("triples", 50_000).get(edge, read)
    return triple
