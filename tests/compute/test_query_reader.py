"""Queries that a person or a model wrote: what is printed reads as what it was, and what the
algebra can't say is refused with a reason and a remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from pyoxigraph import NamedNode, Quad, Triple

from tests.support.examples import examples
from tests.support.random_graphs import (
    LISTED,
    MAKER,
    MAKERS,
    PLACE,
    ROWS,
    TYPED,
    WEIGHT,
    graphs,
    written_queries,
)
from tgraph import vocabulary as v
from tgraph.compute.algebra import (
    Aggregate,
    Compares,
    CompareTwo,
    Contains,
    Count,
    Difference,
    Differs,
    Equals,
    Exists,
    Extreme,
    GroupRows,
    ListRows,
    Path,
    Query,
    Rows,
)
from tgraph.compute.evaluation import evaluate_query
from tgraph.compute.printing import print_query, write_query
from tgraph.compute.query_reader import read_query
from tgraph.compute.query_syntax import LONGEST_TEXT, MOST_TOKENS
from tgraph.errors import QueryError
from tgraph.index.catalogue import Catalogue, KnownClass
from tgraph.store.oxigraph import OxigraphStore

NAMED = KnownClass("name", "maker", "maker", 2, (), tuple(MAKERS[:2]))
KNOWN = Catalogue((TYPED, LISTED, NAMED), (MAKER, WEIGHT, PLACE))
PREFIXES = f"""PREFIX r: <{v.relation_iri("")}> PREFIX t: <{v.type_iri("")}>
PREFIX e: <{v.entity_iri("")}>
"""


def read(text: str) -> Query:
    return read_query(PREFIXES + text, KNOWN)


def without_labels(query: Query) -> Query:
    """The query with what its printed form doesn't have left out, or written in one way."""
    conditions = tuple(
        replace(c, text=c.text.lower())
        if isinstance(c, Contains)
        else replace(c, label="")
        if isinstance(c, Equals | Differs)
        else c
        for c in dict.fromkeys(query.rows.conditions)
    )
    return replace(query, rows=replace(query.rows, conditions=conditions))


def evaluated(statements: Iterable[Triple], query: Query) -> tuple[object, ...]:
    store = OxigraphStore.memory(Quad(t.subject, t.predicate, t.object) for t in statements)
    computed = evaluate_query(store, query)
    return computed.bindings, computed.solutions, computed.conflicts, computed.excluded


@given(graphs, written_queries)
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
def test_a_query_is_read_as_what_was_written(statements, query):
    assert without_labels(read_query(write_query(query, KNOWN), KNOWN)) == without_labels(query)
    printed = read_query(print_query(query), KNOWN)
    assert evaluated(statements, printed) == evaluated(statements, query)


TO_MAKER, TO_WEIGHT, TO_PLACE = Path((MAKER,)), Path((WEIGHT,)), Path((MAKER, PLACE))
FIRST = Equals(TO_MAKER, (MAKERS[1],), "maker-1")

TWO = Rows(None, (), (ROWS[1], ROWS[2]))

