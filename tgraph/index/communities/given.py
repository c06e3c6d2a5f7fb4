"""Communities that an imported graph brought: as long as it stands alone, they stand.

The source graph has them as the graph has them, by the entities' names in its texts, together with
digests of the connected parts that the graph alone makes (``Component.digest``). Communities that
share a part, or whose parts others share, are one hierarchy. It stands while all documents of the
graph do and each of its parts is a part of knowledge: then these parts are not divided anew. When
another document changes a part, Leiden divides all parts of the hierarchy; when that is taken back,
the given communities stand again. A community keeps its members wherever they are; what is no
entity of knowledge is left out of it.
"""

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
    """A community as it was given: ``members`` by the names of its texts, ``parent`` another given
    one or empty. ``document`` tells of it from ``start`` to ``end``; ``refers`` are the entities
    and edges of the texts that each finding of its report speaks of."""

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
    """Given communities and the digests of the ``parts`` that they are of."""

    iri: str
    parts: frozenset[str]
    communities: tuple[GivenCommunity, ...]


@dataclass(frozen=True, slots=True)
class ResolvedHierarchy:
    """A given hierarchy under the names of knowledge. ``key`` changes with any of its communities;
    ``given`` are these as they were given, by the IRI that they have now."""

    key: str
    parts: frozenset[str]
    communities: tuple[Community, ...]
    given: Mapping[str, GivenCommunity]


def given_hierarchies(store: Store) -> list[GivenHierarchy]:
    """The hierarchies all of whose documents stand, by IRI."""
    there = standing_documents(store)
    found = []
    for quad in store.match(None, v.RDF_TYPE, v.tg("GivenHierarchy"), v.SOURCE_GRAPH):
        said = _said(store, quad.subject)
        if {text_of(d) for d in said[v.prov("wasDerivedFrom")]} <= there:
            given = (_community(store, node) for node in said[v.tg("community")])
            ordered = tuple(sorted(given, key=lambda one: (one.level, one.iri)))
            parts = frozenset(text_of(part) for part in said[v.tg("inputHash")])
            found.append(GivenHierarchy(text_of(quad.subject), parts, ordered))
    return sorted(found, key=lambda hierarchy: hierarchy.iri)


def were_given(store: Store) -> bool:
    """Whether any graph ever brought communities."""
    quads = store.match(None, v.RDF_TYPE, v.tg("GivenHierarchy"), v.SOURCE_GRAPH)
    return next(quads, None) is not None


def _said(store: Store, subject: object) -> defaultdict[NamedNode, list[NamedNode | Literal]]:
    found: defaultdict[NamedNode, list[NamedNode | Literal]] = defaultdict(list)
    assert isinstance(subject, NamedNode)
    for quad in store.match(subject, None, None, v.SOURCE_GRAPH):
        if isinstance(quad.object, NamedNode | Literal):
            found[quad.predicate].append(quad.object)
    return found


def _community(store: Store, node: NamedNode | Literal) -> GivenCommunity:
    said = _said(store, node)
    level, start, length = (
        int(text_of(said[v.tg(name)][0])) for name in ("level", "charOffset", "charLength")
    )
    return GivenCommunity(
        node.value,
        level,
        frozenset(member.value for member in said[v.tg("member")]),
        next(iter(parent.value for parent in said[v.tg("parent")]), ""),
        text_of(said[v.prov("wasDerivedFrom")][0]),
        start,
        start + length,
        _refers(store, said[v.tg("finding")]),
    )


def _refers(store: Store, findings: Iterable[NamedNode | Literal]) -> tuple[tuple[str, ...], ...]:
    """What each finding speaks of, in their order."""
    found = {}
    for node in findings:
        said = _said(store, node)
        speaks_of = (term.value for term in said[v.tg("refersTo")])
        found[int(text_of(said[v.tg("index")][0]))] = tuple(sorted(speaks_of))
    return tuple(found[index] for index in sorted(found))


def resolve_given(
    store: Store, hierarchy: GivenHierarchy, merges: Mapping[str, str]
) -> ResolvedHierarchy:
    """The hierarchy under the canonical names, of what is an entity of knowledge."""
    members = {
        one.iri: sorted({merges.get(each, each) for each in one.members})
        for one in hierarchy.communities
    }
    known = {
        each
        for each in set().union(*members.values())
        if any(store.match(NamedNode(each), v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH))
    }
    kept = {one: [each for each in own if each in known] for one, own in members.items()}
    given = [one for one in hierarchy.communities if kept[one.iri]]
    names = {one.iri: v.community_iri(one.level, kept[one.iri]) for one in given}
    children: dict[str, set[str]] = {name: set() for name in names.values()}
    for one in given:
        if one.parent in names:
            children[names[one.parent]].add(names[one.iri])
    communities = {
        names[one.iri]: Community(
            names[one.iri],
            one.level,
            tuple(kept[one.iri]),
            (),
            names.get(one.parent),
            tuple(sorted(children[names[one.iri]])),
        )
        for one in given
    }
    key = v.digest("given", hierarchy.iri, *sorted(communities))
    now = {names[one.iri]: one for one in given}
    return ResolvedHierarchy(key, hierarchy.parts, tuple(communities.values()), now)


def standing_given(
    store: Store, parts: Iterable[str], merges: Mapping[str, str]
) -> list[ResolvedHierarchy]:
    """The given hierarchies whose parts are among these (by digest). Of two that give communities
    of one part the first stands."""
    free = set(parts)
    found = []
    for hierarchy in given_hierarchies(store):
        if hierarchy.parts <= free:
            free -= hierarchy.parts
            found.append(resolve_given(store, hierarchy, merges))
    return found


def named(given: ResolvedHierarchy, parts: Sequence[Component]) -> list[FoundCommunities]:
    """The communities with labels after the members that hold each together most."""
    own = [part for part in parts if part.digest in given.parts]
    labels = {m: label for part in own for m, label in zip(part.members, part.labels, strict=True)}
    ties = [(p.members[one], p.members[two], w) for p in own for one, two, w in p.ties]
    return [FoundCommunities(one, _label(one, labels, ties)) for one in given.communities]


def _label(
    community: Community, labels: Mapping[str, str], ties: Iterable[tuple[str, str, float]]
) -> str:
    within = dict.fromkeys(community.members, 0.0)
    for one, other, weight in ties:
        if one in within and other in within:
            within[one] += weight
            within[other] += weight
    ranked = sorted(within, key=lambda m: (-within[m], labels.get(m, m), m))
    return label_of([labels.get(member, member) for member in ranked])


def group_communities(
    communities: Sequence[GivenCommunity], part_of: Mapping[str, str]
) -> list[tuple[frozenset[str], tuple[GivenCommunity, ...]]]:
    """The communities that share parts, each group with its parts; ``part_of`` is the digest of
    the part that an entity of the texts is in."""
    groups: list[tuple[set[str], list[GivenCommunity]]] = []
    for one in communities:
        parts = {part_of[member] for member in one.members if member in part_of}
        whole, own = set(parts), [one]
        for group in [group for group in groups if group[0] & parts]:
            groups.remove(group)
            whole |= group[0]
            own += group[1]
        groups.append((whole, own))
    return [
        (frozenset(parts), tuple(sorted(own, key=lambda one: (one.level, one.iri))))
        for parts, own in groups
    ]
