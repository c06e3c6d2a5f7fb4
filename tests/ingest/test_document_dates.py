"""Dates of documents as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import tgraph
from tgraph.cli.main import cli
from tgraph.ingest.document_dates import DateOrder, read_document_date
from tgraph.model import Document, Page

ENGLISH = "The board of the harbour has approved the new mast, and it was the last one of the year."


def dated(text: str, language: str = "", order: DateOrder = "language", words: str = ENGLISH):
    metadata = {"date": text, **({"language": language} if language else {})}
    document = Document("0" * 64, "Minutes", "text/plain", (Page(None, words),), metadata)
    return read_document_date(document, order)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-03-31", "2024-03-31"),
        ("2024-03-31T23:30-08:00", "2024-03-31"),  # the day where it was written
        ("31.03.2024", "2024-03-31"),
        ("04.03.2024", "2024-03-04"),
        ("March 31, 2024", "2024-03-31"),
        ("Sunday, 31st March 2024", "2024-03-31"),
        ("Sun, 31 Mar 2024 23:30:00 -0800", "2024-03-31"),
        ("31 mars 2024", "2024-03-31"),
        ("31 de marzo de 2024", "2024-03-31"),
        ("31. März 2024", "2024-03-31"),
        ("2024年3月31日", "2024-03-31"),
        ("٣١ مارس ٢٠٢٤", "2024-03-31"),
        ("13/4/2024", "2024-04-13"),
        ("2024/3/4", "2024-03-04"),
        ("March 2024", "2024-03"),
        ("2024", "2024"),
    ],
)
def test_a_date_is_understood_in_many_forms(text, expected):
    read = dated(text)
    assert (read.calendar_date.value, read.note) == (expected, "")


@pytest.mark.parametrize(
    ("language", "order", "expected", "reason"),
    [
        ("en", "language", "2024-03-04", "month first, as usual in the document's language"),
        ("en-GB", "language", "2024-04-03", "day first, as usual in the document's language"),
        ("fr", "language", "2024-04-03", "day first, as usual in the document's language"),
        ("en", "day-first", "2024-04-03", "day first, as the setting ingest.date_order says"),
        ("fr", "month-first", "2024-03-04", "month first, as the setting ingest.date_order says"),
    ],
)
def test_a_doubtful_order_is_decided_and_told(language, order, expected, reason):
    read = dated("3/4/2024", language, order)
    assert read.calendar_date.value == expected
    assert reason in read.note


def test_a_doubtful_order_in_an_unknown_language_is_left_open():
    read = dated("3/4/2024", words="Мост через Неву построил инженер в прошлом веке.")
    assert read.calendar_date is None
    assert "ingest.date_order" in read.note


@pytest.mark.parametrize(
    "text",
    [
        "spring 2024",
        "2019-2021",
        "3/4/24",
        "31 March",
        "circa 1850",
        "2024-13-45",
        "5 listopada 2024",
    ],
)
def test_what_is_no_date_is_said_not_to_be_understood(text):
    read = dated(text)
    assert read.calendar_date is None
    assert read.note.startswith(f"The date {text!r} is not understood")


def test_dates_are_told_listed_and_filtered(tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in {"a": "31.03.2024", "b": "3/4/2024", "c": "some day"}.items():
        body = f"---\ntitle: Minutes {name}\ndate: {text}\n---\nThe pump was approved by Ann.\n"
        (folder / f"{name}.md").write_text(body, "utf-8")
    root = ("--root", str(tmp_path / "graph"))
    indexed = CliRunner().invoke(cli, ["index", str(folder), *root])
    assert "a.md: The date" not in indexed.stderr
    assert "b.md: The date '3/4/2024' is read as 2024-03-04, the month first" in indexed.stderr
    assert "c.md: The date 'some day' is not understood" in indexed.stderr
    listed = CliRunner().invoke(cli, ["documents", "list", *root])
    assert "2024-03-31" in listed.stdout
    assert "some day (?)" in listed.stdout
    assert "c.md: The date 'some day' is not understood" in listed.stderr
    with tgraph.open(tmp_path / "graph") as graph:
        summaries = {Path(summary.path).name: summary for summary in graph.documents.summaries()}
        assert summaries["a.md"].date == "31.03.2024"  # as written
        assert summaries["a.md"].calendar_date == "2024-03-31"
        until = tgraph.Filters(until="2024-03-31")
        answer = graph.ask("What was approved?", "bm25", history=[], filters=until)
        assert {Path(source.path).name for source in answer.sources} == {"a.md", "b.md"}
