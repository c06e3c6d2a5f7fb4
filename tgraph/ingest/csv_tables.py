"""CSV, TSV and their like: values parted by a delimiter, a record a line."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits
from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.table_shape import find_tables
from tgraph.ingest.tables import add_table, count_letters, title_of_tables
from tgraph.ingest.text import decode_text
from tgraph.model import UnitCount

_DELIMITERS = "\t;|,"
"""Delimiters, the likelier ones first: a comma also stands in numbers and in prose."""
_NO_DELIMITER = "\x1f"
_SAMPLE_LINES = 500
_LEAST_FIT = 0.4
"""The share of the lines that have the commonest number of cells; the others are titles, notes and
lines with too few or too many cells."""
_LONGEST_CELL = 10_000_000
_DECLARATION = re.compile(r"\ufeff?\"?sep=(.)\"?[^\S\n]*\r?(?:\n|$)", re.IGNORECASE)
_MOST_DAMAGED = 1_000
_NAMED = 5


def read_csv(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read comma, semicolon, tab or bar separated values.

    A quotation mark that doesn't end before another one opens is part of its cell, and the line is
    counted. Raise ``IngestError`` for a file without values."""
    text = decode_text(data, name, limits)
    declaration = _DECLARATION.match(text)
    body = text[declaration.end() :] if declaration else text
    lines = list(io.StringIO(body, newline=""))
    delimiter = declaration[1] if declaration else detect_delimiter(lines)
    losses = LossList()
    damaged: list[int] = []
    grid = list(_read_records(lines, delimiter, damaged))
    if damaged:
        _warn_of_lines(losses, [line + bool(declaration) for line in damaged])
    tables = find_tables(grid)
    if not tables:
        raise IngestError(name, "The table holds no values.")
    builder = PageBuilder()
    for table in tables:
        add_table(builder, table)
    page = builder.page()
    units = UnitCount("letters and digits", count_letters(body), count_letters(page.text))
    report = losses.report("csv", [units])
    return FileContent((page,), title_of_tables(tables), report=report)


def detect_delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that gives most lines the same number of cells, more than one; a
    character that no text has where each line is a cell."""
    sample = lines[:_SAMPLE_LINES]
    fits = {delimiter: _delimiter_fit(sample, delimiter) for delimiter in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda delimiter: fits[delimiter])
    return best if fits[best] >= _LEAST_FIT else _NO_DELIMITER


def _delimiter_fit(lines: Sequence[str], delimiter: str) -> float:
    damaged: list[int] = []
    records = list(_read_records(lines, delimiter, damaged))
    widths = Counter(len(record) for record in records if any(map(str.strip, record)))
    several = max((count for width, count in widths.items() if width > 1), default=0)
    return (several - len(damaged)) / widths.total() if several else 0.0


def _read_records(lines: Sequence[str], delimiter: str, damaged: list[int]) -> Iterator[list[str]]:
    """Yield the records of the lines; a line whose quotation marks don't match is read alone, and
    its number (from 0) added to ``damaged``."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    start = 0
    while start < len(lines) and len(damaged) < _MOST_DAMAGED:
        reader = csv.reader(
            iter(lines[start:]), delimiter=delimiter, skipinitialspace=True, strict=True
        )
        begin = start
        try:
            for record in reader:
                yield record
                begin = start + reader.line_num
            return
        except csv.Error:
            escaped = _read_escaped(lines[begin], delimiter)
            yield escaped or _read_damaged(lines[begin], delimiter)
            damaged += [] if escaped else [begin]
            start = begin + 1
    yield from (_read_damaged(line, delimiter) for line in lines[start:])


def _read_escaped(line: str, delimiter: str) -> list[str]:
    """Return the record of a line that writes quotation marks with a backslash; empty for another
    line."""
    if '\\"' not in line:
        return []
    try:
        return next(
            csv.reader(
                [line], delimiter=delimiter, skipinitialspace=True, strict=True, escapechar="\\"
            )
        )
    except csv.Error:
        return []


def _read_damaged(line: str, delimiter: str) -> list[str]:
    is_odd = line.count('"') % 2
    try:
        return next(
            csv.reader(
                [line],
                delimiter=delimiter,
                skipinitialspace=True,
                quoting=csv.QUOTE_NONE if is_odd else csv.QUOTE_MINIMAL,
            )
        )
    except (csv.Error, StopIteration):
        return [line]


def _warn_of_lines(losses: LossList, damaged: Sequence[int]) -> None:
    places = ", ".join(str(line + 1) for line in damaged[:_NAMED])
    more = f" and {len(damaged) - _NAMED} more" if len(damaged) > _NAMED else ""
    losses.warn(f"Quotation marks don't match in line {places}{more}; they are read as text.")
