"""Which limit kept something from the candidates of a session."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.explain.expected import Expected
from tgraph.explain.likeness import Likeness
from tgraph.explain.nearest_limits import Limit, Nearest, nth, number
from tgraph.explain.ranked_limits import Ranked
from tgraph.explain.reached import Search
from tgraph.explain.read_again import Asked
from tgraph.explain.safety import one_line
from tgraph.explain.traced import Trace
from tgraph.index.knowledge import is_statement
from tgraph.retrieve.base import Context

NEAR = 2
"""Hops beyond ``max-path-length`` within which something still counts as linked to the question."""


class Limits:
    """``context`` is what the session read, ``cut`` the complete list of what was retrieved, where
    some of it was no candidate."""

    def __init__(
        self,
        trace: Trace,
        expected: Expected,
        cut: list[str],
        likeness: Likeness,
        context: Context,
        asked: Asked,
    ) -> None:
        self._store = context.store
        self._ranked = Ranked(trace, expected, context, asked)
        self._trace = trace
        self._expected = expected
        self._cut = cut
        self._likeness = likeness
        self._matched = {match.entity: match.label for match in trace.matches}

    def find(self) -> Limit | None:
        """The limit that the expected is beyond; None where nothing links it to the question."""
        near = Nearest(self._store, self._trace, self._expected, self._likeness)
        ways = (
            self._listed,
            self._unasked,
            near.find,
            self._ranked.find,
            self._around,
            self._walked,
            self._fused,
            self._levels,
            self._rated,
        )
        return next(filter(None, (way() for way in ways)), None)

    def _number(self, name: str) -> int:
        return number(self._trace, name)

    # --- the complete list ---

    def _listed(self) -> Limit | None:
        """It is on the complete list, after the candidates."""
        wanted = self._expected.in_items
        places = [place for place, iri in enumerate(self._cut, 1) if iri in wanted]
        if not places:
            return None
        name, rank = "max-subgraph-size", places[0]
        cutoff = self._number(name)
        if rank <= cutoff:  # the mode counts otherwise
            items = {i.item for i in (*self._trace.selected, *self._trace.rejected)}
            cutoff = sum(iri in items for iri in self._cut)
        return Limit(
            name,
            cutoff,
            rank,
            f"it came {nth(rank)} of {len(self._cut)} that were retrieved, and the first"
            f" {cutoff} became candidates ({name})",
        )

    # --- the subgraph around the matched entities ---

    def _around(self) -> Limit | None:
        if not self._matched or not self._expected.edges | self._expected.entities:
            return None
        hops = self._number("max-path-length")
        if self._trace.mode == "local":
            return self._out_of_local()
        if self._trace.mode != "graph":
            return None
        distance, way = self._distance(hops + NEAR)
        if not distance:
            return None
        if distance > hops:
            why = f"it lies {distance} hops from the nearest matched entity, {way}"
            return Limit(
                "max-path-length", hops, distance, f"{why}, and {hops} were gone (max-path-length)"
            )
        return self._by_entity(distance, way) if distance > 1 else self._by_triple(way)

    def _out_of_local(self) -> Limit | None:
        distance, way = self._distance(1)
        if not distance:
            return None
        cutoff = self._number("top-k-relationships") * max(1, len(self._matched))
        why = f"it is tied to {way}, and not among the {cutoff} edges that were taken out of the"
        return Limit(
            "top-k-relationships", cutoff, None, f"{why} matched entities (top-k-relationships)"
        )

    def _by_triple(self, entity: str) -> Limit:
        """It is an edge of a matched entity: others of that entity went before it."""
        cutoff = self._number("triple-limit")
        node = next(iri for iri, label in self._matched.items() if label == entity)
        around = {edge for edge, _ in self._edges(node)}
        found = self._likeness.rank(
            self._trace.question, "edge", self._expected.edges & around, around
        )
        said = f"it is one of {len(around)} edges of {entity}, of which"
        if found is None:
            why = f"{said} the {cutoff} nearest to the question were taken at most (triple-limit)"
            return Limit("triple-limit", cutoff, None, why)
        rank = found[0]
        why = f"{said} it is the {nth(rank)} by likeness to the question"
        if rank <= cutoff * 2 // 3:
            return Limit("edges read", 0, rank, f"{why}, and sentences of nearer edges were read")
        return Limit(
            "triple-limit", cutoff, rank, f"{why}, and at most {cutoff} were taken (triple-limit)"
        )

    def _by_entity(self, distance: int, entity: str) -> Limit:
        cutoff = self._number("entity-limit")
        name = "entity-limit" if "entity limit" in self._trace.dropped else "triple-limit"
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
                    if edge in self._expected.edges or other in self._expected.entities:
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
            self._store.match(node, None, None, v.KNOWLEDGE_GRAPH),
            self._store.match(None, None, node, v.KNOWLEDGE_GRAPH),
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

    # --- walks and reports ---

    def _walked(self) -> Limit | None:
        """Graph ranking takes so many chunks; what came after them is not on record."""
        taken = self._trace.item_count
        cutoff = self._number("passages")
        if self._trace.mode != "ppr" or not self._expected.chunks or taken < cutoff:
            return None
        why = f"the walk came to {cutoff} chunks before it (passages); its rank is not on record"
        return Limit("passages", cutoff, None, why)

    def _fused(self) -> Limit | None:
        """Contextual retrieval takes so many chunks by words and meaning together."""
        cutoff = self._number("k")
        if self._trace.mode != "contextual" or not self._expected.chunks:
            return None
        if self._trace.item_count < cutoff:
            return None
        why = f"{cutoff} chunks fit the question better (k); its rank is not on record"
        return Limit("k", cutoff, None, why)

    def _levels(self) -> Limit | None:
        """A report below the level that was read names it."""
        if self._trace.mode != "global":
            return None
        level = self._number("community-level")
        found = [deep for report, deep in self._reports("level") if deep > level]
        if not found:
            return None
        first = int(min(found))
        why = f"only reports below level {level} speak of it, the first at level {first}"
        return Limit("community-level", level, first, f"{why} (community-level)")

    def _rated(self) -> Limit | None:
        """A report that names it is rated too low to be read."""
        least = float(self._trace.parameters.get("min-rating", "") or 0)
        if self._trace.mode != "global" or not least:
            return None
        found = [rating for _, rating in self._reports("rating") if rating < least]
        if not found:
            return None
        why = f"the reports that speak of it are rated {max(found):g} at most, and what is rated"
        return Limit("min-rating", least, None, f"{why} below {least:g} was left out (min-rating)")

    def _unasked(self) -> Limit | None:
        """A follow-up question about it was not asked."""
        actions = [self._trace.actions] if self._trace.actions else []
        search = Search(self._store, self._trace, self._expected)
        for action in actions:
            if action.status == "pruned" and search.names(action.query):
                why = f"the question “{one_line(action.query)}” was not asked: {action.reason}"
                cutoff = self._number("call-budget")
                return Limit("call-budget", cutoff, None, f"{why} (call-budget, breadth, depth)")
            actions += action.children
        return None

    def _reports(self, name: str) -> Iterator[tuple[str, float]]:
        """The reports that speak of it, each with its level or rating."""
        search = Search(self._store, self._trace, self._expected)
        kinds = self._store.match(None, v.RDF_TYPE, v.tg("CommunityReport"), v.KNOWLEDGE_GRAPH)
        for quad in kinds:
            if isinstance(quad.subject, NamedNode) and search.told(quad.subject.value):
                for said in self._store.match(quad.subject, v.tg(name), None, v.KNOWLEDGE_GRAPH):
                    if isinstance(said.object, Literal):
                        yield quad.subject.value, float(said.object.value)
