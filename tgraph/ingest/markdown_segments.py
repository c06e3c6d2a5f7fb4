"""The segments of a page of Markdown: a parser's blocks, each with what it stands under."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tgraph.ingest.base import words
from tgraph.ingest.front_matter import front_matter
from tgraph.ingest.markdown_inline import Links, Piece, html_pieces, parser, pieces
from tgraph.ingest.reading_text import ReadingText, joined_contexts
from tgraph.ingest.sentences import sentences
from tgraph.model import Segment, SegmentKind

if TYPE_CHECKING:
    from markdown_it.token import Token

_LINE = re.compile(r"\r\n?|\n")
_SPACES = " \t\n\r\f\v"
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")
_INLINE_TAGS = words(
    "a abbr b bdi bdo cite code data del dfn em font i img input ins kbd label mark q s samp small "
    "span strike strong sub sup time tt u var wbr"
)
_UNSHOWN_TAGS = words("script style template svg math iframe")


def markdown_segments(text: str) -> Iterator[Segment]:
    """The segments of a page of Markdown in order; front matter is none."""
    yield from _PageReader(text).segments()


@dataclass(slots=True)
class _OpenList:
    """An open list: what leads it in, and the item that is being read."""

    lead: str
    item: str = ""


@dataclass(slots=True)
class _OpenTable:
    lead: str
    names: list[str] = field(default_factory=list)
    in_head: bool = True
    cells: list[Token] = field(default_factory=list)


class _PageReader:
    def __init__(self, text: str) -> None:
        self._text = text
        front = front_matter(text)
        self._shift = front.end if front else 0
        body = text[self._shift :]
        self._starts = array("q", [self._shift])
        self._ends = array("q")
        for match in _LINE.finditer(body):
            self._ends.append(self._shift + match.start())
            self._starts.append(self._shift + match.end())
        self._ends.append(len(text))
        self._links: Links = {}
        self._tokens: Sequence[Token] = parser().parse(body, self._links)
        self._headings: list[tuple[int, str]] = []
        self._lists: list[_OpenList] = []
        self._table: _OpenTable | None = None
        self._lead = ""

    def segments(self) -> Iterator[Segment]:
        for before, token in zip([None, *self._tokens], self._tokens, strict=False):
            kind = token.type
            if kind == "inline" and self._table is not None:
                self._table.cells.append(token)
            elif kind == "inline" and before is not None:
                yield from self._inline(token, before)
            elif kind in ("fence", "code_block"):
                yield from self._code(token)
            elif kind == "html_block":
                yield from self._html(token)
            elif kind == "tr_close":
                yield from self._row()
            else:
                self._enter_or_leave(kind)

    def _enter_or_leave(self, kind: str) -> None:
        """Take note of lists and tables that open and close."""
        if kind in ("bullet_list_open", "ordered_list_open"):
            self._lists.append(_OpenList(self._lead))
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self._lists.pop()
        elif kind == "list_item_open":
            self._lists[-1].item = ""
        elif kind == "table_open":
            self._table = _OpenTable(self._lead)
        elif kind == "table_close":
            self._table = None
        else:
            return
        self._lead = ""

    # --- places -----------------------------------------------------------------------------

    def _places(self, content: str, first_line: int) -> array[int]:
        """Where each character of a block's content stands, whose lines end as the source's do."""
        places = array("q")
        for number, line in enumerate(content.split("\n"), first_line):
            if places or number > first_line:
                places.append(self._ends[number - 1])
            if line:
                places.extend(self._line_places(line, number))
        return places

    def _line_places(self, line: str, number: int) -> Sequence[int]:
        start, end = self._starts[number], self._ends[number]
        raw = self._text[start:end]
        at = len(raw) - len(line)
        if at >= 0 and raw.endswith(line):
            return range(start + at, end)
        bare = raw.rstrip(_SPACES)
        if bare.endswith(line):
            return range(start + len(bare) - len(line), start + len(bare))
        at = raw.find(line)
        if at >= 0:  # a heading with closing marks
            return range(start + at, start + at + len(line))
        return self._expanded(line, raw, start)

    @staticmethod
    def _expanded(line: str, raw: str, start: int) -> Sequence[int]:
        """Places where a tab was made spaces, or a character replaced by the parser."""
        shown = line.lstrip(" ")
        lead = len(line) - len(shown)
        at = max(len(raw) - len(shown), 0)
        first = start + max(at - 1, 0)
        rest = [min(start + at + i, start + max(len(raw) - 1, 0)) for i in range(len(shown))]
        return [first] * lead + rest

    # --- blocks -----------------------------------------------------------------------------

    def _context(self, *more: str) -> tuple[str, ...]:
        lists = (text for level in self._lists for text in (level.lead, level.item))
        return joined_contexts((text for _, text in self._headings), lists, more)

    def _inline(self, token: Token, opening: Token) -> Iterator[Segment]:
        assert token.map is not None
        places = self._places(token.content, token.map[0])
        if opening.type == "heading_open":
            yield from self._heading(token, opening, places)
            return
        reading = ReadingText()
        opens = self._lists and not self._lists[-1].item
        kind: SegmentKind = "item" if opens else "prose"
        pictures = shown = 0
        for piece in pieces(token.content, self._links):
            _take(reading, piece, places)
            pictures += piece.kind == "image"
            shown += piece.kind in ("text", "code") and not piece.text.isspace()
        if pictures and not shown:
            kind = "display"
        segment = reading.segment(kind, self._context())
        if segment is None:
            return
        yield segment
        if opens:
            self._lists[-1].item = segment.text
        self._lead = _last_sentence(segment.text)

    def _heading(self, token: Token, opening: Token, places: array[int]) -> Iterator[Segment]:
        reading = ReadingText()
        for piece in pieces(token.content, self._links):
            _take(reading, piece, places)
        level = int(opening.tag[1])
        free = not opening.level
        if free:
            self._headings = [kept for kept in self._headings if kept[0] < level]
        segment = reading.segment("heading", self._context())
        self._lead = ""
        if segment is not None:
            yield segment
            if free:
                self._headings.append((level, segment.text))

    def _code(self, token: Token) -> Iterator[Segment]:
        assert token.map is not None
        content = token.content.rstrip("\n")
        if not content.strip():
            return
        first = token.map[0] + (token.type == "fence")
        places = self._places(content, first)
        lead = len(content) - len(content.lstrip("\n"))
        content, places = content[lead:], places[lead:]
        yield Segment("code", places[0], places[-1] + 1, content, places, self._context(self._lead))

    def _row(self) -> Iterator[Segment]:
        table = self._table
        assert table is not None
        cells, table.cells = table.cells, []
        if not cells:
            return
        assert cells[0].map is not None
        number = cells[0].map[0]
        spans = _cell_places(self._text, self._starts[number], self._ends[number], cells)
        readings = []
        for cell, places in zip(cells, spans, strict=True):
            reading = ReadingText()
            for piece in pieces(cell.content, self._links):
                _take(reading, piece, places)
            readings.append(reading.segment("row", ()))
        if table.in_head:
            table.in_head = False
            table.names = [cell.text if cell else "" for cell in readings]
            joined = _joined_cells(readings, [""] * len(readings))
            kind: SegmentKind = "display"
        else:
            joined = _joined_cells(readings, table.names)
            kind = "row"
        start, end = _trimmed(self._text, self._starts[number], self._ends[number])
        segment = joined.segment(kind, self._context(table.lead), start, end)
        if segment is not None:
            yield segment

    # --- HTML -------------------------------------------------------------------------------

    def _html(self, token: Token) -> Iterator[Segment]:
        assert token.map is not None
        places = self._places(token.content.rstrip("\n"), token.map[0])
        reading = ReadingText()
        unshown = ""
        for piece in html_pieces(token.content.rstrip("\n")):
            if piece.text or piece.kind in ("text", "break"):
                if not unshown:
                    _take(reading, piece, places)
                continue
            match = _TAG.match(piece.kind)
            if match is None:
                continue
            name = match[2].lower()
            if name in _UNSHOWN_TAGS:
                unshown = "" if match[1] else name
            if name not in _INLINE_TAGS and len(reading):
                segment = reading.segment("prose", self._context())
                if segment is not None:
                    yield segment
                reading = ReadingText()
        segment = reading.segment("prose", self._context())
        if segment is not None:
            yield segment


def _take(reading: ReadingText, piece: Piece, places: Sequence[int]) -> None:
    if piece.text:
        reading.add(piece.text, [places[at] for at in piece.places])


def _last_sentence(text: str) -> str:
    spans = sentences(text)
    return text[slice(*spans[-1])] if spans else ""


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    raw = text[start:end]
    return start + len(raw) - len(raw.lstrip()), start + len(raw.rstrip())


def _cell_places(text: str, start: int, end: int, cells: Sequence[Token]) -> list[Sequence[int]]:
    """Where the characters of a row's cells stand; ``\\|`` is a bar of the cell that it is in."""
    found: list[Sequence[int]] = []
    at = start
    for cell in cells:
        places = array("q")
        begin = at
        for character in cell.content:
            while at < end and text[at] != character:
                at += 1
            places.append(min(at, end - 1))
            at += 1
        if not cell.content:
            at = begin
        while at < end and text[at] != "|":
            at += 1
        found.append(places)
    return found


def _joined_cells(cells: Sequence[Segment | None], names: Sequence[str]) -> ReadingText:
    row = ReadingText()
    for cell, name in zip(cells, names, strict=True):
        if cell is None:
            continue
        if len(row):
            row.add_at("; ", row.offsets[-1])
        if name:
            row.add_at(f"{name.rstrip(':')}: ", cell.offsets[0])
        row.add(cell.text, cell.offsets)
    return row
