"""The mode ``auto``: what a question is about, which mode that means, and that why is on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpora import opened, write
from tests.test_modes import CATALOGUE, TEXTS
from tgraph import Filters
from tgraph.answer.mode_choice import EmbeddedChooser
from tgraph.errors import EndpointError, UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.render.wording import stage_lines
from tgraph.model import Turn
from tgraph.retrieve.base import Question
from tgraph.testing import ScriptedModel

NAMED = "When did Marie Curie teach?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("auto")
    with opened(root, create=True) as graph:
        assert not graph.index(write(root, TEXTS)).failed
    return root


@pytest.fixture(scope="module")
def context(home):
    with opened(home) as graph:
        yield graph.context()


@pytest.mark.parametrize(
    ("text", "breadth", "why"),
    [
        (NAMED, "one", "it names one thing, Marie Curie"),
        ("Who was Robert Scott?", "one", "it names one thing, Robert Scott"),
        ("When was physics taught?", "one", "it names nothing that is known"),
        ("Who is it?", "one", "it names nothing that is known"),
        ("What did Marie Curie do in Paris?", "several", "it names Marie Curie and Paris"),
        (
            "Did Oslo, Paris, Marie Curie, Polonium and Henri Becquerel meet?",
            "several",
            "and 2 more",
        ),
        ("How does the Sorbonne compare with others?", "several", "(compare)"),
        ("Who sailed the ship that reached the pole first?", "several", "it describes “ship that"),
        ("What are the main themes?", "whole", "it asks about the documents as a whole"),
        ("Give me an overview of polar travel.", "whole", "it names nothing and speaks of"),
        ("¿Quién?", "one", "it names nothing that is known"),
    ],
)
def test_what_a_question_is_about(context, text, breadth, why):
    about = EmbeddedChooser().choose(Question(text), context)
    assert about.breadth == breadth
    assert why in about.reason


def test_the_question_before_says_what_it_is_about(context):
    told = (Turn("Who was Marie Curie?", "A physicist."),)
    about = EmbeddedChooser().choose(Question("When did she teach?", told), context)
    assert about.reason == "it names one thing, Marie Curie"


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (NAMED, "local"),
        ("What did Marie Curie do in Paris?", "graph"),
        ("What are the main themes?", "global"),
    ],
)
def test_the_mode_is_chosen_and_why_is_on_record(home, text, mode):
    with opened(home) as graph:
        answer = graph.ask(text, "auto", history=[])
        assert answer.mode == mode
        trace = graph.trace(answer.session)
        assert trace.mode == mode
        assert trace.choice_text == f"auto chose {mode} because {trace.choice}"
        assert trace.steps[0].kind == "ModeChoosing"
        assert trace.steps[0].agents[0].startswith("embedded-mode-choice")
        retrieval = f"urn:trustgraph:prov:retrieval:{answer.session.rpartition(':')[2]}"
        assert f"Mode: {trace.choice_text}" in "\n".join(stage_lines(trace, retrieval))
        assert not check_shapes(graph.read(), CATALOGUE, answer.session)
        assert not graph.trace(graph.ask(text, mode, history=[]).session).choice_text


def test_the_settings_say_which_mode_is_for_what(home):
    with opened(home, settings={"auto.one": "lightrag-mix"}) as graph:
        assert graph.ask(NAMED, "auto", history=[]).mode == "lightrag-mix"
    with opened(home, settings={"auto.one": "nothing"}) as graph, pytest.raises(UsageError):
        graph.ask(NAMED, "auto", history=[])


def test_the_model_chooses_where_the_settings_say_so(home):
    reply = '{"about": "several", "reason": "it asks for links."}'
    model = ScriptedModel({"choose_mode": reply})
    with opened(home, model, {"auto.by_model": True}) as graph:
        answer = graph.ask(NAMED, "auto", history=[])
        trace = graph.trace(answer.session)
        assert trace.choice_text == "auto chose graph because it asks for links"
        assert any("choose_mode" in call.label for call in trace.calls)
        assert not check_shapes(graph.read(), CATALOGUE, answer.session)
    assert model.count("choose_mode") == 1
    with opened(home, model) as graph:
        assert graph.ask(NAMED, "auto", history=[]).mode == "local"
    assert model.count("choose_mode") == 1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (["nonsense", '{"about": "many"}'], "whose reply can't be used"),
        (EndpointError("No server.", "Start it."), "which can't be reached"),
    ],
)
def test_a_model_that_cannot_choose_costs_nothing_but_its_choice(home, said, why):
    model = ScriptedModel({"choose_mode": said})
    with opened(home, model, {"auto.by_model": True}) as graph:
        answer = graph.ask(NAMED, "auto", history=[])
        trace = graph.trace(answer.session)
        assert answer.mode == "local"
        assert trace.dropped[f"mode choice without the model, {why}"] == 1
        assert not check_shapes(graph.read(), CATALOGUE, answer.session)


def test_a_choice_under_filters_that_leave_nothing(home):
    with opened(home) as graph:
        answer = graph.ask(NAMED, "auto", history=[], filters=Filters(since="2999"))
        assert answer.no_evidence
        assert graph.trace(answer.session).choice_text
        assert not check_shapes(graph.read(), CATALOGUE, answer.session)


def test_modes_are_told_with_auto_among_them(home):
    with opened(home) as graph, pytest.raises(UsageError, match="auto"):
        graph.ask(NAMED, "xyzzy", history=[])
