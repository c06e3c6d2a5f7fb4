"""Knowledge as GraphRAG's tables of version 3, with version 2's columns beside those that changed.

GraphRAG has one relationship between two entities in one direction, so the predicates of edges go
into the description where these don't have the generic name, and edges to values into that of their
entity. What rests on what is kept by text units: the chunks that state it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.extensions.interchange.knowledge.statements import (
    ExportedClaim,
    ExportedEdge,
    ExportedEntity,
    KnowledgeSource,
)
from tgraph.index.communities.communities import read_communities
from tgraph.index.reports.report import read_reports
from tgraph.index.sources import document_of_chunk, document_titles, page_of_chunk, text_value
from tgraph.model import CommunityReport

if TYPE_CHECKING:
    import pyarrow

RELATED = "related to"
_NONE = "NONE"


def write_tables(source: KnowledgeSource, folder: Path) -> None:
    """``documents``, ``text_units``, ``entities``, ``relationships``, ``covariates`` where there
    are claims, ``communities`` and ``community_reports``, as parquet.

    ``UsageError`` where pyarrow isn't installed.
    """
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise UsageError(
            "pyarrow, which writes parquet, isn't installed.",
            'Install it with `pip install "tgraph-rag[parquet]"`.',
        ) from error
    for name, table in _Tables(source).tables().items():
        parquet.write_table(table, folder / f"{name}.parquet")


class _Tables:
    """GraphRAG tables of a graph."""

    def __init__(self, source: KnowledgeSource) -> None:
        knowledge = source.knowledge
        self._source = source
        self._entities = list(knowledge.entities())
        self._labels = _unique_titles((entity.iri, entity.label) for entity in self._entities)
        edges = list(knowledge.edges())
        self._attributes: dict[str, list[ExportedEdge]] = {}
        self._ties: dict[tuple[str, str], list[ExportedEdge]] = {}
        for edge in edges:
            if edge.is_attribute:
                self._attributes.setdefault(edge.subject, []).append(edge)
            elif edge.object in self._labels:
                self._ties.setdefault((edge.subject, edge.object), []).append(edge)
        self._claims = list(knowledge.claims())
        self._chunks: dict[str, list[str]] = {}
        for subject, places in source.places():
            self._chunks[subject] = list(dict.fromkeys(place.chunk for place in places))
        for name, attribute_edges in self._attributes.items():
            edge_chunks = [
                chunk for edge in attribute_edges for chunk in self._chunks.get(edge.iri, ())
            ]
            chunks = self._chunks.setdefault(name, [])
            chunks += [chunk for chunk in dict.fromkeys(edge_chunks) if chunk not in chunks]
        self._degree: dict[str, int] = {}
        for source_iri, target in self._ties:
            for end in {source_iri, target}:
                self._degree[end] = self._degree.get(end, 0) + 1

    def tables(self) -> dict[str, pyarrow.Table]:
        """Return all tables by name."""
        rows = {
            "entities": [self._entity_row(n, e) for n, e in enumerate(self._entities)],
            "relationships": [
                self._relationship_row(n, *pair) for n, pair in enumerate(self._ties.items())
            ],
            "covariates": [self._claim_row(n, c) for n, c in enumerate(self._claims)],
            **self._community_rows(),
        }
        rows |= self._text_rows(rows)
        schemas = _table_schemas()
        written = {
            name: table_rows
            for name, table_rows in rows.items()
            if table_rows or name != "covariates"
        }
        return {
            name: _build_table(table_rows, schemas[name]) for name, table_rows in written.items()
        }

    def _entity_row(self, number: int, entity: ExportedEntity) -> dict[str, Any]:
        attribute_texts = [
            f"{e.relation}: {e.object}" for e in self._attributes.get(entity.iri, ())
        ]
        chunks = self._chunks.get(entity.iri, [])
        return {
            "id": entity.iri,
            "human_readable_id": number,
            "title": self._labels[entity.iri],
            "type": entity.type,
            "description": "\n".join([*entity.descriptions, *attribute_texts]),
            "text_unit_ids": chunks,
            "frequency": len(chunks),
            "degree": self._degree.get(entity.iri, 0),
        }

    def _relationship_row(
        self, number: int, ends: tuple[str, str], edges: Sequence[ExportedEdge]
    ) -> dict[str, Any]:
        chunks = [chunk for edge in edges for chunk in self._chunks.get(edge.iri, ())]
        return {
            "id": edges[0].iri,
            "human_readable_id": number,
            "source": self._labels[ends[0]],
            "target": self._labels[ends[1]],
            "description": "\n".join(map(_edge_description, edges)),
            "weight": sum(edge.weight for edge in edges),
            "combined_degree": sum(self._degree[end] for end in ends),
            "text_unit_ids": list(dict.fromkeys(chunks)),
        }

    def _claim_row(self, number: int, claim: ExportedClaim) -> dict[str, Any]:
        chunks = self._chunks.get(claim.iri, [])
        return {
            "id": claim.iri,
            "human_readable_id": number,
            "covariate_type": "claim",
            "type": claim.type,
            "description": claim.description,
            "subject_id": self._labels.get(claim.subject, claim.subject),
            "object_id": self._labels.get(claim.object, claim.object) or _NONE,
            "status": claim.status,
            "start_date": claim.started or _NONE,
            "end_date": claim.ended or _NONE,
            "source_text": "",
            "text_unit_id": next(iter(chunks), ""),
        }

    def _community_rows(self) -> dict[str, list[dict[str, Any]]]:
        communities = read_communities(self._source.store)
        numbers = {community.iri: number for number, community in enumerate(communities)}
        ids = {
            edge.iri: tie_edges[0].iri for tie_edges in self._ties.values() for edge in tie_edges
        }
        reports = read_reports(self._source.store)
        community_rows, report_rows = [], []
        for graph_community in communities:
            number, parent = (
                numbers[graph_community.iri],
                numbers.get(graph_community.parent or "", -1),
            )
            place = {
                "human_readable_id": number,
                "community": number,
                "level": graph_community.level,
                "parent": parent,
                "children": sorted(numbers[child] for child in graph_community.children),
                "period": "",
                "size": len(graph_community.members),
            }
            edges = dict.fromkeys(ids[edge] for edge in graph_community.edges if edge in ids)
            chunks = [c for edge in edges for c in self._chunks.get(edge, ())]
            community_rows.append(
                {
                    **place,
                    "id": graph_community.iri,
                    "title": f"Community {number}",
                    "entity_ids": [m for m in graph_community.members if m in self._labels],
                    "relationship_ids": list(edges),
                    "text_unit_ids": list(dict.fromkeys(chunks)),
                }
            )
            if graph_community.iri in reports:
                report_rows.append({**place, **_report_fields(reports[graph_community.iri])})
        return {"communities": community_rows, "community_reports": report_rows}

    def _text_rows(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        """Return rows for supporting text units, and rows for their documents."""
        used: dict[str, dict[str, list[str]]] = {}
        for name in ("entities", "relationships", "covariates"):
            for row in rows[name]:
                for chunk in row.get("text_unit_ids") or filter(None, [row.get("text_unit_id")]):
                    used.setdefault(chunk, {}).setdefault(name, []).append(row["id"])
        units, texts = [], self._source.texts
        of_document: dict[str, list[str]] = {}
        for number, chunk in enumerate(sorted(used)):
            document = document_of_chunk(chunk)
            of_document.setdefault(document, []).append(chunk)
            units.append(
                {
                    "id": chunk,
                    "human_readable_id": number,
                    "text": texts.of_chunk(chunk),
                    "n_tokens": int(text_value(self._source.store, chunk, v.tg("tokenCount")) or 0),
                    "document_id": document,
                    "document_ids": [document],
                    "entity_ids": used[chunk].get("entities", []),
                    "relationship_ids": used[chunk].get("relationships", []),
                    "covariate_ids": used[chunk].get("covariates", []),
                }
            )
        titles = document_titles(self._source.store, of_document)
        documents = [
            {
                "id": document,
                "human_readable_id": number,
                "title": titles.get(document, document),
                "text": self._document_text(chunks),
                "text_unit_ids": chunks,
                "creation_date": "",
            }
            for number, (document, chunks) in enumerate(sorted(of_document.items()))
        ]
        return {"text_units": units, "documents": documents}

    def _document_text(self, chunks: Sequence[str]) -> str:
        """Return document text from pages containing supporting chunks."""
        pages = sorted({page_of_chunk(chunk) or 0 for chunk in chunks})
        document = document_of_chunk(chunks[0])
        return "\n".join(self._source.texts.of_page(document, page or None) for page in pages)


def _unique_titles(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return unique titles by IRI: GraphRAG identifies entities by title, so that a repeated
    label gets a hash suffix."""
    titles: dict[str, str] = {}
    used_titles: set[str] = set()
    for iri, label in named:
        title = (
            label
            if v.normalise_name(label) not in used_titles
            else f"{label} ({v.digest_parts(iri)[:8]})"
        )
        used_titles.add(v.normalise_name(title))
        titles[iri] = title
    return titles


