"""Replay inputs besides retrieval: noted during reading, returned elsewhere.

A store notes returned quads and rows, a librarian texts, a vector set looked-up vectors, word
counts looked-up terms. A replay is a function of these inputs; with identical inputs it gives
identical results."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

from pyoxigraph import (
    DefaultGraph,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    Variable,
    parse_query_results,
)

from tgraph.errors import StoreError
from tgraph.extensions.evidence.crates.plain import build_value, read_term, to_json_types
from tgraph.index.sources import Texts
from tgraph.index.vectors.base import Hit, IndexDecorator, TextWindows, VectorIndex
from tgraph.index.vectors.keys import Keys
from tgraph.index.vectors.stores import exact_index
from tgraph.librarian import Librarian
from tgraph.model import Agent, Retrieval
from tgraph.models.base import Call, decode_vectors, encode_vectors
from tgraph.models.recorded_calls import RecordedCalls
from tgraph.record.recorder import call_iri
from tgraph.retrieve.base import Context, Question, Retriever
from tgraph.retrieve.reasons import render_reasons
from tgraph.retrieve.text.lexicon import (
    CountedWords,
    Languages,
    count_frequencies,
    set_frequencies,
)
from tgraph.retrieve.text.word_vectors import WordEmbedder, words_of
from tgraph.store.base import Graph, Results, Solutions, Store, Subject, Term
from tgraph.vocabulary import SOURCE_GRAPH

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray

_READ_FROM = (DefaultGraph(), SOURCE_GRAPH)


# --- stores and texts ---


class NotingStore:
    """A store that notes returned rows, and quads from knowledge and source graphs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.quads: set[Quad] = set()
        self.rows: dict[str, RowsRead] = {}

    def match(
        self,
        subject: Subject | None = None,
        predicate: NamedNode | None = None,
        obj: Term | None = None,
        graph: Graph | None = None,
    ) -> Iterator[Quad]:
        """As ``Store.match``. All that is found counts as read, however soon the reader stops."""
        quads = list(self._store.match(subject, predicate, obj, graph))
        self.quads.update(quad for quad in quads if quad.graph_name in _READ_FROM)
        return iter(quads)

    def lines(self, graph: NamedNode) -> list[bytes]:
        return self._store.lines(graph)

    def query(self, text: str) -> Results:
        results = self._store.query(text)
        if isinstance(results, QueryBoolean):
            self.rows[next(_query_keys(text))] = RowsRead((), ((),) * bool(results))
        if not isinstance(results, Solutions):
            return results
        rows = RowsRead.from_solutions(results)
        self.rows[next(_query_keys(text))] = rows
        return rows

    def extend(self, quads: Iterable[Quad]) -> None:
        raise StoreError("What is read for a package is not changed.")

    def remove(self, quads: Iterable[Quad]) -> None:
        raise StoreError("What is read for a package is not changed.")


class StoreFromReads(NotingStore):
    """A store that answers queries from noted rows; quads come from the underlying store."""

    def __init__(self, store: Store, rows: Mapping[str, RowsRead]) -> None:
        super().__init__(store)
        self._noted = rows

    def query(self, text: str) -> Results:
        """Return noted rows. Raise ``StoreError`` if the query was never noted."""
        rows = next((self._noted[key] for key in _query_keys(text) if key in self._noted), None)
        if rows is None:
            raise StoreError("The package does not hold what a query of this replay asks for.")
        return rows if rows.names else _boolean_of(rows)


def _boolean_of(rows: RowsRead) -> QueryBoolean:
    """Return the answer of an ASK query, noted as one row without columns, or none."""
    document = json.dumps({"head": {}, "boolean": bool(rows.rows)})
    answer = parse_query_results(document, format=QueryResultsFormat.JSON)
    assert isinstance(answer, QueryBoolean)
    return answer


_VALUES = re.compile(r"(\bVALUES\s+(?:\([^()]*\)|\S+)\s*\{)([^{}]*)(?=\})")


