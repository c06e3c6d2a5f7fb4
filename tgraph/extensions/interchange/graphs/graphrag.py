"""GraphRAG's tables (parquet), of every generation.

Versions 0 and 1 write ``create_final_NAME.parquet``, later ones ``NAME.parquet``; version 0 calls
an entity's title ``name``, a document's text ``raw_content``, and says of communities only by nodes
who is in them; versions 0 to 2 list the documents of a text unit, version 3 names one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
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
)
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
from tgraph.model import ClaimStatus, ExtractedClaim, ExtractedEntity, ExtractedRelationship

TABLES = (
    *("documents", "text_units", "entities", "relationships"),
    *("covariates", "communities", "community_reports", "nodes"),
)
_FIRST = "create_final_"
_STATUSES: Mapping[str, ClaimStatus] = {"TRUE": "TRUE", "FALSE": "FALSE"}
_NOTHING = frozenset({"", "none", "null", "nan", "-1"})
_AT_ONCE = 1_000
_REFERENCE = re.compile(r"(?i)\b(entities|relationships)\s*\(([\d\s,]+)")
_DIGITS = re.compile(r"\d+")

Row = Mapping[str, Any]


class GraphRagReader:
    """Reads a folder of tables."""

    kind = "graphrag"

    def recognises(self, path: str) -> bool:
        return {"entities", "relationships"} <= _tables(path).keys()

    def read(self, path: str, skipped: OnSkipped) -> ImportedGraph:
        tables = _tables(path)
        if not {"entities", "relationships"} & tables.keys():
            raise IngestError(path, "There are no tables of GraphRAG in it.")
        return _GraphRagFolder(path, tables, skipped).read()


def _tables(path: str) -> dict[str, Path]:
    """The tables in a folder; where generations lie side by side, the later."""
    folder = Path(path)
    found = {}
    for name in TABLES:
        for file in (f"{name}.parquet", f"{_FIRST}{name}.parquet"):
            if name not in found and (folder / file).is_file():
                found[name] = folder / file
    return found


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a parquet file, a batch at a time. ``IngestError`` where it can't be read."""
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError as error:
        reason = "pyarrow, which reads parquet, isn't installed."
        remedy = 'Install it with `pip install "tgraph-rag[parquet]"`.'
        raise IngestError(str(path), reason, remedy) from error
    try:
        with parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(_AT_ONCE):
                yield from batch.to_pylist()
    except (ArrowException, OSError) as error:
        raise IngestError(str(path), f"It is no parquet file that can be read: {error}") from error


class _GraphRagFolder:
    """A folder of tables, read one after the other."""

    def __init__(self, path: str, tables: Mapping[str, Path], skipped: OnSkipped) -> None:
        self._path = path
        self._tables = tables
        self._skipped = skipped
        self._titles: dict[str, str] = {}
        self._edges: dict[str, tuple[str, str]] = {}
        self._numbers: dict[str, str] = {}
        self._tie_numbers: dict[str, tuple[str, str]] = {}

    def read(self) -> ImportedGraph:
        documents = [
            TextDocument(_text(row, "id"), _text(row, "title"), _text(row, "text", "raw_content"))
            for row in self._rows("documents")
        ]
        units = [
            TextUnit(
                _text(row, "id"),
                _text(row, "text", "chunk"),
                tuple(_texts(row, "document_ids")) or tuple(_texts(row, "document_id")),
            )
            for row in self._rows("text_units")
        ]
        readings = UnitReadings(unit.id for unit in units)
        self._read_entities(readings)
        self._read_relationships(readings)
        self._read_claims(readings)
        names = {v.entity_iri(one.name) for one in readings.entities.values()}
        given = self._communities(names)
        reports = ReportDocument(f"{self._path}/community reports", given, readings, self._referred)
        found = documents_of(documents, units, readings, self._path)
        return ImportedGraph("graphrag", _chained(found, reports.imported()), reports.communities)

    def _referred(self, text: str) -> Referred:
        """What the numbers in a report's text stand for, as in ``[Data: Entities (5, 7)]``."""
        found: dict[str, set[str]] = {"entities": set(), "relationships": set()}
        for kind, numbers in _REFERENCE.findall(text):
            found[kind.casefold()].update(_DIGITS.findall(numbers))
        entities = (self._numbers[n] for n in found["entities"] if n in self._numbers)
        ties = (self._tie_numbers[n] for n in found["relationships"] if n in self._tie_numbers)
        return Referred(frozenset(entities), frozenset(ties))

    def _rows(self, name: str) -> Iterator[Row]:
        if name in self._tables:
            yield from read_rows(self._tables[name])

    def _skip(self, table: str, row: int, reason: str) -> None:
        self._skipped(SkippedRow(self._tables[table].name, row, reason))

    def _read_entities(self, readings: UnitReadings) -> None:
        for number, row in enumerate(self._rows("entities"), 1):
            name = _text(row, "title", "name")
            if not v.normalise_name(name):
                self._skip("entities", number, "an entity without a title")
                continue
            self._titles[_text(row, "id")] = name
            self._numbers[_text(row, "human_readable_id", "short_id")] = name
            kind, said = _text(row, "type"), _text(row, "description")
            readings.add_entity(
                ExtractedEntity(name, kind or "concept", said), _texts(row, "text_unit_ids")
            )

    def _read_relationships(self, readings: UnitReadings) -> None:
        for number, row in enumerate(self._rows("relationships"), 1):
            source, target = _text(row, "source"), _text(row, "target")
            if not v.normalise_name(source) or not v.normalise_name(target):
                self._skip("relationships", number, "a relationship without its two ends")
                continue
            self._edges[_text(row, "id")] = (source, target)
            self._tie_numbers[_text(row, "human_readable_id", "short_id")] = (source, target)
            relationship = ExtractedRelationship(
                source,
                RELATED,
                target,
                _text(row, "description"),
                strength=_number(row.get("weight"), 1.0),
            )
            readings.add_relationship(relationship, _texts(row, "text_unit_ids"))

    def _read_claims(self, readings: UnitReadings) -> None:
        for number, row in enumerate(self._rows("covariates"), 1):
            subject = self._named(_text(row, "subject_id"))
            if not v.normalise_name(subject):
                self._skip("covariates", number, "a claim about nobody")
                continue
            claim = ExtractedClaim(
                subject=subject,
                object=self._named(_text(row, "object_id")),
                type=_text(row, "type") or _text(row, "covariate_type") or "claim",
                status=_STATUSES.get(_text(row, "status").upper(), "SUSPECTED"),
                description=_text(row, "description"),
                started=date_literal(_text(row, "start_date")),
                ended=date_literal(_text(row, "end_date")),
            )
            readings.add_claim(
                SourcedClaim(claim, _text(row, "source_text")), _texts(row, "text_unit_id")
            )

    def _named(self, text: str) -> str:
        """Who is meant by a title, or by an entity's id."""
        return "" if text.casefold() in _NOTHING else self._titles.get(text, text)

    # --- communities ---

    def _communities(self, names: Set[str]) -> list[ImportedCommunity]:
        rows = list(self._rows("communities"))
        members = self._members(rows)
        reports = {_key(row, "community"): row for row in self._rows("community_reports")}
        levels: dict[str, int] = {}
        told: dict[str, Row] = {}
        for row in (*rows, *reports.values()):
            key = _key(row, "community") or _key(row, "id")
            told.setdefault(key, row)
            levels.setdefault(key, int(_number(row.get("level"), 0)))
        known = {key: frozenset(members.get(key, ())) & names for key in told}
        return [
            ImportedCommunity(
                key,
                levels[key],
                known[key],
                _parent(key, row, levels, known),
                _report(reports[key]) if key in reports else None,
                _text(row, "title") or f"Community {key}",
            )
            for key, row in sorted(told.items(), key=lambda item: (levels[item[0]], item[0]))
            if known[key]
        ]

    def _members(self, rows: Iterable[Row]) -> dict[str, set[str]]:
        """Who is in each community: as it says itself, else as nodes do, else by its edges."""
        found: dict[str, set[str]] = {}
        for row in rows:
            titles = [self._titles[i] for i in _texts(row, "entity_ids") if i in self._titles]
            found[_key(row, "community") or _key(row, "id")] = set(map(v.entity_iri, titles))
        for row in self._rows("nodes"):
            key, name = _key(row, "community"), _text(row, "title")
            if key and v.normalise_name(name):
                found.setdefault(key, set()).add(v.entity_iri(name))
        for row in rows:
            key = _key(row, "community") or _key(row, "id")
            if not found[key]:
                ends = (self._edges.get(i, ()) for i in _texts(row, "relationship_ids"))
                found[key] = {v.entity_iri(name) for pair in ends for name in pair}
        return found


