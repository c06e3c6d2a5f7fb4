"""The probability that a short answer, the words to which a reader points, is right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tgraph.models.reader import PassageReading
from tgraph.resources import load_weights, word_set
from tgraph.retrieve.text.question_analysis import AnalysedQuestion
from tgraph.retrieve.text.sentence_readings import (
    SentenceReading,
    bound_logit,
    compute_logit,
    logit_probability,
    measure_share,
)

WEIGHTS = load_weights("short_answer")
"""The bias, then what each of ``ShortAnswerFeatures`` counts."""

_PRONOUNS = word_set("questions", "pronouns")
_LARGEST_LEAD = 6.0
_SAME = 0.5
"""The share of words (F1) that two answers have in common if they are the same answer."""


class ShortAnswerFeatures(NamedTuple):
    """Features predicting whether a short answer is right.

    ``alone`` is the logit of the likeliest answer within the sentence, read alone, ``lead`` the
    logarithm of how much likelier all sentences with the same answer are together than those with
    another, both bounded, and ``pronouns`` the share of pronouns in the passages, which tell of
    someone without a name."""

    alone: float
    lead: float
    pronouns: float

    @property
    def probability(self) -> float:
        """The probability that the short answer is right."""
        return logit_probability(compute_logit(WEIGHTS, self))


def short_answer_features(
    inquiry: AnalysedQuestion, readings: Sequence[SentenceReading], alone: PassageReading
) -> ShortAnswerFeatures:
    """Return the features of the short answer of the likeliest reading, which comes first;
    ``alone`` is the reading of that sentence alone."""
    best, *others = readings
    (span,) = alone.spans
    return ShortAnswerFeatures(
        bound_logit(span.score) if span else best.features.span,
        _measure_lead(inquiry, best, others),
        measure_share(readings, _PRONOUNS),
    )


def _measure_lead(
    inquiry: AnalysedQuestion, best: SentenceReading, others: Sequence[SentenceReading]
) -> float:
    same, contrary = math.exp(best.likelihood), 0.0
    for reading in others:
        if _have_same_answer(inquiry, reading, best):
            same += math.exp(reading.likelihood)
        else:
            contrary += math.exp(reading.likelihood)
    if not same or not contrary:
        return _LARGEST_LEAD
    return max(-_LARGEST_LEAD, min(_LARGEST_LEAD, math.log(same / contrary)))


def _have_same_answer(
    inquiry: AnalysedQuestion, one: SentenceReading, other: SentenceReading
) -> bool:
    """Return whether two readings give the same short answer, by the words in common."""
    own, others = (inquiry.lexicon.term_set(reading.answer) for reading in (one, other))
    return bool(own | others) and 2 * len(own & others) / (len(own) + len(others)) >= _SAME
