"""Ranked orders with their cut-offs: where a retrieval loses what it does not take.

A mode tells its orders for a question that was asked, in the sequence in which something can be
lost in them; ``first_cut`` finds the one that has what is missing beyond its cut-off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from tgraph.errors import TgraphError
from tgraph.index.sources import text_value
from tgraph.index.stored_graph import StoredGraph
from tgraph.model import EntityMatch
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.labels import reified
from tgraph.store.base import Store
from tgraph.vocabulary import tg

if TYPE_CHECKING:
    from tgraph.retrieve.base import Rank


@dataclass(frozen=True, slots=True)
class Missing:
    """What is looked for in the orders, by the IRIs under which they may have it.

    ``evidence`` is what was extracted of it; ``tells`` says whether a report or summary speaks of
    it, ``names`` whether a text does.
    """

    kind: str
    entities: frozenset[str]
    edges: frozenset[str]
    chunks: frozenset[str]
    evidence: frozenset[str]
    tells: Callable[[str], bool]
    names: Callable[[str], bool]

    def ends(self, store: Store) -> set[str]:
        """The entities that lead to it: itself, else those that it ties."""
        if self.entities:
            return set(self.entities)
        edges = reified(StoredGraph(store), sorted(self.edges)).values()
        return {end.value for edge in edges for end in (edge.subject, edge.object)}

    def spoken_of(self, store: Store) -> set[str]:
        """The entities that its evidence is for."""
        return {text_value(store, item, tg("entity")) for item in self.evidence} - {""}


@dataclass(frozen=True, slots=True)
class RatedReport:
    """A report that was rated on the way down: ``score`` 0 to 1, None where no rating came."""

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
    """What the record of a session has of its retrieval.

    ``candidates`` are its edges and items, by IRI, and ``items`` counts those that are no edges;
    ``calls`` are the labels of its calls. ``rank`` gives the recorded ranking, where there was
    one. ``hypothesis`` is the question as DRIFT put it as an answer.
    """

    mode: str
    question: Question
    matches: Sequence[EntityMatch] = ()
    candidates: Collection[str] = ()
    items: int = 0
    calls: Sequence[str] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    rank: Rank | None = None
    ratings: Mapping[str, RatedReport] = field(default_factory=dict)
    actions: Sequence[AskedAction] = ()
    hypothesis: str = ""


@dataclass(frozen=True, slots=True)
class CutOff:
    """What was in the way: the limit, its value, and where the missing stood; ``rank`` is None
    where that is not on record, ``cutoff`` where it is no number. ``reason`` says it in words."""

    limit: str
    cutoff: int | float | None
    rank: int | None
    reason: str

    @property
    def distance(self) -> float:
        """How far beyond the limit it was; a limit without a rank counts for far."""
        if self.rank is None or self.cutoff is None:
            return float("inf")
        return self.rank / max(self.cutoff, 1)


@dataclass(frozen=True, slots=True)
class Standing:
    """The first ``item`` of an order of so many that is, or has, the missing; ranks from 1."""

    item: str
    rank: int
    count: int

    def __str__(self) -> str:
        return f"the {nth(self.rank)} of {self.count}"


@dataclass(frozen=True, slots=True)
class RankedOrder:
    """What a limit cuts: ``ranked`` are IRIs, best first, or each with its place (a level, say), of
    which those up to ``cutoff`` are taken. ``wanted`` are those that would do.

    The reason why the first of them was left is that ``who`` (a text, or one made of its IRI) is at
    its standing, and ``why``; or what ``why`` makes of the standing."""

    limit: str
    cutoff: int
    ranked: Sequence[str] | Mapping[str, int]
    wanted: Collection[str]
    why: str | Callable[[Standing], str]
    who: str | Callable[[str], str] = "it"

    @property
    def standing(self) -> Standing | None:
        """Where the first of the wanted stands; None where the order has none."""
        ranked = self.ranked
        places = ranked.items() if isinstance(ranked, Mapping) else zip(ranked, count(1))
        found = ((place, iri) for iri, place in places if iri in self.wanted)
        place, iri = min(found, key=lambda each: each[0], default=(0, None))
        return None if iri is None else Standing(iri, place, len(ranked))

    def beyond(self) -> CutOff | None:
        """The cut-off, where the first of the wanted stands beyond it."""
        at = self.standing
        if at is None or at.rank <= self.cutoff:
            return None
        if not isinstance(self.why, str):
            return CutOff(self.limit, self.cutoff, at.rank, self.why(at))
        who = self.who if isinstance(self.who, str) else self.who(at.item)
        return CutOff(self.limit, self.cutoff, at.rank, f"{who} is {at} {self.why}")


Orders = Iterator[RankedOrder | CutOff]
"""In the sequence in which something can be lost; a cut-off where that is known without an order,
or where the order is known no more."""

ModeOrders = Callable[[Missing, RecordedSearch, Context], Orders]

ALL = 1 << 30
"""More than there is of anything."""


def first_cut(orders: Iterable[RankedOrder | CutOff]) -> CutOff | None:
    """The first of the cut-offs that the missing is beyond; None where it is beyond none."""
    found = (each if isinstance(each, CutOff) else each.beyond() for each in orders)
    return next(filter(None, found), None)


def no_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """For a mode that takes nothing by rank."""
    yield from ()


def rerun(
    own: object,
    field: str,
    most: int,
    beside: Mapping[str, int],
    lets_in: Callable[[Mapping[str, int]], bool],
    why: str,
    also: str = "",
) -> Orders:
    """The cut-off of a limit that cuts no order: retrieval is run again with other values of that
    ``field`` of its ``own`` settings, up to ``most``, and with those of the limits ``beside`` it;
    the rank is the least value that lets the missing in. None where not even ``most`` does."""
    if not lets_in({**beside, field: most}):
        return
    cutoff, name = int(getattr(own, field)), field.replace("_", "-")
    low, high = cutoff, most
    while high - low > 1:
        middle = min((low + high) // 2, 2 * low + 1)  # it is rarely far
        is_in = lets_in({**beside, field: middle})
        low, high = (low, middle) if is_in else (middle, high)
    yield CutOff(name, cutoff, high, f"{why} from {name} {high} on, and it was {cutoff}{also}")


def nearest(
    context: Context, kind: str, text: str, among: Collection[str] | None = None
) -> list[tuple[str, float]]:
    """All of a kind, nearest to a text first, with their likeness (cosine); nothing where that
    can't be known any more."""
    with suppress(TgraphError, ValueError, OSError):
        vectors = context.vectors[kind]
        return list(vectors.search(context.embed([text]), max(1, len(vectors)), among)[0])
    return []


