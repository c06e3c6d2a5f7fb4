"""The communities and reports of one generation of knowledge in a database of SQLite, with what
questions would count of each report. They are read row by row: a question looks at few of them.

The file lies beside the vectors and is derived like them: where it is missing, damaged or of
another generation the statements are read instead. A run that knows what it changed takes over the
other rows. Entities and communities have numbers in it, so that who is in what takes little room.
"""

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
from tgraph.index.data_files import ONLY_FILE, DataFile, DataSet, Head, write_data
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
    """Who wrote all reports that are no fallback, and who gave all that has several descriptions
    one; empty where that isn't known."""

    reports: str = ""
    descriptions: str = ""


@dataclass(frozen=True, slots=True)
class ReportCounts:
    """Of a report in how many chunks the members of its community occur, and what it costs in
    tokens: as a candidate among others (``cost``), and its whole line among other reports
    (``tokens``, in the encoding of the table). None where that is to be counted."""

    occurrences: int | None = None
    cost: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CommunityOutline:
    """A community by its number, level and IRI; ``report`` is empty where it has none."""

    number: int
    iri: str
    level: int
    report: str


class ReportTable:
    """The communities, without their edges, and the reports by their community. Thread-safe.
    ``encoding`` is that in which ``ReportCounts.tokens`` are counted. Reading raises ``StoreError``
    where the file is damaged."""

    def __init__(self, connection: sqlite3.Connection, encoding: str = "") -> None:
        self._connection = connection
        self.encoding = encoding
        self._lock = threading.Lock()
        self.close = finalize(self, connection.close)

    @classmethod
    def of(
        cls, communities: Iterable[Community], reports: Mapping[str, CommunityReport]
    ) -> ReportTable:
        """A table of these, in memory, of which nothing is counted; reports of other communities
        are left out."""
        connection = in_memory()
        connection.executescript(_SCHEMA)
        _change(connection, (), communities, reports)
        return cls(connection)

    def changed(
        self,
        gone: Collection[str],
        communities: Iterable[Community],
        reports: Mapping[str, CommunityReport | None],
    ) -> ReportTable:
        """A copy in memory, without the communities that are ``gone``, with those that are new or
        other than they were, and with other reports (None: without one), which are to be counted.
        The report of a community that is gone goes with it; nothing of what is gone is left in the
        file."""
        connection = in_memory()
        with self._lock:
            self._connection.backup(connection)
        connection.execute("PRAGMA secure_delete = ON")
        _change(connection, gone, communities, reports)
        return ReportTable(connection, self.encoding)

    # --- reading ---

    def outline(self) -> list[CommunityOutline]:
        """All communities, by level and IRI."""
        return [CommunityOutline(*row) for row in self._all(_OUTLINE)]

    @property
    def is_empty(self) -> bool:
        """Whether there is no report at all."""
        return not self._all("SELECT 1 FROM report LIMIT 1")

    def communities(self, iris: Collection[str] | None = None) -> dict[str, Community]:
        """All, or those of these that there are, by IRI; all are in the order of ``outline``."""
        if iris is None:
            rows = self._all(_ALL_COMMUNITIES)
            names = dict(self._all("SELECT number, iri FROM entity"))
        else:
            rows = self._each(f"{_COMMUNITIES} WHERE iri = ?", iris)
            numbers = {number for _, _, members, *_ in rows for number in array("I", members)}
            found = self._rows("SELECT number, iri FROM entity WHERE number = ?", zip(numbers))
            names = {number: iri for [(number, iri)] in found}
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
        """All, or those of these communities, by community; all are in the order of ``outline``."""
        if communities is None:
            return dict(map(_report, self._all(_ALL_REPORTS)))
        return dict(map(_report, self._each(f"{_REPORTS} WHERE community.iri = ?", communities)))

    def reports_called(self, iris: Collection[str]) -> dict[str, CommunityReport]:
        """Those that there are of the reports, by their own IRI."""
        rows = self._each(f"{_REPORTS} WHERE report.iri = ?", iris)
        return {report.iri: report for _, report in map(_report, rows)}

    def communities_of(self, entities: Collection[str]) -> dict[str, list[str]]:
        """The communities that each of the entities is in."""
        rows = self._each("SELECT iri, communities FROM entity WHERE iri = ?", entities)
        inside = {entity: array("I", numbers) for entity, numbers in rows}
        wanted = {number for numbers in inside.values() for number in numbers}
        found = self._rows("SELECT number, iri FROM community WHERE number = ?", zip(wanted))
        names = {number: iri for [(number, iri)] in found}
        return {e: [names[number] for number in numbers] for e, numbers in inside.items()}

    def memberships(self) -> Iterator[array[int]]:
        """For each entity the numbers of its communities."""
        return (array("I", numbers) for (numbers,) in self._all("SELECT communities FROM entity"))

    def counts(self, report: str) -> ReportCounts:
        """What was counted of the report."""
        query = "SELECT occurrences, cost, tokens FROM report WHERE iri = ?"
        rows = self._each(query, [report])
        return ReportCounts(*rows[0]) if rows else ReportCounts()

    def tokens(self) -> dict[str, int]:
        """``ReportCounts.tokens`` of all reports, by IRI, as far as they are counted."""
        return dict(self._all("SELECT iri, tokens FROM report WHERE tokens IS NOT NULL"))

    def _all(self, query: str) -> list[Any]:
        return self._rows(query, [()])[0]

    def _each(self, query: str, keys: Iterable[str]) -> list[Any]:
        return [row for rows in self._rows(query, zip(dict.fromkeys(keys))) for row in rows]

    def _rows(self, query: str, values: Iterable[Values]) -> list[list[Any]]:
        return rows_of(self._connection, self._lock, query, values)

    # --- counting and keeping ---

    def uncounted(self, encoding: str) -> dict[str, CommunityReport]:
        """The reports of which something is to be counted, by community, from here on in this
        encoding."""
        if encoding != self.encoding:
            self._connection.execute("UPDATE report SET tokens = NULL")
            self.encoding = encoding
        return dict(map(_report, self._all(_UNCOUNTED)))

    def uncounted_communities(self) -> list[str]:
        """The communities of the reports of which something is to be counted, in the encoding of
        the table."""
        return [iri for (iri,) in self._all(_UNCOUNTED_COMMUNITIES)]

    def count(self, counts: Mapping[str, ReportCounts]) -> None:
        """Keep what was counted of reports, by IRI."""
        rows = ((each.occurrences, each.cost, each.tokens, iri) for iri, each in counts.items())
        with self._lock, self._connection:
            self._connection.executemany(_COUNT, rows)

    def save(self, folder: Path, generation: int, makers: Makers | None = None) -> None:
        """Keep it in the folder, atomically and durably, as of a generation of the knowledge, with
        who made that.

        Raises ``StoreError`` where the disk fails.
        """
        self._connection.commit()
        file = write_data(folder, FILES.stem, partial(copy_to, self._connection))
        facts = {"encoding": self.encoding, "makers": asdict(makers or Makers())}
        FILES.write_head(folder, generation, {ONLY_FILE: file}, **facts)


