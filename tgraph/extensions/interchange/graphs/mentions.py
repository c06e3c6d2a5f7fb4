"""Text places supporting statements of foreign graphs: sentences naming things.

Such graphs keep, at best, the stretch of text where a thing was read. The place of an entity is
the first sentence of the stretch naming it; that of a relationship the sentence naming both its
ends, most similar to its description; else the fewest sentences in a row naming both, or of
those naming one the most similar. Where no sentence does, the place is the whole stretch. A
person may be named by a part of the name."""

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
    """A stretch of a page, beginning at ``start``."""

    def __init__(
        self, text: str, start: int, also: Callable[[str], Iterable[str]] = lambda name: ()
    ) -> None:
        """Initialise a text unit; ``also`` returns alternative names for a name."""
        self._also = also
        self.text = text
        self.start = start
        self._naming: dict[str, list[int]] = {}

    @cached_property
    def _sentence_spans(self) -> Sequence[tuple[int, int]]:
        return sentences(self.text)

    @cached_property
    def _folded_sentences(self) -> Sequence[str]:
        return [self.text[start:end].casefold() for start, end in self._sentence_spans]

    def of_entity(self, name: str) -> Span | None:
        """Return the earliest sentence naming an entity."""
        numbers = self.naming(name)
        return self._sentence_span(numbers[0], numbers[0]) if numbers else None

    def of_relationship(self, one: str, other: str, description: str = "") -> Span | None:
        """Return sentences naming both ends, otherwise a sentence naming either."""
        first, second = self.naming(one), self.naming(other)
        if shared := set(first) & set(second):
            return self._most_similar(shared, description)
        pairs = [(min(a, b), max(a, b)) for a in first for b in second]
        near = [pair for pair in pairs if pair[1] - pair[0] < _TOGETHER]
        if near:
            return self._sentence_span(*min(near, key=lambda pair: (pair[1] - pair[0], pair)))
        return self._most_similar({*first, *second}, description)

    def _most_similar(self, numbers: Collection[int], description: str) -> Span | None:
        """Return the sentence sharing most words with a description."""
        description_words = _find_words(description)
        best = max(
            numbers,
            key=lambda n: (len(description_words & _find_words(self._folded_sentences[n])), -n),
            default=None,
        )
        return None if best is None else self._sentence_span(best, best)

    def of_quote(self, quote: str) -> Span | None:
        """Where the text says exactly this, white space apart."""
        words = quote.split()
        if not words:
            return None
        if (at := self.text.find(quote)) >= 0:
            return self._create_span(at, at + len(quote))
        match = re.search(r"\s+".join(map(re.escape, words)), self.text)
        return self._create_span(*match.span()) if match else None

    def naming(self, name: str) -> list[int]:
        """Return numbers of sentences naming an entity."""
        if name not in self._naming:
            calls = (
                self._sentences_with_name(candidate) for candidate in (name, *self._also(name))
            )
            self._naming[name] = next(filter(None, calls), [])
        return self._naming[name]

    def _sentences_with_name(self, name: str) -> list[int]:
        pattern, first = _name_pattern(name), name.casefold().split()[:1]
        if pattern is None:
            return []
        texts = enumerate(self._folded_sentences)
        return [number for number, text in texts if first[0] in text and pattern.search(text)]

    def _sentence_span(self, first: int, last: int) -> Span:
        return self._create_span(self._sentence_spans[first][0], self._sentence_spans[last][1])

    def _create_span(self, start: int, end: int) -> Span:
        return Span(self.start + start, self.start + end, self.text[start:end])


@lru_cache(maxsize=65536)
def _name_pattern(name: str) -> re.Pattern[str] | None:
    words = name.casefold().split()
    if not words:
        return None
    inner = r"\s+".join(map(re.escape, words))
    before = r"(?<![^\W_])" if words[0][0] < _FIRST_CJK else ""
    after = r"(?![^\W_])" if words[-1][-1] < _FIRST_CJK else ""
    return re.compile(before + inner + after)


def parts_of_name(name: str) -> tuple[str, ...]:
    """Return likely short names of a person: last word, then first word."""
    words = [word for word in name.split() if not word.endswith(".")]
    return tuple(dict.fromkeys((words[-1], words[0]))) if len(words) > 1 else ()


def _find_words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
