"""An SQLite database of communities and reports for a knowledge generation, with report counts
for questions.

Rows are read singly: a question looks at few reports. The file is stored beside the vectors and
derived like the vectors: if the file is missing, damaged or of another generation, the
statements are read instead. A run with known changes copies all other rows. Entities and
communities have numbers in the database, so that memberships need little space."""

from __future__ import annotations

import json
import threading
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from tgraph.index.communities.communities import read_communities
from tgraph.index.data_files import ONLY_FILE, DataFile, DataSet, FileHead, write_data
from tgraph.index.reports.report import read_reports
from tgraph.index.sqlite_files import Values, copy_to, in_memory, open_database, rows_of
from tgraph.model import Community, CommunityReport, Finding
from tgraph.store.base import Store

if TYPE_CHECKING:
    import sqlite3

FILES = DataSet("communities", format=1)

_SCHEMA = """
CREATE TABLE entity (number INTEGER PRIMARY KEY, iri TEXT UNIQUE, communities BLOB);
CREATE TABLE community (number INTEGER PRIMARY KEY, iri TEXT UNIQUE, level INTEGER, parent TEXT,
                        children TEXT, members BLOB);
CREATE TABLE report (community INTEGER PRIMARY KEY, iri TEXT, level INTEGER, title TEXT,
                     summary TEXT, rating REAL, explanation TEXT, findings BLOB,
                     occurrences INTEGER, cost INTEGER, tokens INTEGER);
CREATE INDEX report_iri ON report (iri);
"""
_COMMUNITIES = "SELECT iri, level, members, parent, children FROM community"
_ALL_COMMUNITIES = f"{_COMMUNITIES} ORDER BY level, iri"
_REPORTS = """
SELECT report.iri, community.iri, report.level, title, summary, rating, explanation, findings
FROM report JOIN community ON community.number = community
"""
_ALL_REPORTS = f"{_REPORTS} ORDER BY community.level, community.iri"
_INCOMPLETE = "WHERE occurrences IS NULL OR cost IS NULL OR tokens IS NULL"
_UNCOUNTED = f"{_REPORTS} {_INCOMPLETE}"
_COMMUNITY_OF = "SELECT community.iri FROM report JOIN community ON community.number = community"
_UNCOUNTED_COMMUNITIES = f"{_COMMUNITY_OF} {_INCOMPLETE}"
_OUTLINE = """
SELECT community.number, community.iri, community.level, ifnull(report.iri, '') FROM community
LEFT JOIN report ON report.community = community.number
ORDER BY community.level, community.iri
"""
_PUT_COMMUNITY = "INSERT INTO community VALUES (?, ?, ?, ?, ?, ?)"
_PUT_REPORT = "INSERT INTO report VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)"
_PUT_ENTITY = """
INSERT INTO entity VALUES (?, ?, ?)
ON CONFLICT (number) DO UPDATE SET communities = excluded.communities
"""
_COUNT = "UPDATE report SET occurrences = ?, cost = ?, tokens = ? WHERE iri = ?"


@dataclass(slots=True)
class Makers:
    """Authors of derived texts: reports except fallbacks, and combined descriptions; empty if
    unknown."""

    reports: str = ""
    descriptions: str = ""


@dataclass(frozen=True, slots=True)
class ReportCounts:
    """Report counts: chunks mentioning community members (``occurrences``), and token costs.

    ``cost`` is the cost as a candidate among others; ``tokens`` is the cost of the report's
    whole line among other reports, in the encoding of the table. None means not yet counted."""

    occurrences: int | None = None
    cost: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CommunityOutline:
    """A community's number, level and IRI, with the report IRI, empty if missing."""

    number: int
    iri: str
    level: int
    report: str


