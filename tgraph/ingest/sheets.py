"""Sheets of workbooks as pages' blocks, for the readers of XLSX and ODS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.table_shape import find_tables
from tgraph.ingest.table_values import read_number
from tgraph.ingest.tables import add_table

HIDDEN = "It is hidden in the file."


@dataclass(slots=True)
class Sheet:
    """A sheet: its name, the texts of its cells by row and column (from 1), the first row and
    column of merged cells with their last row, what is hidden, comments by cell, and marks of what
    isn't cells."""

    name: str
    is_hidden: bool = False
    cells: dict[tuple[int, int], str] = field(default_factory=dict)
    merged: list[tuple[int, int, int]] = field(default_factory=list)
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
        losses.add(kind, "It is no text.", place=sheet.name, marked=True)
    for place, text in sheet.comments:
        builder.add_paragraph(f"Comment on {place}: {text}", "comment")
    rows = {row for row, _ in sheet.cells} & sheet.hidden_rows
    columns = {column for _, column in sheet.cells} & sheet.hidden_columns
    losses.add("hidden row", HIDDEN, place=sheet.name, count=len(rows))
    losses.add("hidden column", HIDDEN, place=sheet.name, count=len(columns))


def _split_grids(sheet: Sheet) -> list[list[list[str]]]:
    """Return the grids of a sheet: empty columns part tables that stand side by side."""
    cells = {place: text for place, text in sheet.cells.items() if sheet.is_shown(*place)}
    for row, column, last in sheet.merged:  # each row has the value of a cell that spans several
        for below in range(row + 1, last + 1):
            if (row, column) in cells and sheet.is_shown(below, column):
                cells.setdefault((below, column), cells[row, column])
    if not cells:
        return []
    shown = sorted({column for _, column in cells})
    rows = sorted({row for row, _ in cells})
    groups = _column_groups(shown, sheet.hidden_columns)
    if len(groups) > 1 and not all(_is_table(cells, group) for group in groups):
        groups = [shown]
    return [_grid(cells, rows, group) for group in groups]


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
    rows: Sequence[int],
    columns: Sequence[int],
) -> list[list[str]]:
    """Return lines of cells; a gap in the rows is an empty line."""
    grid: list[list[str]] = []
    before = rows[0]
    for row in rows:
        if row > before + 1:
            grid.append([])
        grid.append([cells.get((row, column), "") for column in columns])
        before = row
    return grid
