"""Communities and reports of a published state, read once for many questions.

Each entity is represented by its deepest community with a report, at or above a level, so the
reports at a level cover every entity belonging to a community."""

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
    """Return the reports of the context's state.

    Raise ``StoreError`` if no reports exist, unless filters removed the reports."""
    reports = reports_at_hand(context)
    if reports is None and context.filters:
        return _read_reports(context)  # that none is left is no fault of the graph
    if reports is None:
        raise NothingIndexedError(
            "The graph has no community reports.",
            "Run `tgraph index` on its documents again; it needs relationships between entities.",
        )
    return reports


def reports_at_hand(context: Context) -> Reports | None:
    """Return the reports of the context's state; None without reports."""
    reports = context.read_once("reports", lambda: _read_reports(context))
    return None if reports.is_empty else reports


def _read_reports(context: Context) -> Reports:
    return Reports(context.reports() or stored_reports(context.store), context.evidence)


MOST_HELD = 20_000
"""Communities or reports that are held of those that were read one by one."""


class _LazyRows(Mapping[str, T]):
    """Rows by IRI, read on request; iteration reads all rows at once.

    ``read`` returns the rows for given IRIs, or all rows, in order."""

    def __init__(self, read: Callable[[Collection[str] | None], Mapping[str, T]]) -> None:
        self._read = read
        self._held = BoundedCache[str, T](MOST_HELD)
        self._all: Mapping[str, T] | None = None

    def __getitem__(self, iri: str) -> T:
        return self.read_rows([iri])[iri]

    def __iter__(self) -> Iterator[str]:
        return iter(self.all_rows())

    def __len__(self) -> int:
        return len(self.all_rows())

    def all_rows(self) -> Mapping[str, T]:
        if self._all is None:
            self._all = self._read(None)
        return self._all

    def read_rows(self, iris: Iterable[str]) -> dict[str, T]:
        """Return existing rows for the IRIs, read at once."""
        if self._all is None:
            return self._held.get_all(iris, self._read)
        return {iri: self._all[iri] for iri in iris if iri in self._all}

    def hold(self, rows: Mapping[str, T]) -> None:
        """Keep rows read elsewhere, unless all rows are already kept."""
        if self._all is None:
            self._held.get_all(rows, lambda missing: {iri: rows[iri] for iri in missing})


