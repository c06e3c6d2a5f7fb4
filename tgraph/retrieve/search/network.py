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
    """Network ties in both directions.

    The ties of a node lie between two consecutive ``starts``; each tie has the node at the
    other end and a weight greater than 0."""

    starts: NDArray[int64]
    others: NDArray[int64]
    weights: NDArray[float64]

    @classmethod
    def from_pairs(cls, size: int, kinds: Iterable[WeightedPairs]) -> Self:
        """Return the adjacency of ``size`` nodes; ties of several kinds between two nodes add
        up, weightless ties are dropped."""
        import numpy as np

        pairs = list(kinds)
        ends = np.concatenate([kind.ends for kind in pairs])
        weights = np.concatenate([kind.weights for kind in pairs])
        total = WeightedPairs.from_ends(ends[:, 0], ends[:, 1], weights)
        tied = total.weights > 0
        ends, weights = total.ends[tied], total.weights[tied]
        directed_pairs = np.concatenate([ends, ends[:, ::-1]])
        order = np.argsort(directed_pairs[:, 0], kind="stable")
        starts = np.searchsorted(directed_pairs[order, 0], np.arange(size + 1))
        return cls(starts, directed_pairs[order, 1], np.concatenate([weights, weights])[order])

    def list_neighbours(self, node: int) -> list[int]:
        """Return a node's neighbours, in ascending order."""
        neighbours = self.others[self.starts[node] : self.starts[node + 1]]
        return sorted(set(neighbours.tolist()) - {node})

    @cached_property
    def _degree_roots(self) -> NDArray[float64]:
        """Square roots of each node's total tie weight; 1 for nodes without ties."""
        import numpy as np

        total = self._sum_ties(self.weights)
        return np.where(total > 0, np.sqrt(total), 1.0)

    @cached_property
    def _normalised_weights(self) -> NDArray[float64]:
        """Tie weights, divided by the degree roots of both end nodes."""
        import numpy as np

        node_roots = np.repeat(self._degree_roots, np.diff(self.starts))
        tie_weights: NDArray[float64] = self.weights / node_roots / self._degree_roots[self.others]
        return tie_weights

    @cached_property
    def _connected_nodes(self) -> NDArray[int64]:
        """Nodes having at least one tie."""
        import numpy as np

        return np.flatnonzero(np.diff(self.starts))

    def _sum_ties(self, values: NDArray[float64]) -> NDArray[float64]:
        """Sum tie values for each node."""
        import numpy as np

        sums = np.zeros(len(self.starts) - 1)
        if len(values):
            sums[self._connected_nodes] = np.add.reduceat(
                values, self.starts[self._connected_nodes]
            )
        return sums

    def walk(self, start: NDArray[float64], damping: float) -> NDArray[float64]:
        """Return walk probabilities, like ``Network.walk``.

        The walk's equations are made symmetric and solved by conjugate gradients (Hestenes and
        Stiefel 1952)."""
        import numpy as np

        solution = np.zeros(len(start))
        residual = start / start.sum() / self._degree_roots
        way, size = residual, _dot_product(residual, residual)
        least = size * _EXACT**2
        for _ in range(_MOST_STEPS):
            if size <= least:
                break
            along = way - damping * self._sum_ties(way[self.others] * self._normalised_weights)
            step = size / _dot_product(way, along)
            solution += step * way
            residual = residual - step * along
            before, size = size, _dot_product(residual, residual)
            way = residual + (size / before) * way
        visits = np.maximum(solution * self._degree_roots, 0.0)
        probabilities: NDArray[float64] = visits / visits.sum()
        return probabilities


def _dot_product(one: NDArray[float64], other: NDArray[float64]) -> float:
    return float((one * other).sum())  # BLAS would start threads for it


@dataclass(frozen=True, slots=True)
class Network:
    """Entities and chunks as numbered nodes: entities first, then chunks, both in IRI order.

    ``spread`` holds the number of chunks naming each entity. ``subjects`` pairs entities (first
    row, ascending) with the chunks called after them. ``names`` indexes entity
    nodes by name and chunks by document title. ``find`` returns the node of a chunk or of an entity
    (under any of its names), or None for other IRIs."""

    entities: Sequence[str]
    chunks: Sequence[str]
    ties: Adjacency
    spread: Sequence[int]
    subjects: NDArray[int64]
    names: NameIndex
    find: Callable[[str], int | None]
    _known: dict[str, int | None] = field(default_factory=dict, repr=False)

    def node(self, iri: str) -> int | None:
        """Return an entity or chunk node, looking up entities under any known IRI; None for
        other IRIs."""
        if iri not in self._known:
            self._known[iri] = self.find(iri)
        return self._known[iri]

    def is_chunk(self, node: int) -> bool:
        return node >= len(self.entities)

    def iri(self, node: int) -> str:
        entities = len(self.entities)
        return self.entities[node] if node < entities else self.chunks[node - entities]

    def list_neighbours(self, node: int) -> list[int]:
        """Return a node's neighbours, in ascending order."""
        return self.ties.list_neighbours(node)

    def chunks_about(self, entity: int) -> list[int]:
        """Return the chunks that are called after an entity, in ascending order."""
        entities, about = self.subjects
        first, last = entities.searchsorted([entity, entity + 1])
        chunks: list[int] = about[first:last].tolist()
        return chunks

    def walk(self, starts: Mapping[int, float], damping: float) -> NDArray[float64]:
        """Return a random walk's visit probabilities in node order; their sum is 1.

        Personalised PageRank (Page and others 1999; Haveliwala 2002) over undirected ties: with
        probability ``damping``, each step follows a tie, chosen by weight; otherwise the walk
        restarts at one of ``starts`` (node weights, at least one greater than 0)."""
        import numpy as np

        start = np.zeros(len(self.entities) + len(self.chunks))
        for node, weight in starts.items():
            start[node] = weight
        return self.ties.walk(start, damping)


def network_of(context: Context, synonymy: float, subject_weight: float) -> Network:
    """Return the published state's network, read at the first question.

    ``synonymy`` is the least name similarity (cosine) of synonyms; ``subject_weight`` is the
    extra weight for being about an entity, beyond a mere mention."""
    memory: BoundedCache[tuple[float, float], Network] = context.open_cache("networks", 1)
    key = synonymy, subject_weight
    return memory.load_item(key, lambda: _read_network(context, synonymy, subject_weight))


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
        chunk = _find_place(chunks, iri)
        if chunk is not None:
            return len(entities) + chunk
        return _find_place(entities, source.merged_into([iri]).get(iri, iri))

    return build_network(entities, chunks, ties, subject_weight, SourceNames(source, find), find)


def build_network(
    entities: Sequence[str],
    chunks: Sequence[str],
    ties: NetworkTies,
    subject_weight: float,
    names: NameIndex,
    find: Callable[[str], int | None],
) -> Network:
    """The network of these nodes and ties; ties of several kinds between two nodes add up."""
    kinds = ties.facts, ties.mentions, ties.subjects.times(subject_weight), ties.synonyms
    adjacency = Adjacency.from_pairs(len(entities) + len(chunks), kinds)
    counts = ties.chunk_counts(len(entities))
    subjects = ties.subjects.ends.T.copy()
    return Network(entities, chunks, adjacency, counts, subjects, names, find)


def _find_place(keys: Sequence[str], iri: str) -> int | None:
    place = bisect_left(keys, iri)
    return place if place < len(keys) and keys[place] == iri else None
