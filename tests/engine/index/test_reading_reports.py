"""Reading reports: on record, shown by every face; documents read otherwise are read anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tgraph
from tgraph.cli.main import cli
from tgraph.ingest import files, text
from tgraph.ingest.base import FileContent, FileLimits
from tgraph.ingest.blocks import LossList
from tgraph.model import Page, UnitCount
from tgraph.record import sources

TEXT = "The Sorvik mill was built by Anna Berg in 1931. The mill stands in Bergen."
QUESTION = "Who built the Sorvik mill?"
WARNING = "40 of 120 characters of the file aren't in the stored text, and nothing"


def read_with_losses(data: bytes, name: str, limits: FileLimits) -> FileContent:
    losses = LossList()
    losses.add("image", "an image has no text", place="page 2", marked=True, count=2)
    losses.add("deleted passage", "the author deleted the passage")
    report = losses.report("scanner 2.1", [UnitCount("characters", 120, 75, 5)])
    return FileContent((Page(None, data.decode()),), "", {"author": "Carl Lund"}, report)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(text, "read_text", read_with_losses)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mill.txt").write_text(TEXT)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--root", "g"])


def test_index_says_what_is_not_in_the_text(place: Path) -> None:
    indexed = run("index", "mill.txt")
    assert indexed.exit_code == 0
    assert "mill.txt: 2 images and 1 deleted passage are not in the text." in indexed.stderr
    assert WARNING in " ".join(indexed.stderr.split())
    assert "tgraph documents show PATH" in indexed.stderr
    again = json.loads(run("index", "mill.txt", "--json").stdout)
    assert again["readings"] == {}


@pytest.mark.slow
def test_the_report_is_on_record_and_in_every_list(place: Path) -> None:
    run("index", "mill.txt", "-q")
    shown = run("documents", "show", "mill.txt").stdout
    assert "Read by scanner 2.1." in shown
    assert "Author: Carl Lund" in shown
    assert "Characters: 120 in the file, 75 in the text, 5 left out on purpose." in shown
    assert "Not in the text: 2 images, page 2: an image has no text. A mark stands in" in shown
    as_json = json.loads(run("documents", "show", "mill.txt", "--json").stdout)
    reading = as_json["reading"]
    assert (as_json["metadata"]["author"], as_json["pages"]) == ("Carl Lund", [])
    assert [loss["kind"] for loss in reading["losses"]] == ["image", "deleted passage"]
    assert "3, warning" in run("documents", "list").stdout
    audited = run("audit", "reading-losses").stdout
    assert "deleted passage" in audited
    assert "the text may lack something" in " ".join(run("doctor").stdout.split())
    assert run("audit", "integrity").exit_code == 0
    assert run("audit", "shapes").exit_code == 0


@pytest.mark.slow
def test_a_purge_erases_what_the_report_says_of_the_text(place: Path) -> None:
    run("index", "mill.txt", "-q")
    purged = run("remove", "mill.txt", "--purge", "--yes", "--reason", "asked for")
    assert purged.exit_code == 0, purged.output
    assert run("audit", "integrity").exit_code == 0
    with tgraph.open("g") as graph:
        reasons = graph.sparql(
            "ASK { GRAPH ?g { ?s tg:lossReason ?o FILTER(REGEX(?o, 'image')) } }"
        )
        assert not reasons


@pytest.mark.slow
def test_documents_of_an_earlier_reading_are_named_and_read_anew_on_demand(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("index", "mill.txt", "-q")
    asked = run("ask", QUESTION, "--json")
    assert "Anna Berg" in asked.stdout
    monkeypatch.setitem(files._READING_VERSIONS, "text/plain", 2)
    monkeypatch.setattr(
        text,
        "read_text",
        lambda data, *_: FileContent((Page(None, f"# The mill\n\n{data.decode()}"),)),
    )
    assert "tgraph index --reread" in " ".join(run("doctor").stdout.split())
    assert json.loads(run("index", "mill.txt", "--json").stdout)["unchanged"] == ["mill.txt"]
    assert json.loads(run("index", "--reread", "elsewhere", "--json").stdout)["indexed"] == []
    model = ("--model", "gpt-4o-mini", "--base-url", "http://127.0.0.1:9")
    estimate = json.loads(run("index", "--reread", "--estimate", "--json", *model).stdout)
    assert (estimate["documents"], estimate["chunks"], estimate["failed"]) == (1, 1, [])
    assert min(estimate["text_tokens"], estimate["calls"], estimate["input_tokens"]) > 0
    elsewhere = run("index", "--reread", "--estimate", "elsewhere").stdout
    assert "Documents:  0 new or changed" in elsewhere
    assert json.loads(run("index", "--reread", "--json").stdout)["indexed"] == ["mill.txt"]
    with tgraph.open("g") as graph:
        assert graph.documents.read_text("mill.txt").startswith("# The mill")
        assert len([d for d in graph.documents.summaries() if d.standing]) == 1
    replayed = run("replay", "last")
    assert replayed.exit_code == 0, replayed.output
    assert run("verify", "last", "--lexical").exit_code == 0
    assert run("audit", "integrity").exit_code == 0
    assert run("audit", "shapes").exit_code == 0
    assert "Anna Berg" in run("ask", QUESTION).stdout
    assert json.loads(run("index", "mill.txt", "--json").stdout)["unchanged"] == ["mill.txt"]
    run("retract", "mill.txt", "--reason", "wrong")
    assert json.loads(run("index", "mill.txt", "--json").stdout)["retracted"] == ["mill.txt"]


def test_a_document_of_a_version_without_reports_says_so(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        text, "read_text", lambda data, *_: FileContent((Page(None, data.decode()),))
    )
    run("index", "mill.txt", "-q")
    assert "There is no reading report" in run("documents", "show", "mill.txt").stdout
    with tgraph.open("g") as graph:
        assert graph.documents.read_report("mill.txt") is None


@pytest.mark.slow
def test_files_of_formats_that_no_reader_had_are_read_anew(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = "From: a@example.org\nSubject: The mill\nContent-Type: text/html\n\n<p>It burns.</p>"
    (place / "letter.eml").write_text(mail)
    monkeypatch.setattr(files, "media_type_of_suffix", lambda name: "text/plain")
    monkeypatch.setattr(sources, "_state_report", lambda *_: None)
    run("index", "letter.eml", "-q")
    monkeypatch.undo()
    monkeypatch.chdir(place)
    assert "letter.eml: an earlier version" in " ".join(run("doctor").stdout.split())
    assert json.loads(run("index", "--reread", "--json").stdout)["indexed"] == ["letter.eml"]
    with tgraph.open("g") as graph:
        assert "<p>" not in graph.documents.read_text("letter.eml")
    assert "an earlier version" not in run("doctor").stdout
    assert "No document would be read otherwise" in run("index", "--reread").stderr


def test_index_wants_paths_or_reread(place: Path) -> None:
    refused = run("index")
    assert refused.exit_code == 2
    assert "tgraph index PATH" in refused.output
