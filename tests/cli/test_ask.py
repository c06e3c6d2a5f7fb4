"""``tgraph ask``: what goes where, what it says when there is nothing to say, and its JSON."""

from __future__ import annotations

import json
import re

import click
import jsonschema
import pytest
from click.shell_completion import ShellComplete

from tgraph.cli.ask import ask
from tgraph.cli.options import FOR_A_MODEL, modes_of_flags
from tgraph.cli.terminal import escape_controls
from tgraph.engine.schemas import build_schemas
from tgraph.extensions.lab.evaluate_command import evaluate
from tgraph.retrieve.modes.registry import MODES
from tgraph.testing import ScriptedServer

from .conftest import CURIE, QUESTION


def test_the_answer_is_on_stdout_and_its_proof_on_stderr(terminal):
    result = terminal.ask(QUESTION)
    assert "Polonium" in result.stdout
    assert result.stdout.count("\n") == 1
    assert "[1] Marie Curie, characters" in result.stderr
    assert result.stderr.rstrip().splitlines()[-1].startswith("Session: urn:trustgraph:session:")
    assert "\x1b" not in result.output


def test_json_has_everything_and_every_citation_resolves(terminal):
    result = terminal.ask("--json", "-q", QUESTION)
    answer = json.loads(result.stdout)
    jsonschema.validate(answer, build_schemas()["ask"])
    citations = [c for sentence in answer["sentences"] for c in sentence["citations"]]
    assert citations
    for citation in citations:
        assert CURIE[citation["start"] : citation["end"]] == citation["quote"]
        assert citation["page"] is None
        assert "edge" in citation
    assert {s["document"] for s in answer["sources"]} == {c["document"] for c in citations}
    assert {c["edge_selection"] for c in citations} <= {
        s["edge_selection"] for s in answer["selection"]
    }
    assert answer["explain_id"] in result.stderr


@pytest.mark.slow
def test_jsonl_is_the_stream_with_the_answer_in_its_last_line(terminal):
    events = [json.loads(line) for line in terminal.ask("--jsonl", QUESTION).stdout.splitlines()]
    for event in events:
        jsonschema.validate(event, build_schemas()["ask-event"])
    kinds = [e["message_type"] for e in events]
    assert kinds == ["explain"] * 4 + ["chunk"] * (len(kinds) - 4)
    assert [e["end_of_session"] for e in events] == [False] * (len(events) - 1) + [True]
    text = "".join(e["response"] for e in events)
    assert events[-1]["answer"]["answer"] == text
    sentences = [e["sentence"] for e in events if "sentence" in e]
    assert sentences == events[-1]["answer"]["sentences"]
    assert sentences[0]["citations"][0]["page"] is None


def test_explainable_shows_each_stage_with_reasons_and_quotes(terminal):
    shown = terminal.ask("-x", QUESTION).stderr
    stages = ["[session]", "[retrieval]", "[selection]", "[answer]"]
    places = [shown.index(stage) for stage in stages]
    assert places == sorted(places)
    begun, written = shown.split("[answer]")[1:]
    assert "Sentences:" not in begun
    assert "Sentences: 6, 6 with citations" in written
    for expected in ("Reasoning:", "“", "characters", "Retrieved:"):
        assert expected in shown
    assert re.search(r"^ +[A-Z][a-z ]+: \d\.\d{4}", shown, re.MULTILINE)


def test_no_streaming_prints_the_same(terminal):
    assert terminal.ask("--no-streaming", QUESTION).stdout == terminal.ask(QUESTION).stdout


def test_no_evidence_is_an_answer_with_its_own_exit_code(terminal):
    result = terminal.ask("--json", "zxcvb qwrtp?", code=3)
    answer = json.loads(result.stdout)
    assert answer["no_evidence"]
    assert answer["sentences"] == []


def test_usage_is_told_when_asked_for(terminal):
    assert "tokens in" in terminal.ask("--show-usage", QUESTION).stderr
    assert "tokens in" not in terminal.ask(QUESTION).stderr


def test_usage_is_told_by_step_and_prompt(terminal):
    answer = json.loads(terminal.ask("--json", "-m", "graph", QUESTION).stdout)
    steps = {(each["step"], each["purpose"]): each for each in answer["usage_by_step"]}
    assert ("EdgeSelecting", "select_edges") in steps
    assert ("Synthesising", "synthesise_answer") in steps
    assert ("ConceptExtraction", "extract_concepts") in steps
    assert all(each["asked"] >= each["calls"] for each in steps.values())
    for key in ("calls", "input_tokens", "output_tokens"):
        assert sum(each[key] for each in steps.values()) == answer["usage"][key]
    told = terminal.ask("--show-usage", "-m", "graph", QUESTION).stderr
    assert re.search(r"Synthesising +synthesise_answer +1 ", told)


