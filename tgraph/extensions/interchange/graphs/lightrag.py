"""LightRAG's working folder and its custom knowledge graphs, and GraphML in general.

LightRAG keeps entities and relationships in GraphML (``graph_chunk_entity_relation.graphml``), the
chunks that they were read in and the documents in JSON; its vectors are not needed. Several texts
in one attribute are joined by ``<SEP>``. A custom graph is one JSON object with ``chunks``,
``entities`` and ``relationships``. GraphML of others, tgraph's own included, rests on rows, since
it has no texts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.extensions.interchange.graphs.base import (
    ImportedGraph,
    OnSkipped,
    SkippedRow,
    read_number,
)
from tgraph.extensions.interchange.graphs.isolated_files import (
    JsonRow,
    read_json_rows,
    read_property_graph,
)
from tgraph.extensions.interchange.graphs.text_units import (
    RELATED,
    SourcedClaim,
    TextDocument,
    TextUnit,
    UnitReadings,
    documents_of,
)
from tgraph.ingest.base import DEFAULT_LIMITS, FileLimits
from tgraph.model import ClaimStatus, ExtractedClaim, ExtractedEntity, ExtractedRelationship

SEPARATOR = "<SEP>"
GRAPH = "graph_chunk_entity_relation.graphml"
_CHUNKS, _DOCUMENTS = "kv_store_text_chunks.json", "kv_store_full_docs.json"
_HEAD = 65_536


@dataclass(frozen=True, slots=True)
class LightRagReader:
    """Reads a working folder, or the JSON of a custom graph."""

    limits: FileLimits = DEFAULT_LIMITS
    kind: str = field(default="lightrag", init=False)

    def recognises(self, path: str) -> bool:
        place = Path(path)
        return (place / GRAPH).is_file() or _is_custom(place)

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        place = Path(path)
        graph = _PropertyGraph(path, skipped)
        if place.is_dir():
            nodes, edges = _read_graphml(place / GRAPH, self.limits)
            chunks = _read_keyed_rows(place / _CHUNKS, self.limits)
            documents = _read_keyed_rows(place / _DOCUMENTS, self.limits)
            graph.documents = [
                TextDocument(key, _unit_title(row, key), _read_text(row, "content"))
                for key, row in documents.items()
            ]
            ordered = sorted(
                chunks.items(),
                key=lambda i: (read_number(i[1].get("chunk_order_index"), 0.0), i[0]),
            )
            graph.units = [_create_unit(key, row) for key, row in ordered]
        else:
            rows: dict[str, list[tuple[int, JsonRow]]] = defaultdict(list)
            for member, number, row in read_json_rows(place, self.limits):
                if number:
                    rows[member].append((number, row))
            nodes, edges = rows["entities"], rows["relationships"]
            graph.units = [
                _create_unit(_read_text(row, "source_id") or str(n), row)
                for n, row in rows["chunks"]
            ]
        return graph.read(nodes, edges, "lightrag")


@dataclass(frozen=True, slots=True)
class GraphMlReader:
    """Reads GraphML: nodes with labels, types and descriptions, edges with labels and weights."""

    limits: FileLimits = DEFAULT_LIMITS
    kind: str = field(default="graphml", init=False)

    def recognises(self, path: str) -> bool:
        return path.lower().endswith(".graphml") and Path(path).is_file()

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        rows = _read_graphml(Path(path), self.limits)
        return _PropertyGraph(path, skipped).read(*rows, "graphml")


NumberedRows = Sequence[tuple[int, JsonRow]]


def _read_graphml(path: Path, limits: FileLimits) -> tuple[NumberedRows, NumberedRows]:
    """Return nodes and edges of a GraphML file, each with number and attributes."""
    nodes, edges = read_property_graph(path, limits)
    return list(enumerate(nodes, 1)), list(enumerate(edges, 1))


class _PropertyGraph:
    """A graph whose nodes and edges are attribute rows."""

    def __init__(self, path: str, skipped: OnSkipped) -> None:
        self.documents: list[TextDocument] = []
        self.units: list[TextUnit] = []
        self._path = path
        self._skipped = skipped
        self._nodes: dict[str, JsonRow] = {}
        self._about: dict[str, dict[str, str | NamedNode | Literal]] = {}

    def read(self, nodes: NumberedRows, edges: NumberedRows, kind: str) -> ImportedGraph:
        readings = UnitReadings(unit.id for unit in self.units)
        for number, row in nodes:
            self._read_node(number, row, readings)
        for number, row in edges:
            self._read_edge(number, row, readings)
        for number, row in nodes:
            if _read_text(row, "kind") == "Claim":
                self._read_claim(number, row, readings)
        documents = documents_of(self.documents, self.units, readings, self._path)
        return ImportedGraph(kind, documents)

    def _read_node(self, number: int, row: JsonRow, readings: UnitReadings) -> None:
        name = _node_name(row)
        self._nodes[_read_text(row, "id") or name] = row
        if _read_text(row, "kind") in ("Literal", "Claim"):
            return
        if not v.normalise_name(name):
            self._skip_row(number, "a node without a name")
            return
        kind = _read_text(row, "entity_type", "type") or "concept"
        aliases = tuple(_read_texts(row, "aliases"))
        for description in _read_texts(row, "description") or [""]:
            entity = ExtractedEntity(
                name, kind, description, aliases, iri=_own_iri(row), classes=_read_classes(row)
            )
            readings.add_entity(entity, _read_texts(row, "source_id"))

    def _read_edge(self, number: int, row: JsonRow, readings: UnitReadings) -> None:
        if claim := self._claim_of(row):
            self._about.setdefault(claim, {})[_read_text(row, "label")] = self._read_end(
                row, *_ENDS[1]
            )
            return
        subject, target = (self._read_end(row, *names) for names in _ENDS)
        if not subject or isinstance(subject, Literal) or not target:
            self._skip_row(number, "an edge without two ends that are known")
            return
        words = _read_texts(row, "keywords")
        if SEPARATOR not in _read_text(row, "keywords"):
            words = [w for text in words for w in map(str.strip, text.split(",")) if w]
        strength = read_number(row.get("weight"), 1.0)
        for description in _read_texts(row, "description") or [""]:
            readings.add_relationship(
                ExtractedRelationship(
                    subject,
                    _read_relation(row),
                    target,
                    description,
                    tuple(words),
                    strength,
                    label=_read_text(row, "label"),
                ),
                _read_texts(row, "source_id"),
            )
            strength, words = 0.0, []

    def _claim_of(self, row: JsonRow) -> str:
        """Return the claim described by an edge to subject or object; blank for any other edge."""
        identity = _read_text(row, *_ENDS[0])
        return identity if _read_text(self._nodes.get(identity, {}), "kind") == "Claim" else ""

    def _read_claim(self, number: int, row: JsonRow, readings: UnitReadings) -> None:
        ends = self._about.get(_read_text(row, "id"), {})
        subject, target = ends.get("subject", ""), ends.get("object", "")
        status = _STATUSES.get(_read_text(row, "status"))
        if not subject or status is None or isinstance(subject, Literal):
            self._skip_row(number, "a claim without a subject or status")
            return
        (name, iri), (object_name, object_iri) = map(self._name_and_iri, (subject, target))
        claim = ExtractedClaim(
            name,
            object_name,
            _read_text(row, "label"),
            status,
            _read_text(row, "description"),
            _parse_date(_read_text(row, "started")),
            _parse_date(_read_text(row, "ended")),
            subject_iri=iri,
            object_iri=object_iri,
        )
        readings.add_claim(SourcedClaim(claim), ())

    def _name_and_iri(self, end: str | NamedNode | Literal) -> tuple[str, str]:
        """Return name and IRI of an edge end; minted IRIs are derived from names."""
        if isinstance(end, NamedNode):
            return _node_name(self._nodes[end.value]), end.value
        return str(end), ""

    def _read_end(self, row: JsonRow, *names: str) -> str | NamedNode | Literal:
        """Return the node name or IRI at an edge end, or a literal value; blank for claims."""
        identity = _read_text(row, *names)
        node = self._nodes.get(identity)
        if node is None:
            return identity if v.normalise_name(identity) else ""
        kind = _read_text(node, "kind")
        if kind == "Claim":
            return ""
        if kind == "Literal":
            return _read_literal(node)
        iri = _own_iri(node)
        return NamedNode(iri) if iri else _node_name(node)

    def _skip_row(self, row: int, reason: str) -> None:
        self._skipped(SkippedRow(self._path, row, reason))


_DATE = re.compile(
    r"-?\d{4,}(?P<month>-\d\d(?P<day>-\d\d(?P<time>T\d\d:\d\d:\d\d(\.\d+)?)?)?)?"
    r"(Z|[+-]\d\d:\d\d)?"
)
_STATUSES: dict[str, ClaimStatus] = {"TRUE": "TRUE", "FALSE": "FALSE", "SUSPECTED": "SUSPECTED"}
_ENDS = (("source", "src_id"), ("target", "tgt_id"))


def _read_literal(node: JsonRow) -> Literal:
    text, language, kind = (_read_text(node, name) for name in ("label", "language", "datatype"))
    if language:
        return Literal(text, language=language)
    return Literal(text, datatype=NamedNode(kind)) if kind else Literal(text)


def _is_open(iri: str) -> bool:
    """Tell whether an IRI is open to foreign statements."""
    return v.is_iri(iri) and not v.is_reserved(iri)


def _read_classes(node: JsonRow) -> tuple[str, ...]:
    class_iris = _read_texts(node, "classes") if _read_text(node, "kind") == "Entity" else ()
    return tuple(filter(_is_open, class_iris))


def _own_iri(node: JsonRow) -> str:
    """Return an exported entity's IRI; blank if derivable from the entity name."""
    iri = _read_text(node, "id")
    if _read_text(node, "kind") != "Entity" or not _is_open(iri):
        return ""
    return "" if iri == v.entity_iri(_node_name(node)) else iri