def iris(hits: Iterable[tuple[str, float]]) -> list[str]:
    """The IRIs of hits, in their order."""
    return [iri for iri, _ in hits]


def place_in(order: Sequence[str], wanted: Collection[str]) -> int:
    """The place of the first of the wanted, from 1; 0 where there is none."""
    return next((n for n, iri in enumerate(order, 1) if iri in wanted), 0)


def above_level(level: int, levels: Mapping[str, int], wanted: Collection[str]) -> RankedOrder:
    """The reports of the levels, of which those down to one are read."""
    why = f"only reports below level {level} speak of it, the first at level"
    name = "community-level"
    return RankedOrder(name, level, levels, wanted, lambda at: f"{why} {at.rank} ({name})")


def unlike(
    hits: Sequence[tuple[str, float]], wanted: Collection[str], least: float, what: str
) -> Orders:
    """The missing is less like a text, which ``what`` names, than anything must be."""
    rank = place_in(iris(hits), wanted)
    if rank and hits[rank - 1][1] < least:
        why = f"its likeness to {what} is {hits[rank - 1][1]:.2f}, below {least:g} (least-score)"
        yield CutOff("least-score", least, rank, why)


def nth(rank: int) -> str:
    """The rank in words."""
    ending = (
        "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    )
    return f"{rank}{ending}"


def flat(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())
