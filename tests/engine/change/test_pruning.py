"""What is gone from an indexed folder, what was renamed there, and what is one place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.workers import edges, open_graph
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.index.run import IndexReport, UploadRun
from tgraph.explain.audit.shacl import check_shapes
from tgraph.ingest.files import discover_files

TEXTS = {
    "a.txt": "Marie Curie discovered polonium.\n",
    "b.txt": "Pierre Curie worked in Paris.\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "d").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "d" / name).write_text(text)
    return tmp_path / "d"


@pytest.fixture
def graph(folder: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(folder.parent / "g") as opened:
        opened.index([folder])
        yield opened


def absent(report: IndexReport) -> list[str]:
    return [Path(each.path).name for files in report.absent for each in files.paths]


def standing(graph: KnowledgeGraph) -> set[str]:
    return {d.path for d in graph.documents.summaries() if d.standing}


@pytest.mark.slow
def test_a_file_that_is_gone_is_named_and_retracted_on_request(graph, folder):
    session = graph.ask("Who discovered polonium?").session
    (folder / "a.txt").unlink()
    report = graph.index([folder])
    assert (absent(report), report.pruned) == (["a.txt"], ())
    assert len(edges(graph.root)) == 2, "without `prune` the document stands"
    report = graph.index([folder], prune=True)
    assert (report.absent, report.pruned) == ((), (str(folder / "a.txt"),))
    assert report.questioned == (session,)
    assert edges(graph.root) == {"pierre-curie worked-in paris"}
    assert graph.trace(session).questioned.endswith(f"The file is gone from {folder}.")
    (decision,) = graph.history.read_curations()
    assert (decision.label, decision.what, decision.standing) == (
        "Pruning",
        str(folder / "a.txt"),
        True,
    )
    assert [row[0] for row in graph.audit("retracted-answers").rows] == [session]
    assert graph.index([folder], prune=True).pruned == ()
    assert graph.integrity().ok
    assert check_shapes(graph.opened.read(), v.collection_iri("explainability")) == ()


@pytest.mark.slow
def test_a_file_that_was_pruned_comes_back_unread_wherever_it_is_again(graph, folder):
    (folder / "a.txt").rename(folder.parent / "moved.txt")
    graph.index([folder], prune=True)
    report = graph.index([folder.parent / "moved.txt"])
    assert (report.indexed, report.chunks) == ((str(folder.parent / "moved.txt"),), 0)
    (folder.parent / "moved.txt").rename(folder / "a.txt")
    assert graph.index([folder]).indexed == (str(folder / "a.txt"),)
    assert [decision.standing for decision in graph.history.read_curations()] == [False]
    assert len(edges(graph.root)) == 2


def test_one_of_two_copies_that_is_gone_leaves_the_content(graph, folder):
    (folder / "copy.txt").write_text(TEXTS["a.txt"])
    graph.index([folder])
    session = graph.ask("Who discovered polonium?").session
    (folder / "a.txt").unlink()
    report = graph.index([folder], prune=True)
    assert (report.pruned, report.questioned) == ((str(folder / "a.txt"),), ())
    assert len(edges(graph.root)) == 2
    assert graph.trace(session).questioned == ""


@pytest.mark.slow
def test_a_renamed_file_is_superseded_by_its_new_path_without_a_model(graph, folder):
    session = graph.ask("Who discovered polonium?").session
    (folder / "below").mkdir()
    (folder / "a.txt").rename(folder / "below" / "new.txt")
    before, after = str(folder / "a.txt"), str(folder / "below" / "new.txt")
    report = graph.index([folder], prune=True)
    assert [(r.before, r.after) for r in report.renamed] == [(before, after)]
    assert (report.indexed, report.superseded, report.pruned, report.chunks) == ((), (), (), 0)
    assert report.usage.calls == 0
    assert standing(graph) == {after, str(folder / "b.txt")}
    assert graph.trace(session).questioned == ""
    (folder / "below" / "new.txt").rename(folder / "a.txt")
    (folder / "below" / "new.txt").write_text("Marie Curie won a prize.\n")
    report = graph.index([folder])
    assert report.indexed == (before, after), "a path that stands gets a new version"
    assert [(r.before, r.after) for r in report.renamed] == []
    assert standing(graph) == {before, after, str(folder / "b.txt")}
    assert graph.integrity().ok
    assert check_shapes(graph.opened.read(), v.collection_iri("explainability")) == ()


@pytest.mark.slow
def test_a_file_renamed_forth_and_back_has_one_standing_path(graph, folder):
    for before, after in (("a.txt", "c.txt"), ("c.txt", "a.txt"), ("a.txt", "c.txt")):
        (folder / before).rename(folder / after)
        assert len(graph.index([folder]).renamed) == 1
    assert standing(graph) == {str(folder / "b.txt"), str(folder / "c.txt")}
    (folder / "a.txt").write_text(TEXTS["a.txt"])
    assert graph.index([folder]).indexed == (str(folder / "a.txt"),)
    assert standing(graph) == {str(folder / name) for name in ("a.txt", "b.txt", "c.txt")}
    assert graph.integrity().ok


def test_a_retracted_path_does_not_come_back_as_a_renaming(graph, folder):
    (folder / "copy.txt").write_text(TEXTS["a.txt"])
    graph.index([folder])
    graph.retract("copy.txt", reason="A stray copy.")
    (folder / "a.txt").unlink()
    report = graph.index([folder])
    assert (report.renamed, absent(report)) == ((), ["a.txt"])
    assert report.retracted == (str(folder / "copy.txt"),)


def test_a_renamed_file_without_its_authority_is_told(graph, folder):
    said: list[str] = []
    graph.documents.set_authority("a.txt", 0.2, reason="Hearsay.")
    (folder / "a.txt").rename(folder / "c.txt")
    graph.index([folder], message=said.append)
    assert any("has not the authority of 0.2 that" in line for line in said)


def test_an_empty_folder_prunes_nothing(graph, folder):
    shutil.rmtree(folder)
    folder.mkdir()
    report = graph.index([folder], prune=True)
    assert (absent(report), report.pruned) == (["a.txt", "b.txt"], ())
    assert report.absent[0].is_folder_empty
    folder.rmdir()
    report = graph.index([folder], prune=True)
    assert (report.absent, report.pruned) == ((), ())
    assert len(edges(graph.root)) == 2


@pytest.mark.slow
def test_a_place_is_one_document_however_it_is_named(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    with open_graph(folder.parent / "g") as graph:
        graph.index(["d"])
        for name in ("./d/", "d/../d", folder):
            report = graph.index([name])
            assert report.unchanged == ("d/a.txt", "d/b.txt")
        (folder / "a.txt").write_text("Marie Curie discovered radium.\n")
        assert graph.index([folder]).superseded == ("d/a.txt",)
        (folder / "b.txt").unlink()
        assert graph.index([folder], prune=True).pruned == ("d/b.txt",)


def test_only_what_was_indexed_from_the_folder_can_be_gone(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder.parent / "beside.txt").write_text("Roald Amundsen reached the South Pole.\n")
    with open_graph(folder.parent / "g") as graph:
        graph.index(["../beside.txt", "."])
        graph.entities.add_fact("Marie Curie", "discovered", "radium", reason="Known.")
        (folder / "sent.txt").write_text("Marie Curie studied physics.\n")
        UploadRun(graph.opened.setup()).run(discover_files(["sent.txt"]))
        (folder / "sent.txt").unlink()
        (folder.parent / "beside.txt").unlink()
        (folder / "a.txt").unlink()
        report = graph.index([".", folder], prune=True)
        assert report.pruned == ("a.txt",)
