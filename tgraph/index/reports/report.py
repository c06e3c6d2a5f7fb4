"""Community reports: what a writer drafts, what is kept of it, and how reports are read again.

A draft cites what it was shown by short ids. Only citations that were shown count: what a writer
made up is dropped and counted, and a finding that cites nothing is not kept.
"""

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
from tgraph.store.base import Store, select, text_of

CITED = (v.tg("edge"), v.tg("entity"), v.tg("claim"), v.tg("report"))
"""The properties by which a finding says what it cites."""


@dataclass(frozen=True, slots=True)
class DraftFinding:
    """A finding as a writer wrote it, citing by id.

    ``evidence`` narrows what it rests on to some of the evidence of what it cites; empty means all.
    """

    summary: str
    explanation: str
    citations: tuple[str, ...]
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportDraft:
    """A report as a writer wrote it, and what had to be left out of it, by reason."""

    title: str
    summary: str
    rating: float
    rating_explanation: str
    findings: tuple[DraftFinding, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    origins: tuple[str, ...] = ()
    """What else the report is derived from: the one that it was taken from."""


class ReportWriter(Author, Protocol):
    """Writes reports. ``key`` changes when the same context could get another report."""

    @property
    def overhead(self) -> int:
        """The tokens of a prompt that shows nothing."""

    def write(self, context: ReportContext, sink: CallSink = no_sink) -> ReportDraft:
        """The report on what the context shows. ``ModelError`` where it could not be written."""


@dataclass(frozen=True, slots=True)
class MadeReport:
    """A report, and what it and each of its findings rest on: evidence and sub-reports, by IRI.

    ``key`` names what it was made from and by whom. ``dropped`` counts what was left out.
    """

    report: CommunityReport
    key: str
    sources: tuple[str, ...]
    finding_sources: tuple[tuple[str, ...], ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


def report_key(context: ReportContext, writer: ReportWriter) -> str:
    """The same for the same shown input and the same writer."""
    return v.digest(context.text, writer.key)


def made_report(draft: ReportDraft, context: ReportContext, key: str) -> MadeReport:
    """The draft with its citations checked against what was shown, under an IRI of its content."""
    ids, rests_on = context.ids(), context.sources()
    dropped = Counter(draft.dropped) + Counter(context.left_out)
    kept: list[tuple[DraftFinding, tuple[str, ...], tuple[str, ...]]] = []
    for finding in draft.findings:
        cites = {ids[i] for i in finding.citations if i in ids}
        unknown = sum(i not in ids for i in finding.citations)
        dropped["citation of an id that was not shown"] += unknown
        if not cites:
            dropped["finding without a citation that holds"] += 1
            continue
        grounds = {source for iri in cites for source in rests_on[iri]}
        narrowed = grounds.intersection(finding.evidence) or grounds
        kept.append((finding, tuple(sorted(cites)), tuple(sorted(narrowed))))
    shown = [iri for i, iri in ids.items() if "." not in i]  # reports speak for their findings
    seen = {source for iri in shown for source in rests_on[iri]}
    sources = tuple(sorted(seen.union(draft.origins)))
    iri = _content_iri(draft, context, key, kept, sources)
    findings = tuple(
        Finding(v.finding_iri(iri, n), finding.summary, finding.explanation, cites)
        for n, (finding, cites, _) in enumerate(kept)
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
    return MadeReport(report, key, sources, tuple(grounds for _, _, grounds in kept), counts)


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
    """A report that was made from a context with the same text, as its draft."""
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
    """The reports that knowledge holds, by the IRI of their community, in the order of these."""
    found = {}
    for quad in store.match(None, v.RDF_TYPE, v.tg("CommunityReport"), v.KNOWLEDGE_GRAPH):
        assert isinstance(quad.subject, NamedNode)
        report = read_report(store, quad.subject)
        found[report.community] = report
    return dict(sorted(found.items()))


def report_on(store: Store, community: str) -> CommunityReport | None:
    """The report on one community that knowledge holds."""
    node = NamedNode(community)
    for quad in store.match(None, v.tg("community"), node, v.KNOWLEDGE_GRAPH):
        kind = Quad(quad.subject, v.RDF_TYPE, v.tg("CommunityReport"), v.KNOWLEDGE_GRAPH)
        if isinstance(quad.subject, NamedNode) and next(store.match(*kind), None) is not None:
            return read_report(store, quad.subject)
    return None


def report_key_of(store: Store, report: str) -> str:
    """The key of what a report was made from, by its IRI; empty for one that isn't on record."""
    keys = store.match(NamedNode(report), v.tg("inputHash"), None, v.SOURCE_GRAPH)
    return next((text_of(quad.object) for quad in keys), "")


Ways = dict[str, tuple[str, ...]]
"""For each evidence's IRI the IRIs on the way to it."""


def evidence(store: Store, iri: str) -> Ways:
    """As ``evidence_of``, of one."""
    return evidence_of(store, [iri])[iri]


def evidence_of(store: Store, parts: Sequence[str], most: int = sys.maxsize) -> dict[str, Ways]:
    """The evidence that each report or finding rests on, with the way to it; at most so much of
    one.

    A way is the shortest one from the part (included) through sub-reports and their findings, by
    ``prov:wasDerivedFrom`` alone; nearest evidence first. Sub-reports are read some at a time, for
    all parts in one query, and no more of them than are needed.
    """
    origins: dict[str, list[str]] = {}
    ways = {part: _WayDown(part, most) for part in parts}
    wanted = set(parts)
    while wanted:
        _read_origins(store, wanted, origins)
        wanted = {item for way in ways.values() for item in way.go_on(origins)}
    return {part: dict(islice(way.found.items(), most)) for part, way in ways.items()}


def _read_origins(store: Store, wanted: Iterable[str], origins: dict[str, list[str]]) -> None:
    """What the items are derived from, as far as it is not known."""
    new = sorted(item for item in wanted if item not in origins)
    origins |= {item: [] for item in new}
    items = list(map(NamedNode, new))
    for row in select(store, "retrieve/origins", {"items": items}) if items else ():
        origins[text_of(row["item"])].append(text_of(row["origin"]))


@dataclass(slots=True)
class _WayDown:
    """The way from a part to its evidence, breadth first, as far as it has been gone."""

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
        """Go as far as the origins are known; those that are needed next, none at the end."""
        while self._gone < len(self._queue) and len(self.found) < self.most:
            way = self._queue[self._gone]
            if way[-1] not in origins:
                lacking = self.most - len(self.found)
                self._asked = max(2 * self._asked, 1 + lacking // _LIKELY)
                return [each[-1] for each in self._queue[self._gone : self._gone + self._asked]]
            self._take(way, origins[way[-1]])
            self._gone += 1
        return []

    def _take(self, way: tuple[str, ...], origins: Sequence[str]) -> None:
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
    """Everything that knowledge says of a report and its findings."""
    subjects = [report.iri, *(finding.iri for finding in report.findings)]
    return [
        quad
        for subject in subjects
        for quad in store.match(NamedNode(subject), None, None, v.KNOWLEDGE_GRAPH)
    ]


def read_report(store: Store, subject: NamedNode) -> CommunityReport:
    """One of them, by its own name."""
    about = _properties(store, subject)
    findings = [_read_finding(store, iri) for iri in about.get(v.tg("finding"), ())]
    return CommunityReport(
        subject.value,
        about[v.tg("community")][0],
        int(about[v.tg("level")][0]),
        about[v.RDFS_LABEL][0],
        about[v.tg("summaryText")][0],
        float(about[v.tg("rating")][0]),
        about[v.tg("ratingExplanation")][0],
        tuple(finding for _, finding in sorted(findings, key=lambda pair: pair[0])),
    )


def _read_finding(store: Store, iri: str) -> tuple[int, Finding]:
    about = _properties(store, NamedNode(iri))
    cites = tuple(sorted(cited for path in CITED for cited in about.get(path, ())))
    finding = Finding(iri, about[v.tg("summaryText")][0], about[v.tg("text")][0], cites)
    return int(about[v.tg("index")][0]), finding


def _properties(store: Store, subject: NamedNode) -> dict[NamedNode, list[str]]:
    found: dict[NamedNode, list[str]] = {}
    for quad in store.match(subject, None, None, v.KNOWLEDGE_GRAPH):
        found.setdefault(quad.predicate, []).append(text_of(quad.object))
    return found
