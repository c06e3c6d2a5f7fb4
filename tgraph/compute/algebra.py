"""The algebra of computed answers: what is asked of knowledge, as values.

A query selects the members of a class that meet conditions, and lists, counts, adds up, compares
or groups them. Conditions and measures follow a path of one to three properties, each from a thing
to its value or back. A condition may refer to the result of another query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph.errors import UsageError
from tgraph.index.catalogue import KnownClass, KnownProperty, ValueKind
from tgraph.model import Object

LONGEST_PATH = 3
"""The properties of a path."""

Order = Choice["<", "<=", ">", ">=", "="]
Total = Choice["sum", "average", "minimum", "maximum"]
Place = Choice["greatest", "least"]
Asked = Choice["whether", "which", "difference"]


@dataclass(frozen=True, slots=True)
class Path:
    """A property path: one to three properties that lead from a member of a class to a value;
    those at the positions ``backward`` are followed from the value to what has the value."""

    properties: tuple[KnownProperty, ...]
    backward: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.properties) <= LONGEST_PATH:
            raise UsageError(f"A path has one to {LONGEST_PATH} properties.")

    @property
    def last(self) -> KnownProperty:
        return self.properties[-1]

    @property
    def is_backward(self) -> bool:
        """Whether the last property is followed backward."""
        return len(self.properties) - 1 in self.backward

    @property
    def is_single(self) -> bool:
        """Whether the path leads to one number or year from each thing, as the catalogue counts."""
        is_step = len(self.properties) == 1 and not self.backward
        return is_step and self.last.is_single

    @property
    def kind(self) -> ValueKind:
        return "entity" if self.is_backward else self.last.kind

    @property
    def unit(self) -> str:
        return "" if self.is_backward else self.last.unit

    @property
    def label(self) -> str:
        return " of ".join(known.label for known in reversed(self.properties))


@dataclass(frozen=True, slots=True)
class Equals:
    """The value at the end of a path is one of ``values``, which ``label`` names."""

    path: Path
    values: tuple[Object, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Differs:
    """A negated condition: the path has a value, and no value of the path is in ``values``."""

    path: Path
    values: tuple[Object, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Compares:
    """The number, year or date at the end of a path stands in an order to a bound: a number, or
    where days are compared a date."""

    path: Path
    order: Order
    bound: Decimal | Literal


@dataclass(frozen=True, slots=True)
class Contains:
    """The text, or name, at the end of a path contains a text, letter case aside."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Lacks:
    """A path has no value."""

    path: Path


@dataclass(frozen=True, slots=True)
class OneOf:
    """The member is one of ``values``."""

    values: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class Within:
    """The value at the end of a path is in the result of a query; without a path the member is."""

    path: Path | None
    query: ListRows | Extreme | GroupRows


@dataclass(frozen=True, slots=True)
class ComparesTo:
    """The value at the end of a path stands in an order to the value that a query gives."""

    path: Path
    order: Order
    query: Extreme


Condition = Equals | Differs | Compares | Contains | Lacks | OneOf | Within | ComparesTo


@dataclass(frozen=True, slots=True)
class Rows:
    """The members of a class that meet all conditions; ``only`` are the members meant, where the
    question names them. Without a class, whatever has the properties is a member. With ``step`` the
    members that stand so many places after one that meets them in the order of the table, before
    it where ``step`` is negative."""

    known_class: KnownClass | None
    conditions: tuple[Condition, ...] = ()
    only: tuple[NamedNode, ...] = ()
    step: int = 0


@dataclass(frozen=True, slots=True)
class ListRows:
    """The members, each with its value at the end of ``shown``, where that is asked."""

    rows: Rows
    shown: Path | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """The number of members; with ``distinct`` also the number of different values at the end of
    that path."""

    rows: Rows
    distinct: Path | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The sum or average of the members' values."""

    rows: Rows
    total: Total
    path: Path


@dataclass(frozen=True, slots=True)
class Extreme:
    """The members with the greatest, or least, value; equals share a place. ``places`` counts
    how many places are asked. Without a path the members that the table lists last, or first. With
    ``shown`` the members that have a value at the end of that path, with it."""

    rows: Rows
    path: Path | None
    is_most: bool
    places: int = 1
    shown: Path | None = None


@dataclass(frozen=True, slots=True)
class GroupRows:
    """The members by their value at the end of ``by``: counted, or a total of another value; with
    ``place`` only the groups that have the greatest or least count or total."""

    rows: Rows
    by: Path
    total: Total | None = None
    path: Path | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class CompareGroups:
    """The numbers of members in two groups, compared or subtracted; ``groups`` are the values at
    the end of ``by`` of each."""

    rows: Rows
    by: Path
    groups: tuple[tuple[Object, ...], tuple[Object, ...]]
    is_more: bool = True
    asked: Asked = "whether"


@dataclass(frozen=True, slots=True)
class RowShare:
    """The share of the members of a class that meet all conditions."""

    rows: Rows


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the values of two members are apart."""

    rows: Rows
    path: Path


@dataclass(frozen=True, slots=True)
class CompareTwo:
    """Whether the first of two members has the greater value, or the lesser; with ``asks_which``
    which of the two."""

    rows: Rows
    path: Path
    is_more: bool
    asks_which: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether there is a member."""

    rows: Rows


Query = (
    ListRows
    | Count
    | Aggregate
    | Extreme
    | GroupRows
    | CompareGroups
    | RowShare
    | Difference
    | CompareTwo
    | Exists
)


def totalled_path(query: Query) -> Path | None:
    """Return the path whose values are added up, ordered or compared, of which a row may have one
    alone; None where rows are only listed or counted."""
    if isinstance(query, Aggregate | Extreme | GroupRows | Difference | CompareTwo):
        return query.path
    return None


def measured_path(query: Query) -> Path | None:
    """Return the path whose values a result has: those computed with, shown, or counted."""
    match query:
        case ListRows():
            return query.shown
        case Count():
            return query.distinct
        case _:
            return totalled_path(query)


def paths_in(query: Query) -> Iterator[Path]:
    """Yield the paths of a query, those of conditions first."""
    for condition in query.rows.conditions:
        if not isinstance(condition, OneOf) and condition.path:
            yield condition.path
        if isinstance(condition, Within | ComparesTo):
            yield from paths_in(condition.query)
    if isinstance(query, GroupRows | CompareGroups):
        yield query.by
    if isinstance(query, Extreme) and query.shown:
        yield query.shown
    if path := measured_path(query):
        yield path


def write_algebra(value: object) -> str:
    """Return a query as an expression of its algebra, for the record."""
    if isinstance(value, KnownProperty):
        return str(value.iri)
    if isinstance(value, KnownClass):
        return f"{value.kind} <{value.key}>" if value.kind != "name" else f'name "{value.label}"'
    if isinstance(value, NamedNode | Literal):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(write_algebra, value))}]"
    if is_dataclass(value):
        parts = (
            f"{field.name}={write_algebra(part)}"
            for field in fields(value)
            if (part := getattr(value, field.name)) not in (None, (), False)
        )
        return f"{type(value).__name__}({', '.join(parts)})"
    return repr(value) if isinstance(value, str) else str(value)
