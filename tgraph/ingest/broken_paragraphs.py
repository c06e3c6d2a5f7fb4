"""Paragraphs that a converter broke at the ends of their lines, joined again.

A page of a PDF that became text on the way often has a blank line after every line. A paragraph
that ends in the middle of a sentence and goes on with a small letter is such a line anywhere; where
a text has many, whatever fills a line and ends no sentence is one.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from tgraph.model import Segment

_BLANK = re.compile(r"\n[^\S\n]*\r?\n")
_OPENS = frozenset(("prose", "item"))
_ENDS = re.compile(r"[.!?…:;。！？؟]['\"”’»)\]]*(?:\s?\[\d{1,3}\])*$")
_HYPHEN = re.compile(r"[^\W\d_][-\u00ad]$")
_LEAST_WORDS = 6
_LEAST_BROKEN = 8
_FULL = 0.75
"""The share of a line's width from which a line is full."""


def join_broken_paragraphs(text: str, segments: Sequence[Segment]) -> list[Segment]:
    """Return a text's segments in order, those joined that continue each other's sentence.

    Only what a blank line parts is joined: lines that were told apart otherwise are rows."""
    parted = [_BLANK.search(text, a.end, b.start) is not None for a, b in pairwise(segments)]
    broken = [
        len(a.text)
        for (a, b), is_parted in zip(pairwise(segments), parted, strict=True)
        if is_parted and _goes_on(a, b)
    ]
    width = sorted(broken)[len(broken) // 2] if len(broken) >= _LEAST_BROKEN else 0
    return list(_join_runs(segments, [False, *parted], width))


def _join_runs(
    segments: Sequence[Segment], parted: Sequence[bool], width: int
) -> Iterator[Segment]:
    """Yield joined runs; ``width`` is that of a text's broken lines, zero for whole paragraphs."""
    run: list[Segment] = []
    for segment, is_parted in zip(segments, parted, strict=False):
        if run and not (
            is_parted and (_goes_on(run[-1], segment) or _fills_line(run[-1], segment, width))
        ):
            yield _join_segments(run)
            run = []
        run.append(segment)
    if run:
        yield _join_segments(run)


def _goes_on(first: Segment, second: Segment) -> bool:
    """Return whether a paragraph ends within a sentence that the next one continues."""
    if not _are_neighbours(first, second) or not second.text[0].islower():
        return False
    return len(first.text.split()) >= _LEAST_WORDS or _HYPHEN.search(first.text) is not None


def _fills_line(first: Segment, second: Segment, width: int) -> bool:
    return width > 0 and len(first.text) >= _FULL * width and _are_neighbours(first, second)


def _are_neighbours(first: Segment, second: Segment) -> bool:
    return (
        first.kind in _OPENS
        and second.kind == "prose"
        and first.headings == second.headings
        and _ENDS.search(first.text) is None
    )


def _join_segments(run: Sequence[Segment]) -> Segment:
    """Return one segment; a hyphen at the end of a line is left out before a small letter."""
    if len(run) == 1:
        return run[0]
    parts: list[str] = []
    offsets = array("q")
    for segment, following in zip(run, [*run[1:], None], strict=True):
        text, places = segment.text, array("q", segment.offsets)
        if following is not None and _HYPHEN.search(text) and following.text[0].islower():
            text, places = text[:-1], places[:-1]
        elif following is not None:
            text, places = f"{text} ", places + places[-1:]
        parts.append(text)
        offsets.extend(places)
    return replace(
        run[0],
        end=run[-1].end,
        text="".join(parts),
        offsets=offsets,
        inlines=tuple(inline for segment in run for inline in segment.inlines),
    )
