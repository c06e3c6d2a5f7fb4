"""Answers to separately asked question parts, and to the sides of a comparison."""

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
from tgraph.retrieve.text.answer_type import rate_kind_fit
from tgraph.retrieve.text.comparison import COUNTRIES, QuestionComparison
from tgraph.retrieve.text.evidence_ranking import sharpen_evidence
from tgraph.retrieve.text.lexical import STOP_WORDS, stem, term_set, words
from tgraph.retrieve.text.page_sentences import read_surroundings
from tgraph.retrieve.text.reading import read_candidates
from tgraph.retrieve.text.sentence_ranking import place_of, places_overlap

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
    """The sentences answering a question part, best first with relevance, plus an optional
    reader's judgement of the best sentences."""

    sentences: tuple[Evidence, ...]
    judgement: Judgement | None = None

    @property
    def confidence(self) -> float | None:
        """The probability that documents answer the part; None without a reader."""
        return self.judgement.confidence if self.judgement is not None else None

    def answering(self, least: float) -> tuple[Evidence, ...]:
        """Return sentences with at least ``least`` relevance; read sentences are judged
        together."""
        if self.confidence is not None:
            return self.sentences if self.confidence >= least else ()
        return tuple(e for e in self.sentences if (e.relevance or 0.0) >= least)

    def close(self, least: float, share: float) -> tuple[Evidence, ...]:
        """Return answering sentences nearly as good as the best; no sentence overlaps a better
        sentence."""
        close_sentences: list[Evidence] = []
        for sentence in self.answering(least):
            near = (sentence.relevance or 0.0) >= share * (self.sentences[0].relevance or 0.0)
            if near and not any(places_overlap(sentence, better) for better in close_sentences):
                close_sentences.append(sentence)
        return tuple(close_sentences[:MOST])

    def short(self, place: Evidence) -> str:
        """Return the reader's short answer if the place is the best place; otherwise an empty
        string."""
        judged = self.judgement
        if judged is None or judged.place is None or judged.place.iri != place.iri:
            return ""
        return judged.answer


def part_reading(question: Question, retrieval: Retrieval, context: Context) -> PartReading:
    """Rank evidence retrieved for a question part; read the evidence if a reader is available."""
    if context.reader is None:
        return PartReading(tuple(best_sentences(question, retrieval, context)))
    ranked = sharpen_evidence(question, retrieval, context)
    judged_retrieval = read_candidates(question, ranked, context.reader, context)
    places: dict[object, Evidence] = {}
    for candidate in judged_retrieval.candidates:
        for evidence in candidate.evidence if candidate.score else ():
            places.setdefault(place_of(evidence), evidence)
    best = sorted(places.values(), key=lambda e: (-(e.relevance or 0.0), e.iri))
    return PartReading(tuple(best), _at_place(judged_retrieval, places))


def _at_place(found: Retrieval, places: dict[object, Evidence]) -> Judgement | None:
    """Return the judgement, its place replaced by the equal place from ``places``."""
    judged = found.judgement
    if judged is None:
        return None
    place = places.get(place_of(judged.place)) if judged.place is not None else None
    return replace(judged, place=place) if place is not None else judged


# --- the sides of a comparison ---


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """A side's compared value with supporting places, the value's place first; ``confidence``
    is the reading's confidence."""

    value: ComparedValue
    places: tuple[Evidence, ...]
    confidence: float | None = None


def side_answer(
    comparison: QuestionComparison, at: int, reading: PartReading, least: float, context: Context
) -> SideAnswer | None:
    """Return a side's value from the best sentence that concerns the side and states a value."""
    for sentence in reading.answering(least)[:READ]:
        text = _told_of(comparison, at, sentence, context)
        value = bare_value(reading.short(sentence), comparison) if text else None
        value = value or _find_value(comparison, at, text, sentence, context)
        if value is not None:
            return SideAnswer(value, (sentence,), reading.confidence)
    return None


