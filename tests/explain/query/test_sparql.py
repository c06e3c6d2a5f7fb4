"""User SPARQL in its own process: results, bounds, and no way to the network."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Triple

from tgraph.errors import QueryError
from tgraph.explain.query.sparql import Bounds, run_update, stream_query
from tgraph.vocabulary import PREFIXES

A, B = NamedNode("urn:x:a"), NamedNode("urn:x:b")
VALUES: list[Literal | NamedNode | Triple] = [
    Literal('a "quote"\n\t\\ \U0001f600'),
    Literal("chat", language="fr"),
    Literal("1", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer")),
    Triple(A, B, Literal("x")),
    B,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "store"
    store = pyoxigraph.Store(str(path))
    store.extend(Quad(A, NamedNode(f"urn:x:p{i}"), value, B) for i, value in enumerate(VALUES))
    store.extend(Quad(NamedNode(f"urn:x:n{i}"), B, Literal(str(i)), A) for i in range(3000))
    store.flush()
    return path


def result(folder: Path, query: str, format: str = "json", **bounds) -> bytes:
    return b"".join(stream_query(folder, query, format, Bounds(**bounds)))


def values(data: bytes, format: pyoxigraph.QueryResultsFormat) -> list[Any]:
    solutions = pyoxigraph.parse_query_results(data, format)
    assert isinstance(solutions, QuerySolutions)
    return [tuple(row) for row in solutions]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("json", pyoxigraph.QueryResultsFormat.JSON),
        ("tsv", pyoxigraph.QueryResultsFormat.TSV),
        ("xml", pyoxigraph.QueryResultsFormat.XML),
    ],
)
@pytest.mark.parametrize("limit", [None, 100])
def test_every_term_comes_through_every_format(folder, name, format, limit):
    query = "SELECT ?o WHERE { <urn:x:a> ?p ?o } ORDER BY ?p"
    assert values(result(folder, query, name, limit=limit), format) == [(v,) for v in VALUES]


def test_rows_keep_their_order_and_number_under_a_limit(folder):
    query = "SELECT ?s ?o WHERE { ?s <urn:x:b> ?o } ORDER BY DESC(?s)"
    whole = values(result(folder, query), pyoxigraph.QueryResultsFormat.JSON)
    some = values(result(folder, query, limit=7), pyoxigraph.QueryResultsFormat.JSON)
    assert len(whole) == 3000
    assert some == whole[:7]


def test_the_default_graph_is_the_union_and_graph_narrows(folder):
    everywhere = result(folder, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", "csv")
    narrowed = result(folder, "SELECT (COUNT(*) AS ?n) { GRAPH <urn:x:b> { ?s ?p ?o } }", "csv")
    assert everywhere.split() == [b"n", b"3005"]
    assert narrowed.split() == [b"n", b"5"]


def test_prefixes_are_known(folder):
    named = " ".join(f"{prefix}:x" for prefix in PREFIXES)
    found = result(folder, f"SELECT ?iri {{ VALUES ?iri {{ {named} }} }}")
    wanted = [(NamedNode(f"{iri}x"),) for iri in PREFIXES.values()]
    assert values(found, pyoxigraph.QueryResultsFormat.JSON) == wanted


def test_lines_are_names_and_rows(folder):
    lines = result(folder, "SELECT ?p ?none { <urn:x:a> ?p <urn:x:b> }", "lines").splitlines()
    assert [json.loads(line) for line in lines] == [["p", "none"], ["<urn:x:p4>", None]]
    assert b"true" in result(folder, "ASK {}", "lines")


def test_a_query_is_stopped_when_its_time_is_up(folder):
    endless = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
    with pytest.raises(QueryError, match=r"stopped after 0\.5 seconds"):
        result(folder, endless, timeout=0.5)


def test_a_query_is_stopped_when_it_needs_too_much_memory(folder):
    greedy = "SELECT * { ?a ?b ?c . ?d ?e ?f } ORDER BY ?c ?f ?a"
    with pytest.raises(QueryError, match="GB of memory"):
        result(folder, greedy, memory=400 << 20)


def test_a_big_result_can_be_left(folder):
    stream = stream_query(folder, "SELECT * { ?a ?b ?c . ?d ?e ?f }", "csv", Bounds())
    assert next(stream).startswith(b"a,b,c")
    stream.close()


def test_what_is_wrong_is_said_in_one_sentence(folder):
    with pytest.raises(QueryError, match="near line 1, column 12, after “SELECT FROM”"):
        result(folder, "SELECT FROM")
    with pytest.raises(QueryError, match=r"near line 3, .*: the prefix foo is not declared"):
        result(folder, "SELECT *\n{\n ?s foo:bar ?o }")
    with pytest.raises(QueryError, match="it has no SELECT, "):
        result(folder, "SELEC * {}")
    with pytest.raises(QueryError, match="nested very deeply"):
        result(folder, f"ASK {'{' * 100_000}{'}' * 100_000}")
    with pytest.raises(QueryError, match="can't be written as turtle"):
        result(folder, "SELECT * {}", "turtle")


def test_queries_do_not_write(folder):
    with pytest.raises(QueryError):
        result(folder, "INSERT DATA { <urn:x:c> <urn:x:c> <urn:x:c> }")
    job: dict[str, Any] = {
        "store": str(folder), "text": "INSERT DATA { <urn:x:c> <urn:x:c> <urn:x:c> }",
        "format": "json", "limit": None, "memory": 1 << 30, "seconds": 10, "prefixes": {},
        "update": False,
    }  # fmt: skip
    assert worker(job).returncode != 0
    assert result(folder, "ASK { <urn:x:c> ?p ?o }", "csv") == b"false\n"


def test_an_update_runs_under_the_same_bounds(tmp_path):
    path = tmp_path / "store"
    pyoxigraph.Store(str(path)).flush()
    run_update(path, "INSERT DATA { <urn:x:a> tg:b 1 }")
    assert b"1" in result(path, "SELECT ?o { ?s tg:b ?o }", "csv")
    with pytest.raises(QueryError, match="LOAD"):
        run_update(path, "LOAD <http://127.0.0.1/>")
    with pytest.raises(QueryError, match="not an update"):
        run_update(path, "ASK {}")


# --- the network ---------------------------------------------------------------------------------


class Listener:
    """A port that notes whether anybody ever comes."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.visits = 0
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def _wait(self) -> None:
        while True:
            visitor, _ = self._socket.accept()
            stop = visitor.recv(4) == b"stop"
            visitor.close()
            if stop:
                return
            self.visits += 1

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as door:
            door.sendall(b"stop")
        self._thread.join()
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


