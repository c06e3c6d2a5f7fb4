"""Search by words in place of vectors, for questions in a language that the embedder doesn't know.

The question's context is given vectors of words, under which every search, order and likeness of
every mode runs unchanged: a text has for each of its words how often it stands there, as BM25
weighs it, and a question how much each of its words tells, so that their product is the share of
what the question's words tell that the text has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

from tgraph.index.stored_graph import StoredGraph
from tgraph.index.vectors.base import Hit, IndexDecorator, VectorIndex
from tgraph.index.vectors.items import KINDS, items_of
from tgraph.ingest.languages import signs_of_english
from tgraph.model import Agent
from tgraph.models.base import CallSink, no_sink
from tgraph.retrieve.base import Context
from tgraph.retrieve.labels import read_reified_edges
from tgraph.retrieve.text.bm25 import K1, B, parts_among
from tgraph.retrieve.text.lexicon import (
    ENGLISH_ONLY,
    CountedWords,
    Lexicon,
    count_frequencies,
    get_lexicon,
)
from tgraph.version import __version__

if TYPE_CHECKING:
    from numpy import bool_, float32, float64, int64
    from numpy.typing import NDArray

DIMENSION = 1 << 15
"""Into so many the words are hashed, of which a question has a few."""

_DECIMALS = 6
_ENGLISH = 4
"""Words of English from which on a question is in it, whatever the texts are in."""


def by_words_if_foreign(question: str, context: Context) -> Context:
    """Return a word-search context for foreign-language questions; otherwise return the context
    unchanged.

    Word search applies where the embedder lacks the question language and the texts use that
    language."""
    agent = context.embedder.agent
    if agent.kind != "method" and agent.name not in ENGLISH_ONLY:
        return context
    if signs_of_english(question) >= _ENGLISH:
        return context
    counts = count_frequencies(context)
    read = counts.languages.of_question(question)
    if not counts.searches_by_words(read):
        return context
    vectors = words_of(context, read.code)
    return replace(context, embedder=WordEmbedder(read, counts), vectors=vectors, _embedded={})


def words_of(context: Context, code: str) -> WordVectors:
    """Return word vectors of the context contents, read in one language."""
    return context.read_once(f"words in {code}", lambda: WordVectors(context, code))


class WordEmbedder:
    """A text embedder by words: each word's share of total term weight."""

    max_tokens: int | None = None
    lexical = True
    dimension = DIMENSION
    agent = Agent("method", "embedded-words", __version__)

    def __init__(self, read: Lexicon, counts: CountedWords) -> None:
        self._lexicon = read
        self._counts = counts

    @property
    def language(self) -> str:
        """The language code used for reading texts."""
        return self._lexicon.code

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        """Return one row per text, without model calls."""
        import numpy as np

        rows = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            weights = {
                term: max(0.05, self._counts.idf(term)) for term in self._collect_terms(text)
            }
            total = sum(weights.values()) or 1.0
            for term, weight in weights.items():
                row[_hash_term(term)] += weight / total
        return rows

    def _collect_terms(self, text: str) -> list[str]:
        text_terms = list(dict.fromkeys(self._lexicon.extract_content_stems(text)))
        if not self._lexicon.has_compounds:
            return text_terms
        part_terms = [
            t for t in parts_among(text_terms, _Vocabulary(self._counts)) if t not in text_terms
        ]
        return list(dict.fromkeys([*text_terms, *part_terms]))


class _Vocabulary(Collection[str]):
    """The vocabulary of a text corpus."""

    def __init__(self, counts: CountedWords) -> None:
        self._counts = counts

    def __contains__(self, term: object) -> bool:
        return self._counts.has_term(str(term))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


ItemWords = Callable[[], Iterable[tuple[str, Sequence[str]]]]
"""(IRI, words) of each text, read when they are needed."""


