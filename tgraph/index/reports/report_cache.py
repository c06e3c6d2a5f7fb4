"""The communities and reports of one generation of knowledge in a file, as questions read them.

It lies beside the vectors and is derived like them: questions read it in place of thousands of
statements, and where it is missing, damaged or of another generation they read these.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tgraph.index.communities.communities import read_communities
from tgraph.index.reports.report import read_reports
from tgraph.model import Community, CommunityReport, Finding
from tgraph.store.base import Store
from tgraph.store.files import disk_errors, write_atomic

FORMAT = 4
FILE = "shelf.json.z"


@dataclass(frozen=True, slots=True)
class ReportCache:
    """Communities by level and IRI, without their edges, and the reports by their community's IRI.

    ``occurrences`` says in how many chunks the members of a report's community occur, by the
    report's IRI, ``costs`` what it costs as a candidate among others, and ``tokens`` what its whole
    line among other reports costs, by encoding and IRI; all as far as they are known.
    """

    communities: tuple[Community, ...]
    reports: Mapping[str, CommunityReport]
    occurrences: Mapping[str, int] = field(default_factory=dict)
    costs: Mapping[str, int] = field(default_factory=dict)
    tokens: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Makers:
    """Who wrote all reports that are no fallback, and who gave all that has several descriptions
    one; empty where that isn't known."""

    reports: str = ""
    descriptions: str = ""


def read_report_cache(store: Store) -> ReportCache:
    """What the store says; nothing is counted."""
    return ReportCache(read_communities(store, edges=False), read_reports(store))


def save_report_cache(
    folder: Path, generation: int, shelf: ReportCache, makers: Makers | None = None
) -> None:
    """Keep it in the folder, atomically and durably, as of a generation of the knowledge, with who
    made that.

    Raises ``StoreError`` where the disk fails.
    """
    text = json.dumps(_packed(shelf), ensure_ascii=False, separators=(",", ":"))
    body = zlib.compress(text.encode())
    head = {**_head(generation, body), "makers": asdict(makers or Makers())}
    with disk_errors():
        write_atomic(folder / FILE, json.dumps(head).encode() + b"\n" + body)


def load_report_cache(folder: Path, generation: int) -> ReportCache | None:
    """The folder's shelf; None where it is missing, damaged or of another generation."""
    try:
        head, _, body = (folder / FILE).read_bytes().partition(b"\n")
        if _head(generation, body).items() <= json.loads(head).items():
            return _unpacked(json.loads(zlib.decompress(body)))
    except (OSError, ValueError, AttributeError):
        pass
    return None


def makers_of(folder: Path, generation: int) -> Makers:
    """Who made what is derived in that generation, as far as the folder knows."""
    try:
        with (folder / FILE).open("rb") as file:
            head = json.loads(file.readline())
        return Makers(**head["makers"]) if head["generation"] == generation else Makers()
    except (OSError, ValueError, KeyError, TypeError):
        return Makers()


def _head(generation: int, body: bytes) -> dict[str, int]:
    return {"format": FORMAT, "generation": generation, "crc32": zlib.crc32(body)}


def _packed(shelf: ReportCache) -> dict[str, Any]:
    """Each IRI of an entity or a community once; elsewhere its place."""
    entities = sorted({member for c in shelf.communities for member in c.members})
    entity = {iri: place for place, iri in enumerate(entities)}
    community = {c.iri: place for place, c in enumerate(shelf.communities)}
    return {
        "entities": entities,
        "communities": [
            [
                c.iri,
                c.level,
                [entity[member] for member in c.members],
                None if c.parent is None else community[c.parent],
                [community[child] for child in c.children],
            ]
            for c in shelf.communities
        ],
        "reports": [_as_row(report) for report in shelf.reports.values()],
        "occurrences": dict(shelf.occurrences),
        "costs": dict(shelf.costs),
        "tokens": {encoding: dict(costs) for encoding, costs in shelf.tokens.items()},
    }


def _as_row(report: CommunityReport) -> list[Any]:
    return [
        report.iri,
        report.community,
        report.level,
        report.title,
        report.summary,
        report.rating,
        report.rating_explanation,
        [[f.iri, f.summary, f.explanation, f.cites] for f in report.findings],
    ]


def _unpacked(data: Mapping[str, Any]) -> ReportCache:
    entities, rows = data["entities"], data["communities"]
    communities = tuple(
        Community(
            iri=iri,
            level=level,
            members=tuple([entities[member] for member in members]),
            edges=(),
            parent=None if parent is None else rows[parent][0],
            children=tuple([rows[child][0] for child in children]),
        )
        for iri, level, members, parent, children in rows
    )
    reports = {}
    for name, community, level, title, summary, rating, why, told in data["reports"]:
        findings = tuple([Finding(i, said, text, tuple(cites)) for i, said, text, cites in told])
        report = CommunityReport(name, community, level, title, summary, rating, why, findings)
        reports[community] = report
    others = (data[name] for name in ("occurrences", "costs", "tokens"))
    return ReportCache(communities, reports, *others)
