"""What questions look up by the hundred, of one generation of knowledge, in tables of SQLite:
evidence, how many relationships entities have, and how long chunks are.

They lie beside the vectors and are derived like them. In the store a row of evidence is a dozen
look-ups of 10 µs each; here all rows of an edge or an entity are one. Where the file is missing,
damaged or of another generation, the statements are read instead.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from urllib.parse import quote

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.index.evidence import EvidenceRow, StoredEvidence, canonical_names, row_of
from tgraph.index.knowledge import is_statement
from tgraph.index.sources import document_of_chunk, standing_documents
from tgraph.index.vectors.files import CHECKED_WHOLE, DataFile, check_file, write_data
from tgraph.store.base import Store, select, solutions, text_of
from tgraph.store.files import disk_errors, read_json, write_json

if TYPE_CHECKING:
    import sqlite3


MOST_COUNTED = 2_000
"""Relationships of an entity that are looked at, each way."""


def degree_of(store: Store, entity: str) -> int:
    """How many relationships and attributes an entity has, at most ``MOST_COUNTED`` each way."""
    node = NamedNode(entity)
    outgoing = store.match(node, None, None, v.KNOWLEDGE_GRAPH)
    incoming = store.match(None, None, node, v.KNOWLEDGE_GRAPH)
    ways = ((quad for quad in way if is_statement(quad.predicate)) for way in (outgoing, incoming))
    return sum(1 for way in ways for _ in islice(way, MOST_COUNTED))


def degrees(store: Store) -> dict[str, int]:
    """``degree_of`` every entity that has any."""
    outgoing: Counter[str] = Counter()
    incoming: Counter[str] = Counter()
    for row in select(store, "index/predicates", union=False):
        predicate = row["predicate"]
        if isinstance(predicate, NamedNode) and is_statement(predicate):
            for quad in store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
                outgoing[text_of(quad.subject)] += 1
                if isinstance(quad.object, NamedNode):
                    incoming[quad.object.value] += 1
    return {
        entity: min(outgoing[entity], MOST_COUNTED) + min(incoming[entity], MOST_COUNTED)
        for entity in outgoing.keys() | incoming.keys()
    }


def tokens_of(store: Store, chunks: Sequence[str]) -> dict[str, int]:
    """The lengths of the chunks in tokens, as counted when they were made."""
    nodes = [NamedNode(chunk) for chunk in chunks]
    rows = select(store, "retrieve/chunk-tokens", {"chunks": nodes})
    return {text_of(row["chunk"]): int(text_of(row["tokens"])) for row in rows}


FORMAT = 2
STEM = "lookups"
HEAD = "lookups.json"

_SCHEMA = """
CREATE TABLE evidence (about TEXT, iri BLOB, place INTEGER, chunk INTEGER, start INTEGER,
                       length INTEGER, quote INTEGER, strength REAL, description TEXT,
                       stated INTEGER, PRIMARY KEY (about, iri, place)) WITHOUT ROWID;
