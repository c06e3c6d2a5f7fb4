"""Retrieval by keywords on two levels, in the manner of LightRAG (1.5.7; Guo and others 2024).

What a question names leads to entities and the edges around them (local), its themes to edges and
their ends (global). Both together are hybrid, and with the chunks nearest to the question, mix.
Unlike there, each keyword is linked by itself, and whatever is retrieved keeps its evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.model import Candidate, EntityMatch, Retrieval
from tgraph.retrieve.base import Context, Question, Retriever, Services
from tgraph.retrieve.basic import chunk_candidates, in_conversation, nearest_chunks
from tgraph.retrieve.candidates import (
    chunk_candidate,
    edge_candidate,
    entity_candidate,
    ranked,
    within,
)
from tgraph.retrieve.chunks import chunk_evidence, chunk_tokens
from tgraph.retrieve.entities import KnownEntity, degree, known_entities
from tgraph.retrieve.labels import Triple, labels_of, with_labels
from tgraph.retrieve.linking import in_turn, linked_edges, linked_entities
from tgraph.retrieve.modes.base import Mode
from tgraph.retrieve.modes.lightrag import (
    LEGS,
    LIGHTRAG_GLOBAL,
    LIGHTRAG_HYBRID,
    LIGHTRAG_LOCAL,
    LIGHTRAG_MIX,
    LegName,
    LightragSearchSettings,
)
from tgraph.retrieve.picking import Groups, pick_by_vector, pick_by_weight, shared_by
from tgraph.retrieve.seeds import triple_of
from tgraph.retrieve.subgraph import edges_of, ends
from tgraph.settings import Settings

_PLACES = 40
"""Places of an edge that are looked at for chunks."""


@dataclass(frozen=True, slots=True)
class FoundEdge:
    """An edge with its score and why it was found."""

    iri: str
    triple: Triple
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class Leg:
    """What one level of keywords leads to, best first."""

    matches: Sequence[EntityMatch] = ()
    edges: Sequence[FoundEdge] = ()


class LightRetriever:
    """What the ``legs`` lead to, in turn."""

    step = "ContextBuilding"
    matches_entities = True

    def __init__(self, legs: Sequence[LegName], settings: LightragSearchSettings) -> None:
        self._legs = legs
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        legs = [self._leg(name, question, context) for name in self._legs if name != "chunks"]
        matches = in_turn([leg.matches for leg in legs], lambda match: match.entity)
        edges = in_turn([leg.edges for leg in legs], lambda edge: edge.iri)
        most = context.limits.max_subgraph_size
        gathered = _Gathered(matches, edges[:most], question, self._settings, context)
        near = self._near(question, context) if "chunks" in self._legs else []
        candidates = ranked(gathered.candidates(near))
        return Retrieval(
            candidates,
            total=len(edges),
            items=sum(candidate.item.kind != "edge" for candidate in candidates),
            matches=tuple(gathered.labelled_matches()),
            cut=tuple(edge.iri for edge in edges) if len(edges) > most else (),
        )

    def _leg(self, name: str, question: Question, context: Context) -> Leg:
        """Where no keyword leads anywhere, the question as a whole may."""
        low, high, whole = question.keywords.low, question.keywords.high, (question.text,)
        if name == "local" and low:
            found = local_leg(low, self._settings, context)
            return found if found.matches else local_leg(whole, self._settings, context)
        if name == "global" and high:
            found = global_leg(high, self._settings, context)
            return found if found.matches else global_leg(whole, self._settings, context)
        return Leg()

    def _near(self, question: Question, context: Context) -> list[Candidate]:
        settings = self._settings
        hits = nearest_chunks(question, settings.chunk_top_k, settings.least_score, context)
        return chunk_candidates(hits, context)


def local_leg(keywords: Sequence[str], settings: LightragSearchSettings, context: Context) -> Leg:
    """The entities that the keywords lead to, and all edges of them: those whose ends have most
    relationships first, then those of most weight."""
    links = linked_entities(keywords, settings.top_k, settings.least_score, context)
    matches = [EntityMatch(x.iri, "", x.keyword, x.score, x.method) for x in links]
    triples = {iri: triple for x in links for iri, triple in edges_of(x.iri, context).items()}
    degrees = {
        iri: sum(degree(context, end) for end in ends(triple)) for iri, triple in triples.items()
    }
    most = max(degrees.values(), default=1)
    order = sorted(triples, key=lambda iri: (-degrees[iri], -weight_of(iri, context), iri))
    return Leg(
        matches,
        [
            FoundEdge(
                iri,
                triples[iri],
                round(degrees[iri] / most, 6),
                f"it is an edge of what the question names, and its ends have {degrees[iri]}"
                " relationships",
            )
            for iri in order
        ],
    )


def global_leg(keywords: Sequence[str], settings: LightragSearchSettings, context: Context) -> Leg:
    """The edges nearest to the keywords, and the entities at their ends in the order of the
    edges."""
    found = [
        (link, triple)
        for link in linked_edges(keywords, settings.top_k, settings.least_score, context)
        if (triple := triple_of(link.iri, context)) is not None
    ]
    matches = [
        EntityMatch(entity, "", link.keyword, link.score, "edge")
        for link, triple in found
        for entity in ends(triple)
    ]
    edges = [
        FoundEdge(
            link.iri,
            triple,
            link.score,
            f"it is {link.score:.2f} similar in meaning to “{link.keyword}”",
        )
        for link, triple in found
    ]
    return Leg(in_turn([matches], lambda match: match.entity), edges)


def weight_of(edge: str, context: Context) -> float:
    """The weight of an edge; 0 for what is none."""

    def read() -> float:
        quads = context.store.match(NamedNode(edge), v.tg("weight"), None, v.KNOWLEDGE_GRAPH)
        term = next((quad.object for quad in quads), None)
        return float(term.value) if isinstance(term, Literal) else 0.0

    found: float = context.remembered("weights", 50_000).get(edge, read)
    return found


@dataclass(slots=True)
class _Gathered:
    """The entities and edges of all legs, as candidates, and the chunks that they come from."""

    matches: Sequence[EntityMatch]
    edges: Sequence[FoundEdge]
    question: Question
    settings: LightragSearchSettings
    context: Context
    _known: dict[str, KnownEntity] = field(init=False)

    def __post_init__(self) -> None:
        self._known = known_entities(self.context, [match.entity for match in self.matches])

    def candidates(self, near: Sequence[Candidate]) -> list[Candidate]:
        """Entities, edges, and chunks: those near the question, those of the entities and those of
        the edges take turns. Only what the budgets have room for brings its chunks."""
        entities, edges = self._entities(), self._edges()
        budget = self.settings
        kept = within(entities, budget.max_entity_tokens)
        speaking = [[e.chunk for e in self._known[c.item.iri].named] for c in kept]
        by_entities = self._chunks(speaking, "it speaks of {} of the entities found")
        stating = self._stating(within(edges, budget.max_relationship_tokens))
        by_edges = self._chunks(stating, "it states {} of the edges found")
        chunks = in_turn([near, by_entities, by_edges], lambda c: c.item.iri)
        return [*entities, *edges, *chunks[: budget.chunk_top_k]]

    def labelled_matches(self) -> list[EntityMatch]:
        labels = labels_of(self.context.store, [NamedNode(m.entity) for m in self.matches])
        return [
            EntityMatch(m.entity, labels[NamedNode(m.entity)], m.concept, m.score, m.method)
            for m in self.matches
        ]

    def _entities(self) -> list[Candidate]:
        limit = self.context.limits.evidence_limit
        found = [
            entity_candidate(self._known[match.entity], match.score, _why(match), limit)
            for match in self.matches
            if match.entity in self._known
        ]
        return [candidate for candidate in found if candidate.evidence]

    def _edges(self) -> list[Candidate]:
        context = self.context
        iris = [edge.iri for edge in self.edges]
        limit = context.limits.evidence_limit
        evidence = context.evidence.of_edges(iris, limit)
        labelled = with_labels(context.store, [edge.triple for edge in self.edges])
        return [
            edge_candidate(edge, found.score, found.why, evidence[found.iri])
            for edge, found in zip(labelled, self.edges, strict=True)
            if evidence.get(found.iri)
        ]

    def _stating(self, edges: Sequence[Candidate]) -> Groups:
        context = self.context
        iris = [candidate.item.iri for candidate in edges]
        evidence = context.evidence.of_edges(iris, _PLACES)
        return [[place.chunk for place in evidence.get(iri, ())] for iri in iris]

    def _chunks(self, groups: Groups, why: str) -> list[Candidate]:
        context, each = self.context, self.settings.related_chunk_number
        vector = context.embed([in_conversation(self.question)])
        if self.settings.chunk_pick == "vector":
            picked = pick_by_vector(groups, each, vector, context)
        else:
            picked = pick_by_weight(groups, each)
        counts = shared_by(groups)
        whole = chunk_evidence(context, picked)
        tokens = chunk_tokens(context, list(whole))
        return [
            chunk_candidate(
                whole[chunk],
                round(counts[chunk] / len(groups), 6),
                why.format(counts[chunk]),
                tokens.get(chunk),
            )
            for chunk in picked
            if chunk in whole
        ]


def _why(match: EntityMatch) -> str:
    if match.method == "name":
        return f"it is called “{match.concept}”"
    if match.method == "edge":
        return f"an edge that is similar in meaning to “{match.concept}” leads to it"
    return f"it is {match.score:.2f} similar in meaning to “{match.concept}”"


def _over(mode: Mode, settings: Settings, services: Services) -> Retriever:
    return LightRetriever(LEGS[mode.name], settings.lightrag_search)


lightrag_local_retriever = partial(_over, LIGHTRAG_LOCAL)
lightrag_global_retriever = partial(_over, LIGHTRAG_GLOBAL)
lightrag_hybrid_retriever = partial(_over, LIGHTRAG_HYBRID)
lightrag_mix_retriever = partial(_over, LIGHTRAG_MIX)
