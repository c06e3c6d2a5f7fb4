"""Where local search cuts: entities, the edges out of them, their chunks and reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
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
    above_level,
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
        matches = search.matches or match_by_vector(search.question, own, context)
        yield from LocalOrders(missing, search.question, own, context, matches).all()
    except TgraphError:
        yield from unmatched(missing, search, own.top_k_entities, context)


def unmatched(missing: Missing, search: RecordedSearch, cutoff: int, context: Context) -> Orders:
    """The entities nearest to the question are others; which, can't be known any more."""
    if missing.entities and not nearest(context, "entity", in_conversation(search.question)):
        why = f"it is not among the {cutoff} entities nearest to the question (top-k-entities)"
        yield CutOff("top-k-entities", cutoff, None, why)


@dataclass(frozen=True)
class LocalOrders:
    """The orders of one search: the session's, or that of a question on DRIFT's way, which
    ``what`` names; ``matches`` are the entities that it led to. ``UnrecordedError`` where a vector
    that is needed is on no record."""

    missing: Missing
    question: Question
    settings: LocalSearchSettings
    context: Context
    matches: Sequence[EntityMatch]
    what: str = "the question"

    def all(self) -> Orders:
        """The orders, those of what is missing first."""
        ways = {
            "entity": (self.entities, self.edges, self.chunks, self.reports),
            "fact": (self.edges, self.chunks, self.reports, self.entities),
        }
        others = (self.chunks, self.edges, self.reports, self.entities)
        for way in ways.get(self.missing.kind, others):
            yield from way()

    def entities(self) -> Orders:
        """The question leads to so many entities, the nearest, and none of these to the missing."""
        own, context, missing = self.settings, self.context, self.missing
        if any(match.method == "centre" for match in self.matches):
            return  # no question led to them
        leading = missing.ends(context.store)
        leading |= set() if missing.entities else missing.spoken_of(context.store)
        excluded = {e for name in own.exclude for e in match_names(name, context.store)}
        if leading and leading <= excluded:
            yield CutOff("exclude", None, None, "it is left out by the setting exclude")
            return
        count = max(1, len(context.vectors["entity"]))
        wide = own.model_copy(update={"top_k_entities": count, "oversampling": 1})
        order = [match.entity for match in match_by_vector(self.question, wide, context)]
        name, most = "top-k-entities", len(self.matches)
        why = f"entities by likeness to {self.what}, of which the first {most} were taken ({name})"
        yield RankedOrder(name, most, order, leading, why, self._who)

    def _who(self, entity: str) -> str:
        if entity in self.missing.entities:
            return "it"
        [label] = labels_of(self.context.store, [NamedNode(entity)]).values()
        return f"{flat(label)}, the nearest of the entities that it speaks of,"

    def edges(self) -> Orders:
        """So many edges are taken of those that lead out of the matched entities."""
        each, inside = self.settings.top_k_relationships, len({m.entity for m in self.matches})
        name, most = "top-k-relationships", each * inside
        why = f"edges that lead out of the {inside} entities matched with {self.what}, and {most}"
        why = f"{why} were taken ({each} for each, {name})"
        if self.missing.edges:
            out = self._around.edge_orders()[1]
            yield RankedOrder(name, most, out, self.missing.edges, why)

    def chunks(self) -> Orders:
        """A fixed number of the chunks that speak of the matched entities is considered."""
        if not self.missing.chunks:
            return
        most = self.context.limits.max_subgraph_size
        shown = self._around.labelled(list(self._around.edges())[:most])
        order = list(self._around.speaking(shown))
        standing = chunk_evidence(self.context, order)
        order = [chunk for chunk in order if chunk in standing]
        why = f"that name an entity matched with {self.what}, of which the first {MOST_CHUNKS} are"
        why = f"{why} considered (fixed)"
        wanted = self.missing.chunks
        yield RankedOrder("most-chunks", MOST_CHUNKS, order, wanted, why, "its chunk")

    def reports(self) -> Orders:
        """A fixed number of the reports of their communities is considered, down to a level."""
        levels = {report.iri: report.level for report, _ in self._around.touched()}
        telling = {report for report in levels if self.missing.tells(report)}
        level, name, who = self.settings.community_level, "most-reports", "the report that speaks"
        read = [report for report, at in levels.items() if at <= level]
        why = f"on communities of the entities matched with {self.what}, of which the first"
        why = f"{why} {MOST_REPORTS} are considered (fixed)"
        yield RankedOrder(name, MOST_REPORTS, read, telling, why, f"{who} of it")
        yield above_level(level, levels, telling)

    @cached_property
    def _around(self) -> Surroundings:
        return Surroundings.of(self.matches, self.settings, self.context)
