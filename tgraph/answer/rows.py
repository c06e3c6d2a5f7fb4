"""Rows: items shown to a model within its token budget, and model replies about the items."""

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
from tgraph.rendering import collapse_whitespace
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
    """Items by the ids shown to a model, item lines, and items left out for lack of room."""

    by_id: Mapping[str, T]
    text: str
    left_out: tuple[T, ...] = ()


def format_items(items: Sequence[T], fixed: str, budget: int, model: str) -> ShownRows[T]:
    """Format items in order, as far as they fit beside the ``fixed`` prompt text.

    The prompt as a whole keeps within ``budget`` tokens, counted as for ``model``; an item that
    doesn't fit is passed over. Raises ``UsageError`` if no item fits."""
    identified = shown_lines(items)
    lines = [line for _, line in identified]
    cost_bound = _bound_cost(items, lines)
    fits = _select_fitting(lines, fixed, budget, model, cost_bound)
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
    """Return id and line for each item: a JSON object, so that no text can pose as structure.

    Ids are unique and depend on nothing but the items: edge ids as in ``get_labelgraph``, point
    ids from the place in the session, other ids from the IRI."""
    graph = get_labelgraph([entry.item for entry in items if isinstance(entry.item, Edge)])
    edges = iter(zip(graph.ids, graph.labeled_edges, strict=True))
    ids_by_name = ids_of(
        [_id_source(entry.item) for entry in items if isinstance(entry.item, Item)]
    )
    identified_lines = []
    for entry in items:
        if isinstance(entry.item, Edge):
            identity, labels = next(edges)
            quotes = [evidence.quote for evidence in _unwrap_candidate(entry).evidence]
            row: dict[str, object] = {"edge": " | ".join(labels), "quotes": quotes}
            if noted := [
                n for n, e in enumerate(_unwrap_candidate(entry).evidence, 1) if e.by_hand
            ]:
                row["quotes_stated_by_a_curator"] = noted
        else:
            identity = ids_by_name[_id_source(entry.item)]
            before = {"metadata": entry.item.preface} if entry.item.preface else {}
            titled = {} if entry.item.title == "" else {"title": entry.item.shown_title}
            row = {**titled, **before, entry.item.kind: entry.item.text}
        identified_lines.append((identity, json.dumps({"id": identity, **row}, ensure_ascii=False)))
    return identified_lines


def ids_of(iris: Sequence[str]) -> dict[str, str]:
    """Return unique model-visible ids by IRI."""
    digests = {iri: sha256(iri.encode("utf-8", "surrogatepass")).hexdigest() for iri in iris}
    count = Counter(digest[:8] for digest in digests.values())
    return {
        iri: digest[:8] if count[digest[:8]] == 1 else f"{digest[:8]}-{digest[8:20]}"
        for iri, digest in digests.items()
    }


def _id_source(item: Item) -> str:
    """Return the string behind an item's id.

    A point's IRI contains the session's UUID, so a point is named without the UUID: no prompt
    depends on the session."""
    return item.iri if item.kind != "point" else "point:" + ":".join(item.iri.split(":")[-2:])


def _unwrap_candidate(item: _HasItem) -> Candidate:
    candidate = item.candidate if isinstance(item, Selected) else item
    assert isinstance(candidate, Candidate)
    return candidate


def _bound_cost(items: Sequence[_HasItem], lines: Sequence[str]) -> int | None:
    """Return an upper bound of the lines' token cost; None if an item's cost is unknown.

    A known cost counts the texts; as JSON the texts have escapes, and a quote has marks around
    it."""
    total = 0
    for entry, line in zip(items, lines, strict=True):
        candidate = _unwrap_candidate(entry)
        noted = any(evidence.by_hand for evidence in candidate.evidence)
        if candidate.tokens is None or candidate.item.kind == "point" or noted:
            return None
        texts = len(candidate.evidence) if isinstance(candidate.item, Edge) else 1
        escapes = _ESCAPE * line.count("\\") + _LONG_ESCAPE * line.count("\\u")
        total += candidate.tokens + escapes + _MARKS * (texts + 1)
    return total


