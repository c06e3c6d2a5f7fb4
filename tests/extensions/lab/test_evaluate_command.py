"""``tgraph evaluate``: its forms of output, its exit codes, with a graph and without."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tgraph.engine.schemas import build_schemas
from tgraph.testing import Fault, ScriptedServer

TOML = """
[[question]]
query = "What did Marie Curie discover?"
gt_answer = "Marie Curie discovered Polonium."
gold_documents = ["curie.md"]
"""
GIVEN = {
    "results": [
        {
            "query_id": "q1",
            "query": "Who built the Fram?",
            "gt_answer": "Colin Archer built the Fram.",
            "response": "Colin Archer built the Fram.",
            "retrieved_context": [{"doc_id": "000", "text": "Colin Archer built the Fram."}],
        }
    ]
}


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.toml"
    path.write_text(TOML)
    return path


@pytest.fixture
def given(tmp_path):
    path = tmp_path / "given.json"
    path.write_text(json.dumps(GIVEN))
    return path


def test_the_report_is_a_table_and_the_rest_goes_to_stderr(terminal, questions):
    done = terminal("evaluate", str(questions), "-r", str(terminal.root), *terminal.model)
    for name in ("precision", "faithfulness", "recall@5", "What did Marie Curie discover?"):
        assert name in done.stdout
    assert "Answered in the mode graph." in done.stderr
    assert "Evaluation: urn:trustgraph:evaluation:" in done.stderr
    assert "approximations" not in done.stderr


def test_json_fits_its_schema(terminal, questions):
    done = terminal(
        "evaluate",
        str(questions),
        "-r",
        str(terminal.root),
        *terminal.model,
        "--json",
        "-m",
        "basic",
    )
    found = json.loads(done.stdout)
    jsonschema.validate(found, build_schemas()["evaluation"])
    assert (found["mode"], found["judged"], found["failed"]) == ("basic", 1, 0)
    assert found["questions"][0]["explain_id"].startswith("urn:trustgraph:session:")
    assert [judge["kind"] for judge in found["judges"]] == ["model", "model"]


def test_files_are_ragcheckers_json_or_markdown(terminal, given, tmp_path):
    out, report = tmp_path / "out.json", tmp_path / "report.md"
    root = ("-r", str(terminal.root))
    terminal("evaluate", str(given), *root, *terminal.model, "-o", str(out))
    (row,) = json.loads(out.read_text())["results"]
    assert {**row, **GIVEN["results"][0]} == row
    assert row["answer2response"] == ["Entailment"]
    assert json.loads(out.read_text())["metrics"]["overall"]["f1"] == 100.0
    printed = terminal("evaluate", str(out), *root, "--markdown", "-o", str(report)).stdout
    assert printed.partition("\n- Evaluation")[0] == report.read_text().partition("\n- Eval")[0]
    assert "| f1 | 100.0 |" in printed


def test_a_subset_of_the_metrics_is_named_with_commas(terminal, given):
    args = ("evaluate", str(given), "-r", str(terminal.root), *terminal.model)
    found = json.loads(terminal(*args, "--metrics", "recall,retriever", "--json").stdout)
    assert {name for group in found["metrics"].values() for name in group} == {
        "recall", "claim_recall", "context_precision",
    }  # fmt: skip
    assert "no metric" in terminal(*args, "--metrics", "bleu", code=2).stderr


def test_a_file_with_answers_needs_no_graph(terminal, given, questions, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = terminal("evaluate", str(given), "--embedding-provider", "hashing")
    assert "not recorded" in done.stderr
    assert "approximations" in done.stderr
    failed = terminal("evaluate", str(questions), code=2)
    assert "there is no graph to ask" in failed.stderr
    assert terminal("evaluate", str(given), "-r", str(tmp_path / "none"), code=1).stderr


def test_what_can_not_be_judged_is_named_with_exit_code_1(terminal, tmp_path):
    bad = {**GIVEN["results"][0], "query_id": "q2", "response": "Nonsense."}
    path = tmp_path / "two.json"
    path.write_text(json.dumps([GIVEN["results"][0], bad]))

    def reply(request) -> str:
        if "Nonsense" in str(request.body):
            return "no JSON at all"
        return '{"statements": [{"subject": "Archer", "predicate": "built", "object": "Fram"}]}'

    with ScriptedServer({"extract_statements": reply}) as server:
        model = ["--base-url", server.base_url, "--embedding-provider", "hashing"]
        done = terminal("evaluate", str(path), "-r", str(terminal.root), *model, code=1)
    assert "Judged: 1 question of 2." in done.stderr
    assert "Failed: question q2: " in done.stderr


def test_an_endpoint_that_is_not_there_is_exit_code_5(terminal, given):
    with ScriptedServer(faults=[Fault("unauthorised", "extract_statements")]) as server:
        model = ["--base-url", server.base_url, "--embedding-provider", "hashing"]
        terminal("evaluate", str(given), "-r", str(terminal.root), *model, code=5)


def test_wrong_usage_is_exit_code_2(terminal, given, tmp_path):
    assert terminal("evaluate", str(given), "--json", "--markdown", code=2)
    assert terminal("evaluate", str(tmp_path / "none.json"), code=2)
    (tmp_path / "bad.json").write_text("{}")
    bad = terminal("evaluate", str(tmp_path / "bad.json"), "-r", str(terminal.root), code=2)
    assert "no list of questions" in bad.stderr
