"""Communities and their details, made up for the tests of reports."""

from __future__ import annotations

from collections.abc import Sequence

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.index.reports.context import Child, ClaimDetail, Details, EdgeDetail, EntityDetail
from tgraph.model import Community, CommunityReport, Edge, Evidence, Finding


def name(n: int) -> str:
    return f"Entity {n:03d}"


def edge_of(one: int, other: int, weight: float = 5.0) -> Edge:
    ends = NamedNode(v.entity_iri(name(one))), NamedNode(v.entity_iri(name(other)))
    relation = NamedNode(v.relation_iri("knows"))
    return Edge(ends[0], relation, ends[1], name(one), "knows", name(other), weight)


def evidence_of(edge: Edge, text: str, place: int) -> Evidence:
    document = v.document_iri("0" * 64)
    iri = v.evidence_iri(edge.iri, "urn:x:chunk", place, place + len(text), "x")
    return Evidence(
        iri, edge.iri, "urn:x:chunk", document, "T", "t.txt", None, place, place + len(text), text
    )


def details_of(
    pairs: Sequence[tuple[int, int]], words: int = 12, claims: int = 0, community: str = "c"
) -> Details:
    """A community of the pairs' entities, each edge with a sentence of so many words."""
    edges = [edge_of(*pair) for pair in sorted(set(pairs))]
    members = sorted({n for pair in pairs for n in pair})
    degree = {n: sum(n in pair for pair in set(pairs)) for n in members}
    shown = [
        EdgeDetail(
            edge,
            degree[one] + degree[other],
            (evidence_of(edge, f"{name(one)} knows {name(other)} " + "well " * words, 1000 * n),),
        )
        for n, (edge, (one, other)) in enumerate(zip(edges, sorted(set(pairs)), strict=True))
    ]
    shown.sort(key=lambda detail: (-detail.links, detail.iri))
    entities = [
        EntityDetail(v.entity_iri(name(n)), name(n), "person", degree[n], (), (f"urn:x:{n}",))
        for n in sorted(members, key=lambda n: (-degree[n], n))
    ]
    said = [
        ClaimDetail(f"urn:x:claim:{n}", entities[0].iri, f"Claim {n} is made.", ())
        for n in range(claims)
    ]
    return Details(
        Community(
            f"urn:x:{community}",
            0,
            tuple(sorted(e.iri for e in entities)),
            tuple(sorted(edge.iri for edge in edges)),
        ),
        tuple(entities),
        tuple(shown),
        tuple(said),
    )


def child_of(members: Sequence[int], words: int = 20, findings: int = 2) -> Child:
    iris = tuple(sorted(v.entity_iri(name(n)) for n in members))
    report = f"urn:trustgraph:report:{v.digest(*iris)}"
    told = tuple(
        Finding(v.finding_iri(report, n), f"Finding {n}", "Something is so. " * words, ())
        for n in range(findings)
    )
    community = f"urn:x:{v.digest(*iris)}"
    return Child(
        Community(community, 1, iris, ()),
        CommunityReport(report, community, 1, f"Part {members[0]}", "It is a part.", 3.0, "", told),
    )