def stored_reports(store: Store) -> ReportTable:
    """What the store says; nothing is counted."""
    return ReportTable.of(read_communities(store, edges=False), read_reports(store))


def load_reports(folder: Path, generation: int) -> ReportTable | None:
    """The folder's table; None where it is missing, damaged or of another generation."""

    def open_table(files: Mapping[str, DataFile], head: Head) -> ReportTable:
        return ReportTable(open_database(folder, files[ONLY_FILE]), head["encoding"])

    return FILES.load(folder, generation, open_table)


def makers_of(folder: Path, generation: int) -> Makers:
    """Who made what is derived in that generation, as far as the folder knows."""
    makers = FILES.load(folder, generation, lambda files, head: Makers(**head["makers"]))
    return makers or Makers()


def _report(row: Any) -> tuple[str, CommunityReport]:
    iri, community, level, title, summary, rating, explanation, findings = row
    told = json.loads(zlib.decompress(findings))
    found = tuple(Finding(name, said, text, tuple(cites)) for name, said, text, cites in told)
    return community, CommunityReport(
        iri, community, level, title, summary, rating, explanation, found
    )


class _TableChange:
    """A change of the tables. Entities are written at the end, with the communities that they are
    in by then; those that are in none are left out."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers: dict[str, int] = {}
        self._entities: dict[str, int] = {}
        self._inside: dict[str, set[int]] = {}
        self._free = {name: self._last(name) + 1 for name in ("entity", "community")}

    def take_out(self, community: str) -> None:
        """Remove it, if it is there; its number is kept for it."""
        query = "SELECT number, members FROM community WHERE iri = ?"
        for number, members in self._connection.execute(query, (community,)).fetchall():
            self._numbers[community] = number
            for member in array("I", members):
                query = "SELECT iri FROM entity WHERE number = ?"
                ((entity,),) = self._connection.execute(query, (member,))
                self._known(entity).discard(number)
            self._connection.execute("DELETE FROM community WHERE number = ?", (number,))

    def put_in(self, community: Community) -> None:
        number = self._numbers.pop(community.iri, None) or self._next("community")
        members = array("I")
        for entity in community.members:
            self._known(entity).add(number)
            members.append(self._entities[entity])
        children = json.dumps(community.children)
        row = (number, community.iri, community.level, community.parent, children)
        self._connection.execute(_PUT_COMMUNITY, (*row, members.tobytes()))

    def put_report(self, community: str, report: CommunityReport | None) -> None:
        """Of a community that is there, in the place of the one before."""
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

    def _known(self, entity: str) -> set[int]:
        """The communities that the entity is in."""
        if entity not in self._inside:
            query = "SELECT number, communities FROM entity WHERE iri = ?"
            row = self._connection.execute(query, (entity,)).fetchone()
            self._entities[entity] = row[0] if row else self._next("entity")
            self._inside[entity] = set(array("I", row[1])) if row else set()
        return self._inside[entity]

    def _next(self, table: str) -> int:
        self._free[table] += 1
        return self._free[table] - 1

    def _last(self, table: str) -> int:
        query = f"SELECT ifnull(max(number), 0) FROM {table}"  # noqa: S608
        found: int = self._connection.execute(query).fetchone()[0]
        return found


def _change(
    connection: sqlite3.Connection,
    gone: Iterable[str],
    communities: Iterable[Community],
    reports: Mapping[str, CommunityReport | None],
) -> None:
    """Bring the tables to where these are gone and those are as they are given."""
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
