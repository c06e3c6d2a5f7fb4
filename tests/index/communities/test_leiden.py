"""Hierarchical Leiden: what holds of every division, whatever the graph and the quality."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from random import Random

import igraph
import leidenalg
import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tgraph.index.communities.leiden import Clustering, Group, WeightedTie, build_hierarchy

QUALITIES = ("modularity", "cpm", "surprise")


def connected(size: int, more: int, random: Random) -> list[WeightedTie]:
    """A random tree with more ties here and there, and weights of all sorts."""
    pairs = {(random.randrange(node), node) for node in range(1, size)}
    for _ in range(more):
        one, other = random.randrange(size), random.randrange(size)
        if one != other:
            pairs.add((min(one, other), max(one, other)))
    return sorted((one, other, random.choice((0.001, 1.0, 5.5, 1e9))) for one, other in pairs)


def cliques(count: int, size: int) -> list[WeightedTie]:
    """Groups in which all know each other, in a ring."""
    ties = [
        (group * size + one, group * size + other, 2.0)
        for group in range(count)
        for one, other in combinations(range(size), 2)
    ]
    ends = [(group * size, (group + 1) % count * size) for group in range(count)]
    return sorted(ties + [(min(pair), max(pair), 1.0) for pair in ends])


def by_level(groups: list[Group], level: int) -> list[tuple[int, ...]]:
    return [group.nodes for group in groups if group.level == level]


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(2, 60),
    st.integers(0, 80),
    st.randoms(use_true_random=False),
    st.sampled_from(QUALITIES),
    st.integers(2, 12),
    st.sampled_from((0.5, 1.0, 3.0)),
)
def test_what_holds_of_every_hierarchy(size, more, random, quality, max_size, resolution) -> None:
    ties = connected(size, more, random)
    graph = nx.Graph([(one, other) for one, other, _ in ties])
    groups = build_hierarchy(size, ties, Clustering(max_size, quality, resolution))
    top = by_level(groups, 0)
    assert sorted(node for nodes in top for node in nodes) == list(range(size))
    for index, group in enumerate(groups):
        assert nx.is_connected(graph.subgraph(group.nodes))
        assert group.nodes == tuple(sorted(group.nodes))
        children = [child for child in groups if child.parent == index]
        if len(group.nodes) <= max_size:
            assert not children
        if children:
            assert {child.level for child in children} == {group.level + 1}
            assert len(children) > 1
            assert sorted(n for c in children for n in c.nodes) == list(group.nodes)
        assert (group.parent is None) == (group.level == 0)
    assert build_hierarchy(size, ties, Clustering(max_size, quality, resolution)) == groups


@pytest.mark.parametrize("quality", QUALITIES)
def test_groups_that_are_plain_to_see_are_found(quality) -> None:
    groups = build_hierarchy(48, cliques(8, 6), Clustering(6, quality))
    leaves = {g.nodes for i, g in enumerate(groups) if not any(c.parent == i for c in groups)}
    assert leaves == {tuple(range(start, start + 6)) for start in range(0, 48, 6)}


def test_what_is_small_enough_stays_whole() -> None:
    ties = cliques(2, 5)
    assert build_hierarchy(10, ties, Clustering(10)) == [Group(0, tuple(range(10)), None)]
    assert by_level(build_hierarchy(10, ties, Clustering(9)), 0) == [
        (0, 1, 2, 3, 4),
        (5, 6, 7, 8, 9),
    ]


def test_what_is_best_undivided_stays_whole() -> None:
    """Nobody in a star, or where all know each other, is closer to one than to another."""
    star: list[WeightedTie] = [(0, leaf, 1.0) for leaf in range(1, 31)]
    assert build_hierarchy(31, star, Clustering(10)) == [Group(0, tuple(range(31)), None)]
    assert len(build_hierarchy(15, cliques(1, 15)[1:], Clustering(10))) == 1


def test_a_higher_resolution_makes_smaller_groups() -> None:
    ties = connected(300, 300, Random(1))
    for quality in ("modularity", "cpm"):
        counts = [
            len(by_level(build_hierarchy(300, ties, Clustering(10, quality, resolution)), 0))
            for resolution in (0.3, 1.0, 5.0)
        ]
        assert counts == sorted(set(counts)), quality


@pytest.mark.slow
def test_the_division_is_as_good_as_leidenalgs() -> None:
    """Two implementations of the algorithm come to the same modularity, within a hundredth."""
    for seed in range(5):
        ties = connected(400, 500, Random(seed))
        weights = [weight for _, _, weight in ties]
        graph = igraph.Graph(400, [(one, other) for one, other, _ in ties])
        membership = [0] * 400
        for number, nodes in enumerate(by_level(build_hierarchy(400, ties, Clustering()), 0)):
            for node in nodes:
                membership[node] = number
        theirs = leidenalg.find_partition(
            graph, leidenalg.ModularityVertexPartition, weights=weights, seed=1, n_iterations=10
        )
        ours = graph.modularity(membership, weights=weights)
        assert ours > graph.modularity(theirs.membership, weights=weights) - 0.01


def test_no_generator_is_shared() -> None:
    """Neither other threads, nor what the program draws, nor what is drawn elsewhere matters."""
    ties = connected(200, 300, Random(7))
    alone = build_hierarchy(200, ties, Clustering())
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: build_hierarchy(200, ties, Clustering()), range(12)))
    assert all(groups == alone for groups in found)
    random.seed(5)
    expected = random.random()
    random.seed(5)
    build_hierarchy(200, ties, Clustering())
    assert random.random() == expected
