"""A graph that follows folders: a round now, and one after each change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest

from tests.support.workers import edges, open_graph
from tgraph.engine import folder_watch
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.index.run import IndexReport
from tgraph.errors import StoreError, UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("Marie Curie discovered polonium.\n")
    return tmp_path / "d"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watch, "QUIET_MS", 200)
    monkeypatch.setattr(folder_watch, "RETRY_SECONDS", 0.1)


def rounds(graph: KnowledgeGraph, folder: Path, **options: Any) -> Iterator[IndexReport]:
    """Rounds of a watch that ends by itself where none comes."""
    stop = Event()
    timer = Timer(60, stop.set)
    timer.daemon = True
    timer.start()
    return graph.follow([folder], stop=stop, **options)


def test_each_change_is_a_round_and_the_graph_inside_the_folder_is_none(folder):
    with open_graph(folder / "graph") as graph:
        following = rounds(graph, folder, prune=True)
        assert len(next(following).indexed) == 1
        (folder / "b.txt").write_text("Pierre Curie worked in Paris.\n")
        (folder / ".hidden.txt").write_text("Marie Curie won a prize.\n")
        assert [Path(path).name for path in next(following).indexed] == ["b.txt"]
        (folder / "a.txt").unlink()
        assert [Path(path).name for path in next(following).pruned] == ["a.txt"]
        assert edges(graph.root) == {"pierre-curie worked-in paris"}


def test_a_bad_file_and_a_failed_round_do_not_end_it(folder, monkeypatch):
    said: list[str] = []
    with open_graph(folder.parent / "g") as graph:
        following = rounds(graph, folder, message=said.append)
        next(following)
        (folder / "half.json").write_text('{"title": ')
        assert len(next(following).failed) == 1
        index, failing = KnowledgeGraph.index, iter([True])

        def fail_once(self: KnowledgeGraph, *arguments: Any, **options: Any) -> IndexReport:
            if next(failing, False):
                raise StoreError("The disk is full.")
            return index(self, *arguments, **options)

        monkeypatch.setattr(KnowledgeGraph, "index", fail_once)
        (folder / "half.json").write_text('{"title": "Marie Curie"}')
        report = next(following)
        assert (report.failed, len(report.indexed)) == ((), 1)
        assert said == ["The disk is full. The next round is in 0 seconds."]


def test_the_stop_event_ends_it_and_only_folders_are_watched(folder):
    stop = Event()
    with open_graph(folder.parent / "g") as graph:
        with pytest.raises(UsageError, match=r"a\.txt is no folder"):
            graph.follow([folder / "a.txt"])
        reports = []
        for report in graph.follow([folder], stop=stop):
            reports.append(report)
            stop.set()
        assert len(reports) == 1
