"""Readable segments of a page: quotable text in order, each with place and context.

The only module deciding how a stored text is structured: chunking, extraction and answering
read segments and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.ingest.apparatus import is_address, recognise_apparatus
from tgraph.ingest.block_segments import block_segments
from tgraph.ingest.broken_paragraphs import join_broken_paragraphs
from tgraph.ingest.front_matter import front_matter
from tgraph.ingest.markdown_segments import read_page
from tgraph.ingest.plain_segments import plain_segments
from tgraph.ingest.sentences import CharacterRange, sentences
from tgraph.ingest.table_rows import read_rows, split_long_cells
from tgraph.model import Block, Segment

__all__ = ["Segment", "segments", "sentences_of"]

MARKDOWN = "text/markdown"
_WHOLE = frozenset(("row", "heading", "display"))
_LINES = 12


def segments(text: str, media_type: str, blocks: Sequence[Block] = ()) -> tuple[Segment, ...]:
    """Return segments of a page's stored text, ordered by place.

    Segments don't overlap, and every character is in a segment except white space, mark-up,
    reference marks and front matter. ``blocks`` is the page's structure where its reader knew the
    structure. Equal arguments always give equal segments; any text gives some segments, in time
    that grows with its length."""
    if blocks:
        whole = join_broken_paragraphs(text, block_segments(text, blocks))
        return split_long_cells(read_rows(whole))
    if media_type == MARKDOWN:
        return read_rows(read_page(text).segments)
    marked = media_type == "text/plain"
    segment_list = join_broken_paragraphs(text, list(plain_segments(text, marked=marked)))
    return tuple(
        recognise_apparatus(segment_list, [is_address(segment.text) for segment in segment_list])
    )


def body_start(text: str, media_type: str) -> int:
    """Return the offset of a page's text, following the front matter."""
    front = front_matter(text) if media_type == MARKDOWN else None
    return front.end if front else 0


def sentences_of(segment: Segment) -> list[CharacterRange]:
    """Return a segment's quotable spans: sentences, an entire row, or code, whole or in runs of
    lines."""
    text = segment.text
    if segment.kind == "code":
        return _code_runs(text)
    return [(0, len(text))] if segment.kind in _WHOLE else sentences(text)


def _code_runs(text: str) -> list[CharacterRange]:
    """Code of at most a screen whole, longer code cut before lines that aren't indented."""
    lines = text.split("\n")
    if len(lines) <= _LINES:
        return [(0, len(text))]
    spans: list[CharacterRange] = []
    start = at = count = 0
    for line in lines:
        opens = line[:1].strip() and line[0] not in "}])"
        if count and (count >= 2 * _LINES or (opens and count >= _LINES // 2)):
            spans.append((start, at - 1))
            start, count = at, 0
        at += len(line) + 1
        count += 1
    spans.append((start, len(text)))
    return [span for a, b in spans for span in _strip_span(text, a, b)]


def _strip_span(text: str, start: int, end: int) -> list[CharacterRange]:
    piece = text[start:end]
    stripped_text = piece.strip("\n")
    lead = len(piece) - len(piece.lstrip("\n"))
    return [(start + lead, start + lead + len(stripped_text))] if stripped_text.strip() else []
