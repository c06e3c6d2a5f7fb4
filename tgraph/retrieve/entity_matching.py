"""Seed entities: where in the graph a question begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError, nearest_names
from tgraph.index.graph_source import Edges, GraphSource
from tgraph.model import EntityMatch
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.labels import labels_of
from tgraph.store.base import Store

Hits = Sequence[tuple[str, float]]
_BY_VECTOR = 4
"""Entities that a concept leads to by vector."""

_ENTITY = v.tg("Entity").value
_WORD = re.compile(r"[\w'’.-]*\w")
_WORDS = 8
"""Of a name that is looked for in a question."""


def match_entities(question: Question, nearest: Hits, context: Context) -> list[EntityMatch]:
    """Return seed entities, best first, at most ``entity_limit``, each with the source concept.

    Names contained in the question come first, then the ends of the edges nearest to the
    question and the entities nearest to the concepts."""
    concepts = question.concepts or (question.text,)
    best_matches: dict[str, EntityMatch] = {}
    called = match_all(concepts, context.graph)
    name_matches = ((e, c, 1.0, "name") for c in concepts for e in called[c])
    for entity, concept, score, method in (
        *name_matches,
        *((e, question.text, s, "edge") for e, s in _find_edge_ends(nearest, context)),
        *_by_vector(concepts, context),
    ):
        if entity not in best_matches or score > best_matches[entity].score:
            best_matches[entity] = EntityMatch(entity, "", concept, score, method)
    ranked = sorted(best_matches.values(), key=lambda m: (m.method != "name", -m.score, m.entity))
    ranked = ranked[: context.limits.entity_limit]
    return add_labels(ranked, context.graph)


def match_given(names: Sequence[str], context: Context) -> list[EntityMatch]:
    """Return matches of a user's start entities.

    Raise ``UsageError`` for a name matching no entity."""
    matches = {
        entity: EntityMatch(entity, "", name, 1.0, "name")
        for name in names
        for entity in entities_named(name, context)
    }
    return add_labels(list(matches.values()), context.graph)


def entities_named(name: str, context: Context) -> list[str]:
    """Return entities with the given name or IRI; raise ``UsageError`` if none exists."""
    graph = context.graph
    entities = [name] if is_entity(name, graph) else match_names(name, graph)
    if not entities:
        nearest = nearest_names(name, entity_names(context.store))
        raise UnknownNameError(f"There is no entity called {name!r}.", nearest)
    return entities


def is_entity(iri: str, graph: GraphSource) -> bool:
    """Return whether the text equals an entity IRI held by knowledge."""
    return v.is_iri(iri) and _ENTITY in graph.statements.types([iri]).get(iri, ())


def add_labels(matches: Sequence[EntityMatch], graph: GraphSource) -> list[EntityMatch]:
    """Return matches with entity labels added."""
    labels = labels_of(graph, [NamedNode(match.entity) for match in matches])
    return [replace(match, label=labels[NamedNode(match.entity)]) for match in matches]


def _by_vector(concepts: Sequence[str], context: Context) -> Iterable[tuple[str, str, float, str]]:
    results = context.vectors["entity"].search(context.embed(list(concepts)), _BY_VECTOR)
    for concept, hits in zip(concepts, results, strict=True):
        for entity, score in hits:
            yield entity, concept, max(score, 0.0) * 0.8, "vector"


def entity_names(store: Store) -> Iterator[str]:
    """Yield all entity labels."""
    for entity in store.match(None, v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH):
        for quad in store.match(entity.subject, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH):
            if isinstance(quad.object, Literal):
                yield quad.object.value


def match_names(concept: str, graph: GraphSource) -> list[str]:
    """Entities called exactly so: by label or alias, letter case and white space aside."""
    return match_all([concept], graph)[concept]


def match_all(concepts: Sequence[str], graph: GraphSource) -> dict[str, list[str]]:
    """Return ``match_names`` results by concept, with as many look-ups as a single concept
    needs."""
    exact = {concept: v.entity_iri(concept) for concept in concepts}
    types = graph.statements.types(list(exact.values()))
    variants = {entry: {entry, entry.title(), entry.lower(), entry.upper()} for entry in concepts}
    entities_by_name = graph.statements.find_entities_by_name(
        list(dict.fromkeys(spelling for entry in variants.values() for spelling in entry))
    )
    return {
        concept: sorted(
            {
                entity
                for variant in variants[concept]
                for entity in entities_by_name.get(variant, ())
            }
            | ({exact[concept]} if _ENTITY in types.get(exact[concept], ()) else set())
        )
        for concept in concepts
    }


def names_within(text: str, graph: GraphSource) -> list[tuple[str, str]]:
    """Return entities named in the text, each with the naming words; among overlapping names,
    the longest counts."""
    words = [match.span() for match in _WORD.finditer(text)]
    spans = [
        range(first, first + length)
        for length in range(min(len(words), _WORDS), 0, -1)
        for first in range(len(words) - length + 1)
    ]
    names = {span: text[words[span[0]][0] : words[span[-1]][1]] for span in spans}
    called = match_all(list(dict.fromkeys(names.values())), graph)
    names_by_entity: dict[str, str] = {}
    used_words: set[int] = set()
    for span, name in names.items():
        if called[name] and used_words.isdisjoint(span):
            used_words.update(span)
            names_by_entity |= {
                entity: name for entity in called[name] if entity not in names_by_entity
            }
    return list(names_by_entity.items())


def _find_edge_ends(nearest: Hits, context: Context) -> Iterable[tuple[str, float]]:
    triples = triples_of([edge for edge, _ in nearest], context)
    for edge, score in nearest:
        triple = triples.get(edge)
        for term in (triple[0], triple[2]) if triple else ():
            if isinstance(term, NamedNode):
                yield term.value, max(score, 0.0)


def triples_of(edges: Iterable[str], context: Context) -> Edges:
    """Return triples by edge IRI, in order; edge IRIs without a triple are omitted."""
    memory = context.open_cache("triples", 50_000)
    return memory.get_all(edges, context.graph.statements.triples)
