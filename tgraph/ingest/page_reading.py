"""Compact storage of page readings: segments and sentences, without characters contained in the
page.

Reading stored data takes a tenth of the time needed to find segments again."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from tgraph.model import CellValue, Inline, Segment, TableRow, TextSpan

_SMALL = 2_000
"""Bytes below which compression isn't worth its time."""

_COUNTED, _WIDE = 65_536, array("q").itemsize
"""Numbers that are held ready, and the bytes of one."""


@dataclass(frozen=True, slots=True)
class PageReading:
    """Segments of a page, with quotable spans for each segment."""

    segments: tuple[Segment, ...] = ()
    sentences: tuple[tuple[TextSpan, ...], ...] = ()


def read_page(text: str, media_type: str, layout: str = "") -> PageReading:
    """Return the reading of a page's stored text with its packed layout, empty if it has none."""
    from tgraph.ingest.blocks import unpack_blocks  # late: stored readings need neither
    from tgraph.ingest.segments import segments

    return reading_of(segments(text, media_type, unpack_blocks(layout)))


def reading_of(found: tuple[Segment, ...]) -> PageReading:
    """Return the page reading for the given segments."""
    from tgraph.ingest.segments import sentences_of

    return PageReading(found, tuple(tuple(sentences_of(segment)) for segment in found))


def pack_reading(page: PageReading, text: str) -> bytes:
    """Pack the reading of a page with the given ``text``."""
    contexts: dict[tuple[str, ...], int] = {}
    rows = [
        (
            segment.kind,
            segment.start,
            segment.end,
            (runs := _offset_runs(segment.offsets)),
            None if _visible_text(text, runs) == segment.text else segment.text,
            contexts.setdefault(segment.headings, len(contexts)),
            contexts.setdefault(segment.lead, len(contexts)),
            segment.pairs,
            segment.inlines,
            _row_fields(segment.row),
            tuple(chain.from_iterable(spans)),
        )
        for segment, spans in zip(page.segments, page.sentences, strict=True)
    ]
    data = json.dumps([list(contexts), rows], separators=(",", ":")).encode()
    return data if len(data) < _SMALL else zlib.compress(data, 1)


def unpack_reading(data: bytes, text: str) -> PageReading:
    """Unpack a page reading, given the same ``text`` as at packing."""
    plain = data if data[:1] == b"[" else zlib.decompress(data)
    context_lists, rows = json.loads(plain)
    contexts = [tuple(context) for context in context_lists]
    segments = [_unpack_segment(row, text, contexts) for row in rows]
    spans = (row[-1] for row in rows)
    return PageReading(
        tuple(segments),
        tuple(tuple(zip(bounds[::2], bounds[1::2], strict=True)) for bounds in spans),
    )


def _unpack_segment(row: Sequence[Any], text: str, contexts: Sequence[tuple[str, ...]]) -> Segment:
    kind, start, end, runs, own_text, headings, lead, pairs, inlines, table_row, _ = row
    offsets = array("q")
    for place, length, step in runs:
        if step and place + length <= _COUNTED:
            offsets.frombytes(_counted_numbers()[place * _WIDE : (place + length) * _WIDE])
        else:
            offsets.extend(range(place, place + length) if step else [place] * length)
    return Segment(
        kind,
        start,
        end,
        _visible_text(text, runs) if own_text is None else own_text,
        offsets,
        contexts[headings],
        contexts[lead],
        tuple((tuple(key), tuple(value)) for key, value in pairs),
        tuple(Inline(*fields) for fields in inlines),
        _make_row(table_row),
    )


def _row_fields(row: TableRow | None) -> tuple[Any, ...] | None:
    if row is None:
        return None
    return row.table, row.number, row.role, row.label, row.cells, row.subject, row.is_placed


def _make_row(fields: Sequence[Any] | None) -> TableRow | None:
    if fields is None:
        return None
    table, number, role, label, cells, subject, is_placed = fields
    cell_values = tuple(CellValue(*cell) for cell in cells)
    return TableRow(table, number, role, tuple(label), cell_values, subject, is_placed)


@cache
def _counted_numbers() -> memoryview:
    """Return the lowest numbers in array form: copying takes a fiftieth of the time of
    counting."""
    return memoryview(array("q", range(_COUNTED)).tobytes())


PageRun = Sequence[int]
"""The place of a first character, how many there are, and the distance between two: 0 or 1."""


def _offset_runs(offsets: Sequence[int]) -> list[PageRun]:
    runs: list[list[int]] = []
    at = 0
    while at < len(offsets):
        end = at + 1
        step = offsets[end] - offsets[at] if end < len(offsets) else 1
        step = step if step in (0, 1) else 1
        while end < len(offsets) and offsets[end] - offsets[end - 1] == step:
            end += 1
        runs.append([offsets[at], end - at, step])
        at = end
    return list(runs)


def _visible_text(text: str, runs: Sequence[PageRun]) -> str:
    """Return text at the given places, as a single line."""
    pieces = (text[at : at + length] if step else text[at] * length for at, length, step in runs)
    return "".join(pieces).replace("\n", " ")
