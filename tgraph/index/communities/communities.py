"""Communities of entities: what the default graph says of them, and how they are found.

Each connected part of the graph is divided by itself, from its entities in the order of their IRIs.
So its communities depend on nothing outside it: not on the order of the input, nor on what stood
before, nor on changes elsewhere. Every connected part has communities; an entity that no
relationship ties to another has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.index.communities.leiden import Clustering, Group, Tie, hierarchy
from tgraph.index.standing_knowledge import value
from tgraph.model import Community
from tgraph.store.base import Store, text_of
from tgraph.store.statements import Statements, edge_of, iri

_PROPERTIES = (v.RDF_TYPE, v.RDFS_LABEL, v.tg("level"), v.tg("member"), v.tg("parent"))
_NAMED, _LETTERS = 3, 60
_HEAVIEST = 1e9
_EDGE = v.tg("Edge")


class Relationship(NamedTuple):
    """An edge between two entities, or one that has a literal and no ``object``, by IRI, with its
    weight."""

    edge: str
    subject: str
    object: str | None
    weight: float


Pair = tuple[str, str]
"""Two different entities, the first in the order of their IRIs first."""


@dataclass(frozen=True, slots=True)
class Outline:
    """How many edges there are between each two of some entities, and how many to literals each of
    them has; where there are none nothing is said."""

    ties: Mapping[Pair, int]
    attributes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Component:
    """A connected part of the graph: at least two entities, sorted, with their labels, and the ties
    between them by position. One that was cut from a larger part (``partition``) has groups."""

    members: tuple[str, ...]
    labels: tuple[str, ...]
    ties: tuple[Tie, ...]
    groups: tuple[int, ...] = ()

    def key(self, how: Clustering) -> str:
        """A digest of all that the communities of the part depend on."""
        settings = (f"{name}={said}" for name, said in how.parameters.items())
        return v.digest(*settings, "", *self._parts())

    @property
    def digest(self) -> str:
        """A digest of the part itself, however it is divided."""
        return v.digest(*self._parts())

    def _parts(self) -> Iterator[str]:
        ties = (f"{one} {other} {weight!r}" for one, other, weight in self.ties)
        groups = ("", *map(str, self.groups)) if self.groups else ()
        return chain(self.members, ("",), self.labels, ("",), ties, groups)


class FoundCommunities(NamedTuple):
    """A community and its label; its edges are not looked up."""

    community: Community
    label: str


def find_communities(component: Component, how: Clustering) -> list[FoundCommunities]:
    """The communities of a connected part, level by level (see ``leiden.hierarchy``)."""
    groups = hierarchy(len(component.members), component.ties, how, component.groups)
    names = [v.community_iri(g.level, (component.members[n] for n in g.nodes)) for g in groups]
    children: list[list[str]] = [[] for _ in groups]
    for name, group in zip(names, groups, strict=True):
        if group.parent is not None:
            children[group.parent].append(name)
    strengths = _strengths(component, groups)
    return [
        FoundCommunities(
            Community(
                iri=names[index],
                level=group.level,
                members=tuple(component.members[node] for node in group.nodes),
                edges=(),
                parent=None if group.parent is None else names[group.parent],
                children=tuple(sorted(children[index])),
            ),
            _label(component, group, strengths[index]),
        )
        for index, group in enumerate(groups)
    ]


def _strengths(component: Component, groups: Sequence[Group]) -> list[dict[int, float]]:
    """For each group, the weight that ties each of its nodes to the others of the group."""
    within: list[dict[int, float]] = [dict.fromkeys(group.nodes, 0.0) for group in groups]
    of_node: list[list[int]] = [[] for _ in component.members]
    for index, group in enumerate(groups):  # level by level, so the lists are paths downwards
        for node in group.nodes:
            of_node[node].append(index)
    for one, other, weight in component.ties:
        for here, there in zip(of_node[one], of_node[other], strict=False):
            if here != there:
                break
            within[here][one] += weight
            within[here][other] += weight
    return within


def _label(component: Component, group: Group, strengths: Mapping[int, float]) -> str:
    ranked = sorted(group.nodes, key=lambda n: (-strengths[n], component.labels[n], n))
    return label_of([component.labels[node] for node in ranked])


def label_of(ranked: Sequence[str]) -> str:
    """The members that hold a community together most, and how many more there are."""
    labels = ranked[:_NAMED]
    names = [x if len(x) <= _LETTERS else x[: _LETTERS - 1].rstrip() + "…" for x in labels]
    more = len(ranked) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def read_relationships(store: Store) -> Iterator[Relationship]:
    """The edges of knowledge between two different entities, or of one to a literal, in any order,
    each entity's IRI one string for all: there may be a million.

    A weight that is missing or no positive number counts as 1.
    """
    entities = {name: name for name in map(value, instances(store, "Entity"))}
    weights = dict.fromkeys(map(value, instances(store, "Edge")), 1.0)
    weigh = lru_cache(_weight)
    for quad in store.match(None, v.tg("weight"), None, v.KNOWLEDGE_GRAPH):
        weights[value(quad.subject)] = weigh(value(quad.object))
    for relation in instances(store, "Relation"):
        for quad in store.match(None, relation, None, v.KNOWLEDGE_GRAPH):
            subject, obj = quad.subject, quad.object
            if not isinstance(subject, NamedNode) or not isinstance(obj, NamedNode | Literal):
                continue
            edge, one = v.edge_iri(subject, relation, obj), entities.get(subject.value)
            other = entities.get(obj.value) if isinstance(obj, NamedNode) else None
            related = isinstance(obj, Literal) or other not in (one, None)
            if one is not None and related and edge in weights:
                yield Relationship(edge, one, other, weights[edge])


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return min(weight, _HEAVIEST) if weight > 0 else 1.0


def relationship_weight(store: Store, triple: Triple) -> float | None:
    """The same weight of one edge; None where knowledge has no such edge."""
    return weight_in(store.match(NamedNode(edge_of(triple)), None, None, v.KNOWLEDGE_GRAPH))


def weight_in(said: Iterable[Quad]) -> float | None:
    """The same of what knowledge says of an edge."""
    found = None
    for quad in said:
        if quad.predicate == v.tg("weight"):
            return _weight(value(quad.object))
        if quad.predicate == v.RDF_TYPE and quad.object == _EDGE:
            found = 1.0
    return found


def label(store: Store, resource: str) -> str:
    """What a resource is called; of several labels the first."""
    quads = store.match(NamedNode(resource), v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)
    return min(filter(None, (text_of(quad.object) for quad in quads)), default=resource)


def attributes_of(store: Store, entity: str) -> list[Triple]:
    """The edges from the entity to literals."""
    quads = store.match(NamedNode(entity), None, None, v.KNOWLEDGE_GRAPH)
    stated = (quad for quad in quads if isinstance(quad.object, Literal))
    triples = [q.triple for q in stated if has_type(store, q.predicate, "Relation")]
    return [t for t in triples if has_type(store, NamedNode(edge_of(t)), "Edge")]


def relations_between(store: Store, subject: str, obj: str) -> Iterator[Triple]:
    """What knowledge states of one entity and the other by its relations."""
    for quad in store.match(NamedNode(subject), None, NamedNode(obj), v.KNOWLEDGE_GRAPH):
        if has_type(store, quad.predicate, "Relation"):
            yield quad.triple


def has_type(store: Store, node: NamedNode, kind: str) -> bool:
    """Whether knowledge has the resource as one of this class."""
    quads = store.match(node, v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH)
    return next(quads, None) is not None


def instances(store: Store, kind: str) -> Iterator[NamedNode]:
    quads = store.match(None, v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH)
    return (quad.subject for quad in quads if isinstance(quad.subject, NamedNode))


def community_quads(found: Iterable[FoundCommunities]) -> list[Quad]:
    """The communities as knowledge; without edge IRIs, so that retrieval takes none of it."""
    out = Statements(v.KNOWLEDGE_GRAPH)
    for community, label in found:
        out.add(
            community.iri,
            (v.RDF_TYPE, v.tg("Community")),
            (v.RDFS_LABEL, label),
            (v.tg("level"), community.level),
            (v.tg("member"), map(iri, community.members)),
            (v.tg("parent"), iri(community.parent) if community.parent else None),
        )
    return out.quads


def stated_quads(store: Store, community: str) -> list[Quad]:
    """What knowledge says of a community, of the kind that ``community_quads`` makes."""
    quads = store.match(NamedNode(community), None, None, v.KNOWLEDGE_GRAPH)
    return [quad for quad in quads if quad.predicate in _PROPERTIES]


def read_communities(store: Store, *, edges: bool = True) -> tuple[Community, ...]:
    """All communities, by level and IRI; members, edges and children are sorted.

    Their ``edges`` are those with both ends in the community; they are not looked up unless
    ``edges``, which is most of the work.
    """
    found = {node.value: _Stated() for node in instances(store, "Community")}
    for name in (v.tg("level"), v.tg("member"), v.tg("parent")):
        for quad in store.match(None, name, None, v.KNOWLEDGE_GRAPH):
            subject, said = value(quad.subject), value(quad.object)
            if subject not in found:
                continue
            found[subject].take(name, said)
            if name == v.tg("parent") and said in found:
                found[said].children.append(subject)
    ordered = sorted(found.items(), key=lambda item: (item[1].level, item[0]))
    read = tuple(stated.community(name) for name, stated in ordered)
    return with_edges(store, read) if edges else read


def read_community(store: Store, name: str) -> Community | None:
    """One of them, without its edges; None where knowledge has no such community."""
    node = NamedNode(name)
    if not has_type(store, node, "Community"):
        return None
    stated = _Stated()
    for quad in store.match(node, None, None, v.KNOWLEDGE_GRAPH):
        stated.take(quad.predicate, value(quad.object))
    children = store.match(None, v.tg("parent"), node, v.KNOWLEDGE_GRAPH)
    stated.children = [value(quad.subject) for quad in children]
    return stated.community(name)


@dataclass(slots=True)
class _Stated:
    """A community as it is read, piece by piece."""

    level: int = 0
    parent: str | None = None
    members: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)

    def take(self, name: NamedNode, said: str) -> None:
        if name == v.tg("level"):
            self.level = int(said)
        elif name == v.tg("member"):
            self.members.append(said)
        elif name == v.tg("parent"):
            self.parent = said

    def community(self, name: str) -> Community:
        members, children = tuple(sorted(self.members)), tuple(sorted(self.children))
        return Community(name, self.level, members, (), self.parent, children)


def with_edges(store: Store, communities: Sequence[Community]) -> tuple[Community, ...]:
    """The communities with their edges."""
    found: dict[str, list[str]] = {community.iri: [] for community in communities}
    of_entity: dict[str, set[str]] = {}
    for community in communities:
        for member in community.members:
            of_entity.setdefault(member, set()).add(community.iri)
    for relationship in read_relationships(store):
        ends = relationship.subject, relationship.object or ""
        for name in set.intersection(*(of_entity.get(end, set()) for end in ends)):
            found[name].append(relationship.edge)
    return tuple(replace(one, edges=tuple(sorted(found[one.iri]))) for one in communities)


def isolated_entities(store: Store) -> tuple[str, ...]:
    """The entities that are in no community, sorted: no relationship ties them to another."""
    entities = set(map(value, instances(store, "Entity")))
    communities = community_names(store)
    for quad in store.match(None, v.tg("member"), None, v.KNOWLEDGE_GRAPH):
        if value(quad.subject) in communities:
            entities.discard(value(quad.object))
    return tuple(sorted(entities))


def community_names(store: Store) -> set[str]:
    """The IRIs of all communities, of all levels."""
    return {node.value for node in instances(store, "Community")}
