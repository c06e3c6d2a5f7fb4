"""Random small graphs, and random queries of the algebra over them."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.compute.algebra import (
    Aggregate,
    CompareGroups,
    Compares,
    ComparesTo,
    Condition,
    Contains,
    Count,
    Differs,
    Equals,
    Exists,
    Extreme,
    GroupRows,
    Lacks,
    ListRows,
    OneOf,
    Path,
    Query,
    Rows,
    RowShare,
    Within,
)
from tgraph.index.catalogue import KnownClass, KnownProperty

KIND = v.type_iri("pump")
ROWS = [NamedNode(v.entity_iri(f"row {n}")) for n in range(4)]
MAKERS = [NamedNode(v.entity_iri(f"maker {n}")) for n in range(3)]
PLACES = [Literal(name) for name in ("Oslo", "Bergen")]
MAKER = KnownProperty(NamedNode(v.relation_iri("maker")), "maker", "", (("entity", 1),), 1, 1, 1)
WEIGHT = KnownProperty(
    NamedNode(v.relation_iri("weight")), "weight in kg", "kg", (("number", 1),), 1, 1, 1
)
PLACE = KnownProperty(NamedNode(v.relation_iri("place")), "place", "", (("text", 1),), 1, 1, 1)
TYPED = KnownClass("type", KIND, "pump", len(ROWS), (), type=KIND)
LISTED = KnownClass("table", "urn:x:table", "Pumps", 3, (), tuple(ROWS[:3]), type=KIND)

_TRIPLES = (
    [Triple(row, v.RDF_TYPE, NamedNode(KIND)) for row in ROWS]
    + [Triple(row, MAKER.iri, maker) for row in ROWS for maker in MAKERS]
    + [
        Triple(row, WEIGHT.iri, Literal(str(n), datatype=v.xsd("integer")))
        for row in ROWS
        for n in range(3)
    ]
    + [Triple(maker, PLACE.iri, place) for maker in MAKERS for place in PLACES]
    + [Triple(row, v.RDFS_LABEL, Literal(f"Row {n}")) for n, row in enumerate(ROWS)]
    + [Triple(maker, v.RDFS_LABEL, Literal(f"Maker {n}")) for n, maker in enumerate(MAKERS)]
)

_KEPT = [triple for triple in _TRIPLES if triple.predicate in (v.RDF_TYPE, v.RDFS_LABEL)]
_STATED = [triple for triple in _TRIPLES if triple not in _KEPT]

graphs = st.builds(
    lambda stated, missing: [*stated, *(t for t in _KEPT if t not in missing)],
    st.lists(st.sampled_from(_STATED), min_size=6, max_size=18, unique_by=str),
    st.lists(st.sampled_from(_KEPT), max_size=2, unique_by=str),
)
"""Statements of a small graph, in which most things have a class and a name."""

_to_maker, _to_weight, _to_place = Path((MAKER,)), Path((WEIGHT,)), Path((MAKER, PLACE))
_to_like = Path((MAKER, MAKER), (1,))
_rows_named = st.lists(st.sampled_from(ROWS), min_size=1, max_size=2, unique_by=str).map(tuple)
_makers = st.lists(st.sampled_from(MAKERS), min_size=1, max_size=2, unique_by=str).map(tuple)
_places = st.sampled_from(PLACES).map(lambda place: (place,))
_plain_conditions = st.one_of(
    st.builds(Equals, st.just(_to_maker), _makers, st.just("maker")),
    st.builds(Differs, st.just(_to_maker), _makers, st.just("maker")),
    st.builds(Equals, st.just(_to_place), _places, st.just("place")),
    st.builds(Differs, st.just(_to_place), _places, st.just("place")),
    st.builds(
        Compares,
        st.just(_to_weight),
        st.sampled_from(("<", "<=", ">", ">=", "=")),
        st.integers(0, 2).map(Decimal),
    ),
    st.builds(Contains, st.just(_to_maker), st.sampled_from(("maker 1", "MAKER", "2"))),
)
_conditions = st.one_of(
    _plain_conditions,
    st.builds(Equals, st.just(_to_like), _rows_named, st.just("row")),
    st.builds(Lacks, st.sampled_from((_to_maker, _to_place, _to_weight))),
    st.builds(OneOf, _rows_named),
)


def _with_conditions(conditions: st.SearchStrategy[Condition]) -> st.SearchStrategy[Rows]:
    return st.builds(
        Rows,
        st.sampled_from((TYPED, LISTED)),
        st.lists(conditions, max_size=2).map(tuple),
        st.just(()),
    )


def _extremes(rows: st.SearchStrategy[Rows], most: int) -> st.SearchStrategy[Extreme]:
    return st.builds(Extreme, rows, st.just(_to_weight), st.booleans(), st.integers(1, most))


def _groups(rows: st.SearchStrategy[Rows]) -> st.SearchStrategy[GroupRows]:
    place = st.sampled_from(("greatest", "least"))
    totals = st.sampled_from(("sum", "average", "minimum", "maximum"))
    return st.one_of(
        st.builds(GroupRows, rows, st.just(_to_maker), place=place),
        st.builds(GroupRows, rows, st.just(_to_maker), totals, st.just(_to_weight), place),
    )


_shown = st.sampled_from((None, _to_maker))
_listed = st.builds(Rows, st.just(LISTED), st.lists(_conditions, max_size=2).map(tuple))
_stepped = st.builds(
    Rows,
    st.just(LISTED),
    st.lists(_conditions, max_size=2).map(tuple),
    st.just(()),
    st.sampled_from((-1, 1)),
)
_plain_rows = _with_conditions(_conditions)
_rows = _with_conditions(
    st.one_of(
        _conditions,
        st.builds(Within, st.just(None), _extremes(_plain_rows, 1)),
        st.builds(Within, st.just(_to_like), _extremes(_plain_rows, 1)),
        st.builds(Within, st.just(_to_like), st.builds(ListRows, _plain_rows)),
        st.builds(Within, st.just(_to_maker), _groups(_plain_rows)),
        st.builds(
            ComparesTo,
            st.just(_to_weight),
            st.sampled_from(("<", ">")),
            _extremes(_plain_rows, 1),
        ),
    )
)


def _simple_forms(rows: st.SearchStrategy[Rows]) -> st.SearchStrategy[Query]:
    return st.one_of(
        st.builds(ListRows, rows, st.sampled_from((None, _to_maker, _to_place))),
        st.builds(Count, rows, st.sampled_from((None, _to_maker))),
        st.builds(Aggregate, rows, st.sampled_from(("sum", "average")), st.just(_to_weight)),
        st.builds(Extreme, rows, st.just(_to_weight), st.booleans(), st.integers(1, 2)),
        st.builds(GroupRows, rows, st.just(_to_maker)),
        st.builds(GroupRows, rows, st.just(_to_maker), st.just("sum"), st.just(_to_weight)),
        st.builds(Exists, rows),
    )


queries: st.SearchStrategy[Query] = st.one_of(
    _groups(_rows),
    st.builds(Extreme, _rows, st.just(_to_weight), st.booleans(), st.integers(1, 2), _shown),
    st.builds(Extreme, _listed, st.none(), st.booleans(), st.integers(1, 2), _shown),
    st.builds(ListRows, _stepped, st.sampled_from((None, _to_maker, _to_place))),
    st.builds(Count, _stepped),
    st.builds(
        CompareGroups,
        _rows,
        st.just(_to_maker),
        st.just(((MAKERS[0],), (MAKERS[1],))),
        st.booleans(),
    ),
    st.builds(RowShare, _rows),
    _simple_forms(_rows),
)
"""Queries over such a graph, in all forms that have any number of rows."""

written_queries = _simple_forms(_with_conditions(_plain_conditions))
"""The queries among them that a person can write."""
