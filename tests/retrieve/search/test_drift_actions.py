"""The graph of actions: which follow-up questions are asked, in which order, and which are not."""

from __future__ import annotations

from itertools import count

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tgraph.retrieve.search.drift_actions import (
    LONGEST_QUERY,
    NO_CALLS,
    ROOT,
    TOO_DEEP,
    ActionGraph,
    select_follow_ups,
)

AXES = 6


def unit(*parts: float) -> np.ndarray:
    vector = np.zeros(AXES, dtype=np.float32)
    vector[: len(parts)] = parts
    return vector / np.linalg.norm(vector)


def graph(**options) -> ActionGraph:
    return ActionGraph("Q?", unit(1), **{"depth": 2, "duplicate": 0.95, **options})


def test_the_most_promising_is_asked_first_and_the_next_must_differ_from_it():
    tree = graph()
    tree.propose(ROOT, 0.8, {"near": unit(1, 1), "beside it": unit(1, 0.9), "else": unit(1, 0, 1)})
    first, second = tree.choose(2)
    assert [first.query, second.query] == ["near", "else"]
    assert first.promise.parent == 0.8
    assert first.promise.score == pytest.approx(0.8 * 0.7071 * (1 - 0.7071), abs=1e-3)


def test_a_better_answer_makes_its_follow_ups_more_promising():
    tree = graph()
    fold = tree.add_fold()
    tree.propose(ROOT, 0.2, {"of the worse": unit(1, 1)})
    tree.propose(fold.number, 0.9, {"of the better": unit(1, 0, 1)})
    assert tree.choose(1)[0].query == "of the better"


def test_what_was_found_is_less_promising():
    tree = graph()
    tree.propose(ROOT, 1.0, {"known": unit(1, 1), "new": unit(1, 0, 0.9)})
    tree.learn([unit(1, 1)])
    assert tree.choose(1)[0].query == "new"


def test_the_same_words_are_asked_once():
    tree = graph()
    fold = tree.add_fold()
    tree.propose(ROOT, 0.4, {"Who built it?": unit(1, 1)})
    tree.propose(fold.number, 0.9, {"who  BUILT it": unit(1, 1), "Q?": unit(1)})
    [waiting] = tree.waiting()
    assert tree.parents(waiting.number) == [ROOT, fold.number]
    tree.choose(1)
    waiting.status = "answered"
    tree.propose(fold.number, 0.9, {"Who built it": unit(1, 1)})
    assert tree.dropped == {"follow-up that was asked before": 2}
    assert waiting.promise.parent == 0.9


def test_nearly_the_same_is_pruned_and_says_as_what():
    tree = graph()
    tree.propose(ROOT, 1.0, {"one": unit(1, 1), "other": unit(1, 0.95)})
    assert [action.query for action in tree.choose(2)] == ["one"]
    pruned = tree[2]
    assert (pruned.status, pruned.reason) == ("pruned", "nearly the same as “one”")


def test_the_depth_is_limited():
    tree = graph(depth=1)
    tree.propose(ROOT, 1.0, {"first": unit(1, 1)})
    [first] = tree.choose(3)
    tree.propose(first.number, 1.0, {"second": unit(1, 0, 1)})
    assert tree.choose(3) == []
    assert (tree[2].depth, tree[2].status, tree[2].reason) == (2, "pruned", TOO_DEEP)


def test_what_waits_at_the_end_is_pruned_by_name():
    tree = graph()
    tree.propose(ROOT, 1.0, {"left": unit(1, 1)})
    tree.close(NO_CALLS)
    assert tree[1].reason == NO_CALLS
    assert tree[1].promise.score > 0


vectors = st.lists(st.floats(-1, 1, width=16), min_size=AXES, max_size=AXES).filter(
    lambda parts: sum(map(abs, parts)) > 0.1
)
proposals = st.lists(
    st.tuples(st.integers(0, 9), st.floats(0, 1), st.text(max_size=4), vectors), max_size=25
)


texts = st.text(max_size=30) | st.just("x" * (LONGEST_QUERY + 1))


def played(rows, breadth: int) -> ActionGraph:
    tree = graph(depth=3)
    tree[ROOT].status = "answered"
    asked = [ROOT]
    numbers = count()
    for parent, score, query, vector in rows:
        tree.propose(asked[parent % len(asked)], score, {query: unit(*vector)})
        if next(numbers) % 4 == 3:
            for action in tree.choose(breadth):
                action.status = "answered"
                asked.append(action.number)
    tree.close(NO_CALLS)
    return tree


@settings(max_examples=examples(40))
@given(rows=proposals, breadth=st.integers(1, 4))
def test_whatever_is_proposed_the_graph_has_no_cycle_and_everything_has_a_fate(rows, breadth):
    tree = played(rows, breadth)
    graph = networkx.DiGraph()
    graph.add_nodes_from(action.number for action in tree)
    graph.add_edges_from((parent, a.number) for a in tree for parent in tree.parents(a.number))
    assert networkx.is_directed_acyclic_graph(graph)
    assert networkx.number_weakly_connected_components(graph) == 1
    for action in tree:
        assert action.status in {"answered", "pruned"}
        assert bool(action.reason) == (action.status == "pruned")
        assert 0 <= action.promise.score <= 1
        assert all(tree[parent].status == "answered" for parent in tree.parents(action.number))
    again = played(rows, breadth)
    assert list(tree) == list(again)
    assert [tree.parents(a.number) for a in tree] == [again.parents(a.number) for a in again]
    assert tree.dropped == again.dropped


@settings(max_examples=examples(40))
@given(st.lists(texts, max_size=9), st.integers(1, 5))
def test_usable_follow_ups_are_short_distinct_and_counted(queries, most):
    kept, dropped = select_follow_ups(queries, most)
    assert len(kept) <= most
    assert all(0 < len(query) <= LONGEST_QUERY and query == query.strip() for query in kept)
    assert len({query.casefold() for query in kept}) == len(kept)
    assert sum(dropped.values()) <= len(queries)
