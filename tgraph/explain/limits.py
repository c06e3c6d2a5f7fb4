"""Which limit kept something from the candidates of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import TgraphError
from tgraph.explain.drift_limits import DriftLimits
from tgraph.explain.expected import Expected
from tgraph.explain.grown_limits import Grown
from tgraph.explain.likeness import Likeness
from tgraph.explain.local_limits import LocalLimits, local_of
from tgraph.explain.nearest_limits import Limit, Nearest, nth, number
from tgraph.explain.ranked_limits import Ranked
from tgraph.explain.reached import Search
from tgraph.explain.read_again import Asked
from tgraph.explain.report_limits import ReportLimits
from tgraph.explain.traced import Trace
from tgraph.index.knowledge import is_statement
from tgraph.model import EntityMatch
from tgraph.retrieve.base import Context

NEAR = 2
"""Hops beyond ``max-path-length`` within which something still counts as linked to the question."""

Way = Callable[[], "Limit | None"]


@dataclass
class Limits:
    """``context`` is what the session read, ``cut`` the complete list of what was retrieved, where
    some of it was no candidate; ``hypothesis`` is DRIFT's, of the record."""

    trace: Trace
    expected: Expected
    cut: list[str]
    likeness: Likeness
    context: Context
    asked: Asked
    hypothesis: str = ""

    def find(self) -> Limit | None:
        """The limit that the expected is beyond; None where nothing links it to the question.

        Where a vector is needed that is on no record, the limit is named without a rank."""
        modes: Mapping[str, Way] = {
            "graph": self._around,
            "local": self._local,
            "suggest": self._local,
            "drift": self._drift,
            "global": self._global,
        }
        ways = (self._listed, modes.get(self.trace.mode, self._ranked))
        return next(filter(None, (way() for way in ways)), None)

    def _number(self, name: str) -> int:
        return number(self.trace, name)

    @cached_property
    def _search(self) -> Search:
        return Search(self.context.store, self.trace, self.expected)

    @cached_property
    def _matched(self) -> dict[str, str]:
        return {match.entity: match.label for match in self.trace.matches}

    @cached_property
    def _matches(self) -> list[EntityMatch]:
        return [EntityMatch(m.entity, m.label, "", 0.0, m.method) for m in self.trace.matches]

    # --- modes ---

    def _local(self) -> Limit | None:
        own = local_of(self.asked.settings.local_search)
        with suppress(TgraphError):
            return LocalLimits(
                self.expected,
                self._search,
                self.context,
                own,
                self.asked.question,
                self._matches,
            ).find()
        return self._unranked()

    def _drift(self) -> Limit | None:
        asked = self.asked
        way = DriftLimits(
            self.trace, self.expected, self._search, self.context, asked, self.hypothesis
        )
        return way.find() or self._unranked()

    def _unranked(self) -> Limit | None:
        """The entities nearest to the question are others; which, can't be known any more."""
        cutoff = self._number("top-k-entities")
        if self.likeness.hits(self.trace.question, "entity") or not self.expected.entities:
            return None
        why = f"it is not among the {cutoff} entities nearest to the question (top-k-entities)"
        return Limit("top-k-entities", cutoff, None, why)

    def _global(self) -> Limit | None:
        own = self.asked.settings.global_search
        return ReportLimits(self.trace, self._search, self.context, own).find()

    def _ranked(self) -> Limit | None:
        near = Nearest(self.context.store, self.trace, self.expected, self.likeness)
        ranked = Ranked(self.trace, self.expected, self.context, self.asked)
        ways = (ranked.find_edge, near.find, ranked.find, self._walked, self._fused)
        return next(filter(None, (way() for way in ways)), None)

    # --- the complete list ---

    def _listed(self) -> Limit | None:
        """It is on the complete list, after the candidates."""
        wanted = self.expected.in_items
        places = [place for place, iri in enumerate(self.cut, 1) if iri in wanted]
        if not places:
            return None
        name, rank = "max-subgraph-size", places[0]
        cutoff = self._number(name)
        if rank <= cutoff:  # the mode counts otherwise
            items = {i.item for i in (*self.trace.selected, *self.trace.rejected)}
            cutoff = sum(iri in items for iri in self.cut)
        return Limit(
            name,
            cutoff,
            rank,
            f"it came {nth(rank)} of {len(self.cut)} that were retrieved, and the first"
            f" {cutoff} became candidates ({name})",
        )

    # --- the subgraph around the matched entities ---

    def _around(self) -> Limit | None:
        if not self._matched or not self.expected.edges | self.expected.entities:
            return None
        hops = self._number("max-path-length")
        distance, way = self._distance(hops + NEAR)
        if not distance:
            return None
        if distance > hops:
            why = f"it lies {distance} hops from the nearest matched entity, {way}"
            return Limit(
                "max-path-length", hops, distance, f"{why}, and {hops} were gone (max-path-length)"
            )
        grown = Grown(self.expected, self.context, self.asked.question, self._matches)
        if distance > 1:
            return grown.find(way) or self._by_entity(distance, way)
        return self._by_triple(way) or grown.find(way)

    def _by_triple(self, entity: str) -> Limit | None:
        """It is an edge of a matched entity: others of that entity went before it."""
        name, cutoff = "triple-limit", self._number("triple-limit")
        node = next(iri for iri, label in self._matched.items() if label == entity)
        around = {edge for edge, _ in self._edges(node)}
        found = self.likeness.rank(
            self.trace.question, "edge", self.expected.edges & around, around
        )
        said = f"it is one of {len(around)} edges of {entity}, of which"
        if found is None:
            why = f"{said} the {cutoff} nearest to the question were taken at most ({name})"
            return Limit(name, cutoff, None, why)
        rank, taken = found[0], max(1, cutoff * 2 // 3)
        if len(around) <= cutoff or rank <= taken:
            return None
        why = f"{said} it is the {nth(rank)} by likeness to the question, and {taken} were taken"
        kept = f"; {cutoff - taken} more only beside good sentences" if cutoff > taken else ""
        return Limit(name, taken, rank, f"{why} ({name} {cutoff}{kept})")

    def _by_entity(self, distance: int, entity: str) -> Limit:
        cutoff = self._number("entity-limit")
        name = "entity-limit" if "entity limit" in self.trace.dropped else "triple-limit"
        cutoff = self._number(name)
        why = (
            f"it lies {distance} hops from the matched entity {entity}; of the edges on the way"
            f" others were nearer to the question ({name} {cutoff})"
        )
        return Limit(name, cutoff, None, why)

    def _distance(self, most: int) -> tuple[int, str]:
        """How many edges lead from a matched entity to the expected, counting its own, and the
        label of that entity; 0 where there are more than ``most``."""
        seen, frontier = set(self._matched), self._matched
        for distance in range(1, most + 1):
            reached: dict[str, str] = {}
            for entity, label in sorted(frontier.items()):
                for edge, other in self._edges(entity):
                    if edge in self.expected.edges or other in self.expected.entities:
                        return distance, label
                    if other and other not in seen:
                        reached.setdefault(other, label)
            seen |= reached.keys()
            frontier = reached
        return 0, ""

    def _edges(self, entity: str) -> Iterator[tuple[str, str]]:
        """The edges of an entity, each with its other end (empty for a literal)."""
        node = NamedNode(entity)
        for quads in (
            self.context.store.match(node, None, None, v.KNOWLEDGE_GRAPH),
            self.context.store.match(None, None, node, v.KNOWLEDGE_GRAPH),
        ):
            for quad in quads:
                s, p, o = quad.subject, quad.predicate, quad.object
                if (
                    is_statement(p)
                    and isinstance(s, NamedNode)
                    and isinstance(o, NamedNode | Literal)
                ):
                    other = s if o == node else o
                    yield v.edge_iri(s, p, o), other.value if isinstance(other, NamedNode) else ""

    # --- where ranks can't be known ---

    def _walked(self) -> Limit | None:
        """Graph ranking takes so many chunks; what came after them is not on record."""
        taken = self.trace.item_count
        cutoff = self._number("passages")
        if self.trace.mode != "ppr" or not self.expected.chunks or taken < cutoff:
            return None
        why = f"the walk came to {cutoff} chunks before it (passages); its rank is not on record"
        return Limit("passages", cutoff, None, why)

    def _fused(self) -> Limit | None:
        """Contextual retrieval takes so many chunks by words and meaning together."""
        cutoff = self._number("k")
        if self.trace.mode != "contextual" or not self.expected.chunks:
            return None
        if self.trace.item_count < cutoff:
            return None
        why = f"{cutoff} chunks fit the question better (k); its rank is not on record"
        return Limit("k", cutoff, None, why)
