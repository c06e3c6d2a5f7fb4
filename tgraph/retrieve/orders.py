"""Ranked orders with their cut-offs: where a retrieval loses what it does not take.

A search records of each order in which it ranks what a limit cut off (``cut_order``); ``first_cut``
finds the order that has what is missing beyond its cut. What a limit takes is not recorded twice:
it becomes a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby

from pydantic import TypeAdapter

from tgraph.index.sources import text_value
from tgraph.index.stored_graph import StoredGraph
from tgraph.model import EntityMatch, RankedOrder
from tgraph.models.base import canonical_json
from tgraph.retrieve.base import Context
from tgraph.retrieve.labels import read_reified_edges
from tgraph.store.base import Store
from tgraph.vocabulary import tg

MOST_BEYOND = 200
"""Items after the cut that are recorded of one order."""

MOST_OF_SESSION = 700
"""Items that are recorded of all orders of a session; long orders are shortened before short ones.
"""

ITEM, PLACE, RANK, SCORE, QUESTION, ABOUT = (
    *("{item}", "{place}", "{rank}", "{score}"),
    *("{question}", "{about}"),
)
"""Names in a reason: what was left out, its place ("the 3rd of 52"), its rank and score, the
question that was searched for, and the entity whose edges were ranked."""

Hits = Sequence[tuple[str, float]]


# --- recording ---


def cut_order(
    kind: str,
    limit: str,
    cutoff: int,
    ranked: Sequence[str],
    reason: str,
    *,
    total: int | None = 0,
    about: str = "",
) -> tuple[RankedOrder, ...]:
    """Return the order of ranked IRIs, best first, beyond a cut at ``cutoff``; empty if the
    limit cut nothing.

    ``total`` counts all ranked items if more items were ranked than IRIs passed; None if items
    were not counted."""
    items = tuple(ranked[cutoff : cutoff + MOST_BEYOND])
    if not items:
        return ()
    count = 0 if total is None else max(total, len(ranked))
    return (RankedOrder(kind, limit, cutoff, items, count, reason, about=about),)


def left_out_order(
    kind: str,
    limit: str,
    cutoff: int | float | None,
    ranks: Mapping[str, int],
    reason: str,
    *,
    total: int = 0,
    scores: Sequence[float] = (),
) -> tuple[RankedOrder, ...]:
    """Return the order of IRIs excluded by a limit, each with its rank, nearest first; empty
    without excluded IRIs.

    An unknown rank is 0."""
    if not ranks:
        return ()
    items, places = tuple(ranks)[:MOST_BEYOND], tuple(ranks.values())[:MOST_BEYOND]
    rounded = tuple(round(score, 6) for score in scores[:MOST_BEYOND])
    return (RankedOrder(kind, limit, cutoff, items, total, reason, places, rounded),)


def unlike_order(
    kind: str, hits: Hits, least: float, what: str, taken: Collection[str] = ()
) -> tuple[RankedOrder, ...]:
    """Return the order of hits whose similarity to a text is below the least score, excluding
    hits taken otherwise.

    ``what`` names the text."""
    ranks = {iri: rank for rank, (iri, _) in enumerate(hits, 1)}
    below = [(iri, score) for iri, score in hits if score < least and iri not in taken]
    reason = f"the similarity to {what} is {SCORE}, less than {least:g} (least-score)"
    remaining = {iri: ranks[iri] for iri, _ in below}
    scores = [score for _, score in below]
    return left_out_order(kind, "least-score", least, remaining, reason, scores=scores)


def list_hit_iris(hits: Iterable[tuple[str, float]]) -> list[str]:
    """Return hit IRIs, in hit order."""
    return [iri for iri, _ in hits]


@cache
def _adapter() -> TypeAdapter[tuple[RankedOrder, ...]]:
    return TypeAdapter(tuple[RankedOrder, ...])


def orders_to_json(orders: Sequence[RankedOrder]) -> str:
    """The orders of a session as canonical JSON, at most ``MOST_OF_SESSION`` items."""
    longest = _share(sorted(len(order.items) for order in orders))
    shortened = tuple(
        replace(
            order,
            items=order.items[:longest],
            ranks=order.ranks[:longest],
            scores=order.scores[:longest],
        )
        for order in orders
    )
    return canonical_json(_adapter().dump_python(shortened, mode="json", exclude_defaults=True))


def orders_from_json(text: str) -> tuple[RankedOrder, ...]:
    """The orders that ``orders_to_json`` wrote."""
    return _adapter().validate_json(text)


def _share(sizes: Sequence[int]) -> int:
    """Return the maximum item count per order; ``sizes`` lists order sizes, ascending."""
    room = MOST_OF_SESSION
    for number, size in enumerate(sizes):
        share = room // (len(sizes) - number)
        if size > share:
            return max(share, 1)
        room -= size
    return MOST_BEYOND


# --- finding ---


@dataclass(frozen=True, slots=True)
class Missing:
    """Missing content searched for in the orders, given by possible IRIs.

    ``evidence`` contains the evidence extracted from the content; ``tells`` says whether a
    report or summary mentions the content, ``names`` whether a text does."""

    kind: str
    entities: frozenset[str]
    edges: frozenset[str]
    chunks: frozenset[str]
    evidence: frozenset[str]
    tells: Callable[[str], bool]
    names: Callable[[str], bool]

    def ends(self, store: Store) -> set[str]:
        """Return entities leading to the missing content: missing entities themselves,
        otherwise ends of missing edges."""
        if self.entities:
            return set(self.entities)
        edges = read_reified_edges(StoredGraph(store), sorted(self.edges)).values()
        return {end.value for edge in edges for end in (edge.subject, edge.object)}

    def spoken_of(self, store: Store) -> set[str]:
        """Return entities supported by the missing content's evidence."""
        return {text_value(store, item, tg("entity")) for item in self.evidence} - {""}


