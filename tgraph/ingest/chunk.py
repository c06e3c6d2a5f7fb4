"""Cutting pages into chunks whose offsets are exact: ``page.text[start:end] == chunk.text``."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Literal as Choice

from tgraph.errors import UsageError
from tgraph.ingest.reading_text import part_of_row
from tgraph.ingest.segments import body_start, segments, sentences_of
from tgraph.ingest.sentences import trim_span
from tgraph.model import Chunk, Document, Heading, Page, Segment
from tgraph.models.tokens import DEFAULT_ENCODING, count_tokens, token_offsets

ChunkBy = Choice["tokens", "sentences"]
# (start, end, tokens) in code points of the page.
_TextRange = tuple[int, int, int]
# One code point is at most four bytes, and so four tokens.
_SMALLEST = 4


def chunk_document(
    document: Document,
    size: int = 1200,
    overlap: int = 100,
    by: ChunkBy = "tokens",
    encoding: str = DEFAULT_ENCODING,
) -> list[Chunk]:
    """Return the document's chunks in order, numbered from 0 across all pages.

    By tokens: windows of ``size`` tokens, each beginning ``overlap`` tokens before the end of
    the previous window, never splitting a code point. By sentences: as many whole sentences as
    fit into ``size`` tokens, with the last sentences repeated as far as they fit into
    ``overlap``; a sentence longer than ``size`` is cut by tokens. No chunk counts more than
    ``size`` tokens, ``tokens`` is the exact count of the chunk's text, and together the chunks
    contain every character except white space and front matter. ``headings`` is the section
    path at the chunk's start, highest first; a section continues over pages. ``segments``
    contains the readable content of the chunk: whole sentences, and parts only of sentences
    that no chunk contains whole. Raises ``UsageError`` for meaningless sizes."""
    _check_sizes(size, overlap, by)
    chunks: list[Chunk] = []
    above: tuple[Heading, ...] = ()
    for page in document.pages:
        if by == "tokens":
            body = body_start(page.text, document.media_type)
            pieces = list(_token_windows(page.text, body, size, overlap, encoding))
        else:
            spans = _sentence_spans(page, document.media_type)
            pieces = list(_pack_sentences(page.text, spans, size, overlap, encoding))
        chunks += page_chunks(document, page, pieces, above, len(chunks))
        above = _section_paths(above, page.headings)[-1]
    return chunks


def page_chunks(
    document: Document,
    page: Page,
    pieces: Sequence[_TextRange],
    above: tuple[Heading, ...] = (),
    index: int = 0,
) -> list[Chunk]:
    """The pieces of a page, given by ``(start, end, tokens)`` in order, as chunks.

    They are numbered from ``index``; ``above`` are the headings that the page's first text stands
    under.
    """
    paths = _section_paths(above, page.headings)
    read = segments(page.text, document.media_type, page.blocks)
    segment_lists = _segments_within([(start, end) for start, end, _ in pieces], read)
    return [
        Chunk(
            document.sha256,
            page.number,
            place,
            start,
            end,
            page.text[start:end],
            tokens,
            _path_at(page, paths, start),
            piece_segments,
        )
        for place, ((start, end, tokens), piece_segments) in enumerate(
            zip(pieces, segment_lists, strict=True), index
        )
    ]


def _sentence_spans(page: Page, media_type: str) -> list[tuple[int, int]]:
    """Return sentence spans of the page's segments, including surrounding mark-up."""
    text = page.text
    starts = {body_start(text, media_type)}
    for segment in segments(text, media_type, page.blocks):
        starts.add(segment.start)
        places = [segment.locate(*span) for span in sentences_of(segment)]
        for (_, previous_end), (begin, _) in pairwise(places):
            if begin >= previous_end:  # else both stand in one link, say
                starts.add(begin)
    edges = [*sorted(starts), len(text)]
    return [span for edge in pairwise(edges) for span in trim_span(text, *edge)]


def _segments_within(
    pieces: Sequence[tuple[int, int]], read: Sequence[Segment]
) -> list[tuple[Segment, ...]]:
    """Return readable segments, or parts of segments, for each piece of a page.

    Pieces are sorted by start. Of a table's row that no piece contains, each piece has the whole
    cells, with those that name the row's subject. Another row without its beginning doesn't state
    its subject and is left out."""
    segment_lists: list[list[Segment]] = [[] for _ in pieces]
    for segment in read:
        full_pieces, touching = _find_pieces(pieces, segment.start, segment.end)
        for k in full_pieces:
            segment_lists[k].append(segment)
        if not full_pieces and segment.row is not None:
            for k in touching:
                if cells := _whole_cells(segment, pieces[k]):
                    segment_lists[k].append(part_of_row(segment, cells))
        elif not full_pieces and touching:
            for k, part in _split_segment(segment, pieces):
                segment_lists[k].append(segment.clip(*part))
    return [tuple(piece_segments) for piece_segments in segment_lists]


def _whole_cells(row: Segment, piece: tuple[int, int]) -> list[int]:
    """Return which pairs of a row have their value whole in a piece."""
    places = (row.locate(*value) for _, value in row.pairs)
    return [at for at, (start, end) in enumerate(places) if piece[0] <= start and end <= piece[1]]


