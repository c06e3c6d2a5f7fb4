"""What a model is shown of the edges: one line for each, as many as the token budget holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tgraph.answer.base import edge_line
from tgraph.errors import UsageError
from tgraph.model import Candidate, Edge, EdgeSelection
from tgraph.retrieve.labels import get_labelgraph

_BYTES_OF_A_TOKEN = 2  # text has more than that on average, so what is short enough needs no count
_FRAME = 16  # tokens that a chat template puts around the messages


class _HasEdge(Protocol):
    @property
    def edge(self) -> Edge: ...


T = TypeVar("T", bound=_HasEdge)


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
    graph = get_labelgraph([item.edge for item in items])
    lines = [
        _line(i, labels, item)
        for i, labels, item in zip(graph.ids, graph.labeled_edges, items, strict=True)
    ]
    fits = _fitting(lines, fixed, budget, model)
    if items and not any(fits):
        raise UsageError(
            f"The question and its history leave no room for an edge in {budget:,} tokens.",
            "Raise graph.max_context_tokens, or ask with less history.",
        )
    rows = list(zip(graph.ids, lines, items, fits, strict=True))
    return Shown(
        {i: item for i, _, item, fit in rows if fit},
        "\n".join(line for _, line, _, fit in rows if fit),
        tuple(item for _, _, item, fit in rows if not fit),
    )


def _line(identity: str, labels: Sequence[str], item: _HasEdge) -> str:
    """One JSON object; JSON keeps a label's newlines and pipes from posing as structure."""
    quotes = [evidence.quote for evidence in _candidate(item).evidence]
    return json.dumps(edge_line(identity, labels, quotes), ensure_ascii=False)


def _candidate(item: _HasEdge) -> Candidate:
    found = item.candidate if isinstance(item, EdgeSelection) else item
    assert isinstance(found, Candidate)
    return found


def _fitting(lines: Sequence[str], fixed: str, budget: int, model: str) -> list[bool]:
    if _size(lines) + _size([fixed]) <= _BYTES_OF_A_TOKEN * (budget - _FRAME):
        return [True] * len(lines)
    from tgraph.models.tokens import count_tokens, encoding_for  # loads the ranks: 0.3 s

    encoding = encoding_for(model)
    room = budget - _FRAME - count_tokens(fixed, encoding)
    fits = []
    for line in lines:
        cost = count_tokens(line, encoding) + 1  # and the end of the line
        fits.append(cost <= room)
        room -= cost if fits[-1] else 0
    return fits


def _size(texts: Iterable[str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) + 1 for text in texts)
