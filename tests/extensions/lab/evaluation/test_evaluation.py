"""An evaluation through the library: answered, judged, put on record, whatever goes wrong."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.errors import EndpointError, ModelError, StoreError, UsageError
from tgraph.extensions.lab import evaluate
from tgraph.extensions.lab.evaluation.files import read_items
from tgraph.extensions.lab.evaluation.metrics import (
    METRICS,
    RETRIEVAL,
    ContextText,
    EvaluationItem,
    chosen_metrics,
)
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel, ticking_clock

CURIE = "Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie."
SHIPS = "Colin Archer built the Fram. Roald Amundsen sailed the Fram."
ASKED = EvaluationItem(
    "curie",
    "What did Marie Curie discover?",
    "Marie Curie discovered Polonium.",
    gold_documents=("curie.txt",),
    gold_passages=(),
)
GIVEN = EvaluationItem(
    "fram",
    "Who built the Fram?",
    "Colin Archer built the Fram.",
    "Colin Archer built the Fram. Nansen paid.",
    (ContextText("d1", SHIPS), ContextText("d2", "Nothing.")),
)


@contextmanager
def opened(
    root: Path, replies: Mapping[str, Any] | None = None, *, model: bool = True
) -> Iterator[tgraph.KnowledgeGraph]:
    """The graph, answered and judged by a scripted model, or without one."""
    new = not (root / "g").exists()
    if new and SAVED:
        shutil.copytree(SAVED[0], root / "g")
    names, clock = count(1000 if SAVED else 0), ticking_clock()
    chat = ScriptedModel(replies, clock=clock) if model else None
    settings = load_settings(None, {"chat.provider": "embedded", "chat.concurrency": 2})
    parts = Components(settings, root / "cache", chat=chat, embedder=HashingEmbedder())
    with tgraph.open(
        root / "g",
        create=True,
        parts=parts,
        clock=clock,
        uuid=lambda: f"00000000-0000-4000-8000-{next(names):012d}",
    ) as kg:
        yield kg


SAVED: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def _indexed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A graph of two documents, of which each test opens a copy."""
    root = tmp_path_factory.mktemp("indexed")
    for name, text in (("curie.txt", CURIE), ("ships.txt", SHIPS)):
        (root / name).write_text(text)
    with opened(root) as kg:
        kg.index([root / "curie.txt", root / "ships.txt"])
    SAVED.append(root / "g")
    yield
    SAVED.clear()


def said(kg: tgraph.KnowledgeGraph, subject: str, name: str) -> list[str]:
    found = kg.opened.read().match(NamedNode(subject), None, None, None)
    return [
        quad.object.value
        for quad in found
        if quad.predicate.value.rpartition("#")[2].rpartition("/")[2] == name
        and isinstance(quad.object, Literal | NamedNode)
    ]


# --- answered and judged ---


@pytest.mark.slow
@pytest.mark.parametrize("model", [True, False])
def test_questions_are_answered_judged_and_put_on_record(tmp_path, model):
    with opened(tmp_path, model=model) as kg:
        found = evaluate(kg, [ASKED, GIVEN])
        first, second = found.assessments
        assert first.item.response
        assert first.item.context
        assert set(first.metrics) == set(METRICS)
        assert first.retrieval["recall@2"] == 1.0
        assert set(first.retrieval) == set(RETRIEVAL)
        assert second.item.response == GIVEN.response
        assert not second.retrieval
        assert found.approximate is not model
        assert {agent.kind for agent in found.judges} == {"model" if model else "method"}
        (session,) = kg.sessions.summaries()
        assert first.item.session == session.explain_id
        assert session.question == ASKED.query
        assert said(kg, found.evaluation, "status") == ["completed"]
        judged = f"{v.URN}prov:assessment:{found.evaluation.rpartition(':')[2]}"
        answer = v.answer_iri(session.explain_id.rpartition(":")[2])
        assert answer in said(kg, f"{judged}:0", "wasDerivedFrom")
        assert len(said(kg, f"{judged}:1", "wasDerivedFrom")) == 1
        assert len(said(kg, f"{judged}:0", "metric")) == len(METRICS) + len(RETRIEVAL)
        if model:
            assert kg.audit("shapes").passed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "steps"),
    [
        (["recall"], {"extract_statements": 1, "check_entailment": 1}),
        (["faithfulness"], {"extract_statements": 1, "check_entailment": 2}),
        (["retriever"], {"extract_statements": 1, "check_entailment": 2}),
        (["all"], {"extract_statements": 2, "check_entailment": 6}),
    ],
)
def test_only_what_the_metrics_need_is_asked(tmp_path, wanted, steps):
    with opened(tmp_path) as kg:
        found = evaluate(kg, [GIVEN], metrics=wanted)
        (assessment,) = found.assessments
        whole = evaluate(kg, [GIVEN]).assessments[0].metrics
        names = chosen_metrics(wanted)
        assert assessment.metrics == {name: whole[name] for name in names}
        assert found.usage.calls == sum(steps.values())
        told = said(kg, found.evaluation, "parameter")
        assert bool(told) is (wanted != ["all"])
        if wanted == ["faithfulness"]:  # needs no right answer
            bare = replace(GIVEN, gt_answer="")
            assert evaluate(kg, [bare], metrics=wanted).judged_count == 1
        assert kg.audit("shapes").passed


