"""What holds at a date: claims say from when to when, and date the facts that they are read with.

A claim holds from its start to its end, each as exact as it is stated (the first day of the one to
the last day of the other); where one is missing it is open on that side, without either it always
holds. A place that states a fact is dated by the claims about one of the fact's ends that were read
from the same characters: it speaks of other times if all of these claims do. Whatever no claim
dates, holds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pyoxigraph import NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.sources import document_of_chunk, page_of_chunk, text_value
from tgraph.store.base import Store, text_of

_DATE = re.compile(r"(-?\d{4,})(?:-(\d\d))?(?:-(\d\d))?(?:T[\d:.]+)?(?:Z|[+-]\d\d:\d\d)?")

Day = tuple[int, int, int]
Page = tuple[str, int | None]


def span_of(text: str) -> tuple[Day, Day] | None:
    """The first and the last day that a year, a month, a date or a time means; None for no date."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = (int(part) if part else 0 for part in match.groups())
    return (year, month or 1, day or 1), (year, month or 12, day or 31)


def holds(started: str, ended: str, at: tuple[Day, Day]) -> bool:
    """Whether what holds between two dates, either of which may be empty, does so on one of the
    days. Dates that contradict each other say nothing."""
    start, end = span_of(started), span_of(ended)
    if start and end and start[0] > end[1]:
        return True
    return not ((start and start[0] > at[1]) or (end and end[1] < at[0]))


@dataclass(frozen=True, slots=True)
class _DatedPlace:
    """Where an evidence stands, and the entities that its claim or its edge is about."""

    evidence: str
    about: frozenset[str]
    start: int
    end: int
    holds: bool = True

    def dates(self, other: _DatedPlace) -> bool:
        meet = self.start < other.end and other.start < self.end
        return meet and not self.about.isdisjoint(other.about)


class Validity:
    """Reads which evidence speaks of other times than ``at``, a span of days."""

    def __init__(self, store: Store, at: tuple[Day, Day], evidence: Iterable[str]) -> None:
        self._store = store
        self._at = at
        self._evidence = list(evidence)

    @cached_property
    def left_out(self) -> set[str]:
        """The evidence of claims that don't hold then, and of facts that these alone date."""
        claims = [claim for found in self._claims.values() for claim in found]
        return {claim.evidence for claim in claims if not claim.holds} | set(self._facts())

    @property
    def is_dated(self) -> bool:
        """Whether any of the evidence is of a claim with a date."""
        return any(
            self._text(evidence, "claimStart") or self._text(evidence, "claimEnd")
            for evidence in self._evidence
        )

    @cached_property
    def _claims(self) -> dict[Page, list[_DatedPlace]]:
        found: defaultdict[Page, list[_DatedPlace]] = defaultdict(list)
        for evidence in self._evidence:
            if self._text(evidence, "claim"):
                about = {self._text(evidence, "subject"), self._text(evidence, "object")} - {""}
                dates = self._text(evidence, "claimStart"), self._text(evidence, "claimEnd")
                page, place = self._place(evidence, about, holds(*dates, self._at))
                found[page].append(place)
        return found

    def _facts(self) -> Iterable[str]:
        if all(claim.holds for claims in self._claims.values() for claim in claims):
            return
        for evidence in self._evidence:
            if edge := self._text(evidence, "edge"):
                page, place = self._place(evidence, self._ends(edge))
                dating = [claim for claim in self._claims.get(page, ()) if claim.dates(place)]
                if dating and not any(claim.holds for claim in dating):
                    yield evidence

    def _place(
        self, evidence: str, about: set[str], holds: bool = True
    ) -> tuple[Page, _DatedPlace]:
        chunk = text_value(self._store, evidence, v.prov("wasDerivedFrom"))
        start = int(self._text(evidence, "charOffset") or 0)
        end = start + int(self._text(evidence, "charLength") or 0)
        page = document_of_chunk(chunk), page_of_chunk(chunk)
        return page, _DatedPlace(evidence, frozenset(about), start, end, holds)

    def _ends(self, edge: str) -> set[str]:
        quads = self._store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        triples = (quad.object for quad in quads)
        return {
            text_of(end)
            for triple in triples
            if isinstance(triple, Triple)
            for end in (triple.subject, triple.object)
        }

    def _text(self, evidence: str, name: str) -> str:
        return text_value(self._store, evidence, v.tg(name))
