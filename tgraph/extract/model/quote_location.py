"""Quote location: chunk positions of text cited in replies."""

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
    """Chunk text prepared for quote lookup."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._folded, self._origin = _fold_text(chunk.text), _map_origins(chunk.text)

    def find(self, quote: str) -> Span | None:
        """Return a quote's span as complete words, or None if absent.

        White space, letter case, Unicode form and the shape of quotation marks, dashes and
        angle brackets (which a prompt may have changed) may differ; the span is the chunk's own
        text, with complete mark-up."""
        folded_quote = _fold_text(quote).strip(" \"'.…")
        for at in _find_places(self._folded, folded_quote):
            after = at + len(folded_quote)
            if self._is_cut(at) or self._is_cut(after):
                continue
            start, end = self._origin[at], self._origin[after - 1] + 1
            if self._chunk.text[end : end + 1] in {".", "!", "?"}:
                end += 1
            return self._chunk_span(start, end)
        return None

    def window(self, names: Sequence[str], description: str = "") -> Span | None:
        """Return the smallest run of sentences containing every name.

        Return None if no run does. A name is contained if its words are: next to each other if
        they occur so anywhere, else each by itself. Of runs with equally many sentences, the
        run sharing most words with ``description`` is taken, then the shortest, then the first."""
        folded_names = [_search_form(name) for name in names]
        words = [word for name in names for word in _WORD.findall(_search_form(name))]
        spans = self._folded_sentences
        for needed in (folded_names, words):
            holding = [{n for n in needed if _contains_words(n, folded)} for _, _, folded in spans]
            runs = list(_shortest_runs(holding, set(needed)))
            if runs:
                start, end = min(runs, key=lambda run: self._run_fitness(run, description))
                return self._chunk_span(spans[start][0], spans[end][1])
        return None

    def _chunk_span(self, start: int, end: int) -> Span:
        chunk, at = self._chunk, self._chunk.start
        first, last = well_formed(chunk.segments, at + start, at + end, at, chunk.end)
        return Span(first, last, chunk.text[first - at : last - at])

    @cached_property
    def _folded_sentences(self) -> list[tuple[int, int, str]]:
        """Start, end and folded text of each sentence."""
        text = self._chunk.text
        return [(start, end, _fold_text(text[start:end])) for start, end in sentences(text)]

    def _run_fitness(self, run: tuple[int, int], description: str) -> tuple[int, int, int, int]:
        start, end = run
        run_words = {
            word
            for *_, folded in self._folded_sentences[start : end + 1]
            for word in _long_words(folded)
        }
        length = self._folded_sentences[end][1] - self._folded_sentences[start][0]
        return end - start, -len(run_words & _long_words(_fold_text(description))), length, start

    def _is_cut(self, at: int) -> bool:
        """Tell whether a boundary would split a character or word."""
        if not 0 < at < len(self._folded):
            return False
        before, after = self._folded[at - 1], self._folded[at]
        if self._origin[at - 1] == self._origin[at] or unicodedata.combining(after):
            return True
        return all(c.isalnum() and c < _SCRIPTS_WITHOUT_SPACES for c in (before, after))


def _search_form(name: str) -> str:
    """Return a name's search form: folded, without leading article and surrounding marks."""
    return _ARTICLE.sub("", _fold_text(name).strip(" \"'.…"), count=1)


def _contains_words(needed: str, folded: str) -> bool:
    """Tell whether folded text contains the words, not merely inside longer words."""
    for at in _find_places(folded, needed):
        neighbours = folded[at - 1 : at], folded[at + len(needed) : at + len(needed) + 1]
        if not any(c.isalnum() and c < _SCRIPTS_WITHOUT_SPACES for c in neighbours if c):
            return True
    return False


def _long_words(folded: str) -> set[str]:
    return {word for word in _WORD.findall(folded) if len(word) > 3}


def _shortest_runs(
    holding: Sequence[Collection[str]], needed: set[str]
) -> Iterator[tuple[int, int]]:
    """Yield, for each sentence, the shortest run from it (start and end index) containing all
    needed words."""
    for start in range(len(holding)):
        missing = set(needed)
        for end in range(start, len(holding)):
            missing -= set(holding[end])
            if not missing:
                yield start, end
                break
        if missing:
            return


def _find_places(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


class _Folds(dict[int, str]):
    """Comparison forms of characters, computed once per character."""

    def __missing__(self, character: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(character)).casefold().translate(_SAME)
        folded = "".join(" " if part.isspace() else part for part in plain)
        self[character] = folded
        return folded


_FOLDS = _Folds()


def _fold_text(text: str) -> str:
    """Return text in comparison form."""
    return _SPACES.sub(" ", text.translate(_FOLDS))


def _map_origins(text: str) -> Sequence[int]:
    """Return original indexes for all characters of folded text."""
    plain = text.translate(_FOLDS)
    origin = range(len(text)) if len(plain) == len(text) else _map_unsqueezed(text)
    dropped = {at for run in _SPACES.finditer(plain) for at in range(run.start() + 1, run.end())}
    return [at for index, at in enumerate(origin) if index not in dropped] if dropped else origin


def _map_unsqueezed(text: str) -> list[int]:
    """Return original indexes for folded text before squeezing runs of spaces."""
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
    """Return text on a single line, without control characters."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split())
