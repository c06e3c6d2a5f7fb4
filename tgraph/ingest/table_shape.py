"""The shape of a table: which lines of a grid are titles, heads, rows and notes.

A grid is a list of lines of cells, as a CSV file or a sheet has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise, takewhile

from tgraph.ingest.table_columns import is_missing
from tgraph.ingest.table_values import read_date, read_number, read_unit
from tgraph.rendering import collapse_whitespace
from tgraph.resources import word_set

Line = Sequence[str]
"""The cells of a line of a grid."""

_MOST_HEADS = 4
_MOST_FIELDS = 12
_LEAST_BELOW_FIELDS = 4
"""The columns of a table that lines of two cells above its head don't belong to."""
_LONGEST_HEAD = 160
_ROWS_JUDGED = 200
_SENTENCE_ENDS = (".", "!", "?", "。")


class MergedLine(list[str]):
    """The cells of a line with merged cells: the text of a merged cell stands in the first column
    of the cell, and in ``spread`` in every column; ``is_covered`` tells whether a merged cell
    begins in a line above."""

    def __init__(self, cells: Line, spread: Line, *, is_covered: bool = False) -> None:
        super().__init__(cells)
        self.spread = spread
        self.is_covered = is_covered


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a grid: the lines above it, the lines of its head, the columns' names, its rows,
    and the lines below it."""

    titles: list[str] = field(default_factory=list)
    heads: list[Line] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    rows: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find_tables(grid: Sequence[Line]) -> list[Table]:
    """Return the tables of a grid in order; every cell with text is in one of them.

    Lines without text part a grid. What follows them is another table where it has a head of its
    own, else it goes on with the rows."""
    bands = [list(band) for filled, band in groupby(grid, _is_filled) if filled]
    if all(len(_cells(line)) < 2 for band in bands for line in band):
        return [_read_table([], [line for band in bands for line in band])] if bands else []
    tables: list[Table] = []
    waiting: list[str] = []
    joined = _join_heads_to_rows(bands)
    for band in chain.from_iterable(map(_split_fields, joined)):
        above, lines = _split_titles(band)
        if not lines:
            waiting += above
            continue
        before = tables[-1] if tables else None
        titles = [*waiting, *above]
        if before is not None and _continues_table(before, titles, lines):
            before.rows.extend([*([title] for title in titles), *lines])
            waiting = []
            continue
        if before is not None and waiting and _are_notes(waiting):
            before.notes.extend(waiting)
            waiting = []
        tables.append(_read_table([*waiting, *above], lines))
        waiting = []
    if waiting and tables:
        tables[-1].notes.extend(waiting)
    return [_split_notes(table) for table in tables]


def _split_fields(band: list[Line]) -> list[list[Line]]:
    """Return the fields above a table, each a name and a value ("Last updated", a date), and the
    table, where no empty line is between them."""
    count = 0
    for line in band[:_MOST_FIELDS]:
        filled = [column for column, cell in enumerate(line) if cell.strip()]
        if filled not in ([0], [0, 1]):
            break
        count += 1
    fields, lines = band[:count], band[count:]
    has_field = any(len(_cells(line)) == 2 for line in fields)
    if not has_field or len(lines) < 2 or len(_cells(lines[0])) < _LEAST_BELOW_FIELDS:
        return [band]
    return [fields, lines] if _has_typed_head(lines) else [band]


def _join_heads_to_rows(bands: Sequence[list[Line]]) -> Iterator[list[Line]]:
    """Yield the bands of a grid, a head that an empty line parts from its rows joined to them."""
    head: list[Line] = []
    for band in bands:
        _, lines = _split_titles(band)
        if head and not all(map(_may_be_head, lines)):
            yield [*head, *band]
            head = []
            continue
        if head:
            yield head
        is_head = 0 < len(lines) < _MOST_HEADS and all(map(_may_be_head, lines))
        head = band if is_head else []
        if not is_head:
            yield band
    if head:
        yield head


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return the columns' names, each another: ``Value 2`` for the second ``Value``; columns
    without a name stay so."""
    taken = set(names)
    counts: Counter[str] = Counter()
    distinct = []
    for name in names:
        counts[name] += 1
        at, another = counts[name], name
        while name and counts[name] > 1 and another in taken:
            another = f"{name} {at}"
            at += 1
        taken.add(another)
        distinct.append(another)
    return distinct


