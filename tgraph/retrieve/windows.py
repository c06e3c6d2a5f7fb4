"""Windows: up to three sentences in a row, which answer together more often than one alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tgraph.retrieve.inquiry import Inquiry
from tgraph.retrieve.passages import Passage, combine, coverage, support

LONGEST = 3
"""Sentences in a window."""

GAP = 200
"""Characters that may lie between two sentences of a window: one that no edge rests on."""

COST = 0.019
"""What each sentence after the first has to be worth."""


@dataclass(frozen=True, slots=True)
class Window:
    """Sentences in a row and what they are worth together."""

    passages: tuple[Passage, ...]
    matches: Mapping[str, float]
    strict: Mapping[str, float]
    similar: float
    asked: float
    covered: float
    kind: float
    score: float


def windows(passages: Iterable[Passage], inquiry: Inquiry) -> list[Window]:
    """All windows of the passages, best first."""
    found = [
        of(row[start : start + size], inquiry)
        for row in _rows(passages)
        for start in range(len(row))
        for size in range(1, min(LONGEST, len(row) - start) + 1)
    ]
    return sorted(found, key=lambda w: (-w.score, len(w.passages), w.passages[0].evidence.iri))


def of(passages: Sequence[Passage], inquiry: Inquiry) -> Window:
    """The window of these sentences, scored."""
    matches = merged([p.matches for p in passages])
    similar = max(p.similar for p in passages)
    asked = max(p.asked for p in passages)
    covered = coverage(inquiry, matches)
    kind = max(p.kind for p in passages)
    best = max(passages, key=lambda p: p.score)
    points = combine(similar, asked, covered, kind, best.wording) - COST * (len(passages) - 1)
    points *= support(inquiry, merged(p.strict for p in passages), asked)
    strict = merged([p.strict for p in passages])
    return Window(tuple(passages), matches, strict, similar, asked, covered, kind, points)


def merged(matches: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The best match of each term."""
    found: dict[str, float] = {}
    for each in matches:
        for term, match in each.items():
            found[term] = max(match, found.get(term, 0.0))
    return found


def _rows(passages: Iterable[Passage]) -> Iterator[list[Passage]]:
    """Sentences that follow one another on their page; overlapping ones count once."""
    row: list[Passage] = []
    for passage in sorted(passages, key=_position):
        if row and _follows(row[-1], passage):
            row.append(passage)
        elif not row or not _within(row[-1], passage):
            yield row
            row = [passage]
    yield row


def _position(passage: Passage) -> tuple[str, int, int, int]:
    document, page, start, end = passage.place
    return document, page or 0, start, -end


def _within(before: Passage, after: Passage) -> bool:
    return before.place[:2] == after.place[:2] and after.place[3] <= before.place[3]


def _follows(before: Passage, after: Passage) -> bool:
    gap = after.place[2] - before.place[3]
    prose = all(p.wording.is_prose and not p.wording.is_row for p in (before, after))
    return before.place[:2] == after.place[:2] and 0 <= gap <= GAP and prose