WRITTEN: dict[str, Query] = {
    "SELECT ?p ?name { ?p a t:pump ; r:maker e:maker-1 ; rdfs:label ?name }": ListRows(
        Rows(TYPED, (FIRST,))
    ),
    "SELECT (COUNT(*) AS ?n) { ?p a t:pump . { ?p r:maker ?m } FILTER(?m = e:maker-1) }": Count(
        Rows(TYPED, (FIRST,))
    ),
    "SELECT ?p { ?p r:weight ?w FILTER(?w >= 1 && 2.5 > ?w) }": ListRows(
        Rows(
            None,
            (Compares(TO_WEIGHT, ">=", Decimal(1)), Compares(TO_WEIGHT, "<", Decimal("2.5"))),
        )
    ),
    "SELECT ?p ?w { ?p a <urn:x:table> ; r:weight ?w } ORDER BY DESC(?w) LIMIT 2": Extreme(
        Rows(LISTED), TO_WEIGHT, True, 2
    ),
    "SELECT (MIN(?w) AS ?least) { ?p a t:pump ; r:weight ?w }": Extreme(
        Rows(TYPED), TO_WEIGHT, False
    ),
    'SELECT ?w { ?p a "maker" ; r:place ?w }': ListRows(Rows(NAMED), Path((PLACE,))),
    "SELECT ?place { ?p a t:pump ; r:maker/r:place ?place }": ListRows(Rows(TYPED), TO_PLACE),
    "SELECT ?p { ?p r:maker ?m MINUS { ?p r:maker e:maker-1 } }": ListRows(
        Rows(None, (Differs(TO_MAKER, (MAKERS[1],), "maker-1"),))
    ),
    'SELECT ?p { ?p r:maker ?m . ?m rdfs:label ?n FILTER(CONTAINS(LCASE(?n), "two")) }': ListRows(
        Rows(None, (Contains(TO_MAKER, "two"),))
    ),
    "SELECT ?m (AVG(?w) AS ?x) { ?p r:maker ?m ; r:weight ?w } GROUP BY ?m": GroupRows(
        Rows(None), TO_MAKER, "average", TO_WEIGHT
    ),
    "SELECT (SUM(?w) AS ?x) { VALUES ?p { e:row-1 e:row-2 } ?p r:weight ?w }": Aggregate(
        TWO, "sum", TO_WEIGHT
    ),
    "SELECT (MAX(?w) - MIN(?w) AS ?x) { VALUES ?p { e:row-1 e:row-2 } ?p r:weight ?w }": (
        Difference(TWO, TO_WEIGHT)
    ),
    "ASK { e:row-2 r:weight ?b . e:row-1 r:weight ?a FILTER(?a < ?b) }": CompareTwo(
        TWO, TO_WEIGHT, False
    ),
    "ASK { e:row-1 r:maker e:maker-1 }": Exists(Rows(None, (FIRST,), (ROWS[1],))),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_query_in_other_words_is_understood(text: str):
    assert read(text) == WRITTEN[text]


@pytest.mark.parametrize(
    "query",
    [
        Difference(TWO, TO_WEIGHT),
        CompareTwo(TWO, TO_WEIGHT, True),
        CompareTwo(TWO, TO_WEIGHT, False, asks_which=True),
    ],
)
def test_what_compares_two_rows_is_written_and_read(query: Query):
    assert read_query(write_query(query, KNOWN), KNOWN) == query


REFUSED = {
    "": "no SPARQL query",
    "hello": "no SPARQL query",
    "SELECT ?p { ?p r:maker 'open }": "no SPARQL query",
    "SELECT ?p { ?p unknown:maker 1 }": "Unknown namespace prefix",
    "SELECT ?p { ?p r:maker e:a } ; DROP ALL": "no SPARQL query",
    "DROP ALL": "is an update (DROP)",
    "INSERT DATA { <a:b> <a:c> <a:d> }": "is an update (INSERT)",
    "CONSTRUCT { ?p a ?q } { ?p a ?q }": "no CONSTRUCT",
    "DESCRIBE ?p { ?p a t:pump }": "no DESCRIBE",
    "SELECT ?p { SERVICE <http://x/> { ?p r:maker e:a } }": "(SERVICE)",
    "SELECT ?p { GRAPH <urn:graph:source> { ?p r:maker e:a } }": "(GRAPH)",
    "SELECT ?p { GRAPH ?g { ?p r:maker e:a } }": "(GRAPH)",
    "SELECT ?p FROM <urn:graph:source> { ?p r:maker e:a }": "(FROM)",
    "SELECT ?p { ?p r:maker* e:a }": "`*`, `+`",
    "SELECT ?p { ?p r:maker/r:place+ ?x }": "`*`, `+`",
    "SELECT ?p { ?p ^r:maker e:a }": "`*`, `+`",
    "SELECT ?p { ?p r:maker/r:place/r:place/r:place 'x' }": "more than 3 properties",
    "SELECT ?p { ?p ?any e:a }": "is a variable",
    "SELECT ?p { ?p r:makers e:a }": "no property <urn:trustgraph:relation:makers>. Did you mean",
    "SELECT ?p { ?p a t:pumps }": "no class <urn:trustgraph:type:pumps>. Did you mean",
    "SELECT ?p { ?p <relative> e:a }": "no absolute IRI",
    "SELECT * { ?p r:maker ?m }": "not named (*)",
    "SELECT ?p { { ?p r:maker e:a } UNION { ?p r:maker e:b } }": "(UNION)",
    "SELECT ?p { ?p r:maker e:a OPTIONAL { ?p r:weight ?w } }": "(OPTIONAL)",
    "SELECT ?p { ?p r:weight ?w FILTER(?w < 3 || ?w > 5) }": "can't have ||",
    "SELECT ?p { ?p r:weight ?w FILTER(?w != 3) }": "FILTER NOT EXISTS",
    "SELECT ?p { ?p r:maker ?m FILTER(REGEX(?m, '(a+)+$')) }": "can't have REGEX",
    "SELECT ?p { ?p r:maker ?m FILTER(<urn:x:f>(?m)) }": "a function",
    "SELECT ?p { ?p r:weight ?w FILTER(?w > 1e99999) }": "no number",
    "SELECT ?p { ?p r:maker ?m FILTER(?m > 5) }": "of the kind entity",
    "SELECT (SUM(?m) AS ?x) { ?p r:maker ?m }": "of the kind entity",
    "SELECT ?p ?q { ?p r:maker e:a . ?q r:maker e:a }": "several rows",
    "SELECT ?p { ?p r:maker ?q . ?q r:maker ?p }": "no row",
    "SELECT ?p { ?p r:maker ?m . ?m r:place 'x' ; r:weight 3 }": "Two paths go on",
    "SELECT ?p { ?p r:maker [ r:place 'x' ] }": "blank node",
    "SELECT ?p { ?p r:weight ?w ; r:maker ?m }": "Nothing is asked of ?w",
    "SELECT ?p { ?p a t:pump FILTER NOT EXISTS { ?p r:maker e:a } }": "Rows without “maker”",
    "SELECT ?p { ?p r:maker ?m FILTER NOT EXISTS { ?p r:maker ?m FILTER(?m = e:a) } }": "?m",
    "SELECT ?p ?w { ?p r:weight ?w } ORDER BY ?w": "without LIMIT",
    "SELECT ?p { ?p r:maker ?m } ORDER BY DESC(?m)": "no number or time",
    "SELECT ?p { ?p r:maker ?m } LIMIT 0": "LIMIT 0",
    "SELECT ?p { ?p r:maker ?m } OFFSET 2": "(OFFSET)",
    "SELECT (COUNT(?m) AS ?n) { ?p r:maker ?m }": "COUNT counts",
    "SELECT ?m (COUNT(?p) AS ?n) { ?p r:maker ?m } GROUP BY ?m HAVING (?n > 1)": "(HAVING)",
    "SELECT ?m (COUNT(?p) AS ?n) { ?p r:maker ?m } GROUP BY ?m LIMIT 1": "LIMIT cuts",
    "SELECT ?p { ?p r:maker '\\\\u006E' }": "backslash",
    "SELECT ?p { ?p r:maker '\ud800' }": "surrogates",
    "SELECT ?p \\u007b ?p r:maker e:a }": "Codepoint escapes",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_algebra_can_t_say_is_refused(text: str):
    with pytest.raises(QueryError) as refused:
        read(text)
    assert REFUSED[text] in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT ?p {{ ?p r:weight ?w {'FILTER(?w > 1)' * MOST_TOKENS} }}",
        f"SELECT ?p {'{' * 50}?p r:maker e:a{'}' * 50}",
        f"SELECT ?p {{ ?p r:weight ?w FILTER({'(' * 50}?w > 1{')' * 50}) }}",
        f"SELECT ?p {{ {'?p r:maker ?m . ' * 300} }}",
        f"SELECT ?p {{ ?p <urn:x:{'x' * 900_000}> 1 }}",
        "x" * (LONGEST_TEXT + 1),
        "(" * 100_000,
    ],
)
def test_what_would_take_long_to_read_is_refused(text: str):
    with pytest.raises(QueryError) as refused:
        read(text)
    assert len(str(refused.value)) < 1_200


def test_a_text_within_strings_is_no_structure():
    text = 'x" . } DROP ALL # { GRAPH ?g { SERVICE'
    query = read(f"SELECT ?p {{ ?p r:maker '{text}' }}")
    assert isinstance(query.rows.conditions[0], Equals)
    assert query.rows.conditions[0].values[0].value == text


def test_a_long_list_of_rows_is_read():
    rows = tuple(NamedNode(f"urn:x:row:{number}") for number in range(1_000))
    query = ListRows(Rows(None, (FIRST,), rows))
    assert read_query(print_query(query), KNOWN) == query
