"""A tiny graph as other systems keep theirs, for tests of importing and exporting."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyoxigraph import QuerySolutions

import tgraph

UNITS = (
    "Mira Holm built the lighthouse at Sorvik in 1887. She came from Bergen.",
    "The lighthouse at Sorvik burned an oil lamp. Jon Dahl kept it for forty years.",
)
TEXT = "\n\n".join(UNITS) + "\n"
SETTINGS = {"embedding.provider": "hashing"}

ENTITIES = (
    ("MIRA HOLM", "PERSON", "The engineer of the lighthouse.", (0,)),
    ("SORVIK", "GEO", "A place with a lighthouse.", (0, 1)),
    ("JON DAHL", "PERSON", "The keeper of the lighthouse.", (1,)),
    ("BERGEN", "GEO", "", (0,)),
)
TIES = (
    ("MIRA HOLM", "SORVIK", "Mira Holm built the lighthouse at Sorvik.", 2.0, (0,)),
    ("JON DAHL", "SORVIK", "Jon Dahl kept the lighthouse.", 1.0, (0, 1)),
    ("MIRA HOLM", "BERGEN", "Mira Holm came from Bergen.", 1.0, (0,)),
)
REPORTS = (
    ("The lighthouse at Sorvik", "Who built it and who kept it.", 7.5, "It is all there is."),
    ("Mira Holm", "An engineer from Bergen.", 3.0, "She built it."),
)
FINDINGS = (
    ("It was built in 1887", "Mira Holm built it [Data: Entities (0, 1); Relationships (0)]."),
    ("It was kept", "Jon Dahl kept the lighthouse at Sorvik for forty years."),
)
GROUPS = ((0, None, (0, 1, 2, 3)), (1, 0, (0, 3)))
"""Level, parent and members of each community."""


def ids(kind: str, places: Sequence[int]) -> list[str]:
    return [f"{kind}-{place}" for place in places]


def tables(version: int) -> dict[str, list[dict[str, Any]]]:
    """GraphRAG's tables as the version has them."""
    first = version == 0
    name, text = ("name", "raw_content") if first else ("title", "text")
    found: dict[str, list[dict[str, Any]]] = {
        "documents": [{"id": "d", "title": "sorvik.txt", text: TEXT}],
        "text_units": [
            {"id": f"unit-{n}", "text": said, "n_tokens": 20}
            | ({"document_id": "d"} if version == 3 else {"document_ids": ["d"]})
            for n, said in enumerate(UNITS)
        ],
        "entities": [
            {
                "id": f"entity-{n}",
                "human_readable_id": n,
                name: title,
                "type": kind,
                "description": said,
                "text_unit_ids": ids("unit", units),
            }
            for n, (title, kind, said, units) in enumerate(ENTITIES)
        ],
        "relationships": [
            {
                "id": f"tie-{n}",
                "human_readable_id": n,
                "source": one,
                "target": other,
                "description": said,
                "weight": weight,
                "text_unit_ids": ids("unit", units),
            }
            for n, (one, other, said, weight, units) in enumerate(TIES)
        ],
        "covariates": [
            {
                "id": "claim-0",
                "type": "CONSTRUCTION",
                "description": "Mira Holm built the lighthouse.",
                "subject_id": "MIRA HOLM",
                "object_id": "NONE",
                "status": "TRUE",
                "start_date": "1887-01-01T00:00:00",
                "end_date": "NONE",
                "source_text": "Mira Holm built the lighthouse at Sorvik in 1887.",
                "text_unit_id": "unit-0",
            }
        ],
        "communities": [_community(n, version) for n in range(len(GROUPS))],
        "community_reports": [_report(n, version) for n in range(len(GROUPS))],
    }
    if version < 2:
        found["nodes"] = [
            {"title": ENTITIES[m][0], "community": str(n) if first else n, "level": level}
            for n, (level, _, members) in enumerate(GROUPS)
            for m in members
        ]
    return found


def _community(number: int, version: int) -> dict[str, Any]:
    level, parent, members = GROUPS[number]
    row: dict[str, Any] = {"id": str(number), "title": f"Community {number}", "level": level}
    if version:
        row |= {"community": number, "parent": -1 if parent is None else parent}
    if version > 1:
        row["entity_ids"] = ids("entity", members)
    return row


def _report(number: int, version: int) -> dict[str, Any]:
    title, summary, rank, why = REPORTS[number]
    findings = [{"summary": one, "explanation": more} for one, more in FINDINGS]
    told = {"findings": findings if number == 0 else findings[:1]}
    key = "rank_explanation" if version == 0 else "rating_explanation"
    row = {"community": number, "level": GROUPS[number][0], "title": title, "summary": summary}
    row |= {"rank": rank, key: why}
    return row | (told if version else {"full_content_json": json.dumps(told)})


def write_tables(folder: Path, version: int, **changed: Sequence[Mapping[str, Any]]) -> Path:
    """The tables as parquet, under the names of the version; ``changed`` in place of its own."""
    from pyarrow import Table, parquet

    folder.mkdir()
    prefix = "create_final_" if version < 2 else ""
    for name, rows in {**tables(version), **changed}.items():
        if rows:
            parquet.write_table(
                Table.from_pylist(list(map(dict, rows))), folder / f"{prefix}{name}.parquet"
            )
    return folder


def opened(root: Path, **settings: Any) -> tgraph.KnowledgeGraph:
    return tgraph.open(root, create=True, settings={**SETTINGS, **settings})


def rows_of(graph: tgraph.KnowledgeGraph, query: str) -> list[dict[str, Any]]:
    """The rows of a SELECT, by the names of its columns."""
    found = graph.sparql(query)
    assert isinstance(found, QuerySolutions)
    names = [variable.value for variable in found.variables]
    return [dict(zip(names, row, strict=True)) for row in found]
