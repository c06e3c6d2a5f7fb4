"""The figures of an influence analysis: the surrogate, its fit, and what noise alone may do."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Matrix = NDArray[float64]

ALPHA = 0.01
"""The weight of the LASSO's penalty, ContextCite's default."""

CHANCE = 0.05
"""The probability with which noise may pass for influence anywhere in one analysis."""

_ROUNDS = 1_000
_STILL = 1e-7


def lasso(masks: Matrix, outcomes: Matrix, alpha: float = ALPHA) -> tuple[Matrix, float]:
    """The weights and the intercept that minimise ``|y - Xw - b|^2 / 2N + alpha |w|_1``.

    ``masks`` is N by n, ``outcomes`` has N values. By coordinate descent (Friedman, Hastie and
    Tibshirani 2010, section 2.1), until no weight moves by more than 1e-7.
    """
    import numpy as np

    count, width = masks.shape
    centre, mean = masks.mean(axis=0), float(outcomes.mean())
    columns = masks - centre
    sizes = (columns**2).sum(axis=0) / count
    weights, rest = np.zeros(width), outcomes - mean
    for _ in range(_ROUNDS):
        moved = 0.0
        for n in np.flatnonzero(sizes):
            old = weights[n]
            pull = columns[:, n] @ rest / count + sizes[n] * old
            new = np.sign(pull) * max(abs(pull) - alpha, 0.0) / sizes[n]
            if new != old:
                rest -= columns[:, n] * (new - old)
                weights[n] = new
                moved = max(moved, abs(new - old))
        if moved < _STILL:
            break
    return weights, mean - float(centre @ weights)


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The rank correlation (-1 to 1), ties having the mean of their ranks; None where one of the
    two doesn't vary."""
    import numpy as np

    one, other = _ranks(first), _ranks(second)
    if len(one) < 2 or not one.std() or not other.std():
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: Sequence[float]) -> Matrix:
    import numpy as np

    _, place, counts = np.unique(np.round(values, 9), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Matrix = (ends - (counts - 1) / 2)[place]
    return ranks


def by_chance(trials: int, probability: float, tests: int) -> float:
    """The share of ``trials`` that losing each with that probability exceeds by chance only, where
    ``tests`` are made: a quantile of the binomial distribution, with Bonferroni's correction."""
    if probability <= 0 or trials <= 0:
        return 0.0
    if probability >= 1:
        return 1.0
    beyond = 1.0
    for losses in range(trials + 1):
        ways = comb(trials, losses)
        beyond -= ways * probability**losses * (1 - probability) ** (trials - losses)
        if beyond <= CHANCE / tests:
            return losses / trials
    return 1.0


def weight_by_chance(spread: float, count: int, tests: int) -> float:
    """What a weight over ``count`` masks exceeds by chance only, where outcomes are off by a
    standard deviation of ``spread``: masks of one half give the weight four times its variance."""
    if spread <= 0 or count <= 0:
        return 0.0
    return NormalDist().inv_cdf(1 - CHANCE / tests) * 2 * spread / sqrt(count)