def _chained(
    documents: Iterable[ImportedDocument], last: ImportedDocument | None
) -> Iterator[ImportedDocument]:
    yield from documents
    if last is not None:
        yield last


def _parent(
    key: str, row: Row, levels: Mapping[str, int], members: Mapping[str, frozenset[str]]
) -> str | None:
    """The community of the level before that contains this one: as it says, or by the members."""
    if (said := _key(row, "parent")) in levels:
        return said
    above = (k for k, level in levels.items() if level == levels[key] - 1)
    return min((k for k in above if members[k] >= members[key]), default=None)


def _report(row: Row) -> ImportedReport:
    rating = row.get("rank", row.get("rating"))
    return ImportedReport(
        title=_text(row, "title"),
        summary=_text(row, "summary"),
        rating=None if rating is None else _number(rating, 0.0),
        rating_reason=_text(row, "rating_explanation", "rank_explanation"),
        findings=tuple(_findings(row)),
    )


def _findings(row: Row) -> Iterator[tuple[str, str]]:
    """The findings of a report, in whatever form: structs, texts, or JSON of all of it."""
    found = row.get("findings")
    if isinstance(found, str):
        found = _json(found)
    if not isinstance(found, Sequence) or not found:
        whole = _json(_text(row, "full_content_json"))
        found = whole.get("findings") if isinstance(whole, Mapping) else None
    for each in found if isinstance(found, Sequence) else ():
        if isinstance(each, Mapping):
            summary, said = _text(each, "summary"), _text(each, "explanation")
            if summary or said:
                yield summary, said
        elif each:
            yield str(each), ""


def _json(text: str) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return None


# --- cells ---


def _text(row: Row, *names: str) -> str:
    """The first of the cells that there is, as text; lone surrogates become replacement marks."""
    value = next((row[name] for name in names if row.get(name) is not None), "")
    text = str(value).encode("utf-8", "replace").decode()
    return text if names[0] == "text" else text.strip()


def _texts(row: Row, name: str) -> list[str]:
    """A list of ids; of a single one a list of it."""
    value = row.get(name)
    if isinstance(value, str):
        return [value] if value else []
    return [str(each) for each in value or () if each is not None]


def _key(row: Row, name: str) -> str:
    """The number of a community as text; empty where there is none."""
    value = row.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None else str(value).strip()
    return "" if text.casefold() in _NOTHING else text


def _number(value: Any, otherwise: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return otherwise
    return number if abs(number) < float("inf") else otherwise


_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d:\d\d:\d\d(?:\.\d{1,6})?)(Z?))?)?)?")


def date_literal(text: str) -> Literal | None:
    """The date as exactly as it is said; midnight is no time, and what is no date is none."""
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
