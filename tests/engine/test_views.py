"""One open graph, used by many at the same time, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tgraph
from tests.support.workers import LineParts
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.published_states import Leases
from tgraph.errors import UsageError
from tgraph.models.hashing import HashingEmbedder
from tgraph.settings import load_settings

QUESTION = "Who discovered polonium?"
VALUES = {"embedding.provider": "hashing"}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    parts = LineParts(load_settings(None, VALUES), tmp_path / "cache", embedder=HashingEmbedder())
    with tgraph.open(tmp_path / "g", create=True, settings=VALUES, parts=parts) as graph:
        (tmp_path / "0.txt").write_text("Marie Curie discovered polonium.\n")
        graph.index([tmp_path / "0.txt"])
        yield graph


def ask(graph: KnowledgeGraph, person: str, count: int) -> list[str]:
    sessions = []
    for _ in range(count):
        with graph.view({"person": person}) as view:
            answer = view.ask(QUESTION, "graph", history=())
            assert answer.sentences[0].citations[0].quote == "Marie Curie discovered polonium."
            sessions.append(answer.session)
    return sessions


def look(graph: KnowledgeGraph, count: int) -> int:
    seen = 0
    while count or not seen:
        count -= bool(count)
        with graph.view() as view:
            for summary in view.sessions.summaries(3):
                assert view.trace(summary.explain_id).question == QUESTION
                seen += 1
    return seen


def grow(graph: KnowledgeGraph, folder: Path, count: int) -> None:
    for number in range(1, count + 1):
        (folder / f"{number}.txt").write_text(f"Scientist {number} studied radium.\n")
        with graph.view() as view:
            assert not view.index([folder / f"{number}.txt"]).failed


@pytest.mark.slow
def test_many_ask_and_look_while_the_graph_grows(graph: KnowledgeGraph, tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        asking: list[Future[list[str]]] = [
            pool.submit(ask, graph, f"person {n}", 4) for n in range(3)
        ]
        looking = [pool.submit(look, graph, 4) for _ in range(2)]
        growing = pool.submit(grow, graph, tmp_path, 3)
        growing.result()
        asked = [each.result() for each in asking]
        assert all(each.result() for each in looking)
    sessions = {s.explain_id: s for s in graph.sessions.summaries()}
    assert set(sessions) == {session for each in asked for session in each}
    assert {s.status for s in sessions.values()} == {"completed"}
    for number, each in enumerate(asked):
        assert f'"person {number}"' in graph.export(each[0]).decode()
    assert graph.context().generation == 4
    assert all(graph.replay(each[-1]).is_same for each in asked)
    assert graph.integrity().ok


def test_a_view_reads_to_its_end_what_it_began_with(graph: KnowledgeGraph, tmp_path: Path) -> None:
    with graph.view() as view:
        store = view.opened.read()
        before = set(store.match(None, None, None, None))
        grow(graph, tmp_path, 2)
        graph.opened.read()
        assert graph.context().generation == 3
        assert set(store.match(None, None, None, None)) == before


def test_the_parts_of_a_view_work_with_the_settings_of_the_view(graph: KnowledgeGraph) -> None:
    assert graph.documents is graph.documents
    with graph.view({"person": "Ada Archivist"}) as view:
        view.documents.set_authority("0.txt", 0.5, reason="Hearsay.")
        assert view.documents is not graph.documents
    graph.entities.create("Radium", reason="It is lacking.")
    assert [each.person for each in graph.history.read_curations()] == ["", "Ada Archivist"]


def test_a_view_has_settings_and_a_history_of_its_own(graph: KnowledgeGraph) -> None:
    with graph.view({"graph.edge_limit": 1}) as one, graph.view() as other:
        assert one.settings.graph.edge_limit == 1
        assert other.settings.graph.edge_limit == graph.settings.graph.edge_limit != 1
        one.ask(QUESTION, "graph")
        session = other.ask(QUESTION, "graph").session
        assert "history" not in other.trace(session).parameters
    wrongs: list[dict[str, Any]] = [
        {"graph.edge_limits": 1},
        {"graph.edge_limit": "many"},
        {"grph": {}},
    ]
    for wrong in wrongs:
        with pytest.raises(UsageError, match="setting"), graph.view(wrong):
            pass


class Thing:
    closed = False

    def close(self) -> None:
        self.closed = True


def test_what_was_replaced_is_closed_when_its_last_reader_has_left() -> None:
    leases, things = Leases(), [Thing() for _ in range(3)]
    with leases.reading():
        leases.replace(things[0])
        with leases.reading():
            leases.replace(things[1])
            assert not things[0].closed
        assert not things[1].closed  # the first began before it was replaced
    assert [each.closed for each in things] == [True, True, False]
    leases.replace(things[2])
    assert things[2].closed
