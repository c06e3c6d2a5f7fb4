"""Graph retrieval: the specified subgraph around the question's entities.

Concepts lead to seed entities, by name and by vector; edges with the nearest sentences lead to
seeds too. From the seeds, the subgraph grows breadth first. Edges are ranked by how well the
supporting sentences answer: by meaning, by words, by the requested kind of answer, and, where
no sentence answers alone, by a bridge of two sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tgraph.index.hub_rows import READ_EVIDENCE
from tgraph.model import Candidate, Edge, EntityMatch, Evidence, Retrieval
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.candidates import edge_cost
from tgraph.retrieve.entity_matching import match_entities, match_given, match_names, triples_of
from tgraph.retrieve.labels import Triple, with_labels
from tgraph.retrieve.labels import add_description as with_description
from tgraph.retrieve.orders import cut_order
from tgraph.retrieve.reasons import explain
from tgraph.retrieve.search.multi_hop import (
    Bridge,
    BridgePart,
    build_best_bridge,
    find_described_entities,
)
from tgraph.retrieve.subgraph import Subgraph, edges_of, ends, grow_subgraph, weights_of
from tgraph.retrieve.text.lexical import Frequencies, stem, term_set, terms
from tgraph.retrieve.text.lexicon import ENGLISH, count_frequencies
from tgraph.retrieve.text.question_analysis import (
    AnalysedQuestion,
    Description,
    analyse_question,
    find_descriptions,
    telling_words,
)
from tgraph.retrieve.text.sentence_ranking import (
    LexicalFeatures,
    Score,
    SentencePassage,
    SentencePlace,
    gather_sentences,
    meaning_of,
    place_of,
    rate_passages,
    stated_in,
    weighted_share,
)
from tgraph.retrieve.text.similarity import Similarity

__all__ = ["GraphRetriever", "match_entities", "match_names"]

NEAREST_EDGES = 80
"""Edges nearest to the question, whose ends become seeds."""

READ = 500
"""Edges whose sentences are read: those that the first ranking, by meaning, leaves."""

OF_ONE = 12
"""Edges read of each entity that a description may mean."""

SLACK = 0.1
"""How much less than the best sentence alone a bridge may be worth."""

PENALTY = 0.05
"""What a bridge must be worth more than one sentence to be as good evidence as that."""

AROUND_BEST = 12
"""Sentences whose neighbours are read."""

BESIDE = 350
"""Characters within which a sentence is a neighbour."""

BACK = 600
"""Characters before a sentence within which what its pronouns mean is looked for."""

_PRONOUN = re.compile(r"\b(?:he|she|it|they|his|her|its|their|him|them)\b", re.IGNORECASE)


class GraphRetriever:
    """The mode ``graph``."""

    step = "Traversal"
    matches_entities = True

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        text = in_context(question)
        counts = count_frequencies(context)
        inquiry = analyse_question(text, counts)
        meaning = meaning_of(inquiry, context)
        halves = [_Halves(description, counts, context) for description in find_descriptions(text)]
        nearest = _nearest_edges([meaning, *(half for pair in halves for half in pair.meanings)])
        seeds = context.limits.graph_seeds
        seed_matches = match_given(seeds, context) if seeds else None
        matches = seed_matches or match_entities(question, nearest, context)
        subgraph = grow_subgraph([match.entity for match in matches], inquiry, meaning, context)
        graph_candidates = _GraphCandidates(subgraph, context)
        order = reading_order(subgraph, meaning, matches)
        why = (
            "{item} is {place} edges of the subgraph by similarity to {question}, and the sentences"
        )
        reason = f"{why} of the first {READ} are read (fixed)"
        subgraph.orders += cut_order("edge", "most-read", READ, order, reason)
        graph_candidates.read(order)
        worths: LexicalFeatures = {}
        ratings = rate_passages(graph_candidates.passages.values(), inquiry, meaning, worths)
        graph_candidates.read_around(ratings, meaning)
        bridge = _find_bridge(halves, inquiry, graph_candidates, counts)
        meaning.learn(graph_candidates.edges)
        ratings = rate_passages(graph_candidates.passages.values(), inquiry, meaning, worths)
        promoted = _promote_sentences(ratings, bridge, graph_candidates, inquiry)
        return _rank_edges(
            question, _RatedSentences(inquiry, ratings, promoted), matches, graph_candidates
        )


class _Halves:
    """Two question halves: a description, and the question about the described entity."""

    def __init__(self, description: Description, counts: Frequencies, context: Context) -> None:
        self.description = description
        self.inquiry = analyse_question(description.text, counts)
        target_inquiry = analyse_question(description.replace_description(""), counts)
        self.meanings = meaning_of(self.inquiry, context), meaning_of(target_inquiry, context)


def _nearest_edges(meanings: Sequence[Similarity]) -> list[tuple[str, float]]:
    """Return edges nearest to the question, or to a question half, best first."""
    edge_scores: dict[str, float] = {}
    for meaning in meanings:
        for edge, score in meaning.nearest(NEAREST_EDGES):
            edge_scores[edge] = max(score, edge_scores.get(edge, score))
    return sorted(edge_scores.items(), key=lambda pair: (-pair[1], pair[0]))[:NEAREST_EDGES]


def _find_bridge(
    halves: Sequence[_Halves],
    question: AnalysedQuestion,
    found: _GraphCandidates,
    counts: Frequencies,
) -> Bridge | None:
    """Return the best bridge found through the question's descriptions."""
    bridges = []
    for pair in halves:
        description_meaning, target_meaning = pair.meanings
        description_meaning.learn(found.edges)
        part = BridgePart(
            pair.inquiry,
            description_meaning,
            rate_passages(found.passages.values(), pair.inquiry, description_meaning),
        )
        described_entities = find_described_entities(part, found.passages, question)
        target_meaning.learn(found.edges)
        found.read_of([entity.iri for _, entity in described_entities], target_meaning)
        bridge = build_best_bridge(
            pair.description, part, described_entities, found.passages, target_meaning, counts
        )
        bridges += [bridge] if bridge else []
    return max(bridges, key=lambda bridge: bridge.score, default=None)