def _read_relation(row: JsonRow) -> str | NamedNode:
    label, iri = _read_text(row, "label", "relation") or RELATED, _read_text(row, "relation")
    if not _read_text(row, "label") or not _is_open(iri):
        return label
    return label if iri == v.relation_iri(label) else NamedNode(iri)


def _parse_date(text: str) -> Literal | None:
    """Return a date literal with the written precision, or None."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    kinds = zip(
        ("dateTime", "date", "gYearMonth"), match.group("time", "day", "month"), strict=True
    )
    kind = next((kind for kind, part in kinds if part), "gYear")
    return Literal(text, datatype=NamedNode(v.XSD + kind))


def _node_name(row: JsonRow) -> str:
    return _read_text(row, "label", "entity_id", "entity_name", "name", "title", "id")


def _create_unit(key: str, row: JsonRow) -> TextUnit:
    documents = tuple(filter(None, [_read_text(row, "full_doc_id")]))
    return TextUnit(key, _read_text(row, "content"), documents)


def _unit_title(row: JsonRow, key: str) -> str:
    path = _read_text(row, "file_path")
    return path if path and path != "unknown_source" else key


def _read_text(row: JsonRow, *names: str) -> str:
    value = next((row[name] for name in names if row.get(name) not in (None, "")), "")
    return str(value).encode("utf-8", "replace").decode()


def _read_texts(row: JsonRow, name: str) -> list[str]:
    """Return distinct texts of an attribute."""
    parts = (part.strip() for part in _read_text(row, name).split(SEPARATOR))
    return list(dict.fromkeys(part for part in parts if part))


# --- JSON ---


def _is_custom(path: Path) -> bool:
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return b'"entity_name"' in head or (b'"chunks"' in head and b'"source_id"' in head)


def _read_keyed_rows(path: Path, limits: FileLimits) -> dict[str, JsonRow]:
    """Return the rows of a file's JSON object by key; none without such a file."""
    if not path.is_file():
        return {}
    return {key: row for key, number, row in read_json_rows(path, limits) if not number}
