"""Semantic similarity from edge vectors, computed in bulk for many edges or sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from tgraph.index.vectors.base import VectorIndex, text_hash
from tgraph.index.vectors.items import LONGEST_TEXT

if TYPE_CHECKING:
    from numpy import bytes_, float32, float64, uint8
    from numpy.typing import NDArray

    Vector = NDArray[float32]


class Similarity:
    """Question similarity (cosine, -1..1) of edges and underlying sentences.

    ``question`` has two rows: question, and question without names. Similarity to the second
    row tells whether a sentence concerns the requested subject, independent of named entities."""

    def __init__(self, vectors: VectorIndex, chunks: VectorIndex, question: Vector) -> None:
        self._vectors = vectors
        self._chunks = chunks
        self._question = question
        self._edges: dict[str, tuple[float, float]] = {}
        self._sentences: dict[bytes, tuple[float, float]] = {}
        self._settings: dict[str, float | None] = {}

    def nearest(self, count: int) -> list[tuple[str, float]]:
        """Return edges nearest to the question across the entire collection, best first."""
        return self._vectors.search(self._question[:1], count)[0]

    def learn(self, edges: Iterable[str]) -> None:
        """Compute missing edge similarities in one batch."""
        import numpy as np

        missing_edges = {edge for edge in edges if edge not in self._edges}
        if not missing_edges or not len(self._vectors):
            return
        vectors = self._vectors
        places = vectors.keys.places(missing_edges)
        windows = vectors.read_windows(places)
        # a row at a time: a matrix product depends on the neighbours
        products = [np.vecdot(windows.vectors, query_vector) for query_vector in self._question]
        similarities = np.round(np.stack(products, axis=1), 6).tolist()
        names = sorted(missing_edges)  # the order of the keys
        if len(names) != len(places):
            names = [vectors.keys[place] for place in places.tolist()]
        counts = windows.counts.tolist()
        owners = (n for n, c in zip(names, counts, strict=True) for _ in range(c))
        for iri, (question_score, unnamed_score), digest in zip(
            owners, similarities, _as_bytes(windows.hashes), strict=True
        ):
            scores = (question_score, unnamed_score)
            self._edges[iri] = max(scores, self._edges.get(iri, scores))
            self._sentences.setdefault(digest, scores)

    def of_all(self, edges: NDArray[bytes_]) -> NDArray[float64]:
        """Return uncached question similarities for edge IRIs."""
        import numpy as np

        similarities = np.zeros(len(edges))
        if not len(self._vectors) or not len(edges):
            return similarities
        places = self._vectors.keys.find_all(edges)
        unique_places, back = np.unique(places[places >= 0], return_inverse=True)
        if len(unique_places):
            windows = self._vectors.read_windows(unique_places)
            products = np.round(np.vecdot(windows.vectors, self._question[0]), 6)
            similarities[places >= 0] = np.maximum.reduceat(products, windows.starts)[back]
        return np.round(similarities, 6)

    def of_edge(self, edge: str) -> float:
        return self._edges.get(edge, (0.0, 0.0))[0]

    def of_sentence(self, quote: str, edges: Iterable[str]) -> tuple[float, float]:
        """Return similarity scores of an embedded sentence; otherwise return the best edge
        scores."""
        similarity = self._sentences.get(text_hash(quote[:LONGEST_TEXT]))
        if similarity is not None:
            return similarity
        return max((self._edges.get(edge, (0.0, 0.0)) for edge in edges), default=(0.0, 0.0))

    def of_chunks(self, chunks: Collection[str]) -> dict[str, float]:
        """Return chunk similarities; the nearest part of a chunk counts."""
        missing = [chunk for chunk in chunks if chunk not in self._settings]
        if missing:
            hits = self._chunks.search(self._question[:1], len(missing), missing)[0]
            self._settings.update({**dict.fromkeys(missing), **dict(hits)})
        chunk_similarities = ((chunk, self._settings[chunk]) for chunk in chunks)
        return {chunk: likeness for chunk, likeness in chunk_similarities if likeness is not None}


def _as_bytes(digests: NDArray[uint8]) -> list[bytes]:
    """Convert each row into bytes."""
    if not len(digests):
        return []
    data, size = digests.tobytes(), digests.shape[1] * digests.itemsize
    return [data[at : at + size] for at in range(0, len(data), size)]