def _promote_sentences(
    ratings: Mapping[SentencePlace, Score],
    bridge: Bridge | None,
    found: _GraphCandidates,
    inquiry: AnalysedQuestion,
) -> dict[SentencePlace, _Promotion]:
    """Return sentences gaining score in combination with other sentences."""
    ranked = sorted(ratings, key=lambda place: (-ratings[place].score, str(place)))[:1]
    ends_ = [found.passages[place] for place in ranked]
    best = max((ratings[place].score for place in ranked), default=0.0)
    promoted: dict[SentencePlace, _Promotion] = {}
    if bridge and (bridge.score > best - SLACK or bridge.first.place in ranked):
        best = max(best, bridge.score - PENALTY)
        first, why = bridge.first, explain("sentence-leads", name=bridge.name)
        promoted[first.place] = _Promotion(best, why)
        for second in bridge.seconds:
            why = explain("sentence-follows", name=bridge.name)
            promoted[second.place] = _Promotion(best, why, first.evidence.iri)
        ends_ = [bridge.first, *bridge.seconds[:1]]
    for end in ends_:
        antecedent_passage = find_antecedent(end, found.passages.values(), inquiry)
        if antecedent_passage and antecedent_passage.place not in promoted:
            why = explain("sentence-antecedent")
            promoted[antecedent_passage.place] = _Promotion(best, why)
    return promoted


@dataclass(frozen=True, slots=True)
class _Promotion:
    """A sentence's combined worth: score, reason, and evidence leading to the sentence."""

    score: float
    reason: str
    bridge: str = ""


_ALONE = _Promotion(0.0, "")


def in_context(question: Question) -> str:
    """Return the search text: the question, plus concepts explained only by the history."""
    missing = [c for c in question.concepts if not set(terms(c)) <= set(terms(question.text))]
    return " ".join([question.text, *missing])


def reading_order(
    subgraph: Subgraph, meaning: Similarity, matches: Sequence[EntityMatch]
) -> list[str]:
    """Return edges worth reading: nearest meaning first, favouring edges of entities named in
    the question."""
    named_entities = {match.entity for match in matches if match.method == "name"}

    def key(iri: str) -> tuple[float, str]:
        triple, hop = subgraph.edges[iri]
        touches = bool(named_entities & set(ends(triple)))
        return -(meaning.of_edge(iri) + 0.15 * touches - 0.02 * hop), iri

    return sorted(subgraph.edges, key=key)


