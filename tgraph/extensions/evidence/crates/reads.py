"""What a replay reads beside its retrieval, noted while it reads, and given again elsewhere.

A store notes the quads and rows that it is asked for, a librarian the texts, a vector set whose
vectors, the counted words of which terms. A replay is a function of these; where it finds the same
it comes to the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

from pyoxigraph import DefaultGraph, NamedNode, Quad, Variable

from tgraph.errors import StoreError
from tgraph.extensions.evidence.crates.plain import made, plain, term
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
from tgraph.retrieve.text.lexicon import CountedWords, Languages, frequencies
from tgraph.retrieve.text.word_vectors import WordEmbedder, words_of
from tgraph.store.base import Graph, Results, Solutions, Store, Subject, Term
from tgraph.vocabulary import SOURCE_GRAPH

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray

_READ_FROM = (DefaultGraph(), SOURCE_GRAPH)


# --- stores and texts ---


class NotingStore:
    """A store that notes which quads of knowledge and sources it gave, and which rows."""

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
        found = list(self._store.match(subject, predicate, obj, graph))
        self.quads.update(quad for quad in found if quad.graph_name in _READ_FROM)
        return iter(found)

    def lines(self, graph: NamedNode) -> list[bytes]:
        return self._store.lines(graph)

    def query(self, text: str, *, union: bool = True) -> Results:
        found = self._store.query(text, union=union)
        if not isinstance(found, Solutions):
            return found
        rows = RowsRead.of(found)
        self.rows[_key(text, union)] = rows
        return rows

    def extend(self, quads: Iterable[Quad]) -> None:
        raise StoreError("What is read for a package is not changed.")

    def remove(self, quads: Iterable[Quad]) -> None:
        raise StoreError("What is read for a package is not changed.")


class StoreFromReads(NotingStore):
    """A store whose queries have the rows that were noted; quads are those of the store given."""

    def __init__(self, store: Store, rows: Mapping[str, RowsRead]) -> None:
        super().__init__(store)
        self._noted = rows

    def query(self, text: str, *, union: bool = True) -> Results:
        """``StoreError`` for a query that was not asked."""
        rows = self._noted.get(_key(text, union))
        if rows is None:
            raise StoreError("The package does not hold what a query of this replay asks for.")
        return rows


def _key(text: str, union: bool) -> str:
    """What a query is known by: its words, in whatever order its parameters come."""
    words = " ".join(sorted(text.split()))
    return sha256(f"{union} {words}".encode()).hexdigest()


@dataclass(frozen=True)
class RowsRead:
    """The rows of a SELECT, which can be read again and again."""

    names: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]

    @classmethod
    def of(cls, found: Solutions) -> Self:
        names = tuple(variable.value for variable in found.variables)
        rows = [tuple(row[name] for name in names) for row in found]
        return cls(names, tuple(rows))

    @property
    def variables(self) -> list[Variable]:
        return [Variable(name) for name in self.names]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)


class NotingLibrarian(Librarian):
    """A librarian that notes which contents it gave."""

    def __init__(self, librarian: Librarian) -> None:
        super().__init__(librarian.folder)
        self.given: dict[str, bytes] = {}

    def get(self, key: str) -> bytes:
        content = self.given[key] = super().get(key)
        return content


class LibrarianInMemory(Librarian):
    """A librarian of contents that were read; what it has not is missing."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents

    def get(self, key: str) -> bytes:
        if key not in self._contents:
            raise StoreError(f"The package does not hold {key[:64]}.", "Was it left out of it?")
        return self._contents[key]

    def has(self, key: str) -> bool:
        return key in self._contents

    def keys(self) -> Iterator[str]:
        return iter(sorted(self._contents))


# --- vectors ---


