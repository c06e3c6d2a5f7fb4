"""Tables of documents as blocks."""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.ingest.blocks import PageBuilder
from tgraph.ingest.tables import is_head
from tgraph.rendering import collapse_whitespace


def add_table(
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
