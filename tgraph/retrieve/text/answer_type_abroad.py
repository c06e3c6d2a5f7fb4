"""What kind of answer a question in German, French, Spanish or Chinese asks for.

It is told by closed classes of words (``data/languages.toml``), and so is whether a sentence holds
such an answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from tgraph.resources import load_tables
from tgraph.retrieve.text.answer_type import ExpectedAnswerType, NamedAnswer
from tgraph.retrieve.text.lexicon import Lexicon, fold_accents, get_lexicon

_KINDS = (("who", "person"), ("when", "time"), ("where", "place"), ("why", "reason"))
_DIGITS = re.compile(r"\d")
_YEAR = re.compile(r"\d{3,4}")
_PROPER = re.compile(r"(?<=[\w,;:»”’] )[^\W\d_a-zß-öø-ÿ][\w'’-]+")
_NEAR = 3
_IN_PART = {"number": 0.7, "reason": 0.3, "person": 0.3, "place": 0.4}


@dataclass(frozen=True)
class QuestionWords:
    """Closed word classes of a language for recognising questions and answers."""

    code: str
    by_kind: tuple[tuple[str, frozenset[str]], ...] = ()
    counts: frozenset[str] = frozenset()
    count_before: str = ""
    count_after: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()
    months: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    capitals: str = "names"

    @property
    def names_are_capitalised(self) -> bool:
        """Whether capital letters inside sentences mark names; false for German, where all
        nouns are capitalised."""
        return self.capitals == "names"

    def expected_answer(self, text: str, words: Lexicon) -> ExpectedAnswerType:
        """Determine a question's expected answer type."""
        question_words = _split_words(text, self.code)
        kind = self._question_kind(question_words)
        focus = (
            frozenset(words.extract_content_stems(text)[:1])
            if kind == "number"
            else frozenset[str]()
        )
        return AnswerTypeAbroad(kind, focus, 1, is_name=False, words=self)

    def _question_kind(self, said: Sequence[str]) -> str:
        if self.code == "zh":
            return self._chinese_kind("".join(said))
        kinds = [kind for kind, words in self.by_kind if not words.isdisjoint(said[:3])]
        counted = not self.counts.isdisjoint(said[:3]) or any(
            word == self.count_before and after in self.count_after
            for word, after in pairwise(said)
        )
        if counted:
            return "number"
        if kinds:
            return kinds[0]
        return "time" if not self.times.isdisjoint(said[:4]) else ""

    def _chinese_kind(self, said: str) -> str:
        kinds = (*self.by_kind[1:], ("number", self.counts), self.by_kind[0])
        return next((kind for kind, words in kinds if any(w in said for w in words)), "")


def _split_words(text: str, code: str) -> list[str]:
    return [fold_accents(text)] if code == "zh" else re.findall(r"[^\W_]+", fold_accents(text))


@dataclass(frozen=True)
class AnswerTypeAbroad(ExpectedAnswerType):
    """Expected answer type in another language, recognised by the language's own words."""

    words: QuestionWords = field(default_factory=lambda: QuestionWords("other"))

    def held_by(self, quote: str, named: Sequence[NamedAnswer], known: Collection[str]) -> float:
        """Rate an answer like ``ExpectedAnswerType.held_by``."""
        if not self.kind:
            return 0.5
        quote_words = _split_words(quote, self.words.code)
        if self.kind == "time":
            return float(
                bool(_YEAR.search(quote)) or self._contains_any(quote_words, self.words.months)
            )
        if self.kind == "number":
            return self._rate_number(quote, quote_words)
        if self.kind == "reason":
            return (
                1.0 if self._contains_any(quote_words, self.words.reasons) else _IN_PART["reason"]
            )
        return self._rate_capitals(quote, known)

    def _contains_any(self, said: Sequence[str], words: frozenset[str]) -> bool:
        if self.words.code == "zh":
            return any(word in said[0] for word in words)
        return not words.isdisjoint(said)

    def _rate_number(self, quote: str, said: Sequence[str]) -> float:
        """Rate numbers in a quote: a number before the counted noun scores more than other
        numbers."""
        if not _DIGITS.search(quote) and not self._contains_any(said, self.words.numbers):
            return 0.0
        stem = get_lexicon(self.words.code).stem
        for at, word in enumerate(said):
            near = said[max(0, at - _NEAR) : at]
            if stem(word) in self.focus and any(_is_number(w, self.words) for w in near):
                return 1.0
        return _IN_PART["number"]

    def _rate_capitals(self, quote: str, known: Collection[str]) -> float:
        """Rate new capitalised words in a sentence, for languages where capitals mark names."""
        if not self.words.names_are_capitalised:
            return 0.5
        read = get_lexicon(self.words.code)
        fresh = (m for m in _PROPER.findall(quote) if not set(read.terms(m)) & set(known))
        return 1.0 if next(fresh, "") else _IN_PART[self.kind]


def _is_number(word: str, words: QuestionWords) -> bool:
    return word[:1].isdigit() or word in words.numbers


@cache
def form_of(code: str) -> QuestionWords:
    """Return a language's question words; empty for a language without word lists."""
    word_lists = load_tables("languages").get(code)
    if not isinstance(word_lists, dict):
        return QuestionWords(code)

    def words(name: str) -> frozenset[str]:
        return frozenset(word_lists[name].split())

    return QuestionWords(
        code,
        tuple((kind, words(name)) for name, kind in _KINDS),
        words("count"),
        word_lists["count_before"],
        words("count_after"),
        words("times"),
        words("months"),
        words("numbers"),
        words("reasons"),
        word_lists["capitals"],
    )
