"""Clusterings: what divided which part of the graph, and what has left knowledge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.record.activities import (
    Activity,
    Authorship,
    names_of,
    standing,
    state_entity,
    state_invalidation,
    state_parameters,
)
from tgraph.record.agents import agent_quads
from tgraph.store.base import Store
from tgraph.store.statements import Pair, Statements, Value, iri

Parameters = Mapping[str, str | int | float]


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
    subject = f"{v.URN}clustering:{how.uuid}"
    activity = Activity(
        subject,
        ("Clustering",),
        "Clustering",
        how.started,
        how.ended,
        (how.agent,),
        part_of=how.run,
    )
    activity.state(out, (v.tg("isolatedCount"), isolated))
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
        state_entity(out, former, "FormerCommunity", link, *_kept(said))
        state_invalidation(out, former, subject, how.ended)
    return [*out.quads, *agent_quads([how.agent])]


def _kept(said: Iterable[Quad]) -> Iterator[Pair]:
    """What knowledge said of a community, as far as it stays on record."""
    kept = (v.RDFS_LABEL, v.tg("level"), v.tg("member"), v.tg("parent"))
    for quad in said:
        if quad.predicate in kept and isinstance(quad.object, NamedNode | Literal):
            yield quad.predicate, quad.object


def standing_hierarchies(store: Store) -> dict[str, Hierarchy]:
    """The hierarchies that have not ended, by key."""
    found = {}
    for node in standing(store, "Hierarchy"):
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
