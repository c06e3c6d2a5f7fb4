"""A prompt that the model server refuses costs its item alone, which is named."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import tgraph
from tgraph.engine.index.run import IndexReport
from tgraph.errors import EndpointError, RefusedPromptError
from tgraph.testing import Fault, ScriptedServer
from tgraph.testing.faults import FaultKind

TEXT = "The harbour of {0} was opened by {1}. Norrland was praised by {1}.\n"
PEOPLE = {"Sandvik": "Anna Lund", "Larvik": "Karin Berg", "Horten": "Bo Dahl"}
QUESTION = "Who opened the harbour of Larvik?"


class Refusing(ScriptedServer):
    """A server that refuses prompts of some steps that name Karin Berg."""

    steps: Collection[str] = ()

    def refusal(self, request: Any, fault: Fault | None) -> tuple[int, dict[str, str]] | None:
        if request.step in self.steps and "Karin" in str(request.body["messages"]):
            return 400, {"message": "内容存在风险"}
        return super().refusal(request, fault)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for town, person in PEOPLE.items():
        (tmp_path / f"docs/{town}.md").write_text(TEXT.format(town, person))
    return tmp_path


def open_graph(home: Path, server: ScriptedServer, told: list[str]) -> tgraph.KnowledgeGraph:
    settings = {
        "chat.base_url": server.base_url,
        "chat.model": "m",
        "chat.retries": 0,
        "embedding.provider": "hashing",
        "reader.model": "none",
    }
    return tgraph.open(home / "g", create=True, settings=settings, message=told.append)


def index(home: Path, server: ScriptedServer, told: list[str]) -> IndexReport:
    with open_graph(home, server, told) as graph:
        report: IndexReport = graph.index([home / "docs"])
        assert graph.integrity().ok
        return report


@pytest.mark.parametrize(
    ("step", "message", "dropped"),
    [
        ("extract_graph", "Nothing was extracted from Larvik, chunk 1", "chunk whose reply"),
        ("extract_graph_more", "Larvik, chunk 1 is read in part", "further round whose reply"),
        ("summarise_descriptions", "were joined, not summarised", "summary whose reply"),
        ("community_report", "quotes the sources", "community report whose reply"),
    ],
)
def test_a_refused_prompt_costs_its_item_and_the_run_goes_on(home, step, message, dropped):
    told: list[str] = []
    with Refusing() as server:
        server.steps = (step,)
        report = index(home, server, told)
    assert len(report.indexed) == len(PEOPLE)
    assert any(message in text for text in told)
    assert any(reason.startswith(dropped) for reason in report.dropped)
    others = [r.body for r in server.requests if "Karin" not in str(r.body["messages"])]
    assert {body["response_format"]["type"] for body in others} == {"json_schema"}


@pytest.mark.parametrize("kind", ["empty", "length", "think_unclosed"])
def test_a_reply_that_lacks_something_names_its_chunk(home: Path, kind: FaultKind) -> None:
    told: list[str] = []
    with ScriptedServer(faults=[Fault(kind, "extract_graph")]) as server:
        report = index(home, server, told)
    assert len(report.indexed) == len(PEOPLE)
    assert all(any(f"{town}, chunk 1" in text for text in told) for town in PEOPLE)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 500])
def test_a_server_that_refuses_all_ends_the_run(home: Path, status: int) -> None:
    with ScriptedServer() as server:
        server.refusal = lambda request, fault: (status, {"message": "Go away."})  # type: ignore[method-assign]
        with pytest.raises(EndpointError):
            index(home, server, [])


@pytest.mark.parametrize("step", ["select_edges", "synthesise_answer"])
def test_a_refused_question_ends_with_a_record(home: Path, step: str) -> None:
    told: list[str] = []
    with Refusing() as server, open_graph(home, server, told) as graph:
        graph.index([home / "docs"])
        server.steps = (step,)
        with pytest.raises(RefusedPromptError, match=step):
            graph.ask(QUESTION, mode="graph")
        trace = graph.trace("last")
        assert trace.status == "failed"
        assert graph.replay(trace.explain_id).is_same


def test_a_graph_that_is_indexed_is_said_to_be_read_as_text(home: Path) -> None:
    told: list[str] = []
    (home / "docs/a.ttl").write_text("<urn:a> <urn:b> <urn:c> .\n")
    with ScriptedServer() as server:
        index(home, server, told)
    [text] = [text for text in told if "RDF" in text]
    assert "a.ttl" in text
    assert "tgraph import" in text
