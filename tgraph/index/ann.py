"""Approximate nearest neighbours for large vector sets: an HNSW graph (hnswlib).

Malkov and Yashunin 2018 (arXiv:1603.09320). Built by one thread in the order of the rows, so that
equal matrices give equal answers (unused bytes of a saved graph may differ).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

_ADDED_AT_ONCE = 1000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HnswParameters:
    """How the graph is built and searched, and from how many rows on there is one.

    Measured on 100,000 clustered vectors, ``ef`` 128 has recall@10 of 1.000 at 0.5 ms a query.
    """

    m: int = 16
    ef_construction: int = 100
    ef: int = 128
    threshold: int = 20_000


class Hnsw:
    """The graph of one matrix; its answers are row numbers. Safe to search from many threads."""

    def __init__(self, index: Any, parameters: HnswParameters) -> None:
        self._index = index
        self._parameters = parameters
        self._lock = threading.Lock()

    @classmethod
    def build(
        cls,
        matrix: NDArray[float32],
        parameters: HnswParameters,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Hnsw | None:
        """The graph of the rows, or None, with a logged notice, where hnswlib isn't installed."""
        if not _is_available():
            return None
        index = _new(matrix.shape[1])
        index.init_index(
            max_elements=len(matrix),
            M=parameters.m,
            ef_construction=parameters.ef_construction,
            random_seed=100,
        )
        for start in range(0, len(matrix), _ADDED_AT_ONCE):
            index.add_items(matrix[start : start + _ADDED_AT_ONCE], num_threads=1)
            progress(min(start + _ADDED_AT_ONCE, len(matrix)), len(matrix))
        return cls(index, parameters)

    @classmethod
    def open(cls, path: Path, dimension: int, parameters: HnswParameters) -> Hnsw | None:
        """A saved graph. The file must have been checked: hnswlib trusts what it reads."""
        if not _is_available():
            return None
        index = _new(dimension)
        index.load_index(str(path))
        return cls(index, parameters)

    def write(self, path: Path) -> None:
        self._index.save_index(str(path))

    def nearest(self, query: NDArray[float32], count: int) -> NDArray[int64] | None:
        """The ``count`` rows nearest to the query; None where the graph can't reach so many."""
        with self._lock:
            self._index.set_ef(max(self._parameters.ef, count))
            try:
                rows, _ = self._index.knn_query(query, k=count, num_threads=1)
            except RuntimeError:  # "Cannot return the results in a contiguous 2D array"
                return None
        found: NDArray[int64] = rows[0].astype("int64")
        return found


def _new(dimension: int) -> Any:
    import hnswlib

    return hnswlib.Index(space="ip", dim=dimension)


@lru_cache(maxsize=1)
def _is_available() -> bool:
    """Whether hnswlib can be imported; if not it is said once."""
    try:
        import hnswlib  # noqa: F401
    except ImportError:
        _log.warning(
            "hnswlib isn't installed, so large vector sets are searched exactly, which is slower. "
            "Run: pip install hnswlib (it needs a C++ compiler)."
        )
        return False
    return True
