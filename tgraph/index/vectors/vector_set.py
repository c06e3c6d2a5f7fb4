"""A set of vectors of one kind, searched exactly while it is small, else through inverted lists."""

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
from tgraph.index.vectors.keys import Keys, ranges
from tgraph.model import Agent
from tgraph.models.base import compact

if TYPE_CHECKING:
    from numpy import bool_, float32, int64, uint8, uint32
    from numpy.typing import NDArray


_AT_ONCE = 65_536
_FOR_EACH = 8
"""Rows that are looked at for each IRI that is wanted, where these are many."""

_DECIMALS = 6  # of a score: beyond them processors and libraries differ (design 3.7)


@dataclass(eq=False, repr=False)
class VectorSet:
    """Unit vectors of one kind: lines ordered by IRI, text and window, and the rows that they have.

    An IRI may have several texts and a text several windows; it is scored by the best of them.
    A text that several IRIs have is several lines and one row. Safe to search from many threads.
    ``keys`` are the IRIs in order; a mask given to ``search`` has one place for each. ``owners``,
    ``hashes`` and ``rows`` say of each line whose it is, of which text, and where in ``matrix``, or
    behind that in ``more``: rows that came since the lists were made, and are searched exactly.
    ``kept`` are the files that it has already.
    """

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
        """0 for an empty set, which fits every embedder."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        """The number of IRIs, not of lines or rows."""
        return len(self.keys)

    def __repr__(self) -> str:
        return f"<VectorSet {self.kind}: {len(self)} IRIs, {self.count} rows>"

    @property
    def count(self) -> int:
        """How many rows there are; some may be of texts that no IRI has any more."""
        return len(self.matrix) + (0 if self.more is None else len(self.more))

    def lines_of(self, places: NDArray[int64]) -> tuple[NDArray[int64], NDArray[int64]]:
        """The lines of these places in ``keys``, and how many each has."""
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
        """The vectors of these lines."""
        return self.take(self.rows[lines])

    def take(self, rows: NDArray[Any]) -> NDArray[float32]:
        """The vectors of these rows."""
        import numpy as np

        if self.more is None:
            return np.asarray(self.matrix[rows], dtype=np.float32)
        found = np.empty((len(rows), self.dimension), dtype=np.float32)
        behind = rows >= len(self.matrix)
        found[~behind] = self.matrix[rows[~behind]]
        found[behind] = self.more[rows[behind] - len(self.matrix)]
        return found

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
        return [self._search(query, k, places, k + beyond) for query in queries]

    def _search(
        self, query: NDArray[float32], k: int, places: NDArray[int64] | None, most: int
    ) -> list[Hit]:
        """The best ``most`` IRIs of the lines that a search for the best ``k`` compares."""
        if places is not None:
            return self._rank(query, most, self.lines_of(places)[0])
        if self._has_lists and self._lists is not None:
            lines = self._nearest(self._lists, query, k)
            if lines is not None:
                return self._rank(query, most, lines)
        return self._rank(query, most, None)

    def _rank(self, query: NDArray[float32], k: int, lines: NDArray[int64] | None) -> list[Hit]:
        """The best IRIs of the lines, which are given in ascending order; None: of all."""
        import numpy as np

        owners = self.owners if lines is None else self.owners[lines]
        if not len(owners):
            return []
        # one dot product a row, unlike a matrix product, doesn't depend on the neighbours
        found = (
            self._products(query)[self.rows]
            if lines is None
            else np.vecdot(self.vectors_of(lines), query)
        )
        scores = np.clip(np.round(found, _DECIMALS), -1, 1) + 0.0
        starts = np.flatnonzero(np.diff(owners, prepend=np.int64(-1)))
        best, owners = np.maximum.reduceat(scores, starts), owners[starts]
        if k < len(best):
            among = np.flatnonzero(best >= np.partition(best, len(best) - k)[len(best) - k])
            best, owners = best[among], owners[among]
        order = np.lexsort((owners, -best))[:k]
        return [(self.keys[int(owners[i])], round(float(best[i]), _DECIMALS)) for i in order]

    def _products(self, query: NDArray[float32]) -> NDArray[float32]:
        """The dot product of each row with the query; of many rows some at a time, since they may
        be of half precision on the disk."""
        import numpy as np

        if self.count < self.parameters.threshold and self.more is None:
            found: NDArray[float32] = np.vecdot(self._single, query)
            return found
        segments = [self.matrix, *([] if self.more is None else [self.more])]
        blocks = (s[at : at + _AT_ONCE] for s in segments for at in range(0, len(s), _AT_ONCE))
        return np.concatenate([np.vecdot(b.astype(np.float32, copy=False), query) for b in blocks])

    @cached_property
    def _single(self) -> NDArray[float32]:
        """The rows in single precision."""
        import numpy as np

        return self.matrix.astype(np.float32, copy=False)

    def _nearest(
        self, lists: InvertedLists, query: NDArray[float32], k: int
    ) -> NDArray[int64] | None:
        """Lines that hold the best ``k`` IRIs, or None where an exact search is as good."""
        import numpy as np

        wanted = min(k, len(self))
        probed = max(self.parameters.probed, _FOR_EACH * wanted // self.parameters.size)
        behind = np.arange(len(self.matrix), self.count)
        while (rows := lists.nearest(query, probed)) is not None:
            lines = self._lines_with(np.concatenate([rows, behind]))
            if len(np.unique(self.owners[lines])) >= wanted:
                return lines
            probed *= 2
        return None

    def _lines_with(self, rows: NDArray[int64]) -> NDArray[int64]:
        """The lines that have one of these rows, in ascending order."""
        import numpy as np

        order, ends = self._lines_by_row
        return np.sort(order[ranges(ends[rows], ends[rows + 1] - ends[rows])])

    @cached_property
    def _lines_by_row(self) -> tuple[NDArray[int64], NDArray[int64]]:
        """All lines by their rows, and where those of each row begin."""
        import numpy as np

        ends = np.cumsum(np.bincount(self.rows, minlength=self.count))
        return np.argsort(self.rows, kind="stable"), np.concatenate([[0], ends])

    @property
    def _has_lists(self) -> bool:
        return len(self.matrix) >= self.parameters.threshold

    @property
    def _lists(self) -> InvertedLists | None:
        with self._opening:
            return self._opened_lists

    @cached_property
    def _opened_lists(self) -> InvertedLists | None:
        return self.open_lists()

    # --- saving ---

    def save(self, folder: Path, generation: int) -> None:
        """Makes this the folder's set of its kind, as of a generation of the knowledge.

        Atomic and durable; an open reader of the set before keeps it. Raises ``StoreError`` when
        the disk fails; the set before is whole then.
        """
        arrays: dict[str, NDArray[Any]] = {
            "vectors": compact(self.matrix),
            **({} if self.more is None else {"more": compact(self.more)}),
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
        lists = self._lists if self._has_lists and "lists" not in written else None
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
