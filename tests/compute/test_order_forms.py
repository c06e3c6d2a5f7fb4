"""Questions over the order in which a table lists its rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.corpora import indexed
from tgraph.compute.computation import plan_query
from tgraph.compute.evaluation import read_result
from tgraph.compute.printing import print_query
from tgraph.compute.results import result_terms
from tgraph.engine.graph import KnowledgeGraph

RACES = """Race,Year,Winner,Attendance
Harbour Cup,1998,Ada Berg,"1,204"
Hill Race,2000,Bo Lund,987
Lake Round,1999,Ada Berg,"2,410"
Wood Mile,1998,Cy Dahl,"1,100"
"""


@pytest.fixture(scope="module")
def races(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("races"), {"races.csv": RACES}) as graph:
        yield graph


def answer_terms(graph: KnowledgeGraph, question: str) -> list[str] | None:
    """Return the terms that a question is answered with; None for one that isn't answered."""
    context = graph.opened.context()
    chosen = plan_query(question, context).chosen
    if chosen is None:
        return None
    query = chosen.candidate.query
    terms = result_terms(query, read_result(context.store, print_query(query)))
    return [term.value.rpartition(":")[2] for term in terms]


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("Which race is listed after the Hill Race?", ["lake-round"]),
        ("Which race is listed before the Hill Race?", ["harbour-cup"]),
        ("What is the next race after the Hill Race?", ["lake-round"]),
        ("Which winner is listed directly below Bo Lund?", ["ada-berg"]),
        ("What is the last race in the table?", ["wood-mile"]),
        ("Which race is listed first?", ["harbour-cup"]),
    ],
)
def test_the_order_of_rows_is_that_of_the_table(
    races: KnowledgeGraph, question: str, terms: list[str]
):
    assert answer_terms(races, question) == terms


@pytest.mark.parametrize(
    "question",
    [
        "Which race is after the Hill Race?",  # in time, or as listed?
        "Which race is followed by the Hill Race?",
        "When was the last race in the table?",
        "Which driver is listed after the Hill Race?",
        "Which race is listed after the Wood Cup?",
        "Who attended directly below Bo Lund?",
    ],
)
def test_what_may_be_another_order_is_not_answered(races: KnowledgeGraph, question: str):
    assert answer_terms(races, question) is None