class ReportTable:
    """Communities without edges, and reports by community. Thread-safe.

    ``encoding`` is the encoding used to count ``ReportCounts.tokens``. Reading raises
    ``StoreError`` if the file is damaged."""

    def __init__(self, connection: sqlite3.Connection, encoding: str = "") -> None:
        self._connection = connection
        self.encoding = encoding
        self._lock = threading.Lock()
        self.close = finalize(self, connection.close)

    @classmethod
    def from_reports(
        cls, communities: Iterable[Community], reports: Mapping[str, CommunityReport]
    ) -> ReportTable:
        """Return an in-memory table of communities and reports, lacking counts; reports of
        other communities are left out."""
        connection = in_memory()
        connection.executescript(_SCHEMA)
        _change_tables(connection, (), communities, reports)
        return cls(connection)

    def with_changes(
        self,
        gone: Collection[str],
        communities: Iterable[Community],
        reports: Mapping[str, CommunityReport | None],
    ) -> ReportTable:
        """Return an in-memory copy without ``gone`` communities, updated with new or changed
        communities and reports.

        A report of None removes the community's report; new reports are to be counted. The
        report of a removed community is removed too; nothing of removed content is left in the
        file."""
        connection = in_memory()
        with self._lock:
            self._connection.backup(connection)
        connection.execute("PRAGMA secure_delete = ON")
        _change_tables(connection, gone, communities, reports)
        return ReportTable(connection, self.encoding)

    # --- reading ---

    def outline(self) -> list[CommunityOutline]:
        """Return outlines of all communities, sorted by level and IRI."""
        return [CommunityOutline(*row) for row in self._query_all(_OUTLINE)]

    @property
    def is_empty(self) -> bool:
        """Return whether the table contains no report."""
        return not self._query_all("SELECT 1 FROM report LIMIT 1")

    def communities(self, iris: Collection[str] | None = None) -> dict[str, Community]:
        """Return communities by IRI: existing communities among ``iris``, or all, in
        ``outline`` order."""
        if iris is None:
            rows = self._query_all(_ALL_COMMUNITIES)
            names = dict(self._query_all("SELECT number, iri FROM entity"))
        else:
            rows = self._query_keys(f"{_COMMUNITIES} WHERE iri = ?", iris)
            numbers = {number for _, _, members, *_ in rows for number in array("I", members)}
            entity_rows = self._query_rows(
                "SELECT number, iri FROM entity WHERE number = ?", zip(numbers)
            )
            names = {number: iri for [(number, iri)] in entity_rows}
        return {
            iri: Community(
                iri,
                level,
                tuple(sorted(names[number] for number in array("I", members))),
                (),
                parent,
                tuple(json.loads(children)),
            )
            for iri, level, members, parent, children in rows
        }

    def reports(self, communities: Collection[str] | None = None) -> dict[str, CommunityReport]:
        """Return reports by community: reports of the given communities, or all, in ``outline``
        order."""
        if communities is None:
            return dict(map(_parse_report, self._query_all(_ALL_REPORTS)))
        return dict(
            map(_parse_report, self._query_keys(f"{_REPORTS} WHERE community.iri = ?", communities))
        )

    def reports_called(self, iris: Collection[str]) -> dict[str, CommunityReport]:
        """Return existing reports among the given report IRIs, by IRI."""
        rows = self._query_keys(f"{_REPORTS} WHERE report.iri = ?", iris)
        return {report.iri: report for _, report in map(_parse_report, rows)}

    def communities_of(self, entities: Collection[str]) -> dict[str, list[str]]:
        """Return community IRIs containing each entity."""
        rows = self._query_keys("SELECT iri, communities FROM entity WHERE iri = ?", entities)
        inside = {entity: array("I", numbers) for entity, numbers in rows}
        community_numbers = {number for numbers in inside.values() for number in numbers}
        community_rows = self._query_rows(
            "SELECT number, iri FROM community WHERE number = ?", zip(community_numbers)
        )
        names = {number: iri for [(number, iri)] in community_rows}
        return {e: [names[number] for number in numbers] for e, numbers in inside.items()}

    def memberships(self) -> Iterator[array[int]]:
        """Yield each entity's community numbers."""
        return (
            array("I", numbers) for (numbers,) in self._query_all("SELECT communities FROM entity")
        )

    def counts(self, report: str) -> ReportCounts:
        """Return counts of the report; empty counts if unknown."""
        query = "SELECT occurrences, cost, tokens FROM report WHERE iri = ?"
        rows = self._query_keys(query, [report])
        return ReportCounts(*rows[0]) if rows else ReportCounts()

    def tokens(self) -> dict[str, int]:
        """Return ``ReportCounts.tokens`` by report IRI, as far as counted."""
        return dict(self._query_all("SELECT iri, tokens FROM report WHERE tokens IS NOT NULL"))

    def _query_all(self, query: str) -> list[Any]:
        return self._query_rows(query, [()])[0]

    def _query_keys(self, query: str, keys: Iterable[str]) -> list[Any]:
        return [row for rows in self._query_rows(query, zip(dict.fromkeys(keys))) for row in rows]

    def _query_rows(self, query: str, values: Iterable[Values]) -> list[list[Any]]:
        return rows_of(self._connection, self._lock, query, values)

    # --- counting and keeping ---

    def list_uncounted(self, encoding: str) -> dict[str, CommunityReport]:
        """Return reports with missing counts, by community; the encoding applies from now on."""
        if encoding != self.encoding:
            self._connection.execute("UPDATE report SET tokens = NULL")
            self.encoding = encoding
        return dict(map(_parse_report, self._query_all(_UNCOUNTED)))

    def uncounted_communities(self) -> list[str]:
        """The communities of the reports of which something is to be counted, in the encoding of
        the table."""
        return [iri for (iri,) in self._query_all(_UNCOUNTED_COMMUNITIES)]

    def count(self, counts: Mapping[str, ReportCounts]) -> None:
        """Store report counts by report IRI."""
        rows = (
            (report_counts.occurrences, report_counts.cost, report_counts.tokens, iri)
            for iri, report_counts in counts.items()
        )
        with self._lock, self._connection:
            self._connection.executemany(_COUNT, rows)

    def save(self, folder: Path, generation: int, makers: Makers | None = None) -> None:
        """Save the table in the folder, atomically and durably, for a knowledge generation,
        including its makers.

        Raises ``StoreError`` if the disk fails."""
        self._connection.commit()
        file = write_data(folder, FILES.stem, partial(copy_to, self._connection))
        facts = {"encoding": self.encoding, "makers": asdict(makers or Makers())}
        FILES.write_head(folder, generation, {ONLY_FILE: file}, **facts)


