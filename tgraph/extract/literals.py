"""Dates, years, amounts and numbers of an English text as typed RDF literals.

Datatypes are those of XML Schema 1.1 part 2. What has no exact datatype (a decade, a span of years,
an amount with its unit) stays a plain string as the text puts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from pyoxigraph import Literal

from tgraph.extract.numerals import (
    AFTER_NUMBER,
    AMOUNT,
    BEFORE_NUMBER,
    CURRENCY,
    Numeral,
    find_numerals,
)
from tgraph.vocabulary import xsd

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_NAMES = "|".join(MONTHS) + r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
_NUMBER_OF_DAY = r"[0-3]?\d(?:st|nd|rd|th)?"
_MONTH = rf"(?P<month>{_NAMES})"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>1\d{3}|20\d{2})"

_SPELLED = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty"
    r"|fifty|sixty|seventy|eighty|ninety|(?:a|one|two|three) hundred)"
)
_SPAN = (
    r"years|months|weeks|days|hours|minutes|miles|kilometres|kilometers|metres|meters|feet|acres"
)
_SCALE = r"(?:\s(?:thousand|million|billion|trillion))"
_UNIT = (
    r"(?:square |cubic |nautical |imperial |metric )?(?:km[²2]?|m²?"
    r"|cm|mm|kg|g|mi|ft|(?:cu )?in(?=[),;.])|lb|oz|FM|AM|MW|GW|kW|kWh|GWh"
    r"|TWh|TJ|Hz|kHz|MHz|GHz|GB|MB|TB|hp|acres?|hectares?|metres?|meters?|kilometres?|kilometers?"
    r"|centimetres?|miles?|feet|foot|inch(?:es)?|yards?|tons?|tonnes?|pounds?|kilograms?|kilotons?|grams?"
    r"|litres?|liters?|gallons?|barrels|megawatts?|gigawatts?|kilowatts?|degrees|knots|minutes?|hours?"
    r"|days?|weeks?|months?|years?|seconds?"
    r"|°\s?[CF]?|dollars|euros|sq mi|sq ft|mph|cc)"
    r"(?:\^[−-]?\d|[23²³](?!\w)|⁻[¹²³])?(?:[/·][A-Za-zµμ]{1,5}(?:\^\d|[23²³])?)?"
    r"(?![\w^·⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]|[./]\w)"
)
_PERCENT = r"\s?(?:%|per ?cent\b)"
_MONEY_SCALE = r"(?:\s?(?:thousand|million|billion|trillion|bn|m)\b)"
_MEASURE = re.compile(rf"{_SCALE}?[ -]?{_UNIT}|{_PERCENT}|{_SCALE}\b")
_MONEY = re.compile(CURRENCY)
_MONEY_MEASURE = re.compile(_MONEY_SCALE)

_PATTERNS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("date", rf"\b{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}\b"),
        ("date", rf"\b{_MONTH}\s+{_DAY}(?:\s*,)?\s+{_YEAR}\b"),
        ("date", r"\b(?P<year>\d{4})-(?P<month>[01]\d)-(?P<day>[0-3]\d)\b"),
        ("month", rf"\b{_MONTH}(?:\s+of)?,?\s+{_YEAR}\b"),
        (
            "text",
            rf"\b(?:{_NUMBER_OF_DAY}\s+(?:of\s+)?(?:{_NAMES})|(?:{_NAMES})\s+{_NUMBER_OF_DAY})(?!\w)",
        ),
        ("text", rf"(?<=[Ii]n )(?:{_NAMES})\b"),
        ("text", r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b"),
        ("text", r"\b(?:January|February|April|June|July|September|October|November|December)\b"),
        ("text", r"\b\d{1,2}(?:st|nd|rd|th)[ -]century\b"),
        ("text", r"\b(?:[Ee]arly |[Mm]id-|[Ll]ate )?(?:1\d|20)\d0'?s\b"),
        ("text", r"\b(?:1\d{3}|20\d{2})\s?[–—/-]\s?(?:1\d{3}|20\d{2}|\d{2}|present)\b"),
        ("numeral", ""),
        (
            "text",
            rf"(?<![−-]){CURRENCY}{AMOUNT}(?![\d.,]*\d){AFTER_NUMBER}{_MONEY_SCALE}?",
        ),
        ("text", rf"{BEFORE_NUMBER}{AMOUNT}{_PERCENT}"),
        ("text", rf"{BEFORE_NUMBER}{AMOUNT}{_SCALE}?[ -]?{_UNIT}"),
        ("text", rf"(?i:\b{_SPELLED})[ -](?:{_SPAN})\b(?!-)"),
        ("text", rf"{BEFORE_NUMBER}{AMOUNT}{_SCALE}\b"),
        ("number", rf"{BEFORE_NUMBER}{AMOUNT}(?![\w%–-]|[.,]\d){AFTER_NUMBER}"),
    )
)
_TEMPORAL = re.compile(
    r"(?:\b(?:in|since|by|from|until|till|of|during|circa|c\.|around|about|after|before|early|late"
    r"|mid|to|and|born|died|founded|established|est\.|summer|winter|spring|autumn|year|season|through|between|for)|[(,;])\s*$",
    re.IGNORECASE,
)
_TIME = re.compile(
    rf".*\b\d+0'?s|\d+\w\w[ -]century|\d{{4}}\s?[–—/-].*|.*\b(?:{_NAMES})(?:\s.*)?|\w+days?"
)
_BEFORE_MODIFIER = re.compile(r"\b(?:a|an|the|his|her|its|their|this|was|is)\s+$", re.IGNORECASE)
_NEXT_WORD = re.compile(r"\s+(\w+)")
_YEAR_ONLY = re.compile(r"1[0-9]\d\d|20\d\d")


@dataclass(frozen=True, slots=True)
class FoundLiteral:
    """A literal with its text position; ``is_time`` marks dates and year ranges."""

    start: int
    end: int
    value: Literal
    is_time: bool


def find_literals(text: str) -> list[FoundLiteral]:
    """Return non-overlapping literals of a text in order."""
    occupied = bytearray(len(text))
    literals: list[FoundLiteral] = []
    for kind, pattern in _PATTERNS:
        if kind == "numeral":
            literals += _read_numerals(text, occupied)
            continue
        for match in pattern.finditer(text):
            if any(occupied[match.start() : match.end()]):
                continue
            value = _read_value(kind, match, text)
            if value is not None:
                occupied[match.start() : match.end()] = b"\1" * (match.end() - match.start())
                literals.append(FoundLiteral(match.start(), match.end(), *value))
    return sorted(literals, key=lambda literal: literal.start)


def _read_numerals(text: str, occupied: bytearray) -> Iterator[FoundLiteral]:
    """Yield the numbers that are more than digits, with their units, and mark what they occupy; one
    that isn't understood occupies its place without a literal."""
    for numeral in find_numerals(text):
        start, end = numeral.start, numeral.end
        money = _MONEY.search(text, start, end)
        measure = (_MONEY_MEASURE if money else _MEASURE).match(text, end)
        if (not measure and not money and numeral.needs_unit) or any(occupied[start:end]):
            continue
        end = measure.end() if measure else end
        occupied[start:end] = b"\1" * (end - start)
        if measure or money:
            yield FoundLiteral(start, end, Literal(text[start:end].strip()), False)
        elif text[end : end + 1].isalnum() or (text[end : end + 1] in "-–" and text[end:]):
            continue
        elif (value := _read_numeral(numeral, text)) is not None:
            yield FoundLiteral(start, end, value, False)


