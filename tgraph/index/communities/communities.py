"""Entity communities: default graph representation, and detection.

Each connected part of the graph is divided by itself, from its entities in the order of their
IRIs. So its communities depend on nothing outside it: not on the order of the input, nor on
earlier states, nor on changes elsewhere. Every connected part has communities; an entity
without relationship to another has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.index.communities.leiden import Clustering, Group, WeightedTie, build_hierarchy
from tgraph.index.standing_knowledge import term_value
from tgraph.model import Community
from tgraph.store.base import Store, text_of
from tgraph.store.statements import Statements, edge_of, iri_node

_PROPERTIES = (v.RDF_TYPE, v.RDFS_LABEL, v.tg("level"), v.tg("member"), v.tg("parent"))
_NAMED, _LETTERS = 3, 60
_HEAVIEST = 1e9
_EDGE = v.tg("Edge")


class Relationship(NamedTuple):
    """A weighted edge by IRI, linking two entities, or an entity and a literal (no ``object``)."""

    edge: str
    subject: str
    object: str | None
    weight: float


IriPair = tuple[str, str]
"""Two different entities, the first in the order of their IRIs first."""


@dataclass(frozen=True, slots=True)
class Outline:
    """Edge counts between pairs of entities, and literal edge counts by entity; zero counts are
    omitted."""

    ties: Mapping[IriPair, int]
    attributes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Component:
    """A connected graph component: two or more sorted entities, entity labels, and positional
    ties.

    A component cut from a larger part (``partition``) has groups."""

    members: tuple[str, ...]
    labels: tuple[str, ...]
    ties: tuple[WeightedTie, ...]
    groups: tuple[int, ...] = ()

    def key(self, how: Clustering) -> str:
        """Return a digest of everything the component's communities depend on."""
        settings = (f"{name}={setting}" for name, setting in how.parameters.items())
        return v.digest_parts(*settings, "", *self._digest_parts())

    @property
    def digest(self) -> str:
        """Digest of component contents, independent of division settings."""
        return v.digest_parts(*self._digest_parts())

    def _digest_parts(self) -> Iterator[str]:
        ties = (f"{first} {second} {weight!r}" for first, second, weight in self.ties)
        groups = ("", *map(str, self.groups)) if self.groups else ()
        return chain(self.members, ("",), self.labels, ("",), ties, groups)


class FoundCommunities(NamedTuple):
    """A community with label, edges not looked up."""

    community: Community
    label: str


def find_communities(component: Component, how: Clustering) -> list[FoundCommunities]:
    """Return communities of a connected part, level by level (see ``leiden.hierarchy``)."""
    groups = build_hierarchy(len(component.members), component.ties, how, component.groups)
    names = [v.community_iri(g.level, (component.members[n] for n in g.nodes)) for g in groups]
    children: list[list[str]] = [[] for _ in groups]
    for name, group in zip(names, groups, strict=True):
        if group.parent is not None:
            children[group.parent].append(name)
    strengths = _tie_strengths(component, groups)
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
            _group_label(component, group, strengths[index]),
        )
        for index, group in enumerate(groups)
    ]


def _tie_strengths(component: Component, groups: Sequence[Group]) -> list[dict[int, float]]:
    """Return, per group, each node's total tie weight to other group nodes."""
    strengths: list[dict[int, float]] = [dict.fromkeys(group.nodes, 0.0) for group in groups]
    of_node: list[list[int]] = [[] for _ in component.members]
    for index, group in enumerate(groups):  # level by level, so the lists are paths downwards
        for node in group.nodes:
            of_node[node].append(index)
    for first, second, weight in component.ties:
        for here, there in zip(of_node[first], of_node[second], strict=False):
            if here != there:
                break
            strengths[here][first] += weight
            strengths[here][second] += weight
    return strengths


def _group_label(component: Component, group: Group, strengths: Mapping[int, float]) -> str:
    ranked = sorted(group.nodes, key=lambda n: (-strengths[n], component.labels[n], n))
    return label_of([component.labels[node] for node in ranked])


def label_of(ranked: Sequence[str]) -> str:
    """Return a label of the members most central to a community, plus the count of remaining
    members."""
    labels = ranked[:_NAMED]
    names = [x if len(x) <= _LETTERS else x[: _LETTERS - 1].rstrip() + "…" for x in labels]
    remaining = len(ranked) - len(names)
    return ", ".join(names) + (f" and {remaining:,} more" if remaining else "")


def read_relationships(store: Store) -> Iterator[Relationship]:
    """Yield knowledge edges between distinct entities, or between an entity and a literal, in
    any order.

    Each entity's IRI is one shared string: there may be a million edges. A missing or
    non-positive weight counts as 1."""
    entities = {name: name for name in map(term_value, find_instances(store, "Entity"))}
    weights = dict.fromkeys(map(term_value, find_instances(store, "Edge")), 1.0)
    weigh = lru_cache(_parse_weight)
    for quad in store.match(None, v.tg("weight"), None, v.KNOWLEDGE_GRAPH):
        weights[term_value(quad.subject)] = weigh(term_value(quad.object))
    for relation in find_instances(store, "Relation"):
        for quad in store.match(None, relation, None, v.KNOWLEDGE_GRAPH):
            subject, obj = quad.subject, quad.object
            if not isinstance(subject, NamedNode) or not isinstance(obj, NamedNode | Literal):
                continue
            edge, subject_iri = v.edge_iri(subject, relation, obj), entities.get(subject.value)
            object_iri = entities.get(obj.value) if isinstance(obj, NamedNode) else None
            related = isinstance(obj, Literal) or object_iri not in (subject_iri, None)
            if subject_iri is not None and related and edge in weights:
                yield Relationship(edge, subject_iri, object_iri, weights[edge])