CREATE TABLE text (number INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE entity (iri TEXT PRIMARY KEY, degree INTEGER) WITHOUT ROWID;
CREATE TABLE chunk (iri TEXT PRIMARY KEY, tokens INTEGER) WITHOUT ROWID;
CREATE TABLE document (iri TEXT PRIMARY KEY, title TEXT, path TEXT) WITHOUT ROWID;
"""
_INDEX = "CREATE INDEX iri ON evidence (iri) WHERE stated"
T = TypeVar("T", bound="LookupTable | None")

_ROWS = """
SELECT about, iri, chunks.text, start, length, quotes.text, strength, description FROM evidence
JOIN text AS chunks ON chunks.number = chunk LEFT JOIN text AS quotes ON quotes.number = quote
"""
_ABOUT = f"{_ROWS} WHERE about = ? ORDER BY iri, place"
_IRI = f"{_ROWS} WHERE iri = ? AND stated ORDER BY about, place"
_DOCUMENT = "SELECT iri, title, path FROM document WHERE iri = ?"
_DEGREE = "SELECT iri, degree FROM entity WHERE iri = ?"
_TOKENS = "SELECT iri, tokens FROM chunk WHERE iri = ?"
_MENTIONS = """
SELECT about, text FROM evidence JOIN text ON number = chunk
WHERE NOT (about >= ? AND about < ?) AND NOT (about >= ? AND about < ?) GROUP BY about, chunk
"""
_EVIDENCE = f"{v.URN}evidence:"
_OTHERS = tuple(f"{v.URN}{kind}{end}" for kind in ("edge", "claim") for end in (":", ";"))


class LookupTable:
    """An ``EvidenceSource``, and what else was counted. Thread-safe."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def close(self) -> None:
        self._connection.close()

    # --- as an ``EvidenceSource`` ---

    def of_edges(self, edges: Sequence[str]) -> list[EvidenceRow]:
        return self._rows(_ABOUT, dict.fromkeys(edges))

    def of_entities(self, entities: Sequence[str]) -> list[EvidenceRow]:
        return self.of_edges(sorted(entities))

    def by_iri(self, iris: Sequence[str]) -> list[EvidenceRow]:
        return self._rows(_IRI, map(_packed, sorted(set(iris))))

    def documents(self, documents: Collection[str]) -> dict[str, tuple[str, str]]:
        rows = self._query(_DOCUMENT, zip(documents))
        return {iri: (title, path) for iri, title, path in rows}

    def mentions(self, entities: Collection[str] | None = None) -> dict[str, set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for about, chunk in self._query(_MENTIONS, [_OTHERS]):
            if entities is None or about in entities:
                found[about].add(chunk)
        return found

    # --- what was counted ---

    def degree(self, entity: str) -> int:
        """As ``degree_of``."""
        return sum(count for _, count in self._query(_DEGREE, [(entity,)]))

    def tokens(self, chunks: Iterable[str]) -> dict[str, int]:
        """As ``tokens_of``."""
        return dict(self._query(_TOKENS, zip(chunks)))

    # --- files ---

    def save(self, folder: Path, generation: int) -> None:
        """Keep it in the folder, atomically and durably, as of a generation of the knowledge.

        Raises ``StoreError`` where the disk fails.
        """
        file = write_data(folder, STEM, self._copy)
        head = {"format": FORMAT, "generation": generation, "file": asdict(file)}
        with disk_errors():
            write_json(folder / HEAD, head)

    def _copy(self, path: Path) -> None:
        import sqlite3

        path.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(path)) as other:
                other.execute("PRAGMA journal_mode = OFF")
                self._connection.backup(other)
        except sqlite3.Error as error:  # such as a full disk
            raise OSError(str(error)) from error

    def _rows(self, query: str, keys: Iterable[str | bytes]) -> list[EvidenceRow]:
        return [
            EvidenceRow(about, _unpacked(iri), *others)
            for about, iri, *others in self._query(query, zip(keys))
        ]

    def _query(self, query: str, values: Iterable[tuple[str | bytes, ...]]) -> list[Any]:
        """The rows for each of the values. ``StoreError`` where the file is damaged, which of a
        large one is not noticed when it is opened."""
        import sqlite3

        try:
            with self._lock:
                return [row for each in values for row in self._connection.execute(query, each)]
        except sqlite3.DatabaseError as error:
            raise StoreError(f"What lies ready is damaged: {error}.", "Index again.") from error


def _packed(iri: str) -> str | bytes:
    """An evidence by its digest, in the order of the IRIs and half of their room."""
    with suppress(ValueError):
        digest = bytes.fromhex(iri.removeprefix(_EVIDENCE))
        return digest if _unpacked(digest) == iri else iri
    return iri


def _unpacked(iri: str | bytes) -> str:
    return iri if isinstance(iri, str) else _EVIDENCE + iri.hex()


def tabulate(store: Store) -> LookupTable:
    """The tables of a store, in memory; of standing documents alone."""
    import sqlite3  # 5 ms

    standing = StoredEvidence(store).documents(standing_documents(store))
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.executescript(_SCHEMA)
    texts = _Numbering()
    rows = _all_rows(store, standing, texts)
    counted = select(store, "index/chunk-tokens")
    connection.executemany("INSERT INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.executemany("INSERT INTO text VALUES (?, ?)", texts.numbered())
    tokens = ((text_of(r["chunk"]), int(text_of(r["tokens"]))) for r in counted)
    lengths = [pair for pair in dict(tokens).items() if document_of_chunk(pair[0]) in standing]
    connection.executemany("INSERT INTO entity VALUES (?, ?)", degrees(store).items())
    connection.executemany("INSERT INTO chunk VALUES (?, ?)", lengths)
    documents = [(iri, title, path) for iri, (title, path) in standing.items()]
    connection.executemany("INSERT INTO document VALUES (?, ?, ?)", documents)
    connection.execute(_INDEX)
    connection.commit()
    return LookupTable(connection)


class _Numbering:
    """Numbers texts, so that one that many rows have is kept once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int | None:
        return None if text is None else self._numbers.setdefault(text, len(self._numbers))

    def numbered(self) -> Iterator[tuple[int, str]]:
        return ((number, text) for text, number in self._numbers.items())


def _all_rows(
    store: Store, standing: Collection[str], texts: _Numbering
) -> Iterator[tuple[object, ...]]:
    """Each row of evidence about what it was stated of, and about what that was merged into."""
    others = _merged(store)
    for place, found in enumerate(solutions(store, "index/evidence")):
        row = row_of(found, "stated")
        if document_of_chunk(row.chunk) in standing:
            chunk, quote = texts.number(row.chunk), texts.number(row.quote)
            where = _packed(row.iri), place, chunk, row.start, row.length, quote
            yield row.about, *where, row.strength, row.description, True
            for other in others.get(row.about, ()):
                yield other, *where, row.strength, row.description, False


def _merged(store: Store) -> Mapping[str, Collection[str]]:
    """For each edge or entity those that it was merged into."""
    found = canonical_names(store)
    for quad in store.match(None, v.tg("original"), None):
        found.setdefault(text_of(quad.object), []).append(text_of(quad.subject))
    return {iri: sorted({*others} - {iri}) for iri, others in found.items()}


def load_table(folder: Path, generation: int) -> LookupTable | None:
    """The folder's table; None where it is missing, damaged or of another generation."""
    import sqlite3

    try:
        head = read_json(folder / HEAD) or {}
        if (head["format"], head["generation"]) != (FORMAT, generation):
            return None
        file = DataFile(**head["file"])
        path = folder / file.name
        check_file(path, file, whole=file.size <= CHECKED_WHOLE)
        address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        return LookupTable(sqlite3.connect(address, uri=True, check_same_thread=False))
    except (OSError, KeyError, TypeError, ValueError, StoreError, sqlite3.Error):
        return None


class LazyTable(Generic[T]):
    """A table that is opened when it is first asked for, once, and closed at the end."""

    def __init__(self, open_: Callable[[], T]) -> None:
        self._open = open_
        self._lock = threading.Lock()
        self._found: list[T] = []

    def __call__(self) -> T:
        with self._lock:
            if not self._found:
                self._found.append(self._open())
            return self._found[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            for table in self._found:
                if table is not None:
                    table.close()
            self._found = []
