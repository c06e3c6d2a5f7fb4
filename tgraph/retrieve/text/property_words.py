"""Words that can name one property, such as "launch" and "build"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache

from tgraph.resources import load_tables
from tgraph.retrieve.text.lexical import stem


@cache
def load_property_groups() -> Mapping[str, frozenset[int]]:
    """Return for each stem the numbers of the groups of ``computing.toml`` that hold its word."""
    groups: defaultdict[str, set[int]] = defaultdict(set)
    for number, line in enumerate(load_tables("computing")["properties"].splitlines()):
        for word in line.split():
            for form in _inflect(word):
                groups[stem(form)].add(number)
    return {word: frozenset(numbers) for word, numbers in groups.items()}


def can_mean_same(one: str, other: str) -> bool:
    """Return whether two stems are equal, or their words can name one property."""
    groups = load_property_groups()
    return one == other or not groups.get(one, frozenset()).isdisjoint(
        groups.get(other, frozenset())
    )


def _inflect(word: str) -> Iterator[str]:
    """Yield a word and the forms that its regular endings give, whose stems may differ."""
    base = word.removesuffix("e")
    yield from (word, f"{word}s", f"{base}ed", f"{base}ing", f"{base}er")
