"""The interfaces of vector search: an index of the vectors of one kind, and a store of indexes.

Callers name these interfaces; ``tgraph.index.vectors.stores`` chooses the implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from tgraph.errors import StoreError
from tgraph.models.base import CallSink, Embedder, no_sink, well_formed

if TYPE_CHECKING:
    from pathlib import Path

    from numpy import bool_, float32, int64, uint8
    from numpy.typing import NDArray

    from tgraph.index.vectors.keys import Keys
    from tgraph.model import Agent

Hit = tuple[str, float]
"""An IRI and its similarity to a query."""

EmbeddingProgress = Callable[[int, int], None]
"""Receives the number of new texts that have vectors, and the number of all new texts."""

HASH_BYTES = 16


class StaleIndexError(StoreError):
    """An error for vectors that are missing, outdated or made by another embedder; indexing
    again rebuilds the vectors."""


def ignore_progress(done: int, total: int) -> None:
    """Report the progress to nobody."""


def text_hash(text: str) -> bytes:
    """The first 16 bytes of the text's SHA-256, by which an index recognises a text."""
    return sha256(well_formed(text).encode()).digest()[:HASH_BYTES]


@dataclass(frozen=True, slots=True, eq=False)
class TextWindows:
    """The embedded windows of the texts of several IRIs, all windows of the first IRI first.

    ``counts`` has the number of windows for each IRI; ``hashes`` (the text's hash, 16 bytes) and
    ``vectors`` (of unit length) have one row for each window.
    """

    counts: NDArray[int64]
    hashes: NDArray[uint8]
    vectors: NDArray[float32]

    @property
    def starts(self) -> NDArray[int64]:
        """The row of the first window of each IRI."""
        import numpy as np

        starts: NDArray[int64] = np.cumsum(self.counts) - self.counts
        return starts


class VectorIndex(Protocol):
    """Unit vectors of the texts of one kind of thing (entities, edges, chunks, reports ...).

    An IRI may have several texts, and a long text several windows with a vector for each. An index
    doesn't change once it is built, and many threads may search one index.
    """

    @property
    def kind(self) -> str:
        """The kind of the things, such as ``entity``."""

    @property
    def agent(self) -> Agent:
        """The embedder that made the vectors."""

    @property
    def dimension(self) -> int:
        """The length of a vector; 0 for an empty index, which fits every embedder."""

    @property
    def keys(self) -> Keys:
        """The IRIs in code-point order."""

    def __len__(self) -> int:
        """The number of IRIs."""

    def search(
        self,
        queries: NDArray[float32],
        k: int,
        allowed: Collection[str] | NDArray[bool_] | None = None,
        beyond: int = 0,
    ) -> list[list[Hit]]:
        """For each query (a row of unit length) at most ``k`` hits, best first, followed by at most
        ``beyond`` further IRIs that the search compared.

        The score of an IRI is the greatest dot product of the query with a vector of the IRI,
        rounded to six decimals; hits of equal score are in the order of their IRIs. A search among
        ``allowed`` (IRIs, or a mask over ``keys``) is exact, a search among all may be approximate.
        The hits of a query don't depend on the queries beside it. Raises ``UsageError`` for
        queries of another dimension.
        """

    def read_windows(self, places: NDArray[int64]) -> TextWindows:
        """The windows of the IRIs at these places in ``keys``, in the order of the places."""

    def save(self, folder: Path, generation: int) -> None:
        """Replace the folder's index of this kind by this one, as of a generation of the knowledge.

        Atomic and durable. Raises ``StoreError`` when the disk fails; the folder then still has
        the index from before.
        """


class VectorStore(Protocol):
    """Builds vector indexes of one implementation, and opens saved indexes from a folder."""

    def open_vectors(
        self,
        folder: Path,
        kind: str,
        *,
        generation: int | None = None,
        agent: Agent | None = None,
        dimension: int | None = None,
        verify: bool = False,
    ) -> VectorIndex:
        """The index of a kind in a folder.

        Raises ``StaleIndexError`` where the folder has none, or one of another generation, agent
        or dimension (None accepts every one), and ``DamagedIndexError`` where the files aren't
        those that were saved; ``verify`` reads every byte of large files too.
        """

    def build_vectors(
        self,
        kind: str,
        items: Iterable[tuple[str, str]],
        embedder: Embedder,
        previous: VectorIndex | None = None,
        progress: EmbeddingProgress = ignore_progress,
        sink: CallSink = no_sink,
        *,
        exact: bool = False,
    ) -> VectorIndex:
        """An index of (IRI, text) items, in memory; the order of the items has no effect.

        Texts that ``previous`` has from the same embedder are not embedded again. ``exact`` makes
        every search exact, whatever the size. ``sink`` receives the embedder's calls. Errors are
        those of the embedder.
        """

    def revise_vectors(
        self,
        previous: VectorIndex,
        items: Iterable[tuple[str, str]],
        touched: Collection[str],
        embedder: Embedder,
        progress: EmbeddingProgress = ignore_progress,
        sink: CallSink = no_sink,
    ) -> VectorIndex | None:
        """``previous`` with the (IRI, text) items in place of the texts of the touched IRIs.

        ``previous`` was made by the same embedder. The result is searched like an index that was
        built of all items. None where the embedder's dimension has changed.
        """

    def compact_vectors(self, index: VectorIndex) -> VectorIndex:
        """The same index without vectors of texts that no IRI has any more."""


class IndexDecorator:
    """Passes every call to another index: the base of indexes that change some of the calls."""

    def __init__(self, inner: VectorIndex) -> None:
        self._inner = inner

    @property
    def kind(self) -> str:
        return self._inner.kind

    @property
    def agent(self) -> Agent:
        return self._inner.agent

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    @property
    def keys(self) -> Keys:
        return self._inner.keys

    def __len__(self) -> int:
        return len(self._inner)

    def search(
        self,
        queries: NDArray[float32],
        k: int,
        allowed: Collection[str] | NDArray[bool_] | None = None,
        beyond: int = 0,
    ) -> list[list[Hit]]:
        return self._inner.search(queries, k, allowed, beyond)

    def read_windows(self, places: NDArray[int64]) -> TextWindows:
        return self._inner.read_windows(places)

    def save(self, folder: Path, generation: int) -> None:
        self._inner.save(folder, generation)
