"""Blocks of HTML inside Markdown, as segments without a context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tgraph.ingest.base import split_words
from tgraph.ingest.markdown_inline import html_pieces
from tgraph.ingest.reading_text import TAG, ReadingText, joined_cells
from tgraph.model import Segment, SegmentKind

INLINE_TAGS = split_words(
    "a abbr b bdi bdo cite code data del dfn em font i img input ins kbd label mark q s samp small "
    "span strike strong sub sup time tt u var wbr"
)
_UNSHOWN_TAGS = split_words("script style template svg math iframe")
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_KINDS: dict[str, SegmentKind] = {
    **dict.fromkeys(_LEVELS, "heading"),
    **dict.fromkeys(("li", "dd", "dt"), "item"),
    **dict.fromkeys(("caption", "figcaption", "summary", "legend"), "display"),
}


class HtmlBlock(NamedTuple):
    """A text block with its heading level (0 for other blocks)."""

    segment: Segment
    level: int


class HtmlReader:
    """A reader of consecutive HTML blocks in a page; tables may continue across blocks."""

    def __init__(self) -> None:
        self._reading = ReadingText()
        self._kind: SegmentKind = "prose"
        self._level = 0
        self._unshown = ""
        self._cells: list[Segment | None] = []
        self._heads: list[bool] = []
        self._names: list[str] = []
        self._in_cell = False
        self._tables = 0
        self._rows = 0

    def open_table(self) -> int:
        """Return the number of a new table of the page."""
        self._tables += 1
        self._rows = 0
        return self._tables - 1

    def read(self, content: str, places: Sequence[int]) -> Iterator[HtmlBlock]:
        """Yield blocks of HTML content; character ``i`` of the content stands at ``places[i]``."""
        for piece in html_pieces(content):
            if piece.kind in ("text", "break"):
                if not self._unshown:
                    self._reading.append_piece(piece, places)
            elif tag := TAG.match(piece.kind):
                if tag[2].lower() in INLINE_TAGS and not self._unshown:
                    self._reading.append_piece(piece, places)
                yield from self._handle_tag(tag[2].lower(), tag[1] == "")
        if not self._in_cell:
            yield from self._finish_block()

    def _handle_tag(self, name: str, opens: bool) -> Iterator[HtmlBlock]:
        if name in _UNSHOWN_TAGS:
            self._unshown = name if opens else ""
        if name in INLINE_TAGS or self._unshown:
            return
        if name == "br" or (self._in_cell and name not in ("td", "th", "tr", "table")):
            self._reading.gap()
            return
        if name in ("td", "th"):
            self._handle_cell(name == "th", opens)
            return
        if self._in_cell:
            self._handle_cell(False, False)
        yield from self._finish_block()
        if name == "tr" or (name == "table" and not opens):
            yield from self._finish_row()
        if name == "table":
            self._names = []
            if opens:
                self.open_table()
        self._kind = _KINDS.get(name, "prose") if opens else "prose"
        self._level = _LEVELS.get(name, 0) if opens else 0

    def _handle_cell(self, heads: bool, opens: bool) -> None:
        if self._in_cell:
            self._cells.append(self._reading.segment("row"))
            self._reading = ReadingText()
        self._in_cell = opens
        if opens:
            self._heads.append(heads)

    def _finish_row(self) -> Iterator[HtmlBlock]:
        cells, heads = self._cells, self._heads
        self._cells, self._heads = [], []
        if not cells:
            return
        is_head = all(heads) and len(cells) > 1 and not self._names
        names = [] if is_head else self._names
        place = None if is_head else (self._tables - 1, self._rows)
        self._rows += not is_head
        row = joined_cells("display" if is_head else "row", cells, names, place)
        if is_head:
            self._names = [cell.text.rstrip(":") if cell else "" for cell in cells]
        if row is not None:
            yield HtmlBlock(row, 0)

    def _finish_block(self) -> Iterator[HtmlBlock]:
        segment = self._reading.segment(self._kind)
        if segment is not None:
            yield HtmlBlock(segment, self._level)
            self._reading = ReadingText()
