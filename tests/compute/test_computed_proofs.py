"""What is proved of a session is proved of computed ones: influence, packages, erasure, diff."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.corpora import Corpus, indexed
from tests.support.pumps import PUMPS_CSV
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.render.text_trees import trace_text
from tgraph.extensions.evidence import make_package, verify_package
from tgraph.extensions.lab import measure_influence


@pytest.fixture(scope="module")
def pumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("pumps"), {"pumps.csv": PUMPS_CSV}) as graph:
        yield graph


def test_a_computed_sentence_depends_on_each_witness_that_it_rests_on(pumps: KnowledgeGraph):
    session = pumps.ask("Which are not made by Norden?", history=[]).session
    result, excluded = measure_influence(pumps, session).sentences
    assert {d.label[:7] for d in result.depends_on if d.cited} == {"Pump P3", "Pump P5"}
    rows = {"Pump P1", "Pump P2", "Pump P4"}
    assert {d.label[:7] for d in excluded.depends_on if d.cited} == rows
    session = pumps.ask("Which pump is the heaviest?", history=[]).session
    winner = measure_influence(pumps, session).sentences[0]
    assert [(d.label[:7], d.weight) for d in winner.depends_on] == [("Pump P2", 1.0)]


@pytest.mark.parametrize("mode", ["sparql", "auto"])
def test_a_package_of_a_computed_session_is_replayed_alone(
    pumps: KnowledgeGraph, tmp_path: Path, mode: str
):
    for number, question in enumerate(
        ("Does Norden make a pump heavier than 40 kg?", "Which are not made by Norden?")
    ):
        session = pumps.ask(question, mode, history=[]).session
        package = make_package(pumps, session)
        assert not package.no_replay
        path = tmp_path / f"{number}.zip"
        path.write_bytes(package.data)
        outcomes = {check.name: check.state for check in verify_package(path).checks}
        assert outcomes["Replay"] == "ok"


def test_two_sessions_differ_by_their_queries(pumps: KnowledgeGraph):
    one, two = (
        pumps.ask(f"Which pumps cost less than {price} euros?", history=[]).session
        for price in (400, 300)
    )
    changed = {
        each.name: (each.before, each.after) for each in pumps.sessions.compare(one, two).asked
    }
    before, after = changed["query"]
    assert before.replace("400", "300") == after


WEIGHTS = "name,weight_kg\nPump P1,11713\nPump P2,42717\n"


def test_what_was_computed_from_an_erased_table_is_nowhere(tmp_path: Path):
    corpus = Corpus(tmp_path)
    corpus.index(
        {
            "pumps.csv": "name,maker\nPump P1,Norden\nPump P2,Norden\n",
            "weights-of-pumps.csv": WEIGHTS,
        }
    )
    with corpus.open() as graph:
        total = "What is the total weight of the pumps?"
        session = graph.ask(total, "sparql", history=[]).session
        count = graph.ask("How many pumps does Norden make?", "sparql", history=[]).session
        assert "54,430" in trace_text(graph.trace(session))
        graph.purge(str(tmp_path / "weights-of-pumps.csv"), reason="a request")
        trace = graph.trace(session)
        assert trace.computed is not None
        assert trace.computed.rows == ()
        text = trace_text(trace)
        assert not [number for number in ("54430", "54,430", "11713", "42717") if number in text]
        assert {each.verdict for each in graph.verify(session).sentences} == {"unsupported"}
        with pytest.raises(UsageError, match="erased"):
            graph.replay(session)
        assert not check_shapes(graph.opened.read(), graph.opened.catalogue, session)
        kept = graph.trace(count).computed
        assert kept is not None
        assert [cell.text for row in kept.rows for cell in row.cells] == ["2"]
