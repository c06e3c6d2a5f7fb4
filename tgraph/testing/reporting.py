"""What the fakes answer to ``community_report``: a report made from the prompt's own rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_MOST_FINDINGS = 5


def report(data: Mapping[str, str]) -> dict[str, Any]:
    """A report that names the first entities and cites the first rows; ``data`` are the blocks."""
    entities, edges, parts = (
        rows(data.get(name, "")) for name in ("ENTITIES", "RELATIONSHIPS", "REPORTS")
    )
    names = [str(row.get("name", row["id"])) for row in entities[:3]]
    findings = [_of_part(row) for row in parts] + [_of_edge(row) for row in edges]
    findings = findings or [_of_entity(row) for row in entities]
    told = [finding["explanation"] for finding in findings[:2]]
    return {
        "title": " and ".join(names) or "Nothing",
        "summary": " ".join(told) or "There is nothing to report.",
        "rating": min(10, len(edges)),
        "rating_explanation": f"It has {len(edges)} relationships.",
        "findings": findings[:_MOST_FINDINGS],
    }


def rows(text: str) -> list[dict[str, Any]]:
    """The rows of a block, one JSON object with an id a line; other lines are passed over."""
    found = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "id" in row:
            found.append(row)
    return found


def _of_edge(row: Mapping[str, Any]) -> dict[str, Any]:
    said = " ".join(str(row.get("edge", "")).replace("|", " ").split())
    quotes = row.get("quotes") or [f"{said}."]
    return {"summary": said, "explanation": str(quotes[0]), "citations": [row["id"]]}


def _of_part(row: Mapping[str, Any]) -> dict[str, Any]:
    inner = row.get("findings") or [row]
    return {
        "summary": str(row.get("title", "")),
        "explanation": str(row.get("summary", "")),
        "citations": [inner[0]["id"]],
    }


def _of_entity(row: Mapping[str, Any]) -> dict[str, Any]:
    name = str(row.get("name", row["id"]))
    return {"summary": name, "explanation": f"{name} is in it.", "citations": [row["id"]]}
