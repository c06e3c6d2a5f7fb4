"""Selection by caps: each kind of item has its own limit of tokens, and all of them have one."""

from __future__ import annotations

from collections.abc import Mapping

from tgraph.model import Agent, Rejected, Retrieval, Selected, Selection
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Question
from tgraph.version import __version__


class CappedSelector:
    """Takes candidates in their order while their kind's cap and the total last.

    Unlike shares of a budget, what a kind leaves unused is only of use to kinds without a cap.
    """

    agent = Agent("method", "token-caps", __version__)
    step = "Budgeting"

    def __init__(self, total: int, caps: Mapping[str, int]) -> None:
        self._total = total
        self._caps = caps

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        total, left = self._total, dict(self._caps)
        selected: list[Selected] = []
        rejected: list[Rejected] = []
        for candidate in retrieval.candidates:
            kind, cost = candidate.item.kind, candidate.tokens or 0
            if kind in left and cost > left[kind]:
                over = f"over the token budget of its kind ({self._caps[kind]:,})"
                rejected.append(Rejected(candidate, over))
            elif cost > total:
                rejected.append(Rejected(candidate, f"over the token budget ({self._total:,})"))
            else:
                total -= cost
                if kind in left:
                    left[kind] -= cost
                why = f"Within the budget; {' and '.join(candidate.reasons)}."
                selected.append(Selected(len(selected), candidate, why, candidate.score))
        return Selection(tuple(selected), tuple(rejected))
