"""The community reports that are nearest in meaning to a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tgraph.model import Candidate, CommunityReport, Evidence
from tgraph.retrieve.base import Context
from tgraph.retrieve.costs import cost_of
from tgraph.retrieve.reports import evidence_of_parts, item_of, reports_at_hand


@dataclass(frozen=True, slots=True)
class NearReport:
    """A report as a candidate, whose evidence is that of its findings, then its own."""

    candidate: Candidate
    report: CommunityReport


def nearest_reports(context: Context, text: str, k: int, level: int) -> list[NearReport]:
    """At most ``k`` of the reports that are read at ``level``, the nearest first; none where the
    graph has none."""
    reports = reports_at_hand(context)
    if reports is None:
        return []
    allowed = [report.iri for report in reports.at_level(level)]
    hits = context.vectors["report"].search(context.embed([text]), k, allowed)[0]
    parts = [part for iri, _ in hits for part in parts_of(reports.by_iri[iri])]
    grounds = evidence_of_parts(parts, context)
    return [
        _near(reports.by_iri[iri], rank, score, grounds)
        for rank, (iri, score) in enumerate(hits, 1)
    ]


def _near(
    report: CommunityReport, rank: int, score: float, grounds: Mapping[str, Sequence[Evidence]]
) -> NearReport:
    item = item_of(report)
    candidate = Candidate(
        item,
        rank,
        min(1.0, max(0.0, score)),
        evidence=tuple(place for part in parts_of(report) for place in grounds.get(part, ())),
        reasons=(f"it is {score:.2f} similar in meaning to the question put as an answer",),
        tokens=cost_of(item),
    )
    return NearReport(candidate, report)


def parts_of(report: CommunityReport) -> list[str]:
    """Its findings and the report itself, by IRI."""
    return [*(finding.iri for finding in report.findings), report.iri]
