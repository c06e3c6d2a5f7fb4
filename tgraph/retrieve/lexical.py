"""Words: how texts are compared where no vector is needed.

BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), k1 = 1.2,
b = 0.75, over whatever collection of texts is at hand.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)
_CJK = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿가-힯]")
K1, B = 1.2, 0.75

STOP_WORDS = frozenset(
    """a about above after again against all also am an and any are aren't as at be because been
    before being below between both but by can can't cannot could did didn't do does doesn't doing
    don't down during each else ever few for from further had has have having he her here hers
    herself him himself his how however i if in into is isn't it its itself just know let like many
    may me might more most much must my myself no nor not now of off on once one only or other our
    ours out over own please said same say says shall she should so some such tell than that the
    their theirs them themselves then there these they this those through to too under until up upon
    us very was wasn't we were weren't what when where which while who whom whose why will with
    within without won't would you your yours s t""".split()
)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A light English stem: plural, -ed, -ing, -ly and -er endings off; other scripts untouched."""
    if len(word) <= 3 or not word.isascii():
        return word
    for suffix, least, put in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= least:
            base = word[: len(word) - len(suffix)] + put
            if put == "" and len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz":
                base = base[:-1]
            return base[:-1] if base.endswith("e") and len(base) > 3 else base
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


_SUFFIXES = (
    ("ations", 3, "at"),
    ("ation", 3, "at"),
    ("ities", 3, ""),
    ("ity", 3, ""),
    ("ingly", 3, ""),
    ("edly", 3, ""),
    ("ments", 4, ""),
    ("ment", 4, ""),
    ("ness", 3, ""),
    ("ings", 3, ""),
    ("ing", 3, ""),
    ("ions", 4, ""),
    ("ion", 4, ""),
    ("ies", 2, "y"),
    ("ied", 2, "y"),
    ("ers", 3, ""),
    ("ed", 3, ""),
    ("er", 4, ""),
    ("or", 4, ""),
    ("ly", 3, ""),
    ("'s", 1, ""),
    ("’s", 1, ""),
    ("sses", 2, "ss"),
    ("ss", 2, "ss"),
    ("es", 3, ""),
    ("s", 3, ""),
)


def words(text: str) -> list[str]:
    """The words of a text in lower case; Chinese, Japanese and Korean as pairs of characters."""
    found = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _CJK.search(word):
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        else:
            found.append(word)
    return found


def terms(text: str) -> list[str]:
    """The stems of the words that carry meaning."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


class Bm25:
    """BM25 over a collection of texts, given as lists of terms."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._counts = [Counter(text) for text in texts]
        self._lengths = [len(text) for text in texts]
        self._average = sum(self._lengths) / len(texts) if texts else 1.0
        frequency = Counter(term for counts in self._counts for term in counts)
        size = len(texts)
        self.idf = {
            term: math.log(1 + (size - count + 0.5) / (count + 0.5))
            for term, count in frequency.items()
        }

    def scores(self, query: Sequence[str]) -> list[float]:
        """One score per text, 0 where no term occurs."""
        wanted = Counter(query)
        return [
            sum(self._term(term, counts[term], length) for term in wanted if term in counts)
            for counts, length in zip(self._counts, self._lengths, strict=True)
        ]

    def _term(self, term: str, count: int, length: int) -> float:
        norm = 1 - B + B * length / (self._average or 1.0)
        return self.idf[term] * count * (K1 + 1) / (count + K1 * norm)
