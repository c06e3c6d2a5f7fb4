"""Links from the words of a question to what the catalogue has: classes, properties, values,
numbers with units, years, and the words that ask for a computation."""

from __future__ import annotations

import re
from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph.compute.algebra import Order
from tgraph.index.catalogue import Catalogue, KnownClass, KnownProperty
from tgraph.ingest.table_values import read_date, read_unit, split_scale
from tgraph.model import Object
from tgraph.resources import load_tables, word_list, word_set
from tgraph.retrieve.text.lexical import STOP_WORDS
from tgraph.retrieve.text.lexical import stem as stem_form
from tgraph.retrieve.text.property_words import can_mean_same, load_property_groups

LONGEST_NAME = 7
"""The words of a name that is looked for."""

EXACT, BY_STEMS, BY_SYNONYM, BY_UNIT, BY_PART = 1.0, 0.97, 0.85, 0.85, 0.8
"""How sure a link is that rests on the same words, their stems, a word of the same group, the unit,
or a part of a name."""

_WORD = re.compile(r"[€$£¥]|[^\W_]+(?:[.,:/’'&-][^\W_]+)*", re.UNICODE)
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_NUMBER_UNIT = re.compile(r"(\d[\d.,]*)([^\W\d_]{1,3})")
_POSSESSIVE = re.compile(r"['’]s?$")
_YEAR = re.compile(r"[12]\d{3}")
_CURRENCIES = "€$£¥"

Span = frozenset[int]


def stem(word: str) -> str:
    """Return the stem of a word's singular, by which names are compared: the stem of "rivers" alone
    would be another than that of "river"."""
    if word.endswith("ies") and len(word) > 4:
        return stem_form(f"{word[:-3]}y")
    if word.endswith(("ches", "shes", "sses", "xes")):
        return stem_form(word[:-2])
    is_plural = word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3
    return stem_form(word[:-1] if is_plural else word)


@dataclass(frozen=True, slots=True)
class LinkedWord:
    """A word of a question: as written, in lower case without possessive ending, its stem."""

    text: str
    lower: str
    stem: str


@dataclass(frozen=True, slots=True)
class ClassLink:
    """Words that name a class."""

    span: Span
    known: KnownClass
    score: float


@dataclass(frozen=True, slots=True)
class PropertyLink:
    """Words that name a property."""

    span: Span
    known: KnownProperty
    score: float


