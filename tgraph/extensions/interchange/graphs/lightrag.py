"""LightRAG's working folder and its custom knowledge graphs, and GraphML in general.

LightRAG keeps entities and relationships in GraphML (``graph_chunk_entity_relation.graphml``), the
chunks that they were read in and the documents in JSON; its vectors are not needed. Several texts
in one attribute are joined by ``<SEP>``. A custom graph is one JSON object with ``chunks``,
``entities`` and ``relationships``. GraphML of others, tgraph's own included, rests on rows, since
it has no texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import IngestError
from tgraph.extensions.interchange.graphs.base import ImportedGraph, OnSkipped, SkippedRow
from tgraph.extensions.interchange.graphs.rdf_terms import is_reserved
from tgraph.extensions.interchange.graphs.text_units import (
    RELATED,
    SourcedClaim,
    TextDocument,
    TextUnit,
    UnitReadings,
    documents_of,
)
from tgraph.model import ClaimStatus, ExtractedClaim, ExtractedEntity, ExtractedRelationship

SEPARATOR = "<SEP>"
GRAPH = "graph_chunk_entity_relation.graphml"
_CHUNKS, _DOCUMENTS = "kv_store_text_chunks.json", "kv_store_full_docs.json"
_HEAD = 65_536

Row = Mapping[str, Any]


class LightRagReader:
    """Reads a working folder, or the JSON of a custom graph."""

    kind = "lightrag"

    def recognises(self, path: str) -> bool:
        place = Path(path)
        return (place / GRAPH).is_file() or _is_custom(place)

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        place = Path(path)
        graph = _PropertyGraph(path, skipped)
        if place.is_dir():
            nodes, edges = read_graphml(place / GRAPH)
            chunks = _object(place / _CHUNKS)
            documents = _object(place / _DOCUMENTS)
            graph.documents = [
                TextDocument(key, _title(row, key), _text(row, "content"))
                for key, row in documents.items()
            ]
            ordered = sorted(
                chunks.items(), key=lambda i: (_number(i[1], "chunk_order_index"), i[0])
            )
            graph.units = [_unit(key, row) for key, row in ordered]
        else:
            custom = _object(place)
            nodes, edges = _rows(custom, "entities"), _rows(custom, "relationships")
            rows = _rows(custom, "chunks")
            graph.units = [_unit(_text(row, "source_id") or str(n), row) for n, row in rows]
        return graph.read(nodes, edges, "lightrag")


class GraphMlReader:
    """Reads GraphML: nodes with labels, types and descriptions, edges with labels and weights."""

    kind = "graphml"

    def recognises(self, path: str) -> bool:
        return path.lower().endswith(".graphml") and Path(path).is_file()

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        return _PropertyGraph(path, skipped).read(*read_graphml(Path(path)), "graphml")


Numbered = Sequence[tuple[int, Row]]


def read_graphml(path: Path) -> tuple[Numbered, Numbered]:
    """The nodes and the edges of a file, each with its number and its attributes; the ids are under
    ``id``, ``source`` and ``target``. ``IngestError`` where it can't be read."""
    from xml.etree.ElementTree import ParseError

    from networkx import NetworkXError, read_graphml

    try:
        graph = read_graphml(path, force_multigraph=True)
    except (ParseError, NetworkXError, OSError, ValueError, KeyError) as error:
        raise IngestError(str(path), f"It is no GraphML that can be read: {error}.") from error
    nodes = [{**told, "id": str(node)} for node, told in graph.nodes(data=True)]
    edges = [
        {**told, "source": str(one), "target": str(two)}
        for one, two, told in graph.edges(data=True)
    ]
    return list(enumerate(nodes, 1)), list(enumerate(edges, 1))