def join_heads(heads: Sequence[Line]) -> list[str]:
    """Return the columns' names of a head of several lines, a cell over several columns read as
    the head of each; where no cells are merged, a cell before empty ones is one."""
    width = max(map(len, heads))
    spread = [line.spread if isinstance(line, MergedLine) else line for line in heads]
    padded = [[*map(collapse_whitespace, line), *[""] * (width - len(line))] for line in spread]
    for head, (upper, lower) in zip(heads, pairwise(padded), strict=False):
        for column in range(1, 0 if isinstance(head, MergedLine) else width):
            if not upper[column] and lower[column] and upper[column - 1] and lower[column - 1]:
                upper[column] = upper[column - 1]
    if len(padded) > 1 and _are_units(padded[-1]):
        padded[-1] = [cell and f"({cell.strip('()[] ')})" for cell in padded[-1]]
    return [
        " ".join(dict.fromkeys(cell.rstrip(":") for cell in cells if cell))
        for cells in zip(*padded, strict=True)
    ]


def _are_units(line: Line) -> bool:
    return all(read_unit(cell.strip("()[] ")) for cell in _cells(line))


def _is_filled(line: Line) -> bool:
    return any(map(str.strip, line))


def _cells(line: Line) -> list[str]:
    return [cell for cell in line if cell.strip()]


def _split_titles(band: list[Line]) -> tuple[list[str], list[Line]]:
    """Return the texts above the table of a band, each alone in its line, and the other lines."""
    at = 0
    while at < len(band) and len(_cells(band[at])) == 1:
        at += 1
    if at and at < len(band) and band[0][0].strip() and not band[at][0].strip():
        at -= 1  # the corner of a head whose other cells stand in the next line
    return [collapse_whitespace(_cells(line)[0]) for line in band[:at]], band[at:]


def _read_table(titles: list[str], lines: list[Line]) -> Table:
    count = _count_heads(lines)
    heads, rows = lines[:count], lines[count:]
    width = max(map(len, lines))
    names = join_heads(heads) if heads else []
    names += [""] * (width - len(names))
    return Table(list(titles), heads, distinct_names(names), rows)


def _continues_table(table: Table, titles: Sequence[str], lines: list[Line]) -> bool:
    """Return whether lines below an empty line are rows of the table above it, where a title
    stands above them the rows of a section of it."""
    width = max(len(_trim(line)) for line in (table.rows or table.heads)[:_ROWS_JUDGED])
    if max(len(_trim(line)) for line in lines) > width or _first_typed_head(lines):
        return False
    return not titles or (len(titles) == 1 and _is_section(table, titles[0], lines))


def _is_section(table: Table, title: str, lines: list[Line]) -> bool:
    """Return whether lines without a head have values in the same columns as a table with one."""
    if not table.heads or is_note(title) or _count_heads(lines):
        return False
    columns = range(len(table.names))
    values, others = (
        {column for column in columns if _is_value_column(rows, column)}
        for rows in (table.rows, lines)
    )
    return bool(values) and values == others


def _trim(line: Line) -> Line:
    end = len(line)
    while end and not line[end - 1].strip():
        end -= 1
    return line[:end]


def _count_heads(lines: Sequence[Line]) -> int:
    """Return how many lines at the beginning are the head."""
    if len(lines) < 2 or not _may_be_head(lines[0]) or _is_row_of_periods(lines):
        return 0
    if merged := _count_merged_heads(lines):
        return merged
    count = _first_typed_head(lines)
    if not count:
        return int(_may_be_only_head(lines))
    while count < min(_MOST_HEADS, len(lines) - 1) and _continues_head(lines, count):
        count += 1
    return count


def _count_merged_heads(lines: Sequence[Line]) -> int:
    """Return how many lines a head has whose cells are merged down to its last line, which stands
    above values; 0 for another head."""
    words = list(takewhile(_may_be_head, lines[:-1]))
    covered = [at for at, x in enumerate(words) if isinstance(x, MergedLine) and x.is_covered]
    return covered[-1] + 1 if covered and _has_typed_head(lines[covered[-1] :]) else 0


def _first_typed_head(lines: Sequence[Line]) -> int:
    """Return the number (from 1) of the line whose words stand above values, where the lines above
    it are words for groups of columns; 0 for none."""
    for count in range(1, min(_MOST_HEADS, len(lines) - 1) + 1):
        line = lines[count - 1]
        above = (len(_cells(line)) for line in lines[: count - 1])
        if not _may_be_head(line) or any(filled >= len(_cells(line)) for filled in above):
            return 0
        if _has_typed_head(lines[count - 1 :]):
            return count
    return 0


