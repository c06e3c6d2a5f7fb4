"""Links from the words of a question to what the catalogue has: classes, properties, values,
numbers with units, years, and the words that ask for a computation."""

from __future__ import annotations

import re
from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph.compute.algebra import Order
from tgraph.compute.periods import find_periods, split_period
from tgraph.index.catalogue import Catalogue, KnownClass, KnownProperty
from tgraph.ingest.table_values import read_date, read_unit
from tgraph.ingest.unit_conversion import scale_of, unit_factor
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
    """A word of a question: as written, in lower case without possessive ending, its stem, and the
    signs that follow it."""

    text: str
    lower: str
    stem: str
    after: str = ""


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
    """All links of a question; ``parts`` are words that are part of values, ``cues`` the words
    that ask for a computation, by kind, ``verb`` is a verb that nothing is called."""

    words: tuple[LinkedWord, ...]
    classes: tuple[ClassLink, ...] = ()
    properties: tuple[PropertyLink, ...] = ()
    values: tuple[ValueLink, ...] = ()
    bounds: tuple[BoundLink, ...] = ()
    extremes: tuple[ExtremeLink, ...] = ()
    degrees: tuple[ExtremeLink, ...] = ()
    cues: Mapping[CueKind, tuple[Span, ...]] = field(default_factory=dict)
    verb: Span = frozenset()

    def text(self, span: Span) -> str:
        """Return the words of a span as they stand in the question."""
        return join_words(self.words, span)

    def cue(self, kind: CueKind) -> Span:
        """Return the words of all cues of a kind."""
        return frozenset().union(*self.cues.get(kind, ()))

    @property
    def comparing(self) -> tuple[ExtremeLink, ...]:
        """The comparatives before an amount that two rows are compared by: "more beer than"."""
        lowers = [word.lower for word in self.words]
        more, than = word_set("computing", "quantities"), word_set("computing", "than")
        return tuple(
            ExtremeLink(frozenset((at, end)), lowers[at] == "more", is_comparative=True)
            for at, end in product(range(len(lowers)), repeat=2)
            if lowers[at] in more and lowers[end] in than and end > at + 1
        )

    def counting(self, span: Span) -> Span:
        """Return the words before a span that ask how many: "how many beds are there in total" asks
        for the sum of beds."""
        cue = self.cue("count")
        return cue if cue and max(cue) + 1 == min(span, default=0) else frozenset()

    def verb_before(self, span: Span) -> Span:
        """Return the verb, where nothing but free words stands between it and a span."""
        start, end = max(self.verb, default=0), min(span, default=0)
        between = range(start + 1, end)
        return self.verb if start < end and self.content.isdisjoint(between) else Span()

    @property
    def content(self) -> Span:
        """The positions of content words, which a query must account for; words that only shape
        the question are left out."""
        free = _free_words()
        return frozenset(at for at, word in enumerate(self.words) if word.lower not in free)


def join_words(words: Sequence[LinkedWord], span: Collection[int]) -> str:
    """Return the words at some positions, in their order."""
    return " ".join(words[at].text for at in sorted(span))


def _write_signs(words: Sequence[LinkedWord]) -> str:
    """Return words with the signs between them, as a name with a comma or brackets is written."""
    text = "".join(word.text + word.after for word in words[:-1]) + words[-1].text
    is_open = text.count("(") > text.count(")") and words[-1].after.startswith(")")
    return f"{text})" if is_open else text


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
    name_links = list(
        _drop_forms(words, [*_link_classes(words, catalogue), *_link_properties(words, catalogue)])
    )
    classes = tuple(link for link in name_links if isinstance(link, ClassLink))
    class_spans = {link.span for link in classes if len(link.span) > 1}
    properties = tuple(
        link
        for link in name_links
        if isinstance(link, PropertyLink)
        if link.score > BY_PART or not any(link.span < span for span in class_spans)
    )  # "fight" in "fight songs" is no number of fights
    bounds += tuple(_link_amounts(words, properties, bounds))
    links = QuestionLinks(
        words,
        classes,
        properties,
        tuple(_link_values(words, catalogue, find_names, find_literals, bounds)),
        bounds=bounds,
        extremes=extremes,
        degrees=tuple(_link_degrees(words)),
        cues=dict(_link_cues(words)),
    )
    names = [link.span for link in links.properties if len(link.span) > 1]
    ordered = (
        link for link in extremes if not (link.is_time and any(link.span < name for name in names))
    )  # a "last name" is no last in time
    links = _link_periods(replace(links, extremes=tuple(ordered)), catalogue)
    return replace(links, verb=_find_verb(links))