class WordVectors(Mapping[str, VectorIndex]):
    """State vectors with word search by kind; texts are read on first search."""

    def __init__(self, whole: Context, code: str) -> None:
        self._whole = whole
        self._lexicon = get_lexicon(code)
        self._sets: dict[str, LexicalIndex] = {}

    def __getitem__(self, kind: str) -> VectorIndex:
        if kind not in self._sets:
            self._sets[kind] = LexicalIndex(self._whole.vectors[kind], partial(self._items, kind))
        return self._sets[kind]

    def _items(self, kind: str) -> Iterator[tuple[str, list[str]]]:
        read, vocabulary = self._lexicon, _Vocabulary(count_frequencies(self._whole))
        texts: dict[str, list[str]] = {}
        for iri, text in self._embedded_texts(kind):
            if text not in texts:
                terms = read.terms(text)
                compound_terms = parts_among(terms, vocabulary) if read.has_compounds else []
                texts[text] = [*terms, *compound_terms]
            yield iri, texts[text]

    def _embedded_texts(self, kind: str) -> Iterator[tuple[str, str]]:
        """Yield embedded texts by IRI, adding edge sentences for entities.

        An entity name alone shares words with hardly any question."""
        store, librarian = self._whole.store, self._whole.texts.librarian
        yield from items_of(kind, store, librarian, self._whole.evidence)
        if kind != "entity":
            return
        edge_texts = list(items_of("edge", store, librarian, self._whole.evidence))
        edges = read_reified_edges(StoredGraph(store), sorted({edge for edge, _ in edge_texts}))
        for iri, text in edge_texts:
            if (edge := edges.get(iri)) is not None:
                yield from ((end.value, text) for end in (edge.subject, edge.object))

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)


class LexicalIndex(IndexDecorator):
    """A vector index that is searched by the words of its texts."""

    def __init__(self, inner: VectorIndex, items: ItemWords) -> None:
        super().__init__(inner)
        self._items = items

    def search(
        self,
        queries: NDArray[float32],
        k: int,
        allowed: Collection[str] | NDArray[bool_] | None = None,
        beyond: int = 0,
    ) -> list[list[Hit]]:
        """For each query at most ``k`` (IRI, score), best first, and at most ``beyond`` more: of
        all only what shares a word with it, of those ``allowed`` also what shares none. Scores are
        0 to 1."""
        import numpy as np

        queries = np.atleast_2d(np.asarray(queries, dtype=np.float32))
        if k < 1 or not len(self):
            return [[] for _ in queries]
        places = None if allowed is None else self.keys.places(allowed)
        limit = k + beyond
        return [self._best(self._postings.scores(query), limit, places) for query in queries]

    @cached_property
    def _postings(self) -> _Postings:
        return _Postings(self._items(), {iri: place for place, iri in enumerate(self.keys)})

    def _best(self, scores: NDArray[float64], k: int, places: NDArray[int64] | None) -> list[Hit]:
        import numpy as np

        among = np.flatnonzero(scores > 0) if places is None else places
        order = among[np.lexsort((among, -scores[among]))][:k]
        return [(self.keys[int(at)], round(float(scores[at]), _DECIMALS)) for at in order]


class _Postings:
    """Text postings by word, weighted by BM25 saturation."""

    def __init__(
        self, items: Iterable[tuple[str, Sequence[str]]], places: Mapping[str, int]
    ) -> None:
        import numpy as np

        self._size = len(places)
        self._owners: list[int] = []
        counted: list[Counter[int]] = []
        for iri, terms in items:
            if iri in places and terms:
                self._owners.append(places[iri])
                counted.append(Counter(map(_hash_term, terms)))
        lengths = [sum(counts.values()) for counts in counted]
        mean = sum(lengths) / max(1, len(lengths)) or 1.0
        rows: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
        for row, (counts, length) in enumerate(zip(counted, lengths, strict=True)):
            saturation = K1 * (1 - B + B * length / mean)
            for place, count in counts.items():
                rows[place].append((row, count / (count + saturation)))
        self._rows = {
            place: (
                np.array([row for row, _ in postings]),
                np.array([worth for _, worth in postings]),
            )
            for place, postings in rows.items()
        }

    def scores(self, query: NDArray[float32]) -> NDArray[float64]:
        """Return the best text score for each key."""
        import numpy as np

        texts = np.zeros(len(self._owners))
        for place in np.flatnonzero(query).tolist():
            rows, worth = self._rows.get(place, _NONE)
            texts[rows] += float(query[place]) * worth
        best = np.zeros(self._size)
        np.maximum.at(best, self._owners, np.round(texts, _DECIMALS))
        return best


_NONE: Any = ([], 0.0)


def _hash_term(term: str) -> int:
    return crc32(term.encode()) % DIMENSION
