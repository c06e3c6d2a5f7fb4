"""The Model Context Protocol, by the official SDK's client."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CallToolResult, TextContent, TextResourceContents

from tests.extensions.server.conftest import QUESTION, Running, make_graph, rights, running, until

T = TypeVar("T")
ANSWER = "Marie Curie discovered polonium."
TOOLS = {"ask", "search", "trace", "why_not", "verify", "source", "sparql", "audit"}


def with_client(server: Running, work: Callable[[Client], Awaitable[T]], token: str = "") -> T:
    async def run() -> T:
        async with Client(_transport(server, token)) as client:
            return await work(client)

    return anyio.run(run)


def _transport(server: Running, token: str) -> Any:
    if not token:
        return f"{server.address}/mcp"
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    http = httpx2.AsyncClient(headers=server.headers(token))
    return streamable_http_client(f"{server.address}/mcp", http_client=http)


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def structured(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text(result)
    found: Any = result.structured_content
    assert isinstance(found, dict)
    return found


async def work_of_an_analyst(client: Client) -> dict[str, Any]:
    """An answer, checked in every way that there is a tool for."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(listed) == TOOLS
    assert all(tool.output_schema and tool.description for tool in listed.values())
    stages: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        stages.append((progress, total))

    asked = {"question": QUESTION, "mode": "graph"}
    answered = await client.call_tool("ask", asked, progress_callback=on_progress)
    answer = structured(answered)
    assert text(answered).startswith(f"{ANSWER} [1]\n\n[1] ")
    assert answer["sentences"][0]["citations"][0]["quote"] == ANSWER
    assert [done for done, _ in stages] == sorted(done for done, _ in stages)
    citation = answer["sentences"][0]["citations"][0]
    place = {name: citation[name] for name in ("document", "page", "start", "end")}
    quote = structured(await client.call_tool("source", place))
    assert (quote["quote"], quote["after"][:1]) == (ANSWER, "\n")
    session = {"session": answer["explain_id"]}
    trace = await client.call_tool("trace", session)
    assert ANSWER in text(trace)
    why = structured(await client.call_tool("why_not", {**session, "expected": "radium"}))
    assert why["cause"]["cause"] in ("not-selected", "not-used", "used", "not-linked")
    assert structured(await client.call_tool("verify", session))["session"] == session["session"]
    assert structured(await client.call_tool("search", {"query": "polonium", "mode": "basic"}))
    rows = structured(await client.call_tool("sparql", {"query": "SELECT ?s { ?s a ?c }"}))
    assert rows["columns"] == ["s"]
    audit = structured(await client.call_tool("audit", {"name": "integrity"}))
    assert audit["passed"] is True
    return answer


async def read_everything(client: Client) -> None:
    async def read(uri: str) -> str:
        (content,) = (await client.read_resource(uri)).contents
        assert isinstance(content, TextResourceContents)
        return content.text

    base = "tgraph://default"
    assert len((await client.list_resource_templates()).resource_templates) == 6
    document = json.loads(await read(f"{base}/documents"))[0]["document"].rpartition(":")[2]
    assert json.loads(await read(f"{base}/documents/{document}/reading"))["losses"] == []
    page = f"{base}/documents/{document}/pages/0"
    assert (await read(page)).startswith(ANSWER)
    assert await read(f"{page}/quotes/0/{len(ANSWER)}") == ANSWER
    session = json.loads(await read(f"{base}/sessions"))[0]["explain_id"]
    assert json.loads(await read(f"{base}/sessions/{session}"))["explain_id"] == session
    names = [each.name for each in (await client.list_prompts()).prompts]
    assert names == ["analyst", "auditor"]
    prompt = await client.get_prompt("analyst", {"question": QUESTION})
    assert QUESTION in str(prompt.messages[0].content)


def test_an_agent_asks_and_checks_over_http(server: Running) -> None:
    answer = with_client(server, work_of_an_analyst)
    with server.client() as client:
        sessions = client.get("/api/v1/collections/default/sessions").json()
    assert answer["explain_id"] in [each["explain_id"] for each in sessions]
    with_client(server, read_everything)


