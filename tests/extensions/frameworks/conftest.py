"""A small graph for the frameworks, and no network: what they do is done on this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import tgraph
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

CURIE = """# Marie Curie

Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie at the Sorbonne.
Henri Becquerel shared the Nobel Prize with Marie Curie.
"""
SHIPS = "The Fram carried Roald Amundsen to the Bay of Whales.\r\nColin Archer built the Fram.\r\n"
TEXTS = {"curie.md": CURIE, "ships.txt": SHIPS}
QUESTION = "What did Marie Curie discover with Pierre Curie and Henri Becquerel?"


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs the asynchronous ones of LangChain's tests."""
    function = pyfuncitem.obj
    if not asyncio.iscoroutinefunction(function):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(function(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="package")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = tmp_path_factory.mktemp("frameworks")
    for name, text in TEXTS.items():
        (folder / name).write_bytes(text.encode())
    parts = Components(
        load_settings(None), folder / "cache", chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    with tgraph.open(folder / "graph", create=True, parts=parts) as made:
        assert not made.index([folder / name for name in TEXTS]).failed
        yield made


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*address: object, **how: object) -> None:
        raise AssertionError(f"a connection to {address}")

    for of, name in (
        (socket.socket, "connect"),
        (socket.socket, "connect_ex"),
        (socket, "getaddrinfo"),
    ):
        monkeypatch.setattr(of, name, refuse)


def is_exact(metadata: dict[str, object]) -> bool:
    """Whether the quote is what stands at its place."""
    text = TEXTS[Path(str(metadata["path"])).name]
    start, end = metadata["start"], metadata["end"]
    assert isinstance(start, int)
    assert isinstance(end, int)
    return text[start:end] == metadata["quote"]
