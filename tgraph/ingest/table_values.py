"""Numbers, dates, units and truth values as cells of tables write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, time
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from tgraph.resources import load_tables, word_list, word_set

_LONGEST = 48
_DIGITS = re.compile(r"\d(?:[\d.,'’ \u00a0\u2009\u202f]*\d)?(?:[eE][+-]?\d{1,3})?")
_SPACES = re.compile(r"['’ \u00a0\u2009\u202f]")
_MARKS = re.compile(r"(?<![*†‡§\]])(?:[*†‡§]|\[\w{1,3}\])++$")
_GROUPS = re.compile(r"\d{1,3}(?:\D\d{2,3})*(?:\D\d{3})$")
_MINUS = "-−–"
_UNIT_IN_BRACKETS = re.compile(r"(.*[^\s(\[])\s*[(\[]([^()\[\]]{1,24})[)\]]$", re.DOTALL)
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?!\d)")
_DAY_MONTH = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th|\.)?[\s-]+([^\W\d_]{3,12})\.?,?[\s-]+(\d{4}|\d{2})$"
)
_MONTH_DAY = re.compile(r"([^\W\d_]{3,12})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})$")
_MONTH_YEAR = re.compile(r"([^\W\d_]{3,12})\.?[\s-]+(\d{4})$")
_YEAR_MONTH = re.compile(r"(\d{4})-(\d{2})$")
_CLOCK = re.compile(r"[T\s]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?\s*(Z|[+-]\d{2}:?\d{2})?$")


class WrittenNumber(NamedTuple):
    """A number of a cell before its separators are read: sign, digits with separators, unit."""

    is_negative: bool
    digits: str
    unit: str

    @property
    def decimal_mark(self) -> str:
        """Return the decimal mark that the digits alone show ("." or ","); empty for digits that
        are readable with either mark."""
        marks = [c for c in self.digits if c in ".,"]
        if not marks:
            return ""
        last = marks[-1]
        if len(set(marks)) == 2:
            return last
        if len(marks) > 1:
            return "." if last == "," else ","
        whole, fraction = re.split(r"[.,]", self.digits)
        grouped = len(fraction) == 3 and len(_SPACES.sub("", whole)) <= 3 and whole != "0"
        return "" if grouped else last

    def value(self, decimal_mark: str) -> str:
        """Return the number in canonical form, read with a decimal mark; empty for digits that
        are no number with this mark."""
        number, exponent_sign, exponent = self.digits.partition("e")
        if not exponent_sign:
            number, exponent_sign, exponent = self.digits.partition("E")
        whole, mark, fraction = number.partition(decimal_mark)
        if re.search(r"\D", fraction):
            return ""
        if re.search(r"\D", whole):
            if not _GROUPS.match(whole) or len(set(re.findall(r"\D", whole))) > 1:
                return ""
            whole = re.sub(r"\D", "", whole)
        text = ("-" if self.is_negative else "") + whole + (f".{fraction}" if mark else "")
        return format(Decimal(text + (f"E{exponent}" if exponent_sign else "")), "f")


def read_number(text: str) -> WrittenNumber | None:
    """Return the number that is all of a cell, with its unit; None for any other cell."""
    cell = _MARKS.sub("", text.strip())
    if len(cell) > _LONGEST or (found := _DIGITS.search(cell)) is None:
        return None
    before, after = cell[: found.start()].strip(), cell[found.end() :].strip()
    digits = found.group()
    is_negative = False
    if before.startswith("(") and after.endswith(")"):
        is_negative, before, after = True, before[1:].strip(), after[:-1].strip()
    if before[-1:] in (".", ",") and found.start() == len(cell[: found.start()].rstrip()):
        digits, before = f"0{before[-1]}{digits}", before[:-1].rstrip()
    for sign in (before[:1], before[-1:]):
        if sign and sign in f"{_MINUS}+":
            is_negative = is_negative or sign != "+"
            before = before.strip(f"{_MINUS}+ ")
    units = [read_unit(part) for part in (before, after) if part]
    if not all(units) or len(units) > 1 or (before and not is_currency(units[0])):
        return None
    return WrittenNumber(is_negative, digits, units[0] if units else "")


def commonest_mark(numbers: Iterable[WrittenNumber]) -> str:
    """Return the decimal mark that most numbers show; empty where none shows one."""
    marks = Counter(filter(None, (number.decimal_mark for number in numbers)))
    return min(marks, key=lambda mark: (-marks[mark], mark != "."), default="")


_LONGEST_SHORT_FORM = 4
_MOMENTS = frozenset(("year", "month", "week", "day"))
"""Words at the end of a head that name a time rather than a unit."""


# --- units ------------------------------------------------------------------------------------


@cache
def _units() -> dict[str, str]:
    tables = load_tables("tables")
    units: dict[str, str] = {}
    for group in ("units", "currencies"):
        for sign, words in tables[group].items():
            units.setdefault(sign, sign)
            for word in words.split():
                units.setdefault(word, sign)
    return units


@cache
def _scales() -> dict[str, str]:
    scales = load_tables("tables")["scales"]
    return {word: scale for scale, words in scales.items() for word in words.split()}


def is_currency(unit: str) -> bool:
    """Return whether a unit on record is money, as ``EUR`` and ``million EUR`` are."""
    return unit.split(" ")[-1].partition("/")[0] in load_tables("tables")["currencies"]


def read_unit(text: str) -> str:
    """Return the unit on record that a text writes, such as ``km²`` for "sq km" or ``million EUR``
    for "€ million"; empty for a text that is no known unit."""
    words = text.strip().strip(".").replace("sq ", "sq").split()
    while words and words[0].lower() in word_set("tables", "unit_leads"):
        words = words[1:]
    scales = [_scales()[word.lower()] for word in words if word.lower() in _scales()]
    units = [_single_unit(word) for word in words if word.lower() not in _scales()]
    if len(units) != 1 or len(scales) > 1 or not units[0]:
        return ""
    return " ".join((*scales, *units))


def _single_unit(word: str) -> str:
    units = _units()
    unit = units.get(word) or (units.get(word.lower(), "") if len(word) > 1 else "")
    if unit or "/" not in word.strip("/"):
        return unit
    above, _, below = word.partition("/")
    parts = _single_unit(above), _single_unit(below)
    return "/".join(parts) if all(parts) else ""


def split_unit(head: str) -> tuple[str, str]:
    """Return a column's name and the unit that its head writes: "Weight (kg)", "Length, m",
    "Price in EUR" and ``weight_kg``; the unit is empty where the head writes none."""
    head = head.strip()
    if match := _UNIT_IN_BRACKETS.match(head):
        unit = read_unit(match[2]) or _scale_alone(match[2])
        return (match[1].rstrip(), unit) if unit else (head, "")
    for gap in (",", " / "):
        name, _, unit_text = head.rpartition(gap)
        if name.strip() and (unit := read_unit(unit_text)):
            return name.rstrip(), unit
    words = re.split(r"[\s_]+", head)
    length, unit = _unit_at_end(words)
    if not unit:
        return head, ""
    name = _without_last(head, words[-length:])
    before = words[-length - 1].lower()
    is_moment = words[-1].lower() in _MOMENTS and before not in word_set("tables", "unit_leads")
    if before == "per" or is_moment:  # "deaths per week", "model_year"
        return head, ""
    if before in word_set("tables", "unit_leads") and len(words) > length + 1:
        return _without_last(name, [before]), unit
    is_sure = "_" in head or is_currency(unit) or unit == "%" or split_scale(unit)[0]
    return (name, unit) if is_sure else (head, "")


def _unit_at_end(words: Sequence[str]) -> tuple[int, str]:
    """Return how many words at the end of a head write its unit, which may have a scale or be a
    scale alone, and the unit; empty where none do."""
    scales = _scales()
    for length in (2, 1):
        tail = words[-length:]
        is_scaled = any(word.lower() in scales for word in tail)
        unit = read_unit(" ".join(tail)) if length == 1 or is_scaled else ""
        if unit and len(words) > length:
            return length, unit
    return 1, _scale_alone(words[-1]) if len(words) > 1 else ""


def _scale_alone(word: str) -> str:
    """Return the scale that a word writes out; empty for short forms, which may mean else."""
    return _scales().get(word.lower(), "") if len(word) > _LONGEST_SHORT_FORM else ""


def _without_last(head: str, words: Sequence[str]) -> str:
    for word in reversed(words):
        head = head[: -len(word)].rstrip(" _\t")
    return head


def split_scale(unit: str) -> tuple[str, str]:
    """Return the scale of a unit on record and the unit without it: ``million`` and ``EUR``."""
    scale, _, rest = unit.partition(" ")
    return (scale, rest) if scale in load_tables("tables")["scales"] else ("", unit)


# --- dates ------------------------------------------------------------------------------------


class WrittenDate(NamedTuple):
    """A date of a cell: year, and month and day (0: not stated), or two numbers of which one is
    the month and the other the day. ``clock`` is the time of the day in the form of XML Schema,
    ``is_short`` says that two digits write the year, so that the century is a guess."""

    year: int
    first: int
    second: int
    is_ordered: bool
    mark: str = ""
    clock: str = ""
    is_short: bool = False

    def value(self, day_first: bool) -> str:
        """Return the date in the form of XML Schema; empty for a day that no calendar has."""
        month, day = self.first, self.second
        if not self.is_ordered and day_first:
            month, day = day, month
        try:
            whole = date(self.year, month, day or 1).isoformat()
        except ValueError:
            return ""
        return f"{whole}{self.clock}" if day else whole[:7]


def read_date(text: str) -> WrittenDate | None:
    """Return the date that is all of a cell, with or without a time; None for any other cell."""
    cell = _without_weekday(text.strip())
    if len(cell) > _LONGEST or not any(map(str.isdigit, cell)):
        return None
    for pattern, is_ordered in ((_YEAR_FIRST, True), (_YEAR_LAST, False)):
        if match := pattern.match(cell):
            clock = _read_clock(cell[match.end() :])
            if clock is None:
                return None
            year, one, other = (1, 3, 4) if is_ordered else (4, 1, 3)
            numbers = _whole_year(match[year]), int(match[one]), int(match[other])
            is_short = len(match[year]) == 2
            return WrittenDate(*numbers, is_ordered, match[2], clock, is_short)
    if match := _YEAR_MONTH.match(cell):
        return WrittenDate(int(match[1]), int(match[2]), 0, True)
    if (match := _DAY_MONTH.match(cell)) and (month := _month_number(match[2])):
        is_short = len(match[3]) == 2
        return WrittenDate(_whole_year(match[3]), month, int(match[1]), True, is_short=is_short)
    if (match := _MONTH_DAY.match(cell)) and (month := _month_number(match[1])):
        return WrittenDate(int(match[3]), month, int(match[2]), True)
    if (match := _MONTH_YEAR.match(cell)) and (month := _month_number(match[1])):
        return WrittenDate(int(match[2]), month, 0, True)
    return None


def _without_weekday(cell: str) -> str:
    """Return a cell without the day of the week before a date: "Fri Aug 9 2019"."""
    word, _, rest = cell.partition(" ")
    is_weekday = word.strip("(),").lower() in word_set("tables", "weekdays")
    return rest.strip() if is_weekday else cell


def day_comes_first(dates: Iterable[WrittenDate]) -> bool | None:
    """Return whether the day stands before the month in the dates; None where the dates don't
    tell."""
    unordered = [d for d in dates if not d.is_ordered]
    day_first = any(d.first > 12 for d in unordered)
    month_first = any(d.second > 12 for d in unordered)
    if day_first != month_first:
        return day_first
    return True if unordered and all(d.mark == "." for d in unordered) else None


def _read_clock(text: str) -> str | None:
    """Return a time of the day in the form of XML Schema, empty for no text and for midnight
    without a zone; None for any other text."""
    if not text.strip():
        return ""
    if (match := _CLOCK.match(text)) is None:
        return None
    try:
        clock = time(int(match[1]), int(match[2]), int(match[3] or 0)).isoformat()
    except ValueError:
        return None
    zone = match[4] or ""
    if zone and zone != "Z" and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    return "" if clock == "00:00:00" and not zone else f"T{clock}{zone}"


def _whole_year(digits: str) -> int:
    """Return a year; of two digits, 69 to 99 are those of the 20th century, as in POSIX."""
    year = int(digits)
    return year if len(digits) > 2 else year + (1900 if year >= 69 else 2000)


@cache
def _months() -> tuple[tuple[int, str], ...]:
    months = load_tables("tables")["months"]
    return tuple((int(number), name) for number, names in months.items() for name in names.split())


def _month_number(name: str) -> int:
    """Return the number of a month by its name, or by three letters or more of it; 0 for none."""
    lowered = name.lower()
    return next((number for number, month in _months() if month.startswith(lowered)), 0)


# --- truth values -----------------------------------------------------------------------------


@cache
def truth_pairs() -> tuple[dict[str, str], ...]:
    """Return the words for yes and no, each with its value."""
    pairs = (pair.split("/") for pair in word_list("tables", "truths"))
    return tuple({yes: "true", no: "false"} for yes, no in pairs)
