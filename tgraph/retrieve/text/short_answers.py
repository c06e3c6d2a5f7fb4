"""The probability that a short answer, the words to which a reader points, is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tgraph.resources import load_weights
from tgraph.retrieve.text.question_analysis import AnalysedQuestion
from tgraph.retrieve.text.sentence_readings import (
    SentenceReading,
    compute_logit,
    logit_probability,
)

WEIGHTS = load_weights("short_answer")
"""The bias, then what each of ``ShortAnswerFeatures`` counts."""

_LARGEST_LEAD = 6.0
_SAME = 0.5
"""The share of words (F1) that two answers have in common if they are the same answer."""


class ShortAnswerFeatures(NamedTuple):
    """Features predicting whether a short answer is right.

    ``ranked`` and ``span`` are those of the sentence (``Features``); ``lead`` is the lead in log
    odds over the likeliest sentence with another answer, bounded."""

    ranked: float
    span: float
    lead: float

    @property
    def probability(self) -> float:
        """The probability that the short answer is right."""
        return logit_probability(compute_logit(WEIGHTS, self))


def short_answer_features(
    inquiry: AnalysedQuestion, readings: Sequence[SentenceReading]
) -> ShortAnswerFeatures:
    """Return the features of the short answer of the likeliest reading; the likeliest reading comes
    first."""
    best, *others = readings
    contrary = [reading for reading in others if not _have_same_answer(inquiry, reading, best)]
    lead = best.likelihood - contrary[0].likelihood if contrary else _LARGEST_LEAD
    features = best.features
    return ShortAnswerFeatures(features.ranked, features.span, min(_LARGEST_LEAD, lead))


def _have_same_answer(
    inquiry: AnalysedQuestion, one: SentenceReading, other: SentenceReading
) -> bool:
    """Return whether two readings give the same short answer, by the words in common."""
    own, others = (inquiry.lexicon.term_set(reading.answer) for reading in (one, other))
    return bool(own | others) and 2 * len(own & others) / (len(own) + len(others)) >= _SAME
