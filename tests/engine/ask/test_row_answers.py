"""Answers from tables: the cell under the column that the question names, of the right row."""

from __future__ import annotations

import pytest
from pyoxigraph import QuerySolutions

import tgraph
from tests.support.small_reader import NONE, small_reader
from tgraph.engine.components import Components
from tgraph.models.reader import OnnxReader
from tgraph.record.session import SessionRecord
from tgraph.retrieve.reasons import THIRD_WORDING
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder

PUMPS = """id,product,weight,price,maker
1,Pump Aqua,11,100,Norden
2,Pump Delta,12,110,Norden
3,Pump Echo,13,120,Berg
"""
PEOPLE = """Index,Customer Id,First Name,Last Name,Email
1,DD37Cf,Ana,Berg,ana@norden.info
2,1Ef7b8,Bo,Lund,bo@sund.info
3,6F9487,Roy,Holm,roy@holm.info
"""
NAMES = ("name", "row", "column")
SCORES = {NONE: 0.0, "13": 9.0, "3": 8.0}
"""A reader that takes the weight for the answer."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    (folder / "pumps.csv").write_text(PUMPS)
    (folder / "people.csv").write_text(PEOPLE)
    with opened(folder, create=True) as graph:
        assert not graph.index([folder / "pumps.csv", folder / "people.csv"]).failed
    return folder


def opened(folder, create=False):
    reader = OnnxReader.of_folder(small_reader(folder / "reader", SCORES))
    parts = Components(
        load_settings(None, {}), folder / "cache", embedder=HashingEmbedder(), reader=reader
    )
    return tgraph.open(folder / "graph", create=create, parts=parts)


@pytest.mark.parametrize(
    ("question", "short", "row"),
    [
        ("What is the price of Pump Echo?", "120", "3 | Pump Echo | 13 | 120 | Berg"),
        ("Who is the maker of Pump Echo?", "Berg", "3 | Pump Echo | 13 | 120 | Berg"),
        ("Which product is made by Berg?", "Pump Echo", "3 | Pump Echo | 13 | 120 | Berg"),
        ("What is the email of Roy Holm?", "roy@holm.info", "3 | 6F9487 | Roy | Holm | "),
    ],
)
def test_the_short_answer_is_the_cell_that_is_asked_for(folder, question, short, row):
    with opened(folder) as graph:
        answer = graph.ask(question, mode="graph", history=())
    assert answer.short == short
    assert answer.sentences[0].text.startswith(row)


def test_a_session_of_an_earlier_release_is_replayed_as_it_was(folder):
    question = "What is the price of Pump Echo?"
    with opened(folder) as graph, pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(SessionRecord.__init__, "__defaults__", (THIRD_WORDING - 1,))
        for module in ("reading", "judging"):
            name = f"tgraph.retrieve.text.{module}.THIRD_WORDING"
            earlier.setattr(name, THIRD_WORDING + 1)
        answer = graph.ask(question, mode="graph", history=())
    assert answer.short != "120"
    with opened(folder) as graph:
        assert graph.replay(answer.session).is_same
        later = graph.ask(question, mode="graph", history=())
        assert later.short == "120"
        assert graph.replay(later.session).is_same


def test_evidence_names_its_cell(folder):
    query = """PREFIX tg: <https://trustgraph.ai/ns/> PREFIX csvw: <http://www.w3.org/ns/csvw#>
        SELECT ?name ?row ?column WHERE { GRAPH <urn:graph:source> {
            ?evidence csvw:rownum ?row ; tg:tableColumn ?column ; tg:name ?name ;
                tg:quote ?quote FILTER (STRSTARTS(?quote, "3 | Pump Echo")) } }"""
    with opened(folder) as graph:
        solutions = graph.sparql(query)
        assert isinstance(solutions, QuerySolutions)
        cells = {tuple(solution[name].value for name in NAMES) for solution in solutions}
    assert cells == {
        ("weight", "3", "3"),
        ("price", "3", "4"),
        ("maker", "3", "5"),
        ("id", "3", "1"),
    }
