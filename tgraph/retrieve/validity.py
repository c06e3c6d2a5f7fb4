"""Temporal validity: claim dates and dated facts.

A claim holds from start to end, each as exact as stated (first day of the start, last day of
the end). A missing date leaves that side open; claims without dates always hold. A fact place
is dated by claims about either fact end read from overlapping characters; the place is outdated
if all these claims are outdated. Undated evidence holds."""

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
PageKey = tuple[str, int | None]


def span_of(text: str) -> tuple[Day, Day] | None:
    """Return first and last day denoted by a year, month, date or time; other texts return
    None."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = (int(part) if part else 0 for part in match.groups())
    return (year, month or 1, day or 1), (year, month or 12, day or 31)


def claim_holds(started: str, ended: str, at: tuple[Day, Day]) -> bool:
    """Return whether a period between two dates, possibly empty, includes any requested day.

    Contradictory dates restrict nothing."""
    start, end = span_of(started), span_of(ended)
    if start and end and start[0] > end[1]:
        return True
    return not ((start and start[0] > at[1]) or (end and end[1] < at[0]))


@dataclass(frozen=True, slots=True)
class _DatedPlace:
    """An evidence place, with entities from its claim or edge."""

    evidence: str
    about: frozenset[str]
    start: int
    end: int
    holds: bool = True

    def dates(self, other: _DatedPlace) -> bool:
        meet = self.start < other.end and other.start < self.end
        return meet and not self.about.isdisjoint(other.about)


class Validity:
    """Temporal evidence filter for ``at``, a span of days."""

    def __init__(self, store: Store, at: tuple[Day, Day], evidence: Iterable[str]) -> None:
        self._store = store
        self._at = at
        self._evidence = list(evidence)

    @cached_property
    def left_out(self) -> set[str]:
        """Evidence from claims invalid at ``at``, plus facts dated only by such claims."""
        claims = [claim for page_claims in self._dated_claims.values() for claim in page_claims]
        return {claim.evidence for claim in claims if not claim.holds} | set(self._outdated_facts())

    @property
    def is_dated(self) -> bool:
        """Return whether any evidence belongs to a dated claim."""
        return any(
            self._read_text(evidence, "claimStart") or self._read_text(evidence, "claimEnd")
            for evidence in self._evidence
        )

    @cached_property
    def _dated_claims(self) -> dict[PageKey, list[_DatedPlace]]:
        claims_by_page: defaultdict[PageKey, list[_DatedPlace]] = defaultdict(list)
        for evidence in self._evidence:
            if self._read_text(evidence, "claim"):
                entities = {
                    self._read_text(evidence, "subject"),
                    self._read_text(evidence, "object"),
                } - {""}
                dates = (
                    self._read_text(evidence, "claimStart"),
                    self._read_text(evidence, "claimEnd"),
                )
                page, place = self._locate_evidence(
                    evidence, entities, claim_holds(*dates, self._at)
                )
                claims_by_page[page].append(place)
        return claims_by_page

    def _outdated_facts(self) -> Iterable[str]:
        if all(claim.holds for claims in self._dated_claims.values() for claim in claims):
            return
        for evidence in self._evidence:
            if edge := self._read_text(evidence, "edge"):
                page, place = self._locate_evidence(evidence, self._edge_ends(edge))
                dating = [claim for claim in self._dated_claims.get(page, ()) if claim.dates(place)]
                if dating and not any(claim.holds for claim in dating):
                    yield evidence

    def _locate_evidence(
        self, evidence: str, about: set[str], holds: bool = True
    ) -> tuple[PageKey, _DatedPlace]:
        chunk = text_value(self._store, evidence, v.prov("wasDerivedFrom"))
        start = int(self._read_text(evidence, "charOffset") or 0)
        end = start + int(self._read_text(evidence, "charLength") or 0)
        page = document_of_chunk(chunk), page_of_chunk(chunk)
        return page, _DatedPlace(evidence, frozenset(about), start, end, holds)

    def _edge_ends(self, edge: str) -> set[str]:
        quads = self._store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        triples = (quad.object for quad in quads)
        return {
            text_of(end)
            for triple in triples
            if isinstance(triple, Triple)
            for end in (triple.subject, triple.object)
        }

    def _read_text(self, evidence: str, name: str) -> str:
        return text_value(self._store, evidence, v.tg(name))
