"""Which limit kept something from a local search: a session's, or that of one question on DRIFT's
way. The search is run once more, over what the session read, with its limits lifted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.explain.expected import Expected
from tgraph.explain.nearest_limits import Limit, first_of, nth
from tgraph.explain.reached import Search
from tgraph.explain.safety import one_line
from tgraph.index.sources import text_value
from tgraph.model import Edge, EntityMatch, Retrieval
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.labels import labels_of, reified
from tgraph.retrieve.local import MOST_CHUNKS, MOST_REPORTS, around, match_by_vector
from tgraph.retrieve.modes.local import LocalSearchSettings
from tgraph.retrieve.reports import reports_at_hand
from tgraph.retrieve.seeds import match_names

ALL = 1 << 30


class LocalLimits:
    """Looks for one expected thing around the entities that one question led to.

    ``matches`` are those entities; without them they are found once more, by the vectors on record.
    ``what`` is what the question is called in a reason.
    """

    def __init__(
        self,
        expected: Expected,
        search: Search,
        context: Context,
        settings: LocalSearchSettings,
        question: Question,
        matches: Sequence[EntityMatch] = (),
        what: str = "the question",
    ) -> None:
        self._expected = expected
        self._search = search
        self._context = context
        self._settings = settings
        self._question = question
        self._what = what
        self._matches = matches or match_by_vector(question, settings, context)

    def find(self) -> Limit | None:
        """The limit with rank and cut-off; None where nothing links the expected to the question.
        ``LostVectorsError`` where a vector that is needed is on no record."""
        ways: tuple[Callable[[], Limit | None], ...]
        if self._expected.kind == "entity":
            ways = (self._unmatched, self._out, self._spoken_of, self._told)
        elif self._expected.kind == "fact":
            ways = (self._out, self._spoken_of, self._told, self._unmatched)
        else:
            ways = (self._spoken_of, self._out, self._told, self._unmatched)
        return next(filter(None, (way() for way in ways)), None)

    # --- entities ---

    def _unmatched(self) -> Limit | None:
        """The question leads to so many entities, the nearest, and none of these to it."""
        entities = self._leading
        own, context = self._settings, self._context
        if any(match.method == "centre" for match in self._matches):
            return None  # no question led to them
        excluded = {e for name in own.exclude for e in match_names(name, context.store)}
        if entities and entities <= excluded:
            return Limit("exclude", None, None, "it is left out by the setting exclude")
        count = max(1, len(context.vectors["entity"]))
        wide = own.model_copy(update={"top_k_entities": count, "oversampling": 1})
        order = [m.entity for m in match_by_vector(self._question, wide, context)]
        rank, cutoff = first_of(order, entities), len(self._matches)
        if rank <= cutoff:
            return None
        why = f"{self._who(order[rank - 1])} is the {nth(rank)} of {len(order)} entities by"
        why = f"{why} likeness to {self._what}, of which the first {cutoff} were taken"
        return Limit("top-k-entities", cutoff, rank, f"{why} (top-k-entities)")

    @cached_property
    def _leading(self) -> set[str]:
        """The entities that would lead to it: itself, else those that it ties or speaks of."""
        expected, store = self._expected, self._context.store
        if expected.entities:
            return set(expected.entities)
        edges = reified(store, sorted(expected.edges)).values()
        named = {text_value(store, item, v.tg("entity")) for item in expected.evidence} - {""}
        return {end for edge in edges for end in _ends(edge)} | named

    def _who(self, entity: str) -> str:
        if entity in self._expected.entities:
            return "it"
        [label] = labels_of(self._context.store, [NamedNode(entity)]).values()
        return f"{one_line(label)}, the nearest of the entities that it speaks of,"

    # --- edges ---

    def _out(self) -> Limit | None:
        """So many edges are taken of those that lead out of the matched entities."""
        inside = {match.entity for match in self._matches}
        if not inside or not self._expected.edges:
            return None
        settings, own = self._context.settings, self._settings
        graph = settings.graph.model_copy(update={"max_subgraph_size": 0})
        wide = replace(
            self._context, settings=settings.model_copy(update={"graph": graph}), _memory={}
        )
        lifted = own.model_copy(update={"top_k_relationships": ALL})
        order = around(self._matches, lifted, wide, reports=0, chunks=0).cut
        known = reified(wide.store, order)
        out = [i for i in order if i in known and not inside.issuperset(_ends(known[i]))]
        rank, each = first_of(out, self._expected.edges), own.top_k_relationships
        cutoff = each * len(inside)
        if rank <= cutoff:
            return None
        why = f"it is the {nth(rank)} of {len(out)} edges that lead out of the {len(inside)}"
        why = f"{why} entities matched with {self._what}, and {cutoff} were taken ({each} for each"
        return Limit("top-k-relationships", cutoff, rank, f"{why}, top-k-relationships)")

    # --- chunks and reports ---

    @cached_property
    def _everything(self) -> Retrieval:
        """All chunks that speak of the matched entities, and all reports of their communities."""
        lifted = self._settings.model_copy(update={"community_level": ALL})
        return around(self._matches, lifted, self._context, reports=ALL, chunks=ALL)

    def _order(self, kind: str) -> list[str]:
        items = (candidate.item for candidate in self._everything.candidates)
        return [item.iri for item in items if not isinstance(item, Edge) and item.kind == kind]

    def _spoken_of(self) -> Limit | None:
        """A fixed number of chunks is considered."""
        order = self._order("chunk") if self._expected.chunks else []
        rank = first_of(order, self._expected.chunks)
        if rank <= MOST_CHUNKS:
            return None
        why = f"its chunk is the {nth(rank)} of {len(order)} that name an entity matched with"
        why = f"{why} {self._what}, of which the first {MOST_CHUNKS} are considered (fixed)"
        return Limit("most-chunks", MOST_CHUNKS, rank, why)

    def _told(self) -> Limit | None:
        """A fixed number of reports is considered, down to a level."""
        reports = reports_at_hand(self._context)
        order = [iri for iri in self._order("report") if reports and iri in reports.by_iri]
        levels = {iri: reports.by_iri[iri].level for iri in order} if reports else {}
        own = self._settings.community_level
        read = [iri for iri in order if levels[iri] <= own]
        rank = first_of(read, {iri for iri in read if self._search.told(iri)})
        if rank > MOST_REPORTS:
            why = f"the report that speaks of it is the {nth(rank)} of {len(read)} on communities"
            why = f"{why} of the entities matched with {self._what}, of which the first"
            why = f"{why} {MOST_REPORTS} are considered (fixed)"
            return Limit("most-reports", MOST_REPORTS, rank, why)
        deeper = sorted(levels[i] for i in order if levels[i] > own and self._search.told(i))
        if rank or not deeper:
            return None
        why = f"only reports below level {own} speak of it, the first at level {deeper[0]}"
        return Limit("community-level", own, deeper[0], f"{why} (community-level)")


def local_of(settings: object) -> LocalSearchSettings:
    """The settings of the local searches that a mode makes: those that it shares with it."""
    shared = (name for name in LocalSearchSettings.model_fields if hasattr(settings, name))
    return LocalSearchSettings(**{name: getattr(settings, name) for name in shared})


def _ends(edge: Edge) -> Collection[str]:
    return {getattr(end, "value", "") for end in (edge.subject, edge.object)}
