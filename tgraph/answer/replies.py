"""Reading a model's rows about edges: ids, scores and sentences, however they are written."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tgraph.ingest.sentences import sentences
from tgraph.models.jsonl import read_jsonl

LONGEST_REASONING = 2_000
NO_REASON = "The model gave no reason."

_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{12})?(?![0-9a-f])", re.IGNORECASE)
_BRACKET = re.compile(r"\s*[\[(]([^\[\]()]{1,400})[\])]")


def _as_text(value: Any) -> Any:
    return "" if value is None else value


def as_texts(value: Any) -> Any:
    """A list of texts, whatever it was; empty for what is neither a list nor a text."""
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, list) else []


def as_score(value: Any) -> float | None:
    """The finite number that a value is or says, None where it is none."""
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return score if math.isfinite(score) else None


class _Row(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)


class SelectionRow(_Row):
    id: Annotated[str, BeforeValidator(_as_text)] = ""
    reasoning: Annotated[str, BeforeValidator(_as_text)] = ""
    score: Annotated[float | None, BeforeValidator(as_score)] = None
    none: bool = False


class SentenceRow(_Row):
    sentence: Annotated[str, BeforeValidator(_as_text)] = ""
    citations: Annotated[list[str], BeforeValidator(as_texts)] = Field(default_factory=list)
    start: Annotated[str, BeforeValidator(_as_text)] = ""
    general_knowledge: bool = False
    no_evidence: bool = False


def read_selection(text: str, known: Collection[str]) -> tuple[dict[str, SelectionRow], int, int]:
    """The rows by known id in their order, the number of unknown ids and of malformed rows.

    Of a reply without rows, the lines that name a known id count as rows. A reply that says
    nothing usable, not even that no edge helps, counts as one malformed row.
    """
    rows, malformed = read_jsonl(text, SelectionRow)
    malformed += sum(not (row.id or row.none) for row in rows)
    if not rows and not malformed:
        rows = list(_named_in(text, known))
        malformed = int(not rows)
    chosen: dict[str, SelectionRow] = {}
    unknown = set()
    for row in rows:
        identity = _known(row.id, known)
        if identity is not None:
            chosen.setdefault(identity, row)
        elif row.id:
            unknown.add(row.id)
    return chosen, len(unknown), malformed


def _named_in(text: str, known: Collection[str]) -> Iterator[SelectionRow]:
    for line in text.splitlines():
        for identity in _ID.findall(line):
            if identity.lower() in known:
                said = line.replace(identity, "").strip(" \t-*:.[]()|`\"'")
                yield SelectionRow(id=identity.lower(), reasoning=said)


def reasoning_of(row: SelectionRow) -> str:
    said = clean(row.reasoning)
    return said[:LONGEST_REASONING] or NO_REASON


def score_of(row: SelectionRow, fallback: float) -> float:
    """The model's score brought to 0..1 (some count to 10, some to 100); else ``fallback``."""
    if row.score is None:
        return fallback
    scale = 1 if row.score <= 1 else 10 if row.score <= 10 else 100
    return min(1.0, max(0.0, row.score / scale))


def read_citations(
    text: str, citations: Iterable[str], known: Collection[str]
) -> tuple[str, list[str], int]:
    """A sentence without the ids in it, the known ids that it cites, and the number of others."""
    given = [(_known(citation, known), citation) for citation in citations]
    inside = [i.lower() for i in _ID.findall(text) if i.lower() in known]
    found = list(dict.fromkeys([*(i for i, _ in given if i is not None), *inside]))
    unknown = {citation for i, citation in given if i is None}
    return clean(_BRACKET.sub(_without_ids, text)), found, len(unknown)


def _without_ids(match: re.Match[str]) -> str:
    rest = _ID.sub("", match.group(1))
    only_ids = rest != match.group(1) and not any(map(str.isalnum, rest.replace("id", "")))
    return "" if only_ids else match.group()


def read_prose(text: str) -> list[str]:
    """The sentences of a reply in prose."""
    return [text[start:end] for start, end in sentences(text)]


def _known(said: str, known: Collection[str]) -> str | None:
    """The known id that the text gives, perhaps in brackets, in capitals or after a word."""
    if said in known:
        return said
    inside = [i.lower() for i in _ID.findall(said)]
    return inside[0] if len(inside) == 1 and inside[0] in known else None


def clean(text: str) -> str:
    return " ".join(text.split())
