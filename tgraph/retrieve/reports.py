"""The communities and their reports as one published state has them, read once for many questions.

Each entity is told of by its deepest community at or above a level that has a report, so that the
reports at a level leave out nobody who is in a community.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from tgraph import vocabulary as v
from tgraph.errors import NothingIndexedError
from tgraph.index.evidence import EvidenceReader
from tgraph.index.reports.report import evidence_of as ways_of
from tgraph.index.reports.report_table import (
    CommunityOutline,
    ReportCounts,
    ReportTable,
    stored_reports,
)
from tgraph.model import Candidate, Community, CommunityReport, Evidence, Item, Selected
from tgraph.retrieve.base import BoundedCache, Context
from tgraph.retrieve.candidates import cost_of

T = TypeVar("T")
_FINDING = f"{v.URN}finding:"
MOST_GROUNDS = 200
"""Places read of what one report or finding rests on: the nearest. Those of a large graph's
coarsest rest on most of it."""


def reports_of(context: Context) -> Reports:
    """The reports of the context's state. ``StoreError`` where it has none, unless for filters."""
    found = reports_at_hand(context)
    if found is None and context.filters:
        return _read(context)  # that none is left is no fault of the graph
    if found is None:
        raise NothingIndexedError(
            "The graph has no community reports.",
            "Run `tgraph index` on its documents again; it needs relationships between entities.",
        )
    return found


def reports_at_hand(context: Context) -> Reports | None:
    """The reports of the context's state; None where it has none."""
    found = context.once("reports", lambda: _read(context))
    return None if found.is_empty else found


def _read(context: Context) -> Reports:
    return Reports(context.reports() or stored_reports(context.store), context.evidence)


MOST_HELD = 20_000
"""Communities or reports that are held of those that were read one by one."""


class _LazyRows(Mapping[str, T]):
    """Rows by their IRI, read as they are asked for; all at once by whoever goes through them.
    ``read`` reads those of some IRIs, or all, in their order."""

    def __init__(self, read: Callable[[Collection[str] | None], Mapping[str, T]]) -> None:
        self._read = read
        self._held = BoundedCache[str, T](MOST_HELD)
        self._all: Mapping[str, T] | None = None

    def __getitem__(self, iri: str) -> T:
        return self.some([iri])[iri]

    def __iter__(self) -> Iterator[str]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())

    def all(self) -> Mapping[str, T]:
        if self._all is None:
            self._all = self._read(None)
        return self._all

    def some(self, iris: Iterable[str]) -> dict[str, T]:
        """Those of the rows that there are, read at once."""
        if self._all is None:
            return self._held.get_all(iris, self._read)
        return {iri: self._all[iri] for iri in iris if iri in self._all}

    def hold(self, rows: Mapping[str, T]) -> None:
        """Keep rows that were read otherwise, where not all rows are kept already."""
        if self._all is None:
            self._held.get_all(rows, lambda missing: {iri: rows[iri] for iri in missing})


