"""The record of community reports: report content is knowledge, report origins are source.

A report's IRI identifies its complete content and grounds, so the report record is written once
and remains when the report is superseded and leaves knowledge. The librarian keeps the report
text."""

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
    find_standing,
    names_of,
    state_entity,
    state_invalidation,
    state_parameters,
)
from tgraph.store.base import Store, text_of
from tgraph.store.statements import Statements, Value, iri_node


def report_quads(report: CommunityReport) -> list[Quad]:
    """What knowledge says of the report and its findings, citations included."""
    out = Statements(v.KNOWLEDGE_GRAPH)
    out.add(
        report.iri,
        (v.RDF_TYPE, v.tg("CommunityReport")),
        (v.RDFS_LABEL, report.title),
        (v.tg("community"), iri_node(report.community)),
        (v.tg("level"), report.level),
        (v.tg("summaryText"), report.summary),
        (v.tg("rating"), float(report.rating)),
        (v.tg("ratingExplanation"), report.rating_explanation),
        (v.tg("finding"), [iri_node(finding.iri) for finding in report.findings]),
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
            out.add(finding.iri, (_CITING.get(kind, v.tg("report")), iri_node(cited)))
    return out.quads


_CITING = {"edge": v.tg("edge"), "entity": v.tg("entity"), "claim": v.tg("claim")}


def state_report(out: Statements, made: MadeReport, how: Authorship, content: str) -> None:
    """State a report's making, plus the derivations of the report and each finding.

    ``content`` is the librarian hash for the report and the context shown to its author."""
    report = made.report
    activity = how.activity(
        "reporting", ("Reporting",), "Community report", report.iri, dropped=made.dropped
    )  # whose error has a property of its own in the vocabulary
    by = replace(activity, error=None).state(
        out,
        (v.tg("community"), iri_node(report.community)),
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
        part = (v.dcterms("isPartOf"), iri_node(report.iri))
        state_entity(out, finding.iri, "", part, by=by, origins=sources)


def report_content(made: MadeReport, context: ReportContext) -> str:
    """Return a report and its input as JSON text, kept by the librarian.

    The input covers the shown members, edges, claims and sub-reports, plus counts of omitted
    items."""
    shown_context = {
        "entities": [entity.iri for entity in context.entities],
        "edges": [edge.iri for edge in context.edges],
        "claims": [claim.iri for claim in context.claims],
        "reports": [sub.report.iri for sub in context.reports],
    }
    content = {
        "report": asdict(made.report),
        "shown": shown_context,
        "left_out": dict(context.left_out),
    }
    return canonical_json(content)


def find_fallbacks(store: Store) -> set[str]:
    """Return communities whose report was once made by fallback, since writing failed."""
    communities = set()
    for quad in store.match(None, v.tg("fallbackReason"), None, v.SOURCE_GRAPH):
        for link in store.match(quad.subject, v.tg("community"), None, v.SOURCE_GRAPH):
            communities.add(text_of(link.object))
    return communities


Parameters = Mapping[str, str | int | float]
_KEPT = (v.RDFS_LABEL, v.tg("level"), v.tg("member"), v.tg("parent"))
"""What knowledge said of a community that stays on record."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A run's community hierarchy for a connected graph part.

    The hierarchy stands while the part stays unchanged: ``key`` is the digest of the
    hierarchy's inputs. The communities themselves are knowledge. When a community leaves
    knowledge, its members stay on record (design, section 3.4)."""

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
    """Return quads describing a run's clustering: agent, parameters, hierarchies made,
    hierarchies ended, communities removed.

    ``made`` maps keys to communities, ``ended`` lists invalidated hierarchies, and ``left``
    maps removed communities to their former knowledge statements. ``isolated`` counts entities
    left out because no ties connect them to other entities."""
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
            f"{v.URN}hierarchy:{v.digest_parts(key, how.uuid)}",
            "Hierarchy",
            (v.prov("generatedAtTime"), how.ended),
            (v.tg("inputHash"), key),
            (v.tg("community"), map(iri_node, sorted(communities))),
            by=subject,
        )
    for hierarchy in ended:
        state_invalidation(out, hierarchy.iri, subject, how.ended)
    for community, quads in left.items():
        former = f"{v.URN}former-community:{v.digest_parts(community, how.uuid)}"
        link = (v.tg("community"), iri_node(community))
        member_pairs = [
            (quad.predicate, quad.object)
            for quad in quads
            if quad.predicate in _KEPT and isinstance(quad.object, NamedNode | Literal)
        ]
        state_entity(out, former, "FormerCommunity", link, *member_pairs)
        state_invalidation(out, former, subject, how.ended)
    return [*out.quads, *agent_quads([how.agent])]


def given_quads(
    how: Authorship,
    hierarchy: str,
    parts: Iterable[str],
    communities: Iterable[GivenCommunity],
    documents: Iterable[str],
) -> list[Quad]:
    """Return quads describing communities imported with a graph, for the parts with the given
    digests.

    Each community derives from the document describing it; the hierarchy derives from all
    documents of the graph."""
    out = Statements(v.SOURCE_GRAPH)
    community_list, sources = list(communities), tuple(documents)
    activity = how.activity(
        "community-import", ("CommunityImport",), "Community import", hierarchy, used=sources
    )
    by = activity.state(out)
    state_entity(
        out,
        hierarchy,
        "GivenHierarchy",
        (v.tg("inputHash"), sorted(parts)),
        (v.tg("community"), [iri_node(community.iri) for community in community_list]),
        by=by,
        origins=sources,
    )
    for community in community_list:
        state_entity(
            out,
            community.iri,
            "GivenCommunity",
            (v.tg("level"), community.level),
            (v.tg("member"), map(iri_node, sorted(community.members))),
            (v.tg("parent"), iri_node(community.parent) if community.parent else None),
            (v.tg("charOffset"), community.start),
            (v.tg("charLength"), community.end - community.start),
            by=by,
            origins=(community.document,),
        )
        for index, refers in enumerate(community.refers):
            finding = f"{v.URN}given-finding:{community.iri.rpartition(':')[2]}:{index}"
            out.add(community.iri, (v.tg("finding"), iri_node(finding)))
            finding_pairs = (v.tg("index"), index), (v.tg("refersTo"), map(iri_node, refers))
            state_entity(
                out, finding, "GivenFinding", *finding_pairs, by=by, origins=(community.iri,)
            )
    return [*out.quads, *agent_quads([how.agent])]


def standing_hierarchies(store: Store) -> dict[str, Hierarchy]:
    """Return hierarchies without invalidation, by key."""
    return _by_key(store, find_standing(store, "Hierarchy"))


def hierarchies_of(store: Store, members: Iterable[str]) -> dict[str, Hierarchy]:
    """Return standing hierarchies containing communities of the given entities, by key."""
    hierarchy_nodes = set()
    for member in members:
        for quad in store.match(None, v.tg("member"), NamedNode(member), v.KNOWLEDGE_GRAPH):
            assert isinstance(quad.subject, NamedNode)
            for of in store.match(None, v.tg("community"), quad.subject, v.SOURCE_GRAPH):
                hierarchy_nodes.add(of.subject)
    nodes = (node for node in hierarchy_nodes if isinstance(node, NamedNode))
    return _by_key(store, (node for node in nodes if _is_standing(store, node)))


def _is_standing(store: Store, node: NamedNode) -> bool:
    kind = store.match(node, v.RDF_TYPE, v.tg("Hierarchy"), v.SOURCE_GRAPH)
    ended = store.match(node, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH)
    return next(kind, None) is not None and next(ended, None) is None


def _by_key(store: Store, nodes: Iterable[NamedNode]) -> dict[str, Hierarchy]:
    hierarchies = {}
    for node in nodes:
        key = next(store.match(node, v.tg("inputHash"), None, v.SOURCE_GRAPH)).object
        assert isinstance(key, Literal)
        communities = frozenset(names_of(store, node, "community"))
        hierarchies[key.value] = Hierarchy(node.value, key.value, communities)
    return hierarchies


def last_parameters(store: Store) -> dict[str, Value] | None:
    """Return the newest clustering's parameters, or None without any clustering."""
    ends = [
        (str(quad.object), str(quad.subject), quad.subject)
        for activity in store.match(None, v.RDF_TYPE, v.tg("Clustering"), v.SOURCE_GRAPH)
        for quad in store.match(activity.subject, v.prov("endedAtTime"), None, v.SOURCE_GRAPH)
    ]
    if not ends:
        return None
    parameters: dict[str, Value] = {}
    for quad in store.match(max(ends)[2], v.tg("parameter"), None, v.SOURCE_GRAPH):
        assert isinstance(quad.object, NamedNode)
        label = next(store.match(quad.object, v.RDFS_LABEL, None, v.SOURCE_GRAPH)).object
        literal = next(store.match(quad.object, v.tg("value"), None, v.SOURCE_GRAPH)).object
        assert isinstance(label, Literal)
        assert isinstance(literal, Literal)
        parameters[label.value] = literal
    return parameters
