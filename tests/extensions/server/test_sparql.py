"""SPARQL over HTTP: the protocol as its specification has it, and clients that others wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import rdflib
from rdflib.plugins.stores.sparqlstore import SPARQLStore

from tests.extensions.server.conftest import Running, make_graph, rights, running
from tgraph.extensions.server.negotiation import choose_media_type
from tgraph.vocabulary import SOURCE_GRAPH

COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
ASK = "ASK { ?s ?p ?o }"
CONSTRUCT = "CONSTRUCT { ?s rdfs:label ?o } WHERE { ?s rdfs:label ?o }"
SPARQL = {"content-type": "application/sparql-query"}
LABEL = 'SELECT ?s { ?s rdfs:label "polonium" }'


def test_a_query_is_sent_in_three_ways(client: httpx.Client) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    plain = {"content-type": "application/sparql-query; charset=utf-8"}
    sent = [
        client.get("/sparql", params={"query": COUNT}),
        client.post("/sparql", data={"query": COUNT}, headers=form),
        client.post("/sparql", content=COUNT, headers=plain),
        client.get("/sparql/default", params={"query": COUNT}),
    ]
    assert [each.status_code for each in sent] == [200] * 4
    found = {each.json()["results"]["bindings"][0]["n"]["value"] for each in sent}
    assert len(found) == 1
    assert int(found.pop()) > 50


@pytest.mark.parametrize(
    ("query", "accept", "media", "begins"),
    [
        (COUNT, "", "application/sparql-results+json", "{"),
        (COUNT, "application/sparql-results+xml", "application/sparql-results+xml", "<?xml"),
        (COUNT, "text/csv", "text/csv", "n"),
        (COUNT, "text/tab-separated-values", "text/tab-separated-values", "?n"),
        (ASK, "text/html, application/xml;q=0.9, */*;q=0.1", "application/xml", "<?xml"),
        (CONSTRUCT, "", "text/turtle", "@prefix"),
        (CONSTRUCT, "application/n-triples", "application/n-triples", "<"),
        (CONSTRUCT, "application/rdf+xml", "application/rdf+xml", "<?xml"),
        (CONSTRUCT, "application/ld+json", "application/ld+json", "["),
    ],
)
def test_results_have_the_form_that_is_wanted(
    client: httpx.Client, query: str, accept: str, media: str, begins: str
) -> None:
    headers = {"accept": accept} if accept else {"accept": "*/*"}
    found = client.get("/sparql", params={"query": query}, headers=headers)
    assert found.headers["content-type"].partition(";")[0] == media
    assert found.text.startswith(begins), found.text[:100]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"params": {"query": "SELECT"}}, 400),
        ({"params": {"query": ASK, "default-graph-uri": "no iri"}}, 400),
        ({"params": [("query", ASK), ("query", ASK)]}, 400),
        ({"params": {"update": "CLEAR ALL"}}, 400),
        ({"params": {"query": "SELECT * { SERVICE <http://x/> { ?s ?p ?o } }"}}, 400),
        ({"params": {"query": "INSERT DATA { <urn:a> <urn:b> 1 }"}}, 400),
        ({"params": {"query": ASK}, "headers": {"accept": "image/png"}}, 406),
        ({"method": "POST", "content": ASK, "headers": {"content-type": "text/plain"}}, 415),
        ({"method": "POST", "data": {"query": ASK, "update": "CLEAR ALL"}}, 400),
        ({"method": "POST", "content": b"\xff", "headers": SPARQL}, 400),
        ({"method": "PUT", "content": b""}, 405),
    ],
)  # fmt: skip
def test_what_is_wrong_is_a_problem(
    client: httpx.Client, request_: dict[str, Any], status: int
) -> None:
    found = client.request(request_.pop("method", "GET"), "/sparql", **request_)
    assert (found.status_code, found.headers["content-type"]) == (
        status,
        "application/problem+json",
    )


def test_a_request_says_which_graphs_are_read(client: httpx.Client) -> None:
    def count(**graphs: str) -> int:
        found = client.get("/sparql", params={"query": COUNT, **graphs}).json()
        return int(found["results"]["bindings"][0]["n"]["value"])

    assert 0 < count(**{"default-graph-uri": SOURCE_GRAPH.value}) < count()
    assert count(**{"default-graph-uri": "urn:x:none"}) == 0
    assert count(**{"named-graph-uri": SOURCE_GRAPH.value}) == 0


def test_graphs_are_read(client: httpx.Client) -> None:
    knowledge = client.get("/graphs", params={"default": ""})
    assert knowledge.headers["content-type"].startswith("text/turtle")
    source = client.get(
        "/graphs", params={"graph": SOURCE_GRAPH.value}, headers={"accept": "application/n-triples"}
    )
    assert source.text != knowledge.text
    assert len(source.text.splitlines()) > 50
    head = client.head("/graphs", params={"graph": SOURCE_GRAPH.value})
    assert (head.status_code, head.content) == (200, b"")
    assert client.get("/graphs", params={"graph": "urn:x:none"}).status_code == 404
    assert client.get("/graphs").status_code == 400
    for method in ("PUT", "POST", "DELETE"):
        assert client.request(method, "/graphs", params={"default": ""}).status_code == 405


def test_it_says_what_it_is(client: httpx.Client) -> None:
    described = rdflib.Graph().parse(data=client.get("/sparql").text, format="turtle")
    assert len(described) > 5


def test_rdflib_asks_it(server: Running) -> None:
    store = SPARQLStore(f"{server.address}/sparql", returnFormat="json")
    rows = list(rdflib.Graph(store).query(LABEL))
    assert [str(row[0]) for row in rows] == ["urn:trustgraph:entity:polonium"]  # type: ignore[index]


@pytest.fixture(scope="module")
def governed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    tokens = {"governor": rights("read", "govern"), "reader": rights("read")}
    with running(make_graph(tmp_path_factory.mktemp("governed")), tokens) as found:
        yield found


def test_an_update_needs_the_right_and_keeps_the_rules(governed: Running) -> None:
    update = 'INSERT DATA { <urn:x:a> rdfs:label "A" }'
    forged = f"DELETE WHERE {{ GRAPH {SOURCE_GRAPH} {{ ?s ?p ?o }} }}"
    kind = {"content-type": "application/sparql-update"}
    with governed.client("reader") as reader, governed.client("governor") as governor:
        assert reader.post("/sparql", content=update, headers=kind).status_code == 403
        assert governor.post("/sparql", content=forged, headers=kind).status_code == 400
        assert governor.post("/sparql", data={"update": update}).status_code == 204
        found = reader.get("/sparql", params={"query": 'SELECT ?s { ?s rdfs:label "A" }'}).json()
        assert found["results"]["bindings"][0]["s"]["value"] == "urn:x:a"
        record = reader.get("/sparql", params={"query": "SELECT ?n { ?a prov:wasAssociatedWith "
                            "[ a prov:Person ; rdfs:label ?n ] }"}).json()  # fmt: skip
        assert "Ann" in json.dumps(record)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "a/x"),
        ("*/*", "a/x"),
        ("b/y", "b/y"),
        ("b/*;q=0.5, a/x;q=0.4", "b/y"),
        ("a/x;q=0, */*", "b/y"),
        ("A/X ; Q=1", "a/x"),
    ],
)
def test_the_form_that_suits_best_is_chosen(accept: str, chosen: str) -> None:
    assert choose_media_type(accept, {"a/x": "x", "b/y": "y"})[0] == chosen


@pytest.mark.parametrize(
    ("path", "accept", "status"),
    [
        ("/sparql/%25%20%3C%1b%22?query=ASK%20%7B%7D", "*/*", 404),
        ("/sparql/%FF", "text/turtle", 200),
        ("/graphs?graph=urn:graph:source", "application/ld+json", 406),
        (
            "/sparql?query=CONSTRUCT%20%7B%3Ca:b%3E%20%3Ca:b%3E%20%3C%3C(%3Ca:b%3E%20%3Ca:b%3E%201)%3E%3E%7D%20%7B%7D",
            "application/ld+json",
            400,
        ),
    ],
)
def test_what_can_not_be_named_or_written_is_said(
    client: httpx.Client, path: str, accept: str, status: int
) -> None:
    assert client.get(path, headers={"Accept": accept}).status_code == status
