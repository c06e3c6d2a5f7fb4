"""Communities of a graph: everyone is accounted for, and only the graph decides."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from tests.support.examples import examples
from tgraph import vocabulary as v
from tgraph.engine.index.community_reports import Reclustering, compare_communities
from tgraph.index.communities.communities import (
    Component,
    community_quads,
    isolated_entities,
    read_communities,
    read_relationships,
)
from tgraph.index.communities.leiden import Clustering
from tgraph.index.entity_network import read_network
from tgraph.model import Agent, Community
from tgraph.record.activities import Authorship
from tgraph.record.communities import clustering_quads, standing_hierarchies
from tgraph.store.base import Store
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import Statements, iri_node
from tgraph.testing import ticking_clock

Fact = tuple[int, str, int, float]
HOW = Clustering(max_size=4)
FACTS = st.lists(
    st.tuples(
        st.integers(0, 25), st.sampled_from("rs"), st.integers(0, 25), st.sampled_from((1.0, 2.5))
    ),
    max_size=45,
)
RUNS = iter(range(10_000))
now = ticking_clock()


def entity(number: int) -> str:
    return v.entity_iri(f"e{number:02d}")


def knowledge_of(facts: Iterable[Fact], entities: int = 28) -> list[Quad]:
    """The default graph that states the facts, of entities some of which are tied to no other."""
    out = Statements(v.KNOWLEDGE_GRAPH)
    for number in range(entities):
        node = out.add(
            entity(number), (v.RDF_TYPE, v.tg("Entity")), (v.RDFS_LABEL, f"E{number:02d}")
        )
        age = NamedNode(v.relation_iri("age"))
        out.quads.append(Quad(node, age, Literal(number), v.KNOWLEDGE_GRAPH))
        edge = v.edge_iri(node, age, Literal(number))
        out.add(edge, (v.RDF_TYPE, v.tg("Edge")), (v.tg("weight"), 3.0))
    for name in ("r", "s", "age"):
        out.add(v.relation_iri(name), (v.RDF_TYPE, v.tg("Relation")), (v.RDFS_LABEL, name))
    stated = {(one, name, other): weight for one, name, other, weight in facts}
    for (one, name, other), weight in stated.items():
        triple = iri_node(entity(one)), iri_node(v.relation_iri(name)), iri_node(entity(other))
        out.quads.append(Quad(*triple, v.KNOWLEDGE_GRAPH))
        out.add(v.edge_iri(*triple), (v.RDF_TYPE, v.tg("Edge")), (v.tg("weight"), weight))
    return out.quads


def read_components(store: Store) -> list[Component]:
    network = read_network(store)
    return list(network.components(store, network.parts))


class Clustered:
    """A store in memory whose knowledge changes and whose communities follow."""

    def __init__(self, quads: Iterable[Quad], how: Clustering = HOW) -> None:
        self.store = OxigraphStore.memory()
        self.how = how
        self.become(quads)

    def become(self, quads: Iterable[Quad]) -> Reclustering:
        """Let knowledge, communities aside, be these quads."""
        wanted = set(quads)
        about = {q for q in self.knowledge() if not q.subject.value.startswith(v.URN + "community")}  # type: ignore[union-attr]
        self.store.remove(about - wanted)
        self.store.extend(wanted - about)
        change = compare_communities(self.store, self.how)
        self.store.remove(change.removed)
        self.store.extend(community_quads(change.found))
        run = f"{v.URN}run:00000000-0000-4000-8000-{next(RUNS):012d}"
        agent = Agent("method", "leiden", "1")
        by, how = Authorship(run, agent, (), now(), now()), self.how.parameters
        self.store.extend(clustering_quads(by, how, 0, change.made, change.ended, change.left))
        return change

    def knowledge(self) -> set[Quad]:
        return set(self.store.match(None, None, None, v.KNOWLEDGE_GRAPH))

    @property
    def communities(self) -> tuple[Community, ...]:
        return read_communities(self.store)


@settings(max_examples=examples(60), deadline=None)
@given(FACTS, st.sampled_from((2, 4, 10)))
def test_everyone_is_accounted_for(facts: list[Fact], max_size: int) -> None:
    graph = Clustered(knowledge_of(facts), Clustering(max_size))
    found = {community.iri: community for community in graph.communities}
    top = [member for c in found.values() if c.level == 0 for member in c.members]
    isolated = isolated_entities(graph.store)
    assert sorted([*top, *isolated]) == [entity(number) for number in range(28)]
    ties = nx.Graph((entity(a), entity(b)) for a, _, b, _ in facts if a != b)
    assert not set(isolated) & set(ties)
    for community in found.values():
        assert community.iri == v.community_iri(community.level, reversed(community.members))
        assert nx.is_connected(ties.subgraph(community.members))
        children = [found[child] for child in community.children]
        if children:
            assert sorted(m for c in children for m in c.members) == list(community.members)
            assert all(c.parent == community.iri for c in children)
            assert {c.level for c in children} == {community.level + 1}
        if community.parent:
            assert community.iri in found[community.parent].children


@settings(max_examples=examples(40), deadline=None)
@given(FACTS)
def test_every_edge_inside_is_listed_and_no_other(facts: list[Fact]) -> None:
    graph = Clustered(knowledge_of(facts))
    edges = [each for each in read_relationships(graph.store) if each.object]
    assert {e.edge for e in edges} == {
        v.edge_iri(iri_node(entity(a)), iri_node(v.relation_iri(r)), iri_node(entity(b)))
        for a, r, b, _ in facts
        if a != b
    }
    for community in graph.communities:
        inside = {e.edge for e in edges if {e.subject, e.object} <= set(community.members)}
        assert community.edges == tuple(sorted(inside))


@settings(max_examples=examples(40), deadline=None)
@given(FACTS, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(facts: list[Fact], random: Random) -> None:
    unique = list({fact[:3]: fact for fact in facts}.values())
    one = Clustered(knowledge_of(unique))
    random.shuffle(unique)
    assert Clustered(knowledge_of(unique)).knowledge() == one.knowledge()


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(FACTS, min_size=2, max_size=4))
def test_the_way_does_not_matter_and_what_did_not_change_is_left_alone(versions) -> None:
    """Communities after changes are those of the last state; parts that stay keep theirs."""
    graph = Clustered(knowledge_of(versions[0]))
    for facts in versions[1:]:
        before = {part.key(HOW): part for part in read_components(graph.store)}
        change = graph.become(knowledge_of(facts))
        after = {part.key(HOW): part for part in read_components(graph.store)}
        assert graph.knowledge() == Clustered(knowledge_of(facts)).knowledge()
        assert set(change.made) == after.keys() - before.keys()
        assert {h.key for h in change.ended} == before.keys() - after.keys()
        assert standing_hierarchies(graph.store).keys() == after.keys()
        stayed = {m for key in before.keys() & after.keys() for m in after[key].members}
        touched = {q.object for q in (*community_quads(change.found), *change.removed)}
        assert not touched & {NamedNode(member) for member in stayed}
        again = graph.become(knowledge_of(facts))
        assert not any((again.found, again.removed, again.made, again.ended, again.left))


def test_a_community_that_leaves_stays_on_record() -> None:
    pair = [(0, "r", 1, 1.0)]
    graph = Clustered(knowledge_of(pair))
    (gone,) = graph.communities
    graph.become(knowledge_of([*pair, (1, "r", 2, 1.0)]))
    (now_there,) = graph.communities
    assert now_there.members == (entity(0), entity(1), entity(2))
    record = graph.store.match(None, v.tg("community"), NamedNode(gone.iri), v.SOURCE_GRAPH)
    said = [q.subject for q in record]
    kept = {q.object for node in said for q in graph.store.match(node, v.tg("member"))}
    assert kept == {NamedNode(entity(0)), NamedNode(entity(1))}
    ended = [n for n in said if list(graph.store.match(n, v.prov("invalidatedAtTime")))]
    assert len(said) == len(ended) == 2, "the hierarchy and the community"
    graph.become(knowledge_of(pair))
    assert graph.communities == (gone,), "it may come back"


def test_other_settings_divide_everything_anew() -> None:
    facts = [(n, "r", (n + 1) % 12, 1.0) for n in range(12)]
    graph = Clustered(knowledge_of(facts), Clustering(12))
    assert [len(c.members) for c in graph.communities] == [12]
    graph.how = Clustering(4)
    graph.become(knowledge_of(facts))
    assert graph.communities == Clustered(knowledge_of(facts), Clustering(4)).communities
    assert max(len(c.members) for c in graph.communities if not c.children) <= 4


def test_what_an_update_took_away_is_made_again() -> None:
    facts = [(n, "r", (n + 1) % 12, 1.0) for n in range(12)]
    graph = Clustered(knowledge_of(facts))
    whole = graph.knowledge()
    graph.store.remove(list(graph.store.match(NamedNode(graph.communities[0].iri))))
    graph.become(knowledge_of(facts))
    assert graph.knowledge() == whole


@pytest.mark.parametrize("weight", ["-3", "0", "NaN", "INF", "1e300", "heavy"])
def test_no_weight_is_too_strange(weight: str) -> None:
    quads = knowledge_of([(0, "r", 1, 1.0), (1, "r", 2, 1.0)])
    edges = [q.subject for q in quads if q.predicate == v.tg("weight")]
    kind = v.xsd("string" if weight == "heavy" else "double")
    strange = [q for q in quads if q.predicate != v.tg("weight")]
    strange += [
        Quad(e, v.tg("weight"), Literal(weight, datatype=kind), v.KNOWLEDGE_GRAPH) for e in edges
    ]
    graph = Clustered(strange, Clustering(2))
    assert sum(len(c.members) for c in graph.communities if c.level == 0) == 3


def test_the_label_names_who_holds_it_together() -> None:
    star = [(0, "r", leaf, 1.0) for leaf in range(1, 6)] + [(1, "s", 2, 9.0)]
    graph = Clustered(knowledge_of(star), Clustering(10))
    (community,) = graph.communities
    (label,) = graph.store.match(NamedNode(community.iri), v.RDFS_LABEL)
    assert label.object == Literal("E01, E02, E00 and 3 more")


def test_nothing_that_is_said_of_communities_is_a_statement() -> None:
    """So that retrieval, which reads statements with an edge IRI, never meets them."""
    graph = Clustered(knowledge_of([(0, "r", 1, 1.0)]))
    for community in graph.communities:
        about = graph.store.match(NamedNode(community.iri), None, None, v.KNOWLEDGE_GRAPH)
        assert not any(v.is_statement(quad.predicate) for quad in about)


def test_relationships_between_the_same_two_tie_them_together() -> None:
    graph = Clustered(knowledge_of([(0, "r", 1, 1.0), (1, "s", 0, 2.5), (1, "r", 2, 1.0)]))
    (part,) = read_components(graph.store)
    assert part.ties == ((0, 1, 3.5), (1, 2, 1.0))


def test_what_is_no_edge_ties_nobody() -> None:
    """A statement that no edge stands for, such as an update may insert, does not count."""
    quads = knowledge_of([(0, "r", 1, 1.0)])
    bare = Quad(
        NamedNode(entity(1)),
        NamedNode(v.relation_iri("r")),
        NamedNode(entity(2)),
        v.KNOWLEDGE_GRAPH,
    )
    graph = Clustered([*quads, bare])
    assert entity(2) in isolated_entities(graph.store)
