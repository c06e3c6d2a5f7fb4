"""Where the text of a chunk says what a reply claims it says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from tgraph.ingest.sentences import sentences
from tgraph.model import Chunk, Span, well_formed

_WORD = re.compile(r"\w+")
_ARTICLE = re.compile(r"(?:the|an?) (?=\w)")
_SCRIPTS_WITHOUT_SPACES = "\u0e00"  # Thai, and beyond it Tibetan to Chinese
_SPACES = re.compile(" {2,}")
_SAME = str.maketrans("“”„‘’–—‹›", '"""\'\'--<>')


class QuoteFinder:
    """The text of a chunk in which quotes are looked up."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._folded, self._origin = _fold(chunk.text), _origins(chunk.text)

    def find(self, quote: str) -> Span | None:
        """Where the quote stands as whole words, None where it doesn't. White space, letter case,
        Unicode form and the shape of quotation marks, dashes and angle brackets (which a prompt
        may have changed) may differ; the span is the chunk's own text, with its mark-up whole."""
        wanted = _fold(quote).strip(" \"'.…")
        for at in _places(self._folded, wanted):
            after = at + len(wanted)
            if self._is_cut(at) or self._is_cut(after):
                continue
            start, end = self._origin[at], self._origin[after - 1] + 1
            if self._chunk.text[end : end + 1] in {".", "!", "?"}:
                end += 1
            return self._span(start, end)
        return None

    def window(self, names: Sequence[str], description: str = "") -> Span | None:
        """The smallest run of sentences in which every name stands, None where there is none.

        A name stands where its words do: next to each other if they do so anywhere, else each by
        itself. Of runs of equally many sentences the one that shares most words with
        ``description`` is taken, then the shortest, then the first.
        """
        whole = [_needed(name) for name in names]
        words = [word for name in names for word in _WORD.findall(_needed(name))]
        spans = self._sentences
        for needed in (whole, words):
            holding = [{n for n in needed if _stands(n, folded)} for _, _, folded in spans]
            runs = list(_runs(holding, set(needed)))
            if runs:
                start, end = min(runs, key=lambda run: self._fitness(run, description))
                return self._span(spans[start][0], spans[end][1])
        return None

    def _span(self, start: int, end: int) -> Span:
        chunk, at = self._chunk, self._chunk.start
        first, last = well_formed(chunk.segments, at + start, at + end, at, chunk.end)
        return Span(first, last, chunk.text[first - at : last - at])

    @cached_property
    def _sentences(self) -> list[tuple[int, int, str]]:
        """Start, end and folded text of each sentence."""
        text = self._chunk.text
        return [(start, end, _fold(text[start:end])) for start, end in sentences(text)]

    def _fitness(self, run: tuple[int, int], description: str) -> tuple[int, int, int, int]:
        start, end = run
        said = {word for *_, folded in self._sentences[start : end + 1] for word in _words(folded)}
        length = self._sentences[end][1] - self._sentences[start][0]
        return end - start, -len(said & _words(_fold(description))), length, start

    def _is_cut(self, at: int) -> bool:
        """Whether a boundary there would be inside a character or a word."""
        if not 0 < at < len(self._folded):
            return False
        before, after = self._folded[at - 1], self._folded[at]
        if self._origin[at - 1] == self._origin[at] or unicodedata.combining(after):
            return True
        return all(c.isalnum() and c < _SCRIPTS_WITHOUT_SPACES for c in (before, after))


def _needed(name: str) -> str:
    """A name as it is looked for: folded, without a leading article and what surrounds it."""
    return _ARTICLE.sub("", _fold(name).strip(" \"'.…"), count=1)


def _stands(needed: str, folded: str) -> bool:
    """Whether a folded text has the words, and not only as parts of longer ones."""
    for at in _places(folded, needed):
        around = folded[at - 1 : at], folded[at + len(needed) : at + len(needed) + 1]
        if not any(c.isalnum() and c < _SCRIPTS_WITHOUT_SPACES for c in around if c):
            return True
    return False


def _words(folded: str) -> set[str]:
    return {word for word in _WORD.findall(folded) if len(word) > 3}


def _runs(holding: Sequence[Collection[str]], needed: set[str]) -> Iterator[tuple[int, int]]:
    """For each sentence the shortest run from it, first and last index, that holds all needed."""
    for start in range(len(holding)):
        missing = set(needed)
        for end in range(start, len(holding)):
            missing -= set(holding[end])
            if not missing:
                yield start, end
                break
        if missing:
            return


def _places(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


class _Folds(dict[int, str]):
    """Each character as it is compared, found once."""

    def __missing__(self, character: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(character)).casefold().translate(_SAME)
        folded = "".join(" " if part.isspace() else part for part in plain)
        self[character] = folded
        return folded


_FOLDS = _Folds()


def _fold(text: str) -> str:
    """The text as it is compared."""
    return _SPACES.sub(" ", text.translate(_FOLDS))


def _origins(text: str) -> Sequence[int]:
    """For each character of the folded text the index of the one that it comes from."""
    plain = text.translate(_FOLDS)
    origin = range(len(text)) if len(plain) == len(text) else _unfolded(text)
    dropped = {at for run in _SPACES.finditer(plain) for at in range(run.start() + 1, run.end())}
    return [at for index, at in enumerate(origin) if index not in dropped] if dropped else origin


def _unfolded(text: str) -> list[int]:
    """The same while runs of spaces are still there."""
    longer = "".join(c for c in set(text) if len(_FOLDS[ord(c)]) > 1)
    origin: list[int] = []
    at = 0
    for match in re.finditer(f"[{re.escape(longer)}]", text):
        index = match.start()
        origin += range(at, index)
        origin += [index] * len(_FOLDS[ord(text[index])])
        at = index + 1
    origin += range(at, len(text))
    return origin


def one_line(text: str) -> str:
    """The text on one line, without control characters."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split())
