"""What two sides of a comparison are compared by, read from the sentences that answer each, and
which of them it decides for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache

from tgraph.extract.literals import find_literals
from tgraph.resources import name_list, tables
from tgraph.retrieve.text.comparison import COUNTRIES, QuestionComparison
from tgraph.retrieve.text.lexical import stem, term_set, words

_YEAR = re.compile(r"(?<![\d,.-])(?:1\d{3}|20\d\d)(?![\d,]|[.-]\d)")
_LIFE = re.compile(r"\b(1\d{3}|20\d\d)\s?[–—/-]\s?(1\d{3}|20\d\d)\b")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NUMBERS: Mapping[str, float] = tables("comparisons")["numbers"]
_UNITS: Mapping[str, Mapping[str, float]] = tables("comparisons")["units"]
_ANY = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_AMOUNT = re.compile(
    r"(?<![\w.,])(?P<digits>\d{1,3}(?:,\d{3})++(?:\.\d++)?|\d++(?:\.\d++)?)"
    r"(?:[ -](?P<scale>hundred|thousand|million|billion))?(?![\w,]*\d)"
    rf"|\b(?P<words>(?:an? )?(?:{_ANY})(?:(?:[ -]| and )(?:{_ANY}))*)\b",
    re.IGNORECASE,
)
FAR = 8
"""Words between a value and the word of the question that it belongs to."""

_DASHES = frozenset("–—-")
_NEAR = 3
"""Words between a number and what it counts."""


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A value as a text has it: from ``low`` to ``high`` on the scale of its ``dimension``, or a
    name by its ``terms``."""

    text: str
    dimension: str
    low: float = 0.0
    high: float = 0.0
    terms: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Found:
    """A value and where it stands in its text."""

    start: int
    end: int
    value: ComparedValue
    is_life: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What a comparison comes to, in a few words, and the side (0 or 1) that it names first."""

    text: str
    first: int = 0


# --- reading ---


def value_in(text: str, comparison: QuestionComparison) -> ComparedValue | None:
    """The value that a sentence says of what is compared: near a word of the question, or the ends
    of a life. Names but those of countries are not read of a sentence."""
    if comparison.kind == "time":
        found = _times(text, comparison)
        lives = [] if comparison.is_birth is None else [each for each in found if each.is_life]
        return _nearest(found, text, comparison) or next((each.value for each in lives), None)
    if comparison.kind == "count":
        return next(_counts(text, comparison.noun), None)
    if comparison.kind == "measure":
        return _nearest(_measures(text, comparison.units), text, comparison)
    if comparison.noun in COUNTRIES:
        return _nearest(_countries(text), text, comparison)
    return None


def bare_value(answer: str, comparison: QuestionComparison) -> ComparedValue | None:
    """The value that a reader's answer is."""
    if comparison.kind == "count":
        amount = _AMOUNT.search(answer)
        return value_in(answer, comparison) or (_counted(amount) if amount else None)
    if comparison.kind == "name" and comparison.noun not in COUNTRIES:
        return name_value(answer) if answer else None
    if comparison.kind == "name":
        found = _countries(answer)
    elif comparison.kind == "time":
        found = _times(answer, comparison)
    else:
        found = _measures(answer, comparison.units)
    return found[0].value if found else None


def near_focus(text: str, comparison: QuestionComparison, name: str) -> int | None:
    """How far a name stands from the nearest word of the question; None where it is too far, or
    another name is between."""
    bare = name.partition("(")[0].rstrip() if name.endswith(")") else name
    written = next((n for n in (name, bare) if n and n in text), "")
    if not written:
        return None
    start = text.index(written)
    found = _Found(start, start + len(written), name_value(name))
    gap = _distance(found, text, comparison)
    between = text[max(0, start - gap) : start] if gap is not None else ""
    return None if any(map(str.isupper, between)) else gap


def name_value(name: str) -> ComparedValue:
    """A name as a value."""
    return ComparedValue(" ".join(name.split()), "name", terms=term_set(name))


def _nearest(
    found: Sequence[_Found], text: str, comparison: QuestionComparison
) -> ComparedValue | None:
    """The value that stands nearest to a word of the question, of two alike the one after it; where
    the question has none that tells, the first."""
    far = [(_distance(each, text, comparison), each.start, each.value) for each in found]
    near = [(gap, start, value) for gap, start, value in far if gap is not None]
    return min(near, key=lambda each: each[:2])[2] if near else None


