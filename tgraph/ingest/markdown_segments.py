"""Segments of a Markdown page: parser blocks, each with headings and context."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tgraph.ingest.apparatus import is_link_list, is_running_text, recognise_apparatus
from tgraph.ingest.broken_paragraphs import join_broken_paragraphs
from tgraph.ingest.front_matter import front_matter
from tgraph.ingest.markdown_html import HtmlReader
from tgraph.ingest.markdown_inline import LinkReferences, build_parser, inline_pieces
from tgraph.ingest.plain_segments import plain_segments
from tgraph.ingest.reading_text import ReadingText, joined_cells
from tgraph.ingest.sentences import sentences
from tgraph.model import Heading, Segment, SegmentKind

if TYPE_CHECKING:
    from markdown_it.token import Token

_LINE = re.compile(r"\r\n?|\n")
_SPACES = " \t\n\r\f\v"
_LONGEST_HEADING = 400
_MOSTLY_LINKS = 0.5


class MarkdownPage(NamedTuple):
    """Headings and segments of a Markdown page."""

    headings: tuple[Heading, ...]
    segments: tuple[Segment, ...]


@lru_cache(maxsize=2)
def read_page(text: str) -> MarkdownPage:
    """Return a Markdown page's segments in order, plus section headings.

    Front matter is left out. A heading's ``start`` is the start of the text in its line;
    headings in code, quotes and lists start no section."""
    reader = _PageReader(text)
    blocks = list(reader.segments())
    labels = {start for start, share in reader.linked.items() if share > _MOSTLY_LINKS}
    page_segments = join_broken_paragraphs(text, blocks, labels)
    linked = [reader.linked.get(segment.start, 0.0) for segment in page_segments]
    return MarkdownPage(tuple(reader.headings), tuple(recognise_apparatus(page_segments, linked)))


@dataclass(slots=True)
class _OpenList:
    """An open list: the introducing sentence, and the item currently read."""

    lead: str
    item: str = ""


@dataclass(slots=True)
class _MarkdownTable:
    lead: str
    number: int
    names: list[str] = field(default_factory=list)
    rows: int = 0
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
        self._links: LinkReferences = {}
        self._tokens: Sequence[Token] = build_parser().parse(body, self._links)
        self.headings: list[Heading] = []
        self._open: list[tuple[int, str]] = []
        self._html_reader = HtmlReader()
        self.linked: dict[int, float] = {}
        self._lists: list[_OpenList] = []
        self._table: _MarkdownTable | None = None
        self._lead = ""

    def segments(self) -> Iterator[Segment]:
        for before, token in zip([None, *self._tokens], self._tokens, strict=False):
            kind = token.type
            if kind == "inline" and self._table is not None:
                self._table.cells.append(token)
            elif kind == "inline" and before is not None:
                yield from self._read_inline(token, before)
            elif kind in ("fence", "code_block"):
                yield from self._read_code(token)
            elif kind == "html_block":
                yield from self._read_html(token)
            elif kind == "tr_close":
                yield from self._read_row()
            else:
                self._enter_or_leave(kind)

    def _enter_or_leave(self, kind: str) -> None:
        """Register opening and closing of lists and tables."""
        if kind in ("bullet_list_open", "ordered_list_open"):
            self._lists.append(_OpenList(self._lead))
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self._lists.pop()
        elif kind == "list_item_open":
            self._lists[-1].item = ""
        elif kind == "table_open":
            self._table = _MarkdownTable(self._lead, self._html_reader.open_table())
        elif kind == "table_close":
            self._table = None
        else:
            return
        self._lead = ""

    # --- places -----------------------------------------------------------------------------

    def _content_places(self, content: str, first_line: int) -> array[int]:
        """Return source places of a block's characters; content lines end where source lines
        end."""
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
        return self._expand_places(line, raw, start)

    @staticmethod
    def _expand_places(line: str, raw: str, start: int) -> Sequence[int]:
        """Return places for lines with tabs expanded to spaces, or characters replaced by the
        parser."""
        stripped_line = line.lstrip(" ")
        lead = len(line) - len(stripped_line)
        at = max(len(raw) - len(stripped_line), 0)
        first = start + max(at - 1, 0)
        text_places = [
            min(start + at + i, start + max(len(raw) - 1, 0)) for i in range(len(stripped_line))
        ]
        return [first] * lead + text_places

    # --- blocks -----------------------------------------------------------------------------

    def _list_leads(self) -> tuple[str, ...]:
        lists = (text for level in self._lists for text in (level.lead, level.item))
        return tuple(filter(None, lists))

    def _read_inline(self, token: Token, opening: Token) -> Iterator[Segment]:
        assert token.map is not None
        places = self._content_places(token.content, token.map[0])
        reading = ReadingText()
        piece_kinds: set[str] = set()
        lengths = {True: 0, False: 0}
        for piece in inline_pieces(token.content, self._links):
            reading.append_piece(piece, places)
            if piece.text and not piece.text.isspace():
                piece_kinds.add(piece.kind)
            lengths[piece.link] += sum(map(str.isalnum, piece.text))
        opens = self._lists and not self._lists[-1].item
        kind: SegmentKind = "item" if opens else "prose"
        level = 0
        if opening.type == "heading_open" and len(token.content) <= _LONGEST_HEADING:
            kind, level = "heading", 0 if opening.level else int(opening.tag[1])
        elif piece_kinds == {"image"} or opening.type == "admonition_title_open":
            kind = "display"
        segment = reading.segment(kind)
        if segment is None:
            return
        start, _ = _trim_span(self._text, self._starts[token.map[0]], self._ends[token.map[0]])
        self.linked[segment.start] = lengths[True] / max(1, sum(lengths.values()))
        yield from self._place_segment(segment, level, start)
        if opening.type == "admonition_title_open":
            self._lead = segment.text
        if opens:
            self._lists[-1].item = segment.text

    def _read_code(self, token: Token) -> Iterator[Segment]:
        assert token.map is not None
        content = token.content.rstrip("\n")
        if not content.strip():
            return
        first = token.map[0] + (token.type == "fence")
        places = self._content_places(content, first)
        lead = len(content) - len(content.lstrip("\n"))
        content, places = content[lead:], places[lead:]
        if not token.info and is_running_text(content):
            for part in plain_segments(content):
                yield from self._place_segment(_relocate_segment(part, places), 0, part.start)
            return
        led = (self._lead,) if self._lead else ()
        # A list in which too many spaces stand before the items is code to the grammar.
        kind: SegmentKind = "navigation" if is_link_list(content) and not token.info else "code"
        code = Segment(kind, places[0], places[-1] + 1, content, places, lead=led)
        lead_in = self._lead
        yield from self._place_segment(code, 0, code.start)
        self._lead = lead_in

    def _read_row(self) -> Iterator[Segment]:
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
            for piece in inline_pieces(cell.content, self._links):
                reading.append_piece(piece, places)
            readings.append(reading.segment("row"))
        kind: SegmentKind = "row"
        place = table.number, table.rows
        if table.in_head:
            kind = "display"
        else:
            table.rows += 1
        start, end = _trim_span(self._text, self._starts[number], self._ends[number])
        row = joined_cells(kind, readings, table.names, None if table.in_head else place)
        if table.in_head:
            table.in_head = False
            table.names = [cell.text.rstrip(":") if cell else "" for cell in readings]
        if row is not None:
            led = (table.lead,) if table.lead else ()
            yield from self._place_segment(replace(row, start=start, end=end, lead=led), 0, start)

    def _read_html(self, token: Token) -> Iterator[Segment]:
        assert token.map is not None
        content = token.content.rstrip("\n")
        places = self._content_places(content, token.map[0])
        for segment, level in self._html_reader.read(content, places):
            yield from self._place_segment(segment, 0 if token.level else level, segment.start)

    def _place_segment(self, segment: Segment, level: int, start: int) -> Iterator[Segment]:
        """Yield the segment with its open headings and lead; a heading then opens a section."""
        if level:
            self._open = [open_heading for open_heading in self._open if open_heading[0] < level]
        above = tuple(text for _, text in self._open)
        led = tuple(dict.fromkeys((*self._list_leads(), *segment.lead)))
        yield replace(segment, headings=above, lead=led)
        if level:
            self._open.append((level, segment.text))
            self.headings.append(Heading(segment.text, level, start))
        self._lead = _last_sentence(segment.text) if segment.kind in ("prose", "item") else ""


def _relocate_segment(segment: Segment, places: Sequence[int]) -> Segment:
    """Return a segment of a block's content, with its places in the page."""
    return replace(
        segment,
        kind="prose" if segment.kind == "heading" else segment.kind,
        start=places[segment.start],
        end=places[segment.end - 1] + 1,
        offsets=array("q", (places[at] for at in segment.offsets)),
        headings=(),
    )


def _last_sentence(text: str) -> str:
    spans = sentences(text)
    return text[slice(*spans[-1])] if spans else ""


def _trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    raw = text[start:end]
    return start + len(raw) - len(raw.lstrip()), start + len(raw.rstrip())


def _cell_places(text: str, start: int, end: int, cells: Sequence[Token]) -> list[Sequence[int]]:
    r"""Return source places of the characters in a row's cells; ``\|`` is a bar inside a cell."""
    place_lists: list[Sequence[int]] = []
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
        place_lists.append(places)
    return place_lists