def test_a_sentence_that_nothing_proves_is_marked(fresh, documents):
    said = '{"sentence": "Nobody knows.", "citations": ["ffffffff"]}\n'
    with ScriptedServer({"synthesise_answer": said}) as server:
        terminal = fresh(server.base_url)
        terminal("index", str(documents), "-r", str(terminal.root), *terminal.model)
        for option in ("--show-usage", "--no-streaming"):
            result = terminal.ask(option, QUESTION, code=None)
            assert result.stdout == "Nobody knows. [no citation]\n"
        audit = terminal("audit", "uncited", "--format", "json", "-r", str(terminal.root), code=4)
        assert {row["sentence"] for row in json.loads(audit.stdout)} == {"Nobody knows."}


@pytest.mark.parametrize(
    "text",
    [
        '[{"question": "Who?", "answer": "She."}]',
        '{"question": "Who?", "answer": "She."}\n\n',
        '{"question": "Who?\u2028\x85And why?", "answer": "She."}\r\n',
    ],
)
def test_history_is_an_array_or_lines(terminal, server, tmp_path, text):
    history = tmp_path / "history"
    history.write_text(text, "utf-8")
    terminal.ask("--history", str(history), QUESTION)
    assert any("She." in json.dumps(request.body) for request in server.requests)


@pytest.mark.parametrize(
    "text", ["[1]", "{", '[{"question": 1, "answer": "x"}]', '{"question": "x"}']
)
def test_what_is_no_history_is_refused(terminal, tmp_path, text):
    history = tmp_path / "history"
    history.write_text(text)
    result = terminal.ask("--history", str(history), QUESTION, code=2)
    assert "is not a history" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["-"], ["-q", "-"]])
def test_a_question_is_piped_in(terminal, arguments):
    call = ["ask", "-r", str(terminal.root), *terminal.model, "--json", *arguments]
    answer = json.loads(terminal(*call, input=f"\ufeff{QUESTION}\n").stdout)
    assert answer["question"] == QUESTION
    assert answer["sentences"]


def test_trustgraph_connection_flags_are_taken_with_one_note(terminal):
    result = terminal.ask("-u", "http://nowhere", "-t", "x", "-w", "y", "-f", "z", QUESTION)
    assert result.stderr.count("no effect") == 1
    assert "Polonium" in result.stdout


def test_the_limits_reach_the_record(terminal):
    terminal.ask(
        "--edge-limit", "1", "-e", "3", "-p", "1", "-s", "7", "--triple-limit", "2", QUESTION
    )
    trace = json.loads(terminal("trace", "-r", str(terminal.root), "--format", "json").stdout)
    assert trace["parameters"]["edge-limit"] == "1"
    assert len(trace["selected"]) == 1
    assert len(trace["selected"]) + len(trace["rejected"]) <= 7


@pytest.mark.parametrize(
    "arguments", [[], ["a", "-q", "b"], ["--json", "--jsonl", "a"], ["-e", "0", "a"]]
)
def test_wrong_calls_are_told_from_failures(terminal, arguments):
    terminal.ask(*arguments, code=2)


def test_an_endpoint_that_is_not_there_ends_with_5_and_a_record(terminal):
    arguments = ["-r", str(terminal.root), "--embedding-provider", "hashing"]
    result = terminal("ask", *arguments, "--base-url", "http://127.0.0.1:9/v1", QUESTION, code=5)
    assert "Traceback" not in result.output
    session = next(line for line in result.stderr.splitlines() if line.startswith("Session: "))
    sessions = json.loads(terminal("sessions", "--json", "-r", str(terminal.root)).stdout)
    assert sessions[0]["status"] == "failed"
    assert sessions[0]["explain_id"] == session.removeprefix("Session: ")


@pytest.mark.slow
def test_text_of_models_can_not_command_the_terminal(fresh, documents):
    evil = '{"sentence": "a\\u001b[31mb\\u202ec", "citations": []}\n'
    with ScriptedServer({"synthesise_answer": evil}) as server:
        terminal = fresh(server.base_url)
        terminal("index", str(documents), "-r", str(terminal.root), *terminal.model)
        for arguments in ((), ("--json",), ("--jsonl",)):
            shown = terminal.ask(*arguments, QUESTION, code=None).output
            assert "\x1b" not in shown
            assert "\u202e" not in shown
        shown = terminal("trace", "-r", str(terminal.root)).output
        assert r"a\x1b[31mb\u202ec" in shown


