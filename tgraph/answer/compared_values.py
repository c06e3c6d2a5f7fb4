"""Values compared by a comparison question, read from sentences answering each side, and the
resulting decision."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache

from tgraph.extract.literals import find_literals
from tgraph.extract.numerals import find_numerals
from tgraph.resources import load_tables, name_list
from tgraph.retrieve.text.comparison import COUNTRIES, QuestionComparison
from tgraph.retrieve.text.lexical import stem, term_set, words

_YEAR = re.compile(r"(?<![\d,.-])(?:1\d{3}|20\d\d)(?![\d,]|[.-]\d)")
_LIFE = re.compile(r"\b(1\d{3}|20\d\d)\s?[–—/-]\s?(1\d{3}|20\d\d)\b")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NUMBERS: Mapping[str, float] = load_tables("comparisons")["numbers"]
_UNITS: Mapping[str, Mapping[str, float]] = load_tables("comparisons")["units"]
_ANY = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_AMOUNT = re.compile(
    r"(?<![\w.,])(?P<digits>\d{1,3}(?:,\d{3})++(?:\.\d++)?|\d++(?:\.\d++)?)"
    r"(?:[ -](?P<scale>hundred|thousand|million|billion))?(?![\w,]*\d)"
    rf"|\b(?P<words>(?:an? )?(?:{_ANY})(?:(?:[ -]| and )(?:{_ANY}))*)\b",
    re.IGNORECASE,
)
_SPACED = re.compile(r"\d \d")
_SCALE = re.compile(r"[ -](hundred|thousand|million|billion)\b", re.IGNORECASE)
FAR = 8
"""Words between a value and the word of the question that it belongs to."""

_DASHES = frozenset("–—-")
_NEAR = 3
"""Words between a number and what it counts."""


@dataclass(frozen=True, slots=True)
class _AmountRange:
    """A number of a text, from ``low`` to ``high``."""

    start: int
    end: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A value as written in a text: numeric range ``low`` to ``high`` on scale ``dimension``,
    or a name with its ``terms``."""

    text: str
    dimension: str
    low: float = 0.0
    high: float = 0.0
    terms: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _ValueMention:
    """A compared value with text position."""

    start: int
    end: int
    value: ComparedValue
    is_life: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """A comparison outcome: short text, plus the side (0 or 1) mentioned first."""

    text: str
    first: int = 0


# --- reading ---


def value_in(text: str, comparison: QuestionComparison) -> ComparedValue | None:
    """Return the comparison value stated by a sentence, or None.

    The value stands near a question word, or is the beginning or end of a life. Of names, only
    country names are read from a sentence."""
    if comparison.kind == "time":
        located_values = _find_times(text, comparison)
        lives = (
            [] if comparison.is_birth is None else [life for life in located_values if life.is_life]
        )
        return _nearest_value(located_values, text, comparison) or next(
            (life.value for life in lives), None
        )
    if comparison.kind == "count":
        return next(_find_counts(text, comparison.noun), None)
    if comparison.kind == "measure":
        return _nearest_value(_find_measures(text, comparison.units), text, comparison)
    if comparison.noun in COUNTRIES:
        return _nearest_value(_find_countries(text), text, comparison)
    return None


def bare_value(answer: str, comparison: QuestionComparison) -> ComparedValue | None:
    """Return the value stated in a reader's answer, or None."""
    if comparison.kind == "count":
        amount = next(iter(_find_amounts(answer)), None)
        counted = _count_value(amount, answer[amount.start : amount.end]) if amount else None
        return value_in(answer, comparison) or counted
    if comparison.kind == "name" and comparison.noun not in COUNTRIES:
        return name_value(answer) if answer else None
    if comparison.kind == "name":
        located_values = _find_countries(answer)
    elif comparison.kind == "time":
        located_values = _find_times(answer, comparison)
    else:
        located_values = _find_measures(answer, comparison.units)
    return located_values[0].value if located_values else None


