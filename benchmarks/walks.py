"""Personalised PageRank of ``tgraph.retrieve.search.network`` beside igraph's (PRPACK).

Networks of so many relationships are drawn (Zipf, with as many mentions), or one is read from the
tables of a graph folder. Figures are CPU seconds: ours is the walk of a network that is read; that
of igraph's graph is also to be built, once for each process. Starts are sixty random nodes.

Run: python -m benchmarks.walks [--edges 10000,100000] [--graph FOLDER]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import igraph
import numpy as np

import tgraph
from tgraph.retrieve.modes.ppr import PprSearchSettings
from tgraph.retrieve.search.network import Adjacency, network_of

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

T = TypeVar("T")
QUESTIONS, STARTS, TOP = 5, 60, 100
HEADERS = ("nodes", "ties", "walk ms", "igraph build ms", "igraph walk ms", f"same top {TOP}")


def cpu(action: Callable[[], T]) -> tuple[T, float]:
    started = time.process_time()
    return action(), 1e3 * (time.process_time() - started)


def drawn_network(edges: int) -> Adjacency:
    """A network of four relationships an entity and eight mentions a chunk."""
    random = np.random.default_rng(7)
    entities, chunks = edges // 4, edges // 8
    size = entities + chunks
    chances = np.arange(1, entities + 1) ** -0.8
    ends = random.choice(entities, (3, edges), p=chances / chances.sum())
    facts, mentions = ends[:2], np.stack([ends[2], random.integers(entities, size, edges)])
    pairs = np.sort(np.concatenate([facts, mentions], axis=1), axis=0)
    low, high = pairs[:, pairs[0] != pairs[1]]
    keys, weights = np.unique(low * size + high, return_counts=True)
    owners = np.concatenate([keys // size, keys % size])
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(size + 1))
    others = np.concatenate([keys % size, keys // size])[order]
    return Adjacency(starts, others, np.concatenate([weights, weights])[order].astype(float))


def kept_network(folder: str) -> Adjacency:
    """The network that an index run left in a graph folder."""
    settings = PprSearchSettings()
    with tgraph.open(folder) as graph:
        return network_of(graph.context(), settings.synonymy, settings.subject_weight).ties


def igraph_graph(ties: Adjacency) -> igraph.Graph:
    size = len(ties.starts) - 1
    owners = np.repeat(np.arange(size), np.diff(ties.starts))
    once = owners < ties.others
    graph = igraph.Graph(size, np.column_stack([owners[once], ties.others[once]]))
    graph.es["weight"] = ties.weights[once].tolist()
    return graph


def draw_starts(size: int) -> Iterator[NDArray[float64]]:
    random = np.random.default_rng(1)
    for _ in range(QUESTIONS):
        start = np.zeros(size)
        start[random.choice(size, STARTS, replace=False)] = random.uniform(0.1, 1, STARTS)
        yield start


def top(walk: NDArray[float64]) -> list[int]:
    order: list[int] = np.argsort(-np.round(walk, 9), kind="stable")[:TOP].tolist()
    return order


def row(label: str, ties: Adjacency) -> list[str]:
    size, damping = len(ties.starts) - 1, PprSearchSettings().damping
    graph, build = cpu(lambda: igraph_graph(ties))
    walks, igraph_walks, same = [], [], 0
    for start in draw_starts(size):
        walk, spent = cpu(partial(ties.walk, start, damping))
        walks.append(spent)
        rank = partial(graph.personalized_pagerank, directed=False, weights="weight")
        scores, spent = cpu(partial(rank, damping=damping, reset=start.tolist()))
        igraph_walks.append(spent)
        same += top(walk) == top(np.array(scores))
    figures = (np.median(walks), build, np.median(igraph_walks))
    shown = [f"{figure:.1f}" for figure in figures]
    return [label, f"{size:,}", f"{len(ties.others) // 2:,}", *shown, f"{same} of {QUESTIONS}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", default="10000,100000")
    parser.add_argument("--graph", help="a graph folder, in place of drawn networks")
    options = parser.parse_args()
    print("| edges | " + " | ".join(HEADERS) + " |\n|" + " --- |" * (len(HEADERS) + 1))
    if options.graph:
        print("| " + " | ".join(row(options.graph, kept_network(options.graph))) + " |")
        return
    for edges in map(int, options.edges.split(",")):
        print("| " + " | ".join(row(f"{edges:,}", drawn_network(edges))) + " |", flush=True)


if __name__ == "__main__":
    main()
