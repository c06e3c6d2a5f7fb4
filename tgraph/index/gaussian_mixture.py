"""Soft clusters of vectors: principal components, then a mixture of Gaussians.

After RAPTOR (Sarthi and others 2024), with principal components in place of UMAP: first clusters of
the whole, then clusters within each, and a vector belongs to every cluster that is likely enough.
How many there are is chosen by the Bayesian information criterion (Schwarz 1978). Nothing is drawn
at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

    Points = NDArray[float64]

MOST = 50
"""Clusters that are tried at once."""

LEAST_MEMBERS = 3
"""Members that a cluster has on average, at least."""

_ROUNDS = 60
_STARTS = 8  # rounds of k-means before the mixture
_CLOSE = 1e-4
_FLOOR = 1e-3  # the least variance, as a share of that of the whole


@dataclass(frozen=True, slots=True)
class Limits:
    """``dimensions`` that are kept, the ``threshold`` of a likelihood from which a vector belongs
    to a cluster, and the greatest ``size`` of a cluster (the sum of its members')."""

    dimensions: int = 10
    threshold: float = 0.1
    size: int = 3_500


def soft_clusters(vectors: Points, sizes: Sequence[int], limits: Limits) -> list[tuple[int, ...]]:
    """The clusters as ascending row numbers, in the order of these; each row is in one or more.

    A set of at most ``dimensions + 1`` rows is one cluster. A cluster above the greatest size is
    divided again, down to two rows.
    """
    found: set[tuple[int, ...]] = set()
    for rows in _divided(vectors, tuple(range(len(vectors))), limits, least=1):
        for part in _divided(vectors, rows, limits, least=1):
            found.update(_small_enough(vectors, part, sizes, limits))
    return sorted(found)


def _divided(
    vectors: Points, rows: tuple[int, ...], limits: Limits, least: int
) -> list[tuple[int, ...]]:
    """The rows' clusters by a mixture; at least ``least`` are tried."""
    import numpy as np

    if len(rows) <= limits.dimensions + 1 and least == 1:
        return [rows]
    points = principal_components(vectors[list(rows)], limits.dimensions)
    shares = mixture(points, least)
    found: list[tuple[int, ...]] = []
    for likely in shares.T:
        belongs = (likely > limits.threshold) | (np.argmax(shares, axis=1) == len(found))
        found.append(tuple(rows[at] for at in np.flatnonzero(belongs)))
    return [part for part in found if part]


def _small_enough(
    vectors: Points, rows: tuple[int, ...], sizes: Sequence[int], limits: Limits
) -> Iterator[tuple[int, ...]]:
    total = sum(sizes[row] for row in rows)
    if total <= limits.size or len(rows) <= 2:
        yield rows
        return
    parts = _divided(vectors, rows, limits, least=2)
    if max(map(len, parts)) == len(rows):
        parts = _halves(vectors, rows)
    for part in parts:
        yield from _small_enough(vectors, part, sizes, limits)


def _halves(vectors: Points, rows: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The two halves along the first principal component."""
    import numpy as np

    along = principal_components(vectors[list(rows)], 1)[:, 0]
    order = np.argsort(along, kind="stable")
    half = len(rows) // 2
    return [tuple(sorted(rows[at] for at in part)) for part in (order[:half], order[half:])]


def principal_components(vectors: Points, dimensions: int) -> Points:
    """The rows by their first components, fewer where there are fewer; the sign of each is such
    that its greatest loading is positive."""
    import numpy as np

    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[: max(1, min(dimensions, len(vectors) - 2))]
    greatest = np.abs(axes).argmax(axis=1)
    signs = np.where(axes[np.arange(len(axes)), greatest] < 0, -1.0, 1.0)
    points: Points = np.round(centred @ (axes * signs[:, None]).T, 6)
    return points


def mixture(points: Points, least: int = 1) -> Points:
    """How likely each point belongs to each cluster, shape ``(points, clusters)``; the number of
    clusters is the one with the least BIC."""
    best: tuple[float, Points] | None = None
    for count in _counts(least, min(MOST, len(points) // LEAST_MEMBERS)):
        shares, fit = _fitted(points, count)
        if best is None or fit < best[0] - 1e-9:
            best = fit, shares
    assert best is not None
    return best[1]


def _counts(least: int, most: int) -> Iterator[int]:
    """Every number up to six, then steps of about a fifth."""
    count = least
    while count <= max(least, most):
        yield count
        count += max(1, count // 5)


def _fitted(points: Points, count: int) -> tuple[Points, float]:
    """The shares of a mixture and its BIC, fitted by expectation maximisation (Dempster, Laird and
    Rubin 1977). The clusters have the same diagonal covariance: with one of its own a cluster would
    shrink around a single point."""
    import numpy as np

    size, width = points.shape
    floor = _FLOOR * float(points.var()) + 1e-12
    nearest = _start(points, count)
    shares = np.eye(count)[nearest]
    before, score = -np.inf, -np.inf
    for _ in range(_ROUNDS):
        weight = shares.sum(axis=0) + 1e-9
        means = (shares.T @ points) / weight[:, None]
        spread = (points**2).mean(axis=0) - (weight[:, None] * means**2).sum(axis=0) / size
        spread = np.maximum(spread, floor)
        logs = _densities(points, means, spread) + np.log(weight / weight.sum())
        top = logs.max(axis=1, keepdims=True)
        total = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
        shares, score = np.exp(logs - total[:, None]), float(total.sum())
        if score - before < _CLOSE * size:
            break
        before = score
    free = (count + 1) * width + count - 1
    return shares, round(free * float(np.log(size)) - 2 * score, 6)


def _densities(points: Points, means: Points, spread: Points) -> Points:
    """The logarithm of each Gaussian's density at each point."""
    import numpy as np

    inverse = 1 / spread
    squares = (points**2 @ inverse)[:, None] - 2 * points @ (means * inverse).T
    constant = (means**2 * inverse).sum(axis=1) + np.log(2 * np.pi * spread).sum()
    found: Points = -0.5 * (squares + constant)
    return found


def _start(points: Points, count: int) -> NDArray[int64]:
    """The cluster of each point by k-means from points that are far from one another, the first of
    them the nearest to the middle."""
    import numpy as np

    chosen = [int(((points - points.mean(axis=0)) ** 2).sum(axis=1).argmin())]
    far = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < count:
        chosen.append(int(far.argmax()))
        far = np.minimum(far, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    centres = points[chosen]
    for _ in range(_STARTS):
        distance = (centres**2).sum(axis=1) - 2 * points @ centres.T
        nearest = distance.argmin(axis=1)
        for at in range(count):
            if (nearest == at).any():
                centres[at] = points[nearest == at].mean(axis=0)
    found: NDArray[int64] = nearest
    return found