def test_safe_text_keeps_what_people_write():
    assert escape_controls("Ünïcode\tעברית\n中文") == "Ünïcode\tעברית\n中文"
    assert escape_controls("\x9b2J\x07\ud800") == r"\x9b2J\x07\ud800"


def test_filters_narrow_the_answer_and_slips_are_usage_errors(terminal):
    assert "Polonium" in terminal.ask(QUESTION, "--document", "curie*").stdout
    wrong = terminal.ask(QUESTION, "--document", "curei.md", code=2)
    assert "Did you mean" in wrong.stderr
    assert "no date" in terminal.ask(QUESTION, "--since", "yesterday", code=2).stderr
    assert "No entity is of the type" in terminal.ask(QUESTION, "--type", "zzz", code=2).stderr
    for name in ("--document", "--since", "--until", "--type"):
        assert "Error: " in terminal.ask(QUESTION, name, "", code=2).stderr
    nothing = terminal.ask(QUESTION, "--until", "1066", code=3)
    assert "No document or fact passes the filters" in nothing.stderr


def notes(result) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("Note: ")]


def unaided(terminal, *flags: str):
    """The question asked without a model."""
    asked = ["ask", "-r", str(terminal.root), "--embedding-provider", "hashing"]
    return terminal(*asked, *flags, QUESTION, code=None)


@pytest.mark.parametrize(
    ("flags", "note"),
    [
        (
            ["-m", "graph", "--exclude-entity", "Nope"],
            "--exclude-entity has no effect in the mode graph.",
        ),
        (
            ["-m", "graph", "--dynamic-community-selection"],
            "--dynamic-community-selection has no effect",
        ),
        (
            ["-m", "graph", "--low-keyword", "x", "--high-keyword", "y"],
            "--low-keyword, --high-keyword have no",
        ),
        (["-m", "basic", "--community-level", "0"], "no effect in the mode basic."),
        (["-m", "basic", "-e", "3"], "--entity-limit has no effect in the mode basic."),
        (["-m", "lightrag-local", "--high-keyword", "y"], "--high-keyword has no effect"),
        (["-m", "bypass", "--document", "curie.md"], "--document has no effect in the mode bypass"),
        (["-m", "bypass", "-g", "curie.md"], "--graph has no effect in the mode bypass"),
        (["-m", "basic", "--graph-seeds", "x"], "--graph-seeds has no effect in the mode basic"),
        (["-m", "basic", "--edge-score-limit", "3"], "--edge-score-limit has no effect in the"),
        (["-m", "graph", "--max-reranker-input", "3"], "--max-reranker-input has no effect in the"),
        (["-m", "auto", "--max-reranker-input", "3"], "no effect without a reranker"),
    ],
)
def test_a_flag_that_does_nothing_in_the_mode_is_said_to(terminal, flags, note):
    (told,) = notes(unaided(terminal, *flags))
    assert note in told


@pytest.mark.parametrize(
    "flags",
    [
        ["--edge-limit", "3", "--document", "curie.md", "--response-type", "a list"],
        ["-m", "local", "--include-entity", "Marie Curie", "--community-level", "1", "-s", "9"],
        ["-m", "lightrag-local", "--low-keyword", "Polonium", "--response-type", "a list"],
        ["-m", "auto", "--community-level", "1", "--low-keyword", "Polonium"],
    ],
)
def test_a_flag_that_does_something_is_not_remarked_on(terminal, flags):
    assert not notes(terminal.ask(QUESTION, *flags, code=None))


def recorded(terminal, *flags: str) -> dict[str, str]:
    """The parameters of the session that is asked with the flags."""
    terminal.ask("-m", "graph", *flags, QUESTION, code=None)
    shown = terminal("trace", "-r", str(terminal.root), "--format", "json").stdout
    return dict(json.loads(shown)["parameters"])


def test_trustgraph_s_flags_are_taken_as_it_writes_them_and_recorded(terminal):
    found = recorded(
        terminal,
        *("--grounding-seeds", '["Polonium", "Paris"]', "--languages", '["en", "en-GB"]'),
        *("--traversal-instructions", '[{"types": [], "relationships": [], "graphs": []}]'),
        *("-g", "curie.md", "--edge-score-limit", "30"),
    )
    assert found["grounding-seeds"] == '["Polonium", "Paris"]'
    assert json.loads(json.loads(found["traversal-instructions"])[0])["types"] == []
    assert found["filter-language"] == '["en", "en-GB"]'
    assert found["filter-document"] == '["curie.md"]'
    assert found["edge-score-limit"] == "30"


