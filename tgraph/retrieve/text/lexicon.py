"""How the words of a language are read: which tell nothing, and what is left of the others.

English is read as ``lexical`` reads it. German, French, Spanish and Chinese have lists in
``data/languages.toml``; any other language is read without stop words, its commonest endings left
off. A collection in which no text is of another language is read as English throughout.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from tgraph.errors import StoreError
from tgraph.index.sources import document_of_chunk, page_of_chunk
from tgraph.ingest.languages import detected, signs_of_english
from tgraph.model import Evidence
from tgraph.resources import tables
from tgraph.retrieve.base import Context
from tgraph.retrieve.text import lexical
from tgraph.retrieve.text.lexical import Frequencies

ENGLISH_ONLY = frozenset({"all-MiniLM-L6-v2"})
"""Embedders that know no other language."""

SAMPLE = 400_000
"""Characters from which the frequencies of words are taken."""

_SAMPLED = 1_500
"""Characters of a text by which its language is told."""

_FEW, _FEW_UNKNOWN = 0.02, 0.1
"""The share of texts from which on a language counts, one with lists and one without."""

_ANYTHING_BUT_WORDS = re.compile(r"[^\W_]+")
_HAN_RUN = re.compile(r"[㐀-䶿一-鿿豈-﫿]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n\s*\n")
_COMPOUND, _PART, _REST = 8, 4, 3
"""Letters of a compound, of a part that counts, and of what must be left of it."""


@dataclass(frozen=True)
class Lexicon:
    """The words of a language. Two lexicons are the same if their ``code`` is."""

    code: str
    stop_words: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    least: int = 4
    has_compounds: bool = False

    def words(self, text: str) -> list[str]:
        """The words in small letters without accents, elided ones apart."""
        return _ANYTHING_BUT_WORDS.findall(folded(text))

    def stem(self, word: str) -> str:
        """What is left of a word in small letters without accents."""
        for ending in self.endings:
            if word.endswith(ending) and len(word) - len(ending) >= self.least:
                return word[: -len(ending)]
        return word

    def terms(self, text: str) -> list[str]:
        """The stems of the words of a text that carry meaning."""
        return [self.stem(w) for w in self.words(text) if w not in self.stop_words]

    def wanted(self, question: str) -> list[str]:
        """The stems of the words that say what a question is about; of all where none does."""
        return self.terms(question) or [self.stem(w) for w in self.words(question)]

    def term_set(self, text: str) -> frozenset[str]:
        """The stems as a set; those of the last texts are kept."""
        return _kept(self.code, text)

    def sentences(self, text: str) -> list[str]:
        return _SENTENCE.split(text)

    def parts(self, found: Collection[str]) -> frozenset[str]:
        """What compounds begin and end with, where the language has them."""
        if not self.has_compounds:
            return frozenset()
        return frozenset(part for word in found for part in compound_parts(word))


def compound_parts(word: str) -> set[str]:
    """The beginnings and ends of a long word."""
    if len(word) < _COMPOUND:
        return set()
    sizes = range(_PART, len(word) - _REST + 1)
    return {word[:size] for size in sizes} | {word[-size:] for size in sizes}


def is_pair(term: str) -> bool:
    """Whether a term is two Chinese characters."""
    return len(term) == 2 and _HAN_RUN.fullmatch(term) is not None


class EnglishLexicon(Lexicon):
    """English, as ``lexical`` reads it."""

    words = staticmethod(lexical.words)
    stem = staticmethod(lexical.stem)
    terms = staticmethod(lexical.terms)
    term_set = staticmethod(lexical.term_set)


class ChineseLexicon(Lexicon):
    """Pairs of characters; a question is cut at the words that tell nothing first."""

    def words(self, text: str) -> list[str]:
        """Each character and each pair of them, beside words in other letters."""
        found = []
        for word in _ANYTHING_BUT_WORDS.findall(folded(text)):
            rest = _HAN_RUN.sub(" ", word).split()
            found += rest
            for run in _HAN_RUN.findall(word):
                found += [run[i : i + 2] for i in range(len(run) - 1)]
                found += run
        return found

    def wanted(self, question: str) -> list[str]:
        rest = _cutting().sub(" ", folded(question))
        found = []
        for word in _ANYTHING_BUT_WORDS.findall(rest):
            found += _HAN_RUN.sub(" ", word).split()
            for run in _HAN_RUN.findall(word):
                found += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        return found or self.terms(question)


@cache
def _cutting() -> re.Pattern[str]:
    words = sorted(tables("languages")["zh"]["stop"].split(), key=lambda w: (-len(w), w))
    return re.compile("|".join(map(re.escape, words)))


ENGLISH = EnglishLexicon("en", lexical.STOP_WORDS)
_ANY_ENDINGS = (
    *("mente", "zione", "zioni", "ando", "endo", "ato", "ata", "ati", "ate", "are", "ere", "ire"),
    *("en", "er", "es", "as", "os", "is", "et", "a", "e", "i", "o", "n", "s"),
)
OTHER = Lexicon("other", frozenset(), _ANY_ENDINGS)


@cache
def lexicon(code: str) -> Lexicon:
    """The lexicon of a language; ``OTHER`` for one without lists."""
    if code == "en":
        return ENGLISH
    found = tables("languages").get(code)
    if not isinstance(found, dict):
        return OTHER
    kind = ChineseLexicon if code == "zh" else Lexicon
    return kind(
        code,
        frozenset(found["stop"].split()) if code != "zh" else frozenset(),
        tuple(found["endings"].split()),
        int(found["least"]),
        has_compounds=code == "de",
    )


@lru_cache(maxsize=8192)
def _kept(code: str, text: str) -> frozenset[str]:
    return frozenset(lexicon(code).terms(text))


@lru_cache(maxsize=8192)
def folded(text: str) -> str:
    """The text in small letters, without accents and other marks on letters."""
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    kept = (c for c in plain if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", "".join(kept))


# --- the languages of a collection ---------------------------------------------------------------


@dataclass(frozen=True)
class Languages:
    """The languages of a collection, the most frequent first, by a sample of its texts."""

    codes: tuple[str, ...] = ("en",)

    @property
    def are_english(self) -> bool:
        return self.codes in ((), ("en",))

    def of_question(self, text: str) -> Lexicon:
        """How a question is read: by its own signs, and where it has none as the texts are."""
        if self.are_english:
            return ENGLISH
        code = detected(text)
        if code == "en" and not self._is_english(text):
            code = self.codes[0]
        return lexicon(code)

    def _is_english(self, text: str) -> bool:
        """Whether it has signs of English, and no more of the language of most texts: some of
        their commonest words are the same ("a", "on", "an")."""
        own = lexicon(self.codes[0])
        others = sum(word in own.stop_words for word in own.words(text))
        return signs_of_english(text) >= max(1, others)


class CountedWords(Frequencies):
    """The frequencies of terms, each text read in its own language, and what the languages are."""

    def __init__(self, texts: Sequence[str], embeds_english: bool) -> None:
        detected_codes = [detected(text[:_SAMPLED]) for text in texts]
        counts = Counter(detected_codes)
        least = {code: _FEW if code in tables("languages") else _FEW_UNKNOWN for code in counts}
        codes = [  # hardly any text has a rare code: such a text is a title, or a list of names
            code if counts[code] >= least[code] * len(texts) else "en" for code in detected_codes
        ]
        self.languages = Languages(tuple(code for code, _ in Counter(codes).most_common()))
        self._embeds_english = embeds_english
        super().__init__(text for text, code in zip(texts, codes, strict=True) if code == "en")
        for text, code in zip(texts, codes, strict=True):
            if code != "en":
                self._count(text, lexicon(code))

    def _count(self, text: str, words: Lexicon) -> None:
        for sentence in words.sentences(text):
            found = set(words.terms(sentence))
            self._size += bool(found)
            self._counts.update(found)

    @property
    def embeds_english(self) -> bool:
        """Whether the embedder knows English alone."""
        return self._embeds_english

    def has(self, term: str) -> bool:
        """Whether any of the texts has it."""
        return self._counts[term] > 0

    def searches_by_words(self, question: Lexicon) -> bool:
        """Whether vectors tell nothing of a question that is read so."""
        return question.code != "en" and self._embeds_english


def frequencies(context: Context) -> CountedWords:
    """Those of the published state, counted at its first question."""
    memory = context.remembered("frequencies", 1)

    def count() -> CountedWords:
        agent = context.embedder.agent
        return CountedWords(_sample(context), agent.kind == "method" or agent.name in ENGLISH_ONLY)

    found = memory.get("frequencies", count)
    assert isinstance(found, CountedWords)
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


def lexicon_of_chunk(chunk: str, context: Context) -> Lexicon:
    """How the page of a chunk is read."""
    if frequencies(context).languages.are_english:
        return ENGLISH

    def read() -> str:
        try:
            text = context.texts.of_page(document_of_chunk(chunk), page_of_chunk(chunk))
        except StoreError:
            return "en"
        return detected(text)

    place = document_of_chunk(chunk), page_of_chunk(chunk)
    memory: Any = context.remembered("languages of pages", 50_000)
    return lexicon(memory.get(place, read))


def lexicon_of(evidence: Evidence, context: Context) -> Lexicon:
    """How the page of a place is read."""
    return lexicon_of_chunk(evidence.chunk, context)
