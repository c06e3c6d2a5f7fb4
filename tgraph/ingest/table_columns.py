"""What the columns of a table hold: decided by the head and by all cells, never by one cell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache, cached_property

from tgraph.ingest.table_values import (
    WrittenDate,
    WrittenNumber,
    commonest_mark,
    day_comes_first,
    is_currency,
    read_date,
    read_number,
    split_unit,
    truth_pairs,
)
from tgraph.ingest.unit_conversion import unit_factor
from tgraph.model import CellValue, ColumnKind
from tgraph.resources import word_set

NUMBERS: frozenset[ColumnKind] = frozenset(("integer", "decimal", "money", "percent"))
"""The kinds of columns whose cells are amounts."""

_MOST = 0.9
"""The share of a column's cells that have to be of one form."""
_NAMES = 0.8
_LONGEST_MISSING = 12
_LONGEST_CATEGORY = 60
_LONGEST_NAME = 8
_FIRST_YEAR, _LAST_YEAR = 1400, 2100
_AMBIGUOUS_YEARS = range(30, 69)
"""Years of two digits that may be of the last century or of this one."""
_WORDS = re.compile(r"[^\W_]+|[#№]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CODE = re.compile(r"(?=\S*\d)[\w./:#-]{2,64}$")
_LINK = re.compile(r"(?:https?://|www\.)\S+$|[^\s@]+@[^\s@]+\.\w+$")


def head_words(head: str) -> list[str]:
    """Return the words of a column's head in lower case: ``["customer", "id"]`` for
    ``CustomerId``."""
    return [word.lower() for word in _WORDS.findall(_CAMEL.sub(" ", head))]


def is_missing(cell: str) -> bool:
    """Return whether a cell states that its value is missing."""
    text = cell.strip()
    is_symbol = len(text) == 2 and text.istitle()  # "Na" is sodium, "NA" and "na" say nothing
    is_word = len(text) < _LONGEST_MISSING and not is_symbol and text.lower() in _missing_words()
    return not text or is_word


@cache
def _missing_words() -> frozenset[str]:
    return word_set("tables", "missing")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its head, its kind, and what each cell states."""

    head: str
    kind: ColumnKind
    values: tuple[CellValue, ...]


def read_columns(heads: Sequence[str], columns: Sequence[Sequence[str]]) -> list[Column]:
    """Return the kind of each column and the values of its cells, empty where a column has none.

    The decimal mark, and the order of day and month, are those that the column shows, else those
    of the other columns, else a point and an unknown order. The century of years of two digits is
    that of a column of the same years."""
    readings = [_ColumnReading(head, cells) for head, cells in zip(heads, columns, strict=True)]
    mark = commonest_mark(n for reading in readings for n in reading.numbers if n) or "."
    day_first = day_comes_first(d for reading in readings for d in reading.dates if d)
    for reading in readings:
        reading.find_centuries(readings)
    return [reading.read(mark, day_first) for reading in readings]


class _ColumnReading:
    """A column whose kind is to be decided."""

    def __init__(self, head: str, cells: Sequence[str]) -> None:
        self.head = head
        self._cells = ["" if is_missing(cell) else cell.strip() for cell in cells]
        self._present = list(filter(None, self._cells))
        self._words = head_words(head)

    @cached_property
    def numbers(self) -> list[WrittenNumber | None]:
        return [read_number(cell) if cell else None for cell in self._cells]

    @cached_property
    def dates(self) -> list[WrittenDate | None]:
        return [read_date(cell) if cell else None for cell in self._cells]

    def find_centuries(self, columns: Sequence[_ColumnReading]) -> None:
        """Have years of two digits be those of a column that has the same years with four digits.

        Without such a column those from 30 to 68 have no date: they may be of either century."""
        places = [at for at, d in enumerate(self.dates) if d is not None and d.is_short]
        if not places:
            return
        years = next(filter(None, (c.years_like(self.dates) for c in columns)), None)
        guessed = {self.dates[at].year % 100 for at in places}  # type: ignore[union-attr]
        is_known = years is not None or not any(map(_AMBIGUOUS_YEARS.__contains__, guessed))
        for at in places:
            written = self.dates[at]
            assert written is not None
            year = years[at] if years else written.year
            self.dates[at] = written._replace(year=year or 0, is_short=not (is_known and year))

    def years_like(self, dates: Sequence[WrittenDate | None]) -> list[int] | None:
        """Return the years of four digits in the column, 0 where it has none; None for a column of
        else, or of other years than dates with years of two digits."""
        years = [int(c) if c.isdecimal() and len(c) == 4 else 0 for c in self._cells]
        pairs = [(y, d) for y, d in zip(years, dates, strict=True) if y and d and d.is_short]
        is_same = len(pairs) > 1 and all(y % 100 == d.year % 100 for y, d in pairs)
        return years if is_same else None

    def read(self, mark: str, day_first: bool | None) -> Column:
        values = (
            self._read_truths()
            or self._read_dates(day_first)
            or self._read_numbers(mark)
            or self._read_words()
        )
        return Column(self.head, next((v.kind for v in values if v.kind != "text"), "text"), values)

    def _is_most(self, count: int) -> bool:
        return 0 < count >= _MOST * len(self._present)

    def _read_truths(self) -> tuple[CellValue, ...]:
        words = {cell.lower() for cell in self._present}
        for pair in truth_pairs():
            if words and words <= pair.keys() and (len(words) == 2 or len(self._present) > 1):
                return tuple(
                    CellValue("boolean", "", pair.get(cell.lower(), "")) for cell in self._cells
                )
        return ()

    def _read_dates(self, day_first: bool | None) -> tuple[CellValue, ...]:
        dates = self.dates
        if not self._is_most(sum(d is not None for d in dates)):
            return ()
        order = day_comes_first(d for d in dates if d)
        order = day_first if order is None else order
        return tuple(_date_value(d, order) for d in dates)

    def _read_numbers(self, mark: str) -> tuple[CellValue, ...]:
        numbers = self.numbers
        if not self._is_most(sum(n is not None for n in numbers)):
            return ()
        mark = commonest_mark(n for n in numbers if n) or mark
        written = [n.value(n.decimal_mark or mark) if n else "" for n in numbers]
        if not self._is_most(sum(map(bool, written))):
            return ()
        _, unit = split_unit(self.head)
        units = [(n.unit if n else "") or unit for n in numbers]
        written, units = _convert_units(written, units)
        kind = self._kind_of_numbers(written, units)
        return tuple(
            CellValue(_kind_of_unit(kind, of), of, value)
            if value and kind != "identifier"
            else CellValue(kind if value else "text")
            for value, of in zip(written, units, strict=True)
        )

    def _kind_of_numbers(self, written: Sequence[str], units: Sequence[str]) -> ColumnKind:
        values = [value for value in written if value]
        if any("." in value for value in values) or any(units):
            return "decimal" if any("." in value for value in values) else "integer"
        digits = [cell for cell in self._present if cell.isdigit()]
        if len(digits) == len(self._present):
            padded = any(len(cell) > 1 and cell[0] == "0" for cell in digits)
            if padded or self._is_named("digits") or self._is_identifier(digits):
                return "identifier"
            named = self._is_named("years")
            if all(len(cell) == 4 for cell in digits) and (
                named or all(_FIRST_YEAR <= int(cell) <= _LAST_YEAR for cell in digits)
            ):
                return "year"
        if self._is_named("percents"):
            return "percent"
        return "integer"

    def _is_named(self, words: str) -> bool:
        return not word_set("tables", words).isdisjoint(self._words[:1] + self._words[-1:])

    def _is_identifier(self, digits: Sequence[str]) -> bool:
        """Return whether whole numbers tell the rows apart and count nothing."""
        if len(set(digits)) < len(digits):
            return False
        if not self._words:
            return [int(cell) for cell in digits] in (
                list(range(len(digits))),
                list(range(1, len(digits) + 1)),
            )
        return self._words[-1] in word_set("tables", "identifiers")

    def _read_words(self) -> tuple[CellValue, ...]:
        kind = self._kind_of_words()
        return tuple(CellValue(kind if cell else "text") for cell in self._cells)

    def _kind_of_words(self) -> ColumnKind:
        cells, distinct = self._present, set(self._present)
        if not cells or any(map(_LINK.match, cells)):
            return "text"
        is_distinct = len(distinct) == len(cells)
        names_codes = self._words[-1:] and self._words[-1] in word_set("tables", "identifiers")
        if names_codes and is_distinct and not any(" " in cell for cell in cells):
            return "identifier"
        with_digits = sum(any(map(str.isdigit, cell)) for cell in cells)
        if self._is_named("digits") and 2 * with_digits > len(cells):
            return "identifier"
        codes = sum(_CODE.match(cell) is not None for cell in cells)
        if is_distinct and len(cells) > 1 and self._is_most(codes):
            return "identifier"
        short = all(len(cell) <= _LONGEST_CATEGORY for cell in distinct)
        if len(cells) >= 4 and 2 * len(distinct) <= len(cells) and short:
            return "category"
        return "name" if sum(map(_is_name_like, cells)) >= _NAMES * len(cells) else "text"


def _convert_units(values: Sequence[str], units: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a column's amounts in its most frequent unit, where units of one measure are mixed;
    unchanged where one of them doesn't convert."""
    counts = Counter(unit for value, unit in zip(values, units, strict=True) if value)
    unit = max(counts, key=lambda unit: (counts[unit], unit), default="")
    factors = {other: unit_factor(other, unit) for other in counts}
    are_calendar = {of in _CALENDAR_UNITS for of in counts}
    if len(counts) < 2 or None in factors.values() or len(are_calendar) > 1:
        return list(values), list(units)
    converted = [
        _write_amount(Decimal(value) * (factors[of] or 1)) if value and of != unit else value
        for value, of in zip(values, units, strict=True)
    ]
    return converted, [unit if value else of for value, of in zip(values, units, strict=True)]


_CALENDAR_UNITS = frozenset(("month", "year"))
"""Units that are no fixed number of days."""
_ROUNDED = Context(prec=15)


def _write_amount(amount: Decimal) -> str:
    text = format(_ROUNDED.plus(amount), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _kind_of_unit(kind: ColumnKind, unit: str) -> ColumnKind:
    if kind in ("integer", "decimal") and unit:
        return "percent" if unit == "%" else "money" if is_currency(unit) else kind
    return kind


def _date_value(written: WrittenDate | None, day_first: bool | None) -> CellValue:
    """Return a date's value; its unit is the order of day and month that the column decides."""
    if written is None:
        return CellValue("text")
    if written.is_short:
        return CellValue("date")
    if written.is_ordered:
        return CellValue("date", "", written.value(True))
    if day_first is None:
        return CellValue("date")
    return CellValue("date", "DMY" if day_first else "MDY", written.value(day_first))


def _is_name_like(cell: str) -> bool:
    words = cell.split()
    begins = words[0][0].isupper() or (words[0][0].isalpha() and not words[0][0].islower())
    return begins and len(words) <= _LONGEST_NAME and cell[-1] not in ".!?;:,"


def distinct_share(cells: Iterable[str]) -> float:
    """Return how many of the cells are distinct, as a share of all cells."""
    listed = [cell.strip().lower() for cell in cells]
    return len(set(listed)) / len(listed) if listed else 0.0
