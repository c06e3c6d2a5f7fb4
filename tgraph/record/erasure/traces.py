"""What text belongs to a document that is to be erased, and to no other.

Its traces are words that are distinctive of it, pairs of words neither of which anybody else has,
names that were extracted from it, and runs of five words. Whatever the documents that are kept say
too is no trace, and stays.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

from tgraph.resources import data
from tgraph.retrieve.text.lexical import STOP_WORDS

RUN = 5
"""Words in a row that make a phrase; of a text without spaces, as a Chinese or Thai one,
characters."""

_SHORTEST = 3
_NUMBER = 5
_UNSPACED = (
    "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # Chinese, Japanese, Korean
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
)
_MARKS_BELOW = 0x20000
"""No combining mark beyond this is part of a word."""

Words = tuple[str, ...]


@cache
def _token() -> re.Pattern[str]:
    """A word with its combining marks: vowels of Hindi or Thai are such, and no part of ``\\w``."""
    marks = "".join(
        c for c in map(chr, range(0x300, _MARKS_BELOW)) if unicodedata.category(c)[0] == "M"
    )
    letter = rf"[^\W_{_UNSPACED}]"
    return re.compile(rf"(?![{marks}])[{_UNSPACED}][{marks}]*|{letter}(?:{letter}|[{marks}])*")


def tokens(text: str) -> list[str]:
    """The words of a text as they are compared: NFKC, case folded, without punctuation."""
    return _token().findall(unicodedata.normalize("NFKC", text).casefold())


@cache
def common_words() -> frozenset[str]:
    """English words that say nothing of where they come from: those of the tokenizer's vocabulary
    (of BERT; Devlin et al., 2019), about 22,000."""
    vocabulary = json.loads(data("minilm-tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    return frozenset(word for word in vocabulary if word.isalpha())


class TraceCollector:
    """The traces of a text. First everything of it is added, then what is kept is taken away."""

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._lower: set[str] = set()
        self._capital: set[str] = set()
        self._pairs: set[Words] = set()
        self._runs: dict[str, set[Words]] = {}
        self._short: dict[str, set[Words]] = {}
        self._kept: set[Words] = set()

    # --- what is to be erased ---

    def add_text(self, text: str) -> None:
        """The text of the document itself: its words and phrases."""
        folded = unicodedata.normalize("NFKC", text)
        for word in _token().findall(folded):
            (self._lower if word == word.casefold() else self._capital).add(word.casefold())
        words = tokens(text)
        self._words.update(words)
        self._pairs.update(pair for pair in pairwise(words) if all(map(_says_something, pair)))
        self.add_said(text)

    def add_said(self, text: str) -> None:
        """Something that was said from the document: its phrases."""
        found = tokens(text)
        for at in range(len(found) - RUN + 1):
            self._runs.setdefault(found[at], set()).add(tuple(found[at : at + RUN]))
        if 0 < len(found) < RUN:
            self._short.setdefault(found[0], set()).add(tuple(found))

    # --- what is kept ---

    def keep(self, text: str, *, words: bool = True) -> None:
        """Something that is kept says this; with ``words`` it is what other documents say."""
        found = tokens(text)
        for at, word in enumerate(found):
            if runs := self._runs.get(word):
                runs.discard(tuple(found[at : at + RUN]))
            if short := self._short.get(word):
                self._kept.update(
                    part for n in range(1, RUN) if (part := tuple(found[at : at + n])) in short
                )
        if words:
            self._words.difference_update(found)

    def traces(self, names: Iterable[str]) -> Traces:
        """What remains; ``names`` are those that were extracted from the document."""
        known = [tuple(tokens(name)) for name in names]
        proper = {word for name in known for word in name} & self._capital - self._lower
        words = {word for word in self._words if _is_distinctive(word) or word in proper}
        starts = {first: set(runs) for first, runs in self._runs.items() if runs}
        for pair in self._pairs:
            if self._words.issuperset(pair):
                starts.setdefault(pair[0], set()).add(pair)
        for name in known:
            if 1 < len(name) < RUN and name not in self._kept:
                starts.setdefault(name[0], set()).add(name)
        own = frozenset(filter(_says_something, self._words)) | words
        return Traces(frozenset(w for w in words if len(w) >= _SHORTEST), own, starts, self)

    def is_kept(self, text: str) -> bool:
        """Whether what is kept says this too. Of texts that were added only."""
        found = tuple(tokens(text))
        if len(found) < RUN:
            return not found or found in self._kept
        return not any(run in self._runs.get(run[0], ()) for run in _runs(found))


class Traces:
    """Finds what is distinctive of the document in any text: ``words`` and phrases. ``own`` are all
    words that only the document has, common ones too: traces where much speaks of it anyway."""

    def __init__(
        self,
        words: frozenset[str],
        own: frozenset[str],
        phrases: dict[str, set[Words]],
        wording: TraceCollector,
    ) -> None:
        self.words = words
        self.own = own
        self.is_kept = wording.is_kept
        self._phrases = phrases

    def find(self, text: str, *, strict: bool = False) -> str | None:
        """The first trace in the text, in the form in which words are compared; with ``strict`` any
        word of its own is one."""
        found = tokens(text)
        words = self.own if strict else self.words
        for at, word in enumerate(found):
            if word in words:
                return word
            known = self._phrases.get(word, ())
            for n in range(2, RUN + 1 if known else 2):
                if tuple(found[at : at + n]) in known:
                    return " ".join(found[at : at + n])
        return None


def _runs(found: Words) -> Iterator[Words]:
    return (found[at : at + RUN] for at in range(len(found) - RUN + 1))


def _says_something(word: str) -> bool:
    return len(word) >= _SHORTEST and word not in STOP_WORDS


def _is_distinctive(word: str) -> bool:
    if word.isdecimal():
        return len(word) >= _NUMBER
    return len(word) >= _SHORTEST and word not in common_words()
