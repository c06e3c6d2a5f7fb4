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
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property, partial
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.extract.graphs.rdf_syntax import MEDIA_TYPES as GRAPH_TYPES
from tgraph.index.changed_keys import ChangedKeys
from tgraph.index.data_files import (
    CHECKED_WHOLE,
    DataFile,
    KeptFiles,
    check_file,
    write_data,
)
from tgraph.index.evidence import (
    DEFAULT_STRENGTH,
    EvidenceRow,
    StoredEvidence,
    absorbed_by,
    canonical_names,
    number_of,
    row_of,
)
from tgraph.index.graph_source import HUB, EdgeAttributes, Edges, statement_of
from tgraph.index.knowledge import is_statement
from tgraph.index.sources import (
    derived,
    document_of_chunk,
    is_note,
    parts_of_page,
    standing_documents,
    text_value,
    value,
)
from tgraph.index.sqlite_files import Values, copy_to, in_file, in_memory, opened, rows_of
from tgraph.librarian import Librarian
from tgraph.model import Object
from tgraph.store.base import Store, Term, select, text_of
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


def tokens_of(store: Store, chunks: Sequence[str]) -> dict[str, int]:
    """The lengths of the chunks in tokens, as counted when they were made."""
    nodes = [NamedNode(chunk) for chunk in chunks]
    rows = select(store, "retrieve/chunk-tokens", {"chunks": nodes})
    return {text_of(row["chunk"]): int(text_of(row["tokens"])) for row in rows}


FORMAT = 5
"""Also of how pages read: another one where ``tgraph.ingest.segments`` finds other segments."""

STEM = "lookups"
HEAD = "lookups.json"

_SCHEMA = """
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
_KEYS = {
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
_INDEX = """
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
SELECT ?1, text FROM (SELECT DISTINCT chunk FROM evidence WHERE about = ?1)
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
_EVIDENCE, _EDGE = f"{v.URN}evidence:", f"{v.URN}edge:"
_EDGES = _EDGE, f"{v.URN}edge;"
_OTHERS = tuple(f"{v.URN}{kind}{end}" for kind in ("edge", "claim") for end in (":", ";"))


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
        found = self._with("evidence", _IRI, zip(map(_packed, sorted(set(iris)))))
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
        return _statements(self._of("edge", _TRIPLE, zip(map(_packed_edge, dict.fromkeys(edges)))))

    def around(self, entity: str) -> Edges:
        node = str(NamedNode(entity))
        most = HUB + len(self._changed["edge"])
        found: Edges = {}
        for query in _AROUND:
            for rows in self._with("edge", query, [(node, most)]):
                if self._newer is not None:
                    rows = sorted(rows, key=lambda row: _unpacked_edge(row[0]))[:HUB]
                found |= _statements(rows)
        return found

    def attributes(self, edges: Sequence[str]) -> dict[str, EdgeAttributes]:
        rows = self._of("edge", _WEIGHT, zip(map(_packed_edge, dict.fromkeys(edges))))
        return {_unpacked_edge(iri): EdgeAttributes(*others) for iri, *others in rows}

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
                    yield _unpacked_edge(iri), subject[1:-1], obj[1:-1]

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
                connection.execute(f"DELETE FROM {table} WHERE {_KEYS[table]} = ?", (key,))  # noqa: S608
                connection.execute("INSERT OR IGNORE INTO changed VALUES (?, ?)", (table, key))
            connection.executemany(_PUT[table], made)
        self.__dict__.pop("_changed", None)

    # --- hubs ---

    def statements(self, edges: Iterable[str]) -> Edges:
        """What those of the edges say that knowledge states."""
        return _statements(self._of("edge", _STATED, zip(map(_packed_edge, edges))))

    def edges_at(self, entity: str) -> list[str]:
        """The edges that ``around`` gives, in the order of their IRIs."""
        asked = [(str(NamedNode(entity)), HUB + len(self._changed["edge"]))]
        found: set[str] = set()
        for query in _ENDS:
            for rows in self._with("edge", query, asked):
                found.update(sorted(_unpacked_edge(iri) for (iri,) in rows)[:HUB])
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

    def degree(self, entity: str) -> int:
        """As ``degree_of``."""
        return sum(count for _, count in self._of("entity", _DEGREE, [(entity,)]))

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
            files["tables"] = write_data(folder, STEM, partial(copy_to, self._connection))
        if self._newer is not None:
            files["newer"] = write_data(folder, f"{STEM}-newer", partial(copy_to, self._newer))
        written = {role: asdict(file) for role, file in files.items()}
        with disk_errors():
            head = {"format": FORMAT, "generation": generation, "files": written}
            write_json(folder / HEAD, head)
            for path in folder.glob(f"{STEM}*.*"):
                if path.name not in {HEAD, *(file.name for file in files.values())}:
                    path.unlink(missing_ok=True)

    # --- asking ---

    @cached_property
    def _changed(self) -> Mapping[str, Collection[str | bytes]]:
        """The keys whose rows are those of the newer tables, by table."""
        found: dict[str, set[str | bytes]] = {table: set() for table in _KEYS}
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
    return {_unpacked_edge(iri): (_node(s), _node(p), _term(o)) for iri, s, p, o in rows}


