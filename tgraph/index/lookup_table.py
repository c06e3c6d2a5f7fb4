"""What questions look up by the hundred, of one generation of knowledge, in tables of SQLite:
evidence, how many relationships entities have, and how long chunks are.

They lie beside the vectors and are derived like them. In the store a row of evidence is a dozen
look-ups of 10 µs each; here all rows of an edge or an entity are one. Where the file is missing,
damaged or of another generation, the statements are read instead.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from urllib.parse import quote

from tgraph import vocabulary as v
from tgraph.index.counts import all_tokens, degrees
from tgraph.index.evidence import (
    EvidenceRow,
    StoredEvidence,
    canonical_names,
    row_of,
    text_of,
)
from tgraph.index.sources import document_of_chunk, standing_documents
from tgraph.store.base import Store, select
from tgraph.store.files import disk_errors, write_atomic

if TYPE_CHECKING:
    import sqlite3

FORMAT = 1
FILE = "lookups.sqlite"
HEAD = "lookups.json"

_SCHEMA = """
CREATE TABLE evidence (about TEXT, iri TEXT, chunk TEXT, start INTEGER, length INTEGER, quote TEXT,
                       strength REAL, description TEXT, stated INTEGER);
CREATE TABLE entity (iri TEXT PRIMARY KEY, degree INTEGER) WITHOUT ROWID;
CREATE TABLE chunk (iri TEXT PRIMARY KEY, tokens INTEGER) WITHOUT ROWID;
CREATE TABLE document (iri TEXT PRIMARY KEY, title TEXT, path TEXT) WITHOUT ROWID;
"""
_INDEXES = """
CREATE INDEX about ON evidence (about);
CREATE INDEX iri ON evidence (iri) WHERE stated;
"""
T = TypeVar("T", bound="LookupTable | None")

_ABOUT = """
SELECT about, iri, chunk, start, length, quote, strength, description FROM evidence
WHERE about = ? ORDER BY rowid
"""
_IRI = """
SELECT about, iri, chunk, start, length, quote, strength, description FROM evidence
WHERE iri = ? AND stated ORDER BY about, rowid
"""
_DOCUMENT = "SELECT title, path FROM document WHERE iri = ?"
_DEGREE = "SELECT degree FROM entity WHERE iri = ?"
_TOKENS = "SELECT tokens FROM chunk WHERE iri = ?"
_MENTIONS = "SELECT about, chunk FROM evidence WHERE about >= ? AND about < ? GROUP BY about, chunk"
_ENTITIES = f"{v.URN}entity:", f"{v.URN}entity;"


class LookupTable:
    """An ``EvidenceSource``, and what else was counted. Thread-safe."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def close(self) -> None:
        self._connection.close()

    def of_edges(self, edges: Sequence[str]) -> list[EvidenceRow]:
        return self._rows(_ABOUT, edges)

    def of_entities(self, entities: Sequence[str]) -> list[EvidenceRow]:
        return self._rows(_ABOUT, sorted(set(entities)))

    def by_iri(self, iris: Sequence[str]) -> list[EvidenceRow]:
        return self._rows(_IRI, sorted(set(iris)))

    def documents(self, documents: Collection[str]) -> dict[str, tuple[str, str]]:
        return dict(self._found(_DOCUMENT, documents))

    def degree(self, entity: str) -> int:
        """As ``degree_of``."""
        return sum(row[0] for _, row in self._found(_DEGREE, [entity]))

    def tokens(self, chunks: Iterable[str]) -> dict[str, int]:
        """As ``tokens_of``."""
        return {chunk: row[0] for chunk, row in self._found(_TOKENS, chunks)}

    def _found(self, query: str, iris: Iterable[str]) -> list[tuple[str, Any]]:
        with self._lock:
            find = self._connection.execute
            rows = [(iri, find(query, (iri,)).fetchone()) for iri in iris]
        return [(iri, row) for iri, row in rows if row is not None]

    def mentions(self) -> dict[str, set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        with self._lock:
            rows = self._connection.execute(_MENTIONS, _ENTITIES).fetchall()
        for about, chunk in rows:
            found[about].add(chunk)
        return found

    def save(self, folder: Path, generation: int) -> None:
        """Keep it in the folder, atomically and durably, as of a generation of the knowledge.

        Raises ``StoreError`` where the disk fails.
        """
        data = self._connection.serialize()
        head = {"format": FORMAT, "generation": generation, "crc32": zlib.crc32(data)}
        with disk_errors():
            write_atomic(folder / FILE, data)
            write_atomic(folder / HEAD, json.dumps(head).encode())

    def _rows(self, query: str, keys: Iterable[str]) -> list[EvidenceRow]:
        with self._lock:
            find = self._connection.execute
            return [EvidenceRow(*row) for key in dict.fromkeys(keys) for row in find(query, (key,))]


def tabulate(store: Store) -> LookupTable:
    """The tables of a store, in memory; of standing documents alone."""
    import sqlite3  # 5 ms

    standing = StoredEvidence(store).documents(standing_documents(store))
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.executescript(_SCHEMA)
    rows = sorted(_all_rows(store, standing), key=lambda row: (row[0], row[1]))
    connection.executemany("INSERT INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    lengths = [
        (chunk, tokens)
        for chunk, tokens in all_tokens(store).items()
        if document_of_chunk(chunk) in standing
    ]
    connection.executemany("INSERT INTO entity VALUES (?, ?)", degrees(store).items())
    connection.executemany("INSERT INTO chunk VALUES (?, ?)", lengths)
    documents = [(iri, title, path) for iri, (title, path) in standing.items()]
    connection.executemany("INSERT INTO document VALUES (?, ?, ?)", documents)
    connection.executescript(_INDEXES)
    return LookupTable(connection)


def _all_rows(store: Store, standing: Collection[str]) -> Iterator[tuple[object, ...]]:
    """Each row of evidence about what it was stated of, and about what that was merged into."""
    others = _merged(store)
    for found in select(store, "index/evidence"):
        row = row_of(found, "stated")
        if document_of_chunk(row.chunk) in standing:
            yield *row, True
            for about in others.get(row.about, ()):
                yield about, *row[1:], False


def _merged(store: Store) -> Mapping[str, Collection[str]]:
    """For each edge or entity those that it was merged into."""
    found = canonical_names(store)
    for quad in store.match(None, v.tg("original"), None):
        found.setdefault(text_of(quad.object), []).append(text_of(quad.subject))
    return {iri: sorted({*others} - {iri}) for iri, others in found.items()}


def load_table(folder: Path, generation: int) -> LookupTable | None:
    """The folder's table; None where it is missing, damaged or of another generation."""
    import sqlite3

    file = folder / FILE
    try:
        wanted = {"format": FORMAT, "generation": generation, "crc32": _crc32(file)}
        if json.loads((folder / HEAD).read_bytes()) != wanted:
            return None
        address = f"file:{quote(str(file.absolute()))}?mode=ro&immutable=1"
        return LookupTable(sqlite3.connect(address, uri=True, check_same_thread=False))
    except (OSError, ValueError, sqlite3.Error):
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


def _crc32(file: Path) -> int:
    found = 0
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            found = zlib.crc32(block, found)
    return found
