"""Columns that are called after years ("1990", ``incidents_85_99``), and the words of a question
that say which of them is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_IN_NAME = re.compile(r"(?:^|\s)(?:([12]\d{3})|(\d{4}|\d{2})\s?[\s–/-]\s?(\d{4}|\d{2}))$")
_YEAR = re.compile(r"[12]\d{3}")
_IN_WORD = re.compile(r"(\d{4}|\d{2})[–/-](\d{4}|\d{2})")
_BEFORE = frozenset(("in", "during", "for", "of", "from", "between", "over"))
_BETWEEN = frozenset(("to", "and", "until", "till", "through"))


class Period(NamedTuple):
    """The first and the last year, each as it is written, of two digits or four."""

    first: str
    last: str

    def is_same(self, other: Period) -> bool:
        """Return whether two periods are one, as far as their digits say."""
        return all(
            one == two if len(one) == len(two) else one[-2:] == two[-2:]
            for one, two in zip(self, other, strict=True)
        )


def split_period(name: str) -> tuple[str, Period | None]:
    """Return a column's name without the year or the years at its end, and these years."""
    plain = " ".join(name.replace("_", " ").split())
    match = _IN_NAME.search(plain)
    if match is None:
        return plain, None
    period = Period(match[1] or match[2], match[1] or match[3])
    return plain[: match.start()], period if _is_ordered(period) else None


def find_periods(words: Sequence[str]) -> Iterator[tuple[frozenset[int], Period]]:
    """Yield the years and ranges of years in a question with the places of their words: "in 1990",
    "from 2000 to 2014", "85-99"."""
    at = 0
    while at < len(words):
        period, end = _read_period(words, at)
        if period is not None:
            start = at - 1 if at and words[at - 1].lower() in _BEFORE else at
            yield frozenset(range(start, end)), period
        at = end


def _read_period(words: Sequence[str], at: int) -> tuple[Period | None, int]:
    text = words[at]
    if match := _IN_WORD.fullmatch(text):
        period = Period(match[1], match[2])
        return period if _is_ordered(period) else None, at + 1
    if not _YEAR.fullmatch(text):
        return None, at + 1
    is_range = (
        at + 2 < len(words) and words[at + 1].lower() in _BETWEEN and _YEAR.fullmatch(words[at + 2])
    )
    return (Period(text, words[at + 2]), at + 3) if is_range else (Period(text, text), at + 1)


def _is_ordered(period: Period) -> bool:
    """Return whether the years of a range follow one another, over a century at most where two
    digits write them."""
    first, last = period
    return min(len(first), len(last)) == 2 or int(first) <= int(last)
