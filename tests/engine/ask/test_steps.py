"""Questions in steps: each is answered by itself and on record, and the answer cites all places."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.ask.test_modes import CATALOGUE
from tests.support.corpora import opened, write
from tgraph import Filters
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.render.wording import stage_lines
from tgraph.testing import ScriptedModel

TEXTS = {
    "fram.md": "# Fram\n\nThe Fram was built by Colin Archer. Roald Amundsen sailed the Fram.\n",
    "archer.md": "# Colin Archer\n\nColin Archer was born in Larvik. Colin Archer liked cats.\n",
    "larvik.md": "# Larvik\n\nLarvik lies on the coast of Norway. Ferries leave Larvik daily.\n",
    "bread.md": "# Bread\n\nSourdough bread is baked in Paris. Bakers in Paris rise early.\n",
}
QUESTION = "In which town was the person who built the Fram born?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("steps")
    with opened(root, create=True) as graph:
        assert not graph.index(write(root, TEXTS)).failed
    return root


@pytest.mark.slow
def test_each_step_is_answered_and_the_answer_cites_both_documents(home):
    with opened(home) as graph:
        answer = graph.ask(QUESTION, history=[])
        assert answer.mode == "ppr"
        assert {"Fram", "Colin Archer"} <= {c.title for s in answer.sentences for c in s.citations}
        trace = graph.trace(answer.session)
        first, last = trace.step_answers
        assert first.question == "Who is the person who built the Fram?"
        assert first.answer == "Colin Archer"
        assert first.place is not None
        assert first.place.title == "Fram"
        assert last.question == "In which town was Colin Archer born?"
        assert last.place is not None
        assert "Larvik" in last.place.quote
        assert [step.kind for step in trace.steps].count("StepAnswering") == 2
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)
        retrieval = f"urn:trustgraph:prov:retrieval:{answer.session.rpartition(':')[2]}"
        lines = "\n".join(stage_lines(trace, retrieval))
        assert "Step 1: Who is the person who built the Fram? → Colin Archer (Fram)" in lines
        assert first.words in graph.export(answer.session, "html").decode()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["ppr", "graph"])
def test_a_replay_answers_the_same_steps(home, mode):
    with opened(home) as graph:
        answer = graph.ask(QUESTION, mode, history=[])
        assert len(graph.trace(answer.session).step_answers) == 2
        assert "Larvik" in " ".join(sentence.text for sentence in answer.sentences)
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)
        assert graph.replay(answer.session).is_same


def test_a_step_without_an_answer_ends_the_steps_and_is_on_record(home):
    with opened(home) as graph:
        question = "When was the person who painted the Fram and Colin Archer born?"
        answer = graph.ask(question, "ppr", history=[], filters=Filters(documents=("bread.md",)))
        steps = graph.trace(answer.session).step_answers
        assert steps
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)


def test_with_a_model_the_model_is_asked_for_the_steps(home):
    model = ScriptedModel()
    with opened(home, model) as graph:
        answer = graph.ask(QUESTION, "ppr", history=[])
        assert not graph.trace(answer.session).step_answers
        assert model.count("decompose_question") == 1
        graph.ask(QUESTION, "graph", history=[])
        assert model.count("decompose_question") == 1