class _GraphCandidates:
    """Content read from a subgraph: labelled edges, evidence, passages."""

    def __init__(self, subgraph: Subgraph, context: Context) -> None:
        self.subgraph = subgraph
        self.context = context
        self.edges: dict[str, Edge] = {}
        self.evidence: dict[str, tuple[Evidence, ...]] = {}
        self.passages: dict[SentencePlace, SentencePassage] = {}

    def read(self, ranked: Sequence[str], limit: int = READ) -> None:
        context, subgraph = self.context, self.subgraph
        chosen = ranked[:limit]
        subgraph.drop("far from the question", len(ranked) - len(chosen))
        self.edges = context.open_cache("labelled", 50_000).get_all(chosen, self._label_edges)
        subgraph.drop("triple without an edge", len(chosen) - len(self.edges))
        read = partial(context.evidence.of_edges, limit=READ_EVIDENCE)
        self.evidence = context.open_cache("evidence", 50_000).get_all(self.edges, read)
        standing = [iri for iri in self.edges if self.evidence.get(iri)]
        subgraph.drop("edge without standing evidence", len(self.edges) - len(standing))
        self.edges = {iri: self.edges[iri] for iri in standing}
        self.passages = gather_sentences(self.edges, self.evidence, context)

    def read_around(self, ratings: Mapping[SentencePlace, Score], meaning: Similarity) -> bool:
        """Read the edges whose sentences stand beside the best ones, within the graph's limits."""
        passages = self.passages.values()
        ranked = sorted(passages, key=lambda p: (-ratings[p.place].score, p.evidence.iri))
        near = self._stated_near(ranked[:AROUND_BEST])
        new = [iri for iri in near if iri not in self.edges]
        for iri, triple in triples_of(new, self.context).items():
            self.subgraph.admit(iri, triple, self.context)
        admitted = [iri for iri in new if iri in self.subgraph.edges]
        self.subgraph.drop("beside a good sentence, but beyond a limit", len(new) - len(admitted))
        if not admitted:
            return False
        meaning.learn(admitted)
        self.read([*self.edges, *admitted], READ + len(admitted))
        return True

    def read_of(self, entities: Sequence[str], meaning: Similarity) -> bool:
        """Read the entities' edges nearest to the question about the entities."""
        new: dict[str, None] = {}
        for entity in entities:
            nearby_edges = {
                i: t for i, t in edges_of(entity, self.context).items() if i not in self.edges
            }
            meaning.learn(nearby_edges)
            for iri in sorted(nearby_edges, key=lambda i: (-meaning.of_edge(i), i))[:OF_ONE]:
                self.subgraph.admit(iri, nearby_edges[iri], self.context)
                new[iri] = None
        admitted = [iri for iri in new if iri in self.subgraph.edges]
        if admitted:
            self.read([*self.edges, *admitted], len(self.edges) + len(admitted))
        return bool(admitted)

    def _stated_near(self, passages: Sequence[SentencePassage]) -> list[str]:
        """Return edges stated within a few sentences around the passages."""
        edges_by_chunk = stated_in((p.evidence.chunk for p in passages), self.context)
        return list(
            dict.fromkeys(
                edge
                for p in passages
                for start, edge in edges_by_chunk.get(p.evidence.chunk, ())
                if p.evidence.start - BESIDE <= start <= p.evidence.end + BESIDE
            )
        )

    def _label_edges(self, iris: list[str]) -> dict[str, Edge]:
        """Return edges with labels, weight and description; omit triples that are no edges."""
        labelled = with_labels(self.context.graph, [self.subgraph.edges[i][0] for i in iris])
        edge_weights = weights_of(self.context, iris)
        return {
            iri: with_description(edge, *edge_weights[iri])
            for iri, edge in zip(iris, labelled, strict=True)
            if iri in edge_weights
        }


# --- ranking ---


@dataclass(frozen=True, slots=True)
class _RatedSentences:
    """Sentence ratings for a question, alone and combined."""

    inquiry: AnalysedQuestion
    ratings: Mapping[SentencePlace, Score]
    promoted: Mapping[SentencePlace, _Promotion]

    def score(self, place: SentencePlace) -> float:
        return max(self.ratings[place].score, self.promoted.get(place, _ALONE).score)

    def bridge(self, place: SentencePlace) -> str:
        """Return evidence in another document leading to the sentence; empty without bridge."""
        return self.promoted.get(place, _ALONE).bridge

    def reason(self, passage: SentencePassage) -> list[str]:
        """Return the reasons for the sentence's rank."""
        rating = self.ratings[passage.place]
        promotion = self.promoted.get(passage.place, _ALONE)
        reasons = [promotion.reason] if promotion.score > rating.score else []
        if not self.inquiry.by_words:
            reasons.append(explain("sentence-similarity", score=rating.similar))
        shared = self._shared_words(passage)
        if shared:
            reasons.append(explain("sentence-words", words=", ".join(shared[:6])))
        return reasons

    def _shared_words(self, passage: SentencePassage) -> list[str]:
        """Return the question's telling words occurring in the sentence."""
        lexicon = self.inquiry.lexicon
        if lexicon is not ENGLISH:
            return [term for term in self.inquiry.weights if term in passage.wording.quote]
        telling = dict.fromkeys(telling_words(self.inquiry.text))
        return [word for word in telling if stem(word) in passage.wording.quote]