def near_focus(text: str, comparison: QuestionComparison, name: str) -> int | None:
    """Return the distance between a name and its nearest question word.

    None means that the distance is too great, or that another name stands between."""
    bare = name.partition("(")[0].rstrip() if name.endswith(")") else name
    written = next((n for n in (name, bare) if n and n in text), "")
    if not written:
        return None
    start = text.index(written)
    located_name = _ValueMention(start, start + len(written), name_value(name))
    gap = _focus_distance(located_name, text, comparison)
    between = text[max(0, start - gap) : start] if gap is not None else ""
    return None if any(map(str.isupper, between)) else gap


def name_value(name: str) -> ComparedValue:
    """Convert a name to a compared ``name`` value."""
    return ComparedValue(" ".join(name.split()), "name", terms=term_set(name))


def _nearest_value(
    found: Sequence[_ValueMention], text: str, comparison: QuestionComparison
) -> ComparedValue | None:
    """Return the value nearest to a question word; of two equally near values, the later.

    If the question has no telling word, the first value is returned."""
    far = [
        (_focus_distance(located_value, text, comparison), located_value.start, located_value.value)
        for located_value in found
    ]
    near = [(gap, start, value) for gap, start, value in far if gap is not None]
    return min(near, key=lambda each: each[:2])[2] if near else None


def _focus_distance(found: _ValueMention, text: str, comparison: QuestionComparison) -> int | None:
    """Return the distance between a value and its nearest question word; None if too far."""
    if not comparison.focus:
        return 0
    gaps = []
    for match in _WORD.finditer(text):
        if _is_focus(match.group(), comparison):
            between = text[min(match.end(), found.end) : max(match.start(), found.start)]
            if len(_WORD.findall(between)) <= FAR:
                gaps.append(_position_gap(found, match.span()))
    return min(gaps, default=None)


def _is_focus(word: str, comparison: QuestionComparison) -> bool:
    return any(stem(part) in comparison.focus for part in words(word))


def _position_gap(found: _ValueMention, place: tuple[int, int]) -> int:
    start, end = place
    if end <= found.start:
        return found.start - end
    return start - found.end + 1 if found.end <= start else 0


def _find_times(text: str, comparison: QuestionComparison) -> list[_ValueMention]:
    """Return dates and years in the text.

    A span of years counts as the end of a life if the end is asked for, otherwise as the
    beginning."""
    spans = [
        (m.start(), m.end(), m.group(2 if comparison.is_birth is False else 1))
        for m in _LIFE.finditer(text)
    ]
    located_times = [
        _ValueMention(start, end, _year_value(year), True) for start, end, year in spans
    ]
    for literal in find_literals(text):
        if (
            value := _parse_time(literal.value.value, text[literal.start : literal.end])
        ) is not None:
            located_times.append(_ValueMention(literal.start, literal.end, value))
    occupied_spans = [(located_time.start, located_time.end) for located_time in located_times]
    for match in _YEAR.finditer(text):
        if not any(start < match.end() and match.start() < end for start, end in occupied_spans):
            located_times.append(
                _ValueMention(match.start(), match.end(), _year_value(match.group()))
            )
    located_times.sort(key=lambda each: each.start)
    return list(_without_other_end(located_times, text, comparison.is_birth is False))


def _without_other_end(
    found: Sequence[_ValueMention], text: str, is_end: bool
) -> Iterator[_ValueMention]:
    """Merge two dates joined by a dash: yield the requested date with the position of both."""
    merged_index = -1
    for at, located_time in enumerate(found):
        after = found[at + 1] if at + 1 < len(found) else None
        if at == merged_index:
            continue
        if after is not None and text[located_time.end : after.start].strip() in _DASHES:
            merged_index = at + 1
            yield _ValueMention(
                located_time.start, after.end, (after if is_end else located_time).value, True
            )
        else:
            yield located_time