@pytest.mark.slow
def test_an_agent_is_served_by_a_command(tmp_path: Path) -> None:
    root = make_graph(tmp_path)
    script = "from tgraph.cli.scripts import main; main()"
    arguments = ["-c", script, "mcp", "--root", str(root), "--embedding-provider", "hashing"]
    environment = {**os.environ, "TGRAPH_READER__MODEL": "none"}

    async def run() -> None:
        parameters = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
        async with Client(parameters) as client:
            await work_of_an_analyst(client)

    anyio.run(run)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("ask", {"question": QUESTION, "mode": "best"}, "best"),
        ("ask", {"question": QUESTION, "collection": "absent"}, "There is no collection 'absent'."),
        ("trace", {"session": "zzz"}, "There is no session 'zzz'."),
        ("sparql", {"query": "SELECT"}, "SPARQL is wrong"),
        ("sparql", {"query": "INSERT DATA { <urn:a> <urn:b> 1 }"}, "update"),
        ("audit", {"name": "nothing"}, "There is no audit"),
        ("source", {"document": "no.txt", "start": 0, "end": 1}, "There is no document"),
    ],
)
def test_what_goes_wrong_is_told_by_the_tool(
    server: Running, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async def work(client: Client) -> CallToolResult:
        return await client.call_tool(tool, arguments)

    result = with_client(server, work)
    assert result.is_error
    assert said in text(result)


def test_a_tool_needs_its_right(tmp_path: Path) -> None:
    tokens = {"reader": rights("read"), "asker": rights("ask")}
    with running(make_graph(tmp_path), tokens) as server:

        async def ask(client: Client) -> bool:
            return (await client.call_tool("ask", {"question": QUESTION, "mode": "graph"})).is_error

        async def look(client: Client) -> bool:
            return (await client.call_tool("trace", {"session": "last"})).is_error

        assert [with_client(server, ask, name) for name in tokens] == [True, False]
        assert [with_client(server, look, name) for name in tokens] == [False, True]
        for token in ("", "tg_wrong"):
            with pytest.raises((MCPError, ExceptionGroup)):
                with_client(server, look, token)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("documents", "not have the right to read"),
        ("documents/no.txt/pages/x", "not a whole number"),
        ("documents/no.txt/pages/0/quotes/0/" + "9" * 5_000, "not a whole number"),
        ("documents/no.txt/pages/0", "There is no document"),
    ],
)
def test_what_is_wrong_with_a_resource_is_told_and_fills_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, path: str, said: str
) -> None:
    is_refused = path == "documents"
    tokens = {"any": rights("ask") if is_refused else rights("read")}

    async def read(client: Client) -> str:
        with pytest.raises(MCPError) as wrong:
            await client.read_resource(f"tgraph://default/{path}")
        return str(wrong.value)

    with running(make_graph(tmp_path), tokens) as server:
        assert said in with_client(server, read, "any")
    assert not [record for record in caplog.records if record.exc_info]


def test_a_tool_tells_no_paths_of_the_server(tmp_path: Path) -> None:
    root = make_graph(tmp_path)
    for name in ("store", "snapshots"):
        for file in (root / "collections" / "default" / name).rglob("*.sst"):
            file.write_bytes(b"x" * file.stat().st_size)

    async def ask(client: Client) -> CallToolResult:
        return await client.call_tool("ask", {"question": QUESTION, "mode": "graph"})

    with running(root) as server:
        result = with_client(server, ask)
    assert result.is_error
    assert str(tmp_path) not in text(result)


def test_a_question_that_is_cancelled_is_recorded_as_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    from tgraph.retrieve.search.graph import GraphRetriever

    root = make_graph(tmp_path)
    begun, going_on, retrieve = threading.Event(), threading.Event(), GraphRetriever.retrieve

    def slowly(self, *given):
        begun.set()
        going_on.wait(30)
        return retrieve(self, *given)

    monkeypatch.setattr(GraphRetriever, "retrieve", slowly)

    async def cancel(client: Client) -> None:
        async with anyio.create_task_group() as group:
            asked = {"question": "Who discovered radium?", "mode": "graph"}
            group.start_soon(client.call_tool, "ask", asked)
            await anyio.to_thread.run_sync(begun.wait, 30)
            group.cancel_scope.cancel()

    with running(root) as server, server.client() as client:
        with_client(server, cancel)
        going_on.set()
        place = "/api/v1/collections/default/sessions"
        until(lambda: client.get(place).json()[0]["status"] == "aborted")
