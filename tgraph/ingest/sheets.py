"""Sheets of workbooks as pages' blocks, for the readers of XLSX and ODS."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.table_shape import MergedLine, find_tables
from tgraph.ingest.table_values import read_number
from tgraph.ingest.tables import add_table

HIDDEN = "it is hidden in the file"
_REPEATS = 20
"""How many cells a sheet may get from merged cells for each cell that it has."""


@dataclass(slots=True)
class Sheet:
    """A sheet: its name, the texts of its cells by row and column (from 1), the first row and
    column of merged cells with their last row and column, what is hidden, comments by cell, and
    marks of what isn't cells."""

    name: str
    is_hidden: bool = False
    cells: dict[tuple[int, int], str] = field(default_factory=dict)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    comments: list[tuple[str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    marks: list[tuple[str, str]] = field(default_factory=list)

    def is_shown(self, row: int, column: int) -> bool:
        """Return whether neither the sheet nor the cell's row or column is hidden."""
        return not (self.is_hidden or row in self.hidden_rows or column in self.hidden_columns)

    @property
    def hidden_cells(self) -> int:
        """Return how many cells with text aren't shown."""
        return sum(not self.is_shown(*place) for place in self.cells)


def add_sheet(builder: PageBuilder, sheet: Sheet, losses: LossList) -> None:
    """Add a sheet under its name: its tables, texts of shapes, marks and comments; what is hidden
    is counted."""
    if sheet.is_hidden:
        losses.add("hidden sheet", HIDDEN, place=sheet.name)
        return
    grids = _split_grids(sheet)
    if grids or sheet.texts or sheet.marks or sheet.comments:
        builder.add_heading(sheet.name, 1)
    for grid in grids:
        for table in find_tables(grid):
            add_table(builder, table)
    for text in sheet.texts:
        builder.add_paragraph(text)
    for kind, description in sheet.marks:
        builder.add_mark(kind, description)
        losses.add(kind, "it is no text", place=sheet.name, marked=True)
    for place, text in sheet.comments:
        builder.add_paragraph(f"Comment on {place}: {text}", "comment")
    rows = {row for row, _ in sheet.cells} & sheet.hidden_rows
    columns = {column for _, column in sheet.cells} & sheet.hidden_columns
    losses.add("hidden row", HIDDEN, place=sheet.name, count=len(rows))
    losses.add("hidden column", HIDDEN, place=sheet.name, count=len(columns))


def _split_grids(sheet: Sheet) -> list[list[list[str]]]:
    """Return the grids of a sheet: empty columns part tables that stand side by side."""
    cells = {place: text for place, text in sheet.cells.items() if sheet.is_shown(*place)}
    if not cells:
        return []
    shown = sorted({column for _, column in cells})
    rows = sorted({row for row, _ in cells})
    spread, parts = _spread_merged(sheet, cells, rows, shown)
    groups = _column_groups(shown, sheet.hidden_columns)
    if len(groups) > 1 and not all(_is_table(cells, group) for group in groups):
        groups = [shown]
    return [_grid(cells, spread, rows, group, parts) for group in groups]


def _spread_merged(
    sheet: Sheet, cells: dict[tuple[int, int], str], rows: list[int], columns: list[int]
) -> tuple[dict[tuple[int, int], str], dict[int, bool]]:
    """Give each row the value of a cell over several rows. Return the values of cells over several
    columns in the columns behind their first, and of the rows that have a part of a merged cell
    whether one of these begins above."""
    spread: dict[tuple[int, int], str] = {}
    parts: dict[int, bool] = {}
    budget = _REPEATS * (100 + len(cells))
    for row, column, last_row, last_column in sheet.merged:
        text = cells.get((row, column))
        if text is None:
            continue
        below = rows[bisect_left(rows, row) : bisect_right(rows, last_row)]
        beside = columns[bisect_left(columns, column) : bisect_right(columns, last_column)]
        for place in islice(product(below, beside), budget):
            budget -= 1
            parts[place[0]] = parts.get(place[0], False) or place[0] > row
            if place[1] == column:
                cells.setdefault(place, text)
            else:
                spread[place] = text
    return spread, parts


def _column_groups(columns: Sequence[int], hidden: set[int]) -> list[list[int]]:
    groups: list[list[int]] = [[]]
    for column in columns:
        before = groups[-1][-1] if groups[-1] else column - 1
        if column - before - 1 > sum(before < place < column for place in hidden):
            groups.append([])
        groups[-1].append(column)
    return groups


def _is_table(cells: Mapping[tuple[int, int], str], columns: Sequence[int]) -> bool:
    """Return whether columns can stand alone: several rows whose first cells are words."""
    first = [text for (_, column), text in cells.items() if column == columns[0]]
    numbers = sum(read_number(text) is not None for text in first)
    return len(columns) > 1 and len(first) > 1 and 2 * numbers < len(first)


def _grid(
    cells: Mapping[tuple[int, int], str],
    spread: Mapping[tuple[int, int], str],
    rows: Sequence[int],
    columns: Sequence[int],
    parts: Mapping[int, bool],
) -> list[list[str]]:
    """Return lines of cells; a gap in the rows is an empty line. ``spread`` has the texts of merged
    cells in the columns behind their first, ``parts`` the rows that have parts of merged cells."""
    grid: list[list[str]] = []
    before = rows[0]
    for row in rows:
        if row > before + 1:
            grid.append([])
        line = [cells.get((row, column), "") for column in columns]
        behind = [spread.get((row, column), "") for column in columns]
        filled = [cell or text for cell, text in zip(line, behind, strict=True)]
        is_merged = row in parts
        grid.append(MergedLine(line, filled, is_covered=parts[row]) if is_merged else line)
        before = row
    return grid