def _packed(iri: str, prefix: str = _EVIDENCE) -> str | bytes:
    """An evidence or an edge by its digest, in the order of the IRIs and in half of their room."""
    with suppress(ValueError):
        digest = bytes.fromhex(iri.removeprefix(prefix))
        return digest if _unpacked(digest, prefix) == iri else iri
    return iri


def _unpacked(iri: str | bytes, prefix: str = _EVIDENCE) -> str:
    return iri if isinstance(iri, str) else prefix + iri.hex()


_packed_edge = partial(_packed, prefix=_EDGE)
_unpacked_edge = partial(_unpacked, prefix=_EDGE)


def _node(text: str) -> NamedNode:
    return NamedNode(text[1:-1])


def _term(text: str) -> Object:
    """A term by its N-Triples form."""
    if text.startswith("<"):
        return _node(text)
    quad: Quad = next(parse(f"<x:x> <x:x> {text} .", RdfFormat.N_TRIPLES, lenient=True))
    assert isinstance(quad.object, NamedNode | Literal)
    return quad.object


def tabulate(
    store: Store,
    librarian: Librarian,
    before: LookupTable | None = None,
    scratch: Path | None = None,
) -> LookupTable:
    """The tables of a store; of standing documents alone. How pages read that did not change is
    taken from the table ``before``. They are in a file in the ``scratch`` folder, which whose it is
    deletes, else in memory: those of a million edges take gigabytes."""
    standing = StoredEvidence(store).documents(standing_documents(store))
    connection = in_memory() if scratch is None else in_file(scratch / f".{STEM}.sqlite")
    connection.executescript(_SCHEMA)
    texts = _Numbering({})
    spoken_of: set[str | bytes] = set()
    degree: Counter[str] = Counter()
    documents = list(_documents(store, standing))
    pages = store.match(None, v.tg("textHash"), None, v.SOURCE_GRAPH)
    tables: dict[str, Iterable[tuple[object, ...]]] = {
        "evidence": _all_rows(store, standing, texts, spoken_of),
        "edge": _edges(store, texts, spoken_of, degree),
        "text": texts.numbered(),
        "entity": degree.items(),
        "said": _sayings(store),
        "chunk": _lengths(store, standing),
        "document": documents,
        "page": _pages(pages, librarian, {iri: kind for iri, _, _, kind, _ in documents}, before),
    }
    for name, rows in tables.items():
        connection.executemany(_INSERT[name], rows)
    _weigh(connection, store)
    connection.executescript(_INDEX)
    connection.commit()
    return LookupTable(connection)


LARGEST_ADDITION = 8
"""Of how many parts of the tables one may be in the newer ones."""


