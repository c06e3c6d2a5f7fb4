"""A document is its place as well as its bytes: one content at two paths, taken back at one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.workers import edges, open_graph
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.audit.shacl import check_shapes

TEXT = "Marie Curie discovered polonium.\n"
STATED = {"marie-curie discovered polonium"}
CATALOGUE = v.collection_iri("explainability")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "d").mkdir()
    for name in ("copy.txt", "minutes.txt"):
        (tmp_path / "d" / name).write_text(TEXT)
    (tmp_path / "d" / "other.txt").write_text("Pierre Curie worked in Paris.\n")
    return tmp_path / "d"


@pytest.fixture
def graph(folder: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(folder.parent / "g") as opened:
        opened.index([folder])
        yield opened


def standing(graph: KnowledgeGraph) -> set[str]:
    return {Path(d.path).name for d in graph.documents.summaries() if d.standing}


@pytest.mark.slow
def test_one_path_is_retracted_and_the_content_stands_at_the_other(graph, folder):
    session = graph.ask("Who discovered polonium?").session
    before = graph.impact("copy.txt")
    assert before.facts == ()
    assert [fact.fact for fact in before.copied] == ["Marie Curie — discovered — polonium"]
    assert (before.paths, before.copies) == (
        (str(folder / "copy.txt"),),
        (str(folder / "minutes.txt"),),
    )
    done = graph.retract("copy.txt", reason="A stray copy.")
    assert (done.impact, done.questioned) == (before, ())
    assert standing(graph) == {"minutes.txt", "other.txt"}
    answer = graph.ask("Who discovered polonium?", history=[])
    assert {c.path for s in answer.sentences for c in s.citations} == {str(folder / "minutes.txt")}
    assert graph.trace(session).questioned == ""
    assert graph.audit("retracted-answers").rows == ()
    assert graph.audit("used-after-retraction").rows == ()
    with pytest.raises(UsageError, match=r"retracted or replaced already; .*minutes\.txt"):
        graph.retract("copy.txt", reason="Again.")
    last = graph.retract("minutes.txt", reason="It was forged.")
    assert last.questioned
    assert edges(graph.root) == {"pierre-curie worked-in paris"}
    assert graph.integrity().ok
    assert check_shapes(graph.opened.read(), CATALOGUE) == ()


def test_a_name_that_means_several_paths_is_refused_without_all_copies(graph):
    document = graph.impact("copy.txt").document
    for name in (document, document.rpartition(":")[2], "Copy"):
        whole = graph.impact(name)
        assert len(whole.paths) == 2
        assert (len(whole.facts), whole.copies, whole.copied) == (1, (), ())
        with pytest.raises(UsageError, match=r"stands at 2 paths .*copy\.txt, .*minutes\.txt"):
            graph.retract(name, reason="Forged.")
        with pytest.raises(UsageError, match="stands at 2 paths"):
            graph.purge(name, reason="Forged.")
    assert standing(graph) == {"copy.txt", "minutes.txt", "other.txt"}
    graph.retract("copy.txt", reason="Forged.", all_copies=True)
    assert standing(graph) == {"other.txt"}
    assert edges(graph.root) == {"pierre-curie worked-in paris"}


def test_a_retracted_path_stays_out_and_another_path_comes_in(graph, folder):
    graph.retract("copy.txt", reason="A stray copy.")
    (folder / "third.txt").write_text(TEXT)
    report = graph.index([folder])
    assert [Path(path).name for path in report.retracted] == ["copy.txt"]
    assert [Path(path).name for path in report.indexed] == ["third.txt"]
    assert report.chunks == 0
    decisions = graph.history.read_curations()
    assert [(c.label, c.standing, Path(c.what).name) for c in decisions] == [
        ("Retraction", True, "copy.txt")
    ]
    graph.index([folder], reinstate=True)
    assert standing(graph) == {"copy.txt", "minutes.txt", "third.txt", "other.txt"}
    assert [c.standing for c in graph.history.read_curations()] == [False]


@pytest.mark.slow
def test_a_purge_erases_the_content_with_its_last_path(graph):
    digest = graph.impact("copy.txt").document.removeprefix(v.document_iri(""))
    done = graph.purge("copy.txt", reason="Erasure request.")
    assert (done.erasure, done.texts) == ("", 0)
    assert edges(graph.root) >= STATED
    assert graph.opened.librarian.has_content(digest)
    assert graph.purge("minutes.txt", reason="Erasure request.").erasure
    assert not graph.opened.librarian.has_content(digest)
    assert edges(graph.root) == {"pierre-curie worked-in paris"}
    assert graph.integrity().ok


def test_a_purge_of_all_copies_erases_at_once(graph):
    done = graph.purge("copy.txt", reason="Erasure request.", all_copies=True)
    assert done.erasure
    assert len(done.impact.paths) == 2
    assert standing(graph) == {"other.txt"}


def test_of_a_path_whose_versions_all_ended_the_newest_is_meant(graph, folder):
    (folder / "other.txt").write_text("Pierre Curie worked in Rome.\n")
    graph.index([folder])
    graph.retract("other.txt", reason="Forged.")
    found = graph.impact("other.txt")
    assert found.standing is False
    assert "Rome" in graph.documents.read_text(found.document)
