"""Graph retrieval: the specification's subgraph around the entities that a question is about.

Concepts lead to seed entities, by name and by vector; the edges whose text is nearest to the
question lead to seeds too. From the seeds the subgraph grows breadth first, and its edges are ranked
by meaning, words and closeness to the seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.knowledge import is_statement
from tgraph.model import Candidate, Edge, EntityMatch, Evidence, Retrieval
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.evidence import evidence_of
from tgraph.retrieve.labels import Triple, described, edge_iri, labels_of, with_labels
from tgraph.retrieve.lexical import STOP_WORDS, Bm25, stem, terms, words
from tgraph.store.base import Store, select

HUB = 2_000
"""Triples read of one entity in one direction before the triple limit picks the nearest."""

NEAREST_EDGES = 40
"""Edges nearest to the question, whose ends become seeds."""

MEANING, WORDS, CLOSENESS = 0.55, 0.35, 0.10
"""Weights of the ranking, each part scaled to 0..1."""


@dataclass(slots=True)
class _Subgraph:
    """Edges found so far: triple and hop by IRI, and what the limits left out."""

    edges: dict[str, tuple[Triple, int]] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, reason: str, count: int) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count


class GraphRetriever:
    """The mode ``graph``."""

    mode = "graph"

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        text = _in_context(question)
        nearest = _nearest_edges(text, context)
        matches = match_entities(question, nearest, context)
        subgraph = _grow([match.entity for match in matches], text, context)
        return _rank(text, matches, subgraph, question.concepts, context)


def _in_context(question: Question) -> str:
    """What is searched for: the question with the concepts that only the history explains."""
    missing = [c for c in question.concepts if not set(terms(c)) <= set(terms(question.text))]
    return " ".join([question.text, *missing])


# --- seeds ---------------------------------------------------------------------------------------


def _nearest_edges(text: str, context: Context) -> list[tuple[str, float]]:
    edges = context.vectors["edge"]
    return edges.search(context.embed([text]), NEAREST_EDGES)[0]


def match_entities(
    question: Question, nearest: Sequence[tuple[str, float]], context: Context
) -> list[EntityMatch]:
    """The seed entities, best first, at most ``entity_limit``, each with the concept it came from."""
    limit = context.limits.entity_limit
    concepts = question.concepts or (question.text,)
    each = max(1, limit // (len(concepts) + 1))
    found: dict[str, EntityMatch] = {}

    def offer(entity: str, concept: str, score: float, method: str) -> None:
        if entity not in found or score > found[entity].score:
            found[entity] = EntityMatch(entity, "", concept, score, method)

    for concept in concepts:
        for entity in match_names(concept, context.store):
            offer(entity, concept, 1.0, "name")
    for concept, hits in zip(
        concepts,
        context.vectors["entity"].search(context.embed(list(concepts)), each),
        strict=True,
    ):
        for entity, score in hits:
            offer(entity, concept, score, "vector")
    for entity, score in _ends(nearest, context.store):
        offer(entity, question.text, score, "edge")
    ranked = sorted(found.values(), key=lambda m: (-m.score, m.entity))[:limit]
    labels = labels_of(context.store, [NamedNode(match.entity) for match in ranked])
    return [
        EntityMatch(m.entity, labels[NamedNode(m.entity)], m.concept, m.score, m.method)
        for m in ranked
    ]


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
                if quad.subject.value.startswith(f"{v.URN}entity:"):
                    found.add(quad.subject.value)
    return sorted(found)


def _ends(nearest: Sequence[tuple[str, float]], store: Store) -> Iterable[tuple[str, float]]:
    for edge, score in nearest:
        reified = store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        for quad in islice(reified, 1):
            triple = quad.object
            for term in (triple.subject, triple.object):  # type: ignore[union-attr]
                if isinstance(term, NamedNode):
                    yield term.value, max(score, 0.0)


# --- the subgraph ---------------------------------------------------------------------------------


def _grow(seeds: Sequence[str], text: str, context: Context) -> _Subgraph:
    """Breadth first from the seeds, ``max_path_length`` hops, ``triple_limit`` triples an entity."""
    subgraph = _Subgraph()
    visited: set[str] = set()
    frontier = list(seeds)
    for hop in range(context.limits.max_path_length):
        reached: dict[str, float] = {}
        for entity in frontier:
            if entity in visited:
                continue
            visited.add(entity)
            kept = _edges_of(entity, text, subgraph, context)
            for iri, triple, score in kept:
                subgraph.edges.setdefault(iri, (triple, hop))
                for term in (triple[0], triple[2]):
                    if isinstance(term, NamedNode):
                        reached[term.value] = max(reached.get(term.value, 0.0), score)
        ranked = sorted(set(reached) - visited, key=lambda entity: (-reached[entity], entity))
        subgraph.drop("entity limit", max(0, len(ranked) - context.limits.entity_limit))
        frontier = ranked[: context.limits.entity_limit]
    return subgraph


def _edges_of(
    entity: str, text: str, subgraph: _Subgraph, context: Context
) -> list[tuple[str, Triple, float]]:
    """The entity's edges, nearest to the question first, as many as the triple limit allows."""
    node = NamedNode(entity)
    store = context.store
    outgoing = islice(store.match(node, None, None, v.KNOWLEDGE_GRAPH), HUB)
    incoming = islice(store.match(None, None, node, v.KNOWLEDGE_GRAPH), HUB)
    triples: dict[str, Triple] = {}
    for quad in (*outgoing, *incoming):
        if is_statement(quad.predicate) and isinstance(quad.subject, NamedNode):
            triple = (quad.subject, quad.predicate, quad.object)
            triples[edge_iri(triple)] = triple  # type: ignore[arg-type, assignment]
    scores = _similarities(triples, text, context)
    ranked = sorted(triples, key=lambda iri: (-scores.get(iri, 0.0), iri))
    limit = context.limits.triple_limit
    subgraph.drop("triple limit", max(0, len(ranked) - limit))
    return [(iri, triples[iri], scores.get(iri, 0.0)) for iri in ranked[:limit]]