class Reports:
    """Communities by IRI, without edges, plus reports by community IRI, ordered by level and
    IRI; look-ups read single rows.

    Counts missing from ``table`` are computed from ``evidence``."""

    def __init__(self, table: ReportTable, evidence: EvidenceReader) -> None:
        self._evidence = evidence
        self._table = table
        self._counts = BoundedCache[str, ReportCounts](MOST_HELD)
        self.is_empty = table.is_empty
        self.communities_of = table.communities_of
        self.communities = _LazyRows[Community](table.communities)
        self.by_community = _LazyRows[CommunityReport](table.reports)
        self.by_iri = _LazyRows[CommunityReport](self._reports_by_iri)

    def _reports_by_iri(self, iris: Collection[str] | None) -> dict[str, CommunityReport]:
        """Return reports by report IRI."""
        if iris is None:
            return {report.iri: report for report in self.by_community.all_rows().values()}
        return self._table.reports_called(iris)

    @cached_property
    def _community_outline(self) -> list[CommunityOutline]:
        return self._table.outline()

    def owner(self, part: str) -> CommunityReport | None:
        """Return the report containing the finding, or the report itself given a report IRI;
        None without match."""
        iri = v.report_of_finding(part) if part.startswith(_FINDING) else part
        report = self.by_iri.get(iri)
        if report is None or part == iri or any(part == finding.iri for finding in report.findings):
            return report
        return None

    def at_level(self, level: int) -> list[CommunityReport]:
        """Return reports covering each entity: the report of the entity's deepest reported
        community, at or above ``level``.

        Each report occurs once, sorted by level and IRI of its community."""
        communities = self._deepest_communities(level)
        if 2 * len(communities) > len(self._community_outline):
            self.by_iri.all_rows()
        reports_by_community = self.by_community.read_rows(
            community.iri for community in communities
        )
        self.by_iri.hold({report.iri: report for report in reports_by_community.values()})
        return [*reports_by_community.values()]

    def iris_at_level(self, level: int) -> list[str]:
        """Return report IRIs at a level, matching ``at_level``."""
        return [community.report for community in self._deepest_communities(level)]

    def _deepest_communities(self, level: int) -> list[CommunityOutline]:
        """Return each entity's deepest reported community, at or above ``level``."""
        reported_communities = [
            community
            for community in self._community_outline
            if community.report and community.level <= level
        ]
        place = {community.number: place for place, community in enumerate(reported_communities)}
        ways = (map(place.get, inside) for inside in self._table.memberships())
        deepest = {max((p for p in way if p is not None), default=-1) for way in ways}
        return [reported_communities[at] for at in sorted(deepest) if at >= 0]

    def communities_at(self, level: int) -> list[str]:
        """Return community IRIs at the level."""
        return [community.iri for community in self._community_outline if community.level == level]

    def untold(self, level: int) -> int:
        """Return the count of communities lacking reports, at or above ``level``."""
        return sum(
            community.level <= level and not community.report
            for community in self._community_outline
        )

    def occurrences(self, report: CommunityReport) -> int:
        """Return the number of chunks mentioning members of the report's community."""
        occurrence_count = self._report_counts(report).occurrences
        if occurrence_count is not None:
            return occurrence_count
        members = self.communities[report.community].members
        return len(
            {chunk for member in members for chunk in self._uncounted_mentions.get(member, ())}
        )

    def cost(self, report: CommunityReport) -> int:
        """Return the report's token cost as a candidate among others."""
        token_count = self._report_counts(report).cost
        return cost_of(item_of(report)) if token_count is None else token_count

    def tokens(self, encoding: str) -> Mapping[str, int]:
        """Return token costs of the reports' complete prompt lines, by IRI, where known."""
        return self._table.tokens() if encoding == self._table.encoding else {}

    def _report_counts(self, report: CommunityReport) -> ReportCounts:
        return self._counts.load_item(report.iri, lambda: self._table.counts(report.iri))

    @cached_property
    def _uncounted_mentions(self) -> Mapping[str, set[str]]:
        """Chunks mentioning members of communities, for communities with uncounted reports."""
        uncounted = self.communities.read_rows(self._table.uncounted_communities()).values()
        members = {member for community in uncounted for member in community.members}
        return self._evidence.mentions(members)


def item_of(report: CommunityReport) -> Item:
    """Return the report as an item supporting answers."""
    return Item("report", report.iri, report.title, report.text)


def evidence_of_parts(
    parts: Iterable[str], context: Context, most: int = MOST_GROUNDS
) -> dict[str, tuple[Evidence, ...]]:
    """Return standing evidence supporting each finding or report, keyed by IRI, nearest first,
    at most ``most`` pieces.

    ``via`` leads from the report over the finding, any supporting sub-reports and their
    findings, to the edge, entity or claim supported by the evidence. Duplicate spans count
    once."""
    reports = reports_of(context)
    report_parts = [part for part in parts if reports.owner(part)]
    memory = context.open_cache(f"{most} grounds", 50_000)
    return memory.get_all(
        report_parts, lambda missing: _read_grounds(missing, reports, context, most)
    )


def add_report_evidence(
    candidates: Iterable[Candidate], context: Context, most: int = MOST_GROUNDS
) -> tuple[Candidate, ...]:
    """Return the candidates, adding supporting evidence to reports, at most ``most`` pieces
    each.

    A report rests on dozens or hundreds of places. So retrievers leave the evidence unread
    until an answer cites the report."""
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
    """Return selected items, with report evidence added to the candidates."""
    candidates = add_report_evidence((item.candidate for item in selected), context)
    return tuple(
        item if item.candidate is candidate else replace(item, candidate=candidate)
        for item, candidate in zip(selected, candidates, strict=True)
    )


def _read_grounds(
    parts: Sequence[str], reports: Reports, context: Context, most: int
) -> dict[str, tuple[Evidence, ...]]:
    ways = ways_of(context.store, parts, most)
    evidence_iris = sorted({iri for way in ways.values() for iri in way})
    places = context.open_cache("places", 20_000).get_all(evidence_iris, context.evidence.by_iri)
    evidence_by_part = {}
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
        evidence_by_part[part] = tuple(spans.values())
    return evidence_by_part
