"""The record of community reports: what they say is knowledge, what they were made from is source.

A report's IRI stands for everything that it says and rests on, so its record is written once and
stays when the report is superseded and leaves knowledge. Its text is kept by the librarian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.index.report_context import ReportContext
from tgraph.index.reports import MadeReport
from tgraph.model import Agent, CommunityReport, Prompt
from tgraph.models.base import canonical_json
from tgraph.record.agents import associations
from tgraph.store.base import Store
from tgraph.store.statements import Statements, iri


@dataclass(frozen=True, slots=True)
class Reporting:
    """The making of a report in a run: by whom, when, and why not by the model where it was not."""

    run: str
    agent: Agent
    prompts: Sequence[Prompt]
    started: datetime
    ended: datetime
    fallback: str = ""


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


def is_recorded(store: Store, report: str) -> bool:
    """Whether the making of the report is on record, from this run or an earlier one."""
    quads = store.match(NamedNode(report), v.prov("wasGeneratedBy"), None, v.SOURCE_GRAPH)
    return next(quads, None) is not None


def record_report(out: Statements, made: MadeReport, how: Reporting, content: str) -> None:
    """State how the report came about, and what it and each finding are derived from.

    ``content`` is the hash under which the librarian keeps the report and what was shown for it.
    """
    report = made.report
    activity = f"{v.URN}reporting:{how.run.rpartition(':')[2]}:{v.digest(report.iri)}"
    out.add(
        activity,
        (v.RDF_TYPE, [v.prov("Activity"), v.tg("Reporting")]),
        (v.RDFS_LABEL, "Community report"),
        (v.dcterms("isPartOf"), iri(how.run)),
        (v.prov("startedAtTime"), how.started),
        (v.prov("endedAtTime"), how.ended),
        (v.tg("community"), iri(report.community)),
        (v.tg("fallbackReason"), how.fallback or None),
    )
    associations(out, activity, how.agent, how.prompts)
    for reason, count in sorted(made.dropped.items()):
        key = f"{v.URN}prov:dropped:{v.digest(activity, reason)}"
        out.add(activity, (v.tg("dropped"), iri(key)))
        out.add(
            key, (v.RDF_TYPE, v.tg("Dropped")), (v.tg("reason"), reason), (v.tg("count"), count)
        )
    out.add(
        report.iri,
        (v.RDF_TYPE, [v.prov("Entity"), v.tg("ReportRecord")]),
        (v.prov("wasGeneratedBy"), iri(activity)),
        (v.prov("wasDerivedFrom"), map(iri, made.sources)),
        (v.tg("inputHash"), made.key),
        (v.tg("contentHash"), content),
    )
    for finding, sources in zip(report.findings, made.finding_sources, strict=True):
        out.add(
            finding.iri,
            (v.RDF_TYPE, v.prov("Entity")),
            (v.prov("wasGeneratedBy"), iri(activity)),
            (v.prov("wasDerivedFrom"), map(iri, sources)),
            (v.dcterms("isPartOf"), iri(report.iri)),
        )


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