def _parse_time(value: str, text: str) -> ComparedValue | None:
    """Parse a date, month or year; return the days covered as a compared value."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        day = date.fromisoformat(value).toordinal()
        return ComparedValue(text, "time", day, day)
    if re.fullmatch(r"\d{4}-\d\d", value):
        first = date.fromisoformat(f"{value}-01")
        last = (first + timedelta(days=31)).replace(day=1).toordinal() - 1
        return ComparedValue(text, "time", first.toordinal(), last)
    return None


def _year_value(year: str) -> ComparedValue:
    low, high = date(int(year), 1, 1), date(int(year), 12, 31)
    return ComparedValue(year, "time", low.toordinal(), high.toordinal())


def _parse_number(found: re.Match[str]) -> float:
    if digits := found["digits"]:
        return float(digits.replace(",", "")) * _NUMBERS.get((found["scale"] or "").lower(), 1)
    total = part = 0.0
    for word in re.split(r"[ -]", found["words"].lower()):
        value = _NUMBERS.get(word, 0)
        if value >= 1000:
            total, part = total + (part or 1) * value, 0.0
        elif value in (100, 12) and word in ("hundred", "dozen"):
            part = (part or 1) * value
        else:
            part += value
    return total + part


def _find_amounts(text: str) -> list[_AmountRange]:
    """Return the numbers of a text in order; of a number that is more than digits no part."""
    amounts, taken = [], []
    for numeral in find_numerals(text):
        written = text[numeral.start : numeral.end]
        if _YEAR.search(written) or (numeral.needs_unit and _SPACED.search(written)):
            continue
        taken.append((numeral.start, numeral.end))
        if numeral.low is not None and numeral.high is not None:
            scale = _SCALE.match(text, numeral.end)
            factor = _NUMBERS[scale[1].lower()] if scale else 1
            low, high = (float(value) * factor for value in (numeral.low, numeral.high))
            end = scale.end() if scale else numeral.end
            amounts.append(_AmountRange(numeral.start, end, low, high))
    for match in _AMOUNT.finditer(text):
        if all(match.end() <= start or end <= match.start() for start, end in taken):
            number = _parse_number(match)
            amounts.append(_AmountRange(*match.span(), number, number))
    return sorted(amounts, key=lambda amount: amount.start)


def _count_value(amount: _AmountRange, text: str) -> ComparedValue:
    return ComparedValue(text, "count", amount.low, amount.high)


def _find_counts(text: str, noun: str) -> Iterator[ComparedValue]:
    """Yield numbers standing directly before the counted noun, then numbers directly after it."""
    noun_stems = {stem(word) for word in words(noun)}
    places = [m for m in _WORD.finditer(text) if {stem(w) for w in words(m.group())} & noun_stems]
    amounts = [a for a in _find_amounts(text) if not _YEAR.fullmatch(text[a.start : a.end])]
    for place in places:
        for amount in reversed(amounts):
            if amount.end <= place.start() and _is_near(text[amount.end : place.start()]):
                yield _count_value(amount, " ".join(text[amount.start : place.end()].split()))
    for place in places:
        for amount in amounts:
            if place.end() <= amount.start and _is_near(text[place.end() : amount.start]):
                yield _count_value(amount, text[amount.start : amount.end])


def _is_near(between: str) -> bool:
    return len(_WORD.findall(between)) <= _NEAR and not set(between) & set(".;!?()")


def _find_measures(text: str, dimensions: Sequence[str]) -> list[_ValueMention]:
    """Return amounts with a unit from the given dimensions."""
    measures = (_parse_measure(text, amount, dimensions) for amount in _find_amounts(text))
    return [measure for measure in measures if measure is not None]


def _parse_measure(
    text: str, amount: _AmountRange, dimensions: Sequence[str]
) -> _ValueMention | None:
    for dimension, units in _UNITS.items():
        if not any(dimension.startswith(prefix) for prefix in dimensions):
            continue
        start, end = amount.start, amount.end
        unit = next((u for u in units if not u[0].isalpha() and text[:start].endswith(u)), "")
        if unit:
            start -= len(unit)
        elif after := _unit_pattern(tuple(units)).match(text, end):
            unit, end = _match_unit(after["unit"], units), after.end()
        if unit:
            low, high = amount.low * units[unit], amount.high * units[unit]
            words_ = " ".join(text[start:end].split())
            return _ValueMention(start, end, ComparedValue(words_, dimension, low, high))
    return None


def _match_unit(written: str, units: Mapping[str, float]) -> str:
    return written if written in units else written.removesuffix("s")


@cache
def _unit_pattern(units: tuple[str, ...]) -> re.Pattern[str]:
    any_unit = "|".join(re.escape(u) for u in sorted(units, key=len, reverse=True))
    return re.compile(rf"[ -]?(?P<unit>(?:{any_unit})s?)(?![\w^²³⁻]|/\w)")


def _find_countries(text: str) -> list[_ValueMention]:
    """Return countries mentioned by name, people or adjective."""
    country_names, pattern = _known_countries()
    return [
        _ValueMention(m.start(), m.end(), name_value(country_names[m.group().casefold()].title()))
        for m in pattern.finditer(text)
    ]


@cache
def _known_countries() -> tuple[Mapping[str, str], re.Pattern[str]]:
    """Return country by name, and a pattern that finds capitalised country names."""
    names = {name: name for name in name_list("regions", "names")}
    for country, nationalities in load_tables("regions")["nationalities"].items():
        names |= dict.fromkeys((country, *(o.strip() for o in nationalities.split(","))), country)
    ordered = sorted(names, key=len, reverse=True)
    alternatives = "|".join(re.escape(n) for n in ordered)
    return names, re.compile(rf"(?<!\w)(?=[A-Z])(?i:{alternatives})(?!\w)")


# --- deciding ---


def decide_comparison(
    comparison: QuestionComparison, one: ComparedValue, other: ComparedValue
) -> Decision | None:
    """Return the comparison outcome; None for inconclusive values."""
    if one.dimension != other.dimension:
        return None
    if comparison.asked in ("same", "different"):
        return _decide_sameness(comparison, one, other)
    if (one.low, one.high) == (other.low, other.high):
        answer_word = "Both" if comparison.asked == "which" else "No"
        return Decision(f"{answer_word} – {one.text}")
    if one.low <= other.high and other.low <= one.high:
        return None
    return _decide_order(comparison, (one, other))


def _decide_order(
    comparison: QuestionComparison, values: tuple[ComparedValue, ComparedValue]
) -> Decision:
    """Return the decision between a smaller and a larger value."""
    first_is_less = values[0].high < values[1].low
    relations = ("before", "after") if comparison.kind == "time" else ("less than", "more than")
    if comparison.asked == "whether":
        word = "Yes" if first_is_less == comparison.least else "No"
        relation = relations[0 if first_is_less else 1]
        return Decision(f"{word} – {values[0].text} {relation} {values[1].text}")
    first = 0 if first_is_less == comparison.least else 1
    phrase = f"{values[first].text} {relations[not comparison.least]} {values[1 - first].text}"
    side = comparison.sides[first]
    return Decision(f"{side[:1].upper()}{side[1:]} – {phrase}", first)


def _decide_sameness(
    comparison: QuestionComparison, one: ComparedValue, other: ComparedValue
) -> Decision | None:
    if comparison.kind == "time":
        values = [_part_of_time(sentence, comparison.noun) for sentence in (one, other)]
        if None in values:
            return None
        alike = values[0] == values[1]
        texts = [str(value) for value in values]
    else:
        alike = one.terms <= other.terms or other.terms <= one.terms
        texts = [one.text, other.text]
    word = "Yes" if alike == (comparison.asked == "same") else "No"
    phrase = f"both {texts[0]}" if alike else f"{texts[0]} and {texts[1]}"
    return Decision(f"{word} – {phrase}")


def _part_of_time(value: ComparedValue, noun: str) -> int | str | None:
    """Return year, decade or century, or month or day if the value is exact enough; else None."""
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
