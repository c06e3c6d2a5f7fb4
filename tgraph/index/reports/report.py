"""Community reports: drafts by a writer, checked reports, and reading stored reports.

A draft cites shown items by short ids. Only shown citations count: invented citations are
dropped and counted, and a finding without citations is not kept."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.index.reports.context import ReportContext
from tgraph.model import CommunityReport, Finding
from tgraph.models.base import Author, CallSink, canonical_json, no_sink
from tgraph.store.base import Store, select_rows, text_of

CITED = (v.tg("edge"), v.tg("entity"), v.tg("claim"), v.tg("report"))
"""The properties by which a finding says what it cites."""


@dataclass(frozen=True, slots=True)
class DraftFinding:
    """A finding in a writer's draft, citing items by id.

    ``evidence`` narrows the supporting evidence to some of the cited items' evidence; empty
    means all."""

    summary: str
    explanation: str
    citations: tuple[str, ...]
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportDraft:
    """A report as drafted by a writer, with dropped items counted by reason."""

    title: str
    summary: str
    rating: float
    rating_explanation: str
    findings: tuple[DraftFinding, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    origins: tuple[str, ...] = ()
    """What else the report is derived from: the one that it was taken from."""


class ReportWriter(Author, Protocol):
    """A writer of reports; ``key`` changes whenever an equal context could produce a different
    report."""

    @property
    def overhead(self) -> int:
        """Token count of a prompt with no community content."""

    def write(self, context: ReportContext, sink: CallSink = no_sink) -> ReportDraft:
        """Return a report on the context's content; raise ``ModelError`` if writing fails."""


