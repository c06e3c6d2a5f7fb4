"""Graph ranking: entities and chunks as one network, in which a walk from what a question names
finds what belongs to it. The ties are described in ``tgraph.index.network_ties``.

The walk is computed here rather than by igraph (PRPACK), which ranks the same nodes at four times
the CPU time and more: 36 ms in place of 9 in a graph of 10,000 edges, 68 in place of 4 and 364 in
place of 66 in networks of 10,000 and 100,000 relationships; to build igraph's graph takes 8, 7 and
172 ms (``python -m benchmarks.walks``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self

from tgraph.index.network_ties import NetworkTies, WeightedPairs
from tgraph.index.stored_graph import StoredGraph
from tgraph.retrieve.base import BoundedCache, Context
from tgraph.retrieve.search.names import WORDING, NameIndex, SourceNames

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

_EXACT, _MOST_STEPS = 1e-11, 500
"""What the residual of a walk may be beside its start, and steps after which it is good enough."""


@dataclass(frozen=True)
class Adjacency:
    """Ties in both directions: those of a node lie between two ``starts``, each with the node at
    its other end and a weight greater than 0."""

    starts: NDArray[int64]
    others: NDArray[int64]
    weights: NDArray[float64]

    @classmethod
    def of(cls, size: int, kinds: Iterable[WeightedPairs]) -> Self:
        """The ties of so many nodes; ties of several kinds between two nodes add up, and those
        that weigh nothing are left out."""
        import numpy as np

        pairs = list(kinds)
        ends = np.concatenate([each.ends for each in pairs])
        weights = np.concatenate([each.weights for each in pairs])
        total = WeightedPairs.of(ends[:, 0], ends[:, 1], weights)
        tied = total.weights > 0
        ends, weights = total.ends[tied], total.weights[tied]
        both = np.concatenate([ends, ends[:, ::-1]])
        order = np.argsort(both[:, 0], kind="stable")
        starts = np.searchsorted(both[order, 0], np.arange(size + 1))
        return cls(starts, both[order, 1], np.concatenate([weights, weights])[order])

    def beside(self, node: int) -> list[int]:
        """The nodes that are tied to the node, ascending."""
        found = self.others[self.starts[node] : self.starts[node + 1]]
        return sorted(set(found.tolist()) - {node})

    @cached_property
    def _roots(self) -> NDArray[float64]:
        """The square roots of what the ties of each node weigh together; 1 where it has none."""
        import numpy as np

        total = self._sums(self.weights)
        return np.where(total > 0, np.sqrt(total), 1.0)

    @cached_property
    def _scaled(self) -> NDArray[float64]:
        """The weights, each beside what the ties of its two ends weigh."""
        import numpy as np

        own = np.repeat(self._roots, np.diff(self.starts))
        found: NDArray[float64] = self.weights / own / self._roots[self.others]
        return found

    @cached_property
    def _tied(self) -> NDArray[int64]:
        """The nodes that have ties."""
        import numpy as np

        return np.flatnonzero(np.diff(self.starts))

    def _sums(self, values: NDArray[float64]) -> NDArray[float64]:
        """For each node the sum of what its ties have."""
        import numpy as np

        found = np.zeros(len(self.starts) - 1)
        if len(values):
            found[self._tied] = np.add.reduceat(values, self.starts[self._tied])
        return found

    def walk(self, start: NDArray[float64], damping: float) -> NDArray[float64]:
        """As of ``Network``. The equations of the walk, made symmetric, are solved by conjugate
        gradients (Hestenes and Stiefel 1952)."""
        import numpy as np

        found = np.zeros(len(start))
        rest = start / start.sum() / self._roots
        way, size = rest, _dot(rest, rest)
        least = size * _EXACT**2
        for _ in range(_MOST_STEPS):
            if size <= least:
                break
            along = way - damping * self._sums(way[self.others] * self._scaled)
            step = size / _dot(way, along)
            found += step * way
            rest = rest - step * along
            before, size = size, _dot(rest, rest)
            way = rest + (size / before) * way
        visits = np.maximum(found * self._roots, 0.0)
        whole: NDArray[float64] = visits / visits.sum()
        return whole


def _dot(one: NDArray[float64], other: NDArray[float64]) -> float:
    return float((one * other).sum())  # BLAS would start threads for it


@dataclass(frozen=True, slots=True)
class Network:
    """Entities and chunks, by IRI in the order of their nodes: the entities first.

    ``spread`` is the number of chunks that name each entity. ``names`` has the nodes by their
    names, and the chunks by the titles of their documents. ``find`` gives the node of an entity,
    under whichever of its names, or of a chunk; None for others.
    """

    entities: Sequence[str]
    chunks: Sequence[str]
    ties: Adjacency
    spread: Sequence[int]
    names: NameIndex
    find: Callable[[str], int | None]
    _known: dict[str, int | None] = field(default_factory=dict, repr=False)

    def node(self, iri: str) -> int | None:
        """The node of an entity, under whichever of its names, or of a chunk; None for others."""
        if iri not in self._known:
            self._known[iri] = self.find(iri)
        return self._known[iri]

    def is_chunk(self, node: int) -> bool:
        return node >= len(self.entities)

    def iri(self, node: int) -> str:
        entities = len(self.entities)
        return self.entities[node] if node < entities else self.chunks[node - entities]

    def beside(self, node: int) -> list[int]:
        """The nodes that are tied to the node, ascending."""
        return self.ties.beside(node)

    def walk(self, starts: Mapping[int, float], damping: float) -> NDArray[float64]:
        """How often a walk is at each node, in the order of the nodes; together 1.

        Personalised PageRank (Page and others 1999; Haveliwala 2002) over the ties as undirected:
        at each step the walk goes on with the probability ``damping``, along a tie by its weight,
        else it starts again at one of ``starts`` (weights of nodes, one greater than 0 at least).
        """
        import numpy as np

        start = np.zeros(len(self.entities) + len(self.chunks))
        for node, weight in starts.items():
            start[node] = weight
        return self.ties.walk(start, damping)


def network_of(context: Context, synonymy: float, subject_weight: float) -> Network:
    """The network of the published state, read at its first question; ``synonymy`` is the likeness
    (cosine) from which entities count as synonyms, ``subject_weight`` what it counts for that a
    chunk is about an entity, beside naming it."""
    memory: BoundedCache[tuple[float, float], Network] = context.remembered("networks", 1)
    key = synonymy, subject_weight
    return memory.get(key, lambda: _read_network(context, synonymy, subject_weight))


def _read_network(context: Context, synonymy: float, subject_weight: float) -> Network:
    vectors = context.vectors
    source = context.graph.network(vectors, WORDING)
    ties = source.ties(synonymy)
    if ties is None:  # the tables have the network of another embedder
        source = StoredGraph(context.store).network(vectors, WORDING)
        ties = source.ties(synonymy)
        assert ties is not None
    entities, chunks = vectors["entity"].keys, vectors["chunk"].keys

    def find(iri: str) -> int | None:
        chunk = _place(chunks, iri)
        if chunk is not None:
            return len(entities) + chunk
        return _place(entities, source.merged_into([iri]).get(iri, iri))

    return network(entities, chunks, ties, subject_weight, SourceNames(source, find), find)


def network(
    entities: Sequence[str],
    chunks: Sequence[str],
    ties: NetworkTies,
    subject_weight: float,
    names: NameIndex,
    find: Callable[[str], int | None],
) -> Network:
    """The network of these nodes and ties; ties of several kinds between two nodes add up."""
    kinds = ties.facts, ties.mentions, ties.subjects.times(subject_weight), ties.synonyms
    adjacency = Adjacency.of(len(entities) + len(chunks), kinds)
    counts = ties.chunk_counts(len(entities))
    return Network(entities, chunks, adjacency, counts, names, find)


def _place(keys: Sequence[str], iri: str) -> int | None:
    place = bisect_left(keys, iri)
    return place if place < len(keys) and keys[place] == iri else None
