"""A graph in a triple store of others: the same, as often as it is published, wherever it ends."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, NamedNode, Quad

from tests.support.corpora import made, opened
from tests.support.endpoints import free_port, oxigraph_server, virtuoso_server
from tests.support.workers import open_graph
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.progress import Progress
from tgraph.errors import EndpointError, QueryError, StoreError, UsageError
from tgraph.explain.audit.named_audits import find_audit, list_audits, run_audit
from tgraph.extensions.interchange import publish_graph
from tgraph.extensions.interchange.publishing import CURSOR, data_update, publish
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.registry import MODES
from tgraph.store.base import Store
from tgraph.store.sparql_endpoint import SparqlEndpoint, SparqlStore

TEXTS = {
    "a": "Robert Falcon Scott led Terra Nova Expedition.\nScott reached South Pole.\n",
    "b": "Roald Amundsen reached South Pole.\nWord “ü” \\ lies in quotes.\n",
}
MANY_TEXTS = {
    "curie.md": "# Marie Curie\n\nMarie Curie discovered Polonium in Paris in 1898. Pierre Curie"
    " worked with Marie Curie at the Sorbonne. Marie Curie taught physics at the Sorbonne.\n",
    "becquerel.txt": "Henri Becquerel discovered radioactivity in Paris. Henri Becquerel shared the"
    " Nobel Prize with Marie Curie and Pierre Curie in 1903.\n",
    "oslo.txt": "Roald Amundsen sailed from Oslo. Roald Amundsen reached the South Pole in 1911."
    " The Fram carried Roald Amundsen to the Bay of Whales.\n",
}
SECOND = "Where did Roald Amundsen sail from?"


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


@pytest.mark.slow
def test_everything_is_there_and_once_more_changes_nothing(
    graph: KnowledgeGraph, empty: SparqlEndpoint, tmp_path: Path
) -> None:
    there = SparqlStore(empty)
    done = publish_graph(graph, empty.update_url)
    assert (done.before, done.classic, done.anew) == (0, False, False)
    assert done.after == graph.integrity().sequence
    assert quads(there) == set(graph.opened.read().match())
    seen: list[Progress] = []
    assert publish_graph(graph, empty.update_url, progress=seen.append).quads == 0
    index(graph, tmp_path, a="Ernest Shackleton led Nimrod Expedition.\n")
    graph.ask("Who led the Nimrod Expedition?")
    graph.retract(str(tmp_path / "b.txt"), reason="withdrawn")
    more = publish_graph(graph, empty.update_url, progress=seen.append)
    assert {each.total for each in seen} == {0, more.quads}
    assert seen[1].done == 0
    assert seen[-1].done == more.quads
    assert len(seen) > 4, "each request is told of"
    assert more.before == done.after < more.after
    assert quads(there) == set(graph.opened.read().match())


def test_an_erased_text_is_there_no_more(
    graph: KnowledgeGraph, empty: SparqlEndpoint, tmp_path: Path
) -> None:
    publish_graph(graph, empty.update_url)
    graph.purge(str(tmp_path / "b.txt"), reason="a request")
    assert publish_graph(graph, empty.update_url).anew
    there = SparqlStore(empty)
    assert quads(there) == set(graph.opened.read().match())
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
    monkeypatch.setattr("tgraph.extensions.interchange.publishing.AT_ONCE", 60)
    store, librarian = graph.opened.read(), graph.opened.librarian
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
    publish_graph(graph, empty.update_url)
    with open_graph(tmp_path / "other") as other:
        index(other, tmp_path, c="Otto Nordenskjöld led Swedish Expedition.\n")
        with pytest.raises(UsageError, match="something else"):
            publish_graph(other, empty.update_url)
        assert quads(SparqlStore(empty)) == set(graph.opened.read().match())
        publish_graph(other, empty.update_url, anew=True)
        assert quads(SparqlStore(empty)) == set(other.opened.read().match())


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
    publish_graph(graph, empty.update_url)
    compared = 0
    for name in audits():
        assert rows(SparqlStore(empty), name) == rows(graph.opened.read(), name), name
        compared += bool(rows(graph.opened.read(), name))
    assert compared > 8


_TOO_MUCH = {"contradictions"}
"""Virtuoso 7.2.5 reports an error of its own compiler (SQ156)."""


def test_virtuoso_has_the_classic_view(graph: KnowledgeGraph, tmp_path: Path) -> None:
    index(graph, tmp_path, a="Ernest Shackleton led Nimrod Expedition.\n", d="Bread. Butter.\n")
    graph.retract(str(tmp_path / "b.txt"), reason="withdrawn")
    graph.ask("Who led the Nimrod Expedition?", "local")
    with virtuoso_server(tmp_path) as endpoint:
        publish(graph.opened.read(), graph.opened.librarian, endpoint)
        assert publish(graph.opened.read(), graph.opened.librarian, endpoint).quads == 0
        there, told = SparqlStore(endpoint, classic=True), 0
        for name in audits():
            here = rows(graph.opened.read(), name)
            if name in _TOO_MUCH:
                with pytest.raises(QueryError, match="SQ156"):
                    rows(there, name)
                continue
            assert rows(there, name) == here, name
            told += bool(here)
        assert told > 12
        statements = list(there.match(None, v.RDF_TYPE, NamedNode(v.RDF + "Statement")))
        assert len(statements) == len(list(graph.opened.read().match(None, v.RDF_REIFIES)))
        with pytest.raises(UsageError, match="classic view"):
            publish(graph.opened.read(), graph.opened.librarian, endpoint, without_terms=False)


def test_an_answer_that_virtuoso_cuts_off_is_an_error(tmp_path: Path) -> None:
    with virtuoso_server(tmp_path, most_rows=3) as endpoint:
        numbers = [Quad(v.tg("x"), v.tg("y"), Literal(n), v.SOURCE_GRAPH) for n in range(9)]
        endpoint.update(data_update("INSERT", numbers))
        with pytest.raises(EndpointError, match="cut its answer off at 3 rows"):
            list(SparqlStore(endpoint).match(v.tg("x")))


# --- reading ---


REQUESTS = 10
"""Of a warm question. Most modes need one or two."""


@contextmanager
def counted() -> Iterator[list[str]]:
    """The URLs that requests go to meanwhile."""
    asked: list[str] = []
    post = SparqlEndpoint._post_form

    def noted(self: SparqlEndpoint, url: str, *others: Any) -> bytes:
        asked.append(url)
        return post(self, url, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparqlEndpoint, "_post_form", noted)
        yield asked


@pytest.fixture(scope="module", params=["model", "embedded"])
def published(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[KnowledgeGraph, KnowledgeGraph, bool]]:
    """A graph that has what each mode needs, the same read at an endpoint of its own, and whether
    there is a model."""
    folder, model = tmp_path_factory.mktemp("published"), request.param == "model"
    own = {"contextual_search.enabled": True, "raptor.enabled": True}
    with (
        oxigraph_server(folder) as endpoint,
        made(folder, MANY_TEXTS, scripted=model, settings=own) as (kg, chat),
    ):
        publish_graph(kg, endpoint.update_url)
        with opened(folder, chat, {**own, "store.url": endpoint.query_url}) as there:
            yield kg, there, model


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_questions_may_read_an_endpoint(
    published: tuple[KnowledgeGraph, KnowledgeGraph, bool], mode: str
) -> None:
    here, there, has_model = published
    if mode == "bypass" and not has_model:
        pytest.skip("it asks a model alone")
    with counted() as asked:
        there.ask("Where did Marie Curie discover Polonium?", mode, history=())
        assert len(asked) <= 3 * REQUESTS
        asked.clear()
        answer = there.ask(SECOND, mode, history=())
        assert 0 < len(asked) <= REQUESTS, asked
        asked.clear()
        trace = there.trace(answer.session)
        there.why_not(answer.session, "Oslo")
        assert there.sessions.summaries()
        there.replay(answer.session)
        assert not asked, "the record is read where it is written"
    assert answer.text == here.ask(SECOND, mode, history=()).text
    assert [s.text for s in trace.sentences] == [s.text for s in answer.sentences]


def test_what_filters_leave_is_read_in_the_folder(
    published: tuple[KnowledgeGraph, KnowledgeGraph, bool],
) -> None:
    here, there, _ = published
    [path] = [d.path for d in here.documents.summaries() if d.path.endswith("oslo.txt")]
    with counted() as asked:
        only = Filters(documents=(path,))
        assert there.ask(SECOND, "local", history=(), filters=only).sentences
        assert len(asked) <= 2


@pytest.mark.slow
def test_an_endpoint_is_read_only_while_it_has_the_same_knowledge(
    graph: KnowledgeGraph, empty: SparqlEndpoint, tmp_path: Path
) -> None:
    def ask(kg: KnowledgeGraph) -> str:
        return kg.ask("Who reached the South Pole?", "basic", history=()).text

    def refused(kg: KnowledgeGraph, why: str) -> None:
        with pytest.raises(StoreError, match=why):
            ask(kg)

    url = {"store.url": empty.query_url}
    with open_graph(graph.root, settings=url) as there:
        refused(there, "no generation")
        publish_graph(graph, empty.update_url)
        assert ask(there) == ask(graph)
        with open_graph(tmp_path / "other") as other:
            index(other, tmp_path, c="Otto Nordenskjöld led Swedish Expedition.\n")
            publish_graph(other, empty.update_url, anew=True)
        refused(there, "another graph")
        publish(graph.opened.read(), graph.opened.librarian, empty, anew=True)
        cut: Any = Breaking(empty, 1)
        index(graph, tmp_path, c="Carsten Borchgrevink led Southern Cross Expedition.\n")
        with pytest.raises(EndpointError, match="cut off"):
            publish(graph.opened.read(), graph.opened.librarian, cut)
    with open_graph(graph.root, settings=url) as there:
        refused(there, "holds generation 1")
        publish_graph(graph, empty.update_url)
        assert ask(there) == ask(graph)
        assert there.ask("Who reached the South Pole?", "basic", history=(), as_of=1).text
        publish_graph(graph, empty.update_url, classic=True, anew=True)
        refused(there, "no triple terms")


def test_what_is_being_changed_is_not_asked(graph: KnowledgeGraph, empty: SparqlEndpoint) -> None:
    publish_graph(graph, empty.update_url)
    cut: Any = Breaking(empty, 1)  # the first takes the cursors away
    with pytest.raises(EndpointError, match="cut off"):
        publish(graph.opened.read(), graph.opened.librarian, cut, anew=True)
    with (
        open_graph(graph.root, settings={"store.url": empty.query_url}) as there,
        pytest.raises(StoreError, match="being published to"),
    ):
        there.ask("Who reached the South Pole?")
    publish_graph(graph, empty.update_url)
    assert quads(SparqlStore(empty)) == set(graph.opened.read().match())


def test_a_question_ends_where_its_endpoint_goes_away(
    graph: KnowledgeGraph, tmp_path: Path
) -> None:
    with oxigraph_server(tmp_path) as endpoint:
        publish_graph(graph, endpoint.update_url)
        there = open_graph(graph.root, settings={"store.url": endpoint.update_url})
        assert there.ask("Who reached the South Pole?", "local", history=()).sentences
    asked = len(graph.sessions.summaries())
    with there, pytest.raises(EndpointError, match="can't be reached"):
        there.ask("Who led the Terra Nova Expedition?", "local", history=())
    assert len(graph.sessions.summaries()) == asked
    assert not graph.integrity().problems


# --- endpoints that fail ---

Answer = tuple[int, dict[str, str], bytes]
_HTML = (200, {"Content-Type": "text/html"}, b"<html><body>Welcome</body></html>")
_RESULTS = b'{"head": {"vars": ["s"]}, "results": {"bindings": ['
_NONE: Answer = (200, {}, _RESULTS + b"]}}")


@contextmanager
def answering(*answers: Answer) -> Iterator[tuple[SparqlEndpoint, list[dict[str, str]]]]:
    """An endpoint that gives these answers, one after the other, the last again and again, and the
    headers of what it was sent."""
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append(dict(self.headers))
            status, headers, body = answers[min(len(seen), len(answers)) - 1]
            if status == 0:
                time.sleep(2)
            self.send_response(status or 200)
            for name, value in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/query"
        yield SparqlEndpoint(url, url, "me", "secret", timeout=0.5), seen
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((500, {}, b"Internal error"), "answered 500: Internal error"),
        ((503, {}, b""), "answered 503"),
        ((404, {}, b"no such page"), "answered 404: no such page"),
        ((413, {}, b""), "answered 413"),
        (_HTML, "did not answer with results"),
        ((200, {}, _RESULTS), "did not answer with results"),
        ((200, {}, _RESULTS + b'{"s": {"type": "uri", "va'), "did not answer with results"),
        ((200, {"Content-Length": "999"}, _RESULTS), "broke off"),
        ((200, {"X-SQL-State": "S1TAT"}, _NONE[2]), "cut its answer off before"),
        ((0, {}, _NONE[2]), "did not answer within 0.5 seconds"),
        ((200, {}, b'{"type": "triple", "value": ' * 200), "more than 100 deep in each other"),
    ],
)
def test_a_bad_answer_is_a_clear_error(answer: Answer, why: str) -> None:
    with (
        answering(answer) as (endpoint, _),
        pytest.raises(EndpointError, match=why),
    ):
        list(SparqlStore(endpoint).match())


@pytest.mark.slow
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_goes_where_a_redirect_leads(status: int) -> None:
    with answering(_NONE) as (elsewhere, came):
        ask_first = (401, {"WWW-Authenticate": 'Basic realm="x"'}, b"")
        redirect: Answer = (status, {"Location": elsewhere.query_url}, b"")
        with answering(ask_first, redirect) as (endpoint, seen):
            with pytest.raises(EndpointError, match=f"go to {elsewhere.query_url}"):
                endpoint.update("CLEAR ALL")
            assert "Authorization" in seen[-1]
        assert not came


def test_an_update_that_nobody_carries_out_is_noticed(
    graph: KnowledgeGraph, empty: SparqlEndpoint
) -> None:
    with answering(_HTML) as (page, seen):
        wrong = SparqlEndpoint(page.update_url, empty.query_url)
        with pytest.raises(EndpointError, match="can't be read at"):
            publish(graph.opened.read(), graph.opened.librarian, wrong)
        assert len(seen) < 20
    assert not list(SparqlStore(empty).match())


def test_an_endpoint_that_refuses_everything_has_no_classic_view(graph: KnowledgeGraph) -> None:
    with answering((500, {}, b"Virtuoso 37000 Error")) as (endpoint, _), pytest.raises(QueryError):
        publish(graph.opened.read(), graph.opened.librarian, endpoint)


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
