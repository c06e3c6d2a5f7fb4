"""An embedder that needs no model: words and character trigrams, hashed into a fixed dimension.

Feature hashing with signs after Weinberger et al. 2009 (arXiv:0902.2206); words with their
trigrams after Bojanowski et al. 2017 (arXiv:1607.04606). It knows words, not meaning.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from tgraph.errors import UsageError
from tgraph.model import Agent
from tgraph.models.base import CallSink, Clock, current_time, no_sink
from tgraph.models.embedding import embedding_call

if TYPE_CHECKING:
    from numpy import float32, float64, int64
    from numpy.typing import NDArray

# scripts written without spaces between words: each character counts as a word
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_TRIGRAM_WEIGHT = 0.5  # the length of a word's trigrams together; the word's own is 1
_LONGEST_WORD = 64  # of a longer run of letters (base64, DNA) the start stands for the whole


class HashingEmbedder:
    """An embedder by hashed words and trigrams, with equal vectors on every machine, process
    and Python.

    A word weighs the square root of its count. All texts without words have the same vector.
    Raises ``UsageError`` for a dimension below 1."""

    max_tokens: int | None = None
    lexical = True

    def __init__(self, dimension: int = 1024, clock: Clock = current_time) -> None:
        if dimension < 1:
            raise UsageError(f"An embedding needs at least one dimension, not {dimension}.")
        self.dimension = dimension
        self.agent = Agent("method", "hashed words and trigrams", f"1.{dimension}", "tgraph")
        self._clock = clock

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        """Rows of unit length, shape ``(len(texts), dimension)``, in the order of the texts."""
        import numpy as np

        with embedding_call(self.agent, texts, self._clock, sink) as call:
            call.rows = np.empty((len(texts), self.dimension), dtype=np.float32)
            for row, text in zip(call.rows, call.texts, strict=True):
                row[:] = self._hash_vector(text)
            return call.rows

    def _hash_vector(self, text: str) -> NDArray[float64]:
        import numpy as np

        counts = Counter(normalise_words(text))
        vector: NDArray[float64] = np.zeros(self.dimension)
        if counts:
            word_features = [(*_word_features(word), counts[word]) for word in sorted(counts)]
            places = np.concatenate([numbers for numbers, _, _ in word_features]) % self.dimension
            weights = np.concatenate([w if n == 1 else w * n**0.5 for _, w, n in word_features])
            vector += np.bincount(places, weights, self.dimension)
        length = float(vector.dot(vector)) ** 0.5
        if length == 0:
            vector[0] = length = 1.0
        vector /= length
        return vector


def normalise_words(text: str) -> Iterator[str]:
    """The words of a text as they are compared: NFKC, case folded, cut at 64 characters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return (word[:_LONGEST_WORD] for word in _WORD.findall(folded))


@lru_cache(maxsize=20_000)
def _word_features(word: str) -> tuple[NDArray[int64], NDArray[float64]]:
    """Return a word and its trigrams as numbers below 2**62, plus signed weights."""
    import numpy as np

    marked = f"<{word}>"
    names = [marked, *(marked[i : i + 3] for i in range(len(word)))] if len(word) > 1 else [marked]
    hashes = [*map(_hash_name, names)]
    signs = np.array([1.0 if number & 1 else -1.0 for number in hashes])
    signs[1:] *= _TRIGRAM_WEIGHT / max(1, len(names) - 1) ** 0.5
    return np.array([number >> 2 for number in hashes], dtype=np.int64), signs


@lru_cache(maxsize=20_000)
def _hash_name(name: str) -> int:
    """Hash a word, or a trigram shared by many words."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")
