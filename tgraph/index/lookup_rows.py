"""Look-ups in the tables: the evidence, the statements, the counts and the pages of one generation
of knowledge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse

from tgraph import vocabulary as v
from tgraph.index.evidence import EvidenceRow
from tgraph.index.graph_source import HUB, EdgeAttributes, Edges
from tgraph.index.table_reader import (
    EDGE_PREFIX,
    TableReader,
    pack_iri,
    packed_edge,
    unpack_iri,
    unpacked_edge,
)
from tgraph.model import Object

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
TERMS = """
SELECT iri, subjects.text, predicates.text, objects.text FROM edge
JOIN text AS subjects ON subjects.number = subject
JOIN text AS predicates ON predicates.number = predicate
JOIN text AS objects ON objects.number = object
"""
_TRIPLE = f"{TERMS} WHERE iri = ? AND reified"
IS = "= (SELECT number FROM text WHERE text = ?) AND stated ORDER BY iri LIMIT ?"
_AROUND = (f"{TERMS} WHERE subject {IS}", f"{TERMS} WHERE object {IS}")
_WEIGHT = "SELECT iri, weight, description FROM edge WHERE iri = ? AND weight IS NOT NULL"
TEXTS_OF_KIND = "SELECT iri, text FROM said WHERE iri = ? AND kind = ? ORDER BY text"
_NAMED = "SELECT iri, text FROM said WHERE text = ? AND entity ORDER BY iri"
_MENTIONS = """
SELECT about, text FROM evidence JOIN text ON number = chunk
WHERE NOT (about >= ? AND about < ?) AND NOT (about >= ? AND about < ?) GROUP BY about, chunk
"""
_MENTIONED = """
SELECT about, text FROM (SELECT about, chunk FROM evidence WHERE about = ? GROUP BY chunk)
JOIN text ON number = chunk
"""
_EDGES = EDGE_PREFIX, f"{v.URN}edge;"
NO_NAMES = tuple(f"{v.URN}{kind}{end}" for kind in ("edge", "claim") for end in (":", ";"))
"""Bounds between which the IRIs of edges and of claims are, in order."""


class EvidenceRows:
    """An ``EvidenceSource``: a row of an edge, an entity or a claim is one row of a table."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader

    def of_edges(self, edges: Sequence[str]) -> list[EvidenceRow]:
        rows = self._reader.rows_by_key("evidence", _ABOUT, zip(dict.fromkeys(edges)))
        return list(map(_evidence_row, rows))

    def of_entities(self, entities: Sequence[str]) -> list[EvidenceRow]:
        return self.of_edges(sorted(entities))

    def places(self, entities: Sequence[str]) -> dict[str, Iterator[EvidenceRow]]:
        return {entity: self._describing_first(entity) for entity in entities}

    def _describing_first(self, entity: str) -> Iterator[EvidenceRow]:
        for query in _TELLING:
            offset, size = 0, _FIRST
            while rows := self._reader.rows_by_key("evidence", query, [(entity, size, offset)]):
                yield from map(_evidence_row, rows)
                offset, size = offset + size, size * 2

    def by_iri(self, iris: Sequence[str]) -> list[EvidenceRow]:
        values = zip(map(pack_iri, sorted(set(iris))))
        matches = self._reader.matching_rows("evidence", _IRI, values)
        return [_evidence_row(row) for rows in matches for row in sorted(rows, key=_subject_text)]

    def documents(self, documents: Collection[str]) -> dict[str, tuple[str, str]]:
        rows = self._reader.rows_by_key("document", _DOCUMENT, zip(documents))
        return {iri: (title, path) for iri, title, path in rows}

    def stated_in(self, chunks: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
        values = ((chunk, *_EDGES) for chunk in chunks)
        matches = self._reader.matching_rows("evidence", _INSIDE, values)
        return {
            chunk: sorted((start, subject) for subject, start in rows)
            for chunk, rows in zip(chunks, matches, strict=True)
            if rows
        }

    def mentions(self, entities: Collection[str] | None = None) -> dict[str, set[str]]:
        chunks: defaultdict[str, set[str]] = defaultdict(set)
        if entities is None:
            rows = self._reader.matching_rows("evidence", _MENTIONS, [NO_NAMES])[0]
        else:
            rows = self._reader.rows_by_key("evidence", _MENTIONED, zip(entities))
        for entity, chunk in rows:
            chunks[entity].add(chunk)
        return chunks


class StatementRows:
    """A ``StatementSource``: triples by their ends, names, types and weights."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader

    def triples(self, edges: Sequence[str]) -> Edges:
        keys = zip(map(packed_edge, dict.fromkeys(edges)))
        return statements_of(self._reader.rows_by_key("edge", _TRIPLE, keys))

    def read_edges_around(self, entity: str) -> Edges:
        node = str(NamedNode(entity))
        limit = HUB + len(self._reader.changed_keys["edge"])
        edges: Edges = {}
        for query in _AROUND:
            [rows] = self._reader.matching_rows("edge", query, [(node, limit)])
            if self._reader.newer is not None:
                rows = sorted(rows, key=lambda row: unpacked_edge(row[0]))[:HUB]
            edges |= statements_of(rows)
        return edges

    def attributes(self, edges: Sequence[str]) -> dict[str, EdgeAttributes]:
        keys = zip(map(packed_edge, dict.fromkeys(edges)))
        rows = self._reader.rows_by_key("edge", _WEIGHT, keys)
        return {unpacked_edge(iri): EdgeAttributes(*values) for iri, *values in rows}

    def labels(self, items: Sequence[str]) -> dict[str, str]:
        return {iri: texts[0] for iri, texts in self._texts(items, "label").items()}

    def aliases(self, entities: Sequence[str]) -> dict[str, list[str]]:
        return self._texts(entities, "alias")

    def types(self, items: Sequence[str]) -> dict[str, list[str]]:
        return self._texts(items, "type")

    def find_entities_by_name(self, names: Sequence[str]) -> dict[str, list[str]]:
        distinct = list(dict.fromkeys(names))
        matches = self._reader.matching_rows("said", _NAMED, zip(distinct))
        pairs = zip(distinct, matches, strict=True)
        return {name: sorted({entity for entity, _ in rows}) for name, rows in pairs if rows}

    def _texts(self, subjects: Sequence[str], kind: str) -> dict[str, list[str]]:
        texts: defaultdict[str, list[str]] = defaultdict(list)
        values = ((subject, kind) for subject in dict.fromkeys(subjects))
        for iri, text in self._reader.rows_by_key("said", TEXTS_OF_KIND, values):
            texts[iri].append(text)
        return texts


class CountRows:
    """A ``CountSource``: the counts of the time when the tables were made."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader

    def degrees(self, entities: Iterable[str]) -> dict[str, int]:
        counts = dict.fromkeys(entities, 0)
        return counts | dict(self._reader.rows_by_key("entity", _DEGREE, zip(counts)))

    def chunk_tokens(self, chunks: Iterable[str]) -> dict[str, int]:
        return dict(self._reader.rows_by_key("chunk", _TOKENS, zip(chunks)))


class PageRows:
    """The ``KeptPages`` of standing documents."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader

    def about_document(self, document: str) -> tuple[str, bool] | None:
        rows = self._reader.rows_by_key("document", _ABOUT_DOCUMENT, [(document,)])
        return (rows[0][0], bool(rows[0][1])) if rows else None

    def text_hash(self, page: str) -> str:
        rows = self._reader.rows_by_key("page", _HASH, [(page,)])
        return rows[0][0] if rows else ""

    def reading(self, page: str) -> bytes | None:
        rows = self._reader.rows_by_key("page", _READING, [(page,)])
        return rows[0][0] if rows else None


def _subject_text(row: Sequence[Any]) -> str:
    return str(row[0])


def _evidence_row(row: Sequence[Any]) -> EvidenceRow:
    subject, iri, *fields = row
    return EvidenceRow(subject, unpack_iri(iri), *fields)


def statements_of(rows: Iterable[Sequence[Any]]) -> Edges:
    """The statements of rows with the columns of ``TERMS``."""
    return {unpacked_edge(iri): (_node(s), _node(p), parse_object(o)) for iri, s, p, o in rows}


def _node(text: str) -> NamedNode:
    return NamedNode(text[1:-1])


def parse_object(text: str) -> Object:
    """Return the term of an N-Triples form."""
    if text.startswith("<"):
        return _node(text)
    quad: Quad = next(parse(f"<x:x> <x:x> {text} .", RdfFormat.N_TRIPLES, lenient=True))
    assert isinstance(quad.object, NamedNode | Literal)
    return quad.object
