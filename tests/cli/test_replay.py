"""``tgraph replay`` and ``tgraph diff`` as a shell runs them, over a scripted server."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tgraph.cli.schemas import schemas

QUESTION = "What did Marie Curie discover?"


def asked(terminal, *arguments: str) -> str:
    out = terminal.ask("--json", *arguments).stdout
    return str(json.loads(out)["explain_id"]).rpartition(":")[2]


def valid(name: str, text: str):
    value = json.loads(text)
    jsonschema.validate(value, schemas()[name])
    return value


@pytest.mark.parametrize("mode", ["graph", "global"])
def test_a_replay_says_that_it_is_the_same_and_calls_nobody(terminal, server, mode):
    session = asked(terminal, "-m", mode, QUESTION)
    before = len(server.requests)
    shown = terminal("replay", "-r", str(terminal.root), session).stdout
    assert "The same, without any call." in shown
    found = valid("replay", terminal("replay", "-r", str(terminal.root), session, "--json").stdout)
    assert found["same"]
    assert found["recorded_hash"] == found["replayed_hash"]
    assert len(server.requests) == before


def test_a_changed_computation_ends_with_exit_code_4(terminal, monkeypatch):
    session = asked(terminal, QUESTION)
    monkeypatch.setattr("tgraph.engine.asking.joined", lambda sentences: "Something else.")
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
    assert "The sessions are the same" in same


def test_a_session_that_there_is_not_is_a_usage_error(terminal):
    assert (
        "There is no session" in terminal("replay", "-r", str(terminal.root), "zz", code=2).output
    )
