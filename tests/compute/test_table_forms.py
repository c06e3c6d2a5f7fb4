"""Questions over tables that name little of what they mean: of the order of rows, of cells in part,
of numbers in texts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.corpora import Corpus
from tgraph.compute.computation import plan_query
from tgraph.compute.evaluation import read_result
from tgraph.compute.printing import print_query
from tgraph.compute.results import result_terms
from tgraph.engine.graph import KnowledgeGraph

RACES = """Season,Race,Winner,Laps,Attendance
1998-99,Harbour Cup,Ada Berg,"12 laps","1,204"
1999-00,Hill Race,Bo Lund,"9 laps","987"
2000-01,Lake Round,Ada Berg,"31 laps","2,410"
2001-02,Wood Mile,Cy Dahl,"15 laps","1,100"
"""


@pytest.fixture(scope="module")
def races(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    corpus = Corpus(tmp_path_factory.mktemp("races"))
    corpus.index({"races.csv": RACES})
    with corpus.open() as graph:
        yield graph


def best_terms(graph: KnowledgeGraph, question: str) -> list[str]:
    context = graph.opened.context()
    query = plan_query(question, context).ranked[0].candidate.query
    terms = result_terms(query, read_result(context.store, print_query(query)))
    return [term.value.rpartition(":")[2] for term in terms]


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("Which race is listed after the Hill Race?", ["lake-round"]),
        ("Which race is listed before the Hill Race?", ["harbour-cup"]),
        ("Which race had the most laps?", ["lake-round"]),
        ("Which winner won the most races?", ["ada-berg"]),
    ],
)
def test_the_best_reading_of_a_question_over_a_table(
    races: KnowledgeGraph, question: str, terms: list[str]
):
    assert best_terms(races, question) == terms
