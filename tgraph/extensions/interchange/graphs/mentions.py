"""Where a text says what a graph of others says it does: the sentences that name things.

Such graphs keep, at best, which stretch of text a thing was read in. The place of an entity is the
first sentence of the stretch that names it; that of a relationship the sentence that names both of
its ends, the one most like its description; else the fewest sentences in a row that name both, or
of those that name one the one most like it. Where no sentence does it is all of the stretch. A
person may be named by a part of the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, lru_cache

from tgraph.ingest.sentences import sentences
from tgraph.model import Span

_WORD = re.compile(r"[^\W_]+")
_TOGETHER = 4
"""Names that stand in more sentences than these are not said together."""
_FIRST_CJK = "\u2e80"


class UnitText:
    """A stretch of a page, which begins at ``start``."""

    def __init__(
        self, text: str, start: int, also: Callable[[str], Iterable[str]] = lambda name: ()
    ) -> None:
        """``also`` says how else what has the name may be called."""
        self._also = also
        self.text = text
        self.start = start
        self._naming: dict[str, list[int]] = {}

    @cached_property
    def _sentences(self) -> Sequence[tuple[int, int]]:
        return sentences(self.text)

    @cached_property
    def _folded(self) -> Sequence[str]:
        return [self.text[start:end].casefold() for start, end in self._sentences]

    def of_entity(self, name: str) -> Span | None:
        """The first sentence that names it."""
        found = self.naming(name)
        return self._span(found[0], found[0]) if found else None

    def of_relationship(self, one: str, other: str, description: str = "") -> Span | None:
        """The sentences that name both, else one that names either."""
        first, second = self.naming(one), self.naming(other)
        if both := set(first) & set(second):
            return self._likest(both, description)
        pairs = [(min(a, b), max(a, b)) for a in first for b in second]
        near = [pair for pair in pairs if pair[1] - pair[0] < _TOGETHER]
        if near:
            return self._span(*min(near, key=lambda pair: (pair[1] - pair[0], pair)))
        return self._likest({*first, *second}, description)

    def _likest(self, numbers: Collection[int], description: str) -> Span | None:
        """Of the sentences the one that shares most words with the description."""
        said = _words(description)
        best = max(numbers, key=lambda n: (len(said & _words(self._folded[n])), -n), default=None)
        return None if best is None else self._span(best, best)

    def of_quote(self, quote: str) -> Span | None:
        """Where the text says exactly this, white space apart."""
        words = quote.split()
        if not words:
            return None
        if (at := self.text.find(quote)) >= 0:
            return self._at(at, at + len(quote))
        found = re.search(r"\s+".join(map(re.escape, words)), self.text)
        return self._at(*found.span()) if found else None

    def naming(self, name: str) -> list[int]:
        """The sentences that name it, by number."""
        if name not in self._naming:
            calls = (self._calling(each) for each in (name, *self._also(name)))
            self._naming[name] = next(filter(None, calls), [])
        return self._naming[name]

    def _calling(self, name: str) -> list[int]:
        pattern, first = _pattern(name), name.casefold().split()[:1]
        if pattern is None:
            return []
        texts = enumerate(self._folded)
        return [number for number, text in texts if first[0] in text and pattern.search(text)]

    def _span(self, first: int, last: int) -> Span:
        return self._at(self._sentences[first][0], self._sentences[last][1])

    def _at(self, start: int, end: int) -> Span:
        return Span(self.start + start, self.start + end, self.text[start:end])


@lru_cache(maxsize=65536)
def _pattern(name: str) -> re.Pattern[str] | None:
    words = name.casefold().split()
    if not words:
        return None
    inner = r"\s+".join(map(re.escape, words))
    before = r"(?<![^\W_])" if words[0][0] < _FIRST_CJK else ""
    after = r"(?![^\W_])" if words[-1][-1] < _FIRST_CJK else ""
    return re.compile(before + inner + after)


def parts_of_name(name: str) -> tuple[str, ...]:
    """What a person of the name may be called by: the last of its words, then the first."""
    words = [word for word in name.split() if not word.endswith(".")]
    return tuple(dict.fromkeys((words[-1], words[0]))) if len(words) > 1 else ()


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
