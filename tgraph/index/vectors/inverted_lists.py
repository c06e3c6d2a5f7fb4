"""Inverted lists of many vectors, of which a search reads a few lists."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tgraph.index.vectors.keys import expand_ranges

if TYPE_CHECKING:
    from pathlib import Path

    from numpy import float32, int64
    from numpy.typing import NDArray

_AT_ONCE = 10_000
_SEED = 100
_EF = 64
"""Of the search for the list that a row belongs to."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IvfParameters:
    """Inverted list parameters: row count from which lists exist (``threshold``), average rows
    per list (``size``), and minimum lists read by a search (``probed``).

    ``m`` and ``ef_construction`` are parameters of the centroid graph."""

    size: int = 64
    probed: int = 256
    threshold: int = 20_000
    m: int = 16
    ef_construction: int = 100


class InvertedLists:
    """Matrix rows in lists, each list containing rows nearest to its centroid.

    The matrix is sorted by list. A search reads the lists whose centroids are nearest to the
    query, so that little of a mapped matrix is in memory (inverted file: Jégou, Douze and
    Schmid 2011; the centroids are found through an HNSW graph of centroids: Baranchuk, Babenko
    and Malkov 2018, arXiv:1802.02422). Every n-th row is a centroid, unchanged.

    A single thread builds the lists in row order, so that equal matrices give equal answers
    (unused bytes of a saved graph may differ). Searching from many threads is safe."""

    def __init__(self, graph: Any, starts: NDArray[int64]) -> None:
        """Create the lists; ``starts`` contains matrix offsets of list beginnings, plus the end
        of the last list."""
        self.starts = starts
        self._graph = graph
        self._lock = threading.Lock()

    @classmethod
    def build(
        cls, matrix: NDArray[float32], parameters: IvfParameters
    ) -> tuple[InvertedLists, NDArray[int64]] | None:
        """Return inverted lists of the rows, plus row numbers in list order.

        The order of the rows must be independent of their meaning. Returns None, with a logged
        notice, if hnswlib isn't installed."""
        import numpy as np

        if not _is_available():
            return None
        centroids = matrix[:: parameters.size].astype(np.float32)
        graph = _new_graph(matrix.shape[1])
        graph.init_index(
            max_elements=len(centroids),
            M=parameters.m,
            ef_construction=parameters.ef_construction,
            random_seed=_SEED,
        )
        graph.add_items(centroids, num_threads=1)
        graph.set_ef(_EF)
        nearest = np.empty(len(matrix), dtype=np.int64)
        for start in range(0, len(matrix), _AT_ONCE):
            block = matrix[start : start + _AT_ONCE].astype(np.float32, copy=False)
            neighbours, _ = graph.knn_query(block, k=1, num_threads=1)
            nearest[start : start + _AT_ONCE] = neighbours[:, 0]
        sizes = np.bincount(nearest, minlength=len(centroids))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(graph, starts), np.argsort(nearest, kind="stable")

    @classmethod
    def open(cls, path: Path, dimension: int, starts: NDArray[int64]) -> InvertedLists | None:
        """Saved ones. The file must have been checked: hnswlib trusts what it reads."""
        if not _is_available():
            return None
        graph = _new_graph(dimension)
        graph.load_index(str(path))
        return cls(graph, starts)

    def write(self, path: Path) -> None:
        """Save the graph of centroids."""
        self._graph.save_index(str(path))

    def nearest(self, query: NDArray[float32], probed: int) -> NDArray[int64] | None:
        """Return rows of the ``probed`` nearest lists, ascending; None if exact search is
        equally good."""
        import numpy as np

        if 2 * probed > len(self.starts):
            return None
        with self._lock:
            self._graph.set_ef(max(_EF, probed))
            try:
                lists, _ = self._graph.knn_query(query, k=probed, num_threads=1)
            except RuntimeError:  # "Cannot return the results in a contiguous 2D array"
                return None
        chosen = np.sort(lists[0].astype(np.int64))
        starts = self.starts[chosen]
        return expand_ranges(starts, self.starts[chosen + 1] - starts)


def _new_graph(dimension: int) -> Any:
    import hnswlib

    return hnswlib.Index(space="ip", dim=dimension)


@lru_cache(maxsize=1)
def _is_available() -> bool:
    """Return whether hnswlib can be imported, logging a warning if missing."""
    try:
        import hnswlib  # noqa: F401
    except ImportError:
        _log.warning(
            "hnswlib isn't installed, so large vector sets are searched exactly, which is slower. "
            "Run: pip install hnswlib (it needs a C++ compiler)."
        )
        return False
    return True
