"""The audits' answers, over two versions of a document and several questions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tgraph
from tgraph.engine.components import Components
from tgraph.errors import UsageError
from tgraph.explain.audit.named_audits import list_audits, read_header, run_audit
from tgraph.explain.audit.shacl import check_shapes
from tgraph.settings import load_settings
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.vocabulary import collection_iri, tg

ONE = "Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie."
TWO = "In the Sorbonne archive: Marie Curie discovered Polonium. Henri Becquerel met Marie Curie."
QUESTIONS = ("What did Marie Curie discover?", "Whom did Henri Becquerel meet?")


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    (folder / "one.txt").write_text(ONE)
    (folder / "two.txt").write_text(TWO)
    parts = Components(
        load_settings(None), folder / "cache", chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    days = iter(range(10_000))
    with tgraph.open(
        folder / "graph",
        create=True,
        parts=parts,
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=next(days)),
    ) as kg:
        kg.index([folder / "one.txt", folder / "two.txt"])
        for question in QUESTIONS:
            kg.ask(question, history=[])
        yield kg


def rows(graph, name: str, *arguments: str) -> list[dict[str, str]]:
    result = graph.audit(name, *arguments)
    return [dict(zip(result.audit.columns, row, strict=True)) for row in result.rows]


@pytest.fixture(scope="module")
def answers(graph):
    """The trace of each session, by its question."""
    traces = [graph.trace(session.explain_id) for session in graph.sessions.summaries()]
    return {trace.question: trace for trace in traces}


def cited(trace):
    return [c for sentence in trace.sentences for c in sentence.citations]


def test_the_documents_of_an_answer_are_those_it_cites(graph, answers):
    for trace in answers.values():
        found = rows(graph, "documents-of-answer", trace.explain_id)
        assert {row["document"] for row in found} == {c.document for c in cited(trace)}
        assert sum(int(row["quotes"]) for row in found) == len(cited(trace))
        assert {row["standing"] for row in found} <= {"yes"}


def test_the_answers_on_a_document_are_the_way_back(graph, answers):
    for document in graph.documents.summaries():
        found = {row["session"] for row in rows(graph, "answers-on-document", document.path)}
        assert found == {
            trace.explain_id
            for trace in answers.values()
            if document.document in {c.document for c in cited(trace)}
        }


def test_the_answers_on_an_edge_come_with_the_reasoning(graph, answers):
    for trace in answers.values():
        used = {s for sentence in trace.sentences for s in sentence.edge_selections}
        for edge in trace.selected:
            found = {row["session"]: row for row in rows(graph, "answers-on-edge", edge.edge)}
            assert (trace.explain_id in found) == (edge.iri in used)
            if edge.iri in used:
                assert found[trace.explain_id]["reasoning"] == edge.reasoning


def test_what_was_never_selected_was_at_least_retrieved(graph, answers):
    seen = {e.edge for t in answers.values() for e in (*t.selected, *t.rejected)}
    chosen = {e.edge for t in answers.values() for e in t.selected}
    found = rows(graph, "never-selected", "1000")
    assert {row["edge"] for row in found} == seen - chosen
    assert all(" — " in row["fact"] for row in found)
    assert len(rows(graph, "never-selected", "1")) == min(1, len(found))


def test_sessions_are_found_by_text_and_time(graph):
    assert len(rows(graph, "sessions")) == len(QUESTIONS)
    assert [row["question"] for row in rows(graph, "sessions", "BECQUEREL")] == [QUESTIONS[1]]
    started = rows(graph, "sessions", "becquerel")[0]["started"]
    day = started[:10]
    assert rows(graph, "sessions", "becquerel", day, day)
    assert not rows(graph, "sessions", "becquerel", "0001", "2025")
    assert not rows(graph, "sessions", "becquerel", "2027")


def test_a_fact_counts_the_documents_that_say_it(graph):
    found = rows(graph, "fact-sources", "polonium")
    assert found
    for row in found:
        text = row["fact"]
        assert "polonium" in text.casefold()
    assert max(int(row["documents"]) for row in found) >= 1
    assert rows(graph, "fact-sources", "no such name") == []


def test_models_and_prompts_are_named_with_their_hashes(graph):
    found = rows(graph, "models-and-prompts")
    prompts = {row["prompt"] for row in found if row["prompt"]}
    assert {"extract_graph", "select_edges", "synthesise_answer"} <= prompts
    assert all(len(row["hash"]) == 64 for row in found if row["prompt"])
    assert {row["kind"] for row in found} >= {"Software", "LanguageModel"}


@pytest.mark.slow
def test_every_session_has_the_shape_and_a_bent_one_is_caught(graph, answers):
    assert graph.audit("shapes").passed
    catalogue = collection_iri("explainability")
    store = graph.opened.read()
    session = graph.sessions.summaries()[0]
    kept = [
        quad
        for quad in store.match()
        if not (quad.predicate == tg("query") and quad.subject.value == session.explain_id)
    ]
    bent = OxigraphStore.memory(kept)
    violations = check_shapes(bent, catalogue, "all")
    assert {violation[0] for violation in violations} == {session.explain_id}
    result = run_audit(bent, catalogue, read_shapes(), [])
    assert result.passed is False


def read_shapes():
    return next(audit for audit in list_audits() if audit.name == "shapes")


def test_a_superseded_document_shows_in_the_audit(graph, tmp_path_factory, answers):
    path = Path(graph.documents.summaries()[0].path)
    original = path.read_text()
    path.write_text(original + " She was born in Warsaw.")
    graph.index([path])
    try:
        standing = {
            row["path"]: row["standing"]
            for trace in answers.values()
            for row in rows(graph, "documents-of-answer", trace.explain_id)
        }
        assert standing[str(path)] == "no"
        assert graph.documents.read_extractions(str(path)).document.standing
    finally:
        path.write_text(original)


@pytest.mark.parametrize("audit", list_audits(), ids=lambda audit: audit.name)
def test_every_audit_says_what_it_is(audit):
    assert audit.title
    assert audit.question.endswith(("?", ")"))
    assert audit.columns
    assert all(parameter.description for parameter in audit.parameters)
    if audit.name not in ("shapes", "integrity", "knowledge", "ontology"):
        assert read_header(audit.name) == audit


def test_wrong_arguments_are_wrong_usage(graph):
    for arguments in (
        ("nothing",),
        ("uncited", "x"),
        ("answers-on-edge",),
        ("never-selected", "x"),
    ):
        with pytest.raises(UsageError):
            graph.audit(*arguments)