@dataclass(frozen=True, slots=True)
class RatedReport:
    """A report rated during the descent; ``score`` (0 to 1) is None without rating."""

    label: str
    score: float | None
    relevant: bool


@dataclass(frozen=True, slots=True)
class AskedAction:
    """A question of DRIFT's tree, asked or pruned; as ``retrieve.actions.Action``."""

    number: int
    kind: str
    query: str
    depth: int
    status: str
    reason: str
    promise: float | None
    retrieved: int


@dataclass(frozen=True, slots=True)
class RecordedSearch:
    """Recorded retrieval of a session.

    ``candidates`` maps IRIs to edges and items; ``orders`` lists items cut off by limits."""

    mode: str
    matches: Sequence[EntityMatch] = ()
    candidates: Collection[str] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    ratings: Mapping[str, RatedReport] = field(default_factory=dict)
    actions: Sequence[AskedAction] = ()
    orders: Sequence[RankedOrder] = ()


@dataclass(frozen=True, slots=True)
class CutOff:
    """A cut-off excluding the missing content: limit, value and rank.

    ``rank`` is None if not recorded, ``cutoff`` None if not a number. ``reason`` explains the
    cut-off in words."""

    limit: str
    cutoff: int | float | None
    rank: int | None
    reason: str

    @property
    def distance(self) -> float:
        """The distance beyond the limit; infinite for limits without rank."""
        if self.rank is None or self.cutoff is None:
            return float("inf")
        return self.rank / max(self.cutoff, 1)


CutOffs = Iterator[CutOff]
ModeCutOffs = Callable[[Missing, RecordedSearch, Context], CutOffs]
"""What a mode leaves out by other than a rank: by a level, a number of hops, or a question that was
not asked. In the sequence in which something can be lost."""


def no_cut_offs(missing: Missing, search: RecordedSearch, context: Context) -> CutOffs:
    """Return no cut-offs, for modes excluding items by rank alone."""
    yield from ()


@dataclass(frozen=True, slots=True)
class OrderReader:
    """Reads where the missing stands in recorded orders.

    ``is_missing`` says whether an item of an order is the missing or leads to it, ``describe`` how
    a reason speaks of the item, ``label`` what an entity is called. ``may_have`` says whether the
    missing may be among those that an order ranked and that are not recorded.
    """

    is_missing: Callable[[RankedOrder, str], bool]
    describe: Callable[[RankedOrder, str], str]
    label: Callable[[str], str]
    may_have: Callable[[RankedOrder], bool]

    def first_cut(self, orders: Sequence[RankedOrder]) -> CutOff | None:
        """Return the cut-off of the first limit excluding the missing item; None if no limit
        excludes the item.

        If several orders share the limit, the nearest order counts."""
        for _, group in groupby(orders, key=lambda order: order.limit):
            places = [(order, n) for order in group if (n := self._place(order)) is not None]
            if places:
                return self._describe_cut(*min(places, key=_distance_of))
        return next(filter(None, map(self.find_beyond_list, orders)), None)

    def find_beyond_cut(self, order: RankedOrder) -> CutOff | None:
        """Return the cut-off of an order listing the missing item beyond its cut."""
        number = self._place(order)
        return None if number is None else self._describe_cut(order, number)

    def _place(self, order: RankedOrder) -> int | None:
        """Return the position of the missing item in the order, counting from 0."""
        places = (n for n, item in enumerate(order.items) if self.is_missing(order, item))
        return next(places, None)

    def find_beyond_list(self, order: RankedOrder) -> CutOff | None:
        """Return the cut-off of an order possibly holding the missing item beyond its last
        recorded item."""
        last = order.ranks[-1] if order.ranks else int(order.cutoff or 0) + len(order.items)
        is_shortened = last < order.total or not (order.total or order.ranks)
        if order.cutoff is None or not is_shortened or not self.may_have(order):
            return None
        of_all = f" of {order.total:,}" if order.total else " of the"
        place = f"not among the first {last:,}{of_all}"
        reason = self._reason(order, self.describe(order, ""), place, 0, 0.0)
        return CutOff(order.limit, order.cutoff, None, reason)

    def _describe_cut(self, order: RankedOrder, number: int) -> CutOff:
        rank = _rank_of(order, number)
        place = f"the {format_ordinal(rank)} of {order.total or 'the'}"
        score = order.scores[number] if order.scores else 0.0
        description = self.describe(order, order.items[number])
        reason = self._reason(order, description, place, rank, score)
        return CutOff(order.limit, order.cutoff, rank or None, reason)

    def _reason(self, order: RankedOrder, what: str, place: str, rank: int, score: float) -> str:
        question = f"the follow-up question “{order.query}”" if order.query else "the question"
        values = {
            ITEM: what,
            PLACE: place,
            RANK: str(rank),
            SCORE: f"{score:.2f}",
            QUESTION: question,
            ABOUT: self.label(order.about) if ABOUT in order.reason else "",
        }
        reason = order.reason
        for name, value in values.items():
            reason = reason.replace(name, value)
        return reason


def _rank_of(order: RankedOrder, number: int) -> int:
    return order.ranks[number] if order.ranks else int(order.cutoff or 0) + number + 1


def _distance_of(place: tuple[RankedOrder, int]) -> float:
    """Return the distance between an order item and the limit."""
    order, number = place
    if order.scores:
        return -order.scores[number]
    return _rank_of(order, number) / max(order.cutoff or 0, 1)


def format_ordinal(rank: int) -> str:
    """Return the rank as an ordinal number."""
    ending = (
        "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    )
    return f"{rank}{ending}"
