"""Connected graph parts, with large parts cut into smaller parts, and these into groups.

A large part is cut by the first rounds of Borůvka's algorithm for a maximum spanning tree
(1926; Nešetřil, Milková, Nešetřilová, Discrete Mathematics 233, 2001): in each round every
piece with too few nodes joins the piece its strongest tie leads to. The strength of a tie is
its weight over the degrees of its ends, each rounded down to a power of two, so that nodes with
many ties attract few. A spanning tree changes by one tie where a tie changes, and each piece
looks at its own ties alone. So the effects of a change of the graph are near it, and the result
does not depend on how the graph came about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from numpy import float64, int32, int64, uint64
    from numpy.typing import NDArray


class Cutting(NamedTuple):
    """Cutting sizes: connected parts exceeding ``most`` nodes are cut into parts with at least
    ``part`` nodes, containing groups with at least ``group`` nodes."""

    most: int = 2_000
    part: int = 100
    group: int = 12


DEFAULT_CUTTING = Cutting()
_MIXED = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F


class Partition(NamedTuple):
    """Part and group numbers by node: smallest node of the containing part, or of the group
    inside a cut part.

    The number is -1 for a node without ties or without group. Parts and groups are connected."""

    parts: NDArray[int32]
    groups: NDArray[int32]


def partition_graph(
    ends: NDArray[int32], weights: NDArray[float64], marks: NDArray[uint64], how: Cutting
) -> Partition:
    """Return the partition of a graph given by ties (node pairs) and tie weights.

    Equally strong ties are ordered by the nodes' ``marks``, which depend on nothing else in the
    graph."""
    import numpy as np

    parts = _connected_parts(len(marks), ends)
    groups = np.full(len(marks), -1, dtype=np.int64)
    tied = np.zeros(len(marks), dtype=bool)
    tied[ends.ravel()] = True
    large = (np.bincount(parts, minlength=len(marks)) > how.most)[parts] & tied
    if large.any():
        in_large_parts = large[ends[:, 0]]
        order = _by_strength(ends[in_large_parts], weights[in_large_parts], marks)
        sorted_ends = ends[in_large_parts][order].astype(np.int64)
        cut = _grow_parts(sorted_ends, np.arange(len(marks)), how.group)
        groups[large] = cut[large]
        parts[large] = _grow_parts(sorted_ends, cut, how.part)[large]
    return Partition(np.where(tied, parts, -1).astype(np.int32), groups.astype(np.int32))


def _connected_parts(size: int, ends: NDArray[int32] | NDArray[int64]) -> NDArray[int64]:
    """Return, by node, the smallest node of its connected part."""
    import numpy as np
    from igraph import Graph

    graph = Graph(size, np.ascontiguousarray(ends, dtype=np.int64))
    number = np.array(graph.connected_components().membership, dtype=np.int64)
    first = np.full(size, size, dtype=np.int64)
    np.minimum.at(first, number, np.arange(size))
    return first[number]


def _grow_parts(ends: NDArray[int64], parts: NDArray[int64], least: int) -> NDArray[int64]:
    """Return parts, by smallest node, joined until each has ``least`` nodes or lacks outgoing
    ties.

    ``ends`` are the ties, the weakest first."""
    import numpy as np

    size = len(parts)
    while True:
        here, there = parts[ends[:, 0]], parts[ends[:, 1]]
        out = here != there
        ends, here, there = ends[out], here[out], there[out]
        small = np.bincount(parts, minlength=size) < least
        strongest = np.full(size, -1, dtype=np.int64)
        for side in (here, there):
            choosing = np.flatnonzero(small[side])
            chosen = np.full(size, -1, dtype=np.int64)
            chosen[side[choosing]] = choosing  # of several the last counts, which is the strongest
            strongest = np.maximum(strongest, chosen)
        joined = strongest[strongest >= 0]
        if not len(joined):
            return parts
        parts = _connected_parts(size, np.stack([here[joined], there[joined]], axis=1))[parts]


def _by_strength(
    ends: NDArray[int32], weights: NDArray[float64], marks: NDArray[uint64]
) -> NDArray[int64]:
    """Return tie order, weakest ties leading."""
    import numpy as np

    degrees = np.bincount(ends.ravel(), minlength=len(marks))
    powers = np.frexp(np.maximum(degrees, 1))[1] - 1
    strengths = np.ldexp(weights, -(powers[ends[:, 0]] + powers[ends[:, 1]]))
    low_marks, high_marks = np.sort(marks[ends], axis=1).T
    with np.errstate(over="ignore"):
        mixed = low_marks * np.uint64(_MIXED[0]) ^ high_marks * np.uint64(_MIXED[1])
    tie_order: NDArray[int64] = np.lexsort((high_marks, low_marks, mixed, strengths))
    return tie_order