def _select_fitting(
    lines: Sequence[str], fixed: str, budget: int, model: str, most: int | None
) -> list[bool]:
    if _byte_size(lines) + _byte_size([fixed]) <= _BYTES_OF_A_TOKEN * (budget - _FRAME):
        return [True] * len(lines)
    from tgraph.models.tokens import DEFAULT_ENCODING, count_tokens, encoding_for  # 0.03 s

    encoding = encoding_for(model)
    room = budget - _FRAME - count_tokens(fixed, encoding)
    if most is not None and most <= room and encoding == DEFAULT_ENCODING:
        return [True] * len(lines)
    fits = []
    for line in lines:
        least = len(line.split()) + 1  # no token is of two words, and the line has an end
        cost = least if least > room else _count_tokens(line, encoding) + 1
        fits.append(cost <= room)
        room -= cost if fits[-1] else 0
    return fits


@lru_cache(maxsize=4_096)
def _count_tokens(line: str, encoding: str) -> int:
    """Return a line's token count; counts are cached, since fitting precedes display."""
    from tgraph.models.tokens import count_tokens

    return count_tokens(line, encoding)


def _byte_size(texts: Iterable[str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) + 1 for text in texts)


# --- reading a model's rows about edges: ids, scores and sentences, however they are written ------


LONGEST_REASONING = 2_000
NO_REASON = "The model gave no reason."

_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{12})?(?![0-9a-f])", re.IGNORECASE)
_BRACKET = re.compile(r"(?<!\s)\s*[\[(]([^\[\]()]{1,400})[\])]")


def _as_text(value: Any) -> Any:
    return "" if value is None else value


def as_texts(value: Any) -> Any:
    """Convert values to a list of texts; values neither list nor text give an empty list."""
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, list) else []


def as_score(value: Any) -> float | None:
    """Convert values to finite numbers; non-numbers give None."""
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


class AnswerSentenceRow(_EdgeRow):
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
        identity = _find_known_id(row.id, known)
        if identity is not None:
            chosen.setdefault(identity, row)
        elif row.id:
            unknown.add(row.id)
    return chosen, len(unknown), malformed


def _named_in(text: str, known: Collection[str]) -> Iterator[SelectionRow]:
    for line in text.split("\n"):
        for identity in _ID.findall(line):
            if identity.lower() in known:
                reasoning = line.replace(identity, "").strip(" \t-*:.[]()|`\"'")
                yield SelectionRow(id=identity.lower(), reasoning=reasoning)


def reasoning_of(row: SelectionRow) -> str:
    reasoning = collapse_whitespace(row.reasoning)
    return reasoning[:LONGEST_REASONING] or NO_REASON


def score_of(row: SelectionRow, fallback: float) -> float:
    """Return the model's score scaled to 0..1 (some models count to 10, some to 100); else
    ``fallback``."""
    if row.score is None:
        return fallback
    scale = 1 if row.score <= 1 else 10 if row.score <= 10 else 100
    return min(1.0, max(0.0, row.score / scale))


def read_citations(
    text: str, citations: Iterable[str], known: Collection[str]
) -> tuple[str, list[str], int]:
    """Return a sentence stripped of ids, its known cited ids, and the number of unknown ids."""
    listed_ids = [(_find_known_id(citation, known), citation) for citation in citations]
    inside = [i.lower() for i in _ID.findall(text) if i.lower() in known]
    cited_ids = list(dict.fromkeys([*(i for i, _ in listed_ids if i is not None), *inside]))
    unknown = {citation for i, citation in listed_ids if i is None}
    return collapse_whitespace(_BRACKET.sub(_without_ids, text)), cited_ids, len(unknown)


def _without_ids(match: re.Match[str]) -> str:
    remainder = _ID.sub("", match.group(1))
    only_ids = remainder != match.group(1) and not any(
        map(str.isalnum, remainder.replace("id", ""))
    )
    return "" if only_ids else match.group()


def read_prose(text: str) -> list[str]:
    """Split a prose reply into sentences."""
    return [text[start:end] for start, end in sentences(text)]


def _find_known_id(said: str, known: Collection[str]) -> str | None:
    """Return the known id in the text, allowing brackets, capitals or a preceding word."""
    if said in known:
        return said
    inside = [i.lower() for i in _ID.findall(said)]
    return inside[0] if len(inside) == 1 and inside[0] in known else None
