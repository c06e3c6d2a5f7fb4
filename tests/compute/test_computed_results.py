"""The table of a computed answer: the same in the answer, its JSON, the trace and the report, each
row with the characters that it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.support.corpora import Corpus, indexed
from tests.support.pumps import PUMPS_CSV
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.json_answers import answer_json
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.render.text_trees import trace_text


@pytest.fixture(scope="module")
def pumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("pumps"), {"pumps.csv": PUMPS_CSV}) as graph:
        yield graph


QUESTIONS = (
    "Which pump is the heaviest?",
    "How many pumps does each maker make?",
    "Which are not made by Norden?",
    "What is the average price of the pumps of Berg?",
    "Which pumps of Berg weigh more than 100 kg?",
    "How many pumps are blue?",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_answer_json_and_trace_have_one_table(pumps: KnowledgeGraph, question: str):
    answer = pumps.ask(question, "sparql", history=[])
    trace = pumps.trace(answer.session)
    assert answer.computed is not None
    assert answer.computed == trace.computed
    assert answer_json(answer)["computed"] == json.loads(json.dumps(asdict(answer.computed)))
    assert not check_shapes(pumps.opened.read(), pumps.opened.catalogue, answer.session)


def test_each_row_has_its_witnesses_with_their_characters(pumps: KnowledgeGraph):
    computed = pumps.ask("How many pumps does each maker make?", history=[]).computed
    assert computed is not None
    assert computed.columns == ("maker", "number: pump")
    rows = {
        tuple(cell.text for cell in row.cells): [
            (witness.label, witness.role, witness.place and witness.place.quote[:2])
            for witness in row.witnesses
        ]
        for row in computed.rows
    }
    assert rows == {
        ("Norden", "3"): [(f"Pump {p} — maker — Norden", "rests", p) for p in ("P1", "P2", "P4")],
        ("Berg", "2"): [(f"Pump {p} — maker — Berg", "rests", p) for p in ("P3", "P5")],
    }


def test_lesser_and_excluded_rows_have_their_roles(pumps: KnowledgeGraph):
    heaviest = pumps.ask("Which pump is the heaviest?", history=[]).computed
    assert heaviest is not None
    assert [row.witnesses[0].role for row in heaviest.rows] == ["rests", *["compared"] * 4]
    others = pumps.ask("Which are not made by Norden?", history=[]).computed
    assert others is not None
    assert {witness.label[:7] for witness in others.searched} == {"Pump P1", "Pump P2", "Pump P4"}


def test_report_and_trace_show_query_rows_and_what_was_not_chosen(
    pumps: KnowledgeGraph, tmp_path: Path
):
    answer = pumps.ask("How many pumps does each maker make?", history=[])
    trace = pumps.trace(answer.session)
    trace.to_html(tmp_path / "report.html")
    report, text = (tmp_path / "report.html").read_text(), trace_text(trace)
    assert '<td data-is="maker">Berg</td><td data-is="number: pump">2</td>' in report
    assert "GROUP BY ?group" in report.split("<script")[0]
    assert "Queries that were not chosen (2)" in report
    assert "Result  2 rows: maker | number: pump" in text
    assert "“P5 | Pump P5 | Berg | 31 | 390” " in text.partition("Result")[2]
    assert "Not chosen (2 other queries)" in text


def test_markup_of_a_table_is_text_in_the_report(tmp_path: Path):
    corpus = Corpus(tmp_path)
    evil = "<script>alert(1)</script>"
    corpus.index({"things.csv": f"name,maker\n{evil},<b>Norden</b>\nThing B,Berg\n"})
    with corpus.open() as graph:
        answer = graph.ask("How many things does each maker make?", "sparql", history=[])
        assert answer.computed is not None
        assert answer.computed.rows
        graph.trace(answer.session).to_html(tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text().split('<script type="application/trig"')[0]
    assert evil not in report
    assert "<b>Norden" not in report
    assert "&lt;b&gt;Norden&lt;/b&gt;" in report
