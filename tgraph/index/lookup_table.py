"""What questions look up by the hundred, of one generation of knowledge, in tables of SQLite:
evidence, the graph itself (triples by their ends, names, types, weights), the network of graph
ranking, the words at entities with many edges, how many relationships entities have, how long
chunks are, and how pages read.

They lie beside the vectors and are derived like them. In the store a row of evidence is a dozen
look-ups of 10 µs each; here all rows of an edge or an entity are one. Where the file is missing,
damaged or of another generation, the statements are read instead.

A run that knows which keys it changed leaves the tables as they are and puts the rows of these keys
into a second file of the same tables, together with the keys: what the first file has of them
counts no more. When the second is an eighth of the first, all tables are made anew.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.index.data_files import DataFile, DataSet, Head, KeptFiles, write_data
from tgraph.index.evidence import EvidenceRow
from tgraph.index.graph_source import HUB, EdgeAttributes, Edges
from tgraph.index.knowledge import is_statement
from tgraph.index.sqlite_files import Values, copy_to, open_database, rows_of
from tgraph.model import Object
from tgraph.store.base import Store, select, text_of

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


def tokens_of(store: Store, chunks: Sequence[str]) -> dict[str, int]:
    """The lengths of the chunks in tokens, as counted when they were made."""
    nodes = [NamedNode(chunk) for chunk in chunks]
    rows = select(store, "retrieve/chunk-tokens", {"chunks": nodes})
    return {text_of(row["chunk"]): int(text_of(row["tokens"])) for row in rows}


FILES = DataSet("lookups", format=5)
"""The format is also of how pages read: another one where ``tgraph.ingest.segments`` finds other
segments."""

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
_ROWS = """
SELECT about, iri, chunks.text, start, length, quotes.text, strength, description FROM evidence
JOIN text AS chunks ON chunks.number = chunk LEFT JOIN text AS quotes ON quotes.number = quote
"""
_ABOUT = f"{_ROWS} WHERE about = ? ORDER BY iri, place"
_TELLING = tuple(
    f"{_ROWS} WHERE about = ? AND description {described} '' ORDER BY iri, place LIMIT ? OFFSET ?"
    for described in ("<>", "=")
)
_IRI = f"{_ROWS} WHERE iri = ? AND stated ORDER BY about, place"
_INSIDE = """
SELECT about, start FROM evidence
WHERE chunk = (SELECT number FROM text WHERE text = ?) AND about >= ? AND about < ?
"""
_FIRST = 64
"""Rows of an entity that are read at first."""
_DOCUMENT = "SELECT iri, title, path FROM document WHERE iri = ?"
_DEGREE = "SELECT iri, degree FROM entity WHERE iri = ?"
_TOKENS = "SELECT iri, tokens FROM chunk WHERE iri = ?"
_ABOUT_DOCUMENT = "SELECT media_type, note FROM document WHERE iri = ?"
_HASH = "SELECT hash FROM page WHERE iri = ?"
_READING = "SELECT reading FROM page WHERE iri = ?"
_TERMS = """
SELECT iri, subjects.text, predicates.text, objects.text FROM edge
JOIN text AS subjects ON subjects.number = subject
JOIN text AS predicates ON predicates.number = predicate
JOIN text AS objects ON objects.number = object
"""
_TRIPLE = f"{_TERMS} WHERE iri = ? AND reified"
_IS = "= (SELECT number FROM text WHERE text = ?) AND stated ORDER BY iri LIMIT ?"
_AROUND = (f"{_TERMS} WHERE subject {_IS}", f"{_TERMS} WHERE object {_IS}")
_WEIGHT = "SELECT iri, weight, description FROM edge WHERE iri = ? AND weight IS NOT NULL"
_SAID = "SELECT iri, text FROM said WHERE iri = ? AND kind = ? ORDER BY text"
_NAMED = "SELECT iri, text FROM said WHERE text = ? AND entity ORDER BY iri"
_MENTIONS = """
SELECT about, text FROM evidence JOIN text ON number = chunk
WHERE NOT (about >= ? AND about < ?) AND NOT (about >= ? AND about < ?) GROUP BY about, chunk
"""
_MENTIONED = """
SELECT about, text FROM (SELECT about, chunk FROM evidence WHERE about = ? GROUP BY chunk)
JOIN text ON number = chunk
"""
_SPOKEN_OF = """
SELECT about FROM evidence WHERE chunk = (SELECT number FROM text WHERE text = ?)
AND stated AND NOT (about >= ? AND about < ?) AND NOT (about >= ? AND about < ?) GROUP BY about
"""
_FROM = f"{_TERMS} WHERE reified AND subject {_IS}"
_NODES = "SELECT iri, chunk, ties FROM node"
_ALIKE = "SELECT word, ties FROM alike"
_HUB = "SELECT iri, edges, places, sizes, terms FROM hub WHERE iri = ?"
_DEGREES = "SELECT iri, degree FROM entity WHERE degree > ? ORDER BY iri"
_AT_END = "SELECT iri FROM edge WHERE {} = (SELECT number FROM text WHERE text = ?) AND stated"
_ENDS = tuple(f"{_AT_END.format(end)} ORDER BY iri LIMIT ?" for end in ("subject", "object"))
_STATED = f"{_TERMS} WHERE iri = ? AND stated"
_LINKS = "SELECT iri, text FROM link WHERE iri = ? AND kind = ?"
_LINKED = "SELECT iri, text FROM link WHERE kind = ? AND text = ?"
_ALL_LINKS = "SELECT iri, text FROM link WHERE kind = ?"
_EVIDENCE, EDGE_PREFIX = f"{v.URN}evidence:", f"{v.URN}edge:"
_EDGES = EDGE_PREFIX, f"{v.URN}edge;"
_OTHERS = tuple(f"{v.URN}{kind}{end}" for kind in ("edge", "claim") for end in (":", ";"))

_PUT = {
    "node": "INSERT OR REPLACE INTO node VALUES (?, ?, ?)",
    "alike": "INSERT OR REPLACE INTO alike VALUES (?, ?)",
    "link": "INSERT OR IGNORE INTO link VALUES (?, ?, ?)",
    "hub": "INSERT OR REPLACE INTO hub VALUES (?, ?, ?, ?, ?)",
}
LARGEST_ADDITION = 8
"""Of how many parts of the tables one may be in the newer ones."""


class LookupTable:
    """An ``EvidenceSource``, a ``GraphSource``, ``KeptPages``, and what else was counted.
    Thread-safe. ``newer`` has the rows of the keys that changed since."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        newer: sqlite3.Connection | None = None,
        kept: KeptFiles | None = None,
    ) -> None:
        self._connection = connection
        self._newer = newer
        self._kept = kept
        self._lock = threading.Lock()

    @property
    def newer(self) -> sqlite3.Connection | None:
        return self._newer

    def with_newer(self, newer: sqlite3.Connection) -> LookupTable | None:
        """The tables with other newer ones, which it owns; None where these are too large. Those
        that it is made of have to stay open as long."""
        size = "SELECT ifnull(max(number), 0) FROM text"
        (old,), (new,) = (c.execute(size).fetchone() for c in (self._connection, newer))
        if self._kept is None or new * LARGEST_ADDITION > old:
            newer.close()
            return None
        return LookupTable(self._connection, newer, self._kept)

    def close(self) -> None:
        self._connection.close()
        if self._newer is not None:
            self._newer.close()

    # --- as an ``EvidenceSource`` ---

    def of_edges(self, edges: Sequence[str]) -> list[EvidenceRow]:
        return list(map(_evidence_row, self._of("evidence", _ABOUT, zip(dict.fromkeys(edges)))))

    def of_entities(self, entities: Sequence[str]) -> list[EvidenceRow]:
        return self.of_edges(sorted(entities))

    def places(self, entities: Sequence[str]) -> dict[str, Iterator[EvidenceRow]]:
        return {entity: self._telling(entity) for entity in entities}

    def _telling(self, entity: str) -> Iterator[EvidenceRow]:
        for query in _TELLING:
            at, size = 0, _FIRST
            while rows := self._of("evidence", query, [(entity, size, at)]):
                yield from map(_evidence_row, rows)
                at, size = at + size, size * 2

    def by_iri(self, iris: Sequence[str]) -> list[EvidenceRow]:
        found = self._with("evidence", _IRI, zip(map(packed, sorted(set(iris)))))
        return [_evidence_row(row) for rows in found for row in sorted(rows, key=_about)]

    def documents(self, documents: Collection[str]) -> dict[str, tuple[str, str]]:
        rows = self._of("document", _DOCUMENT, zip(documents))
        return {iri: (title, path) for iri, title, path in rows}

    def stated_in(self, chunks: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
        found = self._with("evidence", _INSIDE, ((chunk, *_EDGES) for chunk in chunks))
        return {
            chunk: sorted((start, about) for about, start in rows)
            for chunk, rows in zip(chunks, found, strict=True)
            if rows
        }

    def mentions(self, entities: Collection[str] | None = None) -> dict[str, set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        if entities is None:
            rows = self._with("evidence", _MENTIONS, [_OTHERS])[0]
        else:
            rows = self._of("evidence", _MENTIONED, zip(entities))
        for about, chunk in rows:
            found[about].add(chunk)
        return found

    # --- as a ``GraphSource`` ---

    def triples(self, edges: Sequence[str]) -> Edges:
        return _statements(self._of("edge", _TRIPLE, zip(map(packed_edge, dict.fromkeys(edges)))))

    def around(self, entity: str) -> Edges:
        node = str(NamedNode(entity))
        most = HUB + len(self._changed["edge"])
        found: Edges = {}
        for query in _AROUND:
            for rows in self._with("edge", query, [(node, most)]):
                if self._newer is not None:
                    rows = sorted(rows, key=lambda row: unpacked_edge(row[0]))[:HUB]
                found |= _statements(rows)
        return found

    def attributes(self, edges: Sequence[str]) -> dict[str, EdgeAttributes]:
        rows = self._of("edge", _WEIGHT, zip(map(packed_edge, dict.fromkeys(edges))))
        return {unpacked_edge(iri): EdgeAttributes(*others) for iri, *others in rows}

    def labels(self, items: Sequence[str]) -> dict[str, str]:
        return {iri: texts[0] for iri, texts in self._said(items, "label").items()}

    def aliases(self, entities: Sequence[str]) -> dict[str, list[str]]:
        return self._said(entities, "alias")

    def types(self, items: Sequence[str]) -> dict[str, list[str]]:
        return self._said(items, "type")

    def named(self, names: Sequence[str]) -> dict[str, list[str]]:
        asked = list(dict.fromkeys(names))
        found = zip(asked, self._with("said", _NAMED, zip(asked)), strict=True)
        return {name: sorted({entity for entity, _ in rows}) for name, rows in found if rows}

    def _said(self, subjects: Sequence[str], kind: str) -> dict[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        asked = ((each, kind) for each in dict.fromkeys(subjects))
        for iri, text in self._of("said", _SAID, asked):
            found[iri].append(text)
        return found

    # --- the network of graph ranking ---

    def relations(self, subjects: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """What the subjects are tied to by edges that texts state: edge, subject, object."""
        for rows in self._with("edge", _FROM, ((str(NamedNode(e)), -1) for e in subjects)):
            for iri, subject, _, obj in rows:
                if obj.startswith("<"):
                    yield unpacked_edge(iri), subject[1:-1], obj[1:-1]

    def spoken_of(self, chunk: str) -> list[str]:
        """What the chunk speaks of that is neither an edge nor a claim, under the names there."""
        return [about for (about,) in self._with("evidence", _SPOKEN_OF, [(chunk, *_OTHERS)])[0]]

    def names(self, resource: str) -> list[str]:
        """All labels and aliases."""
        found = (self._said([resource], kind).get(resource, ()) for kind in ("label", "alias"))
        return [name for names in found for name in names]

    def nodes(self) -> list[tuple[str, bool, bytes]]:
        """All nodes, the entities first, each in the order of the IRIs, with their ties."""
        return sorted(self._with("node", _NODES, [()])[0], key=lambda row: (row[1], row[0]))

    def alike(self) -> list[tuple[str, bytes]]:
        """The ties between entities whose names share a word, for each word."""
        return self._with("alike", _ALIKE, [()])[0]

    def links(self, iris: Iterable[str], kind: str) -> list[tuple[str, str]]:
        """What the resources have of the kind, each with the IRI."""
        return self._of("link", _LINKS, ((iri, kind) for iri in iris))

    def linked(self, kind: str, texts: Iterable[str] | None = None) -> list[tuple[str, str]]:
        """The resources that have one of the texts of the kind, or any, each with the text."""
        asked: list[Values] = [(kind,)] if texts is None else [(kind, text) for text in texts]
        found = self._with("link", _ALL_LINKS if texts is None else _LINKED, asked)
        return [row for rows in found for row in rows]

    def put(
        self, table: str, rows: Iterable[tuple[object, ...]], keys: Collection[str] | None = None
    ) -> None:
        """Keep rows in one of the tables that nobody fills before vectors are made. Where there are
        newer tables they are put there, and are all that the ``keys`` have."""
        connection = self._connection if self._newer is None else self._newer
        made = list(rows)  # which may look things up here
        with self._lock, connection:
            for key in keys or ():
                connection.execute(f"DELETE FROM {table} WHERE {KEYS[table]} = ?", (key,))  # noqa: S608
                connection.execute("INSERT OR IGNORE INTO changed VALUES (?, ?)", (table, key))
            connection.executemany(_PUT[table], made)
        self.__dict__.pop("_changed", None)

    # --- hubs ---

    def statements(self, edges: Iterable[str]) -> Edges:
        """What those of the edges say that knowledge states."""
        return _statements(self._of("edge", _STATED, zip(map(packed_edge, edges))))

    def edges_at(self, entity: str) -> list[str]:
        """The edges that ``around`` gives, in the order of their IRIs."""
        asked = [(str(NamedNode(entity)), HUB + len(self._changed["edge"]))]
        found: set[str] = set()
        for query in _ENDS:
            for rows in self._with("edge", query, asked):
                found.update(sorted(unpacked_edge(iri) for (iri,) in rows)[:HUB])
        return sorted(found)

    def degrees(self, least: int) -> dict[str, int]:
        """The entities with more relationships and attributes than that, and how many."""
        return dict(self._with("entity", _DEGREES, [(least,)])[0])

    def hub(self, entity: str) -> tuple[bytes, bytes, bytes, bytes] | None:
        """What was kept of an entity's edges and of their words; None where nothing was."""
        rows = self._of("hub", _HUB, [(entity,)])
        return tuple(rows[0][1:]) if rows else None

    # --- as ``KeptPages`` ---

    def about_document(self, document: str) -> tuple[str, bool] | None:
        rows = self._of("document", _ABOUT_DOCUMENT, [(document,)])
        return (rows[0][0], bool(rows[0][1])) if rows else None

    def text_hash(self, page: str) -> str:
        rows = self._of("page", _HASH, [(page,)])
        return rows[0][0] if rows else ""

    def reading(self, page: str) -> bytes | None:
        rows = self._of("page", _READING, [(page,)])
        return rows[0][0] if rows else None

    # --- what was counted ---

    def degrees_of(self, entities: Sequence[str]) -> dict[str, int]:
        """As ``degree_of``, of each."""
        return dict.fromkeys(entities, 0) | dict(self._of("entity", _DEGREE, zip(entities)))

    def tokens(self, chunks: Iterable[str]) -> dict[str, int]:
        """As ``tokens_of``."""
        return dict(self._of("chunk", _TOKENS, zip(chunks)))

    # --- files ---

    def save(self, folder: Path, generation: int) -> None:
        """Keep it in the folder, atomically and durably, as of a generation of the knowledge.

        Raises ``StoreError`` where the disk fails.
        """
        files = self._kept.link(folder) if self._kept else {}
        if "tables" not in files:
            files["tables"] = write_data(folder, FILES.stem, partial(copy_to, self._connection))
        if self._newer is not None:
            newer = write_data(folder, f"{FILES.stem}-newer", partial(copy_to, self._newer))
            files["newer"] = newer
        FILES.write_head(folder, generation, files)

    # --- asking ---

    @cached_property
    def _changed(self) -> Mapping[str, Collection[str | bytes]]:
        """The keys whose rows are those of the newer tables, by table."""
        found: dict[str, set[str | bytes]] = {table: set() for table in KEYS}
        if self._newer is not None:
            for table, key in self._rows(self._newer, "SELECT kind, key FROM changed", [()])[0]:
                found[table].add(key)
        return found

    def _of(self, table: str, query: str, values: Iterable[Values]) -> list[Any]:
        """The rows of some keys, which come first in the values."""
        changed = self._changed[table]
        if not changed:
            return [row for rows in self._rows(self._connection, query, values) for row in rows]
        found = []
        for each in values:
            own = self._newer if each[0] in changed else self._connection
            found += self._rows(own, query, [each])[0]
        return found

    def _with(self, table: str, query: str, values: Iterable[Values]) -> list[list[Any]]:
        """For each of the values the rows that have it, whatever their keys, which are the first
        column."""
        changed, asked = self._changed[table], list(values)
        found = self._rows(self._connection, query, asked)
        if not changed or self._newer is None:
            return found
        newer = self._rows(self._newer, query, asked)
        return [
            [*(row for row in rows if row[0] not in changed), *more]
            for rows, more in zip(found, newer, strict=True)
        ]

    def _rows(
        self, connection: sqlite3.Connection | None, query: str, values: Iterable[Values]
    ) -> list[list[Any]]:
        assert connection is not None
        return rows_of(connection, self._lock, query, values)


def _about(row: Sequence[Any]) -> str:
    return str(row[0])


def _evidence_row(row: Sequence[Any]) -> EvidenceRow:
    about, iri, *others = row
    return EvidenceRow(about, _unpacked(iri), *others)


def _statements(rows: Iterable[Sequence[Any]]) -> Edges:
    return {unpacked_edge(iri): (_node(s), _node(p), _term(o)) for iri, s, p, o in rows}


def packed(iri: str, prefix: str = _EVIDENCE) -> str | bytes:
    """An evidence or an edge by its digest, in the order of the IRIs and in half of their room."""
    with suppress(ValueError):
        digest = bytes.fromhex(iri.removeprefix(prefix))
        return digest if _unpacked(digest, prefix) == iri else iri
    return iri


def _unpacked(iri: str | bytes, prefix: str = _EVIDENCE) -> str:
    return iri if isinstance(iri, str) else prefix + iri.hex()


packed_edge = partial(packed, prefix=EDGE_PREFIX)
unpacked_edge = partial(_unpacked, prefix=EDGE_PREFIX)


def _node(text: str) -> NamedNode:
    return NamedNode(text[1:-1])


def _term(text: str) -> Object:
    """A term by its N-Triples form."""
    if text.startswith("<"):
        return _node(text)
    quad: Quad = next(parse(f"<x:x> <x:x> {text} .", RdfFormat.N_TRIPLES, lenient=True))
    assert isinstance(quad.object, NamedNode | Literal)
    return quad.object


def load_table(folder: Path, generation: int) -> LookupTable | None:
    """The folder's tables; None where they are missing, damaged or of another generation."""

    def open_tables(files: Mapping[str, DataFile], head: Head) -> LookupTable:
        newer = open_database(folder, files["newer"]) if "newer" in files else None
        try:
            tables = open_database(folder, files["tables"])
        except StoreError:
            if newer is not None:
                newer.close()
            raise
        return LookupTable(tables, newer, KeptFiles(folder, {"tables": files["tables"]}))

    return FILES.load(folder, generation, open_tables)
