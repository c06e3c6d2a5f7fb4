"""``tgraph serve`` as a process: how it starts, stops and loses nothing."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import tgraph
from tests.extensions.server.conftest import (
    API,
    QUESTION,
    VALUES,
    make_graph,
    running,
    small_parts,
    until,
)
from tgraph.errors import TgraphError

COMMAND = [sys.executable, "-c", "from tgraph.cli.scripts import main; main()"]


@contextmanager
def serving(root: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and where it is reached."""
    command = [*COMMAND, "serve", "--root", str(root)]
    options = ["--port", "0", "--embedding-provider", "hashing", *flags]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = (line for line in process.stderr)
            found = next(filter(None, (re.search(r"http://\S+", line) for line in lines)), None)
            assert found, "the server said no address"
            yield process, found[0].rstrip("/")
        finally:
            process.kill()


def status(address: str) -> int:
    try:
        return httpx.get(f"{address}/health").status_code
    except httpx.TransportError:
        return 0


def recorded(root: Path) -> dict[str, str]:
    with tgraph.open(root, settings=VALUES, parts=small_parts(root / "c")) as graph:
        assert graph.integrity().ok
        return {each.explain_id: each.status for each in graph.sessions.summaries()}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_in_the_middle_loses_no_answer(tmp_path: Path, workers: int) -> None:
    root = make_graph(tmp_path)
    answered: list[str] = []

    def keep_asking(address: str) -> None:
        with httpx.Client(base_url=address, timeout=60) as client:
            while True:
                try:
                    asked = {"question": QUESTION, "mode": "graph"}
                    reply = client.post(f"{API}/ask", json=asked)
                except httpx.TransportError:
                    return
                if reply.status_code == 200:
                    answered.append(reply.json()["explain_id"])

    with serving(root, "--workers", str(workers)) as (process, address):
        until(lambda: status(address) == 200)
        clients = [threading.Thread(target=keep_asking, args=(address,)) for _ in range(4)]
        for each in clients:
            each.start()
        until(lambda: len(answered) > 8)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        for each in clients:
            each.join()
    record = recorded(root)
    assert {record[session] for session in answered} == {"completed"}
    assert set(record.values()) == {"completed"}


@pytest.mark.slow
def test_who_goes_away_ends_the_session_as_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, going_on = make_graph(tmp_path), threading.Event()
    from tgraph.retrieve.search.graph import GraphRetriever

    retrieve = GraphRetriever.retrieve

    def slowly(self, *given):
        going_on.wait(30)
        return retrieve(self, *given)

    monkeypatch.setattr(GraphRetriever, "retrieve", slowly)
    with running(root) as server, server.client() as client:
        asked = {"question": QUESTION, "mode": "graph", "stream": True}
        with client.stream("POST", f"{API}/ask", json=asked) as response:
            first = next(line for line in response.iter_lines() if line.startswith("data:"))
        session = json.loads(first[6:])["explain_id"]
        going_on.set()
        place = f"{API}/sessions/{session}"
        found = until(lambda: (r := client.get(place)).status_code == 200 and r.json())
        assert found["status"] == "aborted"


@pytest.mark.slow
def test_an_upload_survives_the_server(tmp_path: Path) -> None:
    root = make_graph(tmp_path)
    lines = "".join(f"Scientist {n} studied radium.\n" for n in range(30))
    with serving(root) as (process, address):
        until(lambda: status(address) == 200)
        with httpx.Client(base_url=address, timeout=60) as client:
            job = client.post(f"{API}/documents", files={"file": ("a.txt", lines.encode())}).json()
            until(lambda: client.get(f"{API}/jobs/{job['id']}").json()["status"] == "running")
        process.kill()
    with serving(root) as (_, address):
        until(lambda: status(address) == 200)
        with httpx.Client(base_url=address, timeout=60) as client:
            place = f"{API}/jobs/{job['id']}"
            ended = until(lambda: (found := client.get(place).json())["ended"] and found)
    assert ended["status"] == "done"
    with tgraph.open(root, settings=VALUES) as graph:
        assert "a.txt" in [each.path for each in graph.documents.summaries() if each.standing]


def test_too_much_at_once_is_told(tmp_path: Path) -> None:
    with running(make_graph(tmp_path), asking=1, waiting=0) as server, server.client() as client:
        taken = threading.Event()
        free = threading.Event()

        def hold() -> None:
            taken.set()
            free.wait(30)

        held = server.service._queues["ask"].submit(hold)
        taken.wait(30)
        busy = client.post(f"{API}/ask", json={"question": QUESTION, "mode": "graph"})
        assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")
        assert client.get(f"{API}/sessions").status_code == 200
        free.set()
        held.result()


@pytest.mark.slow
def test_where_nobody_can_listen_it_says_so(tmp_path: Path) -> None:
    root = make_graph(tmp_path)
    with running(root) as server:
        port = server.address.rpartition(":")[2]
        command = [*COMMAND, "serve", "--root", str(root)]
        done = subprocess.run([*command, "--port", port], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Choose another port" in done.stderr


def test_a_folder_that_is_no_graph_is_refused(tmp_path: Path) -> None:
    from tgraph.extensions.server.service import Service

    with pytest.raises(TgraphError):
        Service(tmp_path)


@pytest.mark.slow
def test_a_first_graph_is_made_filled_and_asked_without_the_command_line(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    home = "/workbench/default"
    with (
        serving(root) as (_, address),
        httpx.Client(base_url=address, timeout=60, follow_redirects=True) as client,
    ):
        for page in ("/", "/documents", "/sessions", "/entities", "/catalogue", "/history"):
            shown = client.get(f"{home}{page}")
            assert (shown.status_code, "Bring documents" in shown.text) == (200, True), page
            assert "tgraph index" not in shown.text
        files = [("file", ("curie.txt", b"Marie Curie discovered polonium in Paris."))]
        job = client.post(f"{home}/documents", files=files).url
        until(lambda: "See three questions" in client.get(job).text)
        proposed = client.post(f"{home}/suggest", data={"begin": "yes"}).text
        assert "data-begin" in proposed
        asked = {"question": "Who discovered polonium?", "also": ["What did Marie Curie do?"]}
        answer = client.post(f"{home}/ask", data=asked).text
        assert "Marie Curie discovered polonium" in answer
        assert "You could also ask" in answer
        assert "See three questions" not in client.get(job).text
