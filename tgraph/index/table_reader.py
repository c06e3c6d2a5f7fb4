"""The tables that questions look up, in SQLite, and their rows by key.

A table may stand in two databases: the older one of all keys, and a newer one of the keys that
changed since, whose rows in the older one count no more.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tgraph import vocabulary as v
from tgraph.index.sqlite_files import Values, rows_of

if TYPE_CHECKING:
    import sqlite3

SCHEMA = """
CREATE TABLE evidence (about TEXT, iri BLOB, place INTEGER, chunk INTEGER, start INTEGER,
                       length INTEGER, quote INTEGER, strength REAL, description TEXT,
                       stated INTEGER, PRIMARY KEY (about, iri, place)) WITHOUT ROWID;
CREATE TABLE text (number INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE entity (iri TEXT PRIMARY KEY, degree INTEGER) WITHOUT ROWID;
CREATE TABLE chunk (iri TEXT PRIMARY KEY, tokens INTEGER) WITHOUT ROWID;
CREATE TABLE document (iri TEXT PRIMARY KEY, title TEXT, path TEXT, media_type TEXT, note INTEGER)
    WITHOUT ROWID;
CREATE TABLE page (iri TEXT PRIMARY KEY, hash TEXT, reading BLOB) WITHOUT ROWID;
CREATE TABLE edge (iri BLOB PRIMARY KEY, subject INTEGER, predicate INTEGER, object INTEGER,
                   reified INTEGER, stated INTEGER, weight REAL, description TEXT) WITHOUT ROWID;
CREATE TABLE said (iri TEXT, kind TEXT, text TEXT, entity INTEGER, PRIMARY KEY (iri, kind, text))
    WITHOUT ROWID;
CREATE TABLE changed (kind TEXT, key, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE node (iri TEXT PRIMARY KEY, chunk INTEGER, ties BLOB) WITHOUT ROWID;
CREATE TABLE alike (word TEXT PRIMARY KEY, ties BLOB) WITHOUT ROWID;
CREATE TABLE hub (iri TEXT PRIMARY KEY, edges BLOB, places BLOB, sizes BLOB, terms BLOB)
    WITHOUT ROWID;
CREATE TABLE link (iri TEXT, kind TEXT, text TEXT, PRIMARY KEY (iri, kind, text)) WITHOUT ROWID;
"""
KEYS = {
    "evidence": "about",
    "edge": "iri",
    "entity": "iri",
    "said": "iri",
    "chunk": "iri",
    "document": "iri",
    "page": "iri",
    "node": "iri",
    "alike": "word",
    "hub": "iri",
    "link": "iri",
}
"""The tables and by what their rows are known."""
INDEXES = """
CREATE INDEX iri ON evidence (iri) WHERE stated;
CREATE INDEX inside ON evidence (chunk, start, about);
CREATE INDEX term ON text (text);
CREATE INDEX outgoing ON edge (subject, iri) WHERE stated;
CREATE INDEX incoming ON edge (object, iri) WHERE stated;
CREATE INDEX named ON said (text) WHERE entity;
CREATE INDEX linked ON link (kind, text);
"""
INSERT = {
    "evidence": "INSERT INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "edge": "INSERT OR IGNORE INTO edge VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "text": "INSERT INTO text VALUES (?, ?)",
    "entity": "INSERT INTO entity VALUES (?, ?)",
    "said": "INSERT INTO said VALUES (?, ?, ?, ?)"
    " ON CONFLICT (iri, kind, text) DO UPDATE SET entity = max(entity, excluded.entity)",
    "chunk": "INSERT INTO chunk VALUES (?, ?)",
    "document": "INSERT INTO document VALUES (?, ?, ?, ?, ?)",
    "page": "INSERT INTO page VALUES (?, ?, ?)",
    "node": "INSERT OR REPLACE INTO node VALUES (?, ?, ?)",
    "alike": "INSERT OR REPLACE INTO alike VALUES (?, ?)",
    "link": "INSERT OR IGNORE INTO link VALUES (?, ?, ?)",
    "hub": "INSERT OR REPLACE INTO hub VALUES (?, ?, ?, ?, ?)",
}
"""The statement that writes a row, by table."""

_EVIDENCE, EDGE_PREFIX = f"{v.URN}evidence:", f"{v.URN}edge:"


def pack_iri(iri: str, prefix: str = _EVIDENCE) -> str | bytes:
    """Pack an evidence or edge IRI into its digest: IRI order is preserved, and space is
    halved."""
    with suppress(ValueError):
        digest = bytes.fromhex(iri.removeprefix(prefix))
        return digest if unpack_iri(digest, prefix) == iri else iri
    return iri


def unpack_iri(iri: str | bytes, prefix: str = _EVIDENCE) -> str:
    """The IRI of a packed evidence or edge."""
    return iri if isinstance(iri, str) else prefix + iri.hex()


packed_edge = partial(pack_iri, prefix=EDGE_PREFIX)
unpacked_edge = partial(unpack_iri, prefix=EDGE_PREFIX)


def replace_keys(connection: sqlite3.Connection, table: str, keys: Collection[str | bytes]) -> None:
    """Remove the rows of the keys from a table of a newer database, and note the keys as changed:
    rows that are written next are the only rows of these keys."""
    connection.executemany(f"DELETE FROM {table} WHERE {KEYS[table]} = ?", zip(keys))  # noqa: S608
    connection.executemany(
        "INSERT OR IGNORE INTO changed VALUES (?, ?)", ((table, k) for k in keys)
    )


class TableReader:
    """The rows of the tables, from the newer database where a key has changed. Thread-safe."""

    def __init__(
        self, connection: sqlite3.Connection, newer: sqlite3.Connection | None = None
    ) -> None:
        self.connection = connection
        self.newer = newer
        self._lock = threading.Lock()

    @cached_property
    def changed_keys(self) -> Mapping[str, Collection[str | bytes]]:
        """The keys whose rows are those of the newer database, by table."""
        keys: dict[str, set[str | bytes]] = {table: set() for table in KEYS}
        if self.newer is not None:
            for table, key in self._rows(self.newer, "SELECT kind, key FROM changed", [()])[0]:
                keys[table].add(key)
        return keys

    def rows_by_key(self, table: str, query: str, values: Iterable[Values]) -> list[Any]:
        """The rows of a query for each of the values, which begin with a key of the table."""
        changed = self.changed_keys[table]
        if not changed:
            return [row for rows in self._rows(self.connection, query, values) for row in rows]
        rows = []
        for value in values:
            connection = self.newer if value[0] in changed else self.connection
            rows += self._rows(connection, query, [value])[0]
        return rows

    def matching_rows(self, table: str, query: str, values: Iterable[Values]) -> list[list[Any]]:
        """For each of the values the rows of a query, whose first column is the key of the
        table."""
        changed, sought = self.changed_keys[table], list(values)
        older = self._rows(self.connection, query, sought)
        if not changed or self.newer is None:
            return older
        newer = self._rows(self.newer, query, sought)
        return [
            [*(row for row in rows if row[0] not in changed), *newer_rows]
            for rows, newer_rows in zip(older, newer, strict=True)
        ]

    def write(
        self, table: str, rows: Iterable[tuple[object, ...]], keys: Collection[str] | None = None
    ) -> None:
        """Write rows into one of the tables that are filled after vectors are made. Where there is
        a newer database the rows go there, and are the only rows of the ``keys``."""
        connection = self.connection if self.newer is None else self.newer
        complete = list(rows)  # making them may read the tables
        with self._lock, connection:
            replace_keys(connection, table, keys or ())
            connection.executemany(INSERT[table], complete)
        self.__dict__.pop("changed_keys", None)

    def _rows(
        self, connection: sqlite3.Connection | None, query: str, values: Iterable[Values]
    ) -> list[list[Any]]:
        assert connection is not None
        return rows_of(connection, self._lock, query, values)
