"""`tgraph ask --only-context` and `--only-prompt`: what would be shown, and no answer."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.schemas import build_schemas
from tgraph.explain.trace.recorded_session import read_recorded
from tgraph.retrieve.modes.registry import MODES

from .conftest import QUESTION, Terminal

EMBEDDED = ["--chat-provider", "embedded", "--embedding-provider", "hashing"]


@pytest.fixture(scope="module")
def own(server, documents, tmp_path_factory) -> Terminal:
    """A terminal beside a graph of these tests, whose last session is theirs."""
    made = Terminal(tmp_path_factory.mktemp("only") / "graph", server.base_url)
    made("index", str(documents), "-r", str(made.root), *EMBEDDED, "--prepare")
    return made


def sent_for_the_answer(terminal: Terminal, session: str) -> list[dict[str, str]]:
    """The messages that the session sent to have its answer written, from the record."""
    with tgraph.open(terminal.root) as graph:
        store = graph.context().store
        recorded = read_recorded(
            store, graph.opened.librarian, v.bundle_iri(session[-36:]), session
        )
    calls = recorded.calls.calls
    wanted = [c for c in calls if c.prompt and c.prompt.name == "synthesise_answer"]
    messages: list[dict[str, str]] = wanted[-1].request["messages"]
    return messages


@pytest.mark.slow
def test_the_prompt_is_what_would_be_sent(own):
    for mode in ("graph", "global", "basic"):
        answer = json.loads(own.ask("--json", "-m", mode, QUESTION).stdout)
        shown = json.loads(own.ask("--only-prompt", "--json", "-m", mode, QUESTION).stdout)
        jsonschema.validate(shown, build_schemas()["ask-context"])
        assert shown["messages"] == sent_for_the_answer(own, answer["explain_id"])
        purposes = {each["purpose"] for each in shown["usage_by_step"]}
        assert "synthesise_answer" not in purposes
        ids = re.findall(r'"id": "([0-9a-f-]+)"', shown["messages"][1]["content"])
        assert [row["id"] for row in shown["context"]] == ids
    assert own("replay", "last", "-r", str(own.root)).exit_code == 0


def test_the_prompt_is_printed_as_a_prompt_is_written(own):
    text = own.ask("--only-prompt", "-m", "bypass", QUESTION).stdout
    assert text.startswith("=== system\nStep: answer_alone")
    assert QUESTION in text.partition("=== user\n")[2]


@pytest.mark.parametrize("mode", sorted(MODES.keys() - {"bypass", "sparql"}))
def test_the_context_needs_no_model(own, mode):
    ask = ("ask", "-r", str(own.root), *EMBEDDED, "--only-context", "-m", mode, QUESTION)
    shown = json.loads(own(*ask, "--json").stdout)
    assert shown["context"]
    assert shown["messages"] == []
    assert all(place["quote"] for row in shown["context"] for place in row["places"])


def test_the_context_as_text_is_a_line_for_each(own):
    ask = ("ask", "-r", str(own.root), *EMBEDDED, "--only-context", "-m", "graph", QUESTION)
    rows = [row["row"] for row in json.loads(own(*ask, "--json").stdout)["context"]]
    told = own(*ask, "-x", "--show-usage")
    assert [json.loads(line) for line in told.stdout.splitlines()] == rows
    assert "Selected" in told.stderr
    assert "EntityMatching" in told.stderr


@pytest.mark.slow
def test_it_is_on_record_without_an_answer(own):
    def run(*arguments: str, code: int | None = 0) -> str:
        return str(own(*arguments, "-r", str(own.root), code=code).output)

    ask = ("ask", *EMBEDDED, "--only-context", "-m", "ppr", QUESTION)
    run(*ask)
    assert "context-only" in run("trace", "last")
    assert "The records are the same" in run("replay", "last")
    assert "no problem" in run("audit", "shapes", "last")
    assert "intact" in run("audit", "integrity")
    assert "no answer" in run("verify", "last", code=2)
    assert "only the context" in run("why-not", "last", "Paris", code=None)


def test_what_is_not_there_is_no_context(own):
    nothing = own.ask("--only-context", "--since", "2999-01-01", QUESTION, code=3)
    assert "Nothing was found" in nothing.stderr
    assert "no stream" in own.ask("--only-context", "--jsonl", QUESTION, code=2).stderr
    both = own.ask("--only-context", "--only-prompt", QUESTION, code=2)
    assert "Choose" in both.stderr
    without = ("ask", "-r", str(own.root), *EMBEDDED, "--only-prompt", QUESTION)
    assert "language model" in own(*without, code=2).stderr


def test_the_library_has_both(own):
    with tgraph.open(own.root) as graph:
        shown = graph.gather_context(QUESTION, "graph")
        assert graph.trace(shown.session).status == "context-only"
        assert len(shown.text.splitlines()) == len(shown.rows)
        assert graph.ask(QUESTION, "graph").sentences
