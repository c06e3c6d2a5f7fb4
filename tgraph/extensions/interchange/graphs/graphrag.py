"""GraphRAG's tables (parquet), of every generation.

Versions 0 and 1 write ``create_final_NAME.parquet``, later ones ``NAME.parquet``; version 0 calls
an entity's title ``name``, a document's text ``raw_content``, and says of communities only by nodes
who is in them; versions 0 to 2 list the documents of a text unit, version 3 names one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pyoxigraph import Literal

from tgraph import vocabulary as v
from tgraph.errors import IngestError
from tgraph.extensions.interchange.graphs.base import (
    ImportedDocument,
    ImportedGraph,
    OnSkipped,
    SkippedRow,
    read_number,
)
from tgraph.extensions.interchange.graphs.isolated_files import JsonRow, read_table
from tgraph.extensions.interchange.graphs.reports import Referred, ReportDocument
from tgraph.extensions.interchange.graphs.text_units import (
    RELATED,
    SourcedClaim,
    TextDocument,
    TextUnit,
    UnitReadings,
    documents_of,
)
from tgraph.extract.imported_communities import ImportedCommunity, ImportedReport
from tgraph.foreign_bytes import parse_json
from tgraph.ingest.base import DEFAULT_LIMITS, FileLimits
from tgraph.model import ClaimStatus, ExtractedClaim, ExtractedEntity, ExtractedRelationship

TABLES = (
    *("documents", "text_units", "entities", "relationships"),
    *("covariates", "communities", "community_reports", "nodes"),
)
_FIRST = "create_final_"
_STATUSES: Mapping[str, ClaimStatus] = {"TRUE": "TRUE", "FALSE": "FALSE"}
_NOTHING = frozenset({"", "none", "null", "nan", "-1"})
_REFERENCE = re.compile(r"(?i)\b(entities|relationships)\s*\(([\d\s,]+)")
_LONGEST_REPORT = 1_000_000
"""Characters of a report in JSON."""
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class GraphRagReader:
    """Reads a folder of tables."""

    limits: FileLimits = DEFAULT_LIMITS
    kind: str = field(default="graphrag", init=False)

    def recognises(self, path: str) -> bool:
        return {"entities", "relationships"} <= _find_tables(path).keys()

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        tables = _find_tables(path)
        if not {"entities", "relationships"} & tables.keys():
            raise IngestError(path, "There are no tables of GraphRAG in it.")
        return _GraphRagFolder(path, tables, skipped, self.limits).read()


def _find_tables(path: str) -> dict[str, Path]:
    """Return table paths in a folder; of several generations, the later."""
    folder = Path(path)
    tables = {}
    for name in TABLES:
        for file in (f"{name}.parquet", f"{_FIRST}{name}.parquet"):
            if name not in tables and (folder / file).is_file():
                tables[name] = folder / file
    return tables


class _GraphRagFolder:
    """A folder of tables, read sequentially."""

    def __init__(
        self, path: str, tables: Mapping[str, Path], skipped: OnSkipped, limits: FileLimits
    ) -> None:
        self._path = path
        self._limits = limits
        self._tables = tables
        self._skipped = skipped
        self._titles: dict[str, str] = {}
        self._edges: dict[str, tuple[str, str]] = {}
        self._numbers: dict[str, str] = {}
        self._tie_numbers: dict[str, tuple[str, str]] = {}

    def read(self) -> ImportedGraph:
        documents = [
            TextDocument(
                _read_text(row, "id"),
                _read_text(row, "title"),
                _read_text(row, "text", "raw_content"),
            )
            for row in self._read_table("documents")
        ]
        units = [
            TextUnit(
                _read_text(row, "id"),
                _read_text(row, "text", "chunk"),
                tuple(_read_ids(row, "document_ids")) or tuple(_read_ids(row, "document_id")),
            )
            for row in self._read_table("text_units")
        ]
        readings = UnitReadings(unit.id for unit in units)
        self._read_entities(readings)
        self._read_relationships(readings)
        self._read_claims(readings)
        names = {v.entity_iri(entity.name) for entity in readings.entities.values()}
        communities = self._read_communities(names)
        reports = ReportDocument(
            f"{self._path}/community reports", communities, readings, self._resolve_references
        )
        text_documents = documents_of(documents, units, readings, self._path)
        return ImportedGraph(
            "graphrag",
            _append_document(text_documents, reports.build_document()),
            reports.communities,
        )

    def _resolve_references(self, text: str) -> Referred:
        """Return entities and relationships referenced by number in report text, as in ``[Data:
        Entities (5, 7)]``."""
        numbers_by_kind: dict[str, set[str]] = {"entities": set(), "relationships": set()}
        for kind, numbers in _REFERENCE.findall(text):
            numbers_by_kind[kind.casefold()].update(_DIGITS.findall(numbers))
        entities = (self._numbers[n] for n in numbers_by_kind["entities"] if n in self._numbers)
        ties = (
            self._tie_numbers[n] for n in numbers_by_kind["relationships"] if n in self._tie_numbers
        )
        return Referred(frozenset(entities), frozenset(ties))

    def _read_table(self, name: str) -> Iterator[JsonRow]:
        if name in self._tables:
            yield from read_table(self._tables[name], self._limits)

    def _skip_row(self, table: str, row: int, reason: str) -> None:
        self._skipped(SkippedRow(self._tables[table].name, row, reason))

    def _read_entities(self, readings: UnitReadings) -> None:
        for number, row in enumerate(self._read_table("entities"), 1):
            name = _read_text(row, "title", "name")
            if not v.normalise_name(name):
                self._skip_row("entities", number, "an entity without a title")
                continue
            self._titles[_read_text(row, "id")] = name
            self._numbers[_read_text(row, "human_readable_id", "short_id")] = name
            kind, description = _read_text(row, "type"), _read_text(row, "description")
            readings.add_entity(
                ExtractedEntity(name, kind or "concept", description),
                _read_ids(row, "text_unit_ids"),
            )

    def _read_relationships(self, readings: UnitReadings) -> None:
        for number, row in enumerate(self._read_table("relationships"), 1):
            source, target = _read_text(row, "source"), _read_text(row, "target")
            if not v.normalise_name(source) or not v.normalise_name(target):
                self._skip_row("relationships", number, "a relationship without its two ends")
                continue
            self._edges[_read_text(row, "id")] = (source, target)
            self._tie_numbers[_read_text(row, "human_readable_id", "short_id")] = (source, target)
            relationship = ExtractedRelationship(
                source,
                RELATED,
                target,
                _read_text(row, "description"),
                strength=read_number(row.get("weight"), 1.0),
            )
            readings.add_relationship(relationship, _read_ids(row, "text_unit_ids"))

    def _read_claims(self, readings: UnitReadings) -> None:
        for number, row in enumerate(self._read_table("covariates"), 1):
            subject = self._entity_title(_read_text(row, "subject_id"))
            if not v.normalise_name(subject):
                self._skip_row("covariates", number, "a claim about nobody")
                continue
            claim = ExtractedClaim(
                subject=subject,
                object=self._entity_title(_read_text(row, "object_id")),
                type=_read_text(row, "type") or _read_text(row, "covariate_type") or "claim",
                status=_STATUSES.get(_read_text(row, "status").upper(), "SUSPECTED"),
                description=_read_text(row, "description"),
                started=date_literal(_read_text(row, "start_date")),
                ended=date_literal(_read_text(row, "end_date")),
            )
            readings.add_claim(
                SourcedClaim(claim, _read_text(row, "source_text")), _read_ids(row, "text_unit_id")
            )

    def _entity_title(self, text: str) -> str:
        """Return the entity title for a title or entity id."""
        return "" if text.casefold() in _NOTHING else self._titles.get(text, text)

    # --- communities ---

    def _read_communities(self, names: Set[str]) -> list[ImportedCommunity]:
        rows = list(self._read_table("communities"))
        members = self._read_members(rows)
        reports = {
            _community_key(row, "community"): row for row in self._read_table("community_reports")
        }
        levels: dict[str, int] = {}
        community_rows: dict[str, JsonRow] = {}
        for row in (*rows, *reports.values()):
            key = _community_key(row, "community") or _community_key(row, "id")
            community_rows.setdefault(key, row)
            levels.setdefault(key, int(read_number(row.get("level"), 0)))
        known_members = {key: frozenset(members.get(key, ())) & names for key in community_rows}
        return [
            ImportedCommunity(
                key,
                levels[key],
                known_members[key],
                _find_parent(key, row, levels, known_members),
                _read_report(reports[key]) if key in reports else None,
                _read_text(row, "title") or f"Community {key}",
            )
            for key, row in sorted(
                community_rows.items(), key=lambda item: (levels[item[0]], item[0])
            )
            if known_members[key]
        ]

    def _read_members(self, rows: Iterable[JsonRow]) -> dict[str, set[str]]:
        """Return community members: from the community row, otherwise from nodes, otherwise
        from edges."""
        members: dict[str, set[str]] = {}
        for row in rows:
            titles = [self._titles[i] for i in _read_ids(row, "entity_ids") if i in self._titles]
            members[_community_key(row, "community") or _community_key(row, "id")] = set(
                map(v.entity_iri, titles)
            )
        for row in self._read_table("nodes"):
            key, name = _community_key(row, "community"), _read_text(row, "title")
            if key and v.normalise_name(name):
                members.setdefault(key, set()).add(v.entity_iri(name))
        for row in rows:
            key = _community_key(row, "community") or _community_key(row, "id")
            if not members[key]:
                ends = (self._edges.get(i, ()) for i in _read_ids(row, "relationship_ids"))
                members[key] = {v.entity_iri(name) for pair in ends for name in pair}
        return members


def _append_document(
    documents: Iterable[ImportedDocument], last: ImportedDocument | None
) -> Iterator[ImportedDocument]:
    yield from documents
    if last is not None:
        yield last


def _find_parent(
    key: str, row: JsonRow, levels: Mapping[str, int], members: Mapping[str, frozenset[str]]
) -> str | None:
    """Return the parent community one level up: as stated, otherwise by members."""
    if (stated_parent := _community_key(row, "parent")) in levels:
        return stated_parent
    above = (k for k, level in levels.items() if level == levels[key] - 1)
    return min((k for k in above if members[k] >= members[key]), default=None)


def _read_report(row: JsonRow) -> ImportedReport:
    rating = row.get("rank", row.get("rating"))
    return ImportedReport(
        title=_read_text(row, "title"),
        summary=_read_text(row, "summary"),
        rating=None if rating is None else read_number(rating, 0.0),
        rating_reason=_read_text(row, "rating_explanation", "rank_explanation"),
        findings=tuple(_read_findings(row)),
    )


def _read_findings(row: JsonRow) -> Iterator[tuple[str, str]]:
    """Yield report findings in any form: structs, texts, or JSON of the entire report."""
    entries = row.get("findings")
    if isinstance(entries, str):
        entries = _parse_json(entries)
    if not isinstance(entries, Sequence) or not entries:
        content = _parse_json(_read_text(row, "full_content_json"))
        entries = content.get("findings") if isinstance(content, Mapping) else None
    for entry in entries if isinstance(entries, Sequence) else ():
        if isinstance(entry, Mapping):
            summary, explanation = _read_text(entry, "summary"), _read_text(entry, "explanation")
            if summary or explanation:
                yield summary, explanation
        elif entry:
            yield str(entry), ""


def _parse_json(text: str) -> Any:
    with suppress(ValueError, RecursionError):
        return parse_json(text) if len(text) <= _LONGEST_REPORT else None
    return None


# --- cells ---


def _read_text(row: JsonRow, *names: str) -> str:
    """Return the leading non-null cell as text; lone surrogates become replacement marks."""
    value = next((row[name] for name in names if row.get(name) is not None), "")
    text = str(value).encode("utf-8", "replace").decode()
    return text if names[0] == "text" else text.strip()


def _read_ids(row: JsonRow, name: str) -> list[str]:
    """Return a list of ids; a single id becomes a list."""
    value = row.get(name)
    if isinstance(value, str):
        return [value] if value else []
    return [str(element) for element in value or () if element is not None]


def _community_key(row: JsonRow, name: str) -> str:
    """Return a community number as text, blank if missing."""
    value = row.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None else str(value).strip()
    return "" if text.casefold() in _NOTHING else text


_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d:\d\d:\d\d(?:\.\d{1,6})?)(Z?))?)?)?")


def date_literal(text: str) -> Literal | None:
    """Return a date literal with the stated precision.

    Midnight counts as no time; text that is no date gives None."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day, time, zone = match.groups()
    with suppress(ValueError):
        datetime.fromisoformat(f"{year}-{month or '01'}-{day or '01'}T{time or '00:00:00'}")
        if time and time.strip("0:."):
            return Literal(f"{year}-{month}-{day}T{time}{zone}", datatype=v.xsd("dateTime"))
        if day:
            return Literal(f"{year}-{month}-{day}", datatype=v.xsd("date"))
        if month:
            return Literal(f"{year}-{month}", datatype=v.xsd("gYearMonth"))
        return Literal(year, datatype=v.xsd("gYear"))
    return None