def _link_amounts(
    words: Sequence[LinkedWord], properties: Sequence[PropertyLink], bounds: Sequence[BoundLink]
) -> Iterator[BoundLink]:
    """Yield the amounts that things shall have: "with 5 stars", where stars are a number."""
    bounded: Span = frozenset().union(*(bound.span for bound in bounds))
    starts = {
        min(link.span)
        for link in properties
        if link.score > BY_SYNONYM and link.known.kind == "number"
    }
    for at in starts:
        number = _read_number(words, at - 1) if at > 1 and at - 1 not in bounded else None
        having = word_set("computing", "having")
        if number is not None and not number[1] and words[at - 2].lower in having:
            yield BoundLink(frozenset((at - 1,)), "=", number[0])


def _link_periods(links: QuestionLinks, catalogue: Catalogue) -> QuestionLinks:
    """Return the links where the question names years that columns are called after: to these
    columns and not to those of other years, and no bounds on what has a year."""
    dated = {column.iri: split_period(column.name) for column in catalogue.properties}
    properties, bounds = list(links.properties), list(links.bounds)
    for span, period in find_periods([word.text for word in links.words]):
        columns = [
            column
            for column in catalogue.properties
            if (years := dated[column.iri][1]) and years.is_same(period)
        ]
        if columns:
            properties = [link for link in properties if not dated[link.known.iri][1]]
            bounds = [bound for bound in bounds if bound.span.isdisjoint(span)]
            for column in columns:
                properties += _link_dated(column, dated[column.iri][0], span, links.words)
    return replace(links, properties=tuple(properties), bounds=tuple(bounds))


def _link_dated(
    known: KnownProperty, name: str, span: Span, words: Sequence[LinkedWord]
) -> Iterator[PropertyLink]:
    """Yield links to a column whose name ends with years. ``span`` holds the question's words for
    the years; a link adds the words for the rest of the column's name, or some of these words."""
    stems = _label_stems(name)
    if not stems:
        yield PropertyLink(span, known, BY_STEMS)
        return
    spans = list(_spans_of(stems, words)) or list(_scattered_spans(stems, words))
    yield from (PropertyLink(span | name_span, known, BY_STEMS) for name_span in spans)
    parts = frozenset(at for at, word in enumerate(words) if word.stem in stems and at not in span)
    if parts and not spans:
        yield PropertyLink(span | parts, known, BY_PART)


def _find_verb(links: QuestionLinks) -> Span:
    """Return the verb that connects a class with what is asked of it, where it is the only word
    that nothing in the catalogue is called: "bridges cross the Ask". What else is done to a thing
    ("painted in Oslo") is no column's matter."""
    groups = (links.classes, links.properties, links.values, links.bounds, links.extremes)
    spans = [link.span for group in groups for link in group]
    unlinked = links.content.difference(*spans, *map(links.cue, links.cues))
    if len(unlinked) != 1:
        return frozenset()
    at, lowers = min(unlinked), [word.lower for word in links.words]
    word, before, after = links.words[at].text, lowers[:at], lowers[at + 1 :]
    helping, denying = word_set("computing", "whether"), word_set("computing", "denying_verbs")
    if not before or not after or not word.isalpha() or not word.islower() or word in denying:
        return frozenset()
    if before[-1] in ("that", "which", "who"):
        before = before[:-1]
    follows = any(max(link.span) + 1 == len(before) for link in links.classes)
    is_noun = after[0] in helping or word.endswith(("er", "or", "ers", "ors"))
    is_third = word.endswith("s") and not word.endswith("ss")
    agrees = word.endswith("ed") or " ".join(before).endswith("s") != is_third
    return unlinked if follows and agrees and not is_noun else frozenset()


def number_words(words: Sequence[LinkedWord], bounds: Sequence[BoundLink]) -> Span:
    """Return the words that are no value by themselves: of bounds, and numbers that are written
    out, such as "three"."""
    numbers = load_tables("comparisons")["numbers"]
    written = frozenset(at for at, word in enumerate(words) if word.lower in numbers)
    return written.union(*(bound.span for bound in bounds), _places_beside(words)[1])


