"""Language lexicons: stop words, endings and stems of each language.

English is read by ``lexical``. German, French, Spanish, Arabic and Chinese have lists in
``data/languages.toml``; any other language is read without stop words, with its commonest
endings removed. A collection without foreign-language texts is read as English throughout."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

from tgraph.errors import StoreError
from tgraph.index.sources import document_of_chunk, page_of_chunk
from tgraph.ingest.languages import detect_language, identify_language, signs_of_english
from tgraph.resources import load_tables
from tgraph.retrieve.base import Context
from tgraph.retrieve.reasons import THIRD_WORDING
from tgraph.retrieve.text import lexical
from tgraph.retrieve.text.lexical import Frequencies

ENGLISH_ONLY = frozenset({"all-MiniLM-L6-v2"})
"""Embedders that know no other language."""

LATER = frozenset({"ar"})
"""Languages without lists in earlier releases; in their sessions they count as another language."""

SAMPLE = 400_000
"""Characters from which the frequencies of words are taken."""

_SAMPLED = 1_500
"""Characters of a text by which its language is told."""

_FEW, _FEW_UNKNOWN = 0.02, 0.1
"""The share of texts from which on a language counts, one with lists and one without."""

_ANYTHING_BUT_WORDS = re.compile(r"[^\W_]+")
_ARABIC_FORMS = str.maketrans("ةى", "هي", "ـ")
"""Letters that are written for another at the end of words, and the stroke that stretches words."""
_HAN_RUN = re.compile(r"[㐀-䶿一-鿿豈-﫿]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n\s*\n")
_COMPOUND, _PART, _REST = 8, 4, 3
"""Letters of a compound, of a part that counts, and of what must be left of it."""


@dataclass(frozen=True)
class Lexicon:
    """The lexicon of one language; lexicons with equal ``code`` are equal."""

    code: str
    stop_words: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    least: int = 4
    has_compounds: bool = False
    beginnings: tuple[str, ...] = ()

    def words(self, text: str) -> list[str]:
        """The words in small letters without accents, elided ones apart."""
        return _ANYTHING_BUT_WORDS.findall(fold_accents(text))

    def stem(self, word: str) -> str:
        """Return the stem of a word given in lower case without accents."""
        for beginning in self.beginnings:
            if word.startswith(beginning) and len(word) - len(beginning) > self.least:
                word = word[len(beginning) :]
                break
        for ending in self.endings:
            if word.endswith(ending) and len(word) - len(ending) >= self.least:
                return word[: -len(ending)]
        return word

    def terms(self, text: str) -> list[str]:
        """Return stems of content words in a text."""
        return [self.stem(w) for w in self.words(text) if w not in self.stop_words]

    def extract_content_stems(self, question: str) -> list[str]:
        """Return stems of a question's content words; stems of all words if none carries
        content."""
        return self.terms(question) or [self.stem(w) for w in self.words(question)]

    def term_set(self, text: str) -> frozenset[str]:
        """Return the stem set of a text; recent results are cached."""
        return _cached_terms(self.code, text)

    def sentences(self, text: str) -> list[str]:
        return _SENTENCE.split(text)

    def parts(self, found: Collection[str]) -> frozenset[str]:
        """Return beginnings and endings of compounds; empty for languages without compounds."""
        if not self.has_compounds:
            return frozenset()
        return frozenset(part for word in found for part in compound_parts(word))


def compound_parts(word: str) -> set[str]:
    """Return beginnings and endings of a long word."""
    if len(word) < _COMPOUND:
        return set()
    sizes = range(_PART, len(word) - _REST + 1)
    return {word[:size] for size in sizes} | {word[-size:] for size in sizes}


def is_pair(term: str) -> bool:
    """Check whether a term consists of two Chinese characters."""
    return len(term) == 2 and _HAN_RUN.fullmatch(term) is not None


class EnglishLexicon(Lexicon):
    """English, as ``lexical`` reads it."""

    words = staticmethod(lexical.words)
    stem = staticmethod(lexical.stem)
    terms = staticmethod(lexical.terms)
    term_set = staticmethod(lexical.term_set)


class ArabicLexicon(Lexicon):
    """Arabic, with one form of letters that stand for another at the end of words."""

    def words(self, text: str) -> list[str]:
        return _ANYTHING_BUT_WORDS.findall(fold_accents(text).translate(_ARABIC_FORMS))


class ChineseLexicon(Lexicon):
    """Chinese lexicon based on character pairs; questions are first cut at stop words."""

    def words(self, text: str) -> list[str]:
        """Return Chinese characters and character pairs, plus words in other scripts."""
        tokens = []
        for word in _ANYTHING_BUT_WORDS.findall(fold_accents(text)):
            foreign_words = _HAN_RUN.sub(" ", word).split()
            tokens += foreign_words
            for run in _HAN_RUN.findall(word):
                tokens += [run[i : i + 2] for i in range(len(run) - 1)]
                tokens += run
        return tokens

    def extract_content_stems(self, question: str) -> list[str]:
        remainder = _stop_word_pattern().sub(" ", fold_accents(question))
        tokens = []
        for word in _ANYTHING_BUT_WORDS.findall(remainder):
            tokens += _HAN_RUN.sub(" ", word).split()
            for run in _HAN_RUN.findall(word):
                tokens += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        return tokens or self.terms(question)


@cache
def _stop_word_pattern() -> re.Pattern[str]:
    words = sorted(load_tables("languages")["zh"]["stop"].split(), key=lambda w: (-len(w), w))
    return re.compile("|".join(map(re.escape, words)))


ENGLISH = EnglishLexicon("en", lexical.STOP_WORDS)
_ANY_ENDINGS = (
    *("mente", "zione", "zioni", "ando", "endo", "ato", "ata", "ati", "ate", "are", "ere", "ire"),
    *("en", "er", "es", "as", "os", "is", "et", "a", "e", "i", "o", "n", "s"),
)
OTHER = Lexicon("other", frozenset(), _ANY_ENDINGS)


@cache
def get_lexicon(code: str) -> Lexicon:
    """Return a language's lexicon; ``OTHER`` for languages without lists."""
    if code == "en":
        return ENGLISH
    language_table = load_tables("languages").get(code)
    if not isinstance(language_table, dict):
        return OTHER
    kind = {"zh": ChineseLexicon, "ar": ArabicLexicon}.get(code, Lexicon)
    return kind(
        code,
        frozenset(language_table["stop"].split()) if code != "zh" else frozenset(),
        tuple(language_table["endings"].split()),
        int(language_table["least"]),
        has_compounds=code == "de",
        beginnings=tuple(language_table.get("beginnings", "").split()),
    )


