"""Hubs: entities with many edges, whose edges are ranked by the words of their sentences without
reading any sentence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

from tgraph import vocabulary as v

if TYPE_CHECKING:
    from numpy import bytes_, float64, int64
    from numpy.typing import NDArray

_EDGE = f"{v.URN}edge:"
_DIGEST = 20
_MARK = 8


class HubRow(NamedTuple):
    """A hub as a table keeps it: the digests of the edges, the number of sentences of each edge
    (a byte each), the number of terms of each sentence (two bytes each), and marks of the terms."""

    edges: bytes
    sentences: bytes
    sizes: bytes
    terms: bytes

    @classmethod
    def from_sentences(cls, sentences_by_edge: Mapping[str, Collection[bytes]]) -> Self:
        """The row of edges, in the order of the IRIs, with the marks of each of their sentences."""
        sentences = [terms for edge in sentences_by_edge.values() for terms in edge]
        return cls(
            b"".join(bytes.fromhex(edge.rpartition(":")[2]) for edge in sentences_by_edge),
            bytes(map(len, sentences_by_edge.values())),
            b"".join((len(terms) // _MARK).to_bytes(2, "little") for terms in sentences),
            b"".join(sentences),
        )


@dataclass(frozen=True, slots=True)
class Hub:
    """An entity's edges, sorted by IRI, with their sentence terms.

    ``terms`` are hash marks of terms; ``within`` gives each term's sentence, ``edges`` each
    sentence's edge as index into ``iris``."""

    iris: NDArray[bytes_]
    edges: NDArray[int64]
    within: NDArray[int64]
    terms: NDArray[int64]

    @classmethod
    def from_row(cls, row: HubRow) -> Self:
        """The hub of a row."""
        import numpy as np

        digests, size = row.edges.hex().encode(), 2 * _DIGEST
        iris = [_EDGE.encode() + digests[at : at + size] for at in range(0, len(digests), size)]
        sentences = np.frombuffer(row.sentences, dtype=np.uint8)
        sizes = np.frombuffer(row.sizes, dtype=np.uint16)
        return cls(
            np.array(iris),
            np.repeat(np.arange(len(sentences)), sentences),
            np.repeat(np.arange(len(sizes)), sizes),
            np.frombuffer(row.terms, dtype="<i8"),
        )

    def __len__(self) -> int:
        return len(self.iris)

    def weigh_shared_terms(self, weights: Mapping[str, float]) -> NDArray[float64]:
        """For each edge the weight of the terms that its best sentence has."""
        import numpy as np

        sums = np.zeros(len(self.edges))
        for term, weight in weights.items():
            sums[self.within[self.terms == _mark(term)]] += weight
        best = np.zeros(len(self))
        positive = np.flatnonzero(sums)
        np.maximum.at(best, self.edges[positive], sums[positive])
        return best

    def sentences(self) -> dict[str, tuple[bytes, ...]]:
        """Return the marks of the sentences by edge, as ``HubRow.from_sentences`` takes them."""
        import numpy as np

        bounds = np.searchsorted(self.within, np.arange(len(self.edges) + 1)).tolist()
        marks = [self.terms[start:end].tobytes() for start, end in pairwise(bounds)]
        ends = np.searchsorted(self.edges, np.arange(len(self) + 1)).tolist()
        spans = zip(self.iris.tolist(), pairwise(ends), strict=True)
        return {iri.decode(): tuple(marks[start:end]) for iri, (start, end) in spans}


def term_marks(terms: Collection[str]) -> bytes:
    """The marks of the terms of a sentence."""
    return b"".join(_mark(t).to_bytes(_MARK, "little", signed=True) for t in sorted(terms))


@lru_cache(maxsize=4096)
def _mark(term: str) -> int:
    return int.from_bytes(sha256(term.encode()).digest()[:_MARK], "little", signed=True)
