"""Where local search cuts: entities, the edges out of them, their chunks and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode

from tgraph.errors import TgraphError
from tgraph.model import EntityMatch
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.basic import in_conversation
from tgraph.retrieve.chunks import chunk_evidence
from tgraph.retrieve.labels import labels_of
from tgraph.retrieve.local import MOST_CHUNKS, MOST_REPORTS, Surroundings, match_by_vector
from tgraph.retrieve.orders import (
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    Standing,
    flat,
    nearest,
)
from tgraph.retrieve.seeds import match_names

if TYPE_CHECKING:
    from tgraph.retrieve.modes.local import LocalSearchSettings


def local_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The entities by likeness, and what is around those that the question led to."""
    own = context.settings.local_search
    try:
        yield from orders_around(missing, search.question, own, context, search.matches)
    except TgraphError:
        yield from unmatched(missing, search, own.top_k_entities, context)


def unmatched(missing: Missing, search: RecordedSearch, cutoff: int, context: Context) -> Orders:
    """The entities nearest to the question are others; which, can't be known any more."""
    if missing.entities and not nearest(context, "entity", in_conversation(search.question)):
        why = f"it is not among the {cutoff} entities nearest to the question (top-k-entities)"
        yield CutOff("top-k-entities", cutoff, None, why)


def orders_around(
    missing: Missing,
    question: Question,
    settings: LocalSearchSettings,
    context: Context,
    matches: Sequence[EntityMatch] = (),
    what: str = "the question",
) -> Orders:
    """The orders of one search: the session's, or that of a question on DRIFT's way, which
    ``what`` names. ``matches`` are the entities that it led to; without them they are found once
    more. ``UnrecordedError`` where a vector that is needed is on no record."""
    found = _Search(missing, question, settings, context, matches, what)
    ways = {
        "entity": (found.entities, found.edges, found.chunks, found.reports),
        "fact": (found.edges, found.chunks, found.reports, found.entities),
    }
    others = (found.chunks, found.edges, found.reports, found.entities)
    for way in ways.get(missing.kind, others):
        yield from way()


class _Search:
    def __init__(
        self,
        missing: Missing,
        question: Question,
        settings: LocalSearchSettings,
        context: Context,
        matches: Sequence[EntityMatch],
        what: str,
    ) -> None:
        self._missing = missing
        self._question = question
        self._settings = settings
        self._context = context
        self._matches = matches or match_by_vector(question, settings, context)
        self._what = what
        self._around = Surroundings.of(self._matches, settings, context)

    def entities(self) -> Orders:
        """The question leads to so many entities, the nearest, and none of these to the missing."""
        own, context, missing = self._settings, self._context, self._missing
        if any(match.method == "centre" for match in self._matches):
            return  # no question led to them
        leading = missing.ends(context.store)
        leading |= set() if missing.entities else missing.spoken_of(context.store)
        excluded = {e for name in own.exclude for e in match_names(name, context.store)}
        if leading and leading <= excluded:
            yield CutOff("exclude", None, None, "it is left out by the setting exclude")
            return
        count = max(1, len(context.vectors["entity"]))
        wide = own.model_copy(update={"top_k_entities": count, "oversampling": 1})
        order = [match.entity for match in match_by_vector(self._question, wide, context)]
        cutoff = len(self._matches)
        what = f"entities by likeness to {self._what}, of which the first {cutoff} were taken"
        yield RankedOrder(
            "top-k-entities",
            cutoff,
            order,
            leading,
            lambda at: f"{self._who(at)} is {at} {what} (top-k-entities)",
        )

    def _who(self, at: Standing) -> str:
        if at.item in self._missing.entities:
            return "it"
        [label] = labels_of(self._context.store, [NamedNode(at.item)]).values()
        return f"{flat(label)}, the nearest of the entities that it speaks of,"

    def edges(self) -> Orders:
        """So many edges are taken of those that lead out of the matched entities."""
        each, inside = self._settings.top_k_relationships, len({m.entity for m in self._matches})
        name, most = "top-k-relationships", each * inside
        why = f"edges that lead out of the {inside} entities matched with {self._what}, and {most}"
        why = f"{why} were taken ({each} for each, {name})"
        if self._missing.edges:
            out = self._around.edge_orders()[1]
            yield RankedOrder(name, most, out, self._missing.edges, why)

    def chunks(self) -> Orders:
        """A fixed number of the chunks that speak of the matched entities is considered."""
        if not self._missing.chunks:
            return
        most = self._context.limits.max_subgraph_size
        shown = self._around.labelled(list(self._around.edges())[:most])
        order = list(self._around.speaking(shown))
        standing = chunk_evidence(self._context, order)
        why = f"that name an entity matched with {self._what}, of which the first {MOST_CHUNKS} are"
        yield RankedOrder(
            "most-chunks",
            MOST_CHUNKS,
            [chunk for chunk in order if chunk in standing],
            self._missing.chunks,
            lambda at: f"its chunk is {at} {why} considered (fixed)",
        )

    def reports(self) -> Orders:
        """A fixed number of the reports of their communities is considered, down to a level."""
        levels = {report.iri: report.level for report, _ in self._around.touched()}
        telling = {report for report in levels if self._missing.tells(report)}
        own = self._settings.community_level
        why = f"on communities of the entities matched with {self._what}, of which the first"
        yield RankedOrder(
            "most-reports",
            MOST_REPORTS,
            [report for report, level in levels.items() if level <= own],
            telling,
            lambda at: (
                f"the report that speaks of it is {at} {why} {MOST_REPORTS} are considered (fixed)"
            ),
        )
        yield RankedOrder(
            "community-level",
            own,
            levels,
            telling,
            lambda at: (
                f"only reports below level {own} speak of it, the first at level {at.rank}"
                " (community-level)"
            ),
        )