def _find_value(
    comparison: QuestionComparison, at: int, text: str, sentence: Evidence, context: Context
) -> ComparedValue | None:
    if not text:
        return None
    if comparison.kind != "name" or comparison.noun in COUNTRIES:
        return value_in(text, comparison)
    question_terms = term_set(comparison.steps[at].text)
    near = [
        (gap, named_answer.label)
        for named_answer in named_in(sentence, context)
        if named_answer.terms.isdisjoint(question_terms)
        and rate_kind_fit(comparison.noun, named_answer.kind) >= FITTING
        if (gap := near_focus(text, comparison, named_answer.label)) is not None
    ]
    return name_value(min(near)[1]) if near else None


def _told_of(comparison: QuestionComparison, at: int, sentence: Evidence, context: Context) -> str:
    """Return sentence text concerning a side; empty for unrelated sentences.

    Of a sentence naming both sides, only the text following the side's name is returned."""
    side_terms, other_terms = _own_terms(comparison, at), _own_terms(comparison, 1 - at)
    stands = read_surroundings(sentence, context)
    text = stands.text or " ".join(sentence.quote.split())
    quoted = term_set(text)
    label_terms = term_set(
        " ".join(named_answer.label for named_answer in named_in(sentence, context))
    )
    above = term_set(" ".join((sentence.title, *stands.context)))
    mentioned_terms = quoted | label_terms | (above if _PRONOUN.search(text) else frozenset())
    if not side_terms or not _matches_name(side_terms, mentioned_terms):
        return ""
    if quoted.isdisjoint(other_terms):
        return text
    return (
        _text_between(text, frozenset(side_terms), frozenset(other_terms))
        if _matches_name(side_terms, quoted)
        else ""
    )


def _own_terms(comparison: QuestionComparison, at: int) -> list[str]:
    """Return terms distinguishing a side's name from the other side's."""
    this_side, other_side = comparison.sides[at], comparison.sides[1 - at]
    capitalised_words = [word for word in this_side.split() if _CAPITAL.match(word)]
    shared_terms = term_set(other_side)
    distinct_stems = [
        stem(w)
        for name_word in capitalised_words or this_side.split()
        for w in words(name_word)
        if w not in STOP_WORDS
    ]
    return [term for term in distinct_stems if term not in shared_terms]


def _matches_name(own: Sequence[str], said: frozenset[str]) -> bool:
    """Return whether the terms include the name's last word, or over half its words."""
    return own[-1] in said or 2 * sum(term in said for term in own) > len(own)


def _text_between(text: str, own: frozenset[str], other: frozenset[str]) -> str:
    """Return text starting at the first ``own`` word, ending before the next ``other`` word."""
    stems_by_start = [
        (m.start(), set(map(stem, words(m.group())))) for m in re.finditer(r"\w+", text)
    ]
    start = next((place for place, stems in stems_by_start if stems & own), 0)
    end = next(
        (place for place, stems in stems_by_start if place > start and stems & other), len(text)
    )
    return text[start:end]


# --- quoting ---


def quoted_parts(selection: Selection, notes: Notes) -> Iterator[Draft]:
    """Yield distinct sentences answering each part, in part order; unanswered parts are noted.

    A sentence that several places state in the same words is quoted once, citing all of them."""
    places: dict[tuple[str, str], list[Evidence]] = {}
    for part in selection.parts:
        for place in part.places:
            places.setdefault((part.label, _wording(place)), []).append(place)
        if part.missing:
            notes.missing.append(part.missing)
        if part.remark:
            notes.remarks.append(part.remark)
    quoted = False
    for (label, _), same in places.items():
        draft = _draft_quote(selection, same, label)
        if draft is not None:
            quoted = True
            yield draft
    if not quoted:
        notes.nearest += [place for part in selection.parts for place in part.nearest]


def _wording(place: Evidence) -> str:
    return " ".join(place.quote.split())


def _draft_quote(selection: Selection, places: Sequence[Evidence], label: str) -> Draft | None:
    """Return the sentence with selections resting on its places; None without matching
    selections."""
    here = set(map(place_of, places))
    holding: list[Selected] = []
    iris: list[str] = []
    for selected in selection.selected:
        matching_iris = [e.iri for e in selected.candidate.evidence if place_of(e) in here]
        if matching_iris:
            holding.append(selected)
            iris += matching_iris
    if not holding:
        return None
    lead = "\n" if label else " "
    return Draft(_wording(places[0]), tuple(holding), tuple(dict.fromkeys(iris)), lead, label)
