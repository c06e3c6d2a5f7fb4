"""Verification of an answer as a whole: its short answer, its probabilities, its verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tgraph
from benchmarks.forged_answers import swap_names, verify_forged
from tests.engine.ask.test_modes import CATALOGUE
from tests.support.small_reader import NONE, small_reader
from tgraph.cli.explain import print_verification
from tgraph.engine.components import Components
from tgraph.engine.json_judgements import verification_json
from tgraph.engine.rerun.answer_check import check_answer
from tgraph.errors import VerificationError
from tgraph.explain.audit.named_audits import find_audit, run_audit
from tgraph.explain.audit.shacl import check_shapes
from tgraph.models.base import no_sink
from tgraph.models.reader import OnnxReader
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder

TEXT = "# Fram\n\nThe *Fram* was a ship. Colin Archer built the *Fram* at Larvik.\n"
QUESTION = "Where was the Fram built?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("check")
    (folder / "fram.md").write_text(TEXT)
    small_reader(folder / "sure", {NONE: 0.0, "Larvik": 9.0})
    small_reader(folder / "doubting", {NONE: 9.0})
    with opened(folder, "sure", create=True) as graph:
        graph.index([folder / "fram.md"])
    return folder


def opened(folder: Path, reader: str, *, create: bool = False) -> tgraph.KnowledgeGraph:
    settings = {"answer.least_confidence": 0.0, "answer.sure_confidence": 0.2}
    parts = Components(
        load_settings(None, settings),
        folder / "cache",
        embedder=HashingEmbedder(),
        reader=OnnxReader.of_folder(folder / reader),
    )
    return tgraph.open(folder / "graph", create=create, settings=settings, parts=parts)


@pytest.fixture
def graph(folder):
    with opened(folder, "sure") as graph:
        yield graph


def test_what_the_record_holds_leads_to_the_same_verdict_and_probabilities(graph):
    session = graph.ask(QUESTION, "graph", history=()).session
    found = graph.verify(session)
    judged = found.answer
    assert (judged.verdict, judged.recorded, judged.recomputed) == (
        "supported",
        "answered",
        "answered",
    )
    assert judged.recomputed_confidence == pytest.approx(judged.confidence)
    assert (judged.short.text, judged.short.verdict, judged.short.follows) == (
        "Larvik",
        "quoted",
        True,
    )
    assert found.is_supported
    assert verification_json(found)["answer"]["short"]["verdict"] == "quoted"
    assert graph.trace(session).judged.verdict == "supported"
    assert not check_shapes(graph.opened.read(), CATALOGUE)


def test_an_answer_that_the_reader_no_longer_finds_does_not_hold(folder, graph, capsys):
    session = graph.ask(QUESTION, "graph", history=()).session
    with opened(folder, "doubting") as other:
        found = other.verify(session)
        assert found.answer is not None
        assert (found.answer.verdict, found.is_supported) == ("unsupported", False)
        assert found.recall == 1.0
        with pytest.raises(VerificationError, match="The answer does not hold: "):
            print_verification(found, as_json=False)
        assert "Answer: [unsupported] recorded as answered" in capsys.readouterr().out
        rows = run_audit(other.opened.read(), CATALOGUE, find_audit("unsupported")).rows
        assert ("Larvik", "unsupported") in {(row[4], row[5]) for row in rows}
        assert not check_shapes(other.opened.read(), CATALOGUE)


def test_a_short_answer_that_no_citation_states_does_not_hold(graph):
    trace = graph.trace(graph.ask(QUESTION, "graph", history=()).session)
    for short, verdict in (("Bergen", "unsupported"), ("larvik; Colin Archer", "supported")):
        told = replace(trace, short=short)
        judged = check_answer(graph.opened, told, no_sink, lexical=False)
        assert (judged.verdict, short) == (verdict, short)


def test_a_verification_finds_what_is_forged_without_a_false_word(graph):
    trace = graph.trace(graph.ask(QUESTION, "graph", history=()).session)
    other = graph.trace(graph.ask("What was the Fram?", "graph", history=()).session)
    sentences = [s for t in (trace, other) for s in t.sentences]
    built = next(s for s in sentences if "Larvik" in s.text)
    ship = next(s for s in sentences if "was a ship" in s.text)
    forgeries = {
        "in this order": swap_names(replace(trace, sentences=(built,)), ()),
        "another sentence": replace(trace, sentences=(ship,), short=""),
        "other words": replace(trace, short="Colin Archer"),
        "which is answered": replace(trace, verdict="uncertain", confidence=0.1, short=""),
    }
    for reason, forged in forgeries.items():
        assert forged is not None
        found = verify_forged(graph, forged)
        assert found.answer is not None
        assert not found.is_supported, reason
        assert reason in str([found.answer.reason, *(s.reason for s in found.sentences)])


def test_by_words_alone_only_the_short_answer_is_judged(graph):
    session = graph.ask(QUESTION, "graph", history=()).session
    judged = graph.verify(session, lexical=True).answer
    assert (judged.verdict, judged.recomputed, judged.short.verdict) == ("undecided", "", "quoted")
