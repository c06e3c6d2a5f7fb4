"""Bounds of what clients may have of a server: uploads, jobs, results, sessions of agents."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.extensions.server.conftest import (
    API,
    QUESTION,
    Running,
    make_graph,
    running,
    until,
)
from tgraph.extensions.server.access import Access
from tgraph.extensions.server.connections import ConnectionLimits
from tgraph.extensions.server.jobs import Jobs
from tgraph.extensions.server.service import ServerLimits
from tgraph.vocabulary import SOURCE_GRAPH

UPLOAD = (
    "POST {api}/documents HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000\r\n\r\n"
    '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nThe '
)


def open_socket(server: Running) -> socket.socket:
    place = urlsplit(server.address)
    assert place.hostname is not None
    assert place.port is not None
    return socket.create_connection((place.hostname, place.port), timeout=20)


def receive_all(client: socket.socket) -> bytes:
    received = b""
    while part := client.recv(65536):
        received += part
    return received


def job_folders(root: Path) -> list[Path]:
    return [folder for folder in (root / "jobs").iterdir() if folder.is_dir()]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_graph(tmp_path_factory.mktemp("made"))


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A graph of the test's own."""
    return Path(shutil.copytree(made, tmp_path / "g"))


@pytest.fixture
def paused(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server whose index jobs wait, with few places for uploads and jobs."""
    monkeypatch.setattr(Jobs, "_next_job", lambda jobs: None)
    tokens = {"Ann": Access("Ann"), "Bob": Access("Bob")}
    limits: Any = {"uploads": 4, "uploads_each": 2, "jobs": 5, "jobs_each": 3}
    quick = ConnectionLimits(body_seconds=5)
    with running(root, tokens, quick, **limits) as server:
        yield server


def send_file(server: Running, person: str, name: str = "a.txt") -> httpx.Response:
    with server.client(person) as client:
        return client.post(f"{API}/documents", files={"file": (name, b"Radium glows.")})


def test_a_person_keeps_so_many_jobs_and_others_have_their_place(paused: Running) -> None:
    statuses = [send_file(paused, "Ann").status_code for _ in range(5)]
    assert statuses == [202, 202, 202, 429, 429]
    assert [send_file(paused, "Bob").status_code for _ in range(3)] == [202, 202, 429]
    assert len(job_folders(paused.root)) == 5
    with paused.client("Ann") as client:
        job = client.get(f"{API}/jobs").json()[-1]
        client.delete(f"{API}/jobs/{job['id']}")
    assert send_file(paused, "Ann").status_code == 202


def test_a_person_uploads_so_much_at_once_and_what_is_broken_off_is_removed(
    paused: Running,
) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(open_socket(paused)) for _ in range(2)]
        for client in slow:
            client.sendall(UPLOAD.format(api=API, token=paused.tokens["Ann"]).encode())
        until(lambda: len(job_folders(paused.root)) == 2)
        refused = send_file(paused, "Ann")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert send_file(paused, "Bob").status_code == 202
    until(lambda: len(job_folders(paused.root)) == 1)
    assert send_file(paused, "Ann").status_code == 202


def test_an_upload_whose_server_was_killed_is_removed(root: Path) -> None:
    killed, later = Jobs(root, ServerLimits()), Jobs(root, ServerLimits())
    upload = killed.begin("default", "Ann", reinstate=False)
    later.remove_abandoned()
    assert later.find("default", upload.job.id).status == "receiving"
    upload.lock.release()  # as the system does with a process that is killed
    later.remove_abandoned()
    assert later.list_jobs("default") == []
    assert job_folders(root) == []


def test_a_request_with_both_lengths_ends_its_connection(server: Running) -> None:
    head = b"POST /sparql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/sparql-query\r\n"
    both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    with open_socket(server) as client:
        body = b"10\r\nASK { ?s ?p ?o }\r\n0\r\n\r\n"
        client.sendall(head + both + body + b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        received = receive_all(client)
    assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("header", ["Host", "Origin"])
def test_a_host_that_is_none_is_told(server: Running, header: str) -> None:
    lines = {"Host": "127.0.0.1", header: "http://[evil" if header == "Origin" else "[evil"}
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with open_socket(server) as client:
        client.sendall(f"GET {API}/sessions HTTP/1.1\r\n{text}Connection: close\r\n\r\n".encode())
        received = receive_all(client).decode()
    assert received.startswith("HTTP/1.1 400")
    assert f"The header {header} " in received


def test_a_body_that_trickles_ends(root: Path) -> None:
    limits = ConnectionLimits(body_seconds=5, whole_body_seconds=0.5)
    with running(root, connections=limits) as server:
        with open_socket(server) as client:
            client.sendall(UPLOAD.format(api=API, token="").encode())
            until(lambda: job_folders(server.root))
            assert b" 202 " not in receive_all(client)
        until(lambda: not job_folders(server.root))


def test_a_result_has_so_many_bytes(root: Path) -> None:
    pairs = "?a ?b ?c . ?d ?e ?f"
    with running(root, result_kb=4) as server, server.client() as client:
        small = client.get("/sparql", params={"query": "SELECT * { ?a ?b ?c } LIMIT 3"})
        assert small.status_code == 200
        query = {"query": f"CONSTRUCT {{ ?a ?b ?f }} WHERE {{ {pairs} }}"}
        for refused in (
            client.get("/sparql", params={"query": f"SELECT * {{ {pairs} }}"}),
            client.get("/sparql", params=query, headers={"Accept": "application/ld+json"}),
            client.get("/graphs", params={"graph": SOURCE_GRAPH.value}),
        ):
            assert (refused.status_code, "4 kB" in refused.json()["detail"]) == (422, True)
    with (
        running(root, result_kb=100) as server,
        server.client() as client,
        pytest.raises(httpx.RemoteProtocolError),  # it is cut off, and never looks whole
    ):
        client.get("/sparql", params={"query": f"SELECT * {{ {pairs} }}"})


def test_who_takes_a_result_slowly_lets_go_of_the_query(root: Path) -> None:
    """A byte now and then keeps the connection, and not the place among audits."""
    path = httpx.URL("/sparql", params={"query": "SELECT * { ?a ?b ?c . ?d ?e ?f }"})
    with running(root, query_seconds=1.5) as server, ExitStack() as stack:
        client = stack.enter_context(open_socket(server))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(f"GET {path.raw_path.decode()} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        until(lambda: server.service.waiting("audit"))
        ended = threading.Event()

        def sip() -> None:
            while not ended.wait(0.05) and client.recv(1024):
                pass

        reader = threading.Thread(target=sip)
        reader.start()
        until(lambda: not server.service.waiting("audit"))
        ended.set()
        reader.join()


def test_who_waits_too_long_for_a_place_is_told(root: Path) -> None:
    with running(root, asking=1, waiting_seconds=0.2) as server:
        free = threading.Event()
        held = server.service._queues["ask"].submit(lambda: free.wait(30))
        with server.client() as client:
            asked = {"question": QUESTION, "mode": "graph"}
            busy = client.post(f"{API}/ask", json=asked)
            assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")
            streamed = client.post(f"{API}/ask", json={**asked, "stream": True})
            assert "event: error" in streamed.text
            assert server.service.waiting("ask") == 1
            free.set()
            held.result()
            assert client.post(f"{API}/ask", json=asked).status_code == 200


def test_agents_leave_no_session_behind(server: Running) -> None:
    """Each request of an agent is of its own: there is no session to hold, or to take over."""
    accepted = {"Accept": "application/json, text/event-stream"}
    begin = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    }
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {
            "name": "ask",
            "arguments": {"question": QUESTION, "mode": "graph"},
            "_meta": {"progressToken": 7},
        },
    }
    with server.client() as client:
        for _ in range(20):
            begun = client.post("/mcp", json=begin, headers=accepted)
            assert begun.status_code == 200
            assert "mcp-session-id" not in begun.headers
        told = client.post("/mcp", json=call, headers=accepted)
        lines = [json.loads(x[6:]) for x in told.text.splitlines() if x.startswith("data: {")]
        assert [line.get("method") for line in lines[:-1]] == ["notifications/progress"] * 4
        assert lines[-1]["result"]["structuredContent"]["answer"]
        assert client.get("/mcp", headers=accepted).status_code == 405