class NotingKeys(Keys):
    """The keys of a vector set that note which of them were looked up."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys.block, keys.ends)
        self.asked: set[str] = set()

    def places(self, allowed: Collection[str] | NDArray[bool_]) -> NDArray[int64]:
        found = super().places(allowed)
        self.asked.update(self[place] for place in found.tolist())
        return found


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

    def noted(self) -> dict[str, Any]:
        """The vectors of the IRIs that were looked up, in JSON's types."""
        asked = sorted(self.keys.asked)
        windows = self.read_windows(self.keys.places(asked))
        return {
            "agent": plain(self.agent),
            "keys": asked,
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

    def noted(self) -> dict[str, Any]:
        """What was read, in JSON's types."""
        return {kind: index.noted() for kind, index in sorted(self.indexes.items())}


def vectors_from(noted: Mapping[str, Any]) -> dict[str, VectorIndex]:
    """The vector sets of which ``NotingVectors.noted`` told. ``ValueError`` where they are odd."""
    return {kind: _vectors_from(kind, each) for kind, each in noted.items()}


def _vectors_from(kind: str, noted: Mapping[str, Any]) -> VectorIndex:
    import numpy as np

    keys, counts, dimension = noted["keys"], noted["counts"], int(noted["dimension"])
    hashes = [bytes.fromhex(each) for each in noted["hashes"]]
    matrix = np.zeros((0, dimension), dtype=np.float32)
    if keys:
        matrix = decode_vectors(noted["vectors"], dimension).astype(np.float32)
    fits = len(keys) == len(counts) and sum(counts) == len(hashes) == len(matrix)
    if not fits or keys != sorted(set(keys)) or any(len(each) != 16 for each in hashes):
        raise ValueError("vectors that don't belong together")
    block = np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(-1, 16)
    windows = TextWindows(np.array(counts, dtype=np.int64), block, matrix)
    return exact_index(kind, made(Agent, noted["agent"]), Keys.of(keys), windows)


# --- words ---


class _Asked(Counter[str]):
    """Counts that note of which terms they were read."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        super().__init__(counts)
        self.terms: set[str] = set()

    def __getitem__(self, term: str) -> int:
        self.terms.add(term)
        return super().__getitem__(term)


class WordsRead(CountedWords):
    """The frequencies of terms as they were counted, which note of which terms they are read."""

    def __init__(
        self, counts: Mapping[str, int], size: int, codes: Sequence[str], embeds_english: bool
    ) -> None:
        super().__init__((), embeds_english)
        self.languages = Languages(tuple(codes))
        self._size = size
        self._counts: _Asked = _Asked(counts)

    @classmethod
    def of(cls, words: CountedWords) -> Self:
        return cls(words._counts, words._size, words.languages.codes, words.embeds_english)

    def noted(self) -> dict[str, Any]:
        """What was read of them, in JSON's types."""
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
    """What one retrieval found, and the calls that it made, by IRI."""

    question: str
    calls: tuple[str, ...]
    found: Retrieval


def _asked(question: Question) -> str:
    return json.dumps(plain(question), sort_keys=True)


class NotingRetriever:
    """A retriever that notes what it found. It reads ``known``, whose reads count for nothing."""

    def __init__(
        self, inner: Retriever, known: Context, uuid: str, noted: list[RetrievalRead]
    ) -> None:
        self.step, self.matches_entities = inner.step, inner.matches_entities
        self._inner = inner
        self._known = known
        self._uuid = uuid
        self._noted = noted

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        calls: list[str] = []

        def sink(call: Call) -> None:
            calls.append(call_iri(self._uuid, call))
            context.sink(call)

        known, embedder = self._known, context.embedder
        plainly = replace(
            context,
            store=known.store,
            texts=known.texts,
            vectors=words_of(known, embedder.language)
            if isinstance(embedder, WordEmbedder)
            else known.vectors,
            sink=sink,
            _memory=known._memory,
        )
        found = self._inner.retrieve(question, plainly)
        self._noted.append(RetrievalRead(_asked(question), tuple(calls), found))
        return found


class RetrieverFromReads:
    """A retriever that finds what was noted, and gives the calls that were made for it."""

    def __init__(
        self, inner: Retriever, noted: Sequence[RetrievalRead], calls: RecordedCalls, uuid: str
    ) -> None:
        self.step, self.matches_entities = inner.step, inner.matches_entities
        self._noted: dict[str, list[RetrievalRead]] = {}
        for each in noted:
            self._noted.setdefault(each.question, []).append(each)
        self._recorded = calls
        self._calls = {call_iri(uuid, call): call for call in calls.calls}

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """``StoreError`` for a question that nothing was retrieved for."""
        known = self._noted.get(_asked(question))
        if not known:
            raise StoreError("The package holds no retrieval for a question of this replay.")
        read = known.pop(0) if len(known) > 1 else known[0]
        for iri in read.calls:
            call = self._calls[iri]
            if call.kind == "embedding" and "error" not in call.reply:
                context.embed(call.request["input"])
            else:
                self._recorded.give(call, context.sink)
        return read.found


# --- all of it ---


@dataclass(frozen=True, slots=True)
class EmbedderRead:
    """What is asked of an embedder beside vectors: who it is, and how much of a text it reads."""

    agent: Agent
    lexical: bool
    max_tokens: int | None


@dataclass(slots=True)
class Reads:
    """What a replay read, to be given again: ``rows`` of queries, ``retrievals``, the ``words``
    and ``vectors`` in JSON's types, and what the context had to say of itself (``notes``)."""

    embedder: EmbedderRead
    retrievals: list[RetrievalRead] = field(default_factory=list)
    rows: Mapping[str, RowsRead] = field(default_factory=dict)
    words: Mapping[str, Any] = field(default_factory=dict)
    vectors: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """The same reads, the same bytes."""
        retrievals = sorted(map(plain, self.retrievals), key=lambda each: str(each["question"]))
        whole = {
            "embedder": plain(self.embedder),
            "notes": list(self.notes),
            "queries": {key: plain(rows) for key, rows in self.rows.items()},
            "retrievals": retrievals,
            "vectors": self.vectors,
            "words": self.words,
        }
        return (json.dumps(whole, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode()

    @classmethod
    def from_json(cls, data: bytes) -> Reads:
        """``ValueError``, ``KeyError`` or ``TypeError`` where it is odd."""
        said = json.loads(data)
        rows = {key: _rows(each) for key, each in said["queries"].items()}
        retrievals = [made(RetrievalRead, each) for each in said["retrievals"]]
        embedder, notes = made(EmbedderRead, said["embedder"]), tuple(map(str, said["notes"]))
        return cls(embedder, retrievals, rows, said["words"], said["vectors"], notes)


def _rows(said: Mapping[str, Any]) -> RowsRead:
    names = tuple(map(str, said["names"]))
    rows = tuple(tuple(None if t is None else term(t) for t in row) for row in said["rows"])
    if any(len(row) != len(names) for row in rows):
        raise ValueError("a row that has another number of columns")
    return RowsRead(names, rows)


def noting(context: Context, librarian: NotingLibrarian) -> Context:
    """The context, with store, texts, vectors and words that note what is read of them."""
    store = NotingStore(context.store)
    noted = replace(
        context,
        store=store,
        texts=Texts(store, librarian),
        vectors=NotingVectors(context.vectors),
        _memory={},
    )
    return with_words(noted, WordsRead.of(frequencies(context)))


def with_words(context: Context, words: CountedWords) -> Context:
    """The context, which knows these frequencies of terms."""
    context.remembered("frequencies", 1).get("frequencies", lambda: words)
    return context