def _rank_edges(
    question: Question,
    rated: _RatedSentences,
    matches: Sequence[EntityMatch],
    found: _GraphCandidates,
) -> Retrieval:
    scored = {}
    for iri, edge in found.edges.items():
        passages = [found.passages[place_of(e)] for e in found.evidence[iri]]
        passages.sort(key=lambda p: (-rated.score(p.place), p.evidence.iri))
        points = rated.score(passages[0].place) - 0.0005 * (1 - _label_share(edge, rated.inquiry))
        order = {passage.place: i for i, passage in enumerate(passages)}
        shown_evidence = sorted(found.evidence[iri], key=lambda e: (order[place_of(e)], e.iri))
        scored[iri] = round(points, 6), passages[0], tuple(shown_evidence)
    ranked = sorted(scored, key=lambda iri: (-scored[iri][0], iri))
    limits, subgraph = found.context.limits, found.subgraph
    subgraph.drop("subgraph size", max(0, len(ranked) - limits.max_subgraph_size))
    edge_count = min(len(ranked), limits.max_subgraph_size)
    subgraph.drop("edge score limit", max(0, edge_count - limits.judged_count))
    names = {match.entity: match.label for match in matches if match.method == "name"}
    candidates = tuple(
        Candidate(
            item=found.edges[iri],
            rank=rank,
            score=max(0.0, scored[iri][0]),
            hop=subgraph.edges[iri][1],
            evidence=(places := scored[iri][2][: limits.evidence_limit]),
            reasons=(*rated.reason(scored[iri][1]), _describe_way(*subgraph.edges[iri], names)),
            tokens=edge_cost(found.edges[iri], places, found.context),
            bridge=rated.bridge(scored[iri][1].place),
        )
        for rank, iri in enumerate(ranked[: limits.judged_count], 1)
    )
    return Retrieval(
        candidates=candidates,
        total=len(ranked),
        concepts=tuple(question.concepts),
        matches=tuple(matches),
        cut=tuple(ranked) if len(ranked) > len(candidates) else (),
        dropped=subgraph.dropped,
        orders=tuple(subgraph.orders),
    )


def _label_share(edge: Edge, inquiry: AnalysedQuestion) -> float:
    edge_terms = term_set(edge.text)
    word_share = weighted_share(
        inquiry.weights, {term: float(term in edge_terms) for term in inquiry.weights}
    )
    return word_share * (0.3 if edge.predicate_label == "mentions" else 1.0)


def _describe_way(triple: Triple, hop: int, names: Mapping[str, str]) -> str:
    """Return a description of the way from question to edge."""
    entity_labels = [names[end] for end in ends(triple) if end in names]
    if entity_labels:
        return f"the question names {' and '.join(entity_labels)}"
    return explain("edge-hops", hops=hop + 1) if hop else explain("edge-matched")


def find_antecedent(
    passage: SentencePassage, passages: Iterable[SentencePassage], inquiry: AnalysedQuestion
) -> SentencePassage | None:
    """Find the preceding sentence that names a pronoun's referent in the passage.

    Return None if the question itself names the referent, or if the question names the subject
    of the passage's document or section title and nothing else identifies the referent."""
    if not _PRONOUN.search(passage.quote[:60]):
        return None
    entity_stems = {
        stem
        for mention in passage.named
        if not any(word in passage.quote for word in mention.label.split())
        for stem in mention.terms
    }
    if entity_stems <= inquiry.weights.keys() and (
        entity_stems or passage.wording.title & inquiry.names
    ):
        return None
    document, page, start, _ = passage.place
    before = [
        p
        for p in passages
        if p.place[:2] == (document, page)
        and start - BACK <= p.place[2] < start
        and p.wording.is_prose
    ]
    before.sort(key=lambda p: (-p.place[2], p.place[3]))
    resolved = [p for p in before if entity_stems & p.wording.quote]
    if resolved and not _PRONOUN.search(resolved[0].quote[:60]):
        return resolved[0]
    named_there = [
        p for p in before[:3] if _names_one(p, inquiry) and not _PRONOUN.search(p.quote[:60])
    ]
    return next(iter(named_there + resolved), None)


def _names_one(passage: SentencePassage, inquiry: AnalysedQuestion) -> bool:
    """Return whether the passage itself names an entity absent from the question."""
    fresh = (mention.terms - inquiry.weights.keys() for mention in passage.named)
    return any(not terms_.isdisjoint(passage.wording.quote) for terms_ in fresh)