def _may_be_head(line: Line) -> bool:
    cells = _cells(line)
    return bool(cells) and all(
        len(cell) <= _LONGEST_HEAD
        and (_is_period(cell) or not _is_value(cell))
        and not (cell.endswith(_SENTENCE_ENDS[:1]) and len(cell.split()) > 1)
        for cell in cells
    )


def _is_row_of_periods(lines: Sequence[Line]) -> bool:
    """Return whether a year or month of the first line stands above others, and so names no
    column."""
    below = lines[1:_ROWS_JUDGED]
    return any(
        _is_period(cell) and all(_is_period(_at(line, column)) for line in below)
        for column, cell in enumerate(lines[0])
    )


def _may_be_only_head(lines: Sequence[Line]) -> bool:
    """Return whether the first of lines that are all words names their columns."""
    names = [cell.strip() for cell in _trim(lines[0])]
    if len(set(names)) < len(names) or len(_cells(names)) < len(names) - 1:
        return False
    below = lines[1:_ROWS_JUDGED]
    return not any(
        name and any(column < len(line) and line[column].strip() == name for line in below)
        for column, name in enumerate(names)
    )


def _has_typed_head(lines: Sequence[Line]) -> bool:
    """Return whether words stand above columns of numbers, dates or missing values."""
    if not _may_be_head(lines[0]):
        return False
    return any(
        column < len(lines[0]) and lines[0][column].strip() and _is_value_column(lines[1:], column)
        for column in range(len(lines[0]))
    )


def _continues_head(lines: Sequence[Line], at: int) -> bool:
    """Return whether a line is part of the head above it: words or units over columns of values,
    below a line that leaves columns without a name or gives one name to several."""
    line = lines[at]
    if not _may_be_head(line):
        return False
    above = [cell.strip() for cell in lines[at - 1]]
    if _are_units(line):
        return True
    if any(
        _is_period(cell) and _at(above, column) and _is_period(_at(lines[at + 1], column))
        for column, cell in enumerate(line)
    ):
        return False  # the first of the years below a name for them
    open_columns = [c for c, cell in enumerate(line) if cell.strip() and not _at(above, c)]
    shared = any(count > 1 for count in Counter(filter(None, above)).values())
    if not open_columns and not shared:
        return False
    if open_columns and not line[0].strip() and _at(lines[at + 1], 0).strip():
        return True
    return any(
        cell.strip() and _is_value_column(lines[at + 1 :], column)
        for column, cell in enumerate(line)
    )


def _at(cells: Sequence[str], column: int) -> str:
    return cells[column] if column < len(cells) else ""


def _is_value_column(lines: Sequence[Line], column: int) -> bool:
    cells = [_at(line, column) for line in lines[:_ROWS_JUDGED]]
    present = [cell for cell in cells if not is_missing(cell)]
    return bool(present) and sum(map(_is_value, present)) > 0.6 * len(present)


def _is_value(cell: str) -> bool:
    return read_number(cell) is not None or read_date(cell) is not None


def _is_period(cell: str) -> bool:
    """Return whether a cell is a year or a month of a year, which may name a column."""
    text = cell.strip()
    if len(text) == 4 and text.isdigit():
        return text[:2] in ("18", "19", "20")
    moment = read_date(text)
    return moment is not None and not moment.second


def _are_notes(texts: Sequence[str]) -> bool:
    return all(map(is_note, texts))


def is_note(text: str) -> bool:
    """Return whether a line that stands alone below rows is a note: a sentence, or a text under a
    mark or a word for notes."""
    words = text.split()
    first = words[0].strip(":.").lower() if words else ""
    return (
        text.lstrip()[:1] in ("*", "†", "‡")
        or first in word_set("tables", "notes")
        or (len(words) > 3 and text.rstrip().endswith(_SENTENCE_ENDS))
    )


def _split_notes(table: Table) -> Table:
    """Move the lines at the end that are notes from the rows to the notes."""
    rows = table.rows
    if len(table.names) > 1:
        found = list(_notes_below(rows))
        for text in found:
            rows.pop()
            table.notes.insert(0, text)
    return table


def _notes_below(rows: Sequence[Line]) -> Iterator[str]:
    for line in reversed(rows):
        cells = _cells(line)
        if len(cells) != 1 or not is_note(cells[0]):
            return
        yield collapse_whitespace(cells[0])