@dataclass(frozen=True, slots=True)
class ValueLink:
    """Words that name entities or are values, of certain properties where only these have them."""

    span: Span
    label: str
    values: tuple[Object, ...]
    score: float
    properties: tuple[NamedNode, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundLink:
    """A number with its unit, or a year, and the order in which values shall stand to it; with
    ``upper`` a range."""

    span: Span
    order: Order
    number: Decimal
    unit: str = ""
    upper: Decimal | None = None
    is_year: bool = False
    measures: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    days: tuple[date, date] | None = None
    """The first and last day of a date that has a day or a month."""


@dataclass(frozen=True, slots=True)
class ExtremeLink:
    """Words that ask for the greatest or least, or with ``is_time`` the last or first in time;
    ``measures`` are what it is measured in, ``names`` the stems of words for it."""

    span: Span
    is_most: bool
    measures: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    is_time: bool = False
    places: int = 1
    is_comparative: bool = False


CueKind = Choice["share", "count", "sum", "average", "difference", "group", "negation", "whether"]


@dataclass(frozen=True, slots=True)
class QuestionLinks:
    """All links of a question; ``cues`` are the words that ask for a computation, by kind."""

    words: tuple[LinkedWord, ...]
    classes: tuple[ClassLink, ...] = ()
    properties: tuple[PropertyLink, ...] = ()
    values: tuple[ValueLink, ...] = ()
    bounds: tuple[BoundLink, ...] = ()
    extremes: tuple[ExtremeLink, ...] = ()
    degrees: tuple[ExtremeLink, ...] = ()
    cues: Mapping[CueKind, tuple[Span, ...]] = field(default_factory=dict)

    def text(self, span: Span) -> str:
        """Return the words of a span as they stand in the question."""
        return join_words(self.words, span)

    def cue(self, kind: CueKind) -> Span:
        """Return the words of all cues of a kind."""
        return frozenset().union(*self.cues.get(kind, ()))

    @property
    def content(self) -> Span:
        """The positions of content words, which a query must account for; words that only shape
        the question are left out."""
        free = _free_words()
        return frozenset(at for at, word in enumerate(self.words) if word.lower not in free)


def join_words(words: Sequence[LinkedWord], span: Collection[int]) -> str:
    """Return the words at some positions, in their order."""
    return " ".join(words[at].text for at in sorted(span))


def merge_links(links: Iterable[PropertyLink]) -> dict[NamedNode, PropertyLink]:
    """Return one link for each property: with all words that name the property, as surely as the
    surest."""
    merged: dict[NamedNode, PropertyLink] = {}
    for link in links:
        other = merged.get(link.known.iri, link)
        score = max(link.score, other.score)
        merged[link.known.iri] = PropertyLink(link.span | other.span, link.known, score)
    return merged


@cache
def _free_words() -> frozenset[str]:
    return (STOP_WORDS | word_set("computing", "free")) - word_set("computing", "telling")


FindNames = Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
"""The entities called exactly so, by name."""

FindLiterals = Callable[[str], Sequence[tuple[NamedNode, Object]]]
"""The literals that are exactly so, each with a property that has it."""


def link_question(
    question: str, catalogue: Catalogue, find_names: FindNames, find_literals: FindLiterals
) -> QuestionLinks:
    """Return the links of a question to what the catalogue has."""
    words = tuple(_split_words(question))
    bounds = tuple(_link_bounds(words))
    extremes = tuple(_link_extremes(words, bounds))
    numbers = number_words(words, bounds)
    classes = tuple(_link_classes(words, catalogue))
    class_spans = {link.span for link in classes if len(link.span) > 1}
    properties = (
        link
        for link in _link_properties(words, catalogue)
        if link.score > BY_PART or not any(link.span < span for span in class_spans)
    )  # "fight" in "fight songs" is no number of fights
    return QuestionLinks(
        words,
        classes,
        tuple(properties),
        tuple(_link_values(words, catalogue, find_names, find_literals, numbers)),
        bounds=bounds,
        extremes=extremes,
        degrees=tuple(_link_degrees(words)),
        cues=dict(_link_cues(words)),
    )


def number_words(words: Sequence[LinkedWord], bounds: Sequence[BoundLink]) -> Span:
    """Return the words that are no value by themselves: of bounds, and numbers that are written
    out, such as "three"."""
    numbers = load_tables("comparisons")["numbers"]
    written = frozenset(at for at, word in enumerate(words) if word.lower in numbers)
    return written.union(*(bound.span for bound in bounds), _places_beside(words)[1])


def _split_words(question: str) -> Iterator[LinkedWord]:
    for match in _WORD.finditer(question):
        text = match.group()
        parts = [text]
        if unit := _NUMBER_UNIT.fullmatch(text):
            parts = [unit[1], unit[2]] if read_unit(unit[2]) else [text]
        for part in parts:
            base = _POSSESSIVE.sub("", part) or part
            lower = part.lower().replace("’", "'")
            lower = lower if lower in word_set("computing", "negations") else base.lower()
            yield LinkedWord(base, lower, stem(base.lower()))


# --- classes and properties -------------------------------------------------------------------


def _label_stems(label: str) -> tuple[str, ...]:
    return tuple(stem(word.lower()) for word in _WORD.findall(label.replace("_", " ")))


def _spans_of(stems: Sequence[str], words: Sequence[LinkedWord]) -> Iterator[Span]:
    for start in range(len(words) - len(stems) + 1):
        if all(word.stem == s for word, s in zip(words[start:], stems, strict=False)):
            yield frozenset(range(start, start + len(stems)))


def _link_classes(words: Sequence[LinkedWord], catalogue: Catalogue) -> Iterator[ClassLink]:
    for catalogue_entry in catalogue.classes:
        labels = dict.fromkeys(
            filter(
                None, (catalogue_entry.type_label, catalogue_entry.label, *catalogue_entry.synonyms)
            )
        )
        for label in labels:
            if stems := _label_stems(label):
                yield from (
                    ClassLink(span, catalogue_entry, EXACT) for span in _spans_of(stems, words)
                )


def _link_properties(words: Sequence[LinkedWord], catalogue: Catalogue) -> Iterator[PropertyLink]:
    for catalogue_entry in catalogue.properties:
        stems = [s for s in _label_stems(catalogue_entry.name) if s not in STOP_WORDS] or list(
            _label_stems(catalogue_entry.name)
        )
        label_spans = list(_spans_of(stems, words)) if stems else []
        for synonym in map(_label_stems, catalogue_entry.synonyms):
            label_spans += _spans_of(synonym, words) if synonym else ()
        yield from (PropertyLink(span, catalogue_entry, BY_STEMS) for span in label_spans)
        taken: Span = frozenset().union(*label_spans)
        for at, word in enumerate(words):
            if at in taken or word.lower in STOP_WORDS:
                continue
            if word.stem in stems:
                yield PropertyLink(frozenset((at,)), catalogue_entry, BY_PART)
            elif any(can_mean_same(word.stem, s) for s in stems):
                yield PropertyLink(frozenset((at,)), catalogue_entry, BY_SYNONYM)


def names_other_quantity(name: str, adjective: frozenset[str]) -> bool:
    """Return whether a property is called after another quantity than an adjective measures: a
    length, where the width is asked for. ``adjective`` are the stems of words for what is asked."""
    groups = load_property_groups()
    named = frozenset().union(*(groups.get(s, frozenset()) for s in _label_stems(name)))
    asked = frozenset().union(*(groups.get(s, frozenset()) for s in adjective))
    return bool(adjective and named) and named.isdisjoint(asked)


def measures_other(name: str, adjective: frozenset[str]) -> bool:
    """Return whether an adjective is of another quantity than a property that is not called after
    it: "heaviest" is no word for a price."""
    is_called = not adjective.isdisjoint(_label_stems(name))
    return not is_called and names_other_quantity(name, adjective)


# --- values -----------------------------------------------------------------------------------


def _link_values(
    words: Sequence[LinkedWord],
    catalogue: Catalogue,
    find_names: FindNames,
    find_literals: FindLiterals,
    numbers: Span,
) -> Iterator[ValueLink]:
    """Yield what spans name: the longest first, and of overlapping ones only the longest."""
    spans = [
        range(start, start + length)
        for length in range(min(LONGEST_NAME, len(words)), 0, -1)
        for start in range(len(words) - length + 1)
        if _may_be_name(words[start : start + length])
    ]
    texts = {span: " ".join(words[at].text for at in span) for span in spans}
    class_labels = sorted(
        {
            catalogue_entry.type_label or catalogue_entry.label
            for catalogue_entry in catalogue.classes
        }
    )
    prefixed = {
        text: [f"{label} {text}" for label in class_labels]
        for span, text in texts.items()
        if any(map(str.isdigit, text))
    }
    sought = [*texts.values(), *(name for names in prefixed.values() for name in names)]
    terms = {catalogue_entry.iri.value for catalogue_entry in catalogue.properties}
    terms |= {catalogue_entry.type for catalogue_entry in catalogue.classes}
    named = {
        name: [iri for iri in iris if iri not in terms]
        for name, iris in find_names(list(dict.fromkeys(sought))).items()
    }
    shown = _values_by_name(catalogue)
    classes = {stem(label) for label in class_labels}
    taken: set[int] = set()
    for span, text in texts.items():
        if not taken.isdisjoint(span) or not numbers.isdisjoint(span):
            continue
        links = list(_value_links(frozenset(span), text, named, prefixed, shown, find_literals))
        if links:
            taken.update(span)
            yield from links
            for rest in _without_class(words, span, classes):
                rest_text = join_words(words, rest)
                args = (rest_text, named, prefixed, shown, find_literals)
                yield from _value_links(frozenset(rest), *args)


def _without_class(
    words: Sequence[LinkedWord], span: range, classes: Collection[str]
) -> Iterator[range]:
    """Yield the words of a name without the name of a class that begins or ends it: a thing that is
    called "Ohio River" is another than the river Ohio, and a question may mean either."""
    if len(span) > 1:
        if words[span[-1]].stem in classes:
            yield span[:-1]
        if words[span[0]].stem in classes:
            yield span[1:]


def _may_be_name(words: Sequence[LinkedWord]) -> bool:
    ends = words[0].lower, words[-1].lower
    return not any(
        word in STOP_WORDS or word in word_set("computing", "negations") for word in ends
    )


def _value_links(
    span: Span,
    text: str,
    named: Mapping[str, Sequence[str]],
    prefixed: Mapping[str, Sequence[str]],
    shown: Mapping[str, Mapping[Object, set[NamedNode]]],
    find_literals: FindLiterals,
) -> Iterator[ValueLink]:
    if entities := named.get(text):
        yield ValueLink(span, text, tuple(map(NamedNode, entities)), EXACT)
    folded = text.casefold()
    for value, properties in shown.get(folded, {}).items():
        if isinstance(value, Literal) or value.value not in named.get(text, ()):
            score = EXACT if isinstance(value, Literal) else BY_PART
            yield ValueLink(span, text, (value,), score, tuple(sorted(properties, key=str)))
    if folded not in shown and len(text) > 1:
        by_value: defaultdict[Object, list[NamedNode]] = defaultdict(list)
        for catalogue_entry, literal in find_literals(text):
            by_value[literal].append(catalogue_entry)
        for literal, known_properties in by_value.items():
            yield ValueLink(span, text, (literal,), EXACT, tuple(known_properties))
    for name in prefixed.get(text, ()):
        if entities := named.get(name):
            yield ValueLink(span, name, tuple(map(NamedNode, entities)), BY_STEMS)


def _values_by_name(catalogue: Catalogue) -> Mapping[str, Mapping[Object, set[NamedNode]]]:
    """Return the shown values by name, and by the part of a name before a bracket or comma."""
    by_name: defaultdict[str, defaultdict[Object, set[NamedNode]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for catalogue_entry in catalogue.properties:
        if catalogue_entry.kind in ("text", "entity"):
            for shown in catalogue_entry.values:
                name = shown.label.casefold()
                head = re.split(r"\s*[(,]", name)[0]
                for form in {name, head} - {""}:
                    by_name[form][shown.value].add(catalogue_entry.iri)
    return by_name


# --- numbers ----------------------------------------------------------------------------------


def _link_bounds(words: Sequence[LinkedWord]) -> Iterator[BoundLink]:
    """Yield the bounds that a question sets: "less than 400 euros", "before 1880", "between 10 and
    20 kg"."""
    at = 0
    lowers = [word.lower for word in words]
    while at < len(words):
        if (day := _read_days(words, at)) is not None:
            days, last = day
            order, start, _, _ = _order_before(words, at)
            if not order and at and lowers[at - 1] in ("in", "on", "during"):
                order, start = "=", at - 1
            if order:
                span = frozenset(range(start, last))
                yield BoundLink(span, order, Decimal(days[0].year), is_year=True, days=days)
            at = last
            continue
        number = _read_number(words, at)
        if number is None:
            at += 1
            continue
        value, unit, first, last = number
        is_year = not unit and bool(_YEAR.fullmatch(words[at].text))
        span = frozenset(range(first, last))
        if first >= 1 and lowers[first - 1] == "between" and last < len(words):
            upper = _read_number(words, last + 1) if lowers[last] == "and" else None
            if upper is not None:
                range_span = frozenset(range(first - 1, upper[3]))
                yield BoundLink(
                    range_span, ">=", value, unit or upper[1], upper[0], is_year and not upper[1]
                )
                at = upper[3]
                continue
        order, start, measures, names = _order_before(words, first)
        if order:
            span |= frozenset(range(start, first))
            yield BoundLink(span, order, value, unit, None, is_year, measures, names)
        elif is_year and first >= 1 and lowers[first - 1] in ("in", "of", "during"):
            yield BoundLink(span, "=", value, "", None, True)
        at = last


def _read_days(words: Sequence[LinkedWord], at: int) -> tuple[tuple[date, date], int] | None:
    """Return the first and last day of a date that begins at a word and has a day or a month, and
    the position after the date; None where no date begins."""
    for length in (3, 2, 1):
        text = " ".join(word.text for word in words[at : at + length])
        written = read_date(text) if at + length <= len(words) else None
        if written is not None and written.is_ordered and 1 <= written.first <= 12:
            year, month, day = written.year, written.first, written.second
            with suppress(ValueError):
                first = date(year, month, day or 1)
                last = first if day else first.replace(day=monthrange(year, month)[1])
                return (first, last), at + length
    return None


def _read_number(words: Sequence[LinkedWord], at: int) -> tuple[Decimal, str, int, int] | None:
    """Return the number at a word, its unit, and its first word and the one after its last."""
    if at >= len(words):
        return None
    numbers = load_tables("comparisons")["numbers"]
    text = words[at].lower
    if _NUMBER.fullmatch(text):
        value = Decimal(text.replace(",", ""))
    elif text in numbers:
        value = Decimal(numbers[text])
    else:
        return None
    last = at + 1
    while last < len(words) and words[last].lower in ("hundred", "thousand", "million", "billion"):
        value *= Decimal(numbers[words[last].lower])
        last += 1
    unit, first = "", at
    if at and words[at - 1].text in _CURRENCIES:
        unit, first = read_unit(words[at - 1].text), at - 1
    elif last < len(words) and (unit := read_unit(words[last].text)):
        last += 1
    return value, unit, first, last


def _order_before(
    words: Sequence[LinkedWord], at: int
) -> tuple[Order | None, int, tuple[str, ...], frozenset[str]]:
    """Return the order that the words before a number set, where they begin, and what is measured:
    "heavier than"."""
    orders = load_tables("computing")["orders"]
    for length in (3, 2, 1):
        phrase = " ".join(word.lower for word in words[max(0, at - length) : at])
        if at >= length and phrase in orders:
            return orders[phrase], at - length, (), frozenset()
    if at >= 2 and words[at - 1].lower == "than":
        adjective = words[at - 2].lower
        for scale, order in (("greater", ">"), ("smaller", "<")):
            entry = load_tables("comparisons")[scale].get(adjective)
            if entry:
                word, *measures = entry.split()
                return order, at - 2, tuple(measures), _names_of(word)  # type: ignore[return-value]
        if at >= 3 and words[at - 3].lower in ("more", "less"):
            entry = load_tables("comparisons")["graded"].get(adjective)
            if entry:
                word, *measures = entry.split()
                order_found: Order = ">" if words[at - 3].lower == "more" else "<"
                return order_found, at - 3, tuple(measures), _names_of(word)
    return None, at, (), frozenset()


def _names_of(adjective: str) -> frozenset[str]:
    """Return the stems of words for what an adjective measures: weigh, weight and mass of heavy."""
    nouns = load_tables("comparisons")["told_by"].get(adjective, "")
    return frozenset(map(stem, (adjective, *nouns.split())))


def unit_factor(unit: str, other: str) -> Decimal | None:
    """Return the factor that converts one unit to another; None for units of different
    dimensions."""
    (scale, unit), (other_scale, other) = _scale_of(unit), _scale_of(other)
    if unit == other:
        return scale / other_scale
    one, two = _measures().get(unit), _measures().get(other)
    if one is None or two is None or one[0] != two[0]:
        return None
    return scale * one[1] / (other_scale * two[1])


def bound_factor(link: BoundLink, unit: str) -> Decimal | None:
    """Return the factor that converts a bound to the unit of a property; None where the units don't
    fit. A bound without a unit that reaches the scale of the property's unit, such as millions, is
    a plain number, and a smaller one is in that unit."""
    if link.unit:
        return unit_factor(link.unit, unit) if unit else None
    scale, _ = _scale_of(unit)
    return 1 / scale if abs(link.number) >= scale else Decimal(1)


def _scale_of(unit: str) -> tuple[Decimal, str]:
    """Return the factor of a unit's scale, and the unit without it."""
    scale, rest = split_scale(unit)
    return Decimal(load_tables("comparisons")["numbers"][scale] if scale else 1), rest


def measure_of(unit: str) -> str:
    """Return what a unit measures, such as mass; money for currencies, empty where unknown."""
    from tgraph.ingest.table_values import is_currency

    if unit and is_currency(unit):
        return "money"
    return _measures().get(_scale_of(unit)[1], ("", Decimal(1)))[0]


@cache
def _measures() -> Mapping[str, tuple[str, Decimal]]:
    units: dict[str, tuple[str, Decimal]] = {}
    for measure, factors in load_tables("comparisons")["units"].items():
        for word, factor in factors.items():
            if (unit := read_unit(word)) and not measure.startswith("money"):
                units.setdefault(unit, (measure, Decimal(str(factor))))
    return units


# --- extremes and cues ------------------------------------------------------------------------


def _link_extremes(
    words: Sequence[LinkedWord], bounds: Sequence[BoundLink]
) -> Iterator[ExtremeLink]:
    taken: Span = frozenset().union(*(bound.span for bound in bounds))
    for at in range(len(words)):
        if at not in taken:
            graded = list(_link_graded(words, at))
            yield from graded or _link_superlative(words, at)


def _link_graded(words: Sequence[LinkedWord], at: int) -> Iterator[ExtremeLink]:
    """Yield what "more expensive than" and "most expensive" ask for."""
    lower, follows = words[at].lower, _lower_at(words, at + 1)
    graded = load_tables("comparisons")["graded"]
    if lower not in ("most", "least", "more", "less") or follows not in graded:
        return
    adjective, *measures = graded[follows].split()
    places, before = _places_before(words, at)
    is_comparative = lower in ("more", "less")
    span = before | {at, at + 1}
    if is_comparative and _lower_at(words, at + 2) == "than":
        span |= {at + 2}
    yield ExtremeLink(
        span,
        lower in ("most", "more"),
        tuple(measures),
        _names_of(adjective),
        places=places,
        is_comparative=is_comparative,
    )


def _link_superlative(words: Sequence[LinkedWord], at: int) -> Iterator[ExtremeLink]:
    """Yield what a word such as "heaviest", "heavier", "highest" or "first" asks for."""
    lower, tables = words[at].lower, load_tables("comparisons")
    places, before = _places_before(words, at)
    has_than = _lower_at(words, at + 1) == "than"
    for scale, is_most in (("greater", True), ("smaller", False)):
        if entry := tables[scale].get(lower):
            adjective, *measures = entry.split()
            yield ExtremeLink(
                before | ({at, at + 1} if has_than else {at}),
                is_most,
                tuple(measures),
                _names_of(adjective),
                places=places,
                is_comparative=lower.endswith("er") or has_than,
            )
    if lower in ("more", "less", "fewer") and has_than:
        yield ExtremeLink(frozenset((at, at + 1)), lower == "more", is_comparative=True)
    for name, is_most in (("greatest", True), ("least", False)):
        if lower in word_set("computing", name):
            yield ExtremeLink(before | {at}, is_most, places=places)
    if lower in word_set("computing", "sooner") or lower in word_set("computing", "later"):
        span = before | ({at, at + 1} if has_than else {at})
        is_later = lower in word_set("computing", "later")
        yield ExtremeLink(span, is_later, is_time=True, is_comparative=True)
    for name, is_most in (("earliest", False), ("latest", True)):
        if lower in word_set("computing", name):
            yield ExtremeLink(before | {at}, is_most, is_time=True, places=places)


def _link_degrees(words: Sequence[LinkedWord]) -> Iterator[ExtremeLink]:
    """Yield what "how heavy" and "how long" ask for."""
    tables = load_tables("comparisons")
    measures = {
        adjective: parts
        for scale in ("greater", "smaller", "graded")
        for adjective, *parts in map(str.split, tables[scale].values())
    }
    for at, word in enumerate(words):
        if word.lower in measures and at and words[at - 1].lower == "how":
            names = _names_of(word.lower)
            yield ExtremeLink(frozenset((at - 1, at)), True, tuple(measures[word.lower]), names)


@cache
def _quantities() -> Mapping[frozenset[str], tuple[str, ...]]:
    tables = load_tables("comparisons")
    return {
        _names_of(adjective): tuple(
            dict.fromkeys(
                map(
                    stem,
                    (adjective, *nouns.split(), *tables["told_also"].get(adjective, "").split()),
                )
            )
        )
        for adjective, nouns in tables["told_by"].items()
    }


def quantities_of(names: frozenset[str]) -> tuple[str, ...]:
    """Return the stems of words for what an adjective may measure, the nearest first."""
    return _quantities().get(names, tuple(sorted(names)))


def names_alike(word: str, name: str) -> bool:
    """Return whether a word can name a property that is called so."""
    return any(can_mean_same(stem(word), s) for s in _label_stems(name))


def _lower_at(words: Sequence[LinkedWord], at: int) -> str:
    return words[at].lower if at < len(words) else ""


def _places_before(words: Sequence[LinkedWord], at: int) -> tuple[int, Span]:
    """Return how many places a superlative asks for: three in "the three heaviest"."""
    places = _read_places(words[at - 1].lower) if at else 1
    return (places, frozenset((at - 1,))) if places > 1 else _places_beside(words)


def _places_beside(words: Sequence[LinkedWord]) -> tuple[int, Span]:
    """Return how many places are asked for before what is asked for: "top three", "which three
    bridges are", "the three bridges with"."""
    leads = word_set("computing", "place_leads")
    for at in range(1, len(words) - 1):
        if words[at - 1].lower in leads and (places := _read_places(words[at].lower)) > 1:
            if read_unit(words[at + 1].text) or words[at + 1].lower in STOP_WORDS:
                continue
            return places, frozenset((at,))
    return 1, frozenset()


def _read_places(word: str) -> int:
    numbers = load_tables("comparisons")["numbers"]
    number = int(word) if word.isdecimal() else int(numbers.get(word, 1))
    return number if 1 < number <= _MOST_PLACES else 1


_MOST_PLACES = 100


def _link_cues(words: Sequence[LinkedWord]) -> Iterator[tuple[CueKind, tuple[Span, ...]]]:
    kinds: tuple[tuple[CueKind, Iterable[str]], ...] = (
        ("count", word_list("computing", "count")),
        ("share", word_list("computing", "share")),
        ("sum", word_list("computing", "sum")),
        ("average", word_list("computing", "average")),
        ("difference", word_list("computing", "difference")),
        ("group", word_set("computing", "groups")),
        ("negation", word_set("computing", "negations")),
    )
    for kind, phrases in kinds:
        spans = [
            frozenset(range(at, at + len(parts)))
            for phrase in phrases
            for parts in [phrase.split("_")]
            for at in range(len(words) - len(parts) + 1)
            if [word.lower for word in words[at : at + len(parts)]] == parts
        ]
        if kind == "difference":
            spans = [
                span | {at}
                for span in spans
                for at, word in enumerate(words)
                if word.lower in ("between", "from") and at > max(span)
            ] or spans
        if spans:
            yield kind, tuple(sorted(spans, key=min))
    if words and words[0].lower in word_set("computing", "whether"):
        yield "whether", (frozenset((0,)),)


def _compares_numbers(words: Sequence[LinkedWord]) -> bool:
    """Return whether numbers of things are compared: "more pumps than"."""
    lowers = {word.lower for word in words}
    return "than" in lowers and not lowers.isdisjoint(word_set("computing", "more"))


def may_ask_computation(question: str) -> bool:
    """Return whether a question has words that ask for a computation, or for a list: without them
    nothing needs to be looked up to know that it asks for none."""
    words = tuple(_split_words(question))
    bounds = tuple(_link_bounds(words))
    cues = dict(_link_cues(words))
    return bool(
        bounds
        or cues.keys() & {"count", "share", "sum", "average", "difference", "negation", "group"}
        or any(True for _ in _link_extremes(words, bounds))
        or _compares_numbers(words)
        or (words and words[0].lower in word_set("computing", "listing"))
    )