class Reports:
    """Communities by IRI, without their edges, and the reports by the IRI of their community, by
    level and IRI. Those that are looked up are read one by one.

    What the ``table`` has not counted is counted in the ``evidence``.
    """

    def __init__(self, table: ReportTable, evidence: EvidenceReader) -> None:
        self._evidence = evidence
        self._table = table
        self._counts = BoundedCache[str, ReportCounts](MOST_HELD)
        self.is_empty = table.is_empty
        self.communities_of = table.communities_of
        self.communities = _LazyRows[Community](table.communities)
        self.by_community = _LazyRows[CommunityReport](table.reports)
        self.by_iri = _LazyRows[CommunityReport](self._called)

    def _called(self, iris: Collection[str] | None) -> dict[str, CommunityReport]:
        """The reports by their own IRI."""
        if iris is None:
            return {report.iri: report for report in self.by_community.all().values()}
        return self._table.reports_called(iris)

    @cached_property
    def _outline(self) -> list[CommunityOutline]:
        return self._table.outline()

    def owner(self, part: str) -> CommunityReport | None:
        """The report that has the finding, or that is the part itself; None where there is none."""
        iri = v.report_of_finding(part) if part.startswith(_FINDING) else part
        report = self.by_iri.get(iri)
        if report is None or part == iri or any(part == own.iri for own in report.findings):
            return report
        return None

    def at_level(self, level: int) -> list[CommunityReport]:
        """For each entity the report of its deepest community at ``level`` or above that has one;
        each report once, by level and IRI of its community."""
        wanted = self._deepest(level)
        if 2 * len(wanted) > len(self._outline):
            self.by_iri.all()
        found = self.by_community.some(each.iri for each in wanted)
        self.by_iri.hold({report.iri: report for report in found.values()})
        return [*found.values()]

    def iris_at_level(self, level: int) -> list[str]:
        """The IRIs of these reports."""
        return [each.report for each in self._deepest(level)]

    def _deepest(self, level: int) -> list[CommunityOutline]:
        """For each entity its deepest community at ``level`` or above that has a report."""
        told = [each for each in self._outline if each.report and each.level <= level]
        place = {each.number: place for place, each in enumerate(told)}
        ways = (map(place.get, inside) for inside in self._table.memberships())
        deepest = {max((p for p in way if p is not None), default=-1) for way in ways}
        return [told[at] for at in sorted(deepest) if at >= 0]

    def communities_at(self, level: int) -> list[str]:
        """The communities of the level, by IRI."""
        return [each.iri for each in self._outline if each.level == level]

    def untold(self, level: int) -> int:
        """How many communities at ``level`` or above have no report."""
        return sum(each.level <= level and not each.report for each in self._outline)

    def occurrences(self, report: CommunityReport) -> int:
        """In how many chunks the members of the report's community occur."""
        known = self._counted(report).occurrences
        if known is not None:
            return known
        members = self.communities[report.community].members
        return len({chunk for member in members for chunk in self._mentions.get(member, ())})

    def cost(self, report: CommunityReport) -> int:
        """What the report costs as a candidate among others, in tokens."""
        known = self._counted(report).cost
        return cost_of(item_of(report)) if known is None else known

    def tokens(self, encoding: str) -> Mapping[str, int]:
        """What the reports' whole lines in a prompt cost, by IRI, as far as it is known."""
        return self._table.tokens() if encoding == self._table.encoding else {}

    def _counted(self, report: CommunityReport) -> ReportCounts:
        return self._counts.get(report.iri, lambda: self._table.counts(report.iri))

    @cached_property
    def _mentions(self) -> Mapping[str, set[str]]:
        """The chunks that the members of the communities occur in whose reports are not counted."""
        uncounted = self.communities.some(self._table.uncounted_communities()).values()
        members = {member for community in uncounted for member in community.members}
        return self._evidence.mentions(members)


def item_of(report: CommunityReport) -> Item:
    """The report as something that an answer can rest on."""
    return Item("report", report.iri, report.title, report.text)


def evidence_of_parts(
    parts: Iterable[str], context: Context, most: int = MOST_GROUNDS
) -> dict[str, tuple[Evidence, ...]]:
    """For each finding or report, by IRI, the standing evidence that it rests on, nearest first, at
    most so much.

    ``via`` leads from the report over the finding, sub-reports and their findings where it rests
    on such, and the edge, entity or claim that the evidence is for. The same span counts once.
    """
    reports = reports_of(context)
    known = [part for part in parts if reports.owner(part)]
    memory = context.remembered(f"{most} grounds", 50_000)
    return memory.get_all(known, lambda missing: _grounds(missing, reports, context, most))


def grounded(
    candidates: Iterable[Candidate], context: Context, most: int = MOST_GROUNDS
) -> tuple[Candidate, ...]:
    """The candidates, reports with the evidence that they rest on, at most so much of each.

    A report rests on dozens or hundreds of places, so a retriever leaves them to be read of those
    reports that an answer cites.
    """
    all_ = tuple(candidates)
    bare = [c.item.iri for c in all_ if c.item.kind == "report" and not c.evidence]
    places = evidence_of_parts(bare, context, most) if bare else {}
    return tuple(
        replace(c, evidence=places[c.item.iri])
        if c.item.kind == "report" and c.item.iri in places
        else c
        for c in all_
    )


def grounded_selection(selected: Sequence[Selected], context: Context) -> tuple[Selected, ...]:
    """What was selected, with the candidates ``grounded``."""
    candidates = grounded((each.candidate for each in selected), context)
    return tuple(
        each if each.candidate is candidate else replace(each, candidate=candidate)
        for each, candidate in zip(selected, candidates, strict=True)
    )


def _grounds(
    parts: Sequence[str], reports: Reports, context: Context, most: int
) -> dict[str, tuple[Evidence, ...]]:
    ways = ways_of(context.store, parts, most)
    wanted = sorted({iri for way in ways.values() for iri in way})
    places = context.remembered("places", 20_000).get_all(wanted, context.evidence.by_iri)
    found = {}
    for part, leads in ways.items():
        owner = reports.owner(part)
        assert owner is not None
        spans: dict[tuple[object, ...], Evidence] = {}
        for iri, way in leads.items():
            if iri in places:
                place = places[iri]
                span = (place.document, place.page, place.start, place.end)
                via = dict.fromkeys([owner.iri, *way, place.statement])
                spans.setdefault(span, replace(place, via=tuple(via)))
        found[part] = tuple(spans.values())
    return found
