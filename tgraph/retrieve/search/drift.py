"""Local searches of DRIFT, and why follow-up questions were not asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.candidates import known_entities
from tgraph.retrieve.modes.local import LocalSearchSettings
from tgraph.retrieve.orders import (
    AskedAction,
    CutOff,
    CutOffs,
    Missing,
    RecordedSearch,
    format_ordinal,
)
from tgraph.retrieve.search.drift_actions import NO_CALLS, NO_ROUND, TOO_DEEP
from tgraph.retrieve.search.local import match_by_vector

if TYPE_CHECKING:
    from tgraph.retrieve.modes.drift import DriftSearchSettings


def read_ahead(
    questions: Sequence[Question], settings: DriftSearchSettings, context: Context
) -> None:
    """Prefetch entities matched by several DRIFT questions at once, before each question's own
    search."""
    mode_settings = local_settings(settings)
    matched = (match_by_vector(question, mode_settings, context)[0] for question in questions)
    known_entities(context, [match.entity for matches in matched for match in matches])


def local_settings(own: DriftSearchSettings) -> LocalSearchSettings:
    """The settings of the local searches of a DRIFT search."""
    shared = LocalSearchSettings.model_fields.keys() & type(own).model_fields.keys()
    return LocalSearchSettings(**{name: getattr(own, name) for name in shared})


_BY_PROMISE = {NO_CALLS: "call_budget", NO_ROUND: "breadth"}


def questions_not_asked(missing: Missing, search: RecordedSearch, context: Context) -> CutOffs:
    """Return queued questions mentioning the missing item but never asked, closest first."""
    drift_settings = context.settings.drift_search
    naming_actions = [a for a in search.actions if a.status == "pruned" and missing.names(a.query)]
    pruned = [_explain_pruning(action, search, drift_settings) for action in naming_actions]
    yield from sorted(pruned, key=lambda cut: cut.distance)


def _explain_pruning(
    action: AskedAction, search: RecordedSearch, own: DriftSearchSettings
) -> CutOff:
    """Return the cut for an unasked (pruned) follow-up question about the missing item."""
    why = f"the question “{collapse_whitespace(action.query)}” was not asked: {action.reason}"
    if action.reason == TOO_DEEP:
        why = f"{why} (the question has depth {action.depth}, the limit is {own.depth}; depth)"
        return CutOff("depth", own.depth, action.depth, why)
    field = _BY_PROMISE.get(action.reason)
    if field is None:  # nearly the same as another, or the session ended
        is_twin = action.reason.startswith("nearly")
        least = own.duplicate if is_twin else None
        return CutOff("duplicate" if is_twin else "session", least, None, why)
    follow_ups = [a for a in search.actions if a.kind == "follow-up"]
    waiting = [a for a in follow_ups if a.reason == action.reason]
    waiting.sort(key=lambda a: (-(a.promise or 0.0), a.number))
    asked_count = sum(a.status != "pruned" for a in follow_ups)
    rank, name = asked_count + waiting.index(action) + 1, field.replace("_", "-")
    place = format_ordinal(rank)
    why = f"{why} ({name} {getattr(own, field)}); by its promise it was the {place} in line,"
    return CutOff(name, asked_count, rank, f"{why} and {asked_count} were asked")