def worker(job: dict[str, Any]) -> subprocess.CompletedProcess[bytes]:
    """The worker as it is, without the tokenizer before it."""
    return subprocess.run(
        [sys.executable, "-c", "from tgraph.explain.query.worker import main; main()"],
        input=json.dumps(job).encode(),
        capture_output=True,
    )


TRICKS = [
    "SELECT * {{ SERVICE <http://127.0.0.1:{port}/> {{ ?s ?p ?o }} }}",
    "SELECT * {{ SERVICE SILENT <http://localhost:{port}/> {{ ?s ?p ?o }} }}",
    "SELECT * {{ BIND(IRI('http://127.0.0.1:{port}/') AS ?x) SERVICE ?x {{ ?s ?p ?o }} }}",
    "SELECT * {{ ?s ?p 'a\\u0027 . SERVICE <http://127.0.0.1:{port}/> {{}} # ' }}",
    "SELECT * {{ SERV\\u0049CE <http://127.0.0.1:{port}/> {{ ?s ?p ?o }} }}",
    "SELECT * FROM <http://127.0.0.1:{port}/> {{ ?s ?p ?o }}",
    "DESCRIBE <http://127.0.0.1:{port}/>",
]


@pytest.mark.parametrize("trick", TRICKS)
def test_no_spelling_reaches_a_listening_socket(folder, listener, trick):
    query = trick.format(port=listener.port)
    with suppress(QueryError):
        result(folder, query, "ntriples" if "DESCRIBE" in query else "json")
    job: dict[str, Any] = {
        "store": str(folder), "text": query, "format": "json", "limit": None,
        "memory": 1 << 30, "seconds": 10, "prefixes": {}, "update": False,
    }  # fmt: skip
    worker(job)
    assert listener.visits == 0


def test_an_update_s_worker_reaches_nothing_either(tmp_path, listener):
    path = tmp_path / "store"
    pyoxigraph.Store(str(path)).flush()
    job: dict[str, Any] = {
        "store": str(path), "text": f"LOAD <http://127.0.0.1:{listener.port}/x.ttl>",
        "format": "", "limit": None, "memory": 1 << 30, "seconds": 10, "prefixes": {},
        "update": True,
    }  # fmt: skip
    assert worker(job).returncode != 0
    assert listener.visits == 0


@pytest.mark.skipif(sys.platform != "linux", reason="filters and namespaces are Linux's")
@pytest.mark.parametrize("barrier", ["_filter_sockets", "_own_network", "no_more_handles"])
def test_each_barrier_holds_by_itself(listener, barrier):
    code = f"""
import socket, sys
import tgraph.isolation as isolation
if isolation.{barrier}() is False:
    sys.exit("not permitted here")
try:
    socket.create_connection(("127.0.0.1", {listener.port}), timeout=2)
except OSError as error:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if "not permitted here" in done.stderr:
        pytest.skip(f"{barrier} is not permitted here")
    assert done.stdout == "refused\n", done.stderr
    assert listener.visits == 0
