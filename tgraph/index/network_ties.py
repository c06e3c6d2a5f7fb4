"""The ties of the network of graph ranking, and the names that lead to them.

The network is that of HippoRAG 2 (Gutiérrez and others 2025, "From RAG to Memory"): its nodes are
the entities and the chunks that have vectors; relationships tie entities, a mention ties a chunk
and an entity, and entities whose names mean nearly the same are tied as synonyms. Beyond HippoRAG 2
a chunk is tied to its subjects: the entities that its document or its section is called after.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from tgraph import vocabulary as v
from tgraph.index.sources import document_of_chunk
from tgraph.index.vectors.base import VectorIndex
from tgraph.store.base import Store, select_rows, text_of

if TYPE_CHECKING:
    from numpy import float32, float64, int64
    from numpy.typing import ArrayLike, NDArray

COMMON = 100
"""Names with one word in common, beyond which the word says nothing."""

_AT_ONCE = 20_000
_ASIDE = re.compile(r"\s*\([^()]*\)$")
_HALF = 32
"""Bits of a node in a pair of nodes as one number."""


class Wording(NamedTuple):
    """The functions by which a question compares names, and with which tables are made.

    ``words`` returns the words of the name of an entity by its IRI. ``name_forms`` returns the
    forms in which a question may write a name of an entity, none for a label that is not written as
    a name; ``title_forms`` those of a title."""

    words: Callable[[str], Collection[str]]
    name_forms: Callable[[str], Collection[str]]
    title_forms: Callable[[str], Collection[str]]


@dataclass(frozen=True, slots=True)
class WeightedPairs:
    """Pairs of nodes with a weight each: ``ends`` has a row of two nodes for a pair, the smaller
    first, in order, each pair once."""

    ends: NDArray[int64]
    weights: NDArray[float64]

    @classmethod
    def from_ends(
        cls, ones: ArrayLike, others: ArrayLike, weights: ArrayLike, *, add: bool = True
    ) -> Self:
        """The pairs of two different nodes; -1 stands for no node. The weights of a pair that comes
        several times are added, or the first weight counts where ``add`` is false."""
        import numpy as np

        sources, targets = (np.asarray(ends, dtype=np.int64) for ends in (ones, others))
        values: NDArray[float64] = np.asarray(weights, dtype=np.float64)
        tied = (sources >= 0) & (targets >= 0) & (sources != targets)
        sources, targets, values = sources[tied], targets[tied], values[tied]
        codes = (np.minimum(sources, targets) << _HALF) | np.maximum(sources, targets)
        pairs, first, place = np.unique(codes, return_index=True, return_inverse=True)
        values = values[first] if not add else np.bincount(place, values, len(pairs)).astype(float)
        return cls(np.stack([pairs >> _HALF, pairs & ((1 << _HALF) - 1)], axis=1), values)

    def times(self, factor: float) -> WeightedPairs:
        """The pairs with multiplied weights."""
        return WeightedPairs(self.ends, self.weights * factor)


@dataclass(frozen=True, slots=True)
class NetworkTies:
    """``facts`` tie entities, by the number of relationships, and ``synonyms`` those whose names
    share a word, by the likeness of the names (cosine). ``mentions`` and ``subjects`` tie entities
    and chunks, with the weight 1."""

    facts: WeightedPairs
    mentions: WeightedPairs
    subjects: WeightedPairs
    synonyms: WeightedPairs

    def chunk_counts(self, entities: int) -> list[int]:
        """The number of chunks that mention each of so many entities."""
        import numpy as np

        counts: list[int] = np.bincount(self.mentions.ends[:, 0], minlength=entities).tolist()
        return counts


class Headings:
    """The titles of documents and the headings of chunks."""

    def __init__(self, store: Store) -> None:
        texts: defaultdict[str, list[str]] = defaultdict(list)
        for row in select_rows(store, "retrieve/headings"):
            texts[text_of(row["subject"])].append(text_of(row["text"]))
        self._texts: Mapping[str, Sequence[str]] = texts

    def titles(self, chunk: str) -> list[str]:
        """The titles of the chunk's document, those of one word aside: such may be any word."""
        titles = self._texts.get(document_of_chunk(chunk), ())
        return [title for title in titles if len(title.split()) > 1]

    def subjects(self, chunk: str) -> Iterator[str]:
        """The IRIs of entities, real or not, that the chunk's section or document is called
        after."""
        for subject in (chunk, document_of_chunk(chunk)):
            for heading in self._texts.get(subject, ()):
                for name in heading.split(" > "):
                    names = {name, _ASIDE.sub("", name)}
                    yield from (v.entity_iri(variant) for variant in names if variant.strip())


def merged_names(store: Store) -> dict[str, str]:
    """The entity that each absorbed name stands for, as merges stand."""
    rows = select_rows(store, "retrieve/merged")
    return {text_of(row["name"]): text_of(row["entity"]) for row in rows}


def synonym_pairs(vectors: VectorIndex, least: float, wording: Wording) -> WeightedPairs:
    """The pairs of entities whose names have at least this likeness (cosine), with the likeness.

    Only names that share a word are compared, unless more than ``COMMON`` have the word: that keeps
    the time in proportion to the number of entities, and most synonyms.
    """
    import numpy as np

    pairs = _sharing_a_word([wording.words(iri) for iri in vectors.keys])
    if not len(pairs) or least > 1:
        return WeightedPairs.from_ends((), (), ())
    rows = first_windows(vectors, np.arange(len(vectors)))
    parts = (pairs[start : start + _AT_ONCE] for start in range(0, len(pairs), _AT_ONCE))
    scores = np.concatenate([likeness(rows[part[:, 0]], rows[part[:, 1]]) for part in parts])
    near = scores >= least
    return WeightedPairs.from_ends(pairs[near, 0], pairs[near, 1], scores[near])


def first_windows(vectors: VectorIndex, places: NDArray[int64]) -> NDArray[float32]:
    """Return the vector of the first window of each place in the keys."""
    windows = vectors.read_windows(places)
    return windows.vectors[windows.starts]


def likeness(ones: NDArray[float32], others: NDArray[float32]) -> NDArray[float32]:
    """The cosine of each two vectors, to six decimals."""
    import numpy as np

    scores: NDArray[float32] = np.round(np.einsum("ij,ij->i", ones, others), 6)
    return scores


def _sharing_a_word(names: Sequence[Iterable[str]]) -> NDArray[int64]:
    """Return pairs of name places sharing a rare word, each pair once, in order."""
    import numpy as np

    places_by_word: defaultdict[str, list[int]] = defaultdict(list)
    for place, words in enumerate(names):
        for word in set(words):
            places_by_word[word].append(place)
    size = max(len(names), 1)
    codes = [np.zeros(0, dtype=np.int64)]
    for places in places_by_word.values():
        if 1 < len(places) <= COMMON:
            first_indices, second_indices = np.triu_indices(len(places), 1)
            array = np.array(places, dtype=np.int64)
            codes.append(array[first_indices] * size + array[second_indices])
    pairs = np.unique(np.concatenate(codes))
    return np.stack([pairs // size, pairs % size], axis=1)