@dataclass(frozen=True, slots=True)
class MadeReport:
    """A report with supporting evidence and sub-report IRIs, including those of each finding.

    ``key`` identifies the input and the writer. ``dropped`` counts dropped items."""

    report: CommunityReport
    key: str
    sources: tuple[str, ...]
    finding_sources: tuple[tuple[str, ...], ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


def report_key(context: ReportContext, writer: ReportWriter) -> str:
    """Return a digest of the context text and writer, equal for equal input."""
    return v.digest_parts(context.text, writer.key)


def made_report(draft: ReportDraft, context: ReportContext, key: str) -> MadeReport:
    """Return the draft as a report, with citations checked against the shown items, under a
    content-based IRI."""
    ids, rests_on = context.ids(), context.sources()
    dropped = Counter(draft.dropped) + Counter(context.left_out)
    cited_findings: list[tuple[DraftFinding, tuple[str, ...], tuple[str, ...]]] = []
    for finding in draft.findings:
        cites = {ids[i] for i in finding.citations if i in ids}
        unknown = sum(i not in ids for i in finding.citations)
        dropped["citation of an id that was not shown"] += unknown
        if not cites:
            dropped["finding without a citation that holds"] += 1
            continue
        grounds = {source for iri in cites for source in rests_on[iri]}
        narrowed = grounds.intersection(finding.evidence) or grounds
        cited_findings.append((finding, tuple(sorted(cites)), tuple(sorted(narrowed))))
    shown_iris = [iri for i, iri in ids.items() if "." not in i]  # reports speak for their findings
    shown_sources = {source for iri in shown_iris for source in rests_on[iri]}
    sources = tuple(sorted(shown_sources.union(draft.origins)))
    iri = _content_iri(draft, context, key, cited_findings, sources)
    findings = tuple(
        Finding(v.finding_iri(iri, n), finding.summary, finding.explanation, cites)
        for n, (finding, cites, _) in enumerate(cited_findings)
    )
    report = CommunityReport(
        iri,
        context.community.iri,
        context.community.level,
        draft.title,
        draft.summary,
        draft.rating,
        draft.rating_explanation,
        findings,
    )
    counts = {reason: count for reason, count in dropped.items() if count}
    return MadeReport(
        report, key, sources, tuple(grounds for _, _, grounds in cited_findings), counts
    )


def _content_iri(
    draft: ReportDraft,
    context: ReportContext,
    key: str,
    kept: Iterable[tuple[DraftFinding, tuple[str, ...], tuple[str, ...]]],
    sources: Iterable[str],
) -> str:
    findings = [[f.summary, f.explanation, *cites, *grounds] for f, cites, grounds in kept]
    content = [draft.title, draft.summary, draft.rating, draft.rating_explanation, findings]
    return v.report_iri(context.community.iri, key, canonical_json(content), *sources)


def as_draft(report: CommunityReport, context: ReportContext) -> ReportDraft:
    """Return a draft recreated from a report, written for a context with equal text."""
    by_iri = {iri: i for i, iri in context.ids().items()}
    findings = tuple(
        DraftFinding(
            finding.summary,
            finding.explanation,
            tuple(by_iri[iri] for iri in finding.cites if iri in by_iri),
        )
        for finding in report.findings
    )
    return ReportDraft(
        report.title, report.summary, report.rating, report.rating_explanation, findings
    )


def read_reports(store: Store) -> dict[str, CommunityReport]:
    """Return knowledge reports by community IRI, in IRI order."""
    reports = {}
    for quad in store.match(None, v.RDF_TYPE, v.tg("CommunityReport"), v.KNOWLEDGE_GRAPH):
        assert isinstance(quad.subject, NamedNode)
        report = read_report(store, quad.subject)
        reports[report.community] = report
    return dict(sorted(reports.items()))


def report_on(store: Store, community: str) -> CommunityReport | None:
    """Return the knowledge report on a community; None if missing."""
    node = NamedNode(community)
    for quad in store.match(None, v.tg("community"), node, v.KNOWLEDGE_GRAPH):
        kind = Quad(quad.subject, v.RDF_TYPE, v.tg("CommunityReport"), v.KNOWLEDGE_GRAPH)
        if isinstance(quad.subject, NamedNode) and next(store.match(*kind), None) is not None:
            return read_report(store, quad.subject)
    return None


def report_key_of(store: Store, report: str) -> str:
    """Return the input key of a report, given its IRI; empty if unrecorded."""
    keys = store.match(NamedNode(report), v.tg("inputHash"), None, v.SOURCE_GRAPH)
    return next((text_of(quad.object) for quad in keys), "")


Ways = dict[str, tuple[str, ...]]
"""For each evidence's IRI the IRIs on the way to it."""


def report_evidence(store: Store, iri: str) -> Ways:
    """Return evidence of a single report or finding, as in ``evidence_of``."""
    return evidence_of(store, [iri])[iri]


def evidence_of(store: Store, parts: Sequence[str], most: int = sys.maxsize) -> dict[str, Ways]:
    """Return supporting evidence of each report or finding, with derivation paths; at most
    ``most`` items each.

    A path is the shortest path from the part (included) through sub-reports and their findings,
    following ``prov:wasDerivedFrom`` only; the nearest evidence comes first. Sub-reports are
    read in groups, with one query for all parts, and only as far as needed."""
    origins: dict[str, list[str]] = {}
    ways = {part: _WayDown(part, most) for part in parts}
    pending_items = set(parts)
    while pending_items:
        _read_origins(store, pending_items, origins)
        pending_items = {item for way in ways.values() for item in way.go_on(origins)}
    return {part: dict(islice(way.found.items(), most)) for part, way in ways.items()}


def _read_origins(store: Store, wanted: Iterable[str], origins: dict[str, list[str]]) -> None:
    """Read origins of items into ``origins``, skipping items already known."""
    new = sorted(item for item in wanted if item not in origins)
    origins |= {item: [] for item in new}
    items = list(map(NamedNode, new))
    for row in select_rows(store, "retrieve/origins", {"items": items}) if items else ():
        origins[text_of(row["item"])].append(text_of(row["origin"]))


@dataclass(slots=True)
class _WayDown:
    """A resumable breadth-first search from a report part towards supporting evidence."""

    part: str
    most: int
    found: Ways = field(default_factory=dict)
    _queue: list[tuple[str, ...]] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _gone: int = 0
    _asked: int = 0

    def __post_init__(self) -> None:
        self._queue.append((self.part,))
        self._seen.add(self.part)

    def go_on(self, origins: Mapping[str, Sequence[str]]) -> list[str]:
        """Continue the search as far as origins are known; return items needed next, empty at
        the end."""
        while self._gone < len(self._queue) and len(self.found) < self.most:
            way = self._queue[self._gone]
            if way[-1] not in origins:
                lacking = self.most - len(self.found)
                self._asked = max(2 * self._asked, 1 + lacking // _LIKELY)
                return [
                    queued_way[-1]
                    for queued_way in self._queue[self._gone : self._gone + self._asked]
                ]
            self._follow_origins(way, origins[way[-1]])
            self._gone += 1
        return []

    def _follow_origins(self, way: tuple[str, ...], origins: Sequence[str]) -> None:
        for origin in sorted(origins):
            if origin.startswith(_EVIDENCE):
                self.found.setdefault(origin, way)
            elif origin not in self._seen:
                self._seen.add(origin)
                self._queue.append((*way, origin))


_LIKELY = 25
"""Pieces of evidence that a sub-report is taken to add."""

_EVIDENCE = f"{v.URN}evidence:"


def report_subjects(store: Store, report: CommunityReport) -> list[Quad]:
    """Return all knowledge quads about a report and its findings."""
    subjects = [report.iri, *(finding.iri for finding in report.findings)]
    return [
        quad
        for subject in subjects
        for quad in store.match(NamedNode(subject), None, None, v.KNOWLEDGE_GRAPH)
    ]


def read_report(store: Store, subject: NamedNode) -> CommunityReport:
    """Read a report, given its IRI."""
    properties = _read_properties(store, subject)
    findings = [_read_finding(store, iri) for iri in properties.get(v.tg("finding"), ())]
    return CommunityReport(
        subject.value,
        properties[v.tg("community")][0],
        int(properties[v.tg("level")][0]),
        properties[v.RDFS_LABEL][0],
        properties[v.tg("summaryText")][0],
        float(properties[v.tg("rating")][0]),
        properties[v.tg("ratingExplanation")][0],
        tuple(finding for _, finding in sorted(findings, key=lambda pair: pair[0])),
    )


def _read_finding(store: Store, iri: str) -> tuple[int, Finding]:
    properties = _read_properties(store, NamedNode(iri))
    cites = tuple(sorted(cited for path in CITED for cited in properties.get(path, ())))
    finding = Finding(iri, properties[v.tg("summaryText")][0], properties[v.tg("text")][0], cites)
    return int(properties[v.tg("index")][0]), finding


def _read_properties(store: Store, subject: NamedNode) -> dict[NamedNode, list[str]]:
    values_by_predicate: dict[NamedNode, list[str]] = {}
    for quad in store.match(subject, None, None, v.KNOWLEDGE_GRAPH):
        values_by_predicate.setdefault(quad.predicate, []).append(text_of(quad.object))
    return values_by_predicate
