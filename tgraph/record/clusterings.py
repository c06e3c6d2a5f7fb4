"""Where communities come from: what divided which part of the graph, and what has left knowledge.

A hierarchy is the communities of one connected part of the graph as a run divided it; it stands for
as long as the part stays as it was. The communities themselves are knowledge. When one leaves it,
its members stay on record here (design, section 3.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.model import Agent
from tgraph.record.agents import agent_quads, associations
from tgraph.store.base import Store
from tgraph.store.statements import Statements, Value, iri

Parameters = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Communities of a connected part of the graph, as they are on record.

    ``key`` is the digest of what they depend on.
    """

    iri: str
    key: str
    communities: frozenset[str]


@dataclass(frozen=True, slots=True)
class ClusteringRecord:
    """What a run clustered: the activity, and who did it with which parameters.

    ``isolated`` counts the entities that were left out, since nothing ties them to another.
    """

    run: str
    agent: Agent
    parameters: Parameters
    isolated: int
    started: datetime
    ended: datetime

    @property
    def activity(self) -> str:
        return f"{v.URN}clustering:{self._uuid}"

    @property
    def _uuid(self) -> str:
        return self.run.rpartition(":")[2]

    def quads(
        self,
        made: Mapping[str, Iterable[str]],
        ended: Iterable[Hierarchy],
        left: Mapping[str, Iterable[Quad]],
    ) -> list[Quad]:
        """The clustering, the hierarchies ``made`` (communities by key), those that ``ended``, and
        the communities that ``left`` with what knowledge said of them."""
        out = Statements(v.SOURCE_GRAPH)
        self._describe(out)
        for key, communities in sorted(made.items()):
            out.add(
                f"{v.URN}hierarchy:{v.digest(key, self._uuid)}",
                (v.RDF_TYPE, [v.prov("Entity"), v.tg("Hierarchy")]),
                (v.prov("wasGeneratedBy"), iri(self.activity)),
                (v.prov("generatedAtTime"), self.ended),
                (v.tg("inputHash"), key),
                (v.tg("community"), map(iri, sorted(communities))),
            )
        for hierarchy in ended:
            self._invalidate(out, hierarchy.iri)
        for community, said in left.items():
            self._keep(out, community, said)
        return [*out.quads, *agent_quads([self.agent])]

    def _describe(self, out: Statements) -> None:
        out.add(
            self.activity,
            (v.RDF_TYPE, [v.prov("Activity"), v.tg("Clustering")]),
            (v.RDFS_LABEL, "Clustering"),
            (v.dcterms("isPartOf"), iri(self.run)),
            (v.prov("startedAtTime"), self.started),
            (v.prov("endedAtTime"), self.ended),
            (v.tg("isolatedCount"), self.isolated),
        )
        associations(out, self.activity, self.agent)
        for name, said in sorted(self.parameters.items()):
            key = v.session_part_iri("parameter", self._uuid, "clustering", name)
            out.add(self.activity, (v.tg("parameter"), iri(key)))
            out.add(
                key,
                (v.RDF_TYPE, v.tg("Parameter")),
                (v.RDFS_LABEL, name),
                (v.tg("value"), said),
            )

    def _invalidate(self, out: Statements, subject: str) -> None:
        out.add(
            subject,
            (v.prov("invalidatedAtTime"), self.ended),
            (v.prov("wasInvalidatedBy"), iri(self.activity)),
        )

    def _keep(self, out: Statements, community: str, said: Iterable[Quad]) -> None:
        former = f"{v.URN}former-community:{v.digest(community, self._uuid)}"
        kept = (v.RDFS_LABEL, v.tg("level"), v.tg("member"), v.tg("parent"))
        facts = sorted(((q.predicate, q.object) for q in said if q.predicate in kept), key=str)
        out.add(
            former,
            (v.RDF_TYPE, [v.prov("Entity"), v.tg("FormerCommunity")]),
            (v.tg("community"), iri(community)),
            *((path, term) for path, term in facts if isinstance(term, NamedNode | Literal)),
        )
        self._invalidate(out, former)


def standing_hierarchies(store: Store) -> dict[str, Hierarchy]:
    """The hierarchies that have not ended, by key."""
    found = {}
    for quad in store.match(None, v.RDF_TYPE, v.tg("Hierarchy"), v.SOURCE_GRAPH):
        node = quad.subject
        assert isinstance(node, NamedNode)
        if next(store.match(node, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH), None):
            continue
        key = next(store.match(node, v.tg("inputHash"), None, v.SOURCE_GRAPH)).object
        assert isinstance(key, Literal)
        communities = store.match(node, v.tg("community"), None, v.SOURCE_GRAPH)
        names = frozenset(q.object.value for q in communities if isinstance(q.object, NamedNode))
        found[key.value] = Hierarchy(node.value, key.value, names)
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
