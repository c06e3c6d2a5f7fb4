"""A question, read: the terms that tell, the names in it, and the kind of answer it asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tgraph.resources import word_set
from tgraph.retrieve.lexical import STOP_WORDS, Frequencies, stem, words
from tgraph.retrieve.sought import Sought, read_sought

_NAME = re.compile(r"(?<![.?!]\s)(?<!^)\b[^\W\d_a-z]\w*(?:[-'’]\w+)*")
_FRAME = word_set("questions", "shaping")
"""Words that shape a question rather than say what it is about."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question, read.

    ``weights`` says how much each term of the question tells (greater than 0), ``names`` which of
    the terms belong to names, ``sought`` what kind of answer is asked for.
    """

    text: str
    weights: Mapping[str, float]
    names: frozenset[str]
    sought: Sought

    @property
    def asked(self) -> str:
        """The question without its names."""
        return " ".join(_NAME.sub(" ", self.text).split())

    @property
    def total(self) -> float:
        return sum(self.weights.values())


def read_question(text: str, frequencies: Frequencies) -> Inquiry:
    """The question's terms weighted by how rare they are in the body of texts."""
    names = frozenset(stem(w) for m in _NAME.findall(text) for w in words(m) if w not in STOP_WORDS)
    sought = read_sought(text)
    focus = sought.focus - names
    weights = {
        term: _weight(term, names, focus, frequencies) for term in dict.fromkeys(_stems(text))
    }
    return Inquiry(text, weights, names, sought)


def telling_words(text: str) -> list[str]:
    """The words that say what a question is about."""
    return [w for w in words(text) if w not in STOP_WORDS and w not in _FRAME]


def _stems(text: str) -> list[str]:
    telling = telling_words(text) or [w for w in words(text) if w not in STOP_WORDS]
    return [stem(word) for word in telling]


def _weight(
    term: str, names: frozenset[str], focus: frozenset[str], frequencies: Frequencies
) -> float:
    weight = max(0.05, frequencies.idf(term))
    if term in names:
        return weight * 1.2
    return weight * 0.8 if term in focus else weight


# --- how much of the question a text covers -------------------------------------------------------


@lru_cache(maxsize=65536)
def _root(term: str) -> str:
    """The first letters of a longer word, which it shares with its relatives."""
    return term[:5] if len(term) > 5 else term


def matched(term: str, found: frozenset[str], roots: frozenset[str]) -> float:
    """1 where the term is among those found, 0.7 where only a relative of it is."""
    if term in found:
        return 1.0
    return 0.7 if len(term) >= 5 and term.isalpha() and _root(term) in roots else 0.0


def roots_of(found: frozenset[str]) -> frozenset[str]:
    return frozenset(_root(term) for term in found if len(term) >= 5)
