"""Which limit of DRIFT search kept something out: of the questions on its way, of the reports that
it began with, or of the local search for one of the questions that it asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from tgraph.explain.expected import Expected
from tgraph.explain.local_limits import LocalLimits, local_of
from tgraph.explain.nearest_limits import Limit, first_of, nth, number
from tgraph.explain.past_vectors import LostVectorsError
from tgraph.explain.reached import Search
from tgraph.explain.read_again import Asked
from tgraph.explain.safety import one_line
from tgraph.explain.traced import Trace, TracedAction
from tgraph.retrieve.actions import NO_CALLS, NO_ROUND, TOO_DEEP
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.reports import reports_at_hand

_BY_PROMISE = {NO_CALLS: "call-budget", NO_ROUND: "breadth"}


@dataclass(frozen=True, slots=True)
class DriftLimits:
    """Looks for one expected thing on the way of one session; ``context`` is what that read,
    ``hypothesis`` the question as it was put as an answer."""

    trace: Trace
    expected: Expected
    search: Search
    context: Context
    asked: Asked
    hypothesis: str

    def find(self) -> Limit | None:
        """The limit with rank and cut-off; None where nothing on the way leads to the expected."""
        ways: tuple[Callable[[], Limit | None], ...] = (self._unasked, self._around, self._primer)
        return next(filter(None, (way() for way in ways)), None)

    # --- questions ---

    def _actions(self) -> Iterator[TracedAction]:
        actions = [self.trace.actions] if self.trace.actions else []
        for action in actions:
            yield action
            actions += action.children

    def _unasked(self) -> Limit | None:
        """A follow-up question about it was not asked: the one that came closest to it."""
        names = self.search.names
        pruned = [a for a in self._actions() if a.status == "pruned" and names(a.query)]
        return min(map(self._pruned, pruned), key=_distance, default=None)

    def _pruned(self, action: TracedAction) -> Limit:
        why = f"the question “{one_line(action.query)}” was not asked: {action.reason}"
        if action.reason == TOO_DEEP:
            most = number(self.trace, "depth")
            why = f"{why} (it lies {action.depth} deep, and {most} were gone; depth)"
            return Limit("depth", most, action.depth, why)
        name = _BY_PROMISE.get(action.reason)
        if name is None:  # nearly the same as another, or the session ended
            is_twin = action.reason.startswith("nearly")
            least = float(self.trace.parameters.get("duplicate", "") or 0) if is_twin else None
            return Limit("duplicate" if is_twin else "session", least, None, why)
        follow_ups = [a for a in self._actions() if a.kind == "follow-up"]
        waiting = [a for a in follow_ups if a.reason == action.reason]
        waiting.sort(key=lambda a: (-(a.promise or 0.0), a.number))
        taken = sum(a.status != "pruned" for a in follow_ups)
        rank = taken + waiting.index(action) + 1
        why = f"{why} ({name} {number(self.trace, name)}); by its promise it was the {nth(rank)}"
        return Limit(name, taken, rank, f"{why} in line, and {taken} were asked")

    # --- local searches ---

    def _around(self) -> Limit | None:
        """The closest that the local search for a question came to it."""
        return min(filter(None, map(self._searched, self._actions())), key=_distance, default=None)

    def _searched(self, action: TracedAction) -> Limit | None:
        if action.kind == "fold" or not action.retrieved:
            return None
        root = action.kind == "question"
        question = self.asked.question if root else Question(action.query)
        what = "the question" if root else f"the question on the way “{one_line(action.query)}”"
        own = local_of(self.asked.settings.drift_search)
        with suppress(LostVectorsError):
            limits = LocalLimits(self.expected, self.search, self.context, own, question, what=what)
            return limits.find()
        return None

    # --- reports ---

    def _primer(self) -> Limit | None:
        """So many reports are read first: those nearest to the question put as an answer."""
        text = self.hypothesis
        reports, own = reports_at_hand(self.context), self.asked.settings.drift_search
        if not text or reports is None:
            return None
        allowed = [report.iri for report in reports.at_level(own.community_level)]
        with suppress(LostVectorsError):
            vector = self.context.embed([text])
            hits = self.context.vectors["report"].search(vector, len(allowed), allowed)[0]
            rank = first_of([iri for iri, _ in hits], {i for i, _ in hits if self.search.told(i)})
            if rank > own.k:
                why = f"the report that speaks of it is the {nth(rank)} of {len(hits)} by likeness"
                why = f"{why} to the question put as an answer, of which the first {own.k} were"
                return Limit("k", own.k, rank, f"{why} read (k)")
        return None


def _distance(limit: Limit) -> float:
    """How far beyond the limit it was; a limit without a rank counts for far."""
    if limit.rank is None or limit.cutoff is None:
        return float("inf")
    return limit.rank / max(limit.cutoff, 1)
