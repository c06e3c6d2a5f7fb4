"""What the fakes write where a prompt asks for sentences that cite its rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

MOST = 8
"""Rows of a prompt that a reply speaks of."""

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_ALLOWED = '"general_knowledge": true'


def listed(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """The edges or other items of the prompt."""
    return rows_of(data.get("EDGES") or data.get("EVIDENCE", ""))


def rows_of(block: str) -> list[dict[str, Any]]:
    """The objects with an id of a block; lines that hold none are passed over."""
    rows = []
    for line in block.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "id" in row:
            rows.append(row)
    return rows


def sentences(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """A sentence for each of the first items, which it cites."""
    return [
        {"sentence": f"{_spoken(row)}.", "citations": [row["id"]]} for row in listed(data)[:MOST]
    ]


def own_knowledge(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One sentence of the model's own where the instructions allow that, else none."""
    told = [str(m.get("content") or "") for m in messages if m.get("role") == "system"]
    if not any(_ALLOWED in text for text in told):
        return []
    said = "I believe so. [LLM: verify]"
    return [{"sentence": said, "citations": [], "general_knowledge": True}]


def questions(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """A question for each of the first items, which it cites."""
    return [
        {"sentence": f"Is it so that {_spoken(row)}?", "citations": [row["id"]]}
        for row in listed(data)[:MOST]
    ]


def _spoken(row: Mapping[str, Any]) -> str:
    kinds = ("edge", "point", "report", "claim", "entity", "summary", "chunk")
    said = next((str(row[kind]) for kind in kinds if kind in row), str(row["id"]))
    first = _SENTENCE.search(said.replace("|", " ").replace("#", " "))
    return " ".join((first.group() if first else said).strip(" .").split())