def stored_reports(store: Store) -> ReportTable:
    """Return a table of communities and reports read from the store, lacking counts."""
    return ReportTable.from_reports(read_communities(store, edges=False), read_reports(store))


def load_reports(folder: Path, generation: int) -> ReportTable | None:
    """Load the folder's report table; return None for missing, damaged or outdated tables."""

    def open_table(files: Mapping[str, DataFile], head: FileHead) -> ReportTable:
        return ReportTable(open_database(folder, files[ONLY_FILE]), head["encoding"])

    return FILES.load(folder, generation, open_table)


def makers_of(folder: Path, generation: int) -> Makers:
    """Return makers of the generation's derived texts, as far as the folder records the makers."""
    makers = FILES.load(folder, generation, lambda files, head: Makers(**head["makers"]))
    return makers or Makers()


def _parse_report(row: Any) -> tuple[str, CommunityReport]:
    iri, community, level, title, summary, rating, explanation, findings = row
    finding_rows = json.loads(zlib.decompress(findings))
    finding_list = tuple(
        Finding(name, summary_text, text, tuple(cites))
        for name, summary_text, text, cites in finding_rows
    )
    return community, CommunityReport(
        iri, community, level, title, summary, rating, explanation, finding_list
    )


class _TableChange:
    """A pending change of the report tables.

    Entities are written at the end, with their final communities; entities outside all
    communities are left out."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers: dict[str, int] = {}
        self._entities: dict[str, int] = {}
        self._inside: dict[str, set[int]] = {}
        self._free = {name: self._last_number(name) + 1 for name in ("entity", "community")}

    def take_out(self, community: str) -> None:
        """Remove the community, if present, reserving its number."""
        query = "SELECT number, members FROM community WHERE iri = ?"
        for number, members in self._connection.execute(query, (community,)).fetchall():
            self._numbers[community] = number
            for member in array("I", members):
                query = "SELECT iri FROM entity WHERE number = ?"
                ((entity,),) = self._connection.execute(query, (member,))
                self._entity_communities(entity).discard(number)
            self._connection.execute("DELETE FROM community WHERE number = ?", (number,))

    def put_in(self, community: Community) -> None:
        number = self._numbers.pop(community.iri, None) or self._next_number("community")
        members = array("I")
        for entity in community.members:
            self._entity_communities(entity).add(number)
            members.append(self._entities[entity])
        children = json.dumps(community.children)
        row = (number, community.iri, community.level, community.parent, children)
        self._connection.execute(_PUT_COMMUNITY, (*row, members.tobytes()))

    def put_report(self, community: str, report: CommunityReport | None) -> None:
        """Replace the report of an existing community."""
        query = "SELECT number FROM community WHERE iri = ?"
        for (number,) in self._connection.execute(query, (community,)).fetchall():
            self._connection.execute("DELETE FROM report WHERE community = ?", (number,))
            if report is not None:
                self._connection.execute(_PUT_REPORT, (number, *_as_row(report)))

    def finish(self) -> None:
        gone = ((number,) for number in self._numbers.values())
        self._connection.executemany("DELETE FROM report WHERE community = ?", gone)
        for entity, communities in self._inside.items():
            number, packed = self._entities[entity], array("I", sorted(communities)).tobytes()
            if packed:
                self._connection.execute(_PUT_ENTITY, (number, entity, packed))
            else:
                self._connection.execute("DELETE FROM entity WHERE number = ?", (number,))
        self._connection.commit()

    def _entity_communities(self, entity: str) -> set[int]:
        """Return numbers of communities containing the entity."""
        if entity not in self._inside:
            query = "SELECT number, communities FROM entity WHERE iri = ?"
            row = self._connection.execute(query, (entity,)).fetchone()
            self._entities[entity] = row[0] if row else self._next_number("entity")
            self._inside[entity] = set(array("I", row[1])) if row else set()
        return self._inside[entity]

    def _next_number(self, table: str) -> int:
        self._free[table] += 1
        return self._free[table] - 1

    def _last_number(self, table: str) -> int:
        query = f"SELECT ifnull(max(number), 0) FROM {table}"  # noqa: S608
        number: int = self._connection.execute(query).fetchone()[0]
        return number


def _change_tables(
    connection: sqlite3.Connection,
    gone: Iterable[str],
    communities: Iterable[Community],
    reports: Mapping[str, CommunityReport | None],
) -> None:
    """Update the tables: remove ``gone`` communities, then write the given communities and
    reports."""
    change, fresh = _TableChange(connection), list(communities)
    for iri in dict.fromkeys([*gone, *(community.iri for community in fresh)]):
        change.take_out(iri)
    for community in fresh:
        change.put_in(community)
    for iri, report in reports.items():
        change.put_report(iri, report)
    change.finish()


def _as_row(report: CommunityReport) -> tuple[object, ...]:
    findings = [[f.iri, f.summary, f.explanation, f.cites] for f in report.findings]
    text = json.dumps(findings, ensure_ascii=False, separators=(",", ":"))
    return (
        report.iri,
        report.level,
        report.title,
        report.summary,
        report.rating,
        report.rating_explanation,
        zlib.compress(text.encode()),
    )
