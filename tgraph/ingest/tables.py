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


def is_head(cells: Sequence[str]) -> bool:
    """Return whether a row can serve as column names: complete, short, distinct cells without
    data values."""
    names = [cell for cell in cells if cell]
    if not names or len(names) < len(cells) - 1 or len(set(names)) < len(names):
        return False
    return all(len(cell) <= 80 and not _VALUE.match(cell) for cell in names)


def add_grid(
    builder: PageBuilder,
    rows: Sequence[Sequence[str]],
    head_rows: int | None = None,
    caption: str = "",
) -> None:
    """Add a table's rows below its caption; ``head_rows`` (None: judged by content) name the
    columns."""
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    if caption:
        builder.add_paragraph(caption, "display")
    if head_rows is None:
        head_rows = int(len(filled) > 1 and is_head(list(map(collapse_whitespace, filled[0]))))
    table = builder.open_table()
    for number, row in enumerate(filled):
        is_last_head = 1 < head_rows == number + 1
        names = join_heads(filled[:head_rows]) if is_last_head else ()
        builder.add_row(table, row, head=number < head_rows, names=names)


def join_heads(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of columns that have several rows of heads: their distinct texts, joined."""
    width = max(map(len, rows))
    columns = ([row[k] for row in rows if k < len(row)] for k in range(width))
    return [" ".join(dict.fromkeys(filter(None, map(collapse_whitespace, c)))) for c in columns]