def _parse_weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return min(weight, _HEAVIEST) if weight > 0 else 1.0


def relationship_weight(store: Store, triple: Triple) -> float | None:
    """Return an edge's weight as in ``read_relationships``; None if knowledge lacks the edge."""
    return weight_in(store.match(NamedNode(edge_of(triple)), None, None, v.KNOWLEDGE_GRAPH))


def weight_in(said: Iterable[Quad]) -> float | None:
    """Return the edge weight stated by an edge's knowledge quads; None without edge."""
    weight = None
    for quad in said:
        if quad.predicate == v.tg("weight"):
            return _parse_weight(term_value(quad.object))
        if quad.predicate == v.RDF_TYPE and quad.object == _EDGE:
            weight = 1.0
    return weight


def read_label(store: Store, resource: str) -> str:
    """Return a resource's label; of several labels, the alphabetically smallest."""
    quads = store.match(NamedNode(resource), v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)
    return min(filter(None, (text_of(quad.object) for quad in quads)), default=resource)


def attributes_of(store: Store, entity: str) -> list[Triple]:
    """Return edges from an entity to literals."""
    quads = store.match(NamedNode(entity), None, None, v.KNOWLEDGE_GRAPH)
    literal_quads = (quad for quad in quads if isinstance(quad.object, Literal))
    triples = [q.triple for q in literal_quads if has_type(store, q.predicate, "Relation")]
    return [t for t in triples if has_type(store, NamedNode(edge_of(t)), "Edge")]


def relations_between(store: Store, subject: str, obj: str) -> Iterator[Triple]:
    """Yield knowledge statements linking two entities by relations."""
    for quad in store.match(NamedNode(subject), None, NamedNode(obj), v.KNOWLEDGE_GRAPH):
        if has_type(store, quad.predicate, "Relation"):
            yield quad.triple


def has_type(store: Store, node: NamedNode, kind: str) -> bool:
    """Tell whether knowledge assigns a resource to a class."""
    quads = store.match(node, v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH)
    return next(quads, None) is not None


def find_instances(store: Store, kind: str) -> Iterator[NamedNode]:
    quads = store.match(None, v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH)
    return (quad.subject for quad in quads if isinstance(quad.subject, NamedNode))


def community_quads(found: Iterable[FoundCommunities]) -> list[Quad]:
    """Return communities as knowledge quads, without edge IRIs, so that retrieval ignores them."""
    out = Statements(v.KNOWLEDGE_GRAPH)
    for community, label in found:
        out.add(
            community.iri,
            (v.RDF_TYPE, v.tg("Community")),
            (v.RDFS_LABEL, label),
            (v.tg("level"), community.level),
            (v.tg("member"), map(iri_node, community.members)),
            (v.tg("parent"), iri_node(community.parent) if community.parent else None),
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
    stated_by_iri = {node.value: _Stated() for node in find_instances(store, "Community")}
    for name in (v.tg("level"), v.tg("member"), v.tg("parent")):
        for quad in store.match(None, name, None, v.KNOWLEDGE_GRAPH):
            subject, object_text = term_value(quad.subject), term_value(quad.object)
            if subject not in stated_by_iri:
                continue
            stated_by_iri[subject].read_value(name, object_text)
            if name == v.tg("parent") and object_text in stated_by_iri:
                stated_by_iri[object_text].children.append(subject)
    ordered = sorted(stated_by_iri.items(), key=lambda item: (item[1].level, item[0]))
    read = tuple(stated_community.community(name) for name, stated_community in ordered)
    return with_edges(store, read) if edges else read


def read_community(store: Store, name: str) -> Community | None:
    """Return a community without its edges; None if knowledge lacks the community."""
    node = NamedNode(name)
    if not has_type(store, node, "Community"):
        return None
    stated_community = _Stated()
    for quad in store.match(node, None, None, v.KNOWLEDGE_GRAPH):
        stated_community.read_value(quad.predicate, term_value(quad.object))
    children = store.match(None, v.tg("parent"), node, v.KNOWLEDGE_GRAPH)
    stated_community.children = [term_value(quad.subject) for quad in children]
    return stated_community.community(name)


@dataclass(slots=True)
class _Stated:
    """A community under construction while reading quads."""

    level: int = 0
    parent: str | None = None
    members: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)

    def read_value(self, name: NamedNode, said: str) -> None:
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
    """Return communities with edges added."""
    edges_by_community: dict[str, list[str]] = {community.iri: [] for community in communities}
    of_entity: dict[str, set[str]] = {}
    for community in communities:
        for member in community.members:
            of_entity.setdefault(member, set()).add(community.iri)
    for relationship in read_relationships(store):
        ends = relationship.subject, relationship.object or ""
        for name in set.intersection(*(of_entity.get(end, set()) for end in ends)):
            edges_by_community[name].append(relationship.edge)
    return tuple(
        replace(bare_community, edges=tuple(sorted(edges_by_community[bare_community.iri])))
        for bare_community in communities
    )


def isolated_entities(store: Store) -> tuple[str, ...]:
    """Return sorted entities outside communities, having no relationship to another entity."""
    entities = set(map(term_value, find_instances(store, "Entity")))
    communities = community_names(store)
    for quad in store.match(None, v.tg("member"), None, v.KNOWLEDGE_GRAPH):
        if term_value(quad.subject) in communities:
            entities.discard(term_value(quad.object))
    return tuple(sorted(entities))


def community_names(store: Store) -> set[str]:
    """Return community IRIs of all levels."""
    return {node.value for node in find_instances(store, "Community")}
