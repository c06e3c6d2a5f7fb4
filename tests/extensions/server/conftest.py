"""A server in a thread of the test, on a small graph, spoken to over a real socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

import tgraph
from tests.support.workers import LineParts
from tgraph.extensions.server.access import (
    Access,
    Right,
    Token,
    Tokens,
    edit_tokens,
    new_token,
    token_hash,
)
from tgraph.extensions.server.app import create_app
from tgraph.extensions.server.connections import ConnectionLimits, bounded_protocol
from tgraph.extensions.server.service import ServerLimits, Service
from tgraph.models.hashing import HashingEmbedder
from tgraph.settings import load_settings

TEXT = "Marie Curie discovered polonium.\nMarie Curie discovered radium.\n"
QUESTION = "Who discovered polonium?"
VALUES = {"embedding.provider": "hashing"}
API = "/api/v1/collections/default"


def small_parts(folder: Path) -> LineParts:
    return LineParts(load_settings(None, VALUES), folder, embedder=HashingEmbedder())


@dataclass
class Running:
    """A server that runs: where it is reached, and what it stands on."""

    address: str
    service: Service
    root: Path
    tokens: dict[str, str]

    def client(self, token: str | None = None) -> httpx.Client:
        options: dict[str, Any] = {"timeout": 60, "verify": False}  # no TLS to prepare for
        return httpx.Client(base_url=self.address, headers=self.headers(token), **options)

    def headers(self, token: str | None) -> dict[str, str]:
        """What a client with the token of that name, or that text, sends."""
        text = None if token is None else self.tokens.get(token, token)
        return {} if text is None else {"Authorization": f"Bearer {text}"}


CONNECTIONS = ConnectionLimits()


@contextmanager
def running(
    root: Path,
    tokens: dict[str, Access] | None = None,
    connections: ConnectionLimits = CONNECTIONS,
    stopping: threading.Event | None = None,
    **limits: Any,
) -> Iterator[Running]:
    """A server of the graph; with ``tokens`` there is one for each name.

    While ``stopping`` is set, the server refuses new connections as if it were stopping."""
    texts = {name: new_token() for name in tokens or {}}
    file = None
    if tokens is not None:
        file = root.parent / f"{root.name}-tokens.toml"
        known = [Token(token_hash(texts[name]), access) for name, access in tokens.items()]
        with edit_tokens(file) as stored:
            stored[:] = known
    service = Service(root, ServerLimits(**limits), VALUES, parts=small_parts(root / "cache"))
    app = create_app(service, Tokens(file) if file else None)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        http=bounded_protocol(connections, (stopping or threading.Event()).is_set),
        log_config=None,
        lifespan="on",
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = listening.getsockname()[1]
        yield Running(f"http://127.0.0.1:{port}", service, root, texts)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def make_graph(folder: Path) -> Path:
    """A graph of one document with one session."""
    (folder / "curie.txt").write_text(TEXT)
    root = folder / "g"
    parts = small_parts(folder / "cache")
    with tgraph.open(root, create=True, settings=VALUES, parts=parts) as graph:
        graph.index([folder / "curie.txt"])
        graph.ask(QUESTION, "graph", history=())
    return root


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server without tokens, for tests that leave no trace in one another's."""
    with running(make_graph(tmp_path_factory.mktemp("server"))) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[httpx.Client]:
    with server.client() as found:
        yield found


def rights(*given: Right, collections: tuple[str, ...] = ("*",)) -> Access:
    return Access("Ann", collections, given)


def until(holds: Callable[[], Any], attempts: int = 1_200) -> Any:
    """Return the first true value; a slow machine takes longer for its attempts."""
    for _ in range(attempts):
        if value := holds():
            return value
        time.sleep(0.05)
    raise AssertionError("The condition never held.")
