"""Tables of HTML as rows of blocks: spans are expanded, heads are recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Literal

from lxml import etree

from tgraph.ingest.blocks import PageBuilder
from tgraph.ingest.tables import is_head
from tgraph.rendering import collapse_whitespace

_MOST_COLUMNS = 1000
_LONGEST_REPEATED = 200
_REPEATS = 20
"""How many cells a table may get from spans for each cell that it has."""
_FEW_ROWS = 3
_MANY_LINES = 4
_LONG_CELL = 600
_HEADINGS = tuple(f"h{level}" for level in range(1, 7))


@dataclass(slots=True)
class Cell:
    """A cell of a table: its text in parts, and how many columns and rows it takes."""

    is_head: bool = False
    columns: int = 1
    rows: int = 1
    parts: list[str] = field(default_factory=list)

    def add(self, text: str, *, is_item: bool = False) -> None:
        """Add a block's text; blocks that no sign parts get a semicolon between them."""
        line = "; ".join(text.split("\n")) if not self.is_head else text
        if self.parts and line and (is_item or not self.is_head) and self.parts[-1][-1:].isalnum():
            self.parts[-1] += ";"
        self.parts.append(line)

    @property
    def text(self) -> str:
        return collapse_whitespace(" ".join(self.parts))


@dataclass(slots=True)
class HtmlRow:
    """A row of a table; ``lines`` are those of tables inside its cells."""

    place: Literal["head", "body", "foot"] = "body"
    cells: list[Cell] = field(default_factory=list)
    lines: list[TableLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TableLine:
    """A line of a table for a page: a head, a row, a field ``name: value`` or a title."""

    table: int
    kind: Literal["head", "row", "field", "title"]
    cells: Sequence[str]
    names: Sequence[str] = ()


_numbers = count()


@dataclass(slots=True)
class HtmlTable:
    """A table that is being read."""

    rows: list[HtmlRow] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    place: Literal["head", "body", "foot"] = "body"
    cell: Cell | None = None
    in_caption: bool = False
    number: int = field(default_factory=lambda: next(_numbers))

    def open_row(self) -> None:
        self.rows.append(HtmlRow(self.place))

    def open_cell(self, element: etree._Element) -> None:
        if not self.rows:
            self.open_row()
        self.cell = Cell(
            element.tag == "th", _read_span(element, "colspan"), _read_span(element, "rowspan")
        )
        self.rows[-1].cells.append(self.cell)

    def add_lines(self, lines: Sequence[TableLine]) -> None:
        """Add the lines of a table that stands in the open cell."""
        self.rows[-1].lines.extend(lines)

    def lines(self) -> Iterator[TableLine]:
        """Yield the table's lines."""
        for caption in self.captions:
            yield TableLine(self.number, "title", [caption])
        rows = sorted(self.rows, key=lambda row: ("head", "body", "foot").index(row.place))
        grid = [(row, texts) for row, texts in zip(rows, _expand(rows), strict=True)]
        grid = [(row, texts) for row, texts in grid if row.lines or any(c.parts for c in row.cells)]
        grid = _drop_columns(grid)
        width = max((len(texts) for _, texts in grid), default=0)
        heads = _count_heads(grid)
        names = _join_names([texts for _, texts in grid[:heads]], width)
        for number, (row, texts) in enumerate(grid):
            if number < heads:
                shown = _without_repeats(row, texts, grid[number - 1][1] if number else [])
                is_last = number == heads - 1
                given = names if is_last and names != [t.rstrip(":") for t in shown] else ()
                yield TableLine(self.number, "head", shown, given)
            elif any(texts):
                yield self._body_line(row, texts, width, headed=heads > 0)
            yield from row.lines

    def _body_line(self, row: HtmlRow, texts: list[str], width: int, *, headed: bool) -> TableLine:
        filled = [text for text in texts if text]
        if len(filled) == 1 and width > 1 and len(row.cells) == 1 and row.cells[0].columns > 1:
            return TableLine(self.number, "title", filled)
        says_pair = [cell.is_head for cell in row.cells] == [True, False] or (
            len(row.cells) == 2 and texts[0].endswith(":")
        )
        if says_pair and len(filled) == 2 and not headed:
            return TableLine(self.number, "field", filled)
        return TableLine(self.number, "row", texts)


def is_layout(element: etree._Element) -> bool:
    """Return whether a table only places blocks: it says so, has a single column, has headings in
    cells, or has few rows with a cell of many lines."""
    if element.get("role") in ("presentation", "none"):
        return True
    rows = [*element.iterfind("tr"), *element.iterfind("*/tr")]
    cells = [[cell for cell in row if cell.tag in ("td", "th")] for row in rows]
    if max(map(len, cells), default=0) <= 1:
        return True
    if any(cell.tag == "th" for row in cells for cell in row):
        return False
    if any(next(cell.iter(*_HEADINGS), None) is not None for row in cells for cell in row):
        return True
    return len(rows) <= _FEW_ROWS and any(_has_many_lines(cell) for row in cells for cell in row)


def _has_many_lines(cell: etree._Element) -> bool:
    lines = len(list(islice(cell.iter("p", "br", "div", "li", "tr"), _MANY_LINES)))
    size = sum(len(text.strip()) for text in islice(cell.itertext(), _LONG_CELL))
    return lines == _MANY_LINES and size > _LONG_CELL


def write_lines(lines: Sequence[TableLine], builder: PageBuilder) -> None:
    """Add the lines of tables to a page."""
    numbers: dict[int, int] = {}
    for line in lines:
        if line.kind == "field":
            builder.add_field(line.cells[0].rstrip(":"), line.cells[1])
            continue
        if line.kind == "title":
            builder.add_paragraph(line.cells[0], "display")
            continue
        if line.table not in numbers:
            numbers[line.table] = builder.open_table()
        builder.add_row(numbers[line.table], line.cells, head=line.kind == "head", names=line.names)


def _read_span(element: etree._Element, name: str) -> int:
    value = (element.get(name) or "").strip()
    return max(1, min(int(value), _MOST_COLUMNS)) if value.isascii() and value.isdigit() else 1


def _expand(rows: Sequence[HtmlRow]) -> Iterator[list[str]]:
    """Yield the texts of each row's columns; a cell of several rows stands in each of them."""
    budget = _REPEATS * (100 + sum(len(row.cells) for row in rows))
    above: dict[int, tuple[int, str]] = {}
    for row in rows:
        texts: list[str] = []
        below: dict[int, tuple[int, str]] = {}
        cells = iter(row.cells)
        cell = next(cells, None)
        while (cell is not None or above) and len(texts) < _MOST_COLUMNS:
            column = len(texts)
            if cell is None or column in above:
                left, text = above.pop(column, (0, ""))
                texts.append(text)
                budget -= 1
                if left > 1 and budget > 0:
                    below[column] = (left - 1, text)
                continue
            text = cell.text
            wide = cell.columns if budget > 0 else 1
            shown = [text] + [text if _says_head(row) else ""] * (wide - 1)
            texts += shown
            budget -= wide - 1
            if cell.rows > 1 and budget > 0:
                for place, repeated in enumerate(shown, column):
                    is_short = len(repeated) <= _LONGEST_REPEATED
                    below[place] = (cell.rows - 1, repeated if is_short else "")
            cell = next(cells, None)
        above = below
        yield texts[:_MOST_COLUMNS]


def _drop_columns(grid: Sequence[tuple[HtmlRow, list[str]]]) -> list[tuple[HtmlRow, list[str]]]:
    """Return the rows without the columns that are empty in all of them."""
    filled = sorted({at for _, texts in grid for at, text in enumerate(texts) if text})
    return [(row, [texts[at] for at in filled if at < len(texts)]) for row, texts in grid]


def _count_heads(grid: Sequence[tuple[HtmlRow, list[str]]]) -> int:
    """Return how many rows at the beginning are heads."""
    heads = 0
    for row, texts in grid:
        if not _says_head(row) or not any(texts):
            break
        heads += 1
    if heads == len(grid):
        return 0 if heads and grid[0][0].place != "head" and len(grid) > 1 else min(heads, 1)
    if heads or any(cell.is_head for row, _ in grid for cell in row.cells):
        return heads
    row, texts = grid[0]
    is_plain = all(len(cell.parts) <= 1 for cell in row.cells) and not texts[0].endswith(":")
    return int(len(grid) > 1 and len(texts) > 1 and is_plain and is_head(texts))


def _says_head(row: HtmlRow) -> bool:
    return row.place == "head" or (len(row.cells) > 1 and all(c.is_head for c in row.cells))


def _join_names(heads: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the names of the columns: what the heads say from top to bottom."""
    names = []
    for column in range(width if heads else 0):
        parts: list[str] = []
        for texts in heads:
            text = texts[column] if column < len(texts) else ""
            if text and text not in parts:
                parts.append(text)
        names.append(" ".join(parts).rstrip(":"))
    return names


def _without_repeats(row: HtmlRow, texts: Sequence[str], above: Sequence[str]) -> list[str]:
    """Return the texts of a head's row, that of a cell of several columns or rows only once."""
    shown = list(texts)
    is_wide = any(cell.columns > 1 for cell in row.cells)
    for column in range(len(shown) - 1, -1, -1):
        is_repeated = is_wide and column > 0 and shown[column] == shown[column - 1]
        if is_repeated or shown[column : column + 1] == list(above[column : column + 1]):
            shown[column] = ""
    return shown
