"""The date that a document states of itself, as a calendar date.

dateutil parses dates; Babel has the names of months and days and the order of day and month in
each language (Unicode CLDR)."""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING
from typing import Literal as Choice

from pyoxigraph import Literal

from tgraph import vocabulary as v
from tgraph.model import Document

if TYPE_CHECKING:
    from babel import Locale
    from dateutil.parser import parserinfo

DateOrder = Choice["language", "day-first", "month-first"]
DateRange = tuple[date, date]

_ISO = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?(?:[T ].*)?", re.DOTALL)
_YEAR = re.compile(r"(?<!\d)\d{4}")
_NUMBER = re.compile(r"\d+")
_NUMERIC = re.compile(r"(\d{1,2})\s*([/.-])\s*(\d{1,2})\s*\2\s*\d{4}(?!\d)")
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST = 100
"""Characters of a text that may be a date."""
_MONTHS = 12
_EAST_ASIAN = "年月日"
"""Signs for year, month and day in numeric dates."""
_TYPES = ("gYear", "gYearMonth", "date")
_DEFAULTS = datetime(2000, 1, 1), datetime(2004, 2, 2)
"""Values for parts that a text lacks: a part that differs between both results is missing."""


@dataclass(frozen=True, slots=True)
class DocumentDate:
    """A document's calendar date, as exact as the document states it; None where the text is not
    understood.

    ``note`` tells in words what is doubtful or not understood."""

    calendar_date: Literal | None
    note: str = ""


def read_document_date(document: Document, order: DateOrder) -> DocumentDate | None:
    """Return the date in a document's metadata; None if the metadata has none.

    ``order`` is the order of day and month where the numbers don't tell."""
    text = document.metadata.get("date", "").strip()
    if not text:
        return None
    if parse_date_span(text) is not None:
        return DocumentDate(_iso_literal(text))
    plain = _normalise_digits(text)
    numbers = _NUMERIC.search(plain)
    locales = list(_document_locales(document))
    if not _YEAR.search(plain) or len(plain) > _LONGEST:
        return _not_understood(text)
    if order == "language":
        day_first = _is_day_first(locales[0]) if locales else None
    else:
        day_first = order == "day-first"
    is_doubtful = numbers is not None and _is_doubtful(numbers)
    if is_doubtful and day_first is None:
        return _not_understood(
            text,
            "Day and month could be either number; the setting ingest.date_order says which is"
            " first.",
        )
    if numbers is not None and numbers[2] == ".":
        day_first = True
    calendar_date = _parse_in_languages(plain, locales, bool(day_first))
    if calendar_date is None:
        return _not_understood(text)
    if not is_doubtful:
        return DocumentDate(calendar_date)
    reason = (
        f"as usual in the document's language ({locales[0].english_name})"
        if order == "language"
        else "as the setting ingest.date_order says"
    )
    first = "day" if day_first else "month"
    note = f"The date {text!r} is read as {calendar_date.value}, the {first} first, {reason}."
    if order == "language":
        note += " The setting ingest.date_order decides otherwise."
    return DocumentDate(calendar_date, note)


def parse_date_span(text: str) -> DateRange | None:
    """Return the first and the last day of a date as ``YYYY``, ``YYYY-MM`` or ``YYYY-MM-DD``; None
    for other texts. A time of day after the date is ignored."""
    match = _ISO.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = (int(part) if part else 0 for part in match.groups())
    try:
        last = day or monthrange(year, month or _MONTHS)[1]
        return date(year, month or 1, day or 1), date(year, month or _MONTHS, last)
    except ValueError:
        return None


def _not_understood(
    text: str, remedy: str = "Write YYYY-MM-DD, or the month's name and the year in full."
) -> DocumentDate:
    return DocumentDate(
        None,
        f"The date {text[:_LONGEST]!r} is not understood, so --since and --until go by the day of"
        f" indexing. {remedy}",
    )


def _iso_literal(text: str) -> Literal:
    match = _ISO.fullmatch(text.strip())
    assert match is not None
    parts = [part for part in match.groups() if part]
    return Literal("-".join(parts), datatype=v.xsd(_TYPES[len(parts) - 1]))


def _normalise_digits(text: str) -> str:
    compatible = unicodedata.normalize("NFKC", text).strip()
    return re.sub(r"\d", lambda digit: str(unicodedata.digit(digit[0])), compatible)


