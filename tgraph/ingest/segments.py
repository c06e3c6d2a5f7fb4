"""A page as it is read: what may be quoted from it, in order, each with its place and context.

The one home of the question how a stored text is structured: chunking, extraction and answering
read segments and nothing else.
"""

from __future__ import annotations

from tgraph.ingest.apparatus import is_address, recognised
from tgraph.ingest.front_matter import front_matter
from tgraph.ingest.markdown_segments import read_page
from tgraph.ingest.plain_segments import plain_segments
from tgraph.ingest.sentences import Span, sentences
from tgraph.model import Segment

__all__ = ["Segment", "segments", "sentences_of"]

MARKDOWN = "text/markdown"
_WHOLE = frozenset(("row", "heading", "display"))
_LINES = 12


def segments(text: str, media_type: str) -> tuple[Segment, ...]:
    """The segments of a page's stored text, in order of their places.

    They don't overlap, and every character that isn't white space, mark-up, a reference mark or
    front matter is in one of them. The same text and media type always give the same segments; any
    text gives some, in time that grows with its length.
    """
    if media_type == MARKDOWN:
        return read_page(text).segments
    found = list(plain_segments(text, marked=media_type == "text/plain"))
    return tuple(recognised(found, [is_address(segment.text) for segment in found]))


def body_start(text: str, media_type: str) -> int:
    """Where a page's text begins, after its front matter."""
    front = front_matter(text) if media_type == MARKDOWN else None
    return front.end if front else 0


def sentences_of(segment: Segment) -> list[Span]:
    """The parts of a segment's text that are quoted as one: sentences, the whole row, code whole or
    as runs of lines."""
    text = segment.text
    if segment.kind == "code":
        return _runs(text)
    return [(0, len(text))] if segment.kind in _WHOLE else sentences(text)


def _runs(text: str) -> list[Span]:
    """Code of at most a screen whole, longer code cut before lines that aren't indented."""
    lines = text.split("\n")
    if len(lines) <= _LINES:
        return [(0, len(text))]
    found: list[Span] = []
    start = at = count = 0
    for line in lines:
        opens = line[:1].strip() and line[0] not in "}])"
        if count and (count >= 2 * _LINES or (opens and count >= _LINES // 2)):
            found.append((start, at - 1))
            start, count = at, 0
        at += len(line) + 1
        count += 1
    found.append((start, len(text)))
    return [span for a, b in found for span in _stripped(text, a, b)]


def _stripped(text: str, start: int, end: int) -> list[Span]:
    piece = text[start:end]
    kept = piece.strip("\n")
    lead = len(piece) - len(piece.lstrip("\n"))
    return [(start + lead, start + lead + len(kept))] if kept.strip() else []