def _read_numeral(numeral: Numeral, text: str) -> Literal | None:
    """Return a number without a unit: a typed literal of an exact value, or the written text of an
    approximate value."""
    if not numeral.is_exact:
        return Literal(text[numeral.start : numeral.end])
    value = numeral.low
    if value is None:
        return None
    if value == value.to_integral_value():
        return Literal(format(value.to_integral_value(), "f"), datatype=xsd("integer"))
    return Literal(format(value, "f"), datatype=xsd("decimal"))


def parse_literal(text: str) -> Literal | None:
    """Return the literal spanning the complete text, such as a table cell.

    Return None for any other text."""
    text = text.strip()
    matches = (f.value for f in find_literals(text) if (f.start, f.end) == (0, len(text)))
    return next(matches, None)


def _read_value(kind: str, match: re.Match[str], text: str) -> tuple[Literal, bool] | None:
    if kind == "date":
        return _read_date(match)
    if kind == "month":
        month = _month_number(match["month"])
        return Literal(f"{match['year']}-{month:02}", datatype=xsd("gYearMonth")), True
    if kind == "number":
        return _read_number(match, text)
    words = match.group().strip()
    return Literal(words), _TIME.fullmatch(words) is not None


def _read_date(match: re.Match[str]) -> tuple[Literal, bool] | None:
    month = match["month"]
    number = int(month) if month.isdigit() else _month_number(month)
    try:
        day = date(int(match["year"]), number, int(match["day"]))
    except ValueError:
        return None
    return Literal(day.isoformat(), datatype=xsd("date")), True


def _month_number(name: str) -> int:
    return next(i for i, month in enumerate(MONTHS, 1) if month.startswith(name[:3]))


def _read_number(match: re.Match[str], text: str) -> tuple[Literal, bool]:
    """Return a number literal: ``1974`` as year if readable so, ``1,000`` as integer, ``1.355``
    as decimal."""
    digits = match.group().rstrip(",")
    if _YEAR_ONLY.fullmatch(digits) and _reads_as_year(text, match.start(), match.end()):
        return Literal(digits, datatype=xsd("gYear")), True
    bare = digits.replace(",", "")
    if "." in bare:
        return Literal(str(Decimal(bare)), datatype=xsd("decimal")), False
    return Literal(bare.lstrip("0") or "0", datatype=xsd("integer")), False


def _reads_as_year(text: str, start: int, end: int) -> bool:
    """Tell whether a four-digit number is a year, judging by the preceding word or a
    construction like "a 1974 single"."""
    before = text[:start]
    if not before.strip() or _TEMPORAL.search(before[-12:]):
        return True
    following = _NEXT_WORD.match(text, end)
    word = following[1] if following else ""
    counted = word[:1].islower() and word.endswith("s") and not word.endswith(("us", "ss"))
    return _BEFORE_MODIFIER.search(before[-12:]) is not None and not counted


def is_number(literal: Literal) -> bool:
    return literal.datatype in (xsd("integer"), xsd("decimal"))
