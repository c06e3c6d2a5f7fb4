"""What falls with a document, and that nothing is answered from it once it was retracted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tgraph
from tests.support import workers
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.errors import ModelError, StoreError, TgraphError, UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.record.assessments import InvalidationRecord
from tgraph.retrieve.modes.registry import MODES
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

TEXTS = {
    "alone.txt": "Marie Curie discovered Polonium in Paris. Henri Becquerel met Lord Kelvin.",
    "both.txt": "Marie Curie discovered Polonium. Pierre Curie worked with Marie Curie.",
    "other.txt": "The Fram carried Roald Amundsen to the Bay of Whales.",
}
QUESTIONS = ("Whom did Henri Becquerel meet?", "Who carried Roald Amundsen?")
CATALOGUE = v.collection_iri("explainability")


def opened(root: Path) -> tgraph.KnowledgeGraph:
    parts = Components(
        load_settings(None), root / "c", chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    return tgraph.open(root / "g", create=True, parts=parts, settings={"person": "Ada"})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("retract")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    with opened(folder) as graph:
        graph.index([folder / name for name in TEXTS])
        for question in QUESTIONS:
            graph.ask(question, history=[])
    return folder


@pytest.fixture
def folder(made, tmp_path: Path) -> Path:
    shutil.copytree(made / "g", tmp_path / "g")
    return tmp_path


def path(made: Path, name: str) -> str:
    return str(made / name)


def test_the_impact_names_the_facts_and_answers_of_a_document_alone(made):
    with opened(made) as graph:
        found = graph.impact("alone.txt")
        assert {"Henri Becquerel — met — Lord Kelvin"} <= {fact.fact for fact in found.facts}
        assert "Marie Curie — discovered — Polonium" not in {fact.fact for fact in found.facts}
        assert found.shared >= 1
        (answer,) = found.answers
        assert answer.question == QUESTIONS[0]
        assert answer.questioned == ""
        trace = graph.trace(answer.session)
        cited = [
            index
            for index, sentence in enumerate(trace.sentences)
            if found.document in {c.document for c in sentence.citations}
        ]
        assert [sentence.index for sentence in answer.sentences] == cited != []
        with pytest.raises(UsageError, match="no document"):
            graph.impact("nothing.txt")


@pytest.mark.slow
def test_nothing_is_answered_from_a_retracted_document(made, folder):
    with opened(folder) as graph:
        before = graph.impact("alone.txt")
        done = graph.retract("alone.txt", reason="It was forged.")
        assert done.impact == before
        assert done.questioned == tuple(answer.session for answer in before.answers)
        after = graph.impact("alone.txt")
        assert (after.facts, after.shared, after.standing) == ((), 0, False)
        assert all(answer.questioned for answer in after.answers)
        for mode in MODES:
            try:
                answer = graph.ask(QUESTIONS[0], mode, history=[])
            except TgraphError as error:
                pytest.fail(f"{mode}: {error}")
            shown = [c for item in answer.selection for c in item.candidate.evidence]
            assert before.document not in {c.document for c in shown}, mode
            cited = {c.document for s in answer.sentences for c in s.citations}
            assert before.document not in cited, mode
        retracted = {fact.edge for fact in before.facts}
        for session in graph.sessions.summaries()[: len(MODES)]:
            trace = graph.trace(session.explain_id)
            assert not retracted & {item.edge for item in (*trace.selected, *trace.rejected)}
        assert graph.integrity().ok
        assert check_shapes(graph.opened.read(), CATALOGUE) == ()


@pytest.mark.slow
def test_what_other_documents_say_stays_as_if_the_document_had_never_been(made, folder, tmp_path):
    with opened(folder) as graph:
        graph.retract("alone.txt", reason="It was forged.")
        left = set(graph.opened.read().match(None, None, None, v.KNOWLEDGE_GRAPH))
    (tmp_path / "fresh").mkdir()
    with opened(tmp_path / "fresh") as graph:
        graph.index([made / "both.txt", made / "other.txt"])
        assert left == set(graph.opened.read().match(None, None, None, v.KNOWLEDGE_GRAPH))


@pytest.mark.slow
def test_the_answer_stays_readable_and_is_called_into_question(folder):
    with opened(folder) as graph:
        texts = {s.explain_id: graph.trace(s.explain_id).answer for s in graph.sessions.summaries()}
        (session,) = graph.retract("alone.txt", reason="It was forged.").questioned
        found = {s.explain_id: s.questioned for s in graph.sessions.summaries()}
        assert [key for key, since in found.items() if since] == [session]
        trace = graph.trace(session)
        assert trace.questioned.endswith(": It was forged.")
        assert trace.answer == texts[session]
        assert "This answer was called into question:" in graph.export(session, "html").decode()
        rows: list[Any] = list(
            graph.sparql(  # type: ignore[arg-type]
                "SELECT ?person WHERE { ?s a tg:Standing ; prov:wasInvalidatedBy ?a . "
                "?a prov:wasAssociatedWith ?agent . ?agent a prov:Person ; rdfs:label ?person }"
            )
        )
        assert [row["person"].value for row in rows] == ["Ada"]


def shown(root: Path, session: str) -> list[str]:
    """A session as the commands show it, but for the line that calls it into question."""
    commands = [
        ["trace", session],
        ["trace", session, "--format", "svg"],
        ["audit", "influential-edges"],
        ["audit", "never-selected"],
    ]
    found = []
    for command in commands:
        result = CliRunner().invoke(cli, [*command, "-r", str(root)])
        assert result.exit_code == 0, result.output
        lines = result.stdout.splitlines()
        found.append("\n".join(line for line in lines if "called into question" not in line))
    return found


@pytest.mark.slow
def test_names_and_paths_of_an_old_session_stay_as_they_were(made, folder):
    with opened(folder) as graph:
        session = graph.sessions.summaries()[-1].explain_id
        graph.ask(QUESTIONS[0], "naive", history=[])
        before = {
            s.explain_id: graph.trace(s.explain_id).as_dict() for s in graph.sessions.summaries()
        }
        text, *others = shown(folder / "g", session)
        graph.retract("alone.txt", reason="It was forged.")
        after = {
            s.explain_id: graph.trace(s.explain_id).as_dict() for s in graph.sessions.summaries()
        }
        assert after.pop(session)["questioned"] != before.pop(session)["questioned"] == ""
        assert shown(folder / "g", session) == [text, *others]
    assert "Henri Becquerel — met — Lord Kelvin" in text
    assert "Henri Becquerel (" in text
    assert path(made, "alone.txt") in text
    for trace in (*before.values(), *after.values()):
        trace.pop("questioned")
    assert after == before


@pytest.mark.slow
def test_a_session_without_an_answer_is_not_called_into_question(made, folder):
    silent = ScriptedModel({"synthesise_answer": ""})
    parts = Components(load_settings(None), folder / "c2", chat=silent, embedder=HashingEmbedder())
    with tgraph.open(folder / "g", parts=parts) as graph:
        with pytest.raises(ModelError):
            graph.ask(QUESTIONS[0], history=[])
        (failed, *_) = graph.sessions.summaries(1)
        assert failed.status == "failed"
        done = graph.retract(path(made, "alone.txt"), reason="Wrong.")
        assert done.questioned
        assert failed.explain_id not in done.questioned
        assert check_shapes(graph.opened.read(), CATALOGUE) == ()


@pytest.mark.slow
def test_a_retracted_file_stays_out_until_it_is_reinstated(made, folder, tmp_path):
    said: list[str] = []
    copy = tmp_path / "copy.txt"
    copy.write_text(TEXTS["alone.txt"])
    with opened(folder) as graph:
        before = set(graph.opened.read().match(None, None, None, v.KNOWLEDGE_GRAPH))
        graph.retract("alone.txt", reason="It was forged.")
        report = graph.index([made / "alone.txt", copy], message=said.append)
        assert report.retracted == (path(made, "alone.txt"), str(copy))
        assert report.indexed == ()
        assert "was retracted and is skipped; `tgraph index --reinstate`" in said[0]
        report = graph.index([made / "alone.txt"], reinstate=True)
        assert (report.retracted, report.indexed) == ((), (path(made, "alone.txt"),))
        assert before == set(graph.opened.read().match(None, None, None, v.KNOWLEDGE_GRAPH))
        assert graph.index([made / "alone.txt"]).unchanged == (path(made, "alone.txt"),)
        assert [s.questioned != "" for s in graph.sessions.summaries()].count(True) == 1
        assert check_shapes(graph.opened.read(), CATALOGUE) == ()
        graph.retract("alone.txt", reason="Forged, after all.")
        assert graph.impact("alone.txt").standing is False


@pytest.mark.slow
def test_why_not_says_that_a_document_had_been_retracted_and_what_came_since(made, folder):
    fact = "Henri Becquerel — met — Lord Kelvin"
    wanted = ("Henri Becquerel", fact, "in Paris. Henri", "alone.txt")
    with opened(folder) as graph:
        before = graph.sessions.summaries()[-1].explain_id
        stood = [graph.why_not(before, each).cause for each in wanted]
        assert stood == ["used", "used", "used", "used"]
        graph.retract("alone.txt", reason="It was forged.")
        assert [graph.why_not(before, each).cause for each in wanted] == stood
        after = graph.ask(QUESTIONS[0], history=[]).session
        for each in wanted:
            found = graph.why_not(after, each)
            assert (found.cause, found.notes) == ("not-in-corpus", ()), each
            assert path(made, "alone.txt") in found.reason
            assert "had been retracted (on " in found.reason
            assert ": It was forged.) when the question was asked" in found.reason
        for nowhere in ("penicillin", "Henri Becquerel — met — Roald Amundsen"):
            reason = graph.why_not(after, nowhere).reason
            assert reason.startswith("No document in use at the time of the question states the ")
        graph.index([made / "alone.txt"], reinstate=True)
        for each in wanted:
            found = graph.why_not(after, each)
            assert "had been retracted" in found.reason
            assert f": {path(made, 'alone.txt')}." in found.notes[-1]
        graph.retract("alone.txt", reason="Forged, after all.")
        for each in wanted:
            found = graph.why_not(after, each)
            assert ": It was forged.)" in found.reason
            assert "was indexed later, and was retracted" in found.notes[-1]
            assert not any("new session" in note for note in found.notes)


def test_a_retraction_that_was_interrupted_is_finished_by_the_same_call(folder, monkeypatch):
    def full(*_: object) -> None:
        raise StoreError("The disk is full.")

    with opened(folder) as graph:
        with monkeypatch.context() as patch:
            patch.setattr(InvalidationRecord, "write", full)
            with pytest.raises(StoreError):
                graph.retract("alone.txt", reason="It was forged.")
        assert graph.impact("alone.txt").standing is False
        assert len(graph.retract("alone.txt", reason="It was forged.").questioned) == 1
        with pytest.raises(UsageError, match="retracted already"):
            graph.retract("alone.txt", reason="It was forged.")
        with pytest.raises(UsageError, match="reason of the decision is missing"):
            graph.retract("both.txt", reason=" ")


def test_the_commands(made, folder):
    root = ["-r", str(folder / "g")]

    def run(*arguments: str, code: int = 0):
        result = CliRunner().invoke(cli, [*arguments, *root])
        assert result.exit_code == code, result.output
        return result

    hashing = ["--embedding-provider", "hashing"]
    found = json.loads(run("impact", "alone.txt", "--json").stdout)
    shown = run("impact", "alone.txt").stdout
    assert found["facts"][0]["fact"] in shown
    assert QUESTIONS[0] in shown
    run("retract", "alone.txt", code=2)
    said = run("retract", "alone.txt", "--reason", "Forged.", *hashing).stderr
    assert "Answers called into question: 1." in said
    sessions = json.loads(run("sessions", "--json").stdout)
    assert [bool(s["questioned"]) for s in sessions] == [False, True]
    assert "called into question" in run("trace", found["answers"][0]["session"]).stdout
    out = run("index", path(made, "alone.txt"), *hashing).stderr
    assert "left out as retracted" in out


@pytest.mark.slow
def test_a_retraction_killed_at_any_change_of_the_disk_can_be_finished(tmp_path):
    (tmp_path / "a.txt").write_text("Marie Curie discovered polonium.\n")
    (tmp_path / "b.txt").write_text("Pierre Curie worked in Paris.\n")
    workers.start(workers.index, tmp_path / "g", [tmp_path / "a.txt", tmp_path / "b.txt"]).end()
    workers.start(workers.ask, tmp_path / "g").end()
    left = {"pierre-curie worked-in paris"}
    killed = 0
    for number in range(3, 10_000, 30):
        root = workers.copy_graph(tmp_path / "g", tmp_path / str(number))
        worker = workers.start(workers.killed_at, number, workers.retract, root, "a.txt")
        worker.end()
        if ("whole",) in worker.told:
            break
        killed += 1
        assert workers.edges(root) in (left, {*left, "marie-curie discovered polonium"})
        with workers.open_graph(root, create=False) as graph:
            if not all(answer.questioned for answer in graph.impact("a.txt").answers):
                graph.retract("a.txt", reason="It was forged.")
            found = graph.impact("a.txt")
            assert (found.standing, found.facts) == (False, ())
            assert [bool(answer.questioned) for answer in found.answers] == [True]
            assert graph.integrity().ok
        assert workers.edges(root) == left
    assert killed > 2
