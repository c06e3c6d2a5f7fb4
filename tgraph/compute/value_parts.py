"""Values of tables that a question names in part, or writes in another way: "kenya" of "Nairobi,
Kenya", "first" of "1st", "october 3" of 2009-10-03."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from pyoxigraph import NamedNode

from tgraph.compute.linking import LinkedWord, Span, ValueLink, join_words
from tgraph.index.catalogue import Catalogue
from tgraph.model import Object
from tgraph.resources import load_tables
from tgraph.retrieve.text.lexical import STOP_WORDS, stem

Tokens = tuple[str, ...]

MOST_NAMED_ROWS = 2_000
"""Rows of tables whose names are looked at for parts."""

LONGEST_PART = 8
"""The words of a part that is looked for."""

LEAST_PART = 0.5
"""How sure a link is that rests on the least part of a value."""

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*", re.UNICODE)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_DATE = re.compile(r"(-?\d{4})-(\d{2})-(\d{2})")


@dataclass(frozen=True, slots=True)
class _IndexedValue:
    """A way to write a value, of one property or, without one, the name of a row."""

    tokens: Tokens
    value: Object
    property: NamedNode | None


@dataclass(frozen=True, slots=True)
class ValueIndex:
    """The values of the catalogue and the names of rows, by their words."""

    by_token: Mapping[str, Sequence[_IndexedValue]] = field(default_factory=dict)

    def link_parts(self, words: Sequence[LinkedWord], taken: Span) -> list[ValueLink]:
        """Return the links of words to values that have them, the longest of those that overlap;
        ``taken`` are words that name whole values, of which a part says nothing more."""
        tokens = [_token(word.lower) for word in words]
        links_kept: list[ValueLink] = []
        covered: set[int] = set()
        for length in range(min(LONGEST_PART, len(tokens)), 0, -1):
            for start in range(len(tokens) - length + 1):
                span = frozenset(range(start, start + length))
                if span <= taken or not covered.isdisjoint(span):
                    continue
                links = list(self._links_of(tuple(tokens[start : start + length]), words, span))
                if links:
                    covered |= span
                    links_kept += links
        return links_kept

    def _links_of(
        self, part: Tokens, words: Sequence[LinkedWord], span: Span
    ) -> Iterator[ValueLink]:
        first, last = words[min(span)], words[max(span)]
        may_be_part = first.lower not in STOP_WORDS and last.lower not in STOP_WORDS
        if not may_be_part and len(part) == 1:
            return
        if len(part) == 1 and len(part[0]) < 3 and not part[0].isdigit():
            return
        scores_found: defaultdict[NamedNode | None, dict[Object, float]] = defaultdict(dict)
        for entry in self.by_token.get(part[0], ()):
            if _contains(entry.tokens, part):
                score = LEAST_PART + (0.95 - LEAST_PART) * _share(part, entry.tokens)
                values = scores_found[entry.property]
                values[entry.value] = max(score, values.get(entry.value, 0.0))
        text = join_words(words, span)
        for iri, values in scores_found.items():
            complete = [value for value, score in values.items() if score > 0.94]
            if not complete and not may_be_part:
                continue
            chosen = tuple(complete or values)
            best = max(values[value] for value in chosen)
            yield ValueLink(span, text, chosen, best, (iri,) if iri else ())


def index_values(catalogue: Catalogue, names: Mapping[NamedNode, str]) -> ValueIndex:
    """Return the index of the catalogue's values; ``names`` are those of the rows of tables."""
    by_token: defaultdict[str, list[_IndexedValue]] = defaultdict(list)
    columns = {c.property for known in catalogue.classes for c in known.columns}
    for known in catalogue.properties:
        if known.iri not in columns:
            continue
        for frequent in known.values:
            _add(by_token, frequent.label, frequent.value, known.iri)
    for row, name in names.items():
        _add(by_token, name, row, None)
    return ValueIndex(dict(by_token))


def _add(
    by_token: defaultdict[str, list[_IndexedValue]], text: str, value: Object, iri: NamedNode | None
) -> None:
    for tokens in _writings(text):
        entry = _IndexedValue(tokens, value, iri)
        for token in dict.fromkeys(tokens):
            by_token[token].append(entry)


def _writings(text: str) -> Iterable[Tokens]:
    """Return the ways to write a text: of a date also those with the name of the month."""
    plain = tuple(
        map(
            _token,
            _TOKEN.findall(text.lower().replace(",", "") if _is_amount(text) else text.lower()),
        )
    )
    ways = [plain] if plain else []
    if match := _DATE.match(text):
        year, month, day = match[1], _month_name(int(match[2])), str(int(match[3]))
        ways += [(month, day, year), (day, month, year), (month, year)]
    return ways


def _is_amount(text: str) -> bool:
    return text[:1].isdigit() and not re.search(r"[^\d,.]", text)


@cache
def _month_name(number: int) -> str:
    return stem(load_tables("tables")["months"][str(number)].split()[0])


def _token(word: str) -> str:
    """Return a word as it is compared: ordinals and words for numbers as digits."""
    ordinals, numbers = load_tables("computing")["ordinals"], load_tables("comparisons")["numbers"]
    if match := _ORDINAL.fullmatch(word):
        return match[1]
    if word in ordinals:
        return str(ordinals[word])
    if word in numbers:
        return str(numbers[word])
    return stem(word.replace(",", "")) if not word[:1].isdigit() else word.replace(",", "")


def _contains(tokens: Tokens, part: Tokens) -> bool:
    return any(tokens[at : at + len(part)] == part for at in range(len(tokens) - len(part) + 1))


def _share(part: Tokens, tokens: Tokens) -> float:
    return sum(map(len, part)) / max(1, sum(map(len, tokens)))
