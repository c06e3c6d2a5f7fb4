"""Knowledge as a property graph: GraphML through networkx, and CSV for ``neo4j-admin import``.

Such a graph has nodes and relationships with attributes, and no statements about statements. So an
edge is a relationship, its attributes are the relationship's; a value and a claim are nodes too,
and what a claim is about are two relationships of it. Nothing of knowledge is lost that way.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from pyoxigraph import Literal

from tgraph.extensions.interchange.knowledge.statements import (
    ExportedClaim,
    ExportedEdge,
    ExportedEntity,
    Knowledge,
    KnowledgeSource,
)
from tgraph.rendering import as_cell

SEPARATOR = "<SEP>"
"""Between several texts in one attribute, as in LightRAG's graphs."""

PropertyValue = str | float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PropertyNode:
    """A property graph node: an entity, a value (literal) or a claim; empty values are left
    out."""

    id: str
    kind: str
    values: Mapping[str, PropertyValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PropertyRelationship:
    """A directed property graph relationship: source node, target node, kind, values."""

    id: str
    source: str
    target: str
    kind: str
    values: Mapping[str, PropertyValue] = field(default_factory=dict)


def property_nodes(knowledge: Knowledge) -> Iterator[PropertyNode]:
    """Yield entity nodes, then attribute value nodes, then claim nodes."""
    yield from map(_entity_node, knowledge.entities())
    literals = set()
    for edge in knowledge.edges():
        literal = edge.triple.object
        if isinstance(literal, Literal) and str(literal) not in literals:
            literals.add(str(literal))
            yield _value_node(literal)
    yield from map(_claim_node, knowledge.claims())


def property_relationships(knowledge: Knowledge) -> Iterator[PropertyRelationship]:
    """Yield edge relationships, then claim relationships (subject, object)."""
    yield from map(_edge_relationship, knowledge.edges())
    for claim in knowledge.claims():
        for role, entity in (("subject", claim.subject), ("object", claim.object)):
            if entity:
                yield PropertyRelationship(f"{claim.iri}:{role}", claim.iri, entity, role)


def _entity_node(entity: ExportedEntity) -> PropertyNode:
    values: dict[str, PropertyValue] = {
        "label": entity.label,
        "entity_type": entity.type,
        "classes": entity.classes,
        "aliases": entity.aliases,
        "description": entity.descriptions,
    }
    return PropertyNode(entity.iri, "Entity", _drop_empty(values))


def _value_node(literal: Literal) -> PropertyNode:
    values: dict[str, PropertyValue] = {
        "label": literal.value,
        "datatype": literal.datatype.value,
        "language": literal.language or "",
    }
    return PropertyNode(str(literal), "Literal", _drop_empty(values))


def _claim_node(claim: ExportedClaim) -> PropertyNode:
    values: dict[str, PropertyValue] = {
        "label": claim.type,
        "status": claim.status,
        "description": (claim.description,),
        "started": claim.started,
        "ended": claim.ended,
    }
    return PropertyNode(claim.iri, "Claim", _drop_empty(values))


def _edge_relationship(edge: ExportedEdge) -> PropertyRelationship:
    target = str(edge.triple.object) if edge.is_attribute else edge.object
    values: dict[str, PropertyValue] = {
        "relation": edge.triple.predicate.value,
        "weight": edge.weight,
        "keywords": edge.keywords,
        "description": edge.descriptions,
    }
    return PropertyRelationship(edge.iri, edge.subject, target, edge.relation, _drop_empty(values))


def _drop_empty(values: Mapping[str, PropertyValue]) -> dict[str, PropertyValue]:
    return {name: value for name, value in values.items() if value or isinstance(value, float)}


# --- GraphML ---


def write_graphml(knowledge: Knowledge, out: BinaryIO) -> None:
    """GraphML 1.0, in the order of knowledge; what XML can't hold is U+FFFD."""
    from networkx import MultiDiGraph, write_graphml

    graph = MultiDiGraph()
    for node in property_nodes(knowledge):
        graph.add_node(_replace_unfit(node.id), kind=node.kind, **_graphml_attributes(node.values))
    for relationship in property_relationships(knowledge):
        attributes = {
            "label": _replace_unfit(relationship.kind),
            **_graphml_attributes(relationship.values),
        }
        graph.add_edge(
            _replace_unfit(relationship.source),
            _replace_unfit(relationship.target),
            key=relationship.id,
            **attributes,
        )
    write_graphml(graph, out)


def _graphml_attributes(values: Mapping[str, PropertyValue]) -> dict[str, str | float]:
    return {
        name: value if isinstance(value, float) else _replace_unfit(_join_values(value))
        for name, value in values.items()
    }


def _join_values(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else SEPARATOR.join(value)


_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def _replace_unfit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)


# --- CSV for Neo4j ---

ARRAY_DELIMITER = "¦"
_LISTS = ("aliases", "description", "keywords")
_NODE_COLUMNS = {
    "id": "id:ID",
    "label": "name",
    "entity_type": "type",
    "aliases": "aliases:string[]",
    "description": "description:string[]",
    "datatype": "datatype",
    "language": "language",
    "status": "status",
    "started": "started",
    "ended": "ended",
    "kind": ":LABEL",
}
_RELATIONSHIP_COLUMNS = {
    "source": ":START_ID",
    "target": ":END_ID",
    "kind": ":TYPE",
    "id": "edge",
    "relation": "relation",
    "weight": "weight:double",
    "keywords": "keywords:string[]",
    "description": "description:string[]",
}
_PLACE_COLUMNS = ("edge", "document", "path", "page:int", "start:long", "end:long", "quote")


def write_csv(source: KnowledgeSource, folder: Path, sources: bool) -> None:
    """``nodes.csv`` and ``relationships.csv`` with the headers of ``neo4j-admin database import``;
    with sources ``evidence.csv``, which says of each IRI where it is stated."""
    knowledge = source.knowledge
    node_rows = ({"id": n.id, "kind": n.kind, **n.values} for n in property_nodes(knowledge))
    _write_table(folder / "nodes.csv", _NODE_COLUMNS, node_rows)
    ties = (
        {"id": r.id, "source": r.source, "target": r.target, "kind": r.kind, **r.values}
        for r in property_relationships(knowledge)
    )
    _write_table(folder / "relationships.csv", _RELATIONSHIP_COLUMNS, ties)
    if sources:
        columns = dict(zip(_PLACE_COLUMNS, _PLACE_COLUMNS, strict=True))
        rows = (
            (subject, p.title, p.path, str(p.page or ""), str(p.start), str(p.end), p.quote)
            for subject, places in source.places()
            for p in places
        )
        place_rows = (dict(zip(_PLACE_COLUMNS, row, strict=True)) for row in rows)
        _write_table(folder / "evidence.csv", columns, place_rows)


def _write_table(
    path: Path, columns: Mapping[str, str], rows: Iterable[Mapping[str, PropertyValue]]
) -> None:
    with path.open("x", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        cells = ([_csv_cell(name, row.get(name, "")) for name in columns] for row in rows)
        table.writerows(chain([list(columns.values())], cells))


def _csv_cell(name: str, value: PropertyValue) -> str | float:
    if isinstance(value, float):
        return value
    if name in _LISTS and not isinstance(value, str):
        return as_cell(ARRAY_DELIMITER.join(item.replace(ARRAY_DELIMITER, "|") for item in value))
    return as_cell(_join_values(value))
