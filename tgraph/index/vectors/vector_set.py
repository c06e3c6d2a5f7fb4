"""A vector set of a single kind: exact search for small sets, inverted lists for large sets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgraph.errors import UsageError
from tgraph.index.data_files import KeptFiles, write_data
from tgraph.index.vectors import files
from tgraph.index.vectors.base import Hit, TextWindows
from tgraph.index.vectors.files import array_writer
from tgraph.index.vectors.inverted_lists import InvertedLists, IvfParameters
from tgraph.index.vectors.keys import Keys, expand_ranges
from tgraph.model import Agent
from tgraph.models.base import reduce_precision

if TYPE_CHECKING:
    from numpy import bool_, float32, int64, uint8, uint32
    from numpy.typing import NDArray


_AT_ONCE = 65_536
_FOR_EACH = 8
"""Rows that are looked at for each IRI that is wanted, where these are many."""

_DECIMALS = 6  # of a score: beyond them processors and libraries differ (design 3.7)


@dataclass(eq=False, repr=False)
class VectorSet:
    """Unit vectors of a single kind: lines ordered by IRI, text and window, with their rows.

    An IRI may have several texts and a text several windows; the best window determines the
    IRI's score. A text shared by several IRIs has several lines and a single row. Searching
    from many threads is safe. ``keys`` contains the IRIs in order; a mask given to ``search``
    has a place for each IRI. ``owners``, ``hashes`` and ``rows`` contain, for each line, the
    owner, the text hash, and the row in ``matrix``, or beyond ``matrix`` in ``more``: rows
    added since the lists were made, searched exactly. ``kept`` contains files already written."""

    kind: str
    agent: Agent
    keys: Keys
    owners: NDArray[uint32]
    hashes: NDArray[uint8]
    rows: NDArray[uint32]
    matrix: NDArray[float32]
    parameters: IvfParameters
    open_lists: Callable[[], InvertedLists | None]
    more: NDArray[float32] | None = None
    kept: KeptFiles | None = None
    _opening: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def dimension(self) -> int:
        """Vector dimension; 0 for an empty set, fitting every embedder."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        """Return the number of IRIs, not of lines or rows."""
        return len(self.keys)

    def __repr__(self) -> str:
        return f"<VectorSet {self.kind}: {len(self)} IRIs, {self.count} rows>"

    @property
    def count(self) -> int:
        """Number of rows, possibly including rows of texts no longer used by any IRI."""
        return len(self.matrix) + (0 if self.more is None else len(self.more))

    def lines_of(self, places: NDArray[int64]) -> tuple[NDArray[int64], NDArray[int64]]:
        """Return lines of the given ``keys`` places, plus line counts per place."""
        import numpy as np

        starts = np.searchsorted(self.owners, places)
        counts = np.searchsorted(self.owners, places, side="right") - starts
        before = np.cumsum(counts) - counts
        return np.arange(counts.sum()) + np.repeat(starts - before, counts), counts

    def read_windows(self, places: NDArray[int64]) -> TextWindows:
        """As ``VectorIndex.read_windows``."""
        lines, counts = self.lines_of(places)
        return TextWindows(counts, self.hashes[lines], self.vectors_of(lines))

    def vectors_of(self, lines: NDArray[int64] | slice) -> NDArray[float32]:
        """Return vectors of the given lines."""
        return self.take_rows(self.rows[lines])

    def take_rows(self, rows: NDArray[Any]) -> NDArray[float32]:
        """Return vectors of the given rows."""
        import numpy as np

        if self.more is None:
            return np.asarray(self.matrix[rows], dtype=np.float32)
        vectors = np.empty((len(rows), self.dimension), dtype=np.float32)
        behind = rows >= len(self.matrix)
        vectors[~behind] = self.matrix[rows[~behind]]
        vectors[behind] = self.more[rows[behind] - len(self.matrix)]
        return vectors

    # --- searching ---

    def search(
        self,
        queries: NDArray[float32],
        k: int,
        allowed: Collection[str] | NDArray[bool_] | None = None,
        beyond: int = 0,
    ) -> list[list[Hit]]:
        """For each query (rows of unit length) at most ``k`` (IRI, score), best first, and after
        these at most ``beyond`` more of the IRIs that were compared for them.

        A score is the greatest dot product with a row of the IRI, to six decimals and at most 1,
        which rows of half precision may miss by a little; equal scores are ordered by IRI. Exact
        below ``parameters.threshold`` rows and whenever ``allowed`` (IRIs, or a mask over ``keys``)
        narrows the search, else approximate. Each query's result is the same
        whatever it is asked with. Raises ``UsageError`` for queries of another dimension.
        """
        import numpy as np

        queries = np.atleast_2d(np.asarray(queries, dtype=np.float32))
        if k < 1 or not len(self):
            return [[] for _ in queries]
        if queries.shape[1] != self.dimension:
            raise UsageError(
                f"The query has {queries.shape[1]} dimensions, the {self.kind} vectors have"
                f" {self.dimension}.",
                "Ask with the embedder that made the index, or index again.",
            )
        places = None if allowed is None else self.keys.places(allowed)
        return [self._search_lines(query, k, places, k + beyond) for query in queries]

    def _search_lines(
        self, query: NDArray[float32], k: int, places: NDArray[int64] | None, most: int
    ) -> list[Hit]:
        """The best ``most`` IRIs of the lines that a search for the best ``k`` compares."""
        if places is not None:
            return self._rank_iris(query, most, self.lines_of(places)[0])
        if self._has_lists and self._inverted_lists is not None:
            lines = self._nearest_lines(self._inverted_lists, query, k)
            if lines is not None:
                return self._rank_iris(query, most, lines)
        return self._rank_iris(query, most, None)

    def _rank_iris(
        self, query: NDArray[float32], k: int, lines: NDArray[int64] | None
    ) -> list[Hit]:
        """Return the best IRIs among the given lines, in ascending order; None means all lines."""
        import numpy as np

        owners = self.owners if lines is None else self.owners[lines]
        if not len(owners):
            return []
        # one dot product a row, unlike a matrix product, doesn't depend on the neighbours
        products = (
            self._dot_products(query)[self.rows]
            if lines is None
            else np.vecdot(self.vectors_of(lines), query)
        )
        scores = np.clip(np.round(products, _DECIMALS), -1, 1) + 0.0
        starts = np.flatnonzero(np.diff(owners, prepend=np.int64(-1)))
        best, owners = np.maximum.reduceat(scores, starts), owners[starts]
        if k < len(best):
            among = np.flatnonzero(best >= np.partition(best, len(best) - k)[len(best) - k])
            best, owners = best[among], owners[among]
        order = np.lexsort((owners, -best))[:k]
        return [(self.keys[int(owners[i])], round(float(best[i]), _DECIMALS)) for i in order]

    def _dot_products(self, query: NDArray[float32]) -> NDArray[float32]:
        """Return dot products of all rows with the query.

        Many rows are processed in blocks, since rows on disk may have half precision."""
        import numpy as np

        if self.count < self.parameters.threshold and self.more is None:
            products: NDArray[float32] = np.vecdot(self._single_precision, query)
            return products
        segments = [self.matrix, *([] if self.more is None else [self.more])]
        blocks = (s[at : at + _AT_ONCE] for s in segments for at in range(0, len(s), _AT_ONCE))
        return np.concatenate([np.vecdot(b.astype(np.float32, copy=False), query) for b in blocks])

    @cached_property
    def _single_precision(self) -> NDArray[float32]:
        """The rows in single precision."""
        import numpy as np

        return self.matrix.astype(np.float32, copy=False)

    def _nearest_lines(
        self, lists: InvertedLists, query: NDArray[float32], k: int
    ) -> NDArray[int64] | None:
        """Return lines containing the best ``k`` IRIs; None if exact search is equally good."""
        import numpy as np

        iri_count = min(k, len(self))
        probed = max(self.parameters.probed, _FOR_EACH * iri_count // self.parameters.size)
        behind = np.arange(len(self.matrix), self.count)
        while (rows := lists.nearest(query, probed)) is not None:
            lines = self._lines_with(np.concatenate([rows, behind]))
            if len(np.unique(self.owners[lines])) >= iri_count:
                return lines
            probed *= 2
        return None

    def _lines_with(self, rows: NDArray[int64]) -> NDArray[int64]:
        """Return lines with any of the given rows, ascending."""
        import numpy as np

        order, ends = self._lines_by_row
        return np.sort(order[expand_ranges(ends[rows], ends[rows + 1] - ends[rows])])

    @cached_property
    def _lines_by_row(self) -> tuple[NDArray[int64], NDArray[int64]]:
        """All lines sorted by row, plus start positions of each row's lines."""
        import numpy as np

        ends = np.cumsum(np.bincount(self.rows, minlength=self.count))
        return np.argsort(self.rows, kind="stable"), np.concatenate([[0], ends])

    @property
    def _has_lists(self) -> bool:
        return len(self.matrix) >= self.parameters.threshold

    @property
    def _inverted_lists(self) -> InvertedLists | None:
        with self._opening:
            return self._opened_lists

    @cached_property
    def _opened_lists(self) -> InvertedLists | None:
        return self.open_lists()

    # --- saving ---

    def save(self, folder: Path, generation: int) -> None:
        """Save the set as the folder's set of its kind, for a knowledge generation.

        Saving is atomic and durable; an open reader keeps the previous set. Raises
        ``StoreError`` if the disk fails; the previous set then stays intact."""
        arrays: dict[str, NDArray[Any]] = {
            "vectors": reduce_precision(self.matrix),
            **({} if self.more is None else {"more": reduce_precision(self.more)}),
            "owners": self.owners,
            "hashes": self.hashes,
            "rows": self.rows,
            "keys": self.keys.block,
            "ends": self.keys.ends,
        }
        written = self.kept.link(folder) if self.kept else {}
        for role, array in arrays.items():
            if role not in written:
                written[role] = write_data(folder, f"{self.kind}.{role}", array_writer(array))
        lists = self._inverted_lists if self._has_lists and "lists" not in written else None
        if lists is not None:
            stem, starts = f"{self.kind}.centroids", array_writer(lists.starts)
            written["centroids"] = write_data(folder, stem, lists.write)
            written["lists"] = write_data(folder, f"{self.kind}.lists", starts)
        manifest = files.Manifest(
            kind=self.kind,
            generation=generation,
            agent=self.agent,
            dimension=self.dimension,
            rows=len(self.matrix),
            count=len(self),
            lists=self.parameters,
            files=written,
        )
        files.write_manifest(folder, manifest)
