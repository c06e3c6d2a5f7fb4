"""Linked data: links that resolve to what rdflib reads."""

from __future__ import annotations

import re

import httpx
import rdflib
from rdflib.namespace import RDFS, VOID

from tests.extensions.server.conftest import API, QUESTION

POLONIUM = rdflib.URIRef("urn:trustgraph:entity:polonium")


def links(response: httpx.Response) -> dict[str, str]:
    """The links of a response by their relation."""
    found = re.findall(r'<([^>]*)>; rel="([^"]*)"', response.headers["link"])
    return {relation.rpartition("#")[2]: target for target, relation in found}


def test_an_iri_is_told_in_forms(client: httpx.Client) -> None:
    turtle = client.get(f"/id/{POLONIUM}", headers={"accept": "text/turtle"})
    found = rdflib.Graph().parse(data=_plain(turtle.text), format="turtle")
    assert found.value(POLONIUM, RDFS.label) == rdflib.Literal("polonium")
    other = client.get(f"/id/default/{POLONIUM}", headers={"accept": "text/turtle"})
    assert other.text == turtle.text
    page = client.get(f"/id/{POLONIUM}", headers={"accept": "text/html"})
    assert (page.status_code, page.headers["location"][:10]) == (303, "/workbench")
    assert client.get("/id/urn:x:none").status_code == 404
    assert client.get("/id/not an iri").status_code == 400


def _plain(turtle: str) -> str:
    """The statements without those that have triple terms, which rdflib doesn't read yet."""
    return "\n".join(line for line in turtle.split("\n") if "<<" not in line)


def test_an_answer_leads_to_its_record(client: httpx.Client) -> None:
    answer = client.post(f"{API}/ask", json={"question": QUESTION, "mode": "graph"})
    session = answer.json()["explain_id"]
    found = links(answer)
    record = client.get(found["has_provenance"])
    assert record.status_code == 200
    assert session in record.text
    asked = client.get(found["has_query_service"], params={"query": f"ASK {{ <{session}> a ?c }}"})
    assert asked.json()["boolean"] is True
    told = client.get(f"/id/{session}", headers={"accept": "text/turtle"})
    assert links(told)["has_provenance"] == found["has_provenance"]


def test_the_data_set_is_described(client: httpx.Client) -> None:
    text = client.get("/.well-known/void").text
    found = rdflib.Graph().parse(data=text, format="turtle")
    (subject,) = found.subjects(rdflib.RDF.type, VOID.Dataset)
    endpoint = str(found.value(subject, VOID.sparqlEndpoint))
    assert client.get(endpoint, params={"query": "ASK { ?s ?p ?o }"}).json()["boolean"] is True
    assert int(str(found.value(subject, VOID.entities))) >= 3
