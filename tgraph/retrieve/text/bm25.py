"""Search by words: BM25 over texts of prose and of code.

BM25 after Robertson and Zaragoza (2009) in the variant of Lucene, computed by bm25s. Compound
identifiers count as a whole and by their parts: ``readBuffer`` is found by "buffer".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from tgraph.retrieve.text.lexical import STOP_WORDS, stem, words
from tgraph.retrieve.text.lexicon import ENGLISH, Lexicon, compound_parts

K1, B = 1.5, 0.75  # bm25s's and Lucene-like defaults
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_COMPOUND = re.compile(r"\b[A-Za-z_]\w*\b", re.ASCII)


def search_terms(text: str) -> list[str]:
    """Return search terms of a text: stemmed words, plus stemmed parts of identifiers."""
    parts = []
    for word in _COMPOUND.findall(text):
        word_parts = _PARTS.findall(word)
        if len(word_parts) > 1:
            parts += [part for part in map(str.lower, word_parts) if part not in STOP_WORDS]
    plain = [word for word in words(text.replace("_", "")) if word not in STOP_WORDS]
    return [stem(word) for word in (*plain, *parts)]


def terms_in(text: str, lexicon: Lexicon) -> list[str]:
    """Return search terms of a text in the lexicon's language."""
    return search_terms(text) if lexicon is ENGLISH else lexicon.terms(text)


class WordIndex:
    """A word index of keyed texts, each read in its own language (default English).

    Equal scores are ordered by key. Compounds also count as parts, if other texts contain the
    part as a word."""

    def __init__(
        self, texts: Sequence[tuple[str, str]], languages: Mapping[str, Lexicon] | None = None
    ) -> None:
        import bm25s

        read = languages or {}
        term_rows = [(key, terms_in(text, read.get(key, ENGLISH))) for key, text in sorted(texts)]
        term_rows = [(key, terms) for key, terms in term_rows if terms]
        compounding = {key for key, lexicon in read.items() if lexicon.has_compounds}
        if compounding:
            known_terms = {term for key, terms in term_rows if key in compounding for term in terms}
            term_rows = [
                (key, [*terms, *parts_among(terms, known_terms)] if key in compounding else terms)
                for key, terms in term_rows
            ]
            self._known = frozenset(known_terms)
        else:
            self._known = frozenset()
        self._keys = [key for key, _ in term_rows]
        self._index = bm25s.BM25(method="lucene", k1=K1, b=B)
        if term_rows:
            self._index.index([terms for _, terms in term_rows], show_progress=False)

    def search(self, text: str, k: int, lexicon: Lexicon = ENGLISH) -> list[tuple[str, float]]:
        """Return at most ``k`` (key, score) pairs sharing a term with the text, best first;
        scores are positive, rounded to six decimals."""
        return self.rank(text, k, lexicon)[0]

    def rank(
        self, text: str, k: int, lexicon: Lexicon = ENGLISH
    ) -> tuple[list[tuple[str, float]], int]:
        """The result of ``search``, and how many texts share a term with the text."""
        import numpy as np

        query_terms = (
            search_terms(text) if lexicon is ENGLISH else lexicon.extract_content_stems(text)
        )
        if lexicon.has_compounds:
            query_terms = [*query_terms, *parts_among(query_terms, self._known)]
        terms = list(dict.fromkeys(query_terms))
        if not self._keys or not terms:
            return [], 0
        scores = np.round(self._index.get_scores(terms), 6)
        order = np.argsort(-scores, kind="stable")[:k]
        hits = [(self._keys[at], float(scores[at])) for at in order if scores[at] > 0]
        return hits, int(np.count_nonzero(scores > 0))


def parts_among(terms: Sequence[str], known: Collection[str]) -> list[str]:
    """Return beginnings and endings of compounds, limited to known terms."""
    return [part for term in terms for part in sorted(compound_parts(term)) if part in known]
