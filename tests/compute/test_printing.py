"""Nothing of a document or a question becomes part of a query's structure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from tests.support.corpora import Corpus
from tests.support.random_graphs import PLACE, TYPED, queries
from tgraph import vocabulary as v
from tgraph.compute.algebra import Contains, Differs, Equals, ListRows, Path, Rows
from tgraph.compute.evaluation import evaluate_query
from tgraph.compute.printing import print_query
from tgraph.engine.graph import KnowledgeGraph
from tgraph.store.oxigraph import OxigraphStore

HOSTILE = ('Nor"den', "Ber}g { ?s ?p ?o", "A > B", "x' . } DROP ALL #", "back\\slash", "two\nlines")
NAMES = st.text(min_size=1, max_size=12) | st.sampled_from(HOSTILE)


@given(queries)
def test_every_query_is_printed_so_that_it_can_be_evaluated(query):
    evaluate_query(OxigraphStore.memory(), query)
    assert print_query(query).startswith(("SELECT ", "ASK "))


@given(NAMES, NAMES)
def test_a_value_is_compared_as_it_stands(name, other):
    row = NamedNode(v.entity_iri("a row"))
    value = Literal(name)
    store = OxigraphStore.memory(
        [Quad(row, v.RDF_TYPE, NamedNode(TYPED.type)), Quad(row, PLACE.iri, value)]
    )
    path = Path((PLACE,))
    for condition, is_met in (
        (Equals(path, (value,), name), True),
        (Equals(path, (Literal(other),), other), other == name),
        (Differs(path, (Literal(other),), other), other != name),
        (Contains(path, name.lower()), True),
    ):
        computed = evaluate_query(store, ListRows(Rows(TYPED, (condition,))))
        assert bool(computed.rows) == is_met


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    corpus = Corpus(tmp_path_factory.mktemp("hostile"))
    rows = "".join(
        f'"Pump {number}","{name.replace(chr(34), chr(34) * 2)}",{number}\n'
        for number, name in enumerate(HOSTILE[:4], 1)
    )
    corpus.index({"pumps.csv": f"name,maker,weight_kg\n{rows}"})
    with corpus.open() as graph:
        yield graph


@pytest.mark.parametrize("name", HOSTILE[:4])
def test_a_question_with_a_name_of_signs_asks_for_no_more_than_that(
    hostile: KnowledgeGraph, name: str
):
    answer = hostile.ask(f"How many pumps does {name} make?", "sparql", history=[])
    assert answer.no_evidence or answer.text.startswith("1 of the 4 pumps")


def test_the_maker_of_a_row_is_told_whatever_its_name(hostile: KnowledgeGraph):
    assert hostile.ask("Who makes Pump 1?", "sparql", history=[]).text.endswith(' is Nor"den.')
