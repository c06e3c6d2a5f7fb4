"""The mode ``auto``: what a question is about, which mode that means, and that why is on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.ask.test_modes import CATALOGUE, TEXTS
from tests.support.corpora import opened, write
from tgraph import Filters
from tgraph.answer.mode_choice import EmbeddedChooser
from tgraph.cli.main import invoke_graph_rag, main
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
    ("text", "form", "why"),
    [
        (NAMED, "one", "the question asks for one thing, Marie Curie"),
        ("When did marie curie teach?", "one", "the question asks for one thing, marie curie"),
        ("When was physics taught?", "one", "the question names no entity"),
        ("What does the main character want?", "one", "the question names no entity"),
        ("Who is it?", "one", "the question names no entity"),
        ("¿Quién?", "one", "the question names no entity"),
        ("What did Marie Curie do in Paris?", "one", "one fact about Marie Curie and Paris"),
        ("Who of Oslo, Paris, Marie Curie, Polonium met Henri Becquerel?", "one", "and 2 more"),
        ("Who sailed the ship that reached the pole first?", "linked", "“the ship that reached"),
        ("When was Marie Curie's husband born?", "linked", "“Marie Curie's husband”"),
        ("Who came first, Marie Curie or Henri Becquerel?", "compared", "between Marie Curie and"),
        ("Were Marie Curie and Henri Becquerel both teachers?", "compared", "(both)"),
        ("How does the Sorbonne compare with others?", "compared", "(compare)"),
        ("How many ships sailed to the pole?", "listed", "a count (how many)"),
        ("List all the ships.", "listed", "the question asks for a list"),
        ("Which elements were found?", "listed", "several things (elements)"),
        ("What are the main themes?", "whole", "the question asks about the documents as a whole"),
        ("What do these files deal with altogether?", "whole", "the documents as a whole"),
        ("What is covered here?", "whole", "the question asks about the documents as a whole"),
        ("What are the main policies?", "whole", "asks for what is foremost (main)"),
        ("What are these all about?", "whole", "the question asks about the documents as a whole"),
        ("Give me an overview of polar travel.", "whole", "asks to sum up (overview)"),
    ],
)
def test_the_form_of_a_question(context, text, form, why):
    about = EmbeddedChooser().choose(Question(text), context)
    assert about.form == form
    assert why in about.reason


WHOLE = """
What do these stories have in common?
Which subjects are covered in the articles?
What is this book about?
Tell me what these pages are about.
Which themes recur across the chapters?
What are the most important ideas in this collection?
In these documents, what are the main concerns?
What can I learn from these texts?
What do the papers deal with?
Summarise the whole archive.
What runs through all of these letters?
Could you give me an overview of the manual?
Which topics come up again and again in the notes?
What kind of documents are these?
How are these reports connected?
What's in this collection?
Who are the main characters of the tales?
Across the book, which lessons are taught?
What do the essays discuss, taken together?
What happens in these stories?
"""
NOT_WHOLE = """
What do these stories say about the tiger's leg?
Who wrote the book?
When was this document written?
How many pages are there?
Which article mentions radium?
What is the title of the collection?
Where in the documents is the pump described?
What is a story?
Is this book about whales?
What does the second chapter say about salt?
Which story is the longest?
What colour is the cover of the book?
Why was the report withdrawn?
Who is the author of these letters?
What is the main gate made of?
Where is the key?
What did the captain learn from the letters?
How long is the manual?
What subject did the teacher teach?
Which topics may a member raise at the meeting?
"""


@pytest.mark.parametrize("text", WHOLE.strip().split("\n"))
def test_what_asks_about_the_whole_is_told_by_its_form(context, text):
    assert EmbeddedChooser().choose(Question(text), context).form == "whole"


@pytest.mark.parametrize("text", NOT_WHOLE.strip().split("\n"))
def test_what_only_names_a_body_of_texts_asks_for_one_thing_all_the_same(context, text):
    assert EmbeddedChooser().choose(Question(text), context).form != "whole"


def test_who_asks_is_no_name(context):
    about = EmbeddedChooser().choose(Question("When did I read of Marie Curie?"), context)
    assert about.reason == "the question asks for one thing, Marie Curie"


def test_the_question_before_says_what_it_is_about(context):
    told = (Turn("Who was Marie Curie?", "A physicist."),)
    about = EmbeddedChooser().choose(Question("When did she teach?", told), context)
    assert about.reason == "the question asks for one thing, Marie Curie"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (NAMED, "graph"),
        ("Who sailed the ship that reached the pole first?", "ppr"),
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
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)
        assert not graph.trace(graph.ask(text, mode, history=[]).session).choice_text


def test_the_settings_say_which_mode_is_for_what(home):
    with opened(home, settings={"auto.one": "lightrag-mix"}) as graph:
        assert graph.ask(NAMED, "auto", history=[]).mode == "lightrag-mix"
    with opened(home, settings={"auto.one": "nothing"}) as graph, pytest.raises(UsageError):
        graph.ask(NAMED, "auto", history=[])


def test_the_model_chooses_where_the_settings_say_so(home):
    reply = '{"form": "linked", "reason": "it asks for links."}'
    model = ScriptedModel({"choose_mode": reply})
    with opened(home, model, {"auto.by_model": True}) as graph:
        answer = graph.ask(NAMED, "auto", history=[])
        trace = graph.trace(answer.session)
        assert trace.choice_text == "auto chose ppr because it asks for links"
        assert any("choose_mode" in call.label for call in trace.calls)
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)
    assert model.count("choose_mode") == 1
    with opened(home, model) as graph:
        assert graph.ask(NAMED, "auto", history=[]).mode == "graph"
    assert model.count("choose_mode") == 1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (["nonsense", '{"form": "many"}'], "whose reply can't be used"),
        (EndpointError("No server.", "Start it."), "which can't be reached"),
    ],
)
def test_a_model_that_cannot_choose_costs_nothing_but_its_choice(home, said, why):
    model = ScriptedModel({"choose_mode": said})
    with opened(home, model, {"auto.by_model": True}) as graph:
        answer = graph.ask(NAMED, "auto", history=[])
        trace = graph.trace(answer.session)
        assert answer.mode == "graph"
        assert trace.dropped[f"mode choice without the model, {why}"] == 1
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)


def test_a_choice_under_filters_that_leave_nothing(home):
    with opened(home) as graph:
        answer = graph.ask(NAMED, "auto", history=[], filters=Filters(since="2999"))
        assert answer.no_evidence
        assert graph.trace(answer.session).choice_text
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)


def test_documents_that_are_long_are_asked_by_the_mode_for_them(home):
    with opened(home, settings={"auto.long_chunks": 1}) as graph:
        answer = graph.ask(NAMED, "auto", history=[])
        assert answer.mode == "contextual"
        assert "the documents are long (1 chunks each)" in graph.trace(answer.session).choice
        assert graph.ask("What are the main themes?", "auto", history=[]).mode == "global"


def test_documents_of_which_few_facts_are_known_are_asked_by_the_mode_for_them(home):
    with opened(home, settings={"auto.sparse_edges": 1_000}) as graph:
        answer = graph.ask("Who sailed the ship that reached the pole first?", "auto", history=[])
        assert answer.mode == "contextual"
        assert "the graph is sparse" in graph.trace(answer.session).choice
        assert graph.ask("What are the main themes?", "auto", history=[]).mode == "global"


def test_auto_is_the_default(home):
    with opened(home) as graph:
        answer = graph.ask(NAMED, history=[])
        assert graph.trace(answer.session).choice_text.startswith("auto chose graph")


def test_trustgraphs_command_keeps_the_specifications_mode(capsys):
    for command, mode in ((main, "auto"), (invoke_graph_rag, "graph")):
        with pytest.raises(SystemExit):
            command([*(["ask"] if command is main else []), "--help"])
        assert f"[default: {mode}]" in " ".join(capsys.readouterr().out.split())


def test_the_choice_is_told_and_so_is_the_mode_that_can_answer(home):
    told: list[str] = []
    with opened(home, message=told.append) as graph:
        graph.ask("What are the main themes?", history=[])
        assert told == ["Mode: global, because the question asks about the documents as a whole."]
        told.clear()
        assert graph.ask("What are the main themes?", "graph", history=[]).no_evidence
        assert "try -m global, which -m auto chooses" in told[0]


def test_modes_are_told_with_auto_among_them(home):
    with opened(home) as graph, pytest.raises(UsageError, match="auto"):
        graph.ask(NAMED, "xyzzy", history=[])