class _PropertyGraph:
    """A graph whose nodes and edges are rows of attributes."""

    def __init__(self, path: str, skipped: OnSkipped) -> None:
        self.documents: list[TextDocument] = []
        self.units: list[TextUnit] = []
        self._path = path
        self._skipped = skipped
        self._nodes: dict[str, Row] = {}
        self._about: dict[str, dict[str, str | NamedNode | Literal]] = {}

    def read(self, nodes: Numbered, edges: Numbered, kind: str) -> ImportedGraph:
        readings = UnitReadings(unit.id for unit in self.units)
        for number, row in nodes:
            self._read_node(number, row, readings)
        for number, row in edges:
            self._read_edge(number, row, readings)
        for number, row in nodes:
            if _text(row, "kind") == "Claim":
                self._read_claim(number, row, readings)
        found = documents_of(self.documents, self.units, readings, self._path)
        return ImportedGraph(kind, found)

    def _read_node(self, number: int, row: Row, readings: UnitReadings) -> None:
        name = _name(row)
        self._nodes[_text(row, "id") or name] = row
        if _text(row, "kind") in ("Literal", "Claim"):
            return
        if not v.normalise_name(name):
            self._skip(number, "a node without a name")
            return
        kind = _text(row, "entity_type", "type") or "concept"
        aliases = tuple(_texts(row, "aliases"))
        for said in _texts(row, "description") or [""]:
            entity = ExtractedEntity(
                name, kind, said, aliases, iri=_own_iri(row), classes=_classes(row)
            )
            readings.add_entity(entity, _texts(row, "source_id"))

    def _read_edge(self, number: int, row: Row, readings: UnitReadings) -> None:
        if claim := self._claim_of(row):
            self._about.setdefault(claim, {})[_text(row, "label")] = self._end(row, *_ENDS[1])
            return
        subject, other = (self._end(row, *names) for names in _ENDS)
        if not subject or isinstance(subject, Literal) or not other:
            self._skip(number, "an edge without two ends that are known")
            return
        words = _texts(row, "keywords")
        if SEPARATOR not in _text(row, "keywords"):
            words = [w for text in words for w in map(str.strip, text.split(",")) if w]
        strength = _number(row, "weight", 1.0)
        for said in _texts(row, "description") or [""]:
            readings.add_relationship(
                ExtractedRelationship(
                    subject,
                    _relation(row),
                    other,
                    said,
                    tuple(words),
                    strength,
                    label=_text(row, "label"),
                ),
                _texts(row, "source_id"),
            )
            strength, words = 0.0, []

    def _claim_of(self, row: Row) -> str:
        """The claim that the edge says the subject or object of; empty for any other edge."""
        identity = _text(row, *_ENDS[0])
        return identity if _text(self._nodes.get(identity, {}), "kind") == "Claim" else ""

    def _read_claim(self, number: int, row: Row, readings: UnitReadings) -> None:
        about = self._about.get(_text(row, "id"), {})
        subject, other = about.get("subject", ""), about.get("object", "")
        status = _STATUSES.get(_text(row, "status"))
        if not subject or status is None or isinstance(subject, Literal):
            self._skip(number, "a claim without a subject or status")
            return
        (name, iri), (object_name, object_iri) = map(self._called, (subject, other))
        claim = ExtractedClaim(
            name,
            object_name,
            _text(row, "label"),
            status,
            _text(row, "description"),
            _date(_text(row, "started")),
            _date(_text(row, "ended")),
            subject_iri=iri,
            object_iri=object_iri,
        )
        readings.add_claim(SourcedClaim(claim), ())

    def _called(self, end: str | NamedNode | Literal) -> tuple[str, str]:
        """The name and the IRI of an end; that of a minted one is its name's."""
        if isinstance(end, NamedNode):
            return _name(self._nodes[end.value]), end.value
        return str(end), ""

    def _end(self, row: Row, *names: str) -> str | NamedNode | Literal:
        """The name or IRI of the node at an end, or the value that it is; empty for a claim."""
        identity = _text(row, *names)
        node = self._nodes.get(identity)
        if node is None:
            return identity if v.normalise_name(identity) else ""
        kind = _text(node, "kind")
        if kind == "Claim":
            return ""
        if kind == "Literal":
            return _value(node)
        iri = _own_iri(node)
        return NamedNode(iri) if iri else _name(node)

    def _skip(self, row: int, reason: str) -> None:
        self._skipped(SkippedRow(self._path, row, reason))


