"""What a model is shown: one line for each item, as many as the token budget holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Generic, Protocol, TypeVar

from tgraph.errors import UsageError
from tgraph.model import Candidate, Edge, Item, Selected
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
class Shown(Generic[T]):
    """The items by the ids under which a model sees them, their lines, and what had no room."""

    by_id: Mapping[str, T]
    text: str
    left_out: tuple[T, ...] = ()


def show(items: Sequence[T], fixed: str, budget: int, model: str) -> Shown[T]:
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
    return Shown(
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
        else:
            identity = others[_name(each.item)]
            row = {"title": each.item.label, each.item.kind: each.item.text}
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
        if candidate.tokens is None or candidate.item.kind == "point":
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
        cost = _tokens(line, encoding) + 1  # and the end of the line
        fits.append(cost <= room)
        room -= cost if fits[-1] else 0
    return fits


@lru_cache(maxsize=1_024)
def _tokens(line: str, encoding: str) -> int:
    """What a line costs; what doesn't fit is looked for before the same lines are shown."""
    from tgraph.models.tokens import count_tokens

    return count_tokens(line, encoding)


def _size(texts: Iterable[str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) + 1 for text in texts)
