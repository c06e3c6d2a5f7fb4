"""What the fakes answer where answers are judged: statements and verdicts by their words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

Blocks = Mapping[str, str]

_SENTENCE = re.compile(r"[^.!?\n]+")
_WORD = re.compile(r"\w+")
_NOT = re.compile(r"\b(?:not|never|no)\b", re.IGNORECASE)


def statements(data: Blocks) -> dict[str, Any]:
    """A statement for each sentence: its first word, its second, and the rest."""
    rows = []
    for sentence in _SENTENCE.findall(data.get("TEXT", "")):
        subject, _, rest = " ".join(sentence.split()).partition(" ")
        predicate, _, thing = rest.partition(" ")
        if predicate:
            rows.append({"subject": subject, "predicate": predicate, "object": thing})
    return {"statements": rows}


def verdicts(data: Blocks) -> dict[str, Any]:
    """Entailment where the reference holds every word of the statement, or Contradiction where
    only one of them has a negation; else Neutral."""
    reference = data.get("REFERENCE", "")
    known = set(_WORD.findall(reference.lower()))
    rows = []
    for row in map(json.loads, data.get("STATEMENTS", "").splitlines()):
        said = str(row["statement"])
        wanted = set(_WORD.findall(_NOT.sub("", said).lower()))
        label = "Entailment" if wanted and wanted <= known else "Neutral"
        if label == "Entailment" and bool(_NOT.search(said)) != bool(_NOT.search(reference)):
            label = "Contradiction"
        rows.append({"id": row["id"], "label": label})
    return {"verdicts": rows}


JUDGING: Mapping[str, Callable[[Blocks], dict[str, Any]]] = {
    "extract_statements": statements,
    "check_entailment": verdicts,
}
"""The steps that judge answers, and what they are answered."""
