"""Tables as readable text: each row is a line that can be understood without the table's head."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

from tgraph.errors import IngestError
from tgraph.ingest.base import Content, Limits, one_line
from tgraph.ingest.text import decode
from tgraph.model import Page

_DELIMITERS = ",;\t|"
_SAMPLE = 65536
_LONGEST_CELL = 10_000_000
_VALUE = re.compile(r"[\s\d.,:;%+/€$£¥()-]*$|(?i:true|false|yes|no|null|none|n/a)$")


def read_csv(data: bytes, name: str, limits: Limits) -> Content:
    """Comma, semicolon, tab or bar separated values: a line ``Column: value; ...`` for each row."""
    text = decode(data, name, limits)
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=False)
    try:
        rows = [row for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        message = f"Line {reader.line_num} of the table can't be read: {error}."
        raise IngestError(name, message, "Check its quotation marks.") from None
    return Content((Page(None, "\n".join(table_lines(rows))),))


def table_lines(rows: Sequence[Sequence[str]], headed: bool | None = None) -> list[str]:
    """The rows as lines. ``headed``: whether the first row names the columns; None: judge by it.

    Empty cells are left out; a table of a head alone gives its cells as one line.
    """
    if not rows:
        return []
    names = [one_line(cell) for cell in rows[0]]
    if headed is None:
        headed = is_head(names)
    if not headed:
        return [_line(row, []) for row in rows]
    if len(rows) == 1:
        return [" | ".join(filter(None, names))]
    return [_line(row, names) for row in rows[1:]]


def is_head(cells: Sequence[str]) -> bool:
    """Whether a first row can be the columns' names: all there, short, different and no values."""
    named = [cell for cell in cells if cell]
    if not named or len(named) < len(cells) - 1 or len(set(named)) < len(named):
        return False
    return all(len(cell) <= 80 and not _VALUE.match(cell) for cell in named)


def _line(cells: Sequence[str], names: Sequence[str]) -> str:
    pairs = []
    for index, cell in enumerate(cells):
        value = one_line(cell)
        column = names[index] if index < len(names) and names[index] else f"Column {index + 1}"
        if value:
            pairs.append(f"{column}: {value}")
    return "; ".join(pairs)


def _delimiter(text: str) -> str:
    """The delimiter under which the first rows agree best on having several columns."""
    sample = text[:_SAMPLE]
    if len(text) > _SAMPLE and "\n" in sample:
        sample = sample[: sample.rindex("\n")]
    return max(_DELIMITERS, key=lambda delimiter: _fit(sample, delimiter))


def _fit(sample: str, delimiter: str) -> tuple[float, int]:
    try:
        rows = list(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter))
    except csv.Error:
        return 0.0, 0
    widths = Counter(len(row) for row in rows if row)
    if not widths:
        return 0.0, 0
    width, agreeing = widths.most_common(1)[0]
    return (agreeing / widths.total() if width > 1 else 0.0), width