def revise(
    before: LookupTable,
    store: Store,
    librarian: Librarian,
    changed: ChangedKeys,
    scratch: Path | None = None,
) -> LookupTable:
    """The tables of a store in which nothing but ``changed`` is other than it was ``before``; those
    of all of it, as of ``tabulate``, where that is too much."""
    connection = in_memory()
    if before.newer is not None:
        before.newer.backup(connection)
    else:
        connection.executescript(_SCHEMA + _INDEX)
    pages = {page for document in changed.documents for page in _pages_of(store, document)}
    resources, edges = set(changed.resources), changed.edges
    keys: dict[str, Collection[str | bytes]] = {
        "evidence": resources.union(edges, changed.claims),
        "edge": set(map(_packed_edge, edges)),
        "entity": resources,
        "said": resources,
        "chunk": changed.chunks,
        "document": changed.documents,
        "page": pages,
    }
    for table, own in keys.items():
        connection.executemany(f"DELETE FROM {table} WHERE {_KEYS[table]} = ?", zip(own))  # noqa: S608
        connection.executemany(f"INSERT OR IGNORE INTO changed VALUES ('{table}', ?)", zip(own))  # noqa: S608
    texts = _Numbering(dict(connection.execute("SELECT text, number FROM text")))
    standing = StoredEvidence(store).documents(changed.documents)
    documents = list(_documents(store, standing))
    spoken_of: set[str] = set()
    hashes = (
        quad
        for page in sorted(pages)
        for quad in store.match(NamedNode(page), v.tg("textHash"), None, v.SOURCE_GRAPH)
    )
    tables: dict[str, Iterable[tuple[object, ...]]] = {
        "evidence": list(_rows_about(store, sorted(map(str, keys["evidence"])), texts, spoken_of)),
        "edge": list(_edge_rows(store, edges, texts, spoken_of)),
        "text": texts.numbered(),
        "entity": ((each, n) for each in resources if (n := degree_of(store, each))),
        "said": (row for each in resources for row in _sayings_of(store, each)),
        "chunk": _standing_lengths(tokens_of(store, sorted(changed.chunks)), standing),
        "document": documents,
        "page": _pages(hashes, librarian, {iri: kind for iri, _, _, kind, _ in documents}, before),
    }
    for name, rows in tables.items():
        connection.executemany(_INSERT[name], rows)
    connection.commit()
    found = before.with_newer(connection)
    return found if found is not None else tabulate(store, librarian, before, scratch)


def _pages_of(store: Store, document: str) -> Iterator[str]:
    yield document
    yield from derived(store, document, "Page")


_UNASKED = frozenset(
    v.tg(kind).value
    for kind in ("Edge", "Claim", "Community", "CommunityReport", "Finding", "Summary")
)
"""Classes of what is looked up otherwise, and partly later than this is made."""

_NAMING = {v.RDFS_LABEL: "label", v.SKOS_ALT_LABEL: "alias"}

_INSERT = {
    "evidence": "INSERT INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "edge": "INSERT OR IGNORE INTO edge VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "text": "INSERT INTO text VALUES (?, ?)",
    "entity": "INSERT INTO entity VALUES (?, ?)",
    "said": "INSERT INTO said VALUES (?, ?, ?, ?)"
    " ON CONFLICT (iri, kind, text) DO UPDATE SET entity = max(entity, excluded.entity)",
    "chunk": "INSERT INTO chunk VALUES (?, ?)",
    "document": "INSERT INTO document VALUES (?, ?, ?, ?, ?)",
    "page": "INSERT INTO page VALUES (?, ?, ?)",
}


_DESCRIBE = """
UPDATE edge SET description = ifnull(min(description, ?1), ?1) WHERE iri = ?2 AND weight NOTNULL
"""

_PUT = {
    "node": "INSERT OR REPLACE INTO node VALUES (?, ?, ?)",
    "alike": "INSERT OR REPLACE INTO alike VALUES (?, ?)",
    "link": "INSERT OR IGNORE INTO link VALUES (?, ?, ?)",
    "hub": "INSERT OR REPLACE INTO hub VALUES (?, ?, ?, ?, ?)",
}


class _Numbering:
    """Numbers texts, so that one that many rows have is kept once; some are ``known``."""

    def __init__(self, known: dict[str, int]) -> None:
        self._numbers = known
        self._known = len(known)

    def number(self, text: str | None) -> int | None:
        return None if text is None else self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, triple: Triple) -> tuple[int, ...]:
        """Those of the terms, as N-Triples."""
        known = self._numbers
        return tuple(known.setdefault(text, len(known)) for text in map(str, triple))

    def numbered(self) -> Iterator[tuple[int, str]]:
        """The texts that were not known before."""
        new = islice(self._numbers.items(), self._known, None)
        yield from ((number, text) for text, number in new)


def _all_rows(
    store: Store, standing: Collection[str], texts: _Numbering, spoken_of: set[str | bytes]
) -> Iterator[tuple[object, ...]]:
    """Each row of evidence about what it was stated of, and about what that was merged into; it
    notes the edges that are ``spoken_of``."""
    others = _merged(store)
    rows = _EvidenceScan(store, standing, texts).rows()
    for place, (about, iri, *where, description) in enumerate(rows):
        if about.startswith(_EDGE):
            spoken_of.add(_packed_edge(about))
        for each in (about, *others.get(about, ())):
            yield each, iri, place, *where, description, each == about