def test_the_figures_are_those_of_the_labels(tmp_path):
    with opened(tmp_path) as kg:
        (assessment,) = evaluate(kg, [GIVEN]).assessments
    assert assessment.item.response_claims == (
        ("Colin", "Archer", "built the Fram"),
        ("Nansen", "paid", ""),
    )
    assert assessment.item.retrieved2response == (("Entailment", "Neutral"), ("Neutral",) * 2)
    figures = assessment.metrics
    assert (figures["precision"], figures["recall"], figures["hallucination"]) == (0.5, 1.0, 0.5)
    assert figures["context_precision"] == 0.5


def test_what_the_record_keeps_is_ragcheckers_file(tmp_path):
    with opened(tmp_path) as kg:
        found = evaluate(kg, [ASKED, GIVEN])
        result = f"{v.URN}prov:result:{found.evaluation.rpartition(':')[2]}"
        (key,) = said(kg, result, "contentHash")
        kept = json.loads(kg.opened.librarian.get_text(key))
    assert kept == json.loads(json.dumps(found.to_ragchecker()))
    (tmp_path / "out.json").write_text(json.dumps(kept))
    assert read_items(tmp_path / "out.json") == [a.item for a in found.assessments]


def test_labels_that_are_there_are_not_asked_for_again(tmp_path):
    with opened(tmp_path) as kg:
        first = evaluate(kg, [ASKED, GIVEN])
        path = tmp_path / "out.json"
        path.write_text(json.dumps(first.to_ragchecker()))
        again = evaluate(kg, path)
        assert again.metrics == first.metrics
        assert again.retrieval == first.retrieval
        assert (again.usage.calls, again.judges, again.mode) == (0, (), None)
        assert len(kg.sessions.summaries()) == 1
        judged = f"{v.URN}prov:assessment:{again.evaluation.rpartition(':')[2]}:0"
        answer = v.answer_iri(first.assessments[0].item.session.rpartition(":")[2])
        assert answer in said(kg, judged, "wasDerivedFrom")


def test_a_response_that_was_changed_is_not_the_answer_on_record(tmp_path):
    with opened(tmp_path) as kg:
        first = evaluate(kg, [ASKED])
        row = first.to_ragchecker()["results"][0]
        for session in (row["explain_id"], "urn:trustgraph:session:none", "no iri >"):
            other = {"query": "Who?", "gt_answer": "A.", "response": "B.", "explain_id": session}
            path = tmp_path / "changed.json"
            path.write_text(json.dumps([other]))
            again = evaluate(kg, path)
            judged = f"{v.URN}prov:assessment:{again.evaluation.rpartition(':')[2]}:0"
            assert len(said(kg, judged, "wasDerivedFrom")) == 1


def test_calls_are_recorded_and_a_second_run_gets_them_from_the_cache(tmp_path):
    with opened(tmp_path) as kg:
        first = evaluate(kg, [GIVEN])
        assert first.usage.calls == len(said(kg, first.evaluation, "call")) == 8
        second = evaluate(kg, [GIVEN])
        assert second.usage.calls == 0
        assert len(said(kg, second.evaluation, "call")) == 8
        assert second.metrics == first.metrics


def test_without_evidence_nothing_is_stated(tmp_path):
    lost = EvaluationItem("0", "Zxcvb qwrtp?", "Nobody knows.")
    with opened(tmp_path, model=False) as kg:
        (assessment,) = evaluate(kg, [lost]).assessments
    assert assessment.item.response_claims == ()
    assert assessment.metrics["precision"] == 0.0


def test_gold_alone_is_enough_to_judge_the_retrieval(tmp_path):
    only = EvaluationItem("0", "Who built the Fram?", gold_passages=(SHIPS,))
    with opened(tmp_path) as kg:
        found = evaluate(kg, [only], mode="basic")
        assert found.retrieval["mrr"] > 0
        assert found.metrics == {"overall": {}, "retriever": {}, "generator": {}}
        assert (found.judged_count, found.judges, found.mode) == (0, (), "basic")


def test_audits_find_what_was_judged(tmp_path):
    with opened(tmp_path) as kg:
        found = evaluate(kg, [ASKED, GIVEN])
        result = kg.audit("evaluations", "curie")
        rows = [dict(zip(result.audit.columns, row, strict=True)) for row in result.rows]
        assert {row["metric"] for row in rows} == {*METRICS, *RETRIEVAL}
        assert {row["session"] for row in rows} == {found.assessments[0].item.session}
        assert len(kg.audit("evaluations").rows) == len(rows) + len(METRICS)


def test_it_does_not_block_the_event_loop(tmp_path):
    with opened(tmp_path) as kg:
        assert asyncio.run(asyncio.to_thread(evaluate, kg, [GIVEN])).judged_count == 1


# --- what goes wrong ---


