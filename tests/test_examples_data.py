"""The example corpus and its questions agree with each other."""

from __future__ import annotations

import tomllib
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import docx
import pytest
from pypdf import PdfReader

from tests.support.paths import EXAMPLES

CORPUS = EXAMPLES / "antarctica"
PROSE = (".md", ".txt", ".html", ".pdf", ".docx")


class _VisibleText(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)


def _html_text(path: Path) -> str:
    parser = _VisibleText()
    parser.feed(path.read_text(encoding="utf-8"))
    return " ".join(parser.pieces)


def _raw_text(path: Path) -> str:
    if path.suffix == ".pdf":
        return "\n".join(page.extract_text() for page in PdfReader(path).pages)
    if path.suffix == ".docx":
        return "\n".join(paragraph.text for paragraph in docx.Document(str(path)).paragraphs)
    return _html_text(path) if path.suffix == ".html" else path.read_text(encoding="utf-8")


@cache
def _text(name: str) -> str:
    """The words of a document in lower case, with every run of white space as one space."""
    return " ".join(_raw_text(CORPUS / name).split()).casefold()


def _load() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads((EXAMPLES / "questions.toml").read_text(encoding="utf-8"))


DATA = _load()
QUESTIONS = DATA["question"]
TWO_HOPS = [question for question in QUESTIONS if question["hops"] == 2]
DOCUMENTS = sorted(path.name for path in CORPUS.iterdir())


def _named_documents(question: dict[str, Any]) -> list[str]:
    return [*question.get("documents", ()), *question.get("documents_all", ())]


def _by_id(question: dict[str, Any]) -> str:
    return str(question["id"])


def test_thirty_questions_have_an_answer_and_thirty_have_none() -> None:
    kinds = Counter(question["kind"] for question in DATA["unanswerable"])
    assert (len(QUESTIONS), kinds) == (30, {"near": 24, "far": 6})
    assert set(DATA) == {"question", "unanswerable"}


def test_ids_and_texts_are_unique() -> None:
    everything = [*QUESTIONS, *DATA["unanswerable"]]
    for field in ("id", "text"):
        assert len({question[field] for question in everything}) == len(everything)


def test_ten_questions_need_two_documents() -> None:
    assert len(TWO_HOPS) == 10
    assert {question["hops"] for question in QUESTIONS} == {1, 2}


@pytest.mark.parametrize("question", QUESTIONS, ids=_by_id)
def test_a_question_has_exactly_the_documented_fields(question: dict[str, Any]) -> None:
    documents = "documents_all" if question["hops"] == 2 else "documents"
    assert set(question) == {"id", "text", "facts", "hops", documents}
    assert question["facts"]
    assert all(question["facts"])


@pytest.mark.parametrize("question", DATA["unanswerable"], ids=_by_id)
def test_an_unanswerable_question_names_no_facts(question: dict[str, Any]) -> None:
    assert set(question) == {"id", "text", "kind"}


@pytest.mark.parametrize("question", QUESTIONS, ids=_by_id)
def test_named_documents_exist(question: dict[str, Any]) -> None:
    names = _named_documents(question)
    assert names
    assert set(names) <= set(DOCUMENTS)


@pytest.mark.parametrize("question", QUESTIONS, ids=_by_id)
def test_every_fact_is_stated_by_a_named_document(question: dict[str, Any]) -> None:
    texts = [_text(name) for name in _named_documents(question)]
    facts = [fact for alternatives in question["facts"] for fact in alternatives]
    missing = [fact for fact in facts if not any(fact.casefold() in text for text in texts)]
    assert not missing


@pytest.mark.parametrize("question", TWO_HOPS, ids=_by_id)
def test_a_two_document_question_is_not_settled_by_its_own_words(question: dict[str, Any]) -> None:
    """At least one fact is new, and two documents are named."""
    assert len(set(question["documents_all"])) == 2
    asked = question["text"].casefold()
    assert any(
        all(fact.casefold() not in asked for fact in alternatives)
        for alternatives in question["facts"]
    )


def test_every_document_is_named_by_some_question() -> None:
    named = {name for question in QUESTIONS for name in _named_documents(question)}
    assert set(DOCUMENTS) == named


def test_every_document_is_described_in_the_readme() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in DOCUMENTS if f"`{name}`" not in readme] == []


def test_formats_are_mixed() -> None:
    suffixes = {Path(name).suffix for name in DOCUMENTS}
    assert suffixes == {".md", ".txt", ".html", ".pdf", ".docx", ".csv", ".jsonl"}


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if Path(name).suffix in PROSE])
def test_prose_is_of_a_readable_length(name: str) -> None:
    assert 500 <= len(_text(name).split()) <= 1100


def test_the_pdf_extracts_page_by_page() -> None:
    pages = [page.extract_text() for page in PdfReader(CORPUS / "nimrod.pdf").pages]
    assert len(pages) >= 2
    for page in pages:
        assert len(page.split()) > 200
        assert "\ufffd" not in page
        assert page.rstrip().endswith(".")
