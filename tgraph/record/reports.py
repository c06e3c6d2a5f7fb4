"""The record of community reports: what they say is knowledge, what they were made from is source.

A report's IRI stands for everything that it says and rests on, so its record is written once and
stays when the report is superseded and leaves knowledge. Its text is kept by the librarian.
"""

from __future__ import annotations

from dataclasses import asdict, replace

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.index.report_context import ReportContext
from tgraph.index.reports import MadeReport
from tgraph.model import CommunityReport
from tgraph.models.base import canonical_json
from tgraph.record.activities import Authorship, state_entity
from tgraph.store.statements import Statements, Writer, iri


def knowledge_quads(report: CommunityReport) -> list[Quad]:
    """What knowledge says of the report and its findings, citations included."""
    out = Statements(v.KNOWLEDGE_GRAPH)
    out.add(
        report.iri,
        (v.RDF_TYPE, v.tg("CommunityReport")),
        (v.RDFS_LABEL, report.title),
        (v.tg("community"), iri(report.community)),
        (v.tg("level"), report.level),
        (v.tg("summaryText"), report.summary),
        (v.tg("rating"), float(report.rating)),
        (v.tg("ratingExplanation"), report.rating_explanation),
        (v.tg("finding"), [iri(finding.iri) for finding in report.findings]),
    )
    for index, finding in enumerate(report.findings):
        out.add(
            finding.iri,
            (v.RDF_TYPE, v.tg("Finding")),
            (v.tg("index"), index),
            (v.tg("summaryText"), finding.summary),
            (v.tg("text"), finding.explanation),
        )
        for cited in finding.cites:
            out.add(finding.iri, (_citing(cited), iri(cited)))
    return out.quads


def _citing(cited: str) -> NamedNode:
    kind = cited.removeprefix(v.URN).partition(":")[0]
    return _CITING.get(kind, v.tg("report"))


_CITING = {"edge": v.tg("edge"), "entity": v.tg("entity"), "claim": v.tg("claim")}


def record_report(out: Writer, made: MadeReport, how: Authorship, content: str) -> None:
    """State how the report came about, and what it and each finding are derived from.

    ``content`` is the hash under which the librarian keeps the report and what was shown for it.
    """
    report = made.report
    activity = replace(
        how.activity(
            "reporting", ("Reporting",), "Community report", report.iri, dropped=made.dropped
        ),
        error=None,  # the vocabulary has a property of its own for it
    )
    activity.state(
        out,
        (v.tg("community"), iri(report.community)),
        (v.tg("fallbackReason"), how.error or None),
    )
    state_entity(
        out,
        report.iri,
        "ReportRecord",
        (v.tg("inputHash"), made.key),
        (v.tg("contentHash"), content),
        by=activity.iri,
        origins=made.sources,
    )
    for finding, sources in zip(report.findings, made.finding_sources, strict=True):
        part = (v.dcterms("isPartOf"), iri(report.iri))
        state_entity(out, finding.iri, "", part, by=activity.iri, origins=sources)


def report_content(made: MadeReport, context: ReportContext) -> str:
    """The report and what it was made from, for the librarian: members, edges, claims and
    sub-reports that were shown, and how many things were not."""
    shown = {
        "entities": [entity.iri for entity in context.entities],
        "edges": [edge.iri for edge in context.edges],
        "claims": [claim.iri for claim in context.claims],
        "reports": [sub.report.iri for sub in context.reports],
    }
    content = {"report": asdict(made.report), "shown": shown, "left_out": dict(context.left_out)}
    return canonical_json(content)