def failing_on(word: str, error: Exception):
    def reply(request: Any) -> str:
        from tgraph.testing.script import plausible_reply

        if word in str(request.messages):
            raise error
        return plausible_reply(request.prompt.name, request.messages, request.schema)

    return reply


@pytest.mark.slow
@pytest.mark.parametrize("step", ["extract_statements", "check_entailment"])
def test_an_unusable_reply_costs_its_question(tmp_path, step):
    broken = failing_on("Nansen", ModelError("It is broken."))
    with opened(tmp_path, {step: broken}) as kg:
        found = evaluate(kg, [GIVEN, ASKED])
        (failed,) = found.failed_assessments
        assert failed.item.query_id == "fram"
        assert "It is broken." in failed.error
        assert not failed.metrics
        assert found.judged_count == 1
        judged = f"{v.URN}prov:assessment:{found.evaluation.rpartition(':')[2]}:0"
        assert said(kg, judged, "error") == [failed.error]
        if step == "check_entailment":
            assert kg.audit("shapes").passed
    assert any("question fram" in line for line in found.to_markdown().splitlines())


def test_a_question_that_can_not_be_answered_costs_itself(tmp_path):
    broken = failing_on("Curie", ModelError("It is broken."))
    with opened(tmp_path, {"synthesise_answer": broken}) as kg:
        found = evaluate(kg, [ASKED, GIVEN])
        assert [a.item.query_id for a in found.failed_assessments] == ["curie"]
        assert found.failed_assessments[0].item.response is None
        assert found.judged_count == 1


def test_one_failure_of_the_endpoint_costs_one_question(tmp_path):
    away = failing_on("Nansen", EndpointError("It is away."))
    with opened(tmp_path, {"extract_statements": away}) as kg:
        found = evaluate(kg, [GIVEN, ASKED])
        assert [a.item.query_id for a in found.failed_assessments] == ["fram"]


@pytest.mark.parametrize("number", [1, 2, 5])
def test_an_endpoint_that_is_away_ends_it_and_that_is_on_record(tmp_path, number):
    with opened(tmp_path, {"extract_statements": EndpointError("It is away.")}) as kg:
        with pytest.raises(EndpointError, match="away"):
            evaluate(kg, [GIVEN] * number)
        store = kg.opened.read()
        found = [q.subject for q in store.match(None, v.RDF_TYPE, v.tg("Evaluation"), None)]
        (evaluation,) = [node.value for node in found if isinstance(node, NamedNode)]
        assert said(kg, evaluation, "status") == ["failed"]
        assert said(kg, evaluation, "error") == ["It is away."]
        assert kg.ask(ASKED.query).sentences  # the endpoint is open again


def test_an_interruption_is_on_record(tmp_path):
    with opened(tmp_path) as kg:

        def interrupt(progress: Any) -> None:
            if progress.done:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            evaluate(kg, [GIVEN, ASKED], progress=interrupt)
        store = kg.opened.read()
        (kind,) = store.match(None, v.RDF_TYPE, v.tg("Evaluation"), None)
        assert isinstance(kind.subject, NamedNode)
        assert said(kg, kind.subject.value, "status") == ["interrupted"]


def test_a_wrong_call_leaves_no_record(tmp_path):
    with opened(tmp_path) as kg:
        for questions, mode in (
            ([], "graph"),
            ([ASKED], "nonsense"),
            (tmp_path / "no.json", "graph"),
        ):
            with pytest.raises(UsageError):
                evaluate(kg, questions, mode)
        assert not list(kg.opened.read().match(None, v.RDF_TYPE, v.tg("Evaluation"), None))


def test_an_empty_graph_judges_what_brings_its_answers(tmp_path):
    settings = load_settings(None)
    parts = Components(
        settings, tmp_path / "cache", chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    with tgraph.open(tmp_path / "g", create=True, parts=parts) as kg:
        found = evaluate(kg, [GIVEN])
        assert said(kg, found.evaluation, "status") == ["completed"]
        with pytest.raises(StoreError, match="Nothing has been indexed"):
            evaluate(kg, [ASKED])


def test_a_process_that_dies_leaves_an_aborted_evaluation(tmp_path):
    from tgraph.record.assessments import EvaluationRecord

    with opened(tmp_path) as kg:
        uuid = "00000000-0000-4000-8000-999999999999"
        record = EvaluationRecord(kg.opened.folder.journals, uuid, ticking_clock())
        record.start("q", "[]", None, {}, "default", "explainability")
        record.close()
        assert said(kg, v.evaluation_iri(uuid), "status") == ["aborted"]
        assert kg.sessions.summaries() == []


@pytest.mark.parametrize("mode", ["local", "global", "drift", "lightrag-mix", "ppr"])
def test_every_sort_of_mode_has_a_context_and_a_ranking(tmp_path, mode):
    asked = EvaluationItem("0", "Who built the Fram?", gold_documents=("ships.txt",))
    with opened(tmp_path, model=False) as kg:
        (assessment,) = evaluate(kg, [asked], mode=mode).assessments
    assert assessment.item.context
    assert all(context.text for context in assessment.item.context)
    assert assessment.retrieval["recall@5"] == 1.0
