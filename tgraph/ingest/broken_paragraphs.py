"""Paragraphs that a converter broke at the ends of their lines, joined again.

A page of a PDF that became text on the way often has a blank line after every line. A paragraph
that ends in the middle of a sentence and goes on with a small letter is such a line anywhere; where
a text has many, whatever fills a line and ends no sentence is one. A number of a page that stands
between the two parts of a paragraph is left out.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import pairwise

from tgraph.model import Segment

_BLANK = re.compile(r"\n[^\S\n]*\r?\n")
_OPENS = frozenset(("prose", "item"))
_ENDS = re.compile(r"[.!?…:;。！？؟]['\"”’»)\]]*(?:\s?\[\d{1,3}\])*$")
_HYPHEN = re.compile(r"[^\W\d_][-\u00ad]$")
_PAGE_NUMBER = re.compile(
    r"(?:(?P<mark>[-–—|_*\[({<]{1,3}) ?)?(?P<name>(?i:page|p\.|seite|página) )?(?P<number>\d{1,4})"
    r"(?: (?:of|/) \d{1,4})?(?(mark) ?[-–—|_*\])}>]{1,3})"
)
_LEAST_WORDS = 6
_LEAST_BROKEN = 8
_FULL = 0.75
"""The share of a line's width from which a line is full."""


def join_broken_paragraphs(
    text: str, segments: Sequence[Segment], apart: Container[int] = ()
) -> list[Segment]:
    """Return a text's segments in order, those joined that continue each other's sentence.

    Only what a blank line parts is joined: lines that were told apart otherwise are rows. The
    segments that start at ``apart`` aren't lines of a paragraph, however long they are."""
    numbers = _find_page_numbers(segments)
    body = [segment for k, segment in enumerate(segments) if k not in numbers]
    breaks = {segments[k + 1].start for k in numbers if k + 1 < len(segments)}
    joined = list(_join_runs(body, _find_joins(text, body, breaks, apart)))
    return list(_restore_outside(joined, [segments[k] for k in sorted(numbers)]))


def _find_page_numbers(segments: Sequence[Segment]) -> set[int]:
    """Return the places of page numbers: lines of their own, each a number of a rising sequence."""
    lines = [
        (k, int(match["number"]))
        for k, segment in enumerate(segments)
        if segment.kind == "prose" and (match := _PAGE_NUMBER.fullmatch(segment.text))
    ]
    follows = [after - before == 1 for (_, before), (_, after) in pairwise(lines)]
    sides = zip(lines, [False, *follows], [*follows, False], strict=True) if lines else ()
    return {k for (k, _), before, after in sides if before or after}


def _find_joins(
    text: str, segments: Sequence[Segment], breaks: Container[int], apart: Container[int]
) -> list[bool]:
    """Return for each segment whether it continues the one before; a page ends before those that
    start at ``breaks``."""
    pairs = list(pairwise(segments))
    parted = [_BLANK.search(text, a.end, b.start) is not None for a, b in pairs]
    goes_on = [is_parted and _goes_on(*pair) for pair, is_parted in zip(pairs, parted, strict=True)]
    lengths = sorted(len(a.text) for (a, _), is_on in zip(pairs, goes_on, strict=True) if is_on)
    # The width of a text's broken lines; zero for whole paragraphs.
    width = lengths[len(lengths) // 2] if len(lengths) >= _LEAST_BROKEN else 0
    return [
        False,
        *(
            is_on
            or (is_parted and first.start not in apart and _fills_line(first, second, width))
            or (second.start in breaks and _is_cut(first, second))
            for (first, second), is_parted, is_on in zip(pairs, parted, goes_on, strict=True)
        ),
    ]


def _join_runs(segments: Sequence[Segment], joins: Sequence[bool]) -> Iterator[Segment]:
    run: list[Segment] = []
    for segment, is_joined in zip(segments, joins, strict=False):
        if run and not is_joined:
            yield _join_segments(run)
            run = []
        run.append(segment)
    if run:
        yield _join_segments(run)


def _restore_outside(joined: Sequence[Segment], numbers: Sequence[Segment]) -> Iterator[Segment]:
    """Yield joined segments, and between them, in order, the page numbers that none encloses."""
    end = 0
    for segment in merge(joined, numbers, key=lambda segment: segment.start):
        if segment.start >= end:
            yield segment
            end = segment.end


def _goes_on(first: Segment, second: Segment) -> bool:
    """Return whether a paragraph ends within a sentence that the next one continues."""
    if not _are_neighbours(first, second) or not second.text[0].islower():
        return False
    return len(first.text.split()) >= _LEAST_WORDS or _HYPHEN.search(first.text) is not None


def _fills_line(first: Segment, second: Segment, width: int) -> bool:
    return width > 0 and len(first.text) >= _FULL * width and _are_neighbours(first, second)


def _is_cut(first: Segment, second: Segment) -> bool:
    """Return whether the end of a page stands within a sentence."""
    return len(first.text.split()) >= _LEAST_WORDS and _are_neighbours(first, second)


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
