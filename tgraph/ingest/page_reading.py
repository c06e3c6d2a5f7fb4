"""How a page reads, kept: its segments and their sentences, without the characters that the page
itself has. Reading it back takes a tenth of the time of finding them again."""

from __future__ import annotations

import json
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from tgraph.model import Inline, Segment, SegmentKind, TextSpan

_SMALL = 2_000
"""Bytes below which compression isn't worth its time."""

_COUNTED, _WIDE = 65_536, array("q").itemsize
"""Numbers that are held ready, and the bytes of one."""


@dataclass(frozen=True, slots=True)
class PageReading:
    """The segments of a page, and of each the spans of what is quoted as one."""

    segments: tuple[Segment, ...] = ()
    sentences: tuple[tuple[TextSpan, ...], ...] = ()


def read_page(text: str, media_type: str) -> PageReading:
    """How a page's stored text reads."""
    from tgraph.ingest.segments import segments  # late: what is kept is read back without it

    return reading_of(segments(text, media_type))


def reading_of(found: tuple[Segment, ...]) -> PageReading:
    """The reading of a page that has these segments."""
    from tgraph.ingest.segments import sentences_of

    return PageReading(found, tuple(tuple(sentences_of(each)) for each in found))


def kind_at(page: Sequence[Segment], start: int, end: int) -> SegmentKind | None:
    """The kind of the segment, of those of a page, that a stretch of it stands in; None where it
    reaches beyond one."""
    at = bisect_right(page, start, key=lambda segment: segment.start) - 1
    return page[at].kind if at >= 0 and end <= page[at].end else None


def packed(page: PageReading, text: str) -> bytes:
    """What is kept of how a page with the ``text`` reads."""
    contexts: dict[tuple[str, ...], int] = {}
    rows = [
        (
            each.kind,
            each.start,
            each.end,
            (runs := _runs(each.offsets)),
            None if _shown(text, runs) == each.text else each.text,
            contexts.setdefault(each.headings, len(contexts)),
            contexts.setdefault(each.lead, len(contexts)),
            each.pairs,
            each.inlines,
            tuple(chain.from_iterable(spans)),
        )
        for each, spans in zip(page.segments, page.sentences, strict=True)
    ]
    data = json.dumps([list(contexts), rows], separators=(",", ":")).encode()
    return data if len(data) < _SMALL else zlib.compress(data, 1)


def unpacked(data: bytes, text: str) -> PageReading:
    """The reading of which ``packed`` made this, for the same ``text``."""
    plain = data if data[:1] == b"[" else zlib.decompress(data)
    kept, rows = json.loads(plain)
    contexts = [tuple(each) for each in kept]
    found = [_segment(row, text, contexts) for row in rows]
    spans = (row[-1] for row in rows)
    return PageReading(
        tuple(found), tuple(tuple(zip(one[::2], one[1::2], strict=True)) for one in spans)
    )


def _segment(row: Sequence[Any], text: str, contexts: Sequence[tuple[str, ...]]) -> Segment:
    kind, start, end, runs, own, headings, lead, pairs, inlines, _ = row
    offsets = array("q")
    for place, length, step in runs:
        if step and place + length <= _COUNTED:
            offsets.frombytes(_counted()[place * _WIDE : (place + length) * _WIDE])
        else:
            offsets.extend(range(place, place + length) if step else [place] * length)
    return Segment(
        kind,
        start,
        end,
        _shown(text, runs) if own is None else own,
        offsets,
        contexts[headings],
        contexts[lead],
        tuple((tuple(key), tuple(value)) for key, value in pairs),
        tuple(Inline(*each) for each in inlines),
    )


@cache
def _counted() -> memoryview:
    """The first numbers, as arrays have them: copied in a fiftieth of the time of counting."""
    return memoryview(array("q", range(_COUNTED)).tobytes())


Run = Sequence[int]
"""The place of a first character, how many there are, and the distance between two: 0 or 1."""


def _runs(offsets: Sequence[int]) -> list[Run]:
    found: list[list[int]] = []
    at = 0
    while at < len(offsets):
        end = at + 1
        step = offsets[end] - offsets[at] if end < len(offsets) else 1
        step = step if step in (0, 1) else 1
        while end < len(offsets) and offsets[end] - offsets[end - 1] == step:
            end += 1
        found.append([offsets[at], end - at, step])
        at = end
    return list(found)


def _shown(text: str, runs: Sequence[Run]) -> str:
    """What stands at these places, on one line."""
    pieces = (text[at : at + length] if step else text[at] * length for at, length, step in runs)
    return "".join(pieces).replace("\n", " ")