def _distance(found: _Found, text: str, comparison: QuestionComparison) -> int | None:
    """How far it stands from the nearest word of the question; None for too far."""
    if not comparison.focus:
        return 0
    gaps = []
    for match in _WORD.finditer(text):
        if _is_focus(match.group(), comparison):
            between = text[min(match.end(), found.end) : max(match.start(), found.start)]
            if len(_WORD.findall(between)) <= FAR:
                gaps.append(_gap(found, match.span()))
    return min(gaps, default=None)


def _is_focus(word: str, comparison: QuestionComparison) -> bool:
    return any(stem(each) in comparison.focus for each in words(word))


def _gap(found: _Found, place: tuple[int, int]) -> int:
    start, end = place
    if end <= found.start:
        return found.start - end
    return start - found.end + 1 if found.end <= start else 0


def _times(text: str, comparison: QuestionComparison) -> list[_Found]:
    """The dates and years; of a span of years the end of a life where that is asked for, and else
    its beginning."""
    spans = [
        (m.start(), m.end(), m.group(2 if comparison.is_birth is False else 1))
        for m in _LIFE.finditer(text)
    ]
    found = [_Found(start, end, _year(year), True) for start, end, year in spans]
    for literal in find_literals(text):
        if (value := _time(literal.value.value, text[literal.start : literal.end])) is not None:
            found.append(_Found(literal.start, literal.end, value))
    known = [(each.start, each.end) for each in found]
    for match in _YEAR.finditer(text):
        if not any(start < match.end() and match.start() < end for start, end in known):
            found.append(_Found(match.start(), match.end(), _year(match.group())))
    found.sort(key=lambda each: each.start)
    return list(_without_other_end(found, text, comparison.is_birth is False))


def _without_other_end(found: Sequence[_Found], text: str, is_end: bool) -> Iterator[_Found]:
    """Of two dates that a dash joins the one that is asked for, in the place of both."""
    taken = -1
    for at, each in enumerate(found):
        after = found[at + 1] if at + 1 < len(found) else None
        if at == taken:
            continue
        if after is not None and text[each.end : after.start].strip() in _DASHES:
            taken = at + 1
            yield _Found(each.start, after.end, (after if is_end else each).value, True)
        else:
            yield each


