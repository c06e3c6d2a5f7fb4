"""Three verdicts: what an answer is said to be, in text, JSON, record, report and exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

import tgraph
from tests.support.small_reader import NONE, small_reader
from tgraph.engine.components import Components
from tgraph.engine.json_answers import answer_json
from tgraph.explain.render.wording import stage_lines
from tgraph.model import Answer
from tgraph.models.reader import OnnxReader
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder

TEXT = """# Fram

The *Fram* was a ship of Fridtjof Nansen. Colin Archer built the *Fram* at Larvik.
"""
QUESTION = "Where was the Fram built?"
INTRODUCTION = "The documents may not say this. The nearest passages:"
READER = {NONE: 0.0, "Larvik": 9.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verdict")
    (folder / "fram.md").write_text(TEXT)
    small_reader(folder / "reader", READER)
    with opened(folder, create=True) as graph:
        graph.index([folder / "fram.md"])
    return folder


def opened(
    folder: Path, least: float = 0.0, sure: float = 0.0, *, create: bool = False
) -> tgraph.KnowledgeGraph:
    settings = {"answer.least_confidence": least, "answer.sure_confidence": sure}
    parts = Components(
        load_settings(None, settings),
        folder / "cache",
        embedder=HashingEmbedder(),
        reader=OnnxReader.of_folder(folder / "reader"),
    )
    return tgraph.open(folder / "graph", create=create, settings=settings, parts=parts)


def ask(folder: Path, least: float = 0.0, sure: float = 0.0) -> Answer:
    with opened(folder, least, sure) as graph:
        return graph.ask(QUESTION, "graph", history=())


@pytest.mark.parametrize(
    ("least", "sure", "verdict"),
    [(0.0, 0.0, "answered"), (0.0, 1.0, "uncertain"), (1.0, 1.0, "no_evidence")],
)
def test_the_verdict_follows_the_confidence(folder, least, sure, verdict):
    answer = ask(folder, least, sure)
    assert answer.verdict == verdict
    assert answer.no_evidence == (verdict == "no_evidence")
    assert answer_json(answer)["verdict"] == verdict
    with opened(folder) as graph:
        assert graph.trace(answer.session).verdict == verdict


def test_an_uncertain_answer_says_so_first_and_has_no_short_answer(folder):
    answer = ask(folder, sure=1.0)
    assert answer.text.startswith(f"{INTRODUCTION}\n\n")
    assert answer.introduction == INTRODUCTION
    assert answer.sentences
    assert not answer.short
    with opened(folder) as graph:
        trace = graph.trace(answer.session)
        assert trace.introduction == INTRODUCTION
        assert trace.report is not None
        assert INTRODUCTION in trace.report()
        assert INTRODUCTION in answer._repr_html_()


def test_what_is_streamed_is_the_text_of_an_uncertain_answer(folder):
    with opened(folder, sure=1.0) as graph:
        responses = [each.response for each in graph.stream(QUESTION, "graph", history=())]
        said = graph.ask(QUESTION, "graph", history=())
    assert "".join(responses) == said.text


def test_a_short_answer_has_a_probability_of_its_own(folder):
    answer = ask(folder)
    with opened(folder) as graph:
        trace = graph.trace(answer.session)
        lines = "\n".join(
            stage_lines(trace, f"urn:trustgraph:prov:answer:{trace.explain_id[-36:]}")
        )
    assert (trace.short, trace.short_confidence) == (answer.short, answer.short_confidence)
    if answer.short:
        assert answer.short_confidence is not None
        assert answer.short_confidence >= 0.5
        assert f"probability {answer.short_confidence:.2f} that this is right" in lines
    assert f"probability {answer.confidence:.2f} that the documents answer" in lines


def test_an_uncertain_answer_replays_exactly(folder):
    answer = ask(folder, sure=1.0)
    with opened(folder) as graph:
        assert graph.replay(answer.session).is_same


def test_the_sentence_that_answers_is_read_once_more_alone(folder):
    answer = ask(folder)
    with opened(folder) as graph:
        labels = [call.label for call in graph.trace(answer.session).calls]
    assert labels.count("reading call") == 2


def test_names_that_no_passage_has_make_an_answer_less_sure(folder):
    with opened(folder) as graph:
        questions = ("Where was the Fram built?", "Where was the Gauss built?")
        own, other = (graph.ask(each, "graph", history=()).confidence or 0.0 for each in questions)
    assert own > other
