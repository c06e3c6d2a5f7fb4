"""Pages of a class's rows: their values with the places that state them, and facets by which the
rows are narrowed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode, Variable

from tgraph import vocabulary as v
from tgraph.compute.algebra import Count, Equals, GroupRows, ListRows, Path, Rows
from tgraph.compute.computation import catalogue_of
from tgraph.compute.evaluation import read_result
from tgraph.compute.printing import GROUP, ROW, print_query
from tgraph.errors import UsageError
from tgraph.index.catalogue import Catalogue, KnownClass, KnownProperty
from tgraph.model import Object, WitnessPlace
from tgraph.retrieve.base import Context
from tgraph.retrieve.labels import labels_of

MOST_COLUMNS = 12
"""Properties that a page shows as columns."""

MOST_FACETS = 6
"""Properties that a page narrows by."""

FACET_VALUES = 12
"""Values of a facet that a page shows; a property with many more is no facet."""

_MOST_DISTINCT = 200


@dataclass(frozen=True, slots=True)
class BrowsedValue:
    """A value of a row, and the place of a document that states the value, if known."""

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

    property: KnownProperty
    values: tuple[FacetValue, ...]


@dataclass(frozen=True, slots=True)
class BrowsedRows:
    """A page of the rows of a class, from the number ``first``, of ``total`` rows."""

    known_class: KnownClass
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
    known_class = next(
        (item for item in catalogue.classes if (item.kind, item.key) == (kind, key)), None
    )
    if known_class is None:
        raise UsageError("The catalogue has no such class.", "Choose one from its page.")
    by_iri = {item.iri.value: item for item in catalogue.properties}
    if unknown := next((iri for iri, _ in narrowing if iri not in by_iri), ""):
        raise UsageError(f"The catalogue has no property {unknown[:200]!r}.")
    conditions = tuple(Equals(Path((by_iri[iri],)), (value,), "") for iri, value in narrowing)
    rows = Rows(known_class, conditions)
    columns = _find_columns(known_class, catalogue)
    [counted] = read_result(context.store, print_query(Count(rows)))
    total = int(counted["count"].value)
    first = first if 0 <= first < total else 0
    narrowed = tuple(_facet_of(context, condition) for condition in conditions)
    return BrowsedRows(
        known_class,
        columns,
        tuple(_read_cells(context, _page_of(context, rows, first, size), columns)),
        tuple(_read_facets(context, rows, columns, {iri for iri, _ in narrowing})),
        narrowed,
        first,
        total,
    )


def _find_columns(known_class: KnownClass, catalogue: Catalogue) -> tuple[KnownProperty, ...]:
    by_iri = {item.iri: item for item in catalogue.properties}
    iris = [column.property for column in known_class.columns]
    iris = iris or [iri for iri, _ in known_class.properties]
    columns = [by_iri[iri] for iri in dict.fromkeys(iris) if iri in by_iri]
    return tuple(column for column in columns if column.is_structured)[:MOST_COLUMNS]


def _page_of(context: Context, rows: Rows, first: int, size: int) -> list[NamedNode]:
    text = f"{print_query(ListRows(rows, limit=size))}\nOFFSET {first}"
    return [
        node
        for row in read_result(context.store, text)
        if isinstance(node := row["row"], NamedNode)
    ]


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
        for binding in read_result(context.store, text):
            row, iri = binding["row"], binding["predicate"]
            if isinstance(row, NamedNode) and isinstance(iri, NamedNode):
                values[row, iri].append(binding["value"])
    terms = [term for cell in values.values() for term in cell if isinstance(term, NamedNode)]
    labels = labels_of(context.graph, [*rows, *terms])
    edges = {
        (row, iri, term): v.edge_iri(row, iri, term)
        for (row, iri), cell in values.items()
        for term in cell
    }
    places = context.evidence.of_edges(list(edges.values()), 1)

    def show_term(row: NamedNode, iri: NamedNode, term: Object) -> BrowsedValue:
        text = labels[term] if isinstance(term, NamedNode) else term.value
        evidence = places.get(edges[row, iri, term], ())
        return BrowsedValue(text, WitnessPlace.first_of(evidence))

    return [
        BrowsedRow(
            row.value,
            labels[row],
            tuple(
                tuple(show_term(row, column.iri, term) for term in values[row, column.iri])
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
            (binding[GROUP.value], int(binding["count"].value))
            for binding in read_result(context.store, text)
        ]
        if any(number > 1 for _, number in counted):
            facets.append(_build_facet(context, column, counted))
    return facets[:MOST_FACETS]


def _facet_of(context: Context, condition: Equals) -> Facet:
    return _build_facet(context, condition.path.last, [(value, 0) for value in condition.values])


def _build_facet(
    context: Context, column: KnownProperty, counted: Sequence[tuple[Object, int]]
) -> Facet:
    labels = labels_of(context.graph, [term for term, _ in counted if isinstance(term, NamedNode)])
    values = (
        FacetValue(term, labels[term] if isinstance(term, NamedNode) else term.value, number)
        for term, number in counted
    )
    return Facet(column, tuple(values))
