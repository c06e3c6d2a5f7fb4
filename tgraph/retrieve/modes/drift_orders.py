"""Where DRIFT search cuts: the questions on its way, the local searches for those that were asked,
and the reports that it begins with."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tgraph.models.replay import UnrecordedError
from tgraph.retrieve.actions import NO_CALLS, NO_ROUND, TOO_DEEP
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.local import match_by_vector
from tgraph.retrieve.modes.local import LocalSearchSettings
from tgraph.retrieve.modes.local_orders import LocalOrders, unmatched
from tgraph.retrieve.orders import (
    AskedAction,
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    first_cut,
    flat,
    iris,
    nth,
)
from tgraph.retrieve.reports import reports_at_hand

if TYPE_CHECKING:
    from tgraph.retrieve.modes.drift import DriftSearchSettings

_BY_PROMISE = {NO_CALLS: "call_budget", NO_ROUND: "breadth"}


def drift_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The questions in line, the closest that a local search came to it, and the first reports."""
    own = context.settings.drift_search
    named = [a for a in search.actions if a.status == "pruned" and missing.names(a.query)]
    pruned = [_pruned(action, search, own) for action in named]
    around = [_searched(action, missing, search, context) for action in search.actions]
    for found in (pruned, filter(None, around)):
        yield from sorted(found, key=lambda cut: cut.distance)
    with suppress(UnrecordedError):
        yield from _primer(missing, search, context)
    yield from unmatched(missing, search, own.top_k_entities, context)


def _pruned(action: AskedAction, search: RecordedSearch, own: DriftSearchSettings) -> CutOff:
    """A follow-up question about it was not asked."""
    why = f"the question “{flat(action.query)}” was not asked: {action.reason}"
    if action.reason == TOO_DEEP:
        why = f"{why} (it lies {action.depth} deep, and {own.depth} were gone; depth)"
        return CutOff("depth", own.depth, action.depth, why)
    field = _BY_PROMISE.get(action.reason)
    if field is None:  # nearly the same as another, or the session ended
        is_twin = action.reason.startswith("nearly")
        least = own.duplicate if is_twin else None
        return CutOff("duplicate" if is_twin else "session", least, None, why)
    follow_ups = [a for a in search.actions if a.kind == "follow-up"]
    waiting = [a for a in follow_ups if a.reason == action.reason]
    waiting.sort(key=lambda a: (-(a.promise or 0.0), a.number))
    taken = sum(a.status != "pruned" for a in follow_ups)
    rank, name = taken + waiting.index(action) + 1, field.replace("_", "-")
    why = f"{why} ({name} {getattr(own, field)}); by its promise it was the {nth(rank)} in line,"
    return CutOff(name, taken, rank, f"{why} and {taken} were asked")


def _searched(
    action: AskedAction, missing: Missing, search: RecordedSearch, context: Context
) -> CutOff | None:
    """How close the local search for a question came to it."""
    if action.kind == "fold" or not action.retrieved:
        return None
    root, own = action.kind == "question", context.settings.drift_search
    question = search.question if root else Question(action.query)
    what = "the question" if root else f"the question on the way “{flat(action.query)}”"
    shared = set(LocalSearchSettings.model_fields) & set(type(own).model_fields)
    local = LocalSearchSettings(**{name: getattr(own, name) for name in shared})
    with suppress(UnrecordedError):
        matches = match_by_vector(question, local, context)
        return first_cut(LocalOrders(missing, question, local, context, matches, what).all())
    return None


def _primer(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """So many reports are read first: those nearest to the question put as an answer."""
    reports, own = reports_at_hand(context), context.settings.drift_search
    if not search.hypothesis or reports is None:
        return
    allowed = [report.iri for report in reports.at_level(own.community_level)]
    vector = context.embed([search.hypothesis])
    order = iris(context.vectors["report"].search(vector, len(allowed), allowed)[0])
    telling = {report for report in order if missing.tells(report)}
    why = f"by likeness to the question put as an answer, of which the first {own.k} were read (k)"
    yield RankedOrder("k", own.k, order, telling, why, "the report that speaks of it")