def _split_words(question: str) -> Iterator[LinkedWord]:
    matches = list(_WORD.finditer(question))
    ends = [*(match.start() for match in matches[1:]), len(question)]
    for match, end in zip(matches, ends, strict=False):  # of no words there is one end
        text = match.group()
        parts = [text]
        if unit := _NUMBER_UNIT.fullmatch(text):
            parts = [unit[1], unit[2]] if read_unit(unit[2]) else [text]
        for part in parts:
            base = _POSSESSIVE.sub("", part) or part
            lower = part.lower().replace("’", "'")
            lower = lower if lower in word_set("computing", "negations") else base.lower()
            signs = question[match.end() : end] if part == parts[-1] else ""
            yield LinkedWord(base, lower, stem(base.lower()), part.removeprefix(base) + signs)


# --- classes and properties -------------------------------------------------------------------


def _label_stems(label: str) -> tuple[str, ...]:
    return tuple(stem(word.lower()) for word in _WORD.findall(label.replace("_", " ")))


def _drop_forms(
    words: Sequence[LinkedWord], links: Sequence[ClassLink | PropertyLink]
) -> Iterator[ClassLink | PropertyLink]:
    """Yield the links without those of a word that is only a form of a name, where it is the name
    of another, but for a plural: "songs" are no "sings"."""

    def is_same(link: ClassLink | PropertyLink) -> bool:
        known = link.known
        labels = (
            (known.name,) if isinstance(known, KnownProperty) else (known.type_label, known.label)
        )
        word = words[min(link.span)].lower.removesuffix("s")
        return word in {label.casefold().removesuffix("s") for label in (*labels, *known.synonyms)}

    single = [link for link in links if len(link.span) == 1 and link.score > BY_SYNONYM]
    same = {link.span for link in single if is_same(link)}
    yield from (
        link for link in links if link not in single or link.span not in same or is_same(link)
    )


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
        stems = filter(None, map(_label_stems, labels))
        spans = dict.fromkeys(span for parts in stems for span in _spans_of(parts, words))
        for span in spans:
            yield ClassLink(span, catalogue_entry, EXACT)
            if (after := frozenset((max(span) + 1,))) in spans and not after <= span:
                yield ClassLink(span | after, catalogue_entry, EXACT)  # its type and its caption


def _link_properties(words: Sequence[LinkedWord], catalogue: Catalogue) -> Iterator[PropertyLink]:
    heads = {one.name.casefold() for one in catalogue.properties}
    for catalogue_entry in catalogue.properties:
        name = _written_name(catalogue_entry, words).replace("-", " ")
        stems = [s for s in _label_stems(name) if s not in STOP_WORDS] or list(_label_stems(name))
        label_spans = list(_spans_of(stems, words)) if stems else []
        for synonym in map(_label_stems, (catalogue_entry.name, *catalogue_entry.synonyms)):
            label_spans += _spans_of(synonym, words) if synonym else ()
        label_spans = list(dict.fromkeys(label_spans)) or list(_scattered_spans(stems, words))
        if catalogue_entry.kind == "number":
            label_spans = [_with_measure(span, words, heads) for span in label_spans]
        yield from (PropertyLink(span, catalogue_entry, BY_STEMS) for span in label_spans)
        covered: Span = frozenset().union(*label_spans)
        if not covered:
            yield from (PropertyLink(s, catalogue_entry, BY_PART) for s in _runs_of(stems, words))
        if " per " in name and all(word.lower != "per" for word in words):
            continue  # neither part of "electors per seat" means the ratio
        for at, word in enumerate(words):
            if at in covered or word.lower in STOP_WORDS:
                continue
            if word.stem in stems or (at and _is_in_unit(words[at - 1 : at + 1], catalogue_entry)):
                yield PropertyLink(frozenset((at,)), catalogue_entry, BY_PART)
            elif any(can_mean_same(word.stem, s) for s in stems):
                yield PropertyLink(frozenset((at,)), catalogue_entry, BY_SYNONYM)


def _runs_of(stems: Sequence[str], words: Sequence[LinkedWord]) -> Iterator[Span]:
    """Yield several words beside each other that a name has in this order: "last reviewed" of "date
    of last review"."""
    for start in range(len(words)):
        end = start + 1
        while end < len(words) and _follow_in(stems, words[start : end + 1]):
            end += 1
        if end - start > 1 and _follow_in(stems, words[start:end]):
            yield frozenset(range(start, end))


def _follow_in(stems: Sequence[str], words: Sequence[LinkedWord]) -> bool:
    run = [word.stem for word in words]
    return any(list(stems[at : at + len(run)]) == run for at in range(len(stems)))


def _with_measure(span: Span, words: Sequence[LinkedWord], heads: Collection[str]) -> Span:
    """Return the words of a name of numbers with a word for a number that follows, which is no name
    itself: the "score" of "Metacritic score"."""
    after = max(span) + 1
    follows = _lower_at(words, after)
    is_measure = follows in word_set("computing", "measure_nouns") and follows not in heads
    return span | {after} if is_measure else span


