"""Word functions for comparing texts without vectors."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

from tgraph.resources import load_tables, word_set

FORMS: dict[str, str] = {
    form: family[0]
    for family in map(str.split, load_tables("words")["families"].splitlines())
    for form in family[1:]
}
"""The first word of the family for each other form."""


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)
_CJK = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿가-힯]")
_SPECIAL = re.compile(r"['’぀-ヿ㐀-䶿一-鿿豈-﫿가-힯]")
_POSSESSIVE = re.compile(r"['’]s?$")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n\s*\n")


STOP_WORDS = word_set("words", "stop_words")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A light English stem: plural, -ed, -ing, -ly and -er endings off; other scripts untouched."""
    word = FORMS.get(word, word)
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
    ("sses", 2, "ss"),
    ("ss", 2, "ss"),
    ("es", 3, ""),
    ("s", 3, ""),
)


def words(text: str) -> list[str]:
    """The words of a text in lower case; Chinese, Japanese and Korean as pairs of characters."""
    text = _fold_case(text)
    if not _SPECIAL.search(text):
        return _WORD.findall(text)  # as most are
    return [part for word in _WORD.findall(text) for part in _split_word(word)]


def _fold_case(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _split_word(word: str) -> Sequence[str]:
    """Return a word without possessive ending; split a Chinese word into character pairs."""
    if word.isalnum() and word.isascii():
        return (word,)
    if _CJK.search(word):
        return [word[i : i + 2] for i in range(max(1, len(word) - 1))]
    return (_POSSESSIVE.sub("", word) or word,)


def terms(text: str) -> list[str]:
    """Return stems of content words in a text."""
    return [*chain.from_iterable(map(_terms_of, _WORD.findall(_fold_case(text))))]


@lru_cache(maxsize=65536)
def _terms_of(word: str) -> tuple[str, ...]:
    return tuple(stem(part) for part in _split_word(word) if part not in STOP_WORDS)


@lru_cache(maxsize=4096)
def term_set(text: str) -> frozenset[str]:
    """Return the stem set of a short text, such as a quote; recent results are cached."""
    return frozenset(terms(text))


class Frequencies:
    """Term frequencies over sentences of a text collection; rarer terms carry more information.

    Large collections are counted on a sample: the rarest terms all count as rare."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._counts: Counter[str] = Counter()
        self._size = 0
        for text in texts:
            for sentence in _SENTENCE_END.split(text):
                sentence_words = set(words(sentence))
                self._size += bool(sentence_words)
                self._counts.update(
                    {stem(word) for word in sentence_words if word not in STOP_WORDS}
                )

    def idf(self, term: str) -> float:
        """Inverse document frequency (Robertson and Zaragoza 2009) scaled to 0..1."""
        count = self._counts[term]
        rarest = math.log(1 + (self._size + 0.5) / 0.5)
        return math.log(1 + (self._size - count + 0.5) / (count + 0.5)) / rarest
