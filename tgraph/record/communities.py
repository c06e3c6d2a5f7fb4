"""The record of community reports: what they say is knowledge, what they were made from is source.

A report's IRI stands for everything that it says and rests on, so its record is written once and
stays when the report is superseded and leaves knowledge. Its text is kept by the librarian.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.index.communities.given import GivenCommunity
from tgraph.index.reports.context import ReportContext
from tgraph.index.reports.report import MadeReport
from tgraph.model import CommunityReport
from tgraph.models.base import canonical_json
from tgraph.record.activities import (
    Activity,
    Authorship,
    agent_quads,
    names_of,
    standing,
    state_entity,
    state_invalidation,
    state_parameters,
)
from tgraph.store.base import Store, text_of
from tgraph.store.statements import Statements, Value, iri


def report_quads(report: CommunityReport) -> list[Quad]:
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
            kind = cited.removeprefix(v.URN).partition(":")[0]
            out.add(finding.iri, (_CITING.get(kind, v.tg("report")), iri(cited)))
    return out.quads


_CITING = {"edge": v.tg("edge"), "entity": v.tg("entity"), "claim": v.tg("claim")}


def state_report(out: Statements, made: MadeReport, how: Authorship, content: str) -> None:
    """State how the report came about, and what it and each finding are derived from.

    ``content`` is the hash under which the librarian keeps the report and what was shown for it.
    """
    report = made.report
    activity = how.activity(
        "reporting", ("Reporting",), "Community report", report.iri, dropped=made.dropped
    )  # whose error has a property of its own in the vocabulary
    by = replace(activity, error=None).state(
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
        by=by,
        origins=made.sources,
    )
    for finding, sources in zip(report.findings, made.finding_sources, strict=True):
        part = (v.dcterms("isPartOf"), iri(report.iri))
        state_entity(out, finding.iri, "", part, by=by, origins=sources)


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


def fallbacks(store: Store) -> set[str]:
    """The communities for which a report could once not be written, and was made otherwise."""
    found = set()
    for quad in store.match(None, v.tg("fallbackReason"), None, v.SOURCE_GRAPH):
        for about in store.match(quad.subject, v.tg("community"), None, v.SOURCE_GRAPH):
            found.add(text_of(about.object))
    return found


Parameters = Mapping[str, str | int | float]
_KEPT = (v.RDFS_LABEL, v.tg("level"), v.tg("member"), v.tg("parent"))
"""What knowledge said of a community that stays on record."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The communities of one connected part of the graph as a run divided it.

    It stands for as long as the part stays as it was: ``key`` is the digest of what they depend on.
    The communities themselves are knowledge. When one leaves it, its members stay on record
    (design, section 3.4).
    """

    iri: str
    key: str
    communities: frozenset[str]


def clustering_quads(
    how: Authorship,
    parameters: Parameters,
    isolated: int,
    made: Mapping[str, Iterable[str]],
    ended: Iterable[Hierarchy],
    left: Mapping[str, Iterable[Quad]],
) -> list[Quad]:
    """What a run clustered, and who did it with which parameters: the hierarchies ``made``
    (communities by key), those that ``ended``, and the communities that ``left`` with what
    knowledge said of them. ``isolated`` entities were left out, since nothing ties them to another.
    """
    out = Statements(v.SOURCE_GRAPH)
    name, agents = f"{v.URN}clustering:{how.uuid}", (how.agent,)
    activity = Activity(
        name, ("Clustering",), "Clustering", how.started, how.ended, agents, part_of=how.run
    )
    subject = activity.state(out, (v.tg("isolatedCount"), isolated))
    state_parameters(out, subject, parameters, how.uuid, "clustering")
    for key, communities in sorted(made.items()):
        state_entity(
            out,
            f"{v.URN}hierarchy:{v.digest(key, how.uuid)}",
            "Hierarchy",
            (v.prov("generatedAtTime"), how.ended),
            (v.tg("inputHash"), key),
            (v.tg("community"), map(iri, sorted(communities))),
            by=subject,
        )
    for hierarchy in ended:
        state_invalidation(out, hierarchy.iri, subject, how.ended)
    for community, said in left.items():
        former = f"{v.URN}former-community:{v.digest(community, how.uuid)}"
        link = (v.tg("community"), iri(community))
        kept = [
            (quad.predicate, quad.object)
            for quad in said
            if quad.predicate in _KEPT and isinstance(quad.object, NamedNode | Literal)
        ]
        state_entity(out, former, "FormerCommunity", link, *kept)
        state_invalidation(out, former, subject, how.ended)
    return [*out.quads, *agent_quads([how.agent])]


def given_quads(
    how: Authorship,
    hierarchy: str,
    parts: Iterable[str],
    communities: Iterable[GivenCommunity],
    documents: Iterable[str],
) -> list[Quad]:
    """Communities that an imported graph brought, of the parts with these digests: each derived
    from the document that tells of it, all from the graph's documents."""
    out = Statements(v.SOURCE_GRAPH)
    given, sources = list(communities), tuple(documents)
    activity = how.activity(
        "community-import", ("CommunityImport",), "Community import", hierarchy, used=sources
    )
    by = activity.state(out)
    state_entity(
        out,
        hierarchy,
        "GivenHierarchy",
        (v.tg("inputHash"), sorted(parts)),
        (v.tg("community"), [iri(one.iri) for one in given]),
        by=by,
        origins=sources,
    )
    for one in given:
        state_entity(
            out,
            one.iri,
            "GivenCommunity",
            (v.tg("level"), one.level),
            (v.tg("member"), map(iri, sorted(one.members))),
            (v.tg("parent"), iri(one.parent) if one.parent else None),
            (v.tg("charOffset"), one.start),
            (v.tg("charLength"), one.end - one.start),
            by=by,
            origins=(one.document,),
        )
        for index, refers in enumerate(one.refers):
            finding = f"{v.URN}given-finding:{one.iri.rpartition(':')[2]}:{index}"
            out.add(one.iri, (v.tg("finding"), iri(finding)))
            said = (v.tg("index"), index), (v.tg("refersTo"), map(iri, refers))
            state_entity(out, finding, "GivenFinding", *said, by=by, origins=(one.iri,))
    return [*out.quads, *agent_quads([how.agent])]


