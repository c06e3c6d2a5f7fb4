"""Whether a question asks about the documents as a whole, or for something in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tgraph.resources import word_set
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.corpus import frequencies
from tgraph.retrieve.lexical import stem, terms

_WHOLE = frozenset(map(stem, word_set("questions", "whole")))
"""Stems of words that ask about documents rather than about what is in them."""

_FRAME = frozenset(map(stem, word_set("questions", "anything")))

_SAYS_ENOUGH = 2
"""Terms beside these that a question needs to be understood by itself."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question, read. ``weights`` says how much each of its terms tells (greater than 0)."""

    text: str
    weights: Mapping[str, float]

    def share(self, found: Mapping[str, float]) -> float:
        """0 to 1: how much of what the question names is found; 1 where it names nothing."""
        total = sum(self.weights.values())
        if not total:
            return 1.0
        return sum(w * found.get(term, 0.0) for term, w in self.weights.items()) / total


def read(question: Question, context: Context) -> Wanted:
    """The question; one that says hardly anything is read with the question before it."""
    text, telling = _telling(question)
    counts = frequencies(context)
    return Wanted(text, {term: max(0.05, counts.idf(term)) for term in telling})


def is_broad(question: Question) -> bool:
    """Whether it names nothing: it asks about the documents as a whole."""
    return not _telling(question)[1]


def _telling(question: Question) -> tuple[str, list[str]]:
    text = question.text
    if question.history and len(set(terms(text)) - _WHOLE) < _SAYS_ENOUGH:
        text = f"{question.history[-1].question} {text}"
    stems = dict.fromkeys(terms(text))
    telling = [term for term in stems if term not in _WHOLE]
    framed = len(telling) < len(stems) and all(term in _FRAME for term in telling)
    return text, [] if framed else telling