def _edge_description(edge: ExportedEdge) -> str:
    description = " ".join(edge.descriptions)
    if edge.relation == RELATED:
        return description
    return f"{edge.relation}: {description}" if description else edge.relation


def _report_fields(report: CommunityReport) -> dict[str, Any]:
    findings = [{"explanation": f.explanation, "summary": f.summary} for f in report.findings]
    content = {
        "title": report.title,
        "summary": report.summary,
        "rating": report.rating,
        "rating_explanation": report.rating_explanation,
        "findings": findings,
    }
    finding_texts = (f"## {finding['summary']}\n\n{finding['explanation']}" for finding in findings)
    return {
        "id": report.iri,
        "title": report.title,
        "summary": report.summary,
        "full_content": "\n\n".join((f"# {report.title}", report.summary, *finding_texts)),
        "rank": report.rating,
        "rating_explanation": report.rating_explanation,
        "findings": findings,
        "full_content_json": json.dumps(content, ensure_ascii=False),
    }


_COLUMNS = {
    "documents": "id human_readable_id:i title text text_unit_ids:S creation_date",
    "text_units": "id human_readable_id:i text n_tokens:i document_id document_ids:S entity_ids:S"
    " relationship_ids:S covariate_ids:S",
    "entities": "id human_readable_id:i title type description text_unit_ids:S frequency:i"
    " degree:i",
    "relationships": "id human_readable_id:i source target description weight:f combined_degree:i"
    " text_unit_ids:S",
    "covariates": "id human_readable_id:i covariate_type type description subject_id object_id"
    " status start_date end_date source_text text_unit_id",
    "communities": "id human_readable_id:i community:i level:i parent:i children:I title"
    " entity_ids:S relationship_ids:S text_unit_ids:S period size:i",
    "community_reports": "id human_readable_id:i community:i level:i parent:i children:I title"
    " summary full_content rank:f rating_explanation findings:F full_content_json period size:i",
}
"""The columns of each table: texts, whole numbers (i), numbers (f), lists of texts (S) and of whole
numbers (I), findings (F)."""


def _table_schemas() -> dict[str, pyarrow.Schema]:
    from pyarrow import float64, int64, list_, schema, string, struct

    finding = struct([("explanation", string()), ("summary", string())])
    kinds = {
        "": string(),
        "i": int64(),
        "f": float64(),
        "S": list_(string()),
        "I": list_(int64()),
        "F": list_(finding),
    }
    return {
        name: schema([(c.partition(":")[0], kinds[c.partition(":")[2]]) for c in columns.split()])
        for name, columns in _COLUMNS.items()
    }


def _build_table(rows: Sequence[Mapping[str, Any]], schema: pyarrow.Schema) -> pyarrow.Table:
    from pyarrow import Table

    return Table.from_pylist(list(rows), schema=schema)