def _find_pieces(
    pieces: Sequence[tuple[int, int]], start: int, end: int
) -> tuple[Sequence[int], Sequence[int]]:
    """Return pieces containing the whole stretch, and pieces touching the stretch."""
    first = bisect_right(pieces, start, key=lambda piece: piece[1])
    touching = range(first, bisect_left(pieces, end, lo=first, key=lambda piece: piece[0]))
    return [k for k in touching if pieces[k][0] <= start and end <= pieces[k][1]], touching


def _split_segment(
    segment: Segment, pieces: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield parts, by piece, of a segment longer than any piece."""
    parts: dict[int, list[tuple[int, int]]] = {}
    for start, end in sentences_of(segment):
        full_pieces, touching = _find_pieces(pieces, *segment.locate(start, end))
        for k in full_pieces or touching:
            part = segment.fit(start, end, *pieces[k])
            if part[0] < part[1]:
                _join_part(parts.setdefault(k, []), part, segment, pieces[k])
    for k, spans in parts.items():
        for start, end in spans:
            text = segment.text[start:end]
            start, end = start + len(text) - len(text.lstrip()), start + len(text.rstrip())
            if start < end and (start == 0 or segment.kind != "row"):
                yield k, (start, end)


def _join_part(
    parts: list[tuple[int, int]],
    part: tuple[int, int],
    segment: Segment,
    piece: tuple[int, int],
) -> None:
    """Add a segment part to a piece's parts, merging adjacent parts if the piece contains the
    text between."""
    joined = (parts[-1][0], part[1]) if parts else part
    if parts and segment.fit(*joined, *piece) == joined:
        parts[-1] = joined
    else:
        parts.append(part)


def _check_sizes(size: int, overlap: int, by: str) -> None:
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


def _token_windows(
    text: str, start: int, size: int, overlap: int, encoding: str
) -> Iterator[_TextRange]:
    """Yield token windows of the text, beginning at ``start``."""
    if not text[start:].strip():
        return
    offsets = token_offsets(text[start:], encoding)
    if start:
        offsets = array("I", (start + offset for offset in offsets))
    offsets.append(len(text))
    last = len(offsets) - 1
    first = 0
    while first < last:
        until, tokens = _fit_window(text, offsets, first, size, encoding)
        start, end = offsets[first], offsets[until]
        if not text[start:end].isspace():
            yield start, end, tokens
        if end == len(text):
            return
        # A token inside a code point begins at it: go on after the start, never behind the end.
        first = max(bisect_left(offsets, end) - overlap, bisect_right(offsets, start))


def _fit_window(
    text: str, offsets: Sequence[int], first: int, size: int, encoding: str
) -> tuple[int, int]:
    """Return the end of the window beginning at token ``first``, plus the token count of the
    window's text alone.

    The count may differ from the window size, since surrounding text influences tokenisation."""
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


def _pack_sentences(
    text: str, spans: Sequence[tuple[int, int]], size: int, overlap: int, encoding: str
) -> Iterator[_TextRange]:
    if not spans:
        return
    # A sentence's cost includes the white space that follows it.
    starts = [start for start, _ in spans] + [len(text)]
    costs = [count_tokens(text[a:b], encoding) for a, b in pairwise(starts)]
    sums = [0, *accumulate(costs)]
    first = 0
    while first < len(spans):
        until = max(bisect_right(sums, sums[first] + size) - 1, first + 1)
        until, tokens = _fit_sentences(text, spans, first, until, size, encoding)
        start, end = spans[first][0], spans[until - 1][1]
        if tokens <= size:
            yield start, end, tokens
        else:
            for a, b, tokens in _token_windows(text[start:end], 0, size, overlap, encoding):
                yield start + a, start + b, tokens
        if until == len(spans):
            return
        first = min(until, max(first + 1, bisect_left(sums, sums[until] - overlap)))


def _fit_sentences(
    text: str, spans: Sequence[tuple[int, int]], first: int, until: int, size: int, encoding: str
) -> tuple[int, int]:
    """Return the end of the longest fitting run of sentences from ``first`` to ``until``, at
    least one sentence, plus token count."""
    start = spans[first][0]
    while True:
        tokens = count_tokens(text[start : spans[until - 1][1]], encoding)
        if tokens <= size or until == first + 1:
            return until, tokens
        until -= 1


def _section_paths(
    above: tuple[Heading, ...], headings: Sequence[Heading]
) -> list[tuple[Heading, ...]]:
    """Return the section path before all headings, then the section path after each heading."""
    paths = [above]
    for heading in headings:
        ancestors = tuple(h for h in paths[-1] if h.level < heading.level)
        paths.append((*ancestors, heading))
    return paths


def _path_at(page: Page, paths: Sequence[tuple[Heading, ...]], start: int) -> tuple[str, ...]:
    """Return the section path at the nearest visible character from ``start``."""
    visible_start = start
    while visible_start < len(page.text) and page.text[visible_start].isspace():
        visible_start += 1
    index = bisect_right(page.headings, visible_start, key=lambda heading: heading.start)
    return tuple(heading.text for heading in paths[index])