def _query_keys(text: str) -> Iterator[str]:
    """Yield a query's key, independent of the order of parameters: a hash of the words, of which
    those of each list of values are sorted.

    Then follow the keys in earlier packages, for which all words were sorted, and from when queries
    also read all graphs merged."""
    canonical = _VALUES.sub(lambda m: f"{m[1]} {' '.join(sorted(m[2].split()))}", text)
    yield sha256(" ".join(canonical.split()).encode()).hexdigest()
    words = " ".join(sorted(text.split()))
    for union in (False, True):
        yield sha256(f"{union} {words}".encode()).hexdigest()


@dataclass(frozen=True)
class RowsRead:
    """SELECT rows that can be read repeatedly."""

    names: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]

    @classmethod
    def from_solutions(cls, found: Solutions) -> Self:
        names = tuple(variable.value for variable in found.variables)
        rows = [tuple(row[name] for name in names) for row in found]
        return cls(names, tuple(rows))

    @property
    def variables(self) -> list[Variable]:
        return [Variable(name) for name in self.names]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)


class NotingLibrarian(Librarian):
    """A librarian that notes returned contents."""

    def __init__(self, librarian: Librarian) -> None:
        super().__init__(librarian.folder)
        self.given: dict[str, bytes] = {}

    def read_content(self, key: str) -> bytes:
        content = self.given[key] = super().read_content(key)
        return content


class LibrarianInMemory(Librarian):
    """An in-memory librarian of noted contents; other contents are missing."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents

    def read_content(self, key: str) -> bytes:
        if key not in self._contents:
            raise StoreError(
                f"The package does not hold {key[:64]}.",
                "The text may have been left out of the package.",
            )
        return self._contents[key]

    def has_content(self, key: str) -> bool:
        return key in self._contents

    def keys(self) -> Iterator[str]:
        return iter(sorted(self._contents))


# --- vectors ---


class NotingKeys(Keys):
    """Vector set keys that note looked-up keys."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys.block, keys.ends)
        self.asked: set[str] = set()

    def places(self, allowed: Collection[str] | NDArray[bool_]) -> NDArray[int64]:
        positions = super().places(allowed)
        self.asked.update(self[place] for place in positions.tolist())
        return positions


class NotingIndex(IndexDecorator):
    """A vector index that notes whose vectors were read."""

    def __init__(self, inner: VectorIndex) -> None:
        super().__init__(inner)
        self._keys = NotingKeys(inner.keys)

    @property
    def keys(self) -> NotingKeys:
        """The IRIs, which note which of them are looked up."""
        return self._keys

    def search(
        self,
        queries: NDArray[float32],
        k: int,
        allowed: Collection[str] | NDArray[bool_] | None = None,
        beyond: int = 0,
    ) -> list[list[Hit]]:
        """As ``VectorIndex.search``; notes the IRIs that are allowed."""
        if allowed is not None:
            self.keys.places(allowed)
        return super().search(queries, k, allowed, beyond)

    def list_reads(self) -> dict[str, Any]:
        """The vectors of the IRIs that were looked up, in JSON's types."""
        asked_iris = sorted(self.keys.asked)
        windows = self.read_windows(self.keys.places(asked_iris))
        return {
            "agent": to_json_types(self.agent),
            "keys": asked_iris,
            "counts": windows.counts.tolist(),
            "hashes": [bytes(digest).hex() for digest in windows.hashes],
            "dimension": self.dimension,
            "vectors": encode_vectors(windows.vectors),
        }


@dataclass(eq=False)
class NotingVectors(Mapping[str, VectorIndex]):
    """Vector indexes by their kind, which note whose vectors were read."""

    whole: Mapping[str, VectorIndex]
    indexes: dict[str, NotingIndex] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> NotingIndex:
        if kind not in self.indexes:
            self.indexes[kind] = NotingIndex(self.whole[kind])
        return self.indexes[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.whole)

    def __len__(self) -> int:
        return len(self.whole)

    def list_reads(self) -> dict[str, Any]:
        """Return vectors read so far, as JSON types."""
        return {kind: index.list_reads() for kind, index in sorted(self.indexes.items())}


