"""Search by words: BM25 over texts of prose and of code.

BM25 after Robertson and Zaragoza (2009) in the variant of Lucene, computed by bm25s. Compound
identifiers count as a whole and by their parts: ``readBuffer`` is found by "buffer".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tgraph.errors import StoreError
from tgraph.retrieve.base import Context
from tgraph.retrieve.text.lexical import STOP_WORDS, Frequencies, stem, words

K1, B = 1.5, 0.75  # bm25s's and Lucene-like defaults
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_COMPOUND = re.compile(r"\b[A-Za-z_]\w*\b", re.ASCII)


def search_terms(text: str) -> list[str]:
    """The terms that a text is found by: stems of its words, and of the parts of identifiers."""
    parts = []
    for word in _COMPOUND.findall(text):
        found = _PARTS.findall(word)
        if len(found) > 1:
            parts += [part for part in map(str.lower, found) if part not in STOP_WORDS]
    plain = [word for word in words(text.replace("_", "")) if word not in STOP_WORDS]
    return [stem(word) for word in (*plain, *parts)]


class WordIndex:
    """An index of texts by key; equal scores are ordered by key."""

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        import bm25s

        found = [(key, search_terms(text)) for key, text in sorted(texts)]
        found = [(key, terms) for key, terms in found if terms]
        self._keys = [key for key, _ in found]
        self._index = bm25s.BM25(method="lucene", k1=K1, b=B)
        if found:
            self._index.index([terms for _, terms in found], show_progress=False)

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """At most ``k`` (key, score) that share a term with the text, best first; scores are above
        zero and have six decimals."""
        import numpy as np

        terms = list(dict.fromkeys(search_terms(text)))
        if not self._keys or not terms:
            return []
        scores = np.round(self._index.get_scores(terms), 6)
        order = np.argsort(-scores, kind="stable")[:k]
        return [(self._keys[at], float(scores[at])) for at in order if scores[at] > 0]


# --- texts and their statistics ---


SAMPLE = 400_000
"""Characters from which the frequencies of words are taken."""


def frequencies(context: Context) -> Frequencies:
    """Those of the published state, counted at its first question."""
    memory = context.remembered("frequencies", 1)
    found = memory.get("frequencies", lambda: Frequencies(_sample(context)))
    assert isinstance(found, Frequencies)
    return found


def _sample(context: Context) -> list[str]:
    """The texts of chunks spread evenly over the collection, in a fixed order."""
    keys = context.vectors["chunk"].keys
    texts: list[str] = []
    size = 0
    step = 1
    while len(keys) // step > 512:
        step += 1
    for place in range(0, len(keys), step):
        try:
            texts.append(context.texts.of_chunk(keys[place]))
        except StoreError:
            continue
        size += len(texts[-1])
        if size > SAMPLE:
            break
    return texts