def _written_name(known: KnownProperty, words: Sequence[LinkedWord]) -> str:
    """Return what a property is called, as two words where these are glued together and the
    question doesn't write them so."""
    name = known.name
    parts = next((synonym for synonym in known.synonyms if synonym.replace(" ", "") == name), name)
    return name if any(word.lower == name for word in words) else parts


def _is_in_unit(words: Sequence[LinkedWord], known: KnownProperty) -> bool:
    """Return whether two words are "in" and the unit of a property, or one in its name."""
    unit = read_unit(words[1].lower) if words[0].lower == "in" else ""
    return bool(unit) and unit in {known.unit, *map(read_unit, known.name.lower().split())}


def _scattered_spans(stems: Sequence[str], words: Sequence[LinkedWord]) -> Iterator[Span]:
    """Yield the words of a name in another order, with nothing but stop words between: "servings of
    beer" for beer servings."""
    places = [at for at, word in enumerate(words) if word.stem in stems]
    span = frozenset(places)
    if len(stems) > 1 and len(places) == len(stems) == len({words[at].stem for at in span}):
        between = range(min(span), max(span))
        if all(at in span or words[at].lower in STOP_WORDS for at in between):
            yield span


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
    bounds: Sequence[BoundLink],
) -> Iterator[ValueLink]:
    """Yield what spans name: the longest first, and of overlapping ones only the longest. A number
    that is written out may be part of a name: "Big Ten"."""
    numbers = number_words(words, bounds)
    bounded = _places_beside(words)[1].union(*(bound.span for bound in bounds))
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
    written = {span: _write_signs(words[span.start : span.stop]) for span in spans}
    sought = [
        *written.values(),
        *texts.values(),
        *(name for names in prefixed.values() for name in names),
    ]
    terms = {catalogue_entry.iri.value for catalogue_entry in catalogue.properties}
    terms |= {catalogue_entry.type for catalogue_entry in catalogue.classes}
    by_name = {
        name: [iri for iri in iris if iri not in terms]
        for name, iris in find_names(list(dict.fromkeys(sought))).items()
    }
    shown = _values_by_name(catalogue)
    classes = {stem(label) for label in class_labels}
    covered: set[int] = set()
    for span, text in texts.items():
        if not covered.isdisjoint(span) or numbers.issuperset(span) or not bounded.isdisjoint(span):
            continue
        links: list[ValueLink] = []
        for name in dict.fromkeys((written[span], text)):
            links = links or list(
                _value_links(frozenset(span), name, by_name, prefixed, shown, find_literals)
            )
        if links:
            covered.update(span)
            yield from links
            for rest in _without_class(words, span, classes):
                rest_text = join_words(words, rest)
                args = (rest_text, by_name, prefixed, shown, find_literals)
                yield from _value_links(frozenset(rest), *args)
    yield from _link_truths(words, catalogue, frozenset(covered))


def _link_truths(
    words: Sequence[LinkedWord], catalogue: Catalogue, covered: Span
) -> Iterator[ValueLink]:
    """Yield what names a property whose values say yes or no: "chocolate" is a yes in the column
    chocolate."""
    for column in catalogue.properties:
        stems = _label_stems(column.name)
        if column.truth is not None and stems:
            for span in _spans_of(stems, words):
                if not span <= covered:
                    yield ValueLink(span, "yes", (column.truth,), BY_STEMS, (column.iri,))


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
    has_article = len(words) > 1 and words[0].text == "The"  # a name: "The Beatles"
    ends = words[1 if has_article else 0].lower, words[-1].lower
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


_MOST_QUALIFYING = 3
"""Words after the comma or bracket of a name: "Spartanburg, SC"; more are a text of their own."""


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
                is_name = len(name.split()) - len(head.split()) <= _MOST_QUALIFYING
                for form in {name, head if is_name else ""} - {""}:
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


def bound_factor(link: BoundLink, unit: str) -> Decimal | None:
    """Return the factor that converts a bound to the unit of a property; None where the units don't
    fit. A bound without a unit that reaches the scale of the property's unit, such as millions, is
    a plain number, and a smaller one is in that unit."""
    if link.unit:
        return unit_factor(link.unit, unit) if unit else None
    scale, _ = scale_of(unit)
    return 1 / scale if abs(link.number) >= scale else Decimal(1)


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
            follows = words[at + 1].lower
            if read_unit(follows) or (follows in STOP_WORDS and follows not in ("by", "with")):
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
