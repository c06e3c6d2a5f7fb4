"""What answers each part of a question that was asked by itself, and the sides of a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tgraph.answer.base import Draft, Notes
from tgraph.answer.compared_values import (
    ComparedValue,
    bare_value,
    name_value,
    near_focus,
    value_in,
)
from tgraph.answer.step_answers import best_sentences, named_in
from tgraph.model import Evidence, Judgement, Retrieval, Selected, Selection
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.text.answer_type import fits
from tgraph.retrieve.text.comparison import COUNTRIES, QuestionComparison
from tgraph.retrieve.text.lexical import STOP_WORDS, stem, term_set, words
from tgraph.retrieve.text.page_sentences import surroundings
from tgraph.retrieve.text.reading import read
from tgraph.retrieve.text.sentence_ranking import overlap, place_of, sharpened

MOST = 3
"""Sentences that are quoted for a part."""

READ = 8
"""Sentences in which a value is looked for."""

FITTING = 0.75
"""How well a name must fit the kind of thing that is to be the same; so does one of no kind."""

_PRONOUN = re.compile(r"\b(?:it|he|she|they|him|them|its|his|her|their)\b", re.IGNORECASE)
_CAPITAL = re.compile(r"[^\W\d_a-z]|\d")


@dataclass(frozen=True, slots=True)
class PartReading:
    """The sentences that answer a part best, best first, with their relevance; and what a reader
    makes of the best of them, where there is one."""

    sentences: tuple[Evidence, ...]
    judgement: Judgement | None = None

    @property
    def confidence(self) -> float | None:
        """The probability that the documents answer the part; None where nobody read."""
        return self.judgement.confidence if self.judgement is not None else None

    def answering(self, least: float) -> tuple[Evidence, ...]:
        """Those that answer at least so well; what was read is judged as a whole."""
        if self.confidence is not None:
            return self.sentences if self.confidence >= least else ()
        return tuple(e for e in self.sentences if (e.relevance or 0.0) >= least)

    def close(self, least: float, share: float) -> tuple[Evidence, ...]:
        """Those that answer, and nearly as well as the best; none that overlaps a better one."""
        found: list[Evidence] = []
        for each in self.answering(least):
            near = (each.relevance or 0.0) >= share * (self.sentences[0].relevance or 0.0)
            if near and not any(overlap(each, other) for other in found):
                found.append(each)
        return tuple(found[:MOST])

    def short(self, place: Evidence) -> str:
        """The few words that the reader found in the place, where that is the best."""
        judged = self.judgement
        if judged is None or judged.place is None or judged.place.iri != place.iri:
            return ""
        return judged.answer


def part_reading(question: Question, retrieval: Retrieval, context: Context) -> PartReading:
    """What was retrieved for a part, ranked, and read where the context has a reader."""
    if context.reader is None:
        return PartReading(tuple(best_sentences(question, retrieval, context)))
    ranked = sharpened(question, retrieval, context)
    found = read(question, ranked, context.reader, context)
    places: dict[object, Evidence] = {}
    for candidate in found.candidates:
        for each in candidate.evidence if candidate.score else ():
            places.setdefault(place_of(each), each)
    best = sorted(places.values(), key=lambda e: (-(e.relevance or 0.0), e.iri))
    return PartReading(tuple(best), _at_place(found, places))


def _at_place(found: Retrieval, places: dict[object, Evidence]) -> Judgement | None:
    """The judgement, its place being one of the places."""
    judged = found.judgement
    if judged is None:
        return None
    place = places.get(place_of(judged.place)) if judged.place is not None else None
    return replace(judged, place=place) if place is not None else judged


# --- the sides of a comparison ---


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """The value that a side is compared by, and the places that say so, the one with the value
    first; ``confidence`` is that of the reading."""

    value: ComparedValue
    places: tuple[Evidence, ...]
    confidence: float | None = None


def side_answer(
    comparison: QuestionComparison, at: int, reading: PartReading, least: float, context: Context
) -> SideAnswer | None:
    """The value of a side in the best sentence that is about it and has one."""
    for sentence in reading.answering(least)[:READ]:
        text = _told_of(comparison, at, sentence, context)
        value = bare_value(reading.short(sentence), comparison) if text else None
        value = value or _value(comparison, at, text, sentence, context)
        if value is not None:
            return SideAnswer(value, (sentence,), reading.confidence)
    return None


def _value(
    comparison: QuestionComparison, at: int, text: str, sentence: Evidence, context: Context
) -> ComparedValue | None:
    if not text:
        return None
    if comparison.kind != "name" or comparison.noun in COUNTRIES:
        return value_in(text, comparison)
    asked = term_set(comparison.steps[at].text)
    near = [
        (gap, named.label)
        for named in named_in(sentence, context)
        if named.terms.isdisjoint(asked) and fits(comparison.noun, named.kind) >= FITTING
        if (gap := near_focus(text, comparison, named.label)) is not None
    ]
    return name_value(min(near)[1]) if near else None


def _told_of(comparison: QuestionComparison, at: int, sentence: Evidence, context: Context) -> str:
    """What the sentence tells of a side: of one that names both, what follows its name; empty where
    it is not about it."""
    own, other = _own_terms(comparison, at), _own_terms(comparison, 1 - at)
    stands = surroundings(sentence, context)
    text = stands.text or " ".join(sentence.quote.split())
    quoted = term_set(text)
    named = term_set(" ".join(each.label for each in named_in(sentence, context)))
    above = term_set(" ".join((sentence.title, *stands.context)))
    meant = quoted | named | (above if _PRONOUN.search(text) else frozenset())
    if not own or not _names(own, meant):
        return ""
    if quoted.isdisjoint(other):
        return text
    return _after(text, frozenset(own), frozenset(other)) if _names(own, quoted) else ""


def _own_terms(comparison: QuestionComparison, at: int) -> list[str]:
    """What tells a side from the other by name."""
    one, other = comparison.sides[at], comparison.sides[1 - at]
    named = [word for word in one.split() if _CAPITAL.match(word)]
    known = term_set(other)
    own = [stem(w) for each in named or one.split() for w in words(each) if w not in STOP_WORDS]
    return [term for term in own if term not in known]


def _names(own: Sequence[str], said: frozenset[str]) -> bool:
    """Whether it has the last word of the name, or half of them."""
    return own[-1] in said or 2 * sum(term in said for term in own) > len(own)


def _after(text: str, own: frozenset[str], other: frozenset[str]) -> str:
    """From the first word of the one to the next of the other."""
    found = [(m.start(), set(map(stem, words(m.group())))) for m in re.finditer(r"\w+", text)]
    start = next((place for place, said in found if said & own), 0)
    end = next((place for place, said in found if place > start and said & other), len(text))
    return text[start:end]


# --- quoting ---


def quoted_parts(selection: Selection, notes: Notes) -> Iterator[Draft]:
    """The sentences that answer each part in the order of the parts, each once; what no sentence
    answers is noted."""
    told: set[object] = set()
    for part in selection.parts:
        for place in part.places:
            draft = _quoted(selection, place)
            if draft is not None and place_of(place) not in told:
                told.add(place_of(place))
                yield draft
        if part.missing:
            notes.missing.append(part.missing)
    if not told:
        notes.nearest += [place for part in selection.parts for place in part.nearest]


def _quoted(selection: Selection, place: Evidence) -> Draft | None:
    """The sentence with the selections that rest on it; None where none was selected."""
    here = place_of(place)
    holding: list[Selected] = []
    iris: list[str] = []
    for selected in selection.selected:
        found = [e.iri for e in selected.candidate.evidence if place_of(e) == here]
        if found:
            holding.append(selected)
            iris += found
    text = " ".join(place.quote.split())
    return Draft(text, tuple(holding), tuple(dict.fromkeys(iris))) if holding else None
