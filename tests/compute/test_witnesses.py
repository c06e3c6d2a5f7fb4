"""Witnesses are minimal and enough: a result is another without any of those that it rests on, and
the same without anything else."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from pyoxigraph import Literal, NamedNode, Quad, Triple

from tests.support.examples import examples
from tests.support.random_graphs import KIND, ROWS, TYPED, graphs, queries
from tgraph import vocabulary as v
from tgraph.compute.algebra import ListRows, Path, Query, Rows
from tgraph.compute.evaluation import Computed, evaluate_query
from tgraph.compute.results import decisive_solutions
from tgraph.compute.witnesses import find_witnesses
from tgraph.index.catalogue import KnownProperty
from tgraph.store.oxigraph import OxigraphStore

DECISIVE = ("rests", "contradicts")


def quads(statements: Iterable[Triple]) -> list[Quad]:
    return [Quad(t.subject, t.predicate, t.object) for t in statements]


def evaluate(statements: Iterable[Triple], query: Query) -> Computed:
    return evaluate_query(OxigraphStore.memory(quads(statements)), query)


def result_of(computed: Computed) -> object:
    """What a result says: its solutions, of an extreme the winning ones, and what contradicts."""
    solutions = decisive_solutions(computed.query, computed.solutions)
    parts = tuple(
        frozenset((str(s.row), str(s.group), str(s.value), str(s.statements)) for s in part)
        for part in (solutions, computed.conflicts, computed.whole)
    )
    return *parts, *map(result_of, computed.inner)


def check_witnesses(statements: list[Triple], query: Query) -> None:
    store = OxigraphStore.memory(quads(statements))
    computed = evaluate_query(store, query)
    result = result_of(computed)
    witnesses = find_witnesses(computed)
    decisive = {str(Triple(*w.statement)) for w in witnesses if w.role in DECISIVE}
    for left_out in statements:
        store.remove(quads([left_out]))
        is_same = result_of(evaluate_query(store, query)) == result
        store.extend(quads([left_out]))
        assert is_same == (str(left_out) not in decisive), (left_out, query)
    lineage = {str(Triple(*w.statement)) for w in witnesses}
    kept = [t for t in statements if str(t) in lineage]
    assert result_of(evaluate(kept, query)) == result


def test_rows_that_are_listed_may_have_several_values_whatever_their_property_is_called():
    measured = NamedNode(v.relation_iri("measured depth"))
    depth = KnownProperty(measured, "measured depth", "", (("number", 2),), 2, 1, 2)
    statements = [
        Triple(ROWS[0], v.RDF_TYPE, NamedNode(KIND)),
        *(Triple(ROWS[0], measured, Literal(text)) for text in ("3 m", "4 m")),
    ]
    computed = evaluate(statements, ListRows(Rows(TYPED), Path((depth,))))
    assert len(computed.solutions) == 2
    assert computed.conflicts == ()


@given(graphs, queries)
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_a_result_rests_on_its_witnesses_and_on_nothing_else(statements, query):
    check_witnesses(statements, query)


@pytest.mark.slow
@given(graphs, queries)
@settings(max_examples=examples(2_000), suppress_health_check=[HealthCheck.too_slow])
def test_five_hundred_results_rest_on_their_witnesses_and_on_nothing_else(statements, query):
    check_witnesses(statements, query)
