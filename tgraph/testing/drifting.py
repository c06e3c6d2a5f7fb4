"""What the fakes answer to the steps of DRIFT search, made from the prompt's own rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_MOST_STATEMENTS, _MOST_FOLLOW_UPS = 3, 3
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_NAME = re.compile(r"\b[A-Z][\w'’-]{4,}(?: [A-Z][\w'’-]+)*")
_WORD = re.compile(r"\w{3,}")

Data = Mapping[str, str]


def _hypothesis(data: Data) -> str:
    first = _SENTENCE.search(data.get("TEMPLATE", ""))
    return f"{data.get('QUESTION', '').strip()} {first.group().strip() if first else ''}"


def _response(data: Data) -> dict[str, Any]:
    asked = f"{data.get('MAIN_QUESTION', '')} {data.get('QUESTION', '')}"
    wanted = _words(asked)
    ranked = sorted(
        ((len(wanted & _words(text)), number, key, text) for number, key, text in _shown(data)),
        key=lambda row: (-row[0], row[1]),
    )
    best = [row for row in ranked if row[0]][:_MOST_STATEMENTS]
    names = [name for *_, text in best for name in _NAME.findall(text) if name not in asked]
    return {
        "response": [{"statement": _first(text), "citations": [key]} for *_, key, text in best],
        "score": round(100 * max((row[0] for row in best), default=0) / max(len(wanted), 1)),
        "follow_ups": [
            f"What is known of {name}?" for name in list(dict.fromkeys(names))[:_MOST_FOLLOW_UPS]
        ],
    }


def _shown(data: Data) -> Iterator[tuple[int, str, str]]:
    """The findings of reports, or else the pieces of evidence, with their ids."""
    number = 0
    for block in (data.get("REPORTS", ""), data.get("EVIDENCE", "")):
        for line in block.splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            for piece in row.get("findings") or [row]:
                if "id" in piece:
                    number += 1
                    yield number, str(piece["id"]), _said(piece)


def _said(row: Mapping[str, Any]) -> str:
    if quotes := row.get("quotes"):
        return str(quotes[0])
    kinds = ("finding", "edge", "claim", "entity", "chunk", "report")
    kind = next((kind for kind in kinds if kind in row), "")
    named = f"{row['title']}: " if kind == "entity" else ""
    return f"{named}{row.get(kind, '')}"


def _first(text: str) -> str:
    found = _SENTENCE.search(text)
    return " ".join((found.group() if found else text).replace("|", " ").split())


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


TEXTS: Mapping[str, Callable[[Data], str]] = {"drift_hyde": _hypothesis}
"""Replies that are plain text, by step."""

VALUES: Mapping[str, Callable[[Data], Any]] = {
    "drift_primer": _response,
    "drift_action": _response,
}
"""Replies that are one JSON value, by step."""