def vectors_from(noted: Mapping[str, Any]) -> dict[str, VectorIndex]:
    """Return the vector sets of ``NotingVectors.list_reads``; raise ``ValueError`` if malformed."""
    return {kind: _vectors_from(kind, noted_set) for kind, noted_set in noted.items()}


def _vectors_from(kind: str, noted: Mapping[str, Any]) -> VectorIndex:
    import numpy as np

    keys, counts, dimension = noted["keys"], noted["counts"], int(noted["dimension"])
    hashes = [bytes.fromhex(hash_text) for hash_text in noted["hashes"]]
    matrix = np.zeros((0, dimension), dtype=np.float32)
    if keys:
        matrix = decode_vectors(noted["vectors"], dimension).astype(np.float32)
    fits = len(keys) == len(counts) and sum(counts) == len(hashes) == len(matrix)
    if not fits or keys != sorted(set(keys)) or any(len(hash_text) != 16 for hash_text in hashes):
        raise ValueError("vectors that don't belong together")
    block = np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(-1, 16)
    windows = TextWindows(np.array(counts, dtype=np.int64), block, matrix)
    return exact_index(kind, build_value(Agent, noted["agent"]), Keys.from_iris(keys), windows)


# --- words ---


class _LookupCounts(Counter[str]):
    """Counts that note looked-up terms."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        super().__init__(counts)
        self.terms: set[str] = set()

    def __getitem__(self, term: str) -> int:
        self.terms.add(term)
        return super().__getitem__(term)


class WordsRead(CountedWords):
    """Term frequencies that note looked-up terms."""

    def __init__(
        self, counts: Mapping[str, int], size: int, codes: Sequence[str], embeds_english: bool
    ) -> None:
        super().__init__((), embeds_english)
        self.languages = Languages(tuple(codes))
        self._size = size
        self._counts: _LookupCounts = _LookupCounts(counts)

    @classmethod
    def from_words(cls, words: CountedWords) -> Self:
        return cls(words._counts, words._size, words.languages.codes, words.embeds_english)

    def list_reads(self) -> dict[str, Any]:
        """Return frequencies read so far, as JSON types."""
        terms = sorted(self._counts.terms)
        return {
            "size": self._size,
            "languages": list(self.languages.codes),
            "embeds_english": self.embeds_english,
            "counts": {term: count for term in terms if (count := self._counts[term])},
        }


# --- retrieval ---


@dataclass(frozen=True)
class RetrievalRead:
    """A noted retrieval: its question, result and call IRIs."""

    question: str
    calls: tuple[str, ...]
    found: Retrieval


def _question_key(question: Question) -> str:
    return json.dumps(to_json_types(question), sort_keys=True)


class NotingRetriever:
    """A retriever that notes its results.

    It reads from ``known``, where reads are not noted."""

    def __init__(
        self,
        inner: Retriever,
        known: Context,
        uuid: str,
        wording: int,
        noted: list[RetrievalRead],
    ) -> None:
        self.step, self.matches_entities = inner.step, inner.matches_entities
        self._inner = inner
        self._known = known
        self._uuid = uuid
        self._wording = wording
        self._noted = noted

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        calls: list[str] = []

        def sink(call: Call) -> None:
            calls.append(call_iri(self._uuid, call))
            context.sink(call)

        base_context, embedder = self._known, context.embedder
        plainly = replace(
            context,
            store=base_context.store,
            texts=base_context.texts,
            vectors=words_of(base_context, embedder.language)
            if isinstance(embedder, WordEmbedder)
            else base_context.vectors,
            sink=sink,
            _memory=base_context._memory,
        )
        retrieval = self._inner.retrieve(question, plainly)
        worded = replace(retrieval, candidates=render_reasons(retrieval.candidates, self._wording))
        self._noted.append(RetrievalRead(_question_key(question), tuple(calls), worded))
        return retrieval


class RetrieverFromReads:
    """A retriever that returns noted retrievals, and replays their calls."""

    def __init__(
        self, inner: Retriever, noted: Sequence[RetrievalRead], calls: RecordedCalls, uuid: str
    ) -> None:
        self.step, self.matches_entities = inner.step, inner.matches_entities
        self._noted: dict[str, list[RetrievalRead]] = {}
        for noted_retrieval in noted:
            self._noted.setdefault(noted_retrieval.question, []).append(noted_retrieval)
        self._recorded = calls
        self._calls = {call_iri(uuid, call): call for call in calls.calls}

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """Return the noted retrieval for a question. Raise ``StoreError`` if none was noted."""
        remaining = self._noted.get(_question_key(question))
        if not remaining:
            raise StoreError("The package holds no retrieval for a question of this replay.")
        read = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        for iri in read.calls:
            call = self._calls[iri]
            if call.kind == "embedding" and "error" not in call.reply:
                context.embed(call.request["input"])
            else:
                self._recorded.pass_call(call, context.sink)
        return read.found


# --- all of it ---


@dataclass(frozen=True, slots=True)
class EmbedderRead:
    """Embedder properties needed besides vectors: agent, lexical flag and token limit per text."""

    agent: Agent
    lexical: bool
    max_tokens: int | None


@dataclass(slots=True)
class Reads:
    """Noted replay inputs: query ``rows``, ``retrievals``, ``words`` and ``vectors`` as JSON
    types, and context ``notes``."""

    embedder: EmbedderRead
    retrievals: list[RetrievalRead] = field(default_factory=list)
    rows: Mapping[str, RowsRead] = field(default_factory=dict)
    words: Mapping[str, Any] = field(default_factory=dict)
    vectors: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return noted inputs as JSON; identical inputs yield identical bytes."""
        retrievals = sorted(
            map(to_json_types, self.retrievals), key=lambda each: str(each["question"])
        )
        document = {
            "embedder": to_json_types(self.embedder),
            "notes": list(self.notes),
            "queries": {key: to_json_types(rows) for key, rows in self.rows.items()},
            "retrievals": retrievals,
            "vectors": self.vectors,
            "words": self.words,
        }
        return (json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode()

    @classmethod
    def from_json(cls, data: bytes) -> Reads:
        """Return noted inputs parsed from JSON. Raise ``ValueError``, ``KeyError`` or
        ``TypeError`` if malformed."""
        document = json.loads(data)
        rows = {key: _parse_rows(item) for key, item in document["queries"].items()}
        retrievals = [build_value(RetrievalRead, item) for item in document["retrievals"]]
        embedder, notes = (
            build_value(EmbedderRead, document["embedder"]),
            tuple(map(str, document["notes"])),
        )
        return cls(embedder, retrievals, rows, document["words"], document["vectors"], notes)


def _parse_rows(said: Mapping[str, Any]) -> RowsRead:
    names = tuple(map(str, said["names"]))
    rows = tuple(tuple(None if t is None else read_term(t) for t in row) for row in said["rows"])
    if any(len(row) != len(names) for row in rows):
        raise ValueError("a row that has another number of columns")
    return RowsRead(names, rows)


def wrap_noting_context(context: Context, librarian: NotingLibrarian) -> Context:
    """Return a context whose store, texts, vectors and words note all reads."""
    store = NotingStore(context.store)
    noted = replace(
        context,
        store=store,
        texts=Texts(store, librarian),
        vectors=NotingVectors(context.vectors),
        _memory={},
    )
    return with_words(noted, WordsRead.from_words(count_frequencies(context)))


def with_words(context: Context, words: CountedWords) -> Context:
    """Return the context after setting its term frequencies."""
    set_frequencies(context, words)
    return context
