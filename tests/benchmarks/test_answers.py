"""The benchmark of answers: its sets are read as they are written, and its figures count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tgraph
from benchmarks import answers
from benchmarks.answers import Asked, Judged
from tgraph.errors import UsageError

QUESTIONS = """
[[question]]
text = "Who founded the lighthouse of Skerrow?"
facts = [["Ada Brandt"]]
documents = ["lighthouse.md"]
hops = 1

[[unanswerable]]
text = "How many stairs has the lighthouse of Skerrow?"
kind = "near"

[[unanswerable]]
text = "What is the boiling point of xenon?"

[[whole]]
text = "What are these documents about?"
topics = [["lighthouse"], ["whale", "whaling"]]
"""


def judged(kind: str, **given: object) -> Judged:
    values = {
        "question": "?", "hops": 1, "answer": "", "first": "", "short": "", "confidence": None,
        "refused": False, "states": False, "states_first": False, "cites": False, "topics": 0.0,
    }  # fmt: skip
    return Judged(kind=kind, **(values | given))  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_file_of_questions_is_put_to_a_corpus(tmp_path: Path) -> None:
    documents = tmp_path / "docs"
    documents.mkdir()
    text = "# Skerrow\n\nAda Brandt founded the lighthouse of Skerrow in 1871.\n"
    (documents / "lighthouse.md").write_text(text, "utf-8")
    (tmp_path / "questions.toml").write_text(QUESTIONS, "utf-8")
    asked = answers.read_questions("skerrow", documents, tmp_path / "questions.toml")
    assert [question.kind for question in asked.questions] == ["answerable", "near", "far", "whole"]
    found, spent = answers.measure(asked, "graph", tmp_path / "graph")
    assert spent > 0
    assert found[0].right_first
    assert found[0].documents == ("lighthouse.md",)
    assert found[2].refused
    again, spent = answers.measure(asked, "graph", tmp_path / "graph")
    assert spent == 0
    assert [each.answer for each in again] == [each.answer for each in found]


def test_a_question_that_names_a_missing_document_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "questions.toml").write_text(QUESTIONS, "utf-8")
    with pytest.raises(UsageError, match=r"lighthouse\.md"):
        answers.read_questions("skerrow", tmp_path, tmp_path / "questions.toml")


def test_held_articles_are_every_second_one(tmp_path: Path) -> None:
    articles = [_article(title) for title in ("A_a", "B_b", "C_c", "D_d")]
    (tmp_path / "squad_dev.json").write_text(json.dumps({"data": articles}), "utf-8")
    found = answers.squad_dev(tmp_path, tmp_path, "odd", 5, 0)
    assert sorted(path.name for path in tmp_path.glob("*.md")) == ["B_b.md", "D_d.md"]
    assert sorted((q.text, q.kind, *q.some) for q in found.questions) == [
        ("Where is B_b?", "answerable", "B_b.md"),
        ("Where is D_d?", "answerable", "D_d.md"),
        ("Why is B_b?", "near"),
        ("Why is D_d?", "near"),
    ]
    assert found.questions == answers.squad_dev(tmp_path, tmp_path, "odd", 5, 0).questions


def _article(title: str) -> dict[str, object]:
    there = {"question": f"Where is {title}?", "is_impossible": False, "answers": [{"text": "x"}]}
    none = {"question": f"Why is {title}?", "is_impossible": True, "answers": []}
    return {"title": title, "paragraphs": [{"context": f"{title} is x.", "qas": [there, none]}]}


def test_the_first_sentence_must_state_every_fact() -> None:
    sentences = tuple(tgraph.model.Sentence(text, ()) for text in ("Ada came.", "So did Bo."))
    answer = tgraph.model.Answer(
        "Who came?", "graph", "Ada came. So did Bo.", "answered", sentences, (), "s", "c",
        tgraph.model.Usage(), "none",
    )  # fmt: skip
    found = answers.judge(Asked("Who came?", "answerable", (("ada",), ("bo",))), answer, Path())
    assert (found.right, found.right_first) == (True, False)
    found = answers.judge(Asked("Who came?", "answerable", (("ada", "eve"),)), answer, Path())
    assert found.right_first


def test_a_threshold_that_loses_a_tenth_refuses_by_confidence() -> None:
    gold = [judged("answerable", confidence=c / 10) for c in range(1, 11)]
    none = [judged("near", confidence=c) for c in (0.05, 0.15, 0.2, 0.9)]
    assert answers.refused_at([*gold, *none]) == "2/4"
    refused = judged("near", refused=True)
    assert answers.refused_at([*gold, refused]) == "1/1"
    assert answers.refused_at([*gold, judged("near")]) == ""


def test_calibration_compares_confidence_with_being_right() -> None:
    right = judged("answerable", confidence=0.9, states=True, cites=True)
    wrong = judged("near", confidence=0.5)
    said = answers.calibration([right, wrong, judged("far", refused=True, confidence=0.1)])
    assert "Confidence of 2 answers: Brier score 0.130" in said
    assert "| 0.4 to 0.6 | 1 | 0.50 | 0.00 |" in said
    assert "| 0.8 to 1.0 | 1 | 0.90 | 1.00 |" in said
    assert answers.calibration([judged("answerable")]) == ""
