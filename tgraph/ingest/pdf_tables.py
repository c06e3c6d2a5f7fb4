"""Tables of a PDF as rows of cells under names of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from tgraph.ingest.blocks import PageBuilder
from tgraph.ingest.pdf_blocks import join_lines
from tgraph.ingest.pdf_layout import Line, TableGrid

_FIGURE = re.compile(r"\d")
_VALUE = re.compile(r"\W{0,3}\d[\d\s.,:/%-]*(?:[^\W\d_]{0,4}\W?)?$")

_ENTRY = re.compile(r"(?<![.·…])(?<![.·…] )(?:(?:[.·] ?){4,}+|(?:… ?){2,}+)([\divxlc]{1,6})$")
"""The end of an entry of a table of contents."""


_LEAST_NOTE_WORDS = 6


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table at the end of a page: its head and where its columns stand."""

    head: tuple[str, ...]
    edges: tuple[float, ...]

    def goes_on(self, grid: TableGrid) -> bool:
        """Return whether a table on the next page has the same columns."""
        return len(grid.edges) == len(self.edges) and all(
            abs(a - b) < 8 for a, b in zip(grid.edges, self.edges, strict=True)
        )

    def holds_rest(self, lines: Sequence[Line]) -> bool:
        """Return whether lines above a table on the next page are the rest of a cell: they stand in
        a column behind the first."""
        return bool(self.edges) and all(line.left > self.edges[0] for line in lines)


def add_table(
    builder: PageBuilder, grid: TableGrid, words: Set[str], before: OpenTable | None
) -> tuple[OpenTable, int]:
    """Add a table's rows, and return it as it may go on, with the number of hyphens joined.

    ``before`` is the table of the page before that this one goes on from."""
    joined = 0
    rows: list[list[str]] = []
    for lines in grid.rows:
        cells = [join_lines(cell, words) if cell else ("", 0) for cell in lines]
        joined += sum(count for _, count in cells)
        rows.append([" ".join(text.split()) for text, _ in cells])
    if _are_fields(rows):
        for row in rows:
            _add_field(builder, row)
        return OpenTable((), grid.edges), joined
    if _are_contents(rows):
        for row in rows:
            builder.add_paragraph(" ".join(filter(None, row)))
        return OpenTable((), grid.edges), joined
    if _are_numbered_notes(rows):
        for label, text in rows:
            builder.add_note(label, text)
        return OpenTable((), grid.edges), joined + sum(len(label) for label, _ in rows)
    table = builder.open_table()
    has_head = _has_head(grid, rows)
    head = tuple(rows[0]) if has_head else ()
    if before is not None and before.head and head != before.head and before.goes_on(grid):
        builder.add_row(table, [""] * len(before.head), head=True, names=before.head)
        head, has_head = before.head, False
    for number, row in enumerate(rows):
        builder.add_row(table, row, head=has_head and number == 0)
    return OpenTable(head, grid.edges), joined


def _are_fields(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are names with a colon and their values."""
    return len(rows[0]) == 2 and all(row[0].endswith((":", "：")) for row in rows if row[0])


def _are_numbered_notes(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are sentences behind rising numbers, as footnotes are set."""
    if any(len(row) != 2 or not row[0].isdecimal() for row in rows):
        return False
    numbers = [int(row[0]) for row in rows]
    return all(b == a + 1 for a, b in pairwise(numbers)) and all(
        len(row[1].split()) >= _LEAST_NOTE_WORDS for row in rows
    )


def _are_contents(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are a table of contents: most end in dots and a page, which only rise."""
    entries = [_ENTRY.search(" ".join(filter(None, row))) for row in rows]
    pages = [int(entry[1]) for entry in entries if entry and entry[1].isdecimal()]
    is_most = sum(map(bool, entries)) > 0.6 * len(rows)
    return is_most and all(before <= page for before, page in pairwise(pages))


def _add_field(builder: PageBuilder, row: Sequence[str]) -> None:
    name, value = row
    if name and value:
        builder.add_field(name.rstrip(":： "), value)
    else:
        builder.add_paragraph(name or value)


def _has_head(grid: TableGrid, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row names the columns of those below."""
    first, below = rows[0], rows[1:]
    named = [k for k, cell in enumerate(first) if cell]
    if not below or len(named) < 2 or any(_VALUE.match(first[k]) for k in named[1:]):
        return False
    if any(cell.endswith((":", "：")) for cell in first) or max(map(len, first)) > 60:
        return False
    bold = [all(line.bold for cell in row for line in cell) for row in grid.rows]
    if bold[0] and not all(bold[1:]):
        return True
    has_values = any(
        sum(bool(_VALUE.match(row[k])) for row in below) > 0.5 * len(below) for k in named
    )
    is_full = len(named) >= len(first) - (not first[0])
    return is_full and (has_values or len(rows) > 2)
