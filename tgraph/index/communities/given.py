"""Communities supplied by imported graphs, standing while unaffected by other documents.

The source graph records them as supplied, by the entities' names in its texts, together with
digests of the connected parts formed by the graph alone (``Component.digest``). Communities
sharing a part, directly or through other communities, are one hierarchy. It stands while all
documents of the graph do and each of its parts is a part of knowledge: then these parts are not
divided anew. When another document changes a part, Leiden divides all parts of the hierarchy;
when that is taken back, the given communities stand again. A community keeps its members
wherever they are; anything but entities of knowledge is left out of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.communities.communities import Component, FoundCommunities, label_of
from tgraph.index.sources import standing_documents
from tgraph.model import Community
from tgraph.store.base import Store, text_of


@dataclass(frozen=True, slots=True)
class GivenCommunity:
    """A community as supplied: ``members`` by text names, ``parent`` another supplied community
    or blank.

    ``document`` describes the community from ``start`` to ``end``; ``refers`` lists, for each
    report finding, the text entities and edges mentioned."""

    iri: str
    level: int
    members: frozenset[str]
    parent: str
    document: str
    start: int
    end: int
    refers: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class GivenHierarchy:
    """Supplied communities with digests of their ``parts``."""

    iri: str
    parts: frozenset[str]
    communities: tuple[GivenCommunity, ...]


@dataclass(frozen=True, slots=True)
class ResolvedHierarchy:
    """A supplied hierarchy under knowledge names.

    ``key`` changes with any of its communities; ``given`` holds the communities as supplied, by
    current IRI."""

    key: str
    parts: frozenset[str]
    communities: tuple[Community, ...]
    given: Mapping[str, GivenCommunity]


def given_hierarchies(store: Store) -> list[GivenHierarchy]:
    """Return supplied hierarchies with all documents standing, sorted by IRI."""
    there = standing_documents(store)
    hierarchies = []
    for quad in store.match(None, v.RDF_TYPE, v.tg("GivenHierarchy"), v.SOURCE_GRAPH):
        values = _values_by_predicate(store, quad.subject)
        if {text_of(d) for d in values[v.prov("wasDerivedFrom")]} <= there:
            communities = (_read_community(store, node) for node in values[v.tg("community")])
            ordered = tuple(sorted(communities, key=lambda one: (one.level, one.iri)))
            parts = frozenset(text_of(part) for part in values[v.tg("inputHash")])
            hierarchies.append(GivenHierarchy(text_of(quad.subject), parts, ordered))
    return sorted(hierarchies, key=lambda hierarchy: hierarchy.iri)


def were_given(store: Store) -> bool:
    """Tell whether any graph ever supplied communities."""
    quads = store.match(None, v.RDF_TYPE, v.tg("GivenHierarchy"), v.SOURCE_GRAPH)
    return next(quads, None) is not None


def _values_by_predicate(
    store: Store, subject: object
) -> defaultdict[NamedNode, list[NamedNode | Literal]]:
    values: defaultdict[NamedNode, list[NamedNode | Literal]] = defaultdict(list)
    assert isinstance(subject, NamedNode)
    for quad in store.match(subject, None, None, v.SOURCE_GRAPH):
        if isinstance(quad.object, NamedNode | Literal):
            values[quad.predicate].append(quad.object)
    return values


def _read_community(store: Store, node: NamedNode | Literal) -> GivenCommunity:
    values = _values_by_predicate(store, node)
    level, start, length = (
        int(text_of(values[v.tg(name)][0])) for name in ("level", "charOffset", "charLength")
    )
    return GivenCommunity(
        node.value,
        level,
        frozenset(member.value for member in values[v.tg("member")]),
        next(iter(parent.value for parent in values[v.tg("parent")]), ""),
        text_of(values[v.prov("wasDerivedFrom")][0]),
        start,
        start + length,
        _read_references(store, values[v.tg("finding")]),
    )


def _read_references(
    store: Store, findings: Iterable[NamedNode | Literal]
) -> tuple[tuple[str, ...], ...]:
    """Return references of every finding, in finding order."""
    references = {}
    for node in findings:
        values = _values_by_predicate(store, node)
        speaks_of = (term.value for term in values[v.tg("refersTo")])
        references[int(text_of(values[v.tg("index")][0]))] = tuple(sorted(speaks_of))
    return tuple(references[index] for index in sorted(references))


def resolve_given(
    store: Store, hierarchy: GivenHierarchy, merges: Mapping[str, str]
) -> ResolvedHierarchy:
    """Return a supplied hierarchy under canonical names, limited to knowledge entities."""
    members = {
        community.iri: sorted({merges.get(entity, entity) for entity in community.members})
        for community in hierarchy.communities
    }
    known_entities = {
        entity
        for entity in set().union(*members.values())
        if any(store.match(NamedNode(entity), v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH))
    }
    known_members = {
        community: [entity for entity in canonical_members if entity in known_entities]
        for community, canonical_members in members.items()
    }
    non_vacant = [community for community in hierarchy.communities if known_members[community.iri]]
    names = {
        community.iri: v.community_iri(community.level, known_members[community.iri])
        for community in non_vacant
    }
    children: dict[str, set[str]] = {name: set() for name in names.values()}
    for community in non_vacant:
        if community.parent in names:
            children[names[community.parent]].add(names[community.iri])
    communities = {
        names[community.iri]: Community(
            names[community.iri],
            community.level,
            tuple(known_members[community.iri]),
            (),
            names.get(community.parent),
            tuple(sorted(children[names[community.iri]])),
        )
        for community in non_vacant
    }
    key = v.digest_parts("given", hierarchy.iri, *sorted(communities))
    now = {names[community.iri]: community for community in non_vacant}
    return ResolvedHierarchy(key, hierarchy.parts, tuple(communities.values()), now)


def standing_given(
    store: Store, parts: Iterable[str], merges: Mapping[str, str]
) -> list[ResolvedHierarchy]:
    """Return supplied hierarchies covered by these parts (by digest).

    Of two hierarchies supplying communities for one part, the first stands."""
    free = set(parts)
    hierarchies = []
    for hierarchy in given_hierarchies(store):
        if hierarchy.parts <= free:
            free -= hierarchy.parts
            hierarchies.append(resolve_given(store, hierarchy, merges))
    return hierarchies


def label_communities(
    given: ResolvedHierarchy, parts: Sequence[Component]
) -> list[FoundCommunities]:
    """Return communities labelled with their most central members."""
    hierarchy_parts = [part for part in parts if part.digest in given.parts]
    labels = {
        m: label
        for part in hierarchy_parts
        for m, label in zip(part.members, part.labels, strict=True)
    }
    ties = [
        (p.members[node], p.members[two], w) for p in hierarchy_parts for node, two, w in p.ties
    ]
    return [FoundCommunities(node, _create_label(node, labels, ties)) for node in given.communities]


def _create_label(
    community: Community, labels: Mapping[str, str], ties: Iterable[tuple[str, str, float]]
) -> str:
    strengths = dict.fromkeys(community.members, 0.0)
    for first, second, weight in ties:
        if first in strengths and second in strengths:
            strengths[first] += weight
            strengths[second] += weight
    ranked = sorted(strengths, key=lambda m: (-strengths[m], labels.get(m, m), m))
    return label_of([labels.get(member, member) for member in ranked])


def group_communities(
    communities: Sequence[GivenCommunity], part_of: Mapping[str, str]
) -> list[tuple[frozenset[str], tuple[GivenCommunity, ...]]]:
    """Return groups of communities sharing parts, each with its parts.

    ``part_of`` maps an entity of the texts to the digest of its part."""
    groups: list[tuple[set[str], list[GivenCommunity]]] = []
    for community in communities:
        parts = {part_of[member] for member in community.members if member in part_of}
        merged_parts, members = set(parts), [community]
        for group in [group for group in groups if group[0] & parts]:
            groups.remove(group)
            merged_parts |= group[0]
            members += group[1]
        groups.append((merged_parts, members))
    return [
        (frozenset(parts), tuple(sorted(members, key=lambda one: (one.level, one.iri))))
        for parts, members in groups
    ]
