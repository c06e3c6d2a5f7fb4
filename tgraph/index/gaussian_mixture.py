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
    """Clustering limits: kept components, membership threshold and cluster size.

    ``dimensions`` is the number of components, ``threshold`` is the likelihood from which a
    vector belongs to a cluster, and ``size`` is the greatest sum of member sizes in a cluster."""

    dimensions: int = 10
    threshold: float = 0.1
    size: int = 3_500


def soft_clusters(vectors: Points, sizes: Sequence[int], limits: Limits) -> list[tuple[int, ...]]:
    """Return sorted clusters as tuples of ascending row numbers; each row belongs to at least
    one cluster.

    A set of at most ``dimensions + 1`` rows is a single cluster. A cluster above the greatest
    size is divided again, down to two rows."""
    clusters: set[tuple[int, ...]] = set()
    for rows in _divide_rows(vectors, tuple(range(len(vectors))), limits, least=1):
        for part in _divide_rows(vectors, rows, limits, least=1):
            clusters.update(_small_enough(vectors, part, sizes, limits))
    return sorted(clusters)


def _divide_rows(
    vectors: Points, rows: tuple[int, ...], limits: Limits, least: int
) -> list[tuple[int, ...]]:
    """Return clusters of the rows from a mixture model, trying at least ``least`` clusters."""
    import numpy as np

    if len(rows) <= limits.dimensions + 1 and least == 1:
        return [rows]
    points = principal_components(vectors[list(rows)], limits.dimensions)
    shares = fit_best_mixture(points, least)
    clusters: list[tuple[int, ...]] = []
    for likely in shares.T:
        belongs = (likely > limits.threshold) | (np.argmax(shares, axis=1) == len(clusters))
        clusters.append(tuple(rows[at] for at in np.flatnonzero(belongs)))
    return [part for part in clusters if part]


def _small_enough(
    vectors: Points, rows: tuple[int, ...], sizes: Sequence[int], limits: Limits
) -> Iterator[tuple[int, ...]]:
    total = sum(sizes[row] for row in rows)
    if total <= limits.size or len(rows) <= 2:
        yield rows
        return
    parts = _divide_rows(vectors, rows, limits, least=2)
    if max(map(len, parts)) == len(rows):
        parts = _split_halves(vectors, rows)
    for part in parts:
        yield from _small_enough(vectors, part, sizes, limits)


def _split_halves(vectors: Points, rows: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Split rows into two halves along the first principal component."""
    import numpy as np

    along = principal_components(vectors[list(rows)], 1)[:, 0]
    order = np.argsort(along, kind="stable")
    half = len(rows) // 2
    return [tuple(sorted(rows[at] for at in part)) for part in (order[:half], order[half:])]


def principal_components(vectors: Points, dimensions: int) -> Points:
    """Return rows projected onto the first principal components, fewer if fewer exist; each
    component's greatest loading is positive."""
    import numpy as np

    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[: max(1, min(dimensions, len(vectors) - 2))]
    greatest = np.abs(axes).argmax(axis=1)
    signs = np.where(axes[np.arange(len(axes)), greatest] < 0, -1.0, 1.0)
    points: Points = np.round(centred @ (axes * signs[:, None]).T, 6)
    return points


def fit_best_mixture(points: Points, least: int = 1) -> Points:
    """Return cluster likelihoods of each point, in shape ``(points, clusters)``.

    The number of clusters is chosen by the least BIC."""
    best: tuple[float, Points] | None = None
    for count in _cluster_counts(least, min(MOST, len(points) // LEAST_MEMBERS)):
        shares, fit = _fit_mixture(points, count)
        if best is None or fit < best[0] - 1e-9:
            best = fit, shares
    assert best is not None
    return best[1]


def _cluster_counts(least: int, most: int) -> Iterator[int]:
    """Yield every cluster count below seven, then increase by about a fifth."""
    count = least
    while count <= max(least, most):
        yield count
        count += max(1, count // 5)


def _fit_mixture(points: Points, count: int) -> tuple[Points, float]:
    """Fit a mixture by expectation maximisation (Dempster, Laird and Rubin 1977); return shares
    and BIC.

    All clusters share a diagonal covariance: with a separate covariance a cluster would shrink
    around a single point."""
    import numpy as np

    size, width = points.shape
    floor = _FLOOR * float(points.var()) + 1e-12
    nearest = _initial_clusters(points, count)
    shares = np.eye(count)[nearest]
    before, score = -np.inf, -np.inf
    for _ in range(_ROUNDS):
        weight = shares.sum(axis=0) + 1e-9
        means = (shares.T @ points) / weight[:, None]
        spread = (points**2).mean(axis=0) - (weight[:, None] * means**2).sum(axis=0) / size
        spread = np.maximum(spread, floor)
        logs = _log_densities(points, means, spread) + np.log(weight / weight.sum())
        top = logs.max(axis=1, keepdims=True)
        total = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
        shares, score = np.exp(logs - total[:, None]), float(total.sum())
        if score - before < _CLOSE * size:
            break
        before = score
    free = (count + 1) * width + count - 1
    return shares, round(free * float(np.log(size)) - 2 * score, 6)


def _log_densities(points: Points, means: Points, spread: Points) -> Points:
    """Return each Gaussian's log density at each point."""
    import numpy as np

    inverse = 1 / spread
    squares = (points**2 @ inverse)[:, None] - 2 * points @ (means * inverse).T
    constant = (means**2 * inverse).sum(axis=1) + np.log(2 * np.pi * spread).sum()
    log_values: Points = -0.5 * (squares + constant)
    return log_values


def _initial_clusters(points: Points, count: int) -> NDArray[int64]:
    """Return an initial cluster for each point by k-means.

    The starting points are far from each other; the first is nearest to the mean."""
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
    clusters: NDArray[int64] = nearest
    return clusters
