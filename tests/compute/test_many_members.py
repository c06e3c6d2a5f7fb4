"""What is known of properties changes how a result is computed, and not the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.compute.algebra import Aggregate, Compares, Count, Equals, Extreme, ListRows, Path, Rows
from tgraph.compute.evaluation import Computed, EvaluationBounds, evaluate_query
from tgraph.compute.results import decisive_solutions
from tgraph.compute.witnesses import find_witnesses
from tgraph.index.catalogue import Catalogue, KnownProperty, count_catalogue
from tgraph.store.oxigraph import OxigraphStore

KIND = NamedNode("http://example.org/Museum")
VISITORS, FOUNDED = (
    NamedNode("http://example.org/visitors"),
    NamedNode("http://example.org/founded"),
)
TOWN = NamedNode("http://example.org/town")
TOWNS = [NamedNode(f"http://example.org/town{n}") for n in range(3)]
SMALL = EvaluationBounds(rows=12)


def integer(number: int) -> Literal:
    return Literal(str(number), datatype=v.xsd("integer"))


def year(number: int) -> Literal:
    return Literal(str(number), datatype=v.xsd("gYear"))


def make_store(more: Iterable[tuple[int, NamedNode, Literal]] = ()) -> OxigraphStore:
    """Return forty museums with visitors, of whom several have equally many, a year and a town."""
    quads = [Quad(iri, v.RDF_TYPE, v.tg("Relation")) for iri in (VISITORS, FOUNDED, TOWN)]
    quads.append(Quad(KIND, v.RDF_TYPE, v.tg("EntityType")))
    for n in range(40):
        row = row_of(n)
        quads.append(Quad(row, v.RDF_TYPE, KIND))
        quads.append(Quad(row, VISITORS, integer(n * 7 % 23)))
        quads.append(Quad(row, FOUNDED, year(1800 + n * 11 % 37)))
        quads.append(Quad(row, TOWN, TOWNS[n % 3]))
    quads += [Quad(row_of(n), iri, value) for n, iri, value in more]
    return OxigraphStore.memory(quads)


def row_of(number: int) -> NamedNode:
    return NamedNode(f"http://example.org/museum{number}")


def rows_of(catalogue: Catalogue) -> Rows:
    [known] = (known for known in catalogue.classes if known.key == KIND.value)
    return Rows(known)


def unknown(known: KnownProperty) -> Path:
    return Path((replace(known, is_single=False),))


def result_of(computed: Computed) -> tuple[object, ...]:
    solutions = decisive_solutions(computed.query, computed.solutions)
    return {s.row for s in solutions}, computed.row_count


@pytest.mark.parametrize("iri", [VISITORS, FOUNDED])
@pytest.mark.parametrize("is_filtered", [False, True])
@pytest.mark.parametrize("is_most", [False, True])
@pytest.mark.parametrize("places", [1, 3])
def test_places_are_the_same(iri: NamedNode, is_filtered: bool, is_most: bool, places: int):
    store = make_store()
    catalogue = count_catalogue(store)
    known = catalogue.property_of(iri)
    assert known.is_single
    rows = rows_of(catalogue)
    if is_filtered:
        below = Compares(Path((catalogue.property_of(FOUNDED),)), "<", Decimal(1830))
        rows = replace(rows, conditions=(below,))
    quick = evaluate_query(store, Extreme(rows, Path((known,)), is_most, places), SMALL)
    whole = evaluate_query(store, Extreme(rows, unknown(known), is_most, places))
    assert quick.is_cut
    assert quick.sparql.count("HAVING") == 1
    assert len(quick.bindings) == SMALL.rows
    assert quick.bindings == whole.bindings[: SMALL.rows]
    assert result_of(quick) == result_of(whole)
    resting = [
        {w.statement for w in find_witnesses(c) if w.role == "rests"} for c in (quick, whole)
    ]
    assert resting[0] == resting[1]


def test_totals_counts_and_lists_are_the_same():
    store = make_store()
    catalogue = count_catalogue(store)
    known, town = catalogue.property_of(VISITORS), catalogue.property_of(TOWN)
    assert not town.is_single
    rows = rows_of(catalogue)
    here = replace(rows, conditions=(Equals(Path((town,)), (TOWNS[0],), "town"),))
    few = replace(rows, conditions=(Compares(Path((known,)), ">", Decimal(20)),))
    for asked in (rows, here, few):
        for total in ("sum", "average"):
            compare(
                store,
                Aggregate(asked, total, Path((known,))),
                Aggregate(asked, total, unknown(known)),
            )
        compare(store, Count(asked), Count(asked))
        listed = evaluate_query(store, ListRows(asked))
        assert listed.row_count == evaluate_query(store, Count(asked)).row_count


def compare(store: OxigraphStore, quick: Aggregate | Count, whole: Aggregate | Count) -> None:
    one, other = evaluate_query(store, quick, SMALL), evaluate_query(store, whole)
    assert (one.bindings, one.row_count) == (other.bindings, other.row_count)


@pytest.mark.parametrize(
    "more",
    [
        [(3, VISITORS, integer(1_000))],
        [(50, VISITORS, Literal("many", datatype=v.xsd("integer")))],
        [(50, VISITORS, Literal("7", datatype=v.xsd("decimal")))],
        [(50, VISITORS, Literal("many"))],
    ],
)
def test_a_property_with_other_values_is_not_single(more: Sequence[tuple[int, NamedNode, Literal]]):
    catalogue = count_catalogue(make_store(more))
    assert not catalogue.property_of(VISITORS).is_single
    assert catalogue.property_of(FOUNDED).is_single


def test_a_row_that_contradicts_itself_has_no_place():
    store = make_store([(3, VISITORS, integer(1_000))])
    catalogue = count_catalogue(store)
    query = Extreme(rows_of(catalogue), Path((catalogue.property_of(VISITORS),)), is_most=True)
    assert row_of(3) not in {row["row"] for row in evaluate_query(store, query, SMALL).bindings}
