"""Communities and their details, made up for the tests of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.index.communities.communities import IriPair, Outline
from tgraph.index.reports.context import Child, ClaimDetail, EdgeDetail, EntityDetail
from tgraph.index.reports.details import Details, StatedEdge
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


@dataclass(frozen=True)
class MadeUpSource:
    """A ``DetailSource`` of what the tests make up."""

    found: Mapping[str, EntityDetail]
    edges: Mapping[IriPair, Edge]
    quotes: Mapping[str, Evidence]

    def label(self, entity: str) -> str:
        return self.found[entity].name

    def entity(self, entity: str) -> EntityDetail:
        return self.found[entity]

    def read_edges_between(self, pair: IriPair) -> Sequence[StatedEdge]:
        return [StatedEdge(self.edges[pair])]

    def attributes(self, entity: str) -> Sequence[StatedEdge]:
        return []

    def evidence(self, edges: Sequence[str]) -> Mapping[str, tuple[Evidence, ...]]:
        return {edge: (self.quotes[edge],) for edge in edges}


def details_of(
    pairs: Sequence[tuple[int, int]], words: int = 12, claims: int = 0, community: str = "c"
) -> Details:
    """A community of the pairs' entities, each edge with a sentence of so many words."""
    ordered = sorted(set(pairs))
    members = sorted({n for pair in pairs for n in pair})
    iris = {n: v.entity_iri(name(n)) for n in members}
    edges = {(iris[one], iris[other]): edge_of(one, other) for one, other in ordered}
    said = [f"{name(one)} knows {name(other)} " + "well " * words for one, other in ordered]
    stated = zip(edges.values(), said, strict=True)
    quotes = {e.iri: evidence_of(e, text, 1000 * n) for n, (e, text) in enumerate(stated)}
    entities = {
        iri: EntityDetail(iri, name(n), "person", 0, (), (f"urn:x:{n}",)) for n, iri in iris.items()
    }
    told = Details(
        Community(f"urn:x:{community}", 0, tuple(sorted(entities)), ()),
        Outline(dict.fromkeys(edges, 1), {}),
        {},
        MadeUpSource(entities, edges, quotes),
    )
    first = next(told.entities(entities)).iri
    made = [ClaimDetail(f"urn:x:claim:{n}", first, f"Claim {n} is made.") for n in range(claims)]
    return replace(told, claims={first: made})


def entities_of(details: Details) -> list[EntityDetail]:
    return list(details.entities(details.community.members))


def edges_of(details: Details) -> list[EdgeDetail]:
    return list(details.edges(details.outline.ties, details.outline.attributes))


def child_of(members: Sequence[int], words: int = 20, findings: int = 2) -> Child:
    iris = tuple(sorted(v.entity_iri(name(n)) for n in members))
    report = f"urn:trustgraph:report:{v.digest_parts(*iris)}"
    told = tuple(
        Finding(v.finding_iri(report, n), f"Finding {n}", "Something is so. " * words, ())
        for n in range(findings)
    )
    community = f"urn:x:{v.digest_parts(*iris)}"
    return Child(
        Community(community, 1, iris, ()),
        CommunityReport(report, community, 1, f"Part {members[0]}", "It is a part.", 3.0, "", told),
    )
