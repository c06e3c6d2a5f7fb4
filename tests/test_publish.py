"""A graph in a triple store of others: the same, as often as it is published, wherever it ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyoxigraph import NamedNode, Quad

from tests.endpoints import free_port, oxigraph_server, virtuoso_server
from tests.workers import open_graph
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import EndpointError, QueryError, StoreError, UsageError
from tgraph.explain.audit.named_audits import find_audit, list_audits, run_audit
from tgraph.explain.export.publishing import CURSOR, publish
from tgraph.store.base import Store
from tgraph.store.sparql_endpoint import SparqlEndpoint, SparqlStore

TEXTS = {
    "a": "Robert Falcon Scott led Terra Nova Expedition.\nScott reached South Pole.\n",
    "b": "Roald Amundsen reached South Pole.\nWord “ü” \\ lies in quotes.\n",
}


@pytest.fixture(scope="module")
def oxigraph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparqlEndpoint]:
    with oxigraph_server(tmp_path_factory.mktemp("oxigraph")) as found:
        yield found


@pytest.fixture
def empty(oxigraph: SparqlEndpoint) -> SparqlEndpoint:
    oxigraph.update("CLEAR ALL")
    return oxigraph


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path / "g") as kg:
        index(kg, tmp_path, **TEXTS)
        kg.ask("Who reached the South Pole?")
        yield kg


def index(kg: KnowledgeGraph, folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    assert not kg.index([folder / f"{name}.txt" for name in texts]).failed


def quads(store: Store) -> set[Quad]:
    return {quad for quad in store.match() if quad.graph_name != CURSOR}


def test_everything_is_there_and_once_more_changes_nothing(
    graph: KnowledgeGraph, empty: SparqlEndpoint, tmp_path: Path
) -> None:
    there = SparqlStore(empty)
    done = graph.publish(empty.update_url)
    assert (done.before, done.classic, done.anew) == (0, False, False)
    assert done.after == graph.integrity().sequence
    assert quads(there) == set(graph.read().match())
    assert graph.publish(empty.update_url).quads == 0
    index(graph, tmp_path, a="Ernest Shackleton led Nimrod Expedition.\n")
    graph.ask("Who led the Nimrod Expedition?")
    graph.retract(str(tmp_path / "b.txt"), reason="withdrawn")
    more = graph.publish(empty.update_url)
    assert more.before == done.after < more.after
    assert quads(there) == set(graph.read().match())


def test_an_erased_text_is_there_no_more(
    graph: KnowledgeGraph, empty: SparqlEndpoint, tmp_path: Path
) -> None:
    graph.publish(empty.update_url)
    graph.purge(str(tmp_path / "b.txt"), reason="a request")
    assert graph.publish(empty.update_url).anew
    there = SparqlStore(empty)
    assert quads(there) == set(graph.read().match())
    assert not any("Amundsen" in str(quad) for quad in there.match())


class Breaking:
    """An endpoint that is cut off after so many updates."""

    def __init__(self, endpoint: SparqlEndpoint, after: int) -> None:
        self._endpoint = endpoint
        self.left = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._endpoint, name)

    def update(self, text: str) -> None:
        if not self.left:
            raise EndpointError("cut off")
        self.left -= 1
        self._endpoint.update(text)


def test_wherever_it_is_cut_off_it_goes_on(
    graph: KnowledgeGraph, empty: SparqlEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tgraph.explain.export.publishing.AT_ONCE", 60)
    store, librarian = graph.read(), graph.librarian
    for after in range(1, 60):
        cut: Any = Breaking(empty, after)
        try:
            publish(store, librarian, cut)
        except EndpointError:
            continue
        break
    else:
        pytest.fail("it never came to its end")
    assert after > 5
    assert quads(SparqlStore(empty)) == set(store.match())


def test_what_another_graph_published_is_left_alone(
    graph: KnowledgeGraph, empty: SparqlEndpoint, tmp_path: Path
) -> None:
    graph.publish(empty.update_url)
    with open_graph(tmp_path / "other") as other:
        index(other, tmp_path, c="Otto Nordenskjöld led Swedish Expedition.\n")
        with pytest.raises(UsageError, match="something else"):
            other.publish(empty.update_url)
        assert quads(SparqlStore(empty)) == set(graph.read().match())
        other.publish(empty.update_url, anew=True)
        assert quads(SparqlStore(empty)) == set(other.read().match())


# --- what runs there ---

_ZEROS = re.compile(r"(?<=\d)0*(?:\+00:00|Z)$")
"""What Virtuoso leaves out of times."""


def rows(store: Store, name: str) -> list[tuple[str, ...]]:
    found = run_audit(store, v.collection_iri("explainability"), find_audit(name)).rows
    return sorted(tuple(_ZEROS.sub("", text) for text in row) for row in found)


def audits() -> list[str]:
    """Those that need nobody to say anything, as far as they are one query."""
    own = [each for each in list_audits() if each.name not in ("shapes", "integrity", "knowledge")]
    own = [each for each in own if each.name != "ontology"]
    return [a.name for a in own if all(p.default is not None for p in a.parameters)]


def test_audits_have_the_same_rows_there(graph: KnowledgeGraph, empty: SparqlEndpoint) -> None:
    graph.publish(empty.update_url)
    compared = 0
    for name in audits():
        assert rows(SparqlStore(empty), name) == rows(graph.read(), name), name
        compared += bool(rows(graph.read(), name))
    assert compared > 8


_WITH_TERMS = {"contradictions", "fact-sources", "influential-edges", "never-selected", "not-used"}
_WITH_TERMS |= {"summary-sources"}
_TOO_MUCH = {"extraction-losses", "stale-answers"}
"""Virtuoso 7.2.5 reports an error of its own compiler (SQ156)."""
_ANOTHER_WAY = {"sessions", "slowest-steps"}
"""There an empty text is in none, and durations have more digits."""


def test_virtuoso_has_the_classic_view(graph: KnowledgeGraph, tmp_path: Path) -> None:
    with virtuoso_server(tmp_path) as endpoint:
        publish(graph.read(), graph.librarian, endpoint)
        assert publish(graph.read(), graph.librarian, endpoint).quads == 0
        there, same = SparqlStore(endpoint), 0
        for name in audits():
            try:
                found = rows(there, name)
            except QueryError:
                assert name in _WITH_TERMS | _TOO_MUCH
                continue
            assert name in _ANOTHER_WAY or found == rows(graph.read(), name), name
            same += name not in _ANOTHER_WAY
        assert same > 20
        statements = list(there.match(None, v.RDF_TYPE, NamedNode(v.RDF + "Statement")))
        assert len(statements) == len(list(graph.read().match(None, v.RDF_REIFIES)))


# --- reading ---


def test_questions_may_read_an_endpoint(
    graph: KnowledgeGraph, empty: SparqlEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.publish(empty.update_url)
    asked: list[str] = []
    post = SparqlEndpoint._post

    def noted(self: SparqlEndpoint, url: str, *others: Any) -> bytes:
        asked.append(url)
        return post(self, url, *others)

    monkeypatch.setattr(SparqlEndpoint, "_post", noted)
    for mode in ("graph", "local", "basic", "lightrag-mix"):
        here = graph.ask("Who reached the South Pole?", mode, history=())
        with open_graph(graph.root, settings={"store.url": empty.query_url}) as there:
            there.ask("Who led the Terra Nova Expedition?", mode, history=())
            asked.clear()
            answer = there.ask("Who reached the South Pole?", mode, history=())
            assert len(asked) <= 10, (mode, asked)
            assert answer.text == here.text
    index(graph, tmp_path, c="Carsten Borchgrevink led Southern Cross Expedition.\n")
    with (
        open_graph(graph.root, settings={"store.url": empty.query_url}) as there,
        pytest.raises(StoreError, match="generation"),
    ):
        there.ask("Who reached the South Pole?")


# --- the command ---


def test_the_command_says_what_it_did(graph: KnowledgeGraph, empty: SparqlEndpoint) -> None:
    def run(*options: str) -> Any:
        return CliRunner().invoke(cli, ["publish", "-r", str(graph.root), "-q", *options])

    result = run("--to", empty.update_url)
    assert result.exit_code == 0, result.output
    assert "entries of the chain to" in result.output
    assert '"quads": 0' in run("--to", empty.update_url, "--json").output
    nowhere = run("--to", f"http://127.0.0.1:{free_port()}/update")
    assert nowhere.exit_code == 5
    assert "can't be reached" in nowhere.output
    assert run("--to", "ftp://x").exit_code == 2
    assert run().exit_code == 2
