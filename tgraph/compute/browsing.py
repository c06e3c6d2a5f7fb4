"""Pages of a class's rows: their values with the places that state them, and facets by which the
rows are narrowed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from pyoxigraph import Literal, NamedNode, Variable

from tgraph import vocabulary as v
from tgraph.compute.algebra import Count, Equals, GroupRows, ListRows, Path, Rows
from tgraph.compute.computation import catalogue_of
from tgraph.compute.printing import GROUP, ROW, print_query
from tgraph.errors import UsageError
from tgraph.index.catalogue import Catalogue, KnownClass, KnownProperty
from tgraph.model import Object, WitnessPlace
from tgraph.retrieve.base import Context
from tgraph.retrieve.labels import labels_of
from tgraph.store.base import Solutions

MOST_COLUMNS = 12
"""Properties that a page shows as columns."""

MOST_FACETS = 6
"""Properties that a page narrows by."""

FACET_VALUES = 12
"""Values of a facet that a page shows; a property with many more is no facet."""

_MOST_DISTINCT = 200


@dataclass(frozen=True, slots=True)
class BrowsedValue:
    """A value of a row, and the place that states the value; None where none is known."""

    text: str
    place: WitnessPlace | None


@dataclass(frozen=True, slots=True)
class BrowsedRow:
    """A row with its values, a tuple for each column."""

    iri: str
    label: str
    cells: tuple[tuple[BrowsedValue, ...], ...]


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value by which rows are narrowed, with the number of rows that have the value."""

    value: Object
    label: str
    rows: int


@dataclass(frozen=True, slots=True)
class Facet:
    """A property with its most frequent values among the rows."""

    known: KnownProperty
    values: tuple[FacetValue, ...]


@dataclass(frozen=True, slots=True)
class BrowsedRows:
    """A page of the rows of a class, from the number ``first``, of ``total`` rows."""

    known: KnownClass
    columns: tuple[KnownProperty, ...]
    rows: tuple[BrowsedRow, ...]
    facets: tuple[Facet, ...]
    narrowed: tuple[Facet, ...]
    first: int
    total: int


def read_rows(
    context: Context,
    kind: str,
    key: str,
    narrowing: Sequence[tuple[str, Object]] = (),
    first: int = 0,
    size: int = 50,
) -> BrowsedRows:
    """Return a page of the rows of a class, narrowed to those that have values of properties.

    Raises ``UsageError`` for a class or a property that the catalogue doesn't have."""
    catalogue = catalogue_of(context)
    known = next((one for one in catalogue.classes if (one.kind, one.key) == (kind, key)), None)
    if known is None:
        raise UsageError("The catalogue has no such class.", "Choose one from its page.")
    by_iri = {one.iri.value: one for one in catalogue.properties}
    if unknown := next((iri for iri, _ in narrowing if iri not in by_iri), ""):
        raise UsageError(f"The catalogue has no property {unknown[:200]!r}.")
    conditions = tuple(Equals(Path((by_iri[iri],)), (value,), "") for iri, value in narrowing)
    rows = Rows(known, conditions)
    columns = _find_columns(known, catalogue)
    [counted] = _select(context, print_query(Count(rows)))
    total = int(counted["count"].value)
    first = first if 0 <= first < total else 0
    narrowed = tuple(_facet_of(context, condition) for condition in conditions)
    return BrowsedRows(
        known,
        columns,
        tuple(_read_cells(context, _page_of(context, rows, first, size), columns)),
        tuple(_read_facets(context, rows, columns, {iri for iri, _ in narrowing})),
        narrowed,
        first,
        total,
    )


def _find_columns(known: KnownClass, catalogue: Catalogue) -> tuple[KnownProperty, ...]:
    by_iri = {one.iri: one for one in catalogue.properties}
    own = [column.property for column in known.columns] or [iri for iri, _ in known.properties]
    shown = [by_iri[iri] for iri in dict.fromkeys(own) if iri in by_iri]
    return tuple(one for one in shown if one.is_structured)[:MOST_COLUMNS]


def _page_of(context: Context, rows: Rows, first: int, size: int) -> list[NamedNode]:
    text = f"{print_query(ListRows(rows, limit=size))}\nOFFSET {first}"
    return [node for row in _select(context, text) if isinstance(node := row["row"], NamedNode)]


def _read_cells(
    context: Context, rows: Sequence[NamedNode], columns: Sequence[KnownProperty]
) -> list[BrowsedRow]:
    values: defaultdict[tuple[NamedNode, NamedNode], list[Object]] = defaultdict(list)
    if rows and columns:
        predicate, value = Variable("predicate"), Variable("value")
        text = (
            f"SELECT {ROW} {predicate} {value} WHERE {{"
            f" VALUES {ROW} {{ {' '.join(map(str, rows))} }}"
            f" VALUES {predicate} {{ {' '.join(str(column.iri) for column in columns)} }}"
            f" {ROW} {predicate} {value} }} ORDER BY {ROW} {predicate} {value}"
        )
        for found in _select(context, text):
            row, iri = found["row"], found["predicate"]
            if isinstance(row, NamedNode) and isinstance(iri, NamedNode):
                values[row, iri].append(found["value"])
    terms = [each for cell in values.values() for each in cell if isinstance(each, NamedNode)]
    labels = labels_of(context.graph, [*rows, *terms])
    edges = {
        (row, iri, each): v.edge_iri(row, iri, each)
        for (row, iri), cell in values.items()
        for each in cell
    }
    places = context.evidence.of_edges(list(edges.values()), 1)

    def show(row: NamedNode, iri: NamedNode, each: Object) -> BrowsedValue:
        text = labels[each] if isinstance(each, NamedNode) else each.value
        found = places.get(edges[row, iri, each], ())
        return BrowsedValue(text, WitnessPlace.first_of(found))

    return [
        BrowsedRow(
            row.value,
            labels[row],
            tuple(
                tuple(show(row, column.iri, each) for each in values[row, column.iri])
                for column in columns
            ),
        )
        for row in rows
    ]


def _read_facets(
    context: Context, rows: Rows, columns: Sequence[KnownProperty], narrowed: set[str]
) -> list[Facet]:
    fit = [
        column
        for column in columns
        if column.iri.value not in narrowed and 1 < column.distinct <= _MOST_DISTINCT
    ]
    facets = []
    for column in fit:
        text = f"{print_query(GroupRows(rows, Path((column,))))}\nLIMIT {FACET_VALUES}"
        counted = [
            (found[GROUP.value], int(found["count"].value)) for found in _select(context, text)
        ]
        if any(number > 1 for _, number in counted):
            facets.append(_build_facet(context, column, counted))
    return facets[:MOST_FACETS]


def _facet_of(context: Context, condition: Equals) -> Facet:
    return _build_facet(context, condition.path.last, [(each, 0) for each in condition.values])


def _build_facet(
    context: Context, known: KnownProperty, counted: Sequence[tuple[Object, int]]
) -> Facet:
    labels = labels_of(context.graph, [each for each, _ in counted if isinstance(each, NamedNode)])
    values = (
        FacetValue(each, labels[each] if isinstance(each, NamedNode) else each.value, number)
        for each, number in counted
    )
    return Facet(known, tuple(values))


def _select(context: Context, text: str) -> list[dict[str, Object]]:
    results = context.store.query(text)
    assert isinstance(results, Solutions)
    names = [variable.value for variable in results.variables]
    return [
        {
            name: term
            for name, term in zip(names, row, strict=True)
            if isinstance(term, NamedNode | Literal)
        }
        for row in islice(results, 10_000)
    ]
