"""The communities and their reports as one published state has them, read once for many questions.

Each entity is told of by its deepest community at or above a level that has a report, so that the
reports at a level leave out nobody who is in a community.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from tgraph.errors import NothingIndexedError
from tgraph.index.evidence import EvidenceReader
from tgraph.index.reports.report import evidence_of as ways_of
from tgraph.index.reports.report_cache import ReportCache, read_report_cache
from tgraph.model import Candidate, Community, CommunityReport, Evidence, Item, Selected
from tgraph.retrieve.base import Context
from tgraph.retrieve.candidates import cost_of

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
    return found if found.by_community else None


def _read(context: Context) -> Reports:
    return Reports(context.shelf() or read_report_cache(context.store), context.evidence)


class Reports:
    """Communities by IRI, without their edges, and the reports by the IRI of their community.

    What the ``shelf`` has not counted is counted in the ``evidence``.
    """

    def __init__(self, shelf: ReportCache, evidence: EvidenceReader) -> None:
        self._evidence = evidence
        self._shelf = shelf
        self._costs: dict[str, int] = {}
        self.communities: Mapping[str, Community] = {c.iri: c for c in shelf.communities}
        self.by_community: Mapping[str, CommunityReport] = {
            iri: shelf.reports[iri] for iri in self.communities if iri in shelf.reports
        }

    @cached_property
    def by_iri(self) -> Mapping[str, CommunityReport]:
        """The reports by their own IRI."""
        return {report.iri: report for report in self.by_community.values()}

    @cached_property
    def communities_of(self) -> Mapping[str, Sequence[str]]:
        """The communities that each entity is in, by IRI."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for community in self.communities.values():
            for member in community.members:
                found[member].append(community.iri)
        return found

    @cached_property
    def report_of(self) -> Mapping[str, CommunityReport]:
        """The report of each finding and of each report itself."""
        findings = {f.iri: r for r in self.by_community.values() for f in r.findings}
        return {**findings, **self.by_iri}

    def at_level(self, level: int) -> list[CommunityReport]:
        """For each entity the report of its deepest community at ``level`` or above that has one;
        each report once, by level and IRI of its community."""
        deepest: dict[str, str] = {}
        for community in self.communities.values():  # from the coarsest on
            if community.level <= level and community.iri in self.by_community:
                deepest.update(dict.fromkeys(community.members, community.iri))
        wanted = set(deepest.values())
        return [report for iri, report in self.by_community.items() if iri in wanted]

    def untold(self, level: int) -> int:
        """How many communities at ``level`` or above have no report."""
        return sum(
            c.level <= level and c.iri not in self.by_community for c in self.communities.values()
        )

    def occurrences(self, report: CommunityReport) -> int:
        """In how many chunks the members of the report's community occur."""
        known = self._shelf.occurrences.get(report.iri)
        if known is not None:
            return known
        members = self.communities[report.community].members
        return len({chunk for member in members for chunk in self._mentions.get(member, ())})

    def cost(self, report: CommunityReport) -> int:
        """What the report costs as a candidate among others, in tokens."""
        if report.iri not in self._costs:
            known = self._shelf.costs.get(report.iri)
            self._costs[report.iri] = cost_of(item_of(report)) if known is None else known
        return self._costs[report.iri]

    def tokens(self, encoding: str) -> Mapping[str, int]:
        """What the reports' whole lines in a prompt cost, by IRI, as far as it is known."""
        return self._shelf.tokens.get(encoding, {})

    @cached_property
    def _mentions(self) -> Mapping[str, set[str]]:
        unknown = (r for r in self.by_community.values() if r.iri not in self._shelf.occurrences)
        told = (self.communities[report.community] for report in unknown)
        return self._evidence.mentions({member for one in told for member in one.members})


def item_of(report: CommunityReport) -> Item:
    """The report as something that an answer can rest on."""
    return Item("report", report.iri, report.title, report.text)


def evidence_of_parts(parts: Iterable[str], context: Context) -> dict[str, tuple[Evidence, ...]]:
    """For each finding or report, by IRI, the standing evidence that it rests on, nearest first.

    ``via`` leads from the report over the finding, sub-reports and their findings where it rests
    on such, and the edge, entity or claim that the evidence is for. The same span counts once.
    """
    reports = reports_of(context)
    known = [part for part in parts if part in reports.report_of]
    memory = context.remembered("grounds", 50_000)
    return memory.get_all(known, lambda missing: _grounds(missing, reports, context))


def grounded(candidates: Iterable[Candidate], context: Context) -> tuple[Candidate, ...]:
    """The candidates, reports with the evidence that they rest on.

    A report rests on dozens or hundreds of places, so a retriever leaves them to be read of those
    reports that an answer cites.
    """
    all_ = tuple(candidates)
    bare = [c.item.iri for c in all_ if c.item.kind == "report" and not c.evidence]
    places = evidence_of_parts(bare, context) if bare else {}
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
    parts: Sequence[str], reports: Reports, context: Context
) -> dict[str, tuple[Evidence, ...]]:
    ways = ways_of(context.store, parts, MOST_GROUNDS)
    wanted = sorted({iri for way in ways.values() for iri in way})
    places = context.remembered("places", 20_000).get_all(wanted, context.evidence.by_iri)
    found = {}
    for part, leads in ways.items():
        above = reports.report_of[part].iri
        spans: dict[tuple[object, ...], Evidence] = {}
        for iri, way in leads.items():
            if iri in places:
                place = places[iri]
                span = (place.document, place.page, place.start, place.end)
                via = dict.fromkeys([above, *way, place.statement])
                spans.setdefault(span, replace(place, via=tuple(via)))
        found[part] = tuple(spans.values())
    return found