_SLOTS = ("about", "chunk", "charOffset", "charLength", "quote", "strength", "is told")
_TOLD = len(_SLOTS) - 1


class _EvidenceScan:
    """Reads all evidence of standing documents. Each property is scanned once: a query that joins
    them takes seven times as much memory, and to look each up six times as long."""

    def __init__(self, store: Store, standing: Collection[str], texts: _Numbering) -> None:
        self._store = store
        self._standing = standing
        self._texts = texts
        self._found: dict[str | bytes, list[Any]] = {}

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows, without their places; one for each way to choose of several values."""
        self._take_subjects()
        self._take("chunk", v.prov("wasDerivedFrom"), self._chunk)
        self._found = {key: slots for key, slots in self._found.items() if slots[1] is not None}
        for name, read in (
            ("charOffset", number_of),
            ("charLength", number_of),
            ("quote", self._quote),
            ("strength", lambda term: float(text_of(term) or DEFAULT_STRENGTH)),
        ):
            self._take(name, v.tg(name), read)
        for key, term in self._scan(v.tg("description")):
            if slots := self._found.get(key):
                slots[_TOLD] = True
                yield from _rows_of(key, slots, text_of(term))
        for key, slots in self._found.items():
            if not slots[_TOLD]:
                yield from _rows_of(key, slots, "")

    def _scan(self, predicate: NamedNode) -> Iterator[tuple[str | bytes, Term]]:
        for quad in self._store.match(None, predicate, None, v.SOURCE_GRAPH):
            if isinstance(quad.subject, NamedNode):
                yield _packed(quad.subject.value), quad.object

    def _take_subjects(self) -> None:
        names: dict[str, str | bytes] = {}
        for role in ("edge", "entity", "claim"):
            for key, term in self._scan(v.tg(role)):
                slots = self._found.setdefault(key, [None] * len(_SLOTS))
                about = text_of(term)
                packed = _packed_edge(about) if role == "edge" else names.setdefault(about, about)
                _put(slots, 0, packed)

    def _take(self, name: str, predicate: NamedNode, read: Callable[[Term], object]) -> None:
        place = _SLOTS.index(name)
        for key, term in self._scan(predicate):
            slots = self._found.get(key)
            if slots is not None and (told := read(term)) is not None:
                _put(slots, place, told)

    def _chunk(self, term: Term) -> int | None:
        chunk = text_of(term)
        return self._texts.number(chunk) if document_of_chunk(chunk) in self._standing else None

    def _quote(self, term: Term) -> int | None:
        return self._texts.number(term.value if isinstance(term, Literal) else None)


def _put(slots: list[Any], place: int, value: object) -> None:
    known = slots[place]
    slots[place] = value if known is None else [*_values(known), value]


def _values(slot: object) -> list[Any]:
    return slot if isinstance(slot, list) else [slot]


def _rows_of(key: str | bytes, slots: Sequence[Any], description: str) -> Iterator[tuple[Any, ...]]:
    """What was read of a piece of evidence, about each that it is about; nothing of one that is in
    no standing document, or nowhere."""
    if None in slots[:4]:
        return
    for about, *where, strength in product(*map(_values, slots[:_TOLD])):
        told = DEFAULT_STRENGTH if strength is None else strength
        yield _unpacked_edge(about), key, *where, told, description


_AT_ONCE = 2_000


def _rows_about(
    store: Store, keys: Sequence[str], texts: _Numbering, spoken_of: set[str]
) -> Iterator[tuple[object, ...]]:
    """As ``_all_rows``, of some keys."""
    originals = {key: sorted(_originals(store, key)) for key in keys}
    wanted = sorted({*keys, *(other for others in originals.values() for other in others)})
    found: defaultdict[str, list[EvidenceRow]] = defaultdict(list)
    for start in range(0, len(wanted), _AT_ONCE):
        nodes = [NamedNode(each) for each in wanted[start : start + _AT_ONCE]]
        for solution in select(store, "index/evidence-of", {"stated": nodes}):
            row = row_of(solution, "stated")
            found[row.about].append(row)
    every = {document_of_chunk(row.chunk) for rows in found.values() for row in rows}
    standing = StoredEvidence(store).documents(every)
    for key in keys:
        place = 0
        for stated in (key, *originals[key]):
            for row in found[stated]:
                if document_of_chunk(row.chunk) not in standing:
                    continue
                spoken_of.add(row.about)
                chunk, quote = texts.number(row.chunk), texts.number(row.quote)
                where = _packed(row.iri), place, chunk, row.start, row.length, quote
                yield key, *where, row.strength, row.description, stated == key
                place += 1


def _originals(store: Store, key: str) -> set[str]:
    """The edges, or the names, that were merged into this one."""
    quads = store.match(NamedNode(key), v.tg("original"), None, None)
    return {text_of(quad.object) for quad in quads}.union(absorbed_by(store, key)) - {key}


def _edge_rows(
    store: Store,
    edges: Mapping[str, Triple | None],
    texts: _Numbering,
    spoken_of: Collection[str],
) -> Iterator[tuple[object, ...]]:
    """As ``_edges``, of some."""
    for edge, triple in edges.items():
        if triple is None:
            continue
        there = store.match(triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH)
        stated = is_statement(triple.predicate) and next(there, None) is not None
        reified = value(store, edge, v.RDF_REIFIES) is not None
        if stated or (reified and edge in spoken_of):
            weight, text = _attributes_of(store, edge)
            numbers = (texts.number(str(term)) for term in triple)
            yield _packed_edge(edge), *numbers, reified, stated, weight, text


def _attributes_of(store: Store, edge: str) -> tuple[float | None, str | None]:
    """The weight of an edge and what describes it, as far as it is one of knowledge."""
    said: defaultdict[NamedNode, list[str]] = defaultdict(list)
    for quad in store.match(NamedNode(edge), None, None, v.KNOWLEDGE_GRAPH):
        said[quad.predicate].append(text_of(quad.object))
    weights = said[v.tg("weight")] if v.TG + "Edge" in said[v.RDF_TYPE] else []
    if not weights:
        return None, None
    return float(weights[-1] or 1.0), min(said[v.tg("description")], default="")


def _sayings_of(store: Store, iri: str) -> Iterator[tuple[str, str, str, bool]]:
    """As ``_sayings``, of one."""
    said = list(store.match(NamedNode(iri), None, None, v.KNOWLEDGE_GRAPH))
    kinds = {text_of(quad.object) for quad in said if quad.predicate == v.RDF_TYPE}
    if kinds & _UNASKED:
        return
    yield from ((iri, "type", kind, False) for kind in kinds)
    found: dict[tuple[str, str], bool] = {}
    for quad in said:
        kind = _NAMING.get(quad.predicate)
        if kind and isinstance(quad.object, Literal):
            key = kind, quad.object.value
            plain = quad.object == Literal(quad.object.value) and v.TG + "Entity" in kinds
            found[key] = plain or found.get(key, False)
    yield from ((iri, *key, askable) for key, askable in found.items())


def _standing_lengths(
    tokens: Mapping[str, int], standing: Collection[str]
) -> Iterator[tuple[str, int]]:
    return ((c, count) for c, count in tokens.items() if document_of_chunk(c) in standing)


def _edges(
    store: Store, texts: _Numbering, spoken_of: Collection[str | bytes], degree: Counter[str]
) -> Iterator[tuple[object, ...]]:
    """The triples of edges that standing documents speak of, and all statements of knowledge,
    which are counted; without what ``_weigh`` adds."""
    stated: dict[str | bytes, tuple[int, ...]] = {}
    incoming: Counter[str] = Counter()
    for predicate in _predicates(store):
        for quad in store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
            degree[text_of(quad.subject)] += 1
            if isinstance(quad.object, NamedNode):
                incoming[quad.object.value] += 1
            if isinstance(quad.subject, NamedNode):
                edge = _packed_edge(v.edge_iri(*statement_of(quad.triple)))
                stated[edge] = texts.numbers(quad.triple)
    for entity in degree.keys() | incoming.keys():
        outgoing = min(degree[entity], MOST_COUNTED)
        degree[entity] = outgoing + min(incoming[entity], MOST_COUNTED)
    for quad in store.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
        edge = _packed_edge(text_of(quad.subject))
        if isinstance(quad.object, Triple) and (edge in stated or edge in spoken_of):
            numbers = texts.numbers(quad.object)
            yield edge, *numbers, True, stated.pop(edge, None) is not None, None, None
    yield from ((edge, *numbers, False, True, None, None) for edge, numbers in stated.items())


def _predicates(store: Store) -> Iterator[NamedNode]:
    """Those of statements of the corpus."""
    for found in select(store, "index/predicates", union=False):
        predicate = found["predicate"]
        if isinstance(predicate, NamedNode) and is_statement(predicate):
            yield predicate


def _weigh(connection: sqlite3.Connection, store: Store) -> None:
    """Put the weights of edges, and what describes them, into their rows."""
    kinds = store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH)
    edges = {_packed_edge(text_of(quad.subject)) for quad in kinds}

    def told(predicate: str) -> Iterator[tuple[str, str | bytes]]:
        for quad in store.match(None, v.tg(predicate), None, v.KNOWLEDGE_GRAPH):
            if (edge := _packed_edge(text_of(quad.subject))) in edges:
                yield text_of(quad.object), edge

    weights = ((float(text or 1.0), edge) for text, edge in told("weight"))
    connection.executemany("UPDATE edge SET weight = ? WHERE iri = ?", weights)
    connection.executemany(_DESCRIBE, told("description"))
    connection.execute("UPDATE edge SET description = ifnull(description, '') WHERE weight NOTNULL")


def _sayings(store: Store) -> Iterator[tuple[str, str, str, bool]]:
    """Names and types of entities, relations and types, and whether they are entities with a name
    that can be asked for, which is one without a language; a name may come with and without."""
    kinds = partial(store.match, None, v.RDF_TYPE, graph=v.KNOWLEDGE_GRAPH)
    others = {
        _packed_edge(text_of(q.subject)) for q in kinds(None) if text_of(q.object) in _UNASKED
    }
    entities = {text_of(quad.subject) for quad in kinds(v.tg("Entity"))}
    for quad in kinds(None):
        if _packed_edge(iri := text_of(quad.subject)) not in others:
            yield iri, "type", text_of(quad.object), False
    for predicate, kind in _NAMING.items():
        for quad in store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
            name, iri = quad.object, text_of(quad.subject)
            if isinstance(name, Literal) and iri and _packed_edge(iri) not in others:
                plain = name == Literal(name.value) and iri in entities
                yield iri, kind, name.value, plain


def _lengths(store: Store, standing: Collection[str]) -> Iterator[tuple[str, int]]:
    """The chunks of standing documents with their lengths in tokens."""
    rows = select(store, "index/chunk-tokens")
    tokens = {text_of(row["chunk"]): int(text_of(row["tokens"])) for row in rows}
    return _standing_lengths(tokens, standing)


def _documents(
    store: Store, standing: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, str, str, str, bool]]:
    for iri, (title, path) in standing.items():
        yield iri, title, path, text_value(store, iri, v.tg("mimeType")), is_note(store, iri)


def _pages(
    hashes: Iterable[Quad],
    librarian: Librarian,
    media_types: Mapping[str, str],
    known: LookupTable | None,
) -> Iterator[tuple[str, str, bytes | None]]:
    """The pages of standing documents with the hash of their text and how it reads; not how graphs
    do, of which no page is read as a whole, nor texts that are lost or erased."""
    from tgraph.ingest.page_reading import packed, read_page  # who looks up doesn't segment

    for quad in hashes:
        page, key = text_of(quad.subject), text_of(quad.object)
        media_type = media_types.get(parts_of_page(page)[0])
        if media_type is None:
            continue
        reading = None
        if known is not None and known.text_hash(page) == key:
            reading = known.reading(page)
        elif media_type not in GRAPH_TYPES:
            with suppress(StoreError):
                text = librarian.get_text(key)
                reading = packed(read_page(text, media_type), text)
        yield page, key, reading


def _merged(store: Store) -> Mapping[str, Collection[str]]:
    """For each edge or entity those that it was merged into."""
    found = canonical_names(store)
    for quad in store.match(None, v.tg("original"), None):
        found.setdefault(text_of(quad.object), []).append(text_of(quad.subject))
    return {iri: sorted({*others} - {iri}) for iri, others in found.items()}


def load_table(folder: Path, generation: int) -> LookupTable | None:
    """The folder's tables; None where they are missing, damaged or of another generation."""
    import sqlite3

    try:
        head = read_json(folder / HEAD) or {}
        if (head["format"], head["generation"]) != (FORMAT, generation):
            return None
        files = {role: DataFile(**file) for role, file in head["files"].items()}
        for file in files.values():
            check_file(folder / file.name, file, whole=file.size <= CHECKED_WHOLE)
        open_ = {role: opened(folder / file.name) for role, file in files.items()}
        kept = KeptFiles(folder, {"tables": files["tables"]})
        return LookupTable(open_["tables"], open_.get("newer"), kept)
    except (OSError, KeyError, TypeError, ValueError, StoreError, sqlite3.Error):
        return None
