"""Bridges: sentence pairs answering a question neither sentence answers alone.

The first sentence identifies the person or thing described in a question; the second, from
another document, is about this entity and states the answer. Both sentences judge the candidate
entity: fit between first sentence and description, fit of entity kind, and quality of the
second sentence as an answer to the question with the entity's name in place of the description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tgraph.resources import load_weights
from tgraph.retrieve.text.answer_type import NamedAnswer, rate_kind_fit
from tgraph.retrieve.text.lexical import Frequencies, terms
from tgraph.retrieve.text.question_analysis import AnalysedQuestion, Description, analyse_question
from tgraph.retrieve.text.sentence_ranking import (
    Score,
    SentencePassage,
    SentencePlace,
    credit_sentence,
    rate_passages,
    weighted_share,
)
from tgraph.retrieve.text.similarity import Similarity

FIRST_ENDS = 5
"""Sentences that are tried as the first end of a bridge."""

FIT, SAID, RARITY = load_weights("bridge")
"""What it counts that an entity fits, the second sentence says the rest, and a name is rare."""

CLOSE = 0.9
"""The share of the best second end's score from which another one is an end too."""

_VAGUE = frozenset({"topic", "group"})


@dataclass(frozen=True, slots=True)
class Bridge:
    """A bridge between sentences: ``first`` identifies an entity, ``seconds`` answer the
    question about the entity, ``score`` rates both."""

    score: float
    first: SentencePassage
    seconds: tuple[SentencePassage, ...]
    name: str


@dataclass(frozen=True, slots=True)
class BridgePart:
    """A question part with answering sentences, best first."""

    inquiry: AnalysedQuestion
    meaning: Similarity
    ratings: Mapping[SentencePlace, Score]

    def best(
        self, passages: Mapping[SentencePlace, SentencePassage], count: int
    ) -> list[SentencePassage]:
        ranked = sorted(self.ratings, key=lambda p: (-self.ratings[p].score, str(p)))
        return [passages[place] for place in ranked[:count]]


def find_described_entities(
    part: BridgePart, passages: Mapping[SentencePlace, SentencePassage], question: AnalysedQuestion
) -> list[tuple[SentencePassage, NamedAnswer]]:
    """Find entities possibly meant by a description, in the sentences fitting the description
    best."""
    candidates = []
    for passage in part.best(passages, FIRST_ENDS):
        title = passage.evidence.title
        candidates += [
            (passage, mention)
            for mention in passage.named
            if mention.terms
            and mention.terms.isdisjoint(question.weights)
            and mention.kind not in _VAGUE
            and mention.label != title
        ]
    return candidates


def build_best_bridge(
    description: Description,
    part: BridgePart,
    meant: Sequence[tuple[SentencePassage, NamedAnswer]],
    passages: Mapping[SentencePlace, SentencePassage],
    meaning: Similarity,
    frequencies: Frequencies,
) -> Bridge | None:
    """Build bridges over candidate entities of the description and return the best, or None."""
    best: Bridge | None = None
    seconds: dict[str, list[tuple[float, SentencePassage]]] = {}
    for first, mention in meant:
        if mention.iri not in seconds:
            seconds[mention.iri] = _answers_about(
                description, mention, passages, meaning, frequencies
            )
        entity = _rate_entity_fit(description, first, mention, frequencies)
        elsewhere = [pair for pair in seconds[mention.iri] if pair[1].place[0] != first.place[0]]
        if not elsewhere:
            continue
        score = 0.5 * (part.ratings[first.place].score + elsewhere[0][0]) + entity
        if best is None or score > best.score:
            close = [p for worth, p in elsewhere[:2] if worth >= CLOSE * elsewhere[0][0]]
            best = Bridge(score, first, tuple(close), mention.label)
    return best


def _rate_entity_fit(
    description: Description, first: SentencePassage, named: NamedAnswer, frequencies: Frequencies
) -> float:
    """Rate how likely an entity matches the description, regardless of its sentence; at most 0."""
    nouns = terms(description.noun)
    called = (
        sum(credit_sentence(noun, first.wording) for noun in nouns) / len(nouns) if nouns else 1.0
    )
    rarity = max(map(frequencies.idf, named.terms))
    fit = 0.5 * (rate_kind_fit(description.noun, named.kind) + called)
    return FIT * (fit - 1.0) + RARITY * (rarity - 1.0)


def _answers_about(
    description: Description,
    named: NamedAnswer,
    passages: Mapping[SentencePlace, SentencePassage],
    meaning: Similarity,
    frequencies: Frequencies,
) -> list[tuple[float, SentencePassage]]:
    """Return rated sentences about an entity, best answers to the question first."""
    inquiry = analyse_question(description.replace_description(named.label), frequencies)
    other_weights = {t: w for t, w in inquiry.weights.items() if t not in named.terms}
    spoken = ((p, p.wording.quote | p.wording.labels | p.wording.title) for p in passages.values())
    entity_passages = [passage for passage, said_ in spoken if not named.terms.isdisjoint(said_)]
    rated_passages = []
    for place, rating in rate_passages(entity_passages, inquiry, meaning).items():
        wording = passages[place].wording
        term_share = (
            weighted_share(
                other_weights, {term: credit_sentence(term, wording) for term in other_weights}
            )
            if other_weights
            else 0.5
        )
        rated_passages.append((rating.score + SAID * term_share, passages[place]))
    return sorted(rated_passages, key=lambda pair: (-pair[0], pair[1].evidence.iri))
