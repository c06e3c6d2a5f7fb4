"""Judgements on readings: whether the documents answer a question, and by which words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tgraph.model import Judgement
from tgraph.models.reader import Passage, PassageReading, Reader, SpanReading
from tgraph.resources import load_weights, word_set
from tgraph.retrieve.base import Context
from tgraph.retrieve.reasons import THIRD_WORDING
from tgraph.retrieve.text.page_sentences import read_place_text
from tgraph.retrieve.text.question_analysis import AnalysedQuestion
from tgraph.retrieve.text.rival_answers import find_rivals
from tgraph.retrieve.text.sentence_readings import (
    SentenceReading,
    bound_logit,
    compute_logit,
    find_likeliest,
    logit_probability,
    measure_share,
)
from tgraph.retrieve.text.short_answers import short_answer_features

WEIGHTS = load_weights("answerable")
"""The bias, then what each of ``AnswerableFeatures`` counts."""

_EARLIER_WEIGHTS = load_weights("confidence")
"""The bias, then what each of ``EarlierFeatures`` counts, for records of earlier wordings."""

_PRONOUNS = word_set("questions", "pronouns")
_SPEAKING = word_set("questions", "speaking")


class AnswerableFeatures(NamedTuple):
    """Features predicting whether the documents answer at all.

    ``ranked`` is the highest ranking score, ``relevance`` the sum of the logits that the best
    answer's passage and its sentence alone answer, ``unnamed`` the share of the question's names
    that all passages lack, ``misfit`` 1 for an answer of another kind than asked for, ``pronouns``
    and ``speaking`` the shares, in the passages, of pronouns for someone told of and of pronouns of
    talk ("I", "you"), and ``unstated`` 1 for a row of a table that has no word of
    what is asked for, and for a passage without the office whose holder is asked for."""

    ranked: float
    relevance: float
    unnamed: float
    misfit: float
    pronouns: float
    speaking: float
    unstated: float = 0.0

    @property
    def probability(self) -> float:
        return logit_probability(compute_logit(WEIGHTS, self))


class EarlierFeatures(NamedTuple):
    """As ``AnswerableFeatures``, for records of earlier wordings: ``rarest`` is the highest weight
    among question words that the best answer's passage lacks."""

    ranked: float
    relevance: float
    rarest: float

    @property
    def probability(self) -> float:
        return logit_probability(compute_logit(_EARLIER_WEIGHTS, self))


def judge_readings(
    inquiry: AnalysedQuestion,
    readings: Sequence[SentenceReading],
    reader: Reader,
    context: Context,
) -> Judgement:
    """Judge whether the readings answer the question; return the confidence with the likeliest
    sentence's answer and question words found in no passage, in order.

    The likeliest sentence is read once more, alone."""
    best = find_likeliest(readings)
    if best is None:
        return Judgement(0.0)
    missing = _find_missing_words(inquiry, readings)
    if context.wording < THIRD_WORDING:
        confidence = earlier_features(readings, best).probability
        return Judgement(confidence, best.answer, best.evidence, missing)
    alone = _read_alone(inquiry, best, reader, context)
    confidence = answerable_features(inquiry, readings, best, alone).probability
    judgement = Judgement(confidence, best.answer, best.evidence, missing)
    return _judge_short_answer(judgement, inquiry, readings, best, alone)


def _read_alone(
    inquiry: AnalysedQuestion, best: SentenceReading, reader: Reader, context: Context
) -> PassageReading:
    """Return the reading of a sentence below its headings, without the surrounding sentences; for a
    sentence that answers only together with others, the reading of the sentences together."""
    features = best.features
    if features.bridged:
        return PassageReading(features.relevance, (SpanReading(0, 0, features.span),))
    headings = best.passage.partition("\n")[0] + "\n"
    text = headings + read_place_text(best.evidence, context)
    (alone,) = reader.read(
        inquiry.text, [Passage(text, ((len(headings), len(text)),))], context.sink
    )
    return alone


def _find_missing_words(
    inquiry: AnalysedQuestion, readings: Sequence[SentenceReading]
) -> tuple[str, ...]:
    nowhere = set(inquiry.weights).intersection(*(reading.lacking for reading in readings))
    lexicon = inquiry.lexicon
    missing = (word for word in lexicon.words(inquiry.text) if lexicon.stem(word) in nowhere)
    return tuple(dict.fromkeys(missing))


def earlier_features(readings: Sequence[SentenceReading], best: SentenceReading) -> EarlierFeatures:
    ranked = max(reading.features.ranked for reading in readings)
    return EarlierFeatures(ranked, best.features.relevance, best.features.rarest)


def answerable_features(
    inquiry: AnalysedQuestion,
    readings: Sequence[SentenceReading],
    best: SentenceReading,
    alone: PassageReading,
) -> AnswerableFeatures:
    """Return the features of a question; ``alone`` is the reading of the best sentence alone."""
    unnamed = inquiry.names.intersection(*(reading.lacking for reading in readings))
    return AnswerableFeatures(
        ranked=max(reading.features.ranked for reading in readings),
        relevance=best.features.relevance + bound_logit(alone.relevance),
        unnamed=len(unnamed) / (len(inquiry.names) or 1),
        misfit=float(bool(best.answer) and not _fits(inquiry, best)),
        pronouns=measure_share(readings, _PRONOUNS),
        speaking=measure_share(readings, _SPEAKING),
        unstated=float(best.lacks_asked or inquiry.sought.role in best.lacking),
    )


def _fits(inquiry: AnalysedQuestion, best: SentenceReading) -> bool:
    """Return whether the answer of a reading is of the kind asked for."""
    known = inquiry.lexicon.term_set(inquiry.text)
    return inquiry.sought.fits_answer(best.answer, known, best.evidence.quote)


def _judge_short_answer(
    judgement: Judgement,
    inquiry: AnalysedQuestion,
    readings: Sequence[SentenceReading],
    best: SentenceReading,
    alone: PassageReading,
) -> Judgement:
    """Return the judgement with the probability that the short answer is right, 0 for words that
    can't be of the kind asked for, and with the answer of another document that differs."""
    if not judgement.answer:
        return judgement
    in_order = sorted(readings, key=lambda each: (-each.likelihood, each is not best))
    quote = best.evidence.quote
    probability = short_answer_features(inquiry, in_order, alone).probability
    return replace(
        judgement,
        short_confidence=0.0 if inquiry.sought.excludes(best.answer, quote) else probability,
        rivals=find_rivals(inquiry, in_order),
    )
