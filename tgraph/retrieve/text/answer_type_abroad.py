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

from tgraph.resources import tables
from tgraph.retrieve.text.answer_type import ExpectedAnswerType, NamedAnswer
from tgraph.retrieve.text.lexicon import Lexicon, folded, lexicon

_KINDS = (("who", "person"), ("when", "time"), ("where", "place"), ("why", "reason"))
_DIGITS = re.compile(r"\d")
_YEAR = re.compile(r"\d{3,4}")
_PROPER = re.compile(r"(?<=[\w,;:»”’] )[^\W\d_a-zß-öø-ÿ][\w'’-]+")
_NEAR = 3
_IN_PART = {"number": 0.7, "reason": 0.3, "person": 0.3, "place": 0.4}


@dataclass(frozen=True)
class QuestionWords:
    """The closed classes of a language that shape its questions and their answers."""

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
        """Whether a capital within a sentence tells a name; in German every noun has one."""
        return self.capitals == "names"

    def expected_answer(self, text: str, words: Lexicon) -> ExpectedAnswerType:
        """What a question asks for."""
        said = _said(text, self.code)
        kind = self._kind(said)
        focus = frozenset(words.wanted(text)[:1]) if kind == "number" else frozenset[str]()
        return AnswerTypeAbroad(kind, focus, 1, is_name=False, words=self)

    def _kind(self, said: Sequence[str]) -> str:
        if self.code == "zh":
            return self._chinese_kind("".join(said))
        asked = [kind for kind, words in self.by_kind if not words.isdisjoint(said[:3])]
        counted = not self.counts.isdisjoint(said[:3]) or any(
            word == self.count_before and after in self.count_after
            for word, after in pairwise(said)
        )
        if counted:
            return "number"
        if asked:
            return asked[0]
        return "time" if not self.times.isdisjoint(said[:4]) else ""

    def _chinese_kind(self, said: str) -> str:
        kinds = (*self.by_kind[1:], ("number", self.counts), self.by_kind[0])
        return next((kind for kind, words in kinds if any(w in said for w in words)), "")


def _said(text: str, code: str) -> list[str]:
    return [folded(text)] if code == "zh" else re.findall(r"[^\W_]+", folded(text))


@dataclass(frozen=True)
class AnswerTypeAbroad(ExpectedAnswerType):
    """What is asked for in the words of another language."""

    words: QuestionWords = field(default_factory=lambda: QuestionWords("other"))

    def held_by(self, quote: str, named: Sequence[NamedAnswer], known: Collection[str]) -> float:
        """As of ``ExpectedAnswerType``."""
        if not self.kind:
            return 0.5
        said = _said(quote, self.words.code)
        if self.kind == "time":
            return float(bool(_YEAR.search(quote)) or self._has(said, self.words.months))
        if self.kind == "number":
            return self._number(quote, said)
        if self.kind == "reason":
            return 1.0 if self._has(said, self.words.reasons) else _IN_PART["reason"]
        return self._name(quote, known)

    def _has(self, said: Sequence[str], words: frozenset[str]) -> bool:
        if self.words.code == "zh":
            return any(word in said[0] for word in words)
        return not words.isdisjoint(said)

    def _number(self, quote: str, said: Sequence[str]) -> float:
        """A number that stands before the thing counted is worth more than any number."""
        if not _DIGITS.search(quote) and not self._has(said, self.words.numbers):
            return 0.0
        stem = lexicon(self.words.code).stem
        for at, word in enumerate(said):
            near = said[max(0, at - _NEAR) : at]
            if stem(word) in self.focus and any(_is_number(w, self.words) for w in near):
                return 1.0
        return _IN_PART["number"]

    def _name(self, quote: str, known: Collection[str]) -> float:
        """Whether a capitalised word within the sentence is new, where these are names."""
        if not self.words.names_are_capitalised:
            return 0.5
        read = lexicon(self.words.code)
        fresh = (m for m in _PROPER.findall(quote) if not set(read.terms(m)) & set(known))
        return 1.0 if next(fresh, "") else _IN_PART[self.kind]


def _is_number(word: str, words: QuestionWords) -> bool:
    return word[:1].isdigit() or word in words.numbers


@cache
def form_of(code: str) -> QuestionWords:
    """The question words of a language; none of one without lists."""
    found = tables("languages").get(code)
    if not isinstance(found, dict):
        return QuestionWords(code)

    def words(name: str) -> frozenset[str]:
        return frozenset(found[name].split())

    return QuestionWords(
        code,
        tuple((kind, words(name)) for name, kind in _KINDS),
        words("count"),
        found["count_before"],
        words("count_after"),
        words("times"),
        words("months"),
        words("numbers"),
        words("reasons"),
        found["capitals"],
    )
