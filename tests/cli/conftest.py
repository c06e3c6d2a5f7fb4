"""A small graph made by the command line itself, with the scripted server as its model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tgraph.cli.main import cli
from tgraph.testing import ScriptedServer

CURIE = """# Marie Curie

Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie at the Sorbonne.
Henri Becquerel shared the Nobel Prize with Marie Curie.
"""
SHIPS = "The Fram carried Roald Amundsen to the Bay of Whales.\r\nColin Archer built the Fram.\r\n"
QUESTION = "What did Marie Curie discover?"


@dataclass(frozen=True)
class Terminal:
    """Runs ``tgraph`` as a shell would."""

    root: Path
    url: str

    def __call__(self, *arguments: str, code: int | None = 0, **options) -> Result:
        """The result of the command; its exit code must be ``code`` (None: any)."""
        result = CliRunner().invoke(cli, arguments, **options)
        if code is not None:
            assert result.exit_code == code, result.output
        return result

    @property
    def model(self) -> list[str]:
        return ["--base-url", self.url, "--embedding-provider", "hashing"]

    def ask(self, *arguments: str, code: int | None = 0) -> Result:
        return self("ask", "-r", str(self.root), *self.model, *arguments, code=code)


@pytest.fixture(scope="package")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="package")
def documents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    (folder / "curie.md").write_text(CURIE)
    (folder / "ships.txt").write_bytes(SHIPS.encode())
    return folder


@pytest.fixture(scope="package")
def terminal(server, documents, tmp_path_factory) -> Terminal:
    """A terminal beside a graph with two documents and two sessions: an answer and no answer."""
    made = Terminal(tmp_path_factory.mktemp("graphs") / "graph", server.base_url)
    made("index", str(documents), "-r", str(made.root), *made.model)
    made.ask(QUESTION)
    made.ask("zxcvb qwrtp?", code=3)
    return made


@pytest.fixture
def fresh(server, tmp_path) -> Callable[..., Terminal]:
    """Makes a terminal beside an empty folder."""

    def make(url: str = server.base_url) -> Terminal:
        return Terminal(tmp_path / "graph", url)

    return make
