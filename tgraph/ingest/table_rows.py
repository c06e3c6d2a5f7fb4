"""How the rows of tables are read as data: which columns name a row's subject, what kind of things
the rows are, what each cell states, and which rows are sums or notes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Literal as Choice

from tgraph.ingest.reading_text import part_of_row
from tgraph.ingest.table_columns import (
    NUMBERS,
    Column,
    distinct_share,
    head_words,
    is_missing,
    read_columns,
)
from tgraph.ingest.table_shape import is_note
from tgraph.ingest.table_values import split_unit
from tgraph.model import CellValue, Segment, TableRow
from tgraph.resources import word_set

Role = Choice["data", "total", "note"]

LONGEST_CELL = 300
"""The characters of a cell that may be a value; a longer one is prose."""

_LONGEST_LABEL = 100
_MOSTLY = 0.9
_SOME = 0.5
_FEW = 0.2
"""The share of a table's rows that may state again what an identifier says to be one thing."""
_WORD = re.compile(r"\w+")
_EXACT = Decimal("0.005")
_OF_NAMES = frozenset(("name", "text", "category"))


def read_rows(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return the segments, each row of a table with what its cells state.

    A column's kind is decided over all rows of its table on the page."""
    tables: defaultdict[int, list[int]] = defaultdict(list)
    for place, segment in enumerate(segments):
        if segment.row is not None and segment.kind == "row":
            tables[segment.row.table].append(place)
    read = list(segments)
    for places in tables.values():
        rows = _TypedTable([segments[place] for place in places]).read()
        for place, row in zip(places, rows, strict=True):
            read[place] = replace(segments[place], row=row)
    return tuple(read)


def split_long_cells(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return the segments, each cell that is too long to be a value as prose that is led by the
    row's subject, the cells between as rows."""
    return tuple(part for segment in segments for part in _split_row(segment))


def _split_row(segment: Segment) -> Iterator[Segment]:
    spans = [value for _, value in segment.pairs]
    row = segment.row
    if row is None or all(end - start <= LONGEST_CELL for start, end in spans):
        yield segment
        return
    label = "; ".join(
        segment.text[slice(*spans[at])]
        for at in row.label
        if spans[at][1] - spans[at][0] <= LONGEST_CELL
    )
    row = replace(row, label=row.label if label else ())
    segment = replace(segment, row=row)
    for is_long, group in groupby(
        range(len(spans)), lambda at: spans[at][1] - spans[at][0] > LONGEST_CELL
    ):
        cells = list(group)
        if not is_long:
            yield part_of_row(segment, cells)
            continue
        for at in cells:
            lead = (*segment.lead, label) if label else segment.lead
            prose = segment.clip(*spans[at])
            yield replace(prose, kind="prose", pairs=(), row=None, lead=lead)


class _TypedTable:
    """The rows of a table, their cells by column."""

    def __init__(self, rows: Sequence[Segment]) -> None:
        self._places = [row.row for row in rows if row.row is not None]
        self._cells: list[dict[int, str]] = []
        self._heads: dict[int, str] = {}
        for row, place in zip(rows, self._places, strict=True):
            cells = {}
            for (key, value), cell in zip(row.pairs, place.cells, strict=True):
                cells[cell.column] = row.text[slice(*value)]
                self._heads.setdefault(cell.column, row.text[slice(*key)])
            self._cells.append(cells)
        self._columns = sorted(self._heads)

    def read(self) -> list[TableRow]:
        """Return how each row is read."""
        roles = [self._role_by_words(cells) for cells in self._cells]
        columns = self._read_columns(roles)
        roles = [
            "total" if role == "data" and self._is_sum(at, roles, columns) else role
            for at, role in enumerate(roles)
        ]
        if "total" in roles:
            columns = self._read_columns(roles)
        data = [at for at, role in enumerate(roles) if role == "data"]
        subject = _Subject(self._columns, columns, [self._cells[at] for at in data])
        return [self._read_row(at, role, columns, subject) for at, role in enumerate(roles)]

    def _read_columns(self, roles: Sequence[Role]) -> dict[int, Column]:
        """Return the columns as the rows of data show them, with the values of all rows."""
        texts = [
            [
                cells.get(column, "") if role == "data" else ""
                for cells, role in zip(self._cells, roles, strict=True)
            ]
            for column in self._columns
        ]
        heads = [self._heads[column] for column in self._columns]
        return dict(zip(self._columns, read_columns(heads, texts), strict=True))

    def _read_row(
        self, at: int, role: Role, columns: dict[int, Column], subject: _Subject
    ) -> TableRow:
        cells = self._cells[at]
        values = tuple(
            columns[column].values[at]._replace(column=column)
            if role == "data"
            else CellValue("text", column=column)
            for column in cells
        )
        return replace(
            self._places[at],
            role=role,
            label=subject.label(cells) if role == "data" else (),
            cells=values,
            subject=subject.kind,
            is_placed=role == "data" and subject.is_placed,
        )

    def _role_by_words(self, cells: dict[int, str]) -> Role:
        """Return a row's role as its words tell: a row of a single cell among rows of several is
        a note or a title of rows."""
        texts = list(cells.values())
        if len(texts) == 1 and len(self._columns) > 1:
            return "note" if len(self._columns) > 2 or is_note(texts[0]) else "data"
        return "total" if _total_words(texts[0]) == "sure" else "data"

    def _is_sum(self, at: int, roles: Sequence[Role], columns: dict[int, Column]) -> bool:
        """Return whether a row without a name, or whose name has a word for sums, has in each
        column of amounts the sum of the rows above."""
        cells = self._cells[at]
        first = cells.get(self._columns[0], "")
        if not is_missing(first) and not _total_words(first):
            return False
        if any(role == "data" for role in roles[at + 1 :]) and is_missing(first):
            return False
        sums = [
            _is_sum_of(columns[column].values[at], self._amounts_above(at, roles, columns[column]))
            for column in cells
            if columns[column].kind in NUMBERS and columns[column].values[at].value
        ]
        return bool(sums) and all(sums)

    @staticmethod
    def _amounts_above(at: int, roles: Sequence[Role], column: Column) -> list[Decimal]:
        return [
            Decimal(column.values[above].value)
            for above in range(at)
            if roles[above] == "data" and column.values[above].value
        ]


def _total_words(text: str) -> str:
    """Return "sure" for a text that is a word for sums, "maybe" for one that begins or ends with
    such a word; empty for any other text."""
    words = text.lower().replace(":", " ").replace("-", " ").split()
    totals = word_set("tables", "totals")
    while words and words[0] in word_set("tables", "total_leads") and len(words) > 1:
        words = words[1:]
    if not words or len(words) > 4:
        return ""
    if len(words) == 1:
        return "sure" if words[0] in totals else ""
    return "maybe" if words[0] in totals or words[-1] in totals else ""


def _is_sum_of(value: CellValue, amounts: Sequence[Decimal]) -> bool:
    if len(amounts) < 2:
        return False
    total = sum(amounts, Decimal(0))
    return abs(total - Decimal(value.value)) <= abs(total) * _EXACT


@dataclass(frozen=True, slots=True)
class _LabelCandidate:
    """A column that may name the rows."""

    column: int
    share: float
    filled: float
    is_named: bool


class _Subject:
    """What the rows of a table are about: the columns that name it, and its class."""

    def __init__(
        self, order: Sequence[int], columns: dict[int, Column], rows: Sequence[dict[int, str]]
    ) -> None:
        self._order = order
        self._columns = columns
        self._rows = rows
        self._identifier = self._find_identifier()
        self._names = self._find_names()
        companion = self._find_companion() if self._identifier < 0 else -1
        self._identifier = max(self._identifier, companion)
        self._ambiguous = self._find_ambiguous()
        self.kind = self._find_kind(companion)
        self.is_placed = companion >= 0 or not self._tells_names_apart()

    def _tells_names_apart(self) -> bool:
        """Return whether the names of the rows are unique, or at most a fifth repeats and a column
        of identifiers confirms that equal names are one thing."""
        names = [self._words_of_name(row) for row in self._rows]
        texts = list(filter(None, names))
        repeated = len(texts) - len(set(texts))
        return not repeated or (repeated <= _FEW * len(texts) and self._repeats_things(names))

    def _words_of_name(self, row: dict[int, str]) -> str:
        cells = list(row.values())
        name = " ".join(cells[at] for at in self.label(row))
        return " ".join(_WORD.findall(name.casefold())) or name

    def _repeats_things(self, names: Sequence[str]) -> bool:
        """Return whether a column of identifiers has one value for each name, and one name for each
        value."""
        for column in self._order:
            if column in self._names or not self._holds_identifiers(column):
                continue
            codes = [row.get(column, "").strip().lower() for row in self._rows]
            pairs = set(zip(names, codes, strict=True))
            if "" not in codes and len(pairs) == len(set(names)) == len(set(codes)):
                return True
        return False

    def _holds_identifiers(self, column: int) -> bool:
        words = head_words(self._columns[column].head)
        return bool(words) and words[-1] in word_set("tables", "identifiers")

    def label(self, cells: dict[int, str]) -> tuple[int, ...]:
        """Return which of a row's cells name its subject: those of the naming columns, and the
        identifier where another row has the same names."""
        columns = [column for column in self._names if not is_missing(cells.get(column, ""))]
        if self._identifier in cells and (
            not columns or _name_of(cells, self._names) in self._ambiguous
        ):
            columns = list(dict.fromkeys((*columns, self._identifier)))
        places = list(cells)
        return tuple(places.index(column) for column in columns)

    def _texts(self, column: int) -> list[str]:
        return [row[column] for row in self._rows if not is_missing(row.get(column, ""))]

    def _find_identifier(self) -> int:
        """Return the column that tells the rows apart by codes, one whose head names what it
        identifies before others; -1 for none."""
        codes = [
            column
            for column in self._order
            if self._columns[column].kind == "identifier"
            and not self._is_digits(column)
            and self._is_distinct(column)
        ]
        named = (column for column in codes if self._class_named_by(column))
        return next(named, codes[0] if codes else -1)

    def _is_distinct(self, column: int) -> bool:
        texts = self._texts(column)
        return 0 < len(texts) == len(self._rows) and distinct_share(texts) == 1.0

    def _class_named_by(self, column: int) -> str:
        return _class_of(head_words(split_unit(self._columns[column].head)[0]))

    def _is_digits(self, column: int) -> bool:
        words = head_words(self._columns[column].head)
        return not word_set("tables", "digits").isdisjoint(words)

    def _find_names(self) -> tuple[int, ...]:
        if pair := self._find_person():
            return pair
        candidates = [
            candidate
            for column in self._order
            if self._columns[column].kind in _OF_NAMES
            and (candidate := self._weigh(column)) is not None
        ]
        clear = [c for c in candidates if c.share >= _MOSTLY and c.filled >= _MOSTLY]
        if clear:
            return (max(clear, key=lambda c: (c.is_named, -c.column)).column,)
        named = [c for c in candidates if c.is_named and c.filled >= _SOME]
        if self._identifier >= 0:
            return (named[0].column,) if named else (self._identifier,)
        if not named and (moments := self._find_moments()):
            return moments
        if candidates:
            first = (named or candidates)[0]
            return (first.column,) if first.filled >= _SOME else ()
        return ()

    def _find_companion(self) -> int:
        """Return the column of moments that tells apart rows of the same name, where the names
        come from a column that doesn't say that it has names; -1 for none."""
        if len(self._names) != 1 or self._is_named(self._names[0]):
            return -1
        if distinct_share(self._texts(self._names[0])) >= _MOSTLY:
            return -1
        moments = (c for c in self._order if self._columns[c].kind in ("year", "date"))
        return next((c for c in moments if self._tells_apart((*self._names, c))), -1)

    def _tells_apart(self, columns: Sequence[int]) -> bool:
        return distinct_share(_name_of(row, columns) for row in self._rows) == 1.0

    def _is_named(self, column: int) -> bool:
        words = head_words(self._columns[column].head)
        return bool(words) and words[-1] in word_set("tables", "names")

    def _weigh(self, column: int) -> _LabelCandidate | None:
        texts = self._texts(column)
        if not texts or sum(map(len, texts)) > _LONGEST_LABEL * len(texts):
            return None
        with_letters = sum(any(map(str.isalpha, text)) for text in texts)
        if with_letters < _SOME * len(texts):
            return None
        is_named = self._is_named(column)
        return _LabelCandidate(
            column, distinct_share(texts), len(texts) / len(self._rows), is_named
        )

    def _find_person(self) -> tuple[int, ...]:
        """Return the columns of a first and a last name; empty where there are none."""
        for columns in pairwise(self._order):
            words = [head_words(self._columns[column].head) for column in columns]
            for one, other in (("given", "family"), ("family", "given")):
                if _heads_of(words[0], one) and _heads_of(words[1], other):
                    return columns if one == "given" else columns[::-1]
        return ()

    def _find_moments(self) -> tuple[int, ...]:
        """Return the first column whose codes, years or dates tell the rows apart."""
        moments = (
            column
            for column in self._order
            if self._columns[column].kind in ("identifier", "year", "date")
            and self._is_distinct(column)
        )
        return tuple(moments)[:1]

    def _find_ambiguous(self) -> set[str]:
        names: set[str] = set()
        several: set[str] = set()
        for row in self._rows:
            name = _name_of(row, self._names)
            (several if name in names else names).add(name)
        return several

    def _find_kind(self, companion: int) -> str:
        """Return the class of the rows as the heads name it: "ship" for ``Ship`` and for
        ``Ship name``, "customer" for ``Customer Id``."""
        is_person = len(self._names) == 2
        columns = [*(() if is_person else self._names), self._identifier]
        kinds = (self._class_named_by(c) for c in columns if c >= 0 and c != companion)
        return next(filter(None, kinds), "person" if is_person else "")


def _name_of(cells: dict[int, str], columns: Sequence[int]) -> str:
    return " ".join(cells.get(column, "") for column in columns).strip().lower()


def _heads_of(words: Sequence[str], kind: str) -> bool:
    """Return whether a head's words are those of a first ("given") or a last ("family") name."""
    named = [word for word in words if word not in word_set("tables", "names")] or list(words)
    return len(words) <= 2 and len(named) == 1 and named[0] in word_set("tables", kind)


def _class_of(words: Sequence[str]) -> str:
    general = word_set("tables", "names", "identifiers")
    kept = list(words)
    while kept and kept[-1] in general:
        kept.pop()
    is_class = 0 < len(kept) <= 2 and all(map(str.isalpha, kept)) and kept != ["column"]
    return " ".join(kept) if is_class else ""
