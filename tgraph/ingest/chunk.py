"""Cutting pages into chunks whose offsets are exact: ``page.text[start:end] == chunk.text``."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Literal as Choice

from tgraph.errors import UsageError
from tgraph.ingest.sentences import sentences
from tgraph.model import Chunk, Document, Heading, Page
from tgraph.models.tokens import DEFAULT_ENCODING, count_tokens, token_offsets

ChunkBy = Choice["tokens", "sentences"]
# (start, end, tokens) in code points of the page.
_Piece = tuple[int, int, int]
# One code point is at most four bytes, and so four tokens.
_SMALLEST = 4


def chunk_document(
    document: Document,
    size: int = 1200,
    overlap: int = 100,
    by: ChunkBy = "tokens",
    encoding: str = DEFAULT_ENCODING,
) -> list[Chunk]:
    """The document's chunks in order, numbered from 0 over all its pages.

    By tokens: windows of ``size`` tokens, each beginning ``overlap`` tokens before the end of the
    one before; they never split a code point. By sentences: as many whole sentences as fit into
    ``size`` tokens, the last ones repeated as far as they fit into ``overlap``; a sentence that is
    longer than ``size`` is cut by tokens. No chunk counts more than ``size`` tokens, ``tokens`` is
    the exact count of its text, and together the chunks hold every character that isn't white
    space. ``headings`` is the section path where the chunk starts, highest first; a section goes on
    over pages. Raises ``UsageError`` for sizes that make no sense.
    """
    _check(size, overlap, by)
    cut = _windows if by == "tokens" else _packed
    chunks: list[Chunk] = []
    above: tuple[Heading, ...] = ()
    for page in document.pages:
        paths = _section_paths(above, page.headings)
        for start, end, tokens in cut(page.text, size, overlap, encoding):
            path = _path_at(page, paths, start)
            text = page.text[start:end]
            chunks.append(
                Chunk(document.sha256, page.number, len(chunks), start, end, text, tokens, path)
            )
        above = paths[-1]
    return chunks


def _check(size: int, overlap: int, by: str) -> None:
    if by not in ("tokens", "sentences"):
        raise UsageError(f"Chunks can't be cut by '{by}'.", "Use 'tokens' or 'sentences'.")
    if size < _SMALLEST:
        raise UsageError(
            f"A chunk size of {size} tokens is too small.", f"Use {_SMALLEST} or more."
        )
    if not 0 <= overlap < size:
        raise UsageError(
            f"A chunk overlap of {overlap} tokens doesn't fit a chunk size of {size}.",
            "Use an overlap from 0 to less than the size.",
        )


def _windows(text: str, size: int, overlap: int, encoding: str) -> Iterator[_Piece]:
    if not text.strip():
        return
    offsets = token_offsets(text, encoding)
    offsets.append(len(text))
    last = len(offsets) - 1
    first = 0
    while first < last:
        until, tokens = _window(text, offsets, first, size, encoding)
        start, end = offsets[first], offsets[until]
        if not text[start:end].isspace():
            yield start, end, tokens
        if end == len(text):
            return
        # A token inside a code point begins at it: go on after the start, never behind the end.
        first = max(bisect_left(offsets, end) - overlap, bisect_right(offsets, start))


def _window(
    text: str, offsets: Sequence[int], first: int, size: int, encoding: str
) -> tuple[int, int]:
    """Where the window from token ``first`` ends, and its tokens as its text counts by itself.

    That count may differ from the window's, since the text around a token decides how it is cut.
    """
    start = offsets[first]
    until = min(first + size, len(offsets) - 1)
    while True:
        end = offsets[until]
        if end == start:
            until = bisect_right(offsets, start)
            return until, count_tokens(text[start : offsets[until]], encoding)
        tokens = count_tokens(text[start:end], encoding)
        if tokens <= size:
            return until, tokens
        until -= tokens - size


def _packed(text: str, size: int, overlap: int, encoding: str) -> Iterator[_Piece]:
    spans = sentences(text)
    # A sentence's cost includes the white space that follows it.
    starts = [start for start, _ in spans] + [len(text)]
    costs = [count_tokens(text[a:b], encoding) for a, b in pairwise(starts)]
    sums = [0, *accumulate(costs)]
    first = 0
    while first < len(spans):
        until = max(bisect_right(sums, sums[first] + size) - 1, first + 1)
        until, tokens = _fitted(text, spans, first, until, size, encoding)
        start, end = spans[first][0], spans[until - 1][1]
        if tokens <= size:
            yield start, end, tokens
        else:
            for a, b, tokens in _windows(text[start:end], size, overlap, encoding):
                yield start + a, start + b, tokens
        if until == len(spans):
            return
        first = min(until, max(first + 1, bisect_left(sums, sums[until] - overlap)))


def _fitted(
    text: str, spans: Sequence[tuple[int, int]], first: int, until: int, size: int, encoding: str
) -> tuple[int, int]:
    """The most of the sentences ``first`` to ``until`` that fit, at least one, and their tokens."""
    start = spans[first][0]
    while True:
        tokens = count_tokens(text[start : spans[until - 1][1]], encoding)
        if tokens <= size or until == first + 1:
            return until, tokens
        until -= 1


def _section_paths(
    above: tuple[Heading, ...], headings: Sequence[Heading]
) -> list[tuple[Heading, ...]]:
    """The section path before the first heading, and after each."""
    paths = [above]
    for heading in headings:
        kept = tuple(h for h in paths[-1] if h.level < heading.level)
        paths.append((*kept, heading))
    return paths


def _path_at(page: Page, paths: Sequence[tuple[Heading, ...]], start: int) -> tuple[str, ...]:
    """The section path of the first character from ``start`` on that isn't white space."""
    shown = start
    while shown < len(page.text) and page.text[shown].isspace():
        shown += 1
    index = bisect_right(page.headings, shown, key=lambda heading: heading.start)
    return tuple(heading.text for heading in paths[index])
