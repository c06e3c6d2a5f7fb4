"""Tables as blocks of a page, and as lines of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tgraph.ingest.blocks import PageBuilder
from tgraph.rendering import collapse_whitespace

if TYPE_CHECKING:
    from tgraph.ingest.table_shape import Table

_VALUE = re.compile(r"[\s\d.,:;%+/€$£¥()-]*$|(?i:true|false|yes|no|null|none|n/a)$")
_LONGEST_TITLE = 120
_SENTENCE_ENDS = (".", "!", "?", "。")


def add_table(builder: PageBuilder, table: Table) -> None:
    """Add a table's titles, head, rows and notes to a page."""
    for place, text in enumerate(table.titles):
        builder.add_paragraph(
            text, "prose" if place or text.endswith(_SENTENCE_ENDS) else "display"
        )
    if len(table.names) < 2:  # a list of texts
        for line in (*table.heads, *table.rows):
            builder.add_paragraph(line[0])
        return
    if _is_form(table):
        for line in table.rows:
            builder.add_field(*line)
        return
    number = builder.open_table()
    for line in table.heads[:-1]:
        builder.add_row(number, line, head=True)
    last = table.heads[-1] if table.heads else ()
    own = [collapse_whitespace(cell).rstrip(":") for cell in last]
    names = [name or f"Column {column}" for column, name in enumerate(table.names, 1)]
    builder.add_row(number, last, head=True, names=() if own == names else names)
    for line in table.rows:
        builder.add_row(number, line)
    for text in table.notes:
        builder.add_paragraph(text, "note")


def _is_form(table: Table) -> bool:
    """Return whether a table without a head is a form: a name and a value in each line."""
    names = [line[0] for line in table.rows if len(line) == 2 and all(map(str.strip, line))]
    is_whole = len(names) == len(table.rows) == len(set(names))
    return is_whole and not table.heads and is_head(names) and ":" not in "".join(names)[:-1]


def title_of_tables(tables: Sequence[Table]) -> str:
    """Return the title that stands above the first table; empty for none."""
    titles = tables[0].titles if tables else []
    return titles[0] if titles and len(titles[0]) <= _LONGEST_TITLE else ""


def count_letters(text: str) -> int:
    """Return how many letters and digits a text has: the unit of independent counts where marks
    between cells come and go."""
    return sum(map(str.isalnum, text))


def table_lines(rows: Sequence[Sequence[str]], headed: bool | None = None) -> list[str]:
    """Return table rows as lines.

    ``headed`` states whether the first row names the columns; None: judged by content. Empty
    cells are left out; a table with only a head gives its cells as a single line."""
    if not rows:
        return []
    names = [collapse_whitespace(cell) for cell in rows[0]]
    if not (is_head(names) if headed is None else headed):
        return [_row_line(row, []) for row in rows]
    if len(rows) == 1:
        return [" | ".join(filter(None, names))]
    return [_row_line(row, names) for row in rows[1:]]


def is_head(cells: Sequence[str]) -> bool:
    """Return whether a row can serve as column names: complete, short, distinct cells without
    data values."""
    names = [cell for cell in cells if cell]
    if not names or len(names) < len(cells) - 1 or len(set(names)) < len(names):
        return False
    return all(len(cell) <= 80 and not _VALUE.match(cell) for cell in names)


def _row_line(cells: Sequence[str], names: Sequence[str]) -> str:
    pairs = []
    for index, cell in enumerate(cells):
        value = collapse_whitespace(cell)
        column = names[index] if index < len(names) and names[index] else f"Column {index + 1}"
        if value:
            pairs.append(f"{column}: {value}")
    return "; ".join(pairs)
