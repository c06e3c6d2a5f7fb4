"""Selection by tokens: a budget of which each kind has a share, or a cap for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tgraph.model import Agent, Candidate, Rejected, Retrieval, Selected, Selection
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Question
from tgraph.version import __version__

Shares = Mapping[str, float]
"""The share of the budget, 0 to 1, of each kind of item; kinds that it doesn't name have none."""

GROUPS: Mapping[str, str] = {"entity": "graph", "edge": "graph", "claim": "graph"}
"""The kinds that share a share."""


class BudgetSelector:
    """Takes candidates in their order while their group's share lasts; what a group leaves is given
    to the others, in the order of their candidates."""

    agent = Agent("method", "token-budget", __version__)
    step = "Budgeting"

    def __init__(self, budget: int, shares: Shares) -> None:
        self._budget = budget
        self._shares = shares

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        taken = self._take(retrieval.candidates)
        chosen = [c for c in retrieval.candidates if c.rank in taken]
        selected = tuple(
            Selected(index, candidate, _why(candidate), candidate.score)
            for index, candidate in enumerate(chosen)
        )
        rejected = tuple(
            Rejected(c, self._over(_group(c))) for c in retrieval.candidates if c.rank not in taken
        )
        return Selection(selected, rejected)

    def _take(self, candidates: Sequence[Candidate]) -> set[int]:
        left = {group: self._share(group) for group in map(_group, candidates)}
        taken = set()
        for candidate in candidates:
            cost = candidate.tokens or 0
            if cost <= left[_group(candidate)]:
                left[_group(candidate)] -= cost
                taken.add(candidate.rank)
        spare = self._budget - sum(c.tokens or 0 for c in candidates if c.rank in taken)
        for candidate in candidates:
            cost = candidate.tokens or 0
            if candidate.rank not in taken and cost <= spare:
                spare -= cost
                taken.add(candidate.rank)
        return taken

    def _over(self, group: str) -> str:
        if share := self._share(group):
            return f"over the token budget of its kind ({share:,})"
        return "its kind has no share of the token budget, and others left no room"

    def _share(self, group: str) -> int:
        return int(self._budget * self._shares.get(group, 0.0))


def _group(candidate: Candidate) -> str:
    return GROUPS.get(candidate.item.kind, candidate.item.kind)


def _why(candidate: Candidate) -> str:
    reasons = " and ".join(candidate.reasons) or "it was retrieved"
    return f"Within the budget; {reasons}."


# --- selection by caps: each kind of item has its own limit of tokens, and all of them have one ---


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
