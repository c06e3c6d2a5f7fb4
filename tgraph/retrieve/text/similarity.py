"""Likeness of meaning: the vectors of edges, asked for many edges or sentences at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from tgraph.index.vectors.base import VectorIndex
from tgraph.index.vectors.items import sentence_hash

if TYPE_CHECKING:
    from numpy import bytes_, float32, float64, uint8
    from numpy.typing import NDArray

    Vector = NDArray[float32]


class Similarity:
    """The similarity (cosine, -1..1) of edges, and of the sentences behind them, to a question.

    ``question`` has two rows: the question, and the question without its names. The likeness to
    the second says whether a sentence is about what is asked, whomever it is about.
    """

    def __init__(self, vectors: VectorIndex, chunks: VectorIndex, question: Vector) -> None:
        self._vectors = vectors
        self._chunks = chunks
        self._question = question
        self._edges: dict[str, tuple[float, float]] = {}
        self._sentences: dict[bytes, tuple[float, float]] = {}
        self._settings: dict[str, float | None] = {}

    def nearest(self, count: int) -> list[tuple[str, float]]:
        """The edges nearest to the question in the whole collection, best first."""
        return self._vectors.search(self._question[:1], count)[0]

    def learn(self, edges: Iterable[str]) -> None:
        """Compute what is not known yet of these edges, in one go."""
        import numpy as np

        wanted = {edge for edge in edges if edge not in self._edges}
        if not wanted or not len(self._vectors):
            return
        vectors = self._vectors
        places = vectors.keys.places(wanted)
        windows = vectors.read_windows(places)
        found = np.round(self._products(windows.vectors), 6).tolist()
        names = sorted(wanted)  # the order of the keys
        if len(names) != len(places):
            names = [vectors.keys[place] for place in places.tolist()]
        counts = windows.counts.tolist()
        owners = (n for n, c in zip(names, counts, strict=True) for _ in range(c))
        for iri, (one, other), digest in zip(owners, found, _as_bytes(windows.hashes), strict=True):
            scores = (one, other)
            self._edges[iri] = max(scores, self._edges.get(iri, scores))
            self._sentences.setdefault(digest, scores)

    def _products(self, rows: NDArray[float32]) -> NDArray[float32]:
        """The similarity of these vectors to the question with and without its names."""
        import numpy as np

        # a row at a time: a matrix product depends on the neighbours
        return np.stack([np.vecdot(rows, each) for each in self._question], axis=1)

    def of_all(self, edges: NDArray[bytes_]) -> NDArray[float64]:
        """The likeness of each of these edges, given by their IRIs; it is not kept."""
        import numpy as np

        found = np.zeros(len(edges))
        if not len(self._vectors) or not len(edges):
            return found
        places = self._vectors.keys.find_all(edges)
        own, back = np.unique(places[places >= 0], return_inverse=True)
        if len(own):
            windows = self._vectors.read_windows(own)
            products = np.round(np.vecdot(windows.vectors, self._question[0]), 6)
            found[places >= 0] = np.maximum.reduceat(products, windows.starts)[back]
        return np.round(found, 6)

    def of_edge(self, edge: str) -> float:
        return self._edges.get(edge, (0.0, 0.0))[0]

    def of_sentence(self, quote: str, edges: Iterable[str]) -> tuple[float, float]:
        """Of the sentence itself where it was embedded, else the best of its edges'."""
        known = self._sentences.get(sentence_hash(quote))
        if known is not None:
            return known
        return max((self._edges.get(edge, (0.0, 0.0)) for edge in edges), default=(0.0, 0.0))

    def of_chunks(self, chunks: Collection[str]) -> dict[str, float]:
        """The likeness of each of these chunks: that of its part which is nearest."""
        missing = [chunk for chunk in chunks if chunk not in self._settings]
        if missing:
            hits = self._chunks.search(self._question[:1], len(missing), missing)[0]
            self._settings.update({**dict.fromkeys(missing), **dict(hits)})
        known = ((chunk, self._settings[chunk]) for chunk in chunks)
        return {chunk: likeness for chunk, likeness in known if likeness is not None}


def _as_bytes(digests: NDArray[uint8]) -> list[bytes]:
    """Each row as bytes."""
    if not len(digests):
        return []
    data, size = digests.tobytes(), digests.shape[1] * digests.itemsize
    return [data[at : at + size] for at in range(0, len(data), size)]
