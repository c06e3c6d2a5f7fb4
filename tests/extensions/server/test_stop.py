"""SIGTERM ends the server within its minute, whatever clients, models and jobs do."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

import tgraph
from tests.extensions.server.conftest import API, QUESTION, VALUES, make_graph, small_parts, until
from tgraph.extensions.server.service import StopTimes
from tgraph.testing import Fault, ScriptedServer

SERVE = """
import json, sys
from pathlib import Path
from tgraph.engine.components import Components
from tgraph.extensions.server.run import Serving, serve
from tgraph.extensions.server.service import StopTimes
root, settings, stuck = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "True"
if stuck:
    Components.cancel = lambda components: None
stop = StopTimes(drain=2, abort=2)
serve(Serving(Path(root), port=0, settings=settings, stop=stop), print)
"""


@contextmanager
def serving(
    root: Path, settings: dict[str, str], *, stuck: bool
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and where it is reached."""
    command = [sys.executable, "-u", "-c", SERVE, str(root), json.dumps(settings), str(stuck)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split()[-1].rstrip("/")
        finally:
            process.kill()


def test_the_times_of_a_stop_are_within_a_minute() -> None:
    times = StopTimes()
    assert times.drain + times.grace + times.abort < times.last < 60


@pytest.mark.slow
@pytest.mark.parametrize("stuck", [False, True])
def test_a_stop_ends_work_that_waits_for_a_slow_model(tmp_path: Path, stuck: bool) -> None:
    """``stuck``: a thread that can't be told to stop; its session is on record all the same."""
    root = make_graph(tmp_path)
    with ScriptedServer(faults=[Fault("hang")]) as model, ExitStack() as stack:
        settings = {**VALUES, "chat.base_url": model.base_url, "chat.model": "scripted"}
        process, address = stack.enter_context(serving(root, settings, stuck=stuck))
        until(lambda: answers(address))
        client = stack.enter_context(httpx.Client(base_url=address, timeout=120))
        job = client.post(f"{API}/documents", files={"file": ("b.txt", b"Ann met Bob.")}).json()
        asking = [threading.Thread(target=ask, args=(address,)) for _ in range(2)]
        for thread in asking:
            thread.start()
        deaf = stack.enter_context(ask_without_reading(address))
        until(lambda: len(model.requests) - model.count("extract_graph") >= 3)
        until(lambda: model.count("extract_graph") >= 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        deaf.close()
        for thread in asking:
            thread.join()
    with tgraph.open(root, settings=VALUES, parts=small_parts(root / "c")) as graph:
        assert graph.integrity().ok
        statuses = [each.status for each in graph.sessions.summaries()]
    assert sorted(statuses) == ["aborted"] * 3 + ["completed"]
    stored_job = json.loads((root / "jobs" / job["id"] / "job.json").read_text())
    assert stored_job["status"] == "running"  # the next server goes on with it
    assert (root / "jobs" / job["id"] / "files" / "b.txt").exists()


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health").status_code == 200
    except httpx.TransportError:
        return False


def ask(address: str) -> None:
    with suppress(httpx.TransportError):
        httpx.post(f"{address}{API}/ask", json={"question": QUESTION}, timeout=120)


def ask_without_reading(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)))
    body = json.dumps({"question": QUESTION, "mode": "graph", "stream": True})
    head = f"POST {API}/ask HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    client.sendall((head + body).encode())
    return client
