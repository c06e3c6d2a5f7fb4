"""Rival answers: passages of another document that answer as well, with another number or date."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tgraph.resources import word_list
from tgraph.retrieve.text.answer_type import MEASURES
from tgraph.retrieve.text.lexical import words
from tgraph.retrieve.text.question_analysis import AnalysedQuestion
from tgraph.retrieve.text.sentence_readings import SentenceReading

_EXACT = frozenset({"number", "time", *MEASURES})
_DIGITS = re.compile(r"\d[\d,.]*")
_YEAR = re.compile(r"\b\d{4}\b")
_NUMBER_WORDS = frozenset(word_list("questions", "numbers"))
_LEAST_SHARE = 0.5
"""The share of the best sentence's probability that a rival's sentence must have."""
_MOST_MISSING = 0.05
"""How much more of the question's words a rival's passage may lack."""


def find_rival(
    inquiry: AnalysedQuestion, readings: Sequence[SentenceReading]
) -> SentenceReading | None:
    """Return the likeliest reading of another document whose number, measure or date differs from
    the answer of the first reading; None where the question asks for something else.

    ``readings`` come likeliest first. A rival is nearly as likely, and its passage has the words of
    the question just as much; a year is no rival of a day."""
    best, *others = readings
    values = _read_values(best.answer)
    if inquiry.sought.kind not in _EXACT or not values:
        return None
    for reading in others:
        own_values = _read_values(reading.answer)
        if (
            reading.evidence.document != best.evidence.document
            and own_values.isdisjoint(values)
            and bool(own_values)
            and bool(_YEAR.search(reading.answer)) == bool(_YEAR.search(best.answer))
            and reading.probability >= _LEAST_SHARE * best.probability
            and reading.features.missing <= best.features.missing + _MOST_MISSING
        ):
            return reading
    return None


def _read_values(answer: str) -> frozenset[str]:
    digits = {match.replace(",", "").rstrip(".") for match in _DIGITS.findall(answer)}
    return frozenset(digits | _NUMBER_WORDS.intersection(words(answer)))