def _is_doubtful(numbers: re.Match[str]) -> bool:
    first, second = int(numbers[1]), int(numbers[3])
    return numbers[2] != "." and first != second and max(first, second) <= _MONTHS


def _document_locales(document: Document) -> Iterator[Locale]:
    """Yield the locale of the document's stated or detected language, if known."""
    from babel import Locale, UnknownLocaleError

    from tgraph.ingest.languages import detect_language  # late: questions parse dates too

    stated = document.metadata.get("language", "").strip()
    text = "\n".join(page.text for page in document.pages[:2])
    for tag in filter(None, (stated, detect_language(text))):
        try:
            yield Locale.parse(tag.replace("_", "-"), sep="-")
        except (UnknownLocaleError, ValueError, TypeError):
            continue


def _is_day_first(locale: Locale) -> bool:
    pattern: str = locale.date_formats["short"].pattern
    return pattern.index("d") < pattern.index("M")


def _parse_in_languages(text: str, locales: list[Locale], day_first: bool) -> Literal | None:
    """Return the date in the first language that understands the text: the document's, English,
    or those that have a month of such a name, if these agree."""
    from babel import Locale

    for locale in (*locales, Locale("en")):
        calendar_date = _parse_date(text, locale, day_first)
        if calendar_date is not None:
            return calendar_date
    tags = set[str]().union(*(_languages_by_month().get(word, ()) for word in _words(text)))
    readings = {_parse_date(text, Locale.parse(tag), day_first) for tag in sorted(tags)} - {None}
    return readings.pop() if len(readings) == 1 else None


def _parse_date(text: str, locale: Locale, day_first: bool) -> Literal | None:
    from dateutil.parser import parse

    starts_with_year = _YEAR.match(text) is not None
    info = _parser_info(str(locale))
    try:
        first, second = (
            parse(
                text,
                info,
                default=default,
                ignoretz=True,
                dayfirst=day_first and not starts_with_year,
                yearfirst=starts_with_year,
            )
            for default in _DEFAULTS
        )
    except (ValueError, OverflowError, TypeError, AttributeError):
        return None
    has_month, has_day = first.month == second.month, first.day == second.day
    exactness = has_month + has_day
    numbers = len(_NUMBER.findall(text))
    if (
        first.year != second.year
        or f"{first.year:04}" not in text
        or (has_day and not has_month)
        or numbers > exactness + 1 < len(_TYPES)  # a part that was taken for something else
    ):
        return None
    value = first.date().isoformat()[: (4, 7, 10)[exactness]]
    return Literal(value, datatype=v.xsd(_TYPES[exactness]))


@cache
def _parser_info(tag: str) -> parserinfo:
    """Return dateutil's words with the names of months and days in a language."""
    from babel import Locale
    from babel.dates import get_day_names
    from dateutil.parser import parserinfo

    locale = Locale.parse(tag)
    months = _month_names(locale)
    days = [get_day_names(width, locale=locale) for width in ("wide", "abbreviated")]
    joints = _words(re.sub(r"\b[GyMLdE]+\b", " ", locale.date_formats["long"].pattern))

    words = {
        "JUMP": [*parserinfo.JUMP, *joints, *_EAST_ASIAN],
        "MONTHS": [tuple(names) for names in months],
        "WEEKDAYS": [
            tuple(names[number].casefold().rstrip(".") for names in days) for number in range(7)
        ],
    }
    info: parserinfo = type("LocaleWords", (parserinfo,), words)()
    return info


def _month_names(locale: Locale) -> list[list[str]]:
    from babel.dates import get_month_names

    names: list[Mapping[int, str]] = [
        get_month_names(width, context, locale)
        for width in ("wide", "abbreviated")
        for context in ("format", "stand-alone")
    ]
    return [
        sorted({name[number].casefold().rstrip(".") for name in names})
        for number in range(1, _MONTHS + 1)
    ]


@cache
def _languages_by_month() -> Mapping[str, set[str]]:
    """Return languages by the names of their months; about a second of work."""
    from babel import Locale, localedata

    languages: dict[str, set[str]] = {}
    for tag in localedata.locale_identifiers():
        if "_" not in tag:
            for name in (name for names in _month_names(Locale.parse(tag)) for name in names):
                languages.setdefault(name, set()).add(tag)
    return languages


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