@lru_cache(maxsize=8192)
def _cached_terms(code: str, text: str) -> frozenset[str]:
    return frozenset(get_lexicon(code).terms(text))


@lru_cache(maxsize=8192)
def fold_accents(text: str) -> str:
    """Return a text in lower case, without accents or other diacritics."""
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    base_characters = (c for c in plain if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", "".join(base_characters))


# --- the languages of a collection ---------------------------------------------------------------


@dataclass(frozen=True)
class Languages:
    """Languages of a text collection, most frequent first, judged by a sample."""

    codes: tuple[str, ...] = ("en",)

    @property
    def are_english(self) -> bool:
        return self.codes in ((), ("en",))

    def of_question(self, text: str) -> Lexicon:
        """Return the lexicon for a question: its detected language or, without clear signs, the
        collection's main language."""
        if self.are_english:
            return ENGLISH
        code = detect_language(text)
        if code == "en" and not self._is_english(text):
            code = self.codes[0]
        return self.lexicon(code)

    def lexicon(self, code: str) -> Lexicon:
        """Return the lexicon by which texts of a language are read."""
        return OTHER if code in LATER and code not in self.codes else get_lexicon(code)

    def _is_english(self, text: str) -> bool:
        """Check whether English signs in a question equal or outnumber signs of the
        collection's main language.

        Common words can belong to both languages ("a", "on", "an")."""
        main_lexicon = get_lexicon(self.codes[0])
        language_hits = sum(word in main_lexicon.stop_words for word in main_lexicon.words(text))
        return signs_of_english(text) >= max(1, language_hits)


class CountedWords(Frequencies):
    """Term frequencies of texts, each read in its own language, plus the collection's
    languages."""

    def __init__(
        self,
        texts: Sequence[str],
        embeds_english: bool,
        unread: frozenset[str] = frozenset(),
    ) -> None:
        self._samples = [text[:_SAMPLED] for text in texts]
        detected_codes = [
            "other" if code in unread else code for code in map(detect_language, self._samples)
        ]
        counts = Counter(detected_codes)
        least = {
            code: _FEW if code in load_tables("languages") else _FEW_UNKNOWN for code in counts
        }
        codes = [  # hardly any text has a rare code: such a text is a title, or a list of names
            code if counts[code] >= least[code] * len(texts) else "en" for code in detected_codes
        ]
        self.languages = Languages(tuple(code for code, _ in Counter(codes).most_common()))
        self._embeds_english = embeds_english
        super().__init__(text for text, code in zip(texts, codes, strict=True) if code == "en")
        for text, code in zip(texts, codes, strict=True):
            if code != "en":
                self._count_terms(text, get_lexicon(code))

    def _count_terms(self, text: str, words: Lexicon) -> None:
        for sentence in words.sentences(text):
            sentence_terms = set(words.terms(sentence))
            self._size += bool(sentence_terms)
            self._counts.update(sentence_terms)

    @cached_property
    def language_tags(self) -> Mapping[str, int]:
        """The number of texts by language, most frequent first."""
        return dict(Counter(map(identify_language, self._samples)).most_common())

    @property
    def embeds_english(self) -> bool:
        """Whether the embedder knows only English."""
        return self._embeds_english

    def has_term(self, term: str) -> bool:
        """Check whether any text contains a term."""
        return self._counts[term] > 0

    def searches_by_words(self, question: Lexicon) -> bool:
        """Check whether a question needs word search because embeddings don't cover its
        language."""
        return question.code != "en" and self._embeds_english


def count_frequencies(context: Context) -> CountedWords:
    """Return term frequencies of the published state, counted at the first question."""
    memory = context.open_cache("frequencies", 2)
    unread = frozenset[str]() if context.wording >= THIRD_WORDING else LATER

    def count() -> CountedWords:
        agent = context.embedder.agent
        return CountedWords(
            _sample_texts(context), agent.kind == "method" or agent.name in ENGLISH_ONLY, unread
        )

    word_counts = memory.load_item(("frequencies", unread), count)
    assert isinstance(word_counts, CountedWords)
    return word_counts


def set_frequencies(context: Context, words: CountedWords) -> None:
    """Give a context's term frequencies, in place of counting texts, whatever its wording is."""
    memory = context.open_cache("frequencies", 2)
    for unread in (frozenset[str](), LATER):
        memory.load_item(("frequencies", unread), lambda: words)


def _sample_texts(context: Context) -> list[str]:
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
    """Return the lexicon for a chunk's page."""
    languages = count_frequencies(context).languages
    if languages.are_english:
        return ENGLISH

    def read() -> str:
        try:
            text = context.texts.of_page(document_of_chunk(chunk), page_of_chunk(chunk))
        except StoreError:
            return "en"
        return detect_language(text)

    place = document_of_chunk(chunk), page_of_chunk(chunk)
    memory: Any = context.open_cache("languages of pages", 50_000)
    return languages.lexicon(memory.load_item(place, read))