def _time(value: str, text: str) -> ComparedValue | None:
    """The days from the first to the last of a date, a month or a year."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        day = date.fromisoformat(value).toordinal()
        return ComparedValue(text, "time", day, day)
    if re.fullmatch(r"\d{4}-\d\d", value):
        first = date.fromisoformat(f"{value}-01")
        last = (first + timedelta(days=31)).replace(day=1).toordinal() - 1
        return ComparedValue(text, "time", first.toordinal(), last)
    return None


def _year(year: str) -> ComparedValue:
    low, high = date(int(year), 1, 1), date(int(year), 12, 31)
    return ComparedValue(year, "time", low.toordinal(), high.toordinal())


def _number(found: re.Match[str]) -> float:
    if digits := found["digits"]:
        return float(digits.replace(",", "")) * _NUMBERS.get((found["scale"] or "").lower(), 1)
    whole = part = 0.0
    for word in re.split(r"[ -]", found["words"].lower()):
        value = _NUMBERS.get(word, 0)
        if value >= 1000:
            whole, part = whole + (part or 1) * value, 0.0
        elif value in (100, 12) and word in ("hundred", "dozen"):
            part = (part or 1) * value
        else:
            part += value
    return whole + part


def _counted(amount: re.Match[str], text: str = "") -> ComparedValue:
    number = _number(amount)
    return ComparedValue(text or amount.group(), "count", number, number)


def _counts(text: str, noun: str) -> Iterator[ComparedValue]:
    """The numbers that stand right before what is counted, then those right after it."""
    wanted = {stem(word) for word in words(noun)}
    places = [m for m in _WORD.finditer(text) if {stem(w) for w in words(m.group())} & wanted]
    amounts = [m for m in _AMOUNT.finditer(text) if not _YEAR.fullmatch(m.group())]
    for place in places:
        for amount in reversed(amounts):
            if amount.end() <= place.start() and _is_near(text[amount.end() : place.start()]):
                yield _counted(amount, " ".join(text[amount.start() : place.end()].split()))
    for place in places:
        for amount in amounts:
            if place.end() <= amount.start() and _is_near(text[place.end() : amount.start()]):
                yield _counted(amount)


def _is_near(between: str) -> bool:
    return len(_WORD.findall(between)) <= _NEAR and not set(between) & set(".;!?()")


def _measures(text: str, dimensions: Sequence[str]) -> list[_Found]:
    """The amounts with a unit of one of the dimensions."""
    found = (_measure(text, amount, dimensions) for amount in _AMOUNT.finditer(text))
    return [each for each in found if each is not None]


def _measure(text: str, amount: re.Match[str], dimensions: Sequence[str]) -> _Found | None:
    for dimension, units in _UNITS.items():
        if not any(dimension.startswith(each) for each in dimensions):
            continue
        start, end = amount.span()
        unit = next((u for u in units if not u[0].isalpha() and text[:start].endswith(u)), "")
        if unit:
            start -= len(unit)
        elif after := _unit_pattern(tuple(units)).match(text, end):
            unit, end = _unit(after["unit"], units), after.end()
        if unit:
            size = _number(amount) * units[unit]
            words_ = " ".join(text[start:end].split())
            return _Found(start, end, ComparedValue(words_, dimension, size, size))
    return None


def _unit(written: str, units: Mapping[str, float]) -> str:
    return written if written in units else written.removesuffix("s")


@cache
def _unit_pattern(units: tuple[str, ...]) -> re.Pattern[str]:
    any_unit = "|".join(re.escape(u) for u in sorted(units, key=len, reverse=True))
    return re.compile(rf"[ -]?(?P<unit>(?:{any_unit})s?)(?!\w)")


def _countries(text: str) -> list[_Found]:
    """The countries that are named, or whose people or adjective is."""
    known, pattern = _known_countries()
    return [
        _Found(m.start(), m.end(), name_value(known[m.group().casefold()].title()))
        for m in pattern.finditer(text)
    ]


@cache
def _known_countries() -> tuple[Mapping[str, str], re.Pattern[str]]:
    """The country for each name, and what finds them where they are written as names."""
    names = {name: name for name in name_list("regions", "names")}
    for country, others in tables("regions")["nationalities"].items():
        names |= dict.fromkeys((country, *(o.strip() for o in others.split(","))), country)
    ordered = sorted(names, key=len, reverse=True)
    alternatives = "|".join(re.escape(n) for n in ordered)
    return names, re.compile(rf"(?<!\w)(?=[A-Z])(?i:{alternatives})(?!\w)")


# --- deciding ---


def decided(
    comparison: QuestionComparison, one: ComparedValue, other: ComparedValue
) -> Decision | None:
    """What the comparison comes to; None where the values tell nothing of each other."""
    if one.dimension != other.dimension:
        return None
    if comparison.asked in ("same", "different"):
        return _same(comparison, one, other)
    if (one.low, one.high) == (other.low, other.high):
        said = "Both" if comparison.asked == "which" else "No"
        return Decision(f"{said} – {one.text}")
    if one.low <= other.high and other.low <= one.high:
        return None
    return _ordered(comparison, (one, other))


def _ordered(
    comparison: QuestionComparison, values: tuple[ComparedValue, ComparedValue]
) -> Decision:
    """Of two values of which one is less."""
    first_is_less = values[0].high < values[1].low
    relations = ("before", "after") if comparison.kind == "time" else ("less than", "more than")
    if comparison.asked == "whether":
        word = "Yes" if first_is_less == comparison.least else "No"
        relation = relations[0 if first_is_less else 1]
        return Decision(f"{word} – {values[0].text} {relation} {values[1].text}")
    first = 0 if first_is_less == comparison.least else 1
    told = f"{values[first].text} {relations[not comparison.least]} {values[1 - first].text}"
    side = comparison.sides[first]
    return Decision(f"{side[:1].upper()}{side[1:]} – {told}", first)


def _same(
    comparison: QuestionComparison, one: ComparedValue, other: ComparedValue
) -> Decision | None:
    if comparison.kind == "time":
        values = [_part_of_time(each, comparison.noun) for each in (one, other)]
        if None in values:
            return None
        alike = values[0] == values[1]
        texts = [str(value) for value in values]
    else:
        alike = one.terms <= other.terms or other.terms <= one.terms
        texts = [one.text, other.text]
    word = "Yes" if alike == (comparison.asked == "same") else "No"
    told = f"both {texts[0]}" if alike else f"{texts[0]} and {texts[1]}"
    return Decision(f"{word} – {told}")


def _part_of_time(value: ComparedValue, noun: str) -> int | str | None:
    """The year, decade or century, or the day or month where the value is as exact; else None."""
    first, last = date.fromordinal(int(value.low)), date.fromordinal(int(value.high))
    if noun in ("day", "date"):
        return value.text if first == last else None
    if noun == "month":
        return f"{first:%B}" if first.month == last.month else None
    if noun == "decade":
        return f"{first.year // 10}0s"
    if noun == "century":
        return (first.year + 99) // 100
    return first.year if noun == "year" else None
