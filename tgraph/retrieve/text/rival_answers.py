"""Rival answers: passages of another document that answer as well, and otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tgraph.model import RivalAnswers
from tgraph.resources import word_list
from tgraph.retrieve.text.answer_type import MEASURES, new_names
from tgraph.retrieve.text.lexical import words
from tgraph.retrieve.text.question_analysis import AnalysedQuestion
from tgraph.retrieve.text.sentence_readings import SentenceReading

_EXACT = frozenset({"number", "time", *MEASURES})
_UNNAMED = frozenset({"reason", "fate", ""})
"""What is asked for by questions to which no name is the answer."""
_DIGITS = re.compile(r"\d(?:[\d,.:]*\d)?")
_YEAR = re.compile(r"\b\d{4}\b")
_NUMBER_WORDS = frozenset(word_list("questions", "numbers"))
_LEAST_SHARE = 0.5
"""The share of the best sentence's probability that a rival's sentence must have."""
_MOST_MISSING = 0.05
"""How much more of the question's words a rival's passage may lack."""


def find_rivals(
    inquiry: AnalysedQuestion, readings: Sequence[SentenceReading]
) -> tuple[RivalAnswers, ...]:
    """Return the answer of the first reading with that of the likeliest reading of another document
    that differs; nothing where none does.

    ``readings`` come likeliest first. A rival is nearly as likely, and its passage has the words of
    the question just as much; names are rivals only where both passages have these words. A row
    of a table without a word of what is asked for is no rival."""
    best, *others = readings
    for reading in others:
        if (
            reading.evidence.document != best.evidence.document
            and not reading.lacks_asked
            and reading.probability >= _LEAST_SHARE * best.probability
            and reading.features.missing <= best.features.missing + _MOST_MISSING
        ):
            one, other = best.answer, reading.answer
            is_exact = _are_other_values(inquiry, one, other)
            is_told = max(best.features.missing, reading.features.missing) <= _MOST_MISSING
            if is_exact or (is_told and _are_other_names(inquiry, one, other)):
                pair = RivalAnswers(one, best.evidence, other, reading.evidence, is_exact)
                return (pair,)
    return ()


def _are_other_values(inquiry: AnalysedQuestion, one: str, other: str) -> bool:
    """Return whether two answers are different numbers, measures or dates; a year is no other value
    than a day, nor a period than a year.

    Where the question doesn't say that it asks for such, both answers are of the same unit."""
    values, other_values = _read_values(one), _read_values(other)
    if not values or not other_values or not values.isdisjoint(other_values):
        return False
    if inquiry.sought.kind not in _EXACT and _read_unit(one) != _read_unit(other):
        return False
    return len(_YEAR.findall(one)) == len(_YEAR.findall(other))


def _are_other_names(inquiry: AnalysedQuestion, one: str, other: str) -> bool:
    """Return whether a name is asked for and two answers are names without a word in common, or
    both say who it is without a name ("the head of finance")."""
    if inquiry.sought.kind in _EXACT | _UNNAMED:
        return False
    known = inquiry.lexicon.term_set(inquiry.text)
    terms, other_terms = (inquiry.lexicon.term_set(answer) - known for answer in (one, other))
    if not terms or not other_terms or not terms.isdisjoint(other_terms):
        return False
    named = {bool(new_names(answer, known)) for answer in (one, other)}
    return named == {True} or (named == {False} and inquiry.sought.kind == "person")


def _read_values(answer: str) -> frozenset[str]:
    digits = {match.replace(",", "") for match in _DIGITS.findall(answer)}
    return frozenset(digits | _NUMBER_WORDS.intersection(words(answer)))


def _read_unit(answer: str) -> tuple[str, ...]:
    """Return the words of an answer beside its number."""
    return tuple(w for w in words(_DIGITS.sub(" ", answer)) if w not in _NUMBER_WORDS)
