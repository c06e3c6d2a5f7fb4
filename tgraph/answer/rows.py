"""Rows: what a model is shown, as many as its budget holds, and what it replies about them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tgraph.errors import UsageError
from tgraph.ingest.sentences import sentences
from tgraph.model import Candidate, Edge, Item, Selected
from tgraph.models.json_parsing import read_jsonl
from tgraph.retrieve.labels import get_labelgraph

_BYTES_OF_A_TOKEN = 2  # text has more than that on average, so what is short enough needs no count
_ESCAPE = 2  # tokens at most that an escape adds
_LONG_ESCAPE = 6  # of a character by its number
_MARKS = 8  # tokens around a quote in a list, and of the end of a line
_FRAME = 16  # tokens that a chat template puts around the messages


class _HasItem(Protocol):
    @property
    def item(self) -> Edge | Item: ...


T = TypeVar("T", bound=_HasItem)


@dataclass(frozen=True, slots=True)
class ShownRows(Generic[T]):
    """The items by the ids under which a model sees them, their lines, and what had no room."""

    by_id: Mapping[str, T]
    text: str
    left_out: tuple[T, ...] = ()


def show(items: Sequence[T], fixed: str, budget: int, model: str) -> ShownRows[T]:
    """The items in their order, as far as they fit beside the ``fixed`` text of the prompt.

    The prompt as a whole keeps within ``budget`` tokens, counted as for ``model``; an item that
    doesn't fit is passed over. ``UsageError`` where none fits.
    """
    identified = shown_lines(items)
    lines = [line for _, line in identified]
    most = _most(items, lines)
    fits = _fitting(lines, fixed, budget, model, most)
    if items and not any(fits):
        raise UsageError(
            f"The question and its history leave no room for an edge in {budget:,} tokens.",
            "Raise the mode's limit (graph.max_context_tokens), or ask with less history.",
        )
    ids = [identity for identity, _ in identified]
    rows = list(zip(ids, lines, items, fits, strict=True))
    return ShownRows(
        {i: item for i, _, item, fit in rows if fit},
        "\n".join(line for _, line, _, fit in rows if fit),
        tuple(item for _, _, item, fit in rows if not fit),
    )


def shown_lines(items: Sequence[T]) -> list[tuple[str, str]]:
    """For each item its id and its line: a JSON object, so that no text can pose as structure.

    Ids are unique and depend on nothing but the items: an edge's as in ``get_labelgraph``, a
    point's by its place in the session, any other's by its IRI.
    """
    graph = get_labelgraph([each.item for each in items if isinstance(each.item, Edge)])
    edges = iter(zip(graph.ids, graph.labeled_edges, strict=True))
    others = ids_of([_name(each.item) for each in items if isinstance(each.item, Item)])
    found = []
    for each in items:
        if isinstance(each.item, Edge):
            identity, labels = next(edges)
            quotes = [evidence.quote for evidence in _candidate(each).evidence]
            row: dict[str, object] = {"edge": " | ".join(labels), "quotes": quotes}
            if noted := [n for n, e in enumerate(_candidate(each).evidence, 1) if e.by_hand]:
                row["quotes_stated_by_a_curator"] = noted
        else:
            identity = others[_name(each.item)]
            before = {"metadata": each.item.preface} if each.item.preface else {}
            row = {"title": each.item.label, **before, each.item.kind: each.item.text}
        found.append((identity, json.dumps({"id": identity, **row}, ensure_ascii=False)))
    return found


def ids_of(iris: Sequence[str]) -> dict[str, str]:
    """For each IRI the id under which a model sees it, unique among them."""
    digests = {iri: sha256(iri.encode("utf-8", "surrogatepass")).hexdigest() for iri in iris}
    count = Counter(digest[:8] for digest in digests.values())
    return {
        iri: digest[:8] if count[digest[:8]] == 1 else f"{digest[:8]}-{digest[8:20]}"
        for iri, digest in digests.items()
    }


def _name(item: Item) -> str:
    """What its id is made of: a point's IRI has the session's UUID, and no prompt depends on it."""
    return item.iri if item.kind != "point" else "point:" + ":".join(item.iri.split(":")[-2:])


def _candidate(item: _HasItem) -> Candidate:
    found = item.candidate if isinstance(item, Selected) else item
    assert isinstance(found, Candidate)
    return found


def _most(items: Sequence[_HasItem], lines: Sequence[str]) -> int | None:
    """What the lines cost at most by what their items are known to cost; None where some are not.

    A known cost counts the texts; as JSON they have escapes, and a quote has marks around it.
    """
    total = 0
    for each, line in zip(items, lines, strict=True):
        candidate = _candidate(each)
        noted = any(evidence.by_hand for evidence in candidate.evidence)
        if candidate.tokens is None or candidate.item.kind == "point" or noted:
            return None
        texts = len(candidate.evidence) if isinstance(candidate.item, Edge) else 1
        escapes = _ESCAPE * line.count("\\") + _LONG_ESCAPE * line.count("\\u")
        total += candidate.tokens + escapes + _MARKS * (texts + 1)
    return total


def _fitting(
    lines: Sequence[str], fixed: str, budget: int, model: str, most: int | None
) -> list[bool]:
    if _size(lines) + _size([fixed]) <= _BYTES_OF_A_TOKEN * (budget - _FRAME):
        return [True] * len(lines)
    from tgraph.models.tokens import DEFAULT_ENCODING, count_tokens, encoding_for  # 0.03 s

    encoding = encoding_for(model)
    room = budget - _FRAME - count_tokens(fixed, encoding)
    if most is not None and most <= room and encoding == DEFAULT_ENCODING:
        return [True] * len(lines)
    fits = []
    for line in lines:
        least = len(line.split()) + 1  # no token is of two words, and the line has an end
        cost = least if least > room else _tokens(line, encoding) + 1
        fits.append(cost <= room)
        room -= cost if fits[-1] else 0
    return fits


@lru_cache(maxsize=4_096)
def _tokens(line: str, encoding: str) -> int:
    """What a line costs; what doesn't fit is looked for before the same lines are shown."""
    from tgraph.models.tokens import count_tokens

    return count_tokens(line, encoding)


def _size(texts: Iterable[str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) + 1 for text in texts)


# --- reading a model's rows about edges: ids, scores and sentences, however they are written ------


LONGEST_REASONING = 2_000
NO_REASON = "The model gave no reason."

_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{12})?(?![0-9a-f])", re.IGNORECASE)
_BRACKET = re.compile(r"(?<!\s)\s*[\[(]([^\[\]()]{1,400})[\])]")


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


class _EdgeRow(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)


class SelectionRow(_EdgeRow):
    id: Annotated[str, BeforeValidator(_as_text)] = ""
    reasoning: Annotated[str, BeforeValidator(_as_text)] = ""
    score: Annotated[float | None, BeforeValidator(as_score)] = None
    none: bool = False


class SentenceRow(_EdgeRow):
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
    for line in text.split("\n"):
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