def standing_hierarchies(store: Store) -> dict[str, Hierarchy]:
    """The hierarchies that have not ended, by key."""
    return _by_key(store, standing(store, "Hierarchy"))


def hierarchies_of(store: Store, members: Iterable[str]) -> dict[str, Hierarchy]:
    """Those of them that have communities of these entities."""
    found = set()
    for member in members:
        for quad in store.match(None, v.tg("member"), NamedNode(member), v.KNOWLEDGE_GRAPH):
            assert isinstance(quad.subject, NamedNode)
            for of in store.match(None, v.tg("community"), quad.subject, v.SOURCE_GRAPH):
                found.add(of.subject)
    nodes = (node for node in found if isinstance(node, NamedNode))
    return _by_key(store, (node for node in nodes if _stands(store, node)))


def _stands(store: Store, node: NamedNode) -> bool:
    kind = store.match(node, v.RDF_TYPE, v.tg("Hierarchy"), v.SOURCE_GRAPH)
    ended = store.match(node, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH)
    return next(kind, None) is not None and next(ended, None) is None


def _by_key(store: Store, nodes: Iterable[NamedNode]) -> dict[str, Hierarchy]:
    found = {}
    for node in nodes:
        key = next(store.match(node, v.tg("inputHash"), None, v.SOURCE_GRAPH)).object
        assert isinstance(key, Literal)
        communities = frozenset(names_of(store, node, "community"))
        found[key.value] = Hierarchy(node.value, key.value, communities)
    return found


def last_parameters(store: Store) -> dict[str, Value] | None:
    """The parameters of the newest clustering; None if there has been none."""
    ends = [
        (str(quad.object), str(quad.subject), quad.subject)
        for activity in store.match(None, v.RDF_TYPE, v.tg("Clustering"), v.SOURCE_GRAPH)
        for quad in store.match(activity.subject, v.prov("endedAtTime"), None, v.SOURCE_GRAPH)
    ]
    if not ends:
        return None
    found: dict[str, Value] = {}
    for quad in store.match(max(ends)[2], v.tg("parameter"), None, v.SOURCE_GRAPH):
        assert isinstance(quad.object, NamedNode)
        label = next(store.match(quad.object, v.RDFS_LABEL, None, v.SOURCE_GRAPH)).object
        said = next(store.match(quad.object, v.tg("value"), None, v.SOURCE_GRAPH)).object
        assert isinstance(label, Literal)
        assert isinstance(said, Literal)
        found[label.value] = said
    return found
