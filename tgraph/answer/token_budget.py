"""Selection by tokens: a shared budget split between kinds, or a cap per kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tgraph.model import Agent, Candidate, Rejected, Retrieval, Selected, Selection
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Question
from tgraph.retrieve.reasons import explain, explain_budgeted
from tgraph.version import __version__

Shares = Mapping[str, float]
"""The share of the budget, 0 to 1, of each kind of item; kinds that it doesn't name have none."""

GROUPS: Mapping[str, str] = {"entity": "graph", "edge": "graph", "claim": "graph"}
"""The kinds that share a share."""


class BudgetSelector:
    """Takes candidates in order while their group's share lasts.

    Tokens left by a group go to other groups, in candidate order."""

    agent = Agent("method", "token-budget", __version__)
    step = "Budgeting"

    def __init__(self, budget: int, shares: Shares) -> None:
        self._budget = budget
        self._shares = shares

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        chosen_ranks = self._choose_ranks(retrieval.candidates)
        chosen = [c for c in retrieval.candidates if c.rank in chosen_ranks]
        selected = tuple(
            Selected(index, candidate, explain_budgeted(candidate.reasons), candidate.score)
            for index, candidate in enumerate(chosen)
        )
        rejected = tuple(
            Rejected(c, self._rejection_reason(_candidate_group(c)))
            for c in retrieval.candidates
            if c.rank not in chosen_ranks
        )
        return Selection(selected, rejected)

    def _choose_ranks(self, candidates: Sequence[Candidate]) -> set[int]:
        remaining = {group: self._group_share(group) for group in map(_candidate_group, candidates)}
        chosen_ranks = set()
        for candidate in candidates:
            cost = candidate.tokens or 0
            if cost <= remaining[_candidate_group(candidate)]:
                remaining[_candidate_group(candidate)] -= cost
                chosen_ranks.add(candidate.rank)
        spare = self._budget - sum(c.tokens or 0 for c in candidates if c.rank in chosen_ranks)
        for candidate in candidates:
            cost = candidate.tokens or 0
            if candidate.rank not in chosen_ranks and cost <= spare:
                spare -= cost
                chosen_ranks.add(candidate.rank)
        return chosen_ranks

    def _rejection_reason(self, group: str) -> str:
        if share := self._group_share(group):
            return explain("budget-kind", kind=group, budget=share)
        return explain("budget-share", kind=group)

    def _group_share(self, group: str) -> int:
        return int(self._budget * self._shares.get(group, 0.0))


def _candidate_group(candidate: Candidate) -> str:
    return GROUPS.get(candidate.item.kind, candidate.item.kind)


# --- selection by caps: each kind of item has its own limit of tokens, and all of them have one ---


class CappedSelector:
    """Takes candidates in order while total and kind caps last.

    Unlike budget shares, tokens unused by a kind benefit only kinds without a cap."""

    agent = Agent("method", "token-caps", __version__)
    step = "Budgeting"

    def __init__(self, total: int, caps: Mapping[str, int]) -> None:
        self._total = total
        self._caps = caps

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        total, remaining = self._total, dict(self._caps)
        selected: list[Selected] = []
        rejected: list[Rejected] = []
        for candidate in retrieval.candidates:
            kind, cost = candidate.item.kind, candidate.tokens or 0
            if kind in remaining and cost > remaining[kind]:
                over = explain("budget-kind", kind=kind, budget=self._caps[kind])
                rejected.append(Rejected(candidate, over))
            elif cost > total:
                over = explain("budget-total", budget=self._total)
                rejected.append(Rejected(candidate, over))
            else:
                total -= cost
                if kind in remaining:
                    remaining[kind] -= cost
                why = explain_budgeted(candidate.reasons)
                selected.append(Selected(len(selected), candidate, why, candidate.score))
        return Selection(tuple(selected), tuple(rejected))
