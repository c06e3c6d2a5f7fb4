"""Selection by a budget of tokens: what stands first is taken, each kind within its share."""

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
