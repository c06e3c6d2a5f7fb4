"""Bridges: two sentences that answer together what neither answers alone.

The first says who or what a question describes; the second, in another document, is about that
entity and says what is asked. Which entity is meant is judged by both: how well its sentence fits
the description, whether it is the kind of thing described, and how well anything said of it answers
the question with its name in place of the description.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tgraph.resources import weights
from tgraph.retrieve.text.answer_type import NamedAnswer, fits
from tgraph.retrieve.text.lexical import Frequencies, terms
from tgraph.retrieve.text.question_analysis import AnalysedQuestion, Description, analyse
from tgraph.retrieve.text.sentence_ranking import Place, Score, SentencePassage, rate, said, share
from tgraph.retrieve.text.similarity import Similarity

FIRST_ENDS = 5
"""Sentences that are tried as the first end of a bridge."""

FIT, SAID, RARITY = weights("bridge")
"""What it counts that an entity fits, the second sentence says the rest, and a name is rare."""

CLOSE = 0.9
"""The share of the best second end's score from which another one is an end too."""

BACK = 600
"""Characters before a sentence within which what its pronouns mean is looked for."""

_VAGUE = frozenset({"topic", "group"})
_PRONOUN = re.compile(r"\b(?:he|she|it|they|his|her|its|their|him|them)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bridge:
    """The sentence that tells of an entity, those that tell what is asked of it, their worth."""

    score: float
    first: SentencePassage
    seconds: tuple[SentencePassage, ...]
    name: str


@dataclass(frozen=True, slots=True)
class BridgePart:
    """A part of the question with the sentences that answer it, best first."""

    inquiry: AnalysedQuestion
    meaning: Similarity
    ratings: Mapping[Place, Score]

    def best(self, passages: Mapping[Place, SentencePassage], count: int) -> list[SentencePassage]:
        ranked = sorted(self.ratings, key=lambda p: (-self.ratings[p].score, str(p)))
        return [passages[place] for place in ranked[:count]]


def described(
    part: BridgePart, passages: Mapping[Place, SentencePassage], question: AnalysedQuestion
) -> list[tuple[SentencePassage, NamedAnswer]]:
    """What the description may mean: the entities of the sentences that fit it best."""
    found = []
    for passage in part.best(passages, FIRST_ENDS):
        title = passage.evidence.title
        found += [
            (passage, named)
            for named in passage.named
            if named.terms
            and named.terms.isdisjoint(question.weights)
            and named.kind not in _VAGUE
            and named.label != title
        ]
    return found


def cross(
    description: Description,
    part: BridgePart,
    meant: Sequence[tuple[SentencePassage, NamedAnswer]],
    passages: Mapping[Place, SentencePassage],
    meaning: Similarity,
    frequencies: Frequencies,
) -> Bridge | None:
    """The best bridge over one of the entities that the description may mean."""
    best: Bridge | None = None
    seconds: dict[str, list[tuple[float, SentencePassage]]] = {}
    for first, named in meant:
        if named.iri not in seconds:
            seconds[named.iri] = _answers_about(description, named, passages, meaning, frequencies)
        entity = _likely(description, first, named, frequencies)
        elsewhere = [pair for pair in seconds[named.iri] if pair[1].place[0] != first.place[0]]
        if not elsewhere:
            continue
        score = 0.5 * (part.ratings[first.place].score + elsewhere[0][0]) + entity
        if best is None or score > best.score:
            close = [p for worth, p in elsewhere[:2] if worth >= CLOSE * elsewhere[0][0]]
            best = Bridge(score, first, tuple(close), named.label)
    return best


def _likely(
    description: Description, first: SentencePassage, named: NamedAnswer, frequencies: Frequencies
) -> float:
    """At most 0: how likely the entity is what is described, its sentence aside."""
    nouns = terms(description.noun)
    called = sum(said(noun, first.wording) for noun in nouns) / len(nouns) if nouns else 1.0
    rarity = max(map(frequencies.idf, named.terms))
    fit = 0.5 * (fits(description.noun, named.kind) + called)
    return FIT * (fit - 1.0) + RARITY * (rarity - 1.0)


def _answers_about(
    description: Description,
    named: NamedAnswer,
    passages: Mapping[Place, SentencePassage],
    meaning: Similarity,
    frequencies: Frequencies,
) -> list[tuple[float, SentencePassage]]:
    """The sentences about the entity, those that answer what is asked of it first."""
    inquiry = analyse(description.about(named.label), frequencies)
    others = {t: w for t, w in inquiry.weights.items() if t not in named.terms}
    spoken = ((p, p.wording.quote | p.wording.labels | p.wording.title) for p in passages.values())
    about = [passage for passage, said_ in spoken if not named.terms.isdisjoint(said_)]
    found = []
    for place, rating in rate(about, inquiry, meaning).items():
        wording = passages[place].wording
        own = share(others, {term: said(term, wording) for term in others}) if others else 0.5
        found.append((rating.score + SAID * own, passages[place]))
    return sorted(found, key=lambda pair: (-pair[0], pair[1].evidence.iri))


def antecedent(
    passage: SentencePassage, passages: Iterable[SentencePassage], inquiry: AnalysedQuestion
) -> SentencePassage | None:
    """The sentence shortly before that names what the passage speaks of by a pronoun.

    None where the question itself names it, or what the passage's document or section is called
    after while nothing tells what the pronoun means.
    """
    if not _PRONOUN.search(passage.quote[:60]):
        return None
    meant = {
        stem
        for named in passage.named
        if not any(word in passage.quote for word in named.label.split())
        for stem in named.terms
    }
    if meant <= inquiry.weights.keys() and (meant or passage.wording.title & inquiry.names):
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
    resolved = [p for p in before if meant & p.wording.quote]
    if resolved and not _PRONOUN.search(resolved[0].quote[:60]):
        return resolved[0]
    named_there = [
        p for p in before[:3] if _names_one(p, inquiry) and not _PRONOUN.search(p.quote[:60])
    ]
    return next(iter(named_there + resolved), None)


def _names_one(passage: SentencePassage, inquiry: AnalysedQuestion) -> bool:
    """Whether the passage itself names something that the question doesn't."""
    fresh = (named.terms - inquiry.weights.keys() for named in passage.named)
    return any(not terms_.isdisjoint(passage.wording.quote) for terms_ in fresh)
