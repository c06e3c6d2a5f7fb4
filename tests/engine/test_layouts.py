"""Layouts of pages go with the texts: into backups, replicas and packages; a purge erases them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from tests.support.workers import collection, open_graph
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.extensions.evidence import make_package, verify_package
from tgraph.extensions.evidence.crates.container import read_package
from tgraph.extensions.operations import follow, ship
from tgraph.extensions.operations.backup import back_up, restore_backup
from tgraph.index.sources import read_layout, text_value
from tgraph.ingest.blocks import unpack_blocks

LETTERS = {
    "one.html": "<h1>Letter</h1><p>Anna Berg met Carl Lund in Bergen.</p>",
    "two.html": "<h1>Letter</h1><p>Ida Holst saw Jens Krog in Tromso.</p>",
}
SHIPS = "<table><tr><th>Ship</th><th>Glimmerfen</th></tr><tr><td>Fram</td><td>402</td></tr></table>"
QUESTION = "Whom did Anna Berg meet?"


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    """Two letters of one form, whose pages have the same layout, and a table."""
    for name, text in {**LETTERS, "ships.html": SHIPS}.items():
        (tmp_path / name).write_text(text)
    with chdir(tmp_path), open_graph(tmp_path / "g") as graph:
        assert not graph.index([*LETTERS, "ships.html"]).failed
        yield graph


def layout_key(graph: KnowledgeGraph, path: str) -> str:
    document = graph.documents.read_extractions(path).document.document
    return text_value(graph.opened.read(), document, v.tg("layoutHash"))


def block_kinds(graph: KnowledgeGraph, path: str) -> list[str]:
    document = graph.documents.read_extractions(path).document.document
    layout = read_layout(graph.opened.read(), graph.opened.librarian, document)
    return [block.kind for block in unpack_blocks(layout)]


def content_file(graph: KnowledgeGraph, key: str) -> Path:
    (file,) = collection(graph.root).librarian.rglob(f"{key}*")
    return file


@pytest.mark.parametrize("problem", ["missing", "damaged"])
def test_a_layout_that_is_not_as_it_was_recorded_is_named(
    graph: KnowledgeGraph, problem: str
) -> None:
    key = layout_key(graph, "ships.html")
    file = content_file(graph, key)
    if problem == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes() + b" ")
    checked = graph.integrity()
    assert [(p.kind, p.subject) for p in checked.problems if key in p.subject] == [
        ("altered" if problem == "damaged" else "missing", key)
    ]


def test_backups_and_replicas_have_layouts(graph: KnowledgeGraph, tmp_path: Path) -> None:
    kinds = block_kinds(graph, "ships.html")
    assert kinds == ["head", "row"]
    ship(graph, str(tmp_path / "shipped"))
    back_up(graph.root, tmp_path / "saved.tar")
    restore_backup(tmp_path / "saved.tar", tmp_path / "restored")
    for root in ("replica", "restored"):
        with open_graph(tmp_path / root) as other:
            if root == "replica":
                follow(other, str(tmp_path / "shipped"))
            assert block_kinds(other, "ships.html") == kinds
            assert other.integrity().ok


@pytest.mark.slow
def test_a_package_has_the_layouts_of_its_pages(graph: KnowledgeGraph, tmp_path: Path) -> None:
    key = layout_key(graph, "one.html")
    made = make_package(graph, graph.ask(QUESTION, history=()).session)
    assert not made.no_replay
    (tmp_path / "p.zip").write_bytes(made.data)
    assert any(key in name for name in read_package(tmp_path / "p.zip")[0])
    assert verify_package(tmp_path / "p.zip").ok


@pytest.mark.slow
def test_a_purge_leaves_no_layout_but_that_of_others(graph: KnowledgeGraph) -> None:
    shared = layout_key(graph, "one.html")
    assert shared == layout_key(graph, "two.html")
    own = layout_key(graph, "ships.html")
    for name in ("one.html", "ships.html"):
        graph.purge(name, reason="asked for")
    librarian = graph.opened.librarian
    assert librarian.has_content(shared)
    assert not librarian.has_content(own)
    assert block_kinds(graph, "two.html") == ["heading", "prose"]
    assert graph.integrity().ok
