"""What the fakes answer where reports are read: points drawn from them, and their relevance."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

Blocks = Mapping[str, str]

_WORD = re.compile(r"\w{4,}")


def points(data: Blocks) -> dict[str, Any]:
    """The finding of each report that shares most words with the question; where none shares any,
    the first finding of each report, with a low score."""
    wanted = _words(data.get("QUESTION", ""))
    best = [_best(row, wanted) for row in map(json.loads, data.get("REPORTS", "").splitlines())]
    least = min(1, max((shared for shared, _ in best), default=0))
    rows = [
        {
            "description": finding["finding"],
            "score": min(100, 10 + 90 * shared // max(len(wanted), 1)),
            "citations": [finding["id"]],
        }
        for shared, finding in best
        if finding and shared >= least
    ]
    return {"points": rows}


def _best(report: dict[str, Any], wanted: set[str]) -> tuple[int, dict[str, Any]]:
    found = [(len(wanted & _words(f["finding"])), f) for f in report["findings"]]
    return max(found, key=lambda pair: pair[0], default=(-1, {}))


def rating(data: Blocks) -> dict[str, Any]:
    """One for each word that the report shares with the question, at most five."""
    shared = len(_words(data.get("QUESTION", "")) & _words(data.get("REPORT", "")))
    return {"reason": f"It shares {shared} words with the question.", "rating": min(shared, 5)}


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


READING: Mapping[str, Callable[[Blocks], dict[str, Any]]] = {
    "map_points": points,
    "rate_report": rating,
}
"""The steps that read reports, and what they are answered."""