def test_trustgraph_s_size_of_a_batch_is_taken_with_a_note(terminal):
    result = terminal("sparql", "-r", str(terminal.root), "-b", "20", "ASK { ?s ?p ?o }")
    assert "--batch-size has no effect" in result.stderr


def test_the_default_graph_is_all_that_is_known(terminal):
    assert not [name for name in recorded(terminal, "-g", "") if name.startswith("filter-")]
    refused = terminal.ask("-g", "urn:graph:source", QUESTION, code=2)
    assert "No document that stands is called 'urn:graph:source'" in refused.stderr


def test_flags_for_a_model_do_nothing_without_one(terminal):
    given = ["-m", "auto", "--response-type", "a list", "--general-knowledge"]
    assert notes(unaided(terminal, *given)) == [
        "Note: --response-type, --general-knowledge have no effect without a language model."
    ]


def test_every_flag_that_is_for_some_modes_is_one_of_ask_s():
    named = {parameter.name for parameter in ask.get_params(click.Context(ask))}
    assert modes_of_flags().keys() | FOR_A_MODEL <= named
    assert all(set(modes) <= set(MODES) for modes in modes_of_flags().values())


def test_an_entity_is_not_included_and_excluded_at_once(terminal):
    flags = ["--include-entity", "Marie Curie", "--exclude-entity", "marie  curie"]
    result = terminal.ask(QUESTION, "-m", "local", *flags, code=2)
    assert "'Marie Curie' is both in --include-entity and in --exclude-entity" in result.stderr


@pytest.mark.parametrize("command", [ask, evaluate])
def test_modes_are_completed(command):
    completed = ShellComplete(command, {}, "tgraph", "_TGRAPH_COMPLETE")
    found = [item.value for item in completed.get_completions(["-m"], "lightrag-")]
    assert found == [name for name in MODES if name.startswith("lightrag-")]
    assert {"auto", *MODES} == {i.value for i in completed.get_completions(["-m"], "")}


def at_a_terminal(*arguments: str) -> str:
    """What the command writes to a terminal that is 60 columns wide."""
    import fcntl
    import os
    import pty
    import struct
    import subprocess
    import sys
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 60, 0, 0))
    call = [sys.executable, "-c", "from tgraph.cli.main import main; main()", *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI")}
    running = subprocess.Popen(
        call, stdout=follower, stderr=follower, env={**kept, "TERM": "xterm", "COLUMNS": "60"}
    )
    os.close(follower)
    found = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        found += piece
    os.close(leader)
    assert running.wait() == 0, found
    return found.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_at_a_terminal_quotes_stand_under_their_document(terminal):
    arguments = ["ask", "-r", str(terminal.root), "--embedding-provider", "hashing"]
    arguments += ["-m", "graph", "Who shared the Nobel Prize with Marie Curie?"]
    shown = re.sub(r"\x1b\[[\d;]*m", "", at_a_terminal(*arguments))
    lines = shown.split("\n")
    assert lines[0].startswith("Marie Curie")
    quote = next(n for n, line in enumerate(lines) if line.startswith(" [1] “"))
    assert "”" in "".join(lines[quote : quote + 3])
    assert any(line.startswith("     characters ") for line in lines)
    assert "Evidence:" not in shown
    assert any(line.startswith("Session: ") for line in lines)
    assert max(len(line) for line in lines[: quote + 3]) <= 60
    plain = terminal(*arguments).stdout
    assert "“" not in plain
    assert " ".join(plain.split()) in " ".join(CURIE.split())


@pytest.mark.slow
def test_at_a_terminal_the_steps_are_told_in_whole_words(terminal):
    arguments = ["ask", "-r", str(terminal.root), "--embedding-provider", "hashing"]
    arguments += ["-m", "graph", "-x", "Who shared the Nobel Prize with Marie Curie?"]
    told = at_a_terminal(*arguments).partition("[answer]")[0].split("\n")
    unbroken = "urn:", "/documents"
    assert not [line for line in told if len(line) > 60 and not any(u in line for u in unbroken)]
    first = next(n for n, line in enumerate(told) if "Reasoning:" in line)
    indent = told[first].index("Reasoning:")
    assert told[first + 1].startswith(" " * (indent + 2))
    piped = terminal(*arguments).stderr.split()
    assert {word for line in told[first : first + 2] for word in line.split()} <= set(piped)