def _similarities(edges: Iterable[str], text: str, context: Context) -> dict[str, float]:
    wanted = set(edges)
    if not wanted:
        return {}
    hits = context.vectors["edge"].search(context.embed([text]), len(wanted), allowed=wanted)
    return dict(hits[0])


# --- ranking --------------------------------------------------------------------------------------


def _rank(
    text: str,
    matches: Sequence[EntityMatch],
    subgraph: _Subgraph,
    concepts: Sequence[str],
    context: Context,
) -> Retrieval:
    edges = _with_attributes(context.store, subgraph)
    evidence = evidence_of(context.store, context.texts, list(edges), context.limits.evidence_limit)
    standing = [iri for iri in edges if evidence.get(iri)]
    subgraph.drop("edge without standing evidence", len(edges) - len(standing))
    scores = _scores(text, standing, edges, evidence, subgraph, context)
    ranked = sorted(standing, key=lambda iri: (-scores[iri][0], iri))
    limit = context.limits.max_subgraph_size
    subgraph.drop("subgraph size", max(0, len(ranked) - limit))
    candidates = tuple(
        Candidate(
            edge=edges[iri],
            rank=rank,
            score=round(scores[iri][0], 6),
            hop=subgraph.edges[iri][1],
            evidence=evidence[iri],
            reasons=scores[iri][1],
        )
        for rank, iri in enumerate(ranked[:limit], 1)
    )
    return Retrieval(
        candidates=candidates,
        total=len(ranked),
        concepts=tuple(concepts),
        matches=tuple(matches),
        cut=tuple(ranked) if len(ranked) > limit else (),
        dropped=subgraph.dropped,
    )


def _with_attributes(store: Store, subgraph: _Subgraph) -> dict[str, Edge]:
    """The edges with labels, weight and description; triples that are no edges are left out."""
    iris = sorted(subgraph.edges)
    labelled = with_labels(store, [subgraph.edges[iri][0] for iri in iris])
    rows = (
        select(store, "retrieve/edges", {"edges": [NamedNode(iri) for iri in iris]}, union=False)
        if iris
        else []
    )
    attributes = {row["edge"].value: row for row in rows}  # type: ignore[union-attr]
    subgraph.drop("triple without an edge", len(iris) - len(attributes))
    return {
        iri: described(edge, float(_text(attributes[iri]["weight"]) or 1.0), _text(attributes[iri]["description"]))
        for iri, edge in zip(iris, labelled, strict=True)
        if iri in attributes
    }


def _text(term: object) -> str:
    return term.value if isinstance(term, Literal) else ""


def _scores(
    text: str,
    iris: Sequence[str],
    edges: Mapping[str, Edge],
    evidence: Mapping[str, tuple[Evidence, ...]],
    subgraph: _Subgraph,
    context: Context,
) -> dict[str, tuple[float, tuple[str, ...]]]:
    """Score and reasons of each edge: meaning, words and closeness, weighted."""
    meaning = _similarities(iris, text, context)
    documents = [terms(" ".join([edges[i].text, *(e.quote for e in evidence[i][:1])])) for i in iris]
    bm25 = Bm25(documents)
    query = terms(text)
    lexical = bm25.scores(query)
    best = max(lexical, default=0.0) or 1.0
    found = {}
    for iri, document, points in zip(iris, documents, lexical, strict=True):
        similar = max(0.0, meaning.get(iri, 0.0))
        hop = subgraph.edges[iri][1]
        score = MEANING * similar + WORDS * points / best + CLOSENESS / (1 + hop)
        shared = [word for word in dict.fromkeys(_content_words(text)) if stem(word) in document]
        found[iri] = (score, _reasons(similar, shared, hop))
    return found


def _content_words(text: str) -> list[str]:
    return [word for word in words(text) if word not in STOP_WORDS]


def _reasons(similar: float, shared: Sequence[str], hop: int) -> tuple[str, ...]:
    reasons = [f"its meaning is {similar:.2f} similar to the question"]
    if shared:
        reasons.append(f"it shares the words {', '.join(shared[:6])}")
    where = "touches a matched entity" if hop == 0 else f"lies {hop + 1} hops from a matched entity"
    return (*reasons, f"it {where}")
