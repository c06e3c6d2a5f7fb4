"""``tgraph replay`` and ``tgraph diff`` as a shell runs them, over a scripted server."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from tgraph.cli.replay import print_comparison
from tgraph.engine.schemas import build_schemas
from tgraph.explain.trace.comparison import Comparison, OneSided, OneSidedPlace

QUESTION = "What did Marie Curie discover?"


def asked(terminal, *arguments: str) -> str:
    out = terminal.ask("--json", *arguments).stdout
    return str(json.loads(out)["explain_id"]).rpartition(":")[2]


def valid(name: str, text: str):
    value = json.loads(text)
    jsonschema.validate(value, build_schemas()[name])
    return value


@pytest.mark.parametrize("mode", ["graph", "global"])
def test_a_replay_says_that_it_is_the_same_and_calls_nobody(terminal, server, mode):
    session = asked(terminal, "-m", mode, QUESTION)
    before = len(server.requests)
    shown = terminal("replay", "-r", str(terminal.root), session).stdout
    assert "The records are the same; no model was called." in shown
    found = valid("replay", terminal("replay", "-r", str(terminal.root), session, "--json").stdout)
    assert found["same"]
    assert found["recorded_hash"] == found["replayed_hash"]
    assert len(server.requests) == before


def test_a_changed_computation_ends_with_exit_code_4(terminal, monkeypatch):
    session = asked(terminal, QUESTION)
    monkeypatch.setattr(
        "tgraph.engine.ask.question_run.join_sentences", lambda sentences: "Something else."
    )
    result = terminal("replay", "-r", str(terminal.root), session, code=4)
    assert "Different." in result.stdout
    assert "First difference: contentHash of urn:trustgraph:answer:" in result.stdout


def test_two_sessions_are_compared(terminal):
    one, other = asked(terminal, QUESTION), asked(terminal, "-m", "basic", "Who built the Fram?")
    shown = terminal("diff", "-r", str(terminal.root), one, other).stdout
    assert f"question: {QUESTION} -> Who built the Fram?" in shown
    for title in ("Asked", "Candidates", "Selected", "Answer", "Citations"):
        assert f"{title}\n" in shown
    found = valid("diff", terminal("diff", "-r", str(terminal.root), one, other, "--json").stdout)
    assert not found["same"]
    terminal("diff", "-r", str(terminal.root), one, other, "--exit-code", code=4)
    same = terminal("diff", "-r", str(terminal.root), one, one, "--exit-code").stdout
    assert "The sessions do not differ" in same


def test_the_last_session_alone_has_nothing_to_be_compared_with(terminal):
    one, other = asked(terminal, QUESTION), asked(terminal, "-m", "basic", QUESTION)
    for last in (other, "last"):
        result = terminal("diff", "-r", str(terminal.root), last, code=2)
        assert "no other session to compare" in result.stderr
        assert not result.stdout
    assert "mode: graph -> basic" in terminal("diff", "-r", str(terminal.root), one).stdout


def test_what_is_long_is_cut_where_sessions_are_compared(capsys):
    long = "word " * 2000
    place = OneSidedPlace("d", "curie.md", None, 0, len(long), long)
    item = OneSided("i", long, 1, 0.5, long)
    nothing = Comparison("a", "b", *[()] * 9)
    found = replace(nothing, citations_added=(place,), selected_added=(item,))
    print_comparison(found, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("  + curie.md, characters 0–10000: word") for line in lines)
    assert max(map(len, lines)) < 700
    print_comparison(found, as_json=True)
    assert json.loads(capsys.readouterr().out)["citations_added"][0]["quote"] == long


def test_a_session_that_there_is_not_is_a_usage_error(terminal):
    assert (
        "There is no session" in terminal("replay", "-r", str(terminal.root), "zz", code=2).output
    )
