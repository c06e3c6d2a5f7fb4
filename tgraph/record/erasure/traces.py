"""Text belonging only to the document being erased.

Traces are words distinctive of the document, pairs of words absent from other documents, names
extracted from the document, and runs of five words. Text also occurring in kept documents is no
trace, and stays."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

from tgraph.resources import common_words
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

WordSequence = tuple[str, ...]


@cache
def _compile_token_pattern() -> re.Pattern[str]:
    r"""Return the word pattern, including combining marks: vowels of Hindi or Thai are combining
    marks, outside ``\w``."""
    marks = "".join(
        c for c in map(chr, range(0x300, _MARKS_BELOW)) if unicodedata.category(c)[0] == "M"
    )
    letter = rf"[^\W_{_UNSPACED}]"
    return re.compile(rf"(?![{marks}])[{_UNSPACED}][{marks}]*|{letter}(?:{letter}|[{marks}])*")


def tokenise_text(text: str) -> list[str]:
    """Return a text's words in comparison form: NFKC, case folded, without punctuation."""
    return _compile_token_pattern().findall(unicodedata.normalize("NFKC", text).casefold())


class TraceCollector:
    """A collector of a text's traces: first add the complete text, then remove kept text."""

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._lower: set[str] = set()
        self._capital: set[str] = set()
        self._pairs: set[WordSequence] = set()
        self._runs: dict[str, set[WordSequence]] = {}
        self._short: dict[str, set[WordSequence]] = {}
        self._kept: set[WordSequence] = set()

    # --- what is to be erased ---

    def add_text(self, text: str) -> None:
        """Add the document's own text: words and phrases."""
        folded = unicodedata.normalize("NFKC", text)
        for word in _compile_token_pattern().findall(folded):
            (self._lower if word == word.casefold() else self._capital).add(word.casefold())
        words = tokenise_text(text)
        self._words.update(words)
        self._pairs.update(pair for pair in pairwise(words) if all(map(_says_something, pair)))
        self.add_said(text)

    def add_said(self, text: str) -> None:
        """Add a statement extracted from the document: its phrases."""
        words = tokenise_text(text)
        for at in range(len(words) - RUN + 1):
            self._runs.setdefault(words[at], set()).add(tuple(words[at : at + RUN]))
        if 0 < len(words) < RUN:
            self._short.setdefault(words[0], set()).add(tuple(words))

    # --- what is kept ---

    def keep_text(self, text: str, *, words: bool = True) -> None:
        """Remove text occurring in kept content; ``words`` marks text from other documents,
        removing single words too."""
        text_words = tokenise_text(text)
        for at, word in enumerate(text_words):
            if runs := self._runs.get(word):
                runs.discard(tuple(text_words[at : at + RUN]))
            if short := self._short.get(word):
                self._kept.update(
                    part for n in range(1, RUN) if (part := tuple(text_words[at : at + n])) in short
                )
        if words:
            self._words.difference_update(text_words)

    def traces(self, names: Iterable[str]) -> Traces:
        """Return the remaining traces; ``names`` contains names extracted from the document."""
        name_words = [tuple(tokenise_text(name)) for name in names]
        proper = {word for name in name_words for word in name} & self._capital - self._lower
        words = {word for word in self._words if _is_distinctive(word) or word in proper}
        starts = {first: set(runs) for first, runs in self._runs.items() if runs}
        for pair in self._pairs:
            if self._words.issuperset(pair):
                starts.setdefault(pair[0], set()).add(pair)
        for name in name_words:
            if 1 < len(name) < RUN and name not in self._kept:
                starts.setdefault(name[0], set()).add(name)
        own_words = frozenset(filter(_says_something, self._words)) | words
        return Traces(frozenset(w for w in words if len(w) >= _SHORTEST), own_words, starts, self)

    def is_kept(self, text: str) -> bool:
        """Return whether kept content also contains the text; valid only for texts added
        before."""
        text_words = tuple(tokenise_text(text))
        if len(text_words) < RUN:
            return not text_words or text_words in self._kept
        return not any(run in self._runs.get(run[0], ()) for run in _iterate_runs(text_words))


class Traces:
    """A finder of the document's distinctive ``words`` and phrases in any text.

    ``own`` contains all words occurring only in the document, including common words: traces in
    texts mentioning the document often anyway."""

    def __init__(
        self,
        words: frozenset[str],
        own: frozenset[str],
        phrases: dict[str, set[WordSequence]],
        wording: TraceCollector,
    ) -> None:
        self.words = words
        self.own = own
        self.is_kept = wording.is_kept
        self._phrases = phrases

    def find(self, text: str, *, strict: bool = False) -> str | None:
        """Return the first trace in the text, in word comparison form.

        With ``strict``, any word found only in the document is a trace."""
        text_words = tokenise_text(text)
        words = self.own if strict else self.words
        for at, word in enumerate(text_words):
            if word in words:
                return word
            phrases = self._phrases.get(word, ())
            for n in range(2, RUN + 1 if phrases else 2):
                if tuple(text_words[at : at + n]) in phrases:
                    return " ".join(text_words[at : at + n])
        return None


def _iterate_runs(found: WordSequence) -> Iterator[WordSequence]:
    return (found[at : at + RUN] for at in range(len(found) - RUN + 1))


def _says_something(word: str) -> bool:
    return len(word) >= _SHORTEST and word not in STOP_WORDS


def _is_distinctive(word: str) -> bool:
    if word.isdecimal():
        return len(word) >= _NUMBER
    return len(word) >= _SHORTEST and word not in common_words()