_DATE = re.compile(
    r"-?\d{4,}(?P<month>-\d\d(?P<day>-\d\d(?P<time>T\d\d:\d\d:\d\d(\.\d+)?)?)?)?"
    r"(Z|[+-]\d\d:\d\d)?"
)
_STATUSES: dict[str, ClaimStatus] = {"TRUE": "TRUE", "FALSE": "FALSE", "SUSPECTED": "SUSPECTED"}
_ENDS = (("source", "src_id"), ("target", "tgt_id"))


def _value(node: Row) -> Literal:
    text, language, kind = (_text(node, name) for name in ("label", "language", "datatype"))
    if language:
        return Literal(text, language=language)
    return Literal(text, datatype=NamedNode(kind)) if kind else Literal(text)


def _is_open(iri: str) -> bool:
    """Whether it is an IRI that others may say things of."""
    return v.is_iri(iri) and not is_reserved(iri)


def _classes(node: Row) -> tuple[str, ...]:
    known = _texts(node, "classes") if _text(node, "kind") == "Entity" else ()
    return tuple(filter(_is_open, known))


def _own_iri(node: Row) -> str:
    """The IRI of an entity that tgraph exported; empty for one that its name makes again."""
    iri = _text(node, "id")
    if _text(node, "kind") != "Entity" or not _is_open(iri):
        return ""
    return "" if iri == v.entity_iri(_name(node)) else iri


def _relation(row: Row) -> str | NamedNode:
    label, iri = _text(row, "label", "relation") or RELATED, _text(row, "relation")
    if not _text(row, "label") or not _is_open(iri):
        return label
    return label if iri == v.relation_iri(label) else NamedNode(iri)


def _date(text: str) -> Literal | None:
    """A date as exact as it is written; None where it is none."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    kinds = zip(
        ("dateTime", "date", "gYearMonth"), found.group("time", "day", "month"), strict=True
    )
    kind = next((kind for kind, part in kinds if part), "gYear")
    return Literal(text, datatype=NamedNode(v.XSD + kind))


def _name(row: Row) -> str:
    return _text(row, "label", "entity_id", "entity_name", "name", "title", "id")


def _unit(key: str, row: Row) -> TextUnit:
    documents = tuple(filter(None, [_text(row, "full_doc_id")]))
    return TextUnit(key, _text(row, "content"), documents)


def _title(row: Row, key: str) -> str:
    path = _text(row, "file_path")
    return path if path and path != "unknown_source" else key


def _text(row: Row, *names: str) -> str:
    value = next((row[name] for name in names if row.get(name) not in (None, "")), "")
    return str(value).encode("utf-8", "replace").decode()


def _texts(row: Row, name: str) -> list[str]:
    """The texts of an attribute, each once."""
    parts = (part.strip() for part in _text(row, name).split(SEPARATOR))
    return list(dict.fromkeys(part for part in parts if part))


def _number(row: Row, name: str, otherwise: float = 0.0) -> float:
    try:
        return float(row.get(name, otherwise))
    except (TypeError, ValueError):
        return otherwise


# --- JSON ---


def _is_custom(path: Path) -> bool:
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return b'"entity_name"' in head or (b'"chunks"' in head and b'"source_id"' in head)


def _object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty where there is no such file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        raise IngestError(str(path), f"It is no JSON that can be read: {error}.") from error
    if not isinstance(found, dict):
        raise IngestError(str(path), "It is no JSON object.")
    return found


def _rows(custom: Mapping[str, Any], name: str) -> Numbered:
    found = custom.get(name) or ()
    rows: Iterable[Any] = found if isinstance(found, list) else ()
    return list(_numbered(rows))


def _numbered(rows: Iterable[Any]) -> Iterator[tuple[int, Row]]:
    return ((number, row) for number, row in enumerate(rows, 1) if isinstance(row, dict))
