"""Connections: clients that are silent, slow or many can't hold the server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.extensions.server.conftest import Running, make_graph, running
from tgraph.extensions.server.connections import ConnectionLimits

LIMITS = ConnectionLimits(connections=12, head_seconds=0.6, body_seconds=0.6, delivery_seconds=0.6)


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(make_graph(tmp_path_factory.mktemp("bounded")), connections=LIMITS) as server:
        yield server


def connect(server: Running) -> socket.socket:
    place = urlsplit(server.address)
    assert place.hostname is not None
    assert place.port is not None
    client = socket.create_connection((place.hostname, place.port), timeout=10)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return client


def read_to_the_end(client: socket.socket) -> bytes:
    """Everything that comes until the server ends the connection."""
    received = b""
    try:
        while part := client.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def waiting(server: Running) -> tuple[int, int]:
    return server.service.waiting("audit"), server.service.waiting("read")


def health(server: Running) -> int:
    return httpx.get(f"{server.address}/health", timeout=10).status_code


def test_idle_connections_beyond_the_bound_are_refused_and_the_others_end(bounded: Running) -> None:
    idle = [connect(bounded) for _ in range(LIMITS.connections + 5)]
    started = time.monotonic()
    replies = [read_to_the_end(client) for client in idle]
    assert time.monotonic() - started < 8
    assert sum(b"503" in reply for reply in replies) == 5
    assert health(bounded) == 200
    for client in idle:
        client.close()


def test_a_head_that_trickles_is_ended(bounded: Running) -> None:
    client = connect(bounded)
    client.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    started = time.monotonic()
    with suppress(OSError):
        while time.monotonic() - started < 8:
            client.sendall(b"X: y\r\n")
            time.sleep(0.1)
    assert time.monotonic() - started < 8
    client.close()


def test_a_body_that_stops_is_ended_and_one_that_goes_on_is_read(bounded: Running) -> None:
    head = b"POST /sparql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 40\r\n"
    head += b"Content-Type: application/sparql-query\r\nConnection: close\r\n\r\n"
    silent = connect(bounded)
    silent.sendall(head + b"ASK {")
    assert b" 200 " not in read_to_the_end(silent)
    slow = connect(bounded)
    slow.sendall(head)
    query = b"ASK { ?s ?p ?o }".ljust(40)
    for at in range(0, 40, 4):
        slow.sendall(query[at : at + 4])
        time.sleep(0.1)
    answer = read_to_the_end(slow)
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_clients_that_do_not_read_let_go_of_the_queries(bounded: Running) -> None:
    query = "SELECT * { ?a ?b ?c . ?d ?e ?f }"
    path = httpx.URL("/sparql", params={"query": query})
    deaf = [connect(bounded) for _ in range(4)]
    for client in deaf:
        client.sendall(f"GET {path.raw_path.decode()} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    while not any(waiting(bounded)):
        time.sleep(0.01)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(waiting(bounded)):
        time.sleep(0.1)
    assert waiting(bounded) == (0, 0)
    for client in deaf:
        client.close()
    assert health(bounded) == 200


def test_a_connection_made_while_the_server_stops_is_refused_and_ended(tmp_path: Path) -> None:
    stopping = threading.Event()
    with running(make_graph(tmp_path), stopping=stopping) as server:
        earlier = httpx.Client(base_url=server.address)
        assert earlier.get("/health").status_code == 200
        stopping.set()
        later = connect(server)
        assert b"The server is stopping" in read_to_the_end(later)
        assert earlier.get("/health").status_code == 200
        later.close()
        earlier.close()
