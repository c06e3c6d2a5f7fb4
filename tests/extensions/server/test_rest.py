"""REST: the engine's answers over HTTP, as the OpenAPI document describes them."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.extensions.server.conftest import API, QUESTION, Running
from tgraph.extensions.server.rest import ROUTES

ANSWERED = "Marie Curie discovered polonium."


@pytest.fixture(scope="module")
def described(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/v1/openapi.json").json()
    return found


def events(response: httpx.Response) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for block in response.text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "data" in lines:
            found.append((lines.get("event", "message"), json.loads(lines["data"])))
    return found


def asked(**more: Any) -> dict[str, Any]:
    return {"question": QUESTION, "mode": "graph", **more}


def check(described: dict[str, Any], operation: str, response: httpx.Response) -> Any:
    """The answer, which is what the document says."""
    found = next(
        told
        for methods in described["paths"].values()
        for told in methods.values()
        if told["operationId"] == operation
    )
    content = found["responses"][str(response.status_code)]["content"]["application/json"]
    schema = {**content["schema"], "components": described["components"]}
    Draft202012Validator(schema).validate(response.json())
    return response.json()


def test_it_answers_with_proof_and_on_record(
    client: httpx.Client, described: dict[str, Any]
) -> None:
    asked = {"question": QUESTION, "mode": "graph", "settings": {"graph.edge_limit": 3}}
    answer = check(described, "ask", client.post(f"{API}/ask", json=asked))
    citation = answer["sentences"][0]["citations"][0]
    assert citation["quote"] == ANSWERED
    text = client.get(f"{API}/documents/curie.txt/text").text
    assert text[citation["start"] : citation["end"]] == ANSWERED
    session = answer["explain_id"]
    trace = check(described, "trace", client.get(f"{API}/sessions/{session}/trace"))
    assert trace["parameters"]["edge-limit"] == "3"
    assert check(described, "session", client.get(f"{API}/sessions/{session}"))["question"]


def test_a_stream_is_the_specifications(client: httpx.Client, described: dict[str, Any]) -> None:
    asked = {"question": QUESTION, "mode": "graph", "stream": True}
    response = client.post(f"{API}/ask", json=asked)
    assert response.headers["content-type"].startswith("text/event-stream")
    told = [data for _, data in events(response)]
    kinds = [data["message_type"] for data in told]
    assert kinds[:4] == ["explain"] * 4
    assert set(kinds[4:]) == {"chunk"}
    assert [data["end_of_session"] for data in told] == [False] * (len(told) - 1) + [True]
    answer = told[-1]["answer"]
    assert "".join(data["response"] for data in told) == answer["answer"]
    listed = client.get(f"{API}/sessions").json()
    assert answer["explain_id"] == listed[0]["explain_id"] == told[0]["explain_id"]


def test_a_question_follows_another(client: httpx.Client) -> None:
    turns = [{"question": QUESTION, "answer": "Marie Curie."}]
    asked = {"question": "What else did she discover?", "mode": "graph", "history": turns}
    session = client.post(f"{API}/ask", json=asked).json()["explain_id"]
    parameters = client.get(f"{API}/sessions/{session}/trace").json()["parameters"]
    assert json.loads(parameters["history"]) == [[QUESTION, "Marie Curie."]]


@pytest.mark.slow
def test_all_that_is_read_is_as_described(client: httpx.Client, described: dict[str, Any]) -> None:
    path = f"{API}/sessions/last"
    read = {
        "collections": "/api/v1/collections",
        "sessions": f"{API}/sessions?limit=2",
        "why_not": f"{path}/why-not?text=radium",
        "diff": f"{path}/diff/last",
        "trace": f"{path}/trace",
        "documents": f"{API}/documents",
        "source": f"{API}/documents/curie.txt",
        "impact": f"{API}/documents/curie.txt/impact",
        "jobs": f"{API}/jobs",
        "entities": f"{API}/entities?text=marie",
        "facts": f"{API}/entities/Marie%20Curie/facts",
        "merges": f"{API}/merges",
        "splits": f"{API}/splits",
        "curations": f"{API}/curations",
        "audits": "/api/v1/audits",
        "audit": f"{API}/audits/integrity",
        "history": f"{API}/history",
        "knowledge_diff": f"{API}/diff?before=0",
    }
    for operation, place in read.items():
        response = client.get(place)
        assert response.status_code == 200, (place, response.text)
        assert check(described, operation, response) is not None
    assert client.get(f"{API}/entities?text=marie").json() == ["Marie Curie"]
    assert client.get(f"{API}/audits/integrity").json()["passed"] is True
    done = {"verify": {"lexical": True}, "replay": {}}
    for operation, body in done.items():
        assert check(described, operation, client.post(f"{path}/{operation}", json=body))
    assert client.post(f"{path}/replay", json={}).json()["same"] is True
    found = client.post(f"{API}/search", json={"text": "Who discovered radium", "mode": "graph"})
    assert "radium" in str(check(described, "search", found)["context"])
    context = client.post(f"{API}/context", json={"question": QUESTION, "mode": "graph"})
    assert check(described, "context", context)["context"]
    assert check(described, "suggest", client.post(f"{API}/suggest", json={"count": 1}))


@pytest.mark.parametrize(
    ("place", "kind", "begins"),
    [
        ("sessions/last/export?format=trig", "application/trig", b"@prefix"),
        ("sessions/last/export?format=svg", "image/svg+xml", b"<svg"),
        ("sessions/last/report", "text/html", b"<!"),
        ("knowledge?format=nquads", "application/n-quads", b"<"),
    ],
)
def test_records_have_the_media_types_of_their_formats(
    client: httpx.Client, place: str, kind: str, begins: bytes
) -> None:
    response = client.get(f"{API}/{place}")
    assert response.headers["content-type"].partition(";")[0] == kind
    assert response.content.lower().startswith(begins)
    assert "script-src" not in response.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("method", "place", "body", "status", "kind"),
    [
        ("GET", f"{API}/sessions/nothing", None, 404, "unknown-name"),
        ("GET", f"{API}/documents/nothing.txt/text", None, 404, "unknown-name"),
        ("GET", f"{API}/audits/nothing", None, 404, "unknown-name"),
        ("GET", f"{API}/sessions?limit=0", None, 400, "usage"),
        ("GET", f"{API}/sessions?limits=1", None, 400, "usage"),
        ("GET", "/api/v1/collections/other/sessions", None, 404, "no-collection"),
        ("GET", "/api/v1/nothing", None, 404, "http"),
        ("GET", f"{API}/merges?x=1", None, 400, "usage"),
        ("GET", f"{API}/documents/curie.txt/pages/x/image", None, 400, "usage"),
        ("PUT", f"{API}/sessions", None, 405, "http"),
        ("GET", "/docs", None, 404, "http"),
        ("GET", "/redoc", None, 404, "http"),
        ("POST", f"{API}/ask", {"question": " "}, 400, "usage"),
        ("POST", f"{API}/ask", asked(mode="best"), 400, "usage"),
        ("POST", f"{API}/ask", asked(setings={}), 400, "usage"),
        ("POST", f"{API}/ask", asked(settings={"chat.base_url": "http://x"}), 400, "usage"),
        ("POST", f"{API}/ask", asked(settings={"rerank.base_url": "http://x"}), 400, "usage"),
        ("POST", f"{API}/ask", asked(settings={"rerank": {"base_url": "http://x"}}), 400, "usage"),
        ("POST", f"{API}/ask", asked(settings={"person": "Eve"}), 400, "usage"),
        ("POST", f"{API}/ask", asked(settings={"graph.nothing": 1}), 400, "usage"),
        ("POST", f"{API}/ask", asked(filters={"documents": ["no.txt"]}), 400, "usage"),
        ("POST", f"{API}/ask", asked(as_of=99), 404, "unknown-name"),
        ("POST", f"{API}/ask", [1], 400, "usage"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_a_problem(
    client: httpx.Client, method: str, place: str, body: Any, status: int, kind: str
) -> None:
    response = client.request(method, place, json=body)
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert (response.status_code, told["status"]) == (status, status)
    assert told["type"] == f"urn:trustgraph:problem:{kind}"
    assert told["detail"]


def test_what_is_no_json_is_said(client: httpx.Client) -> None:
    assert client.post(f"{API}/ask", content=b"{").json()["detail"] == "The body is no JSON."
    deep = b"[" * 100_000
    assert client.post(f"{API}/ask", content=deep).status_code == 400
    large = client.post(f"{API}/ask", content=b" " * (2 << 20))
    assert large.status_code == 413
    other = client.post(f"{API}/ask", content=b"q=1", headers={"content-type": "text/plain"})
    assert other.status_code == 400


def test_every_operation_is_described_once(described: dict[str, Any]) -> None:
    names = [
        told["operationId"] for methods in described["paths"].values() for told in methods.values()
    ]
    assert sorted(names) == sorted(route.name for route in ROUTES)
    assert len(set(names)) == len(names)


def test_each_description_names_the_rights_and_each_response(described: dict[str, Any]) -> None:
    rights = {route.name: list(route.declaration.rights) for route in ROUTES}
    for methods in described["paths"].values():
        for told in methods.values():
            needed = rights[told["operationId"]]
            assert told["security"] == [{"token": needed}, {}]
            assert f"right {' and '.join(f'`{right}`' for right in needed)}" in told["description"]
            assert told["summary"]
            assert told["tags"]
            done, *failed = sorted(told["responses"])
            assert done in ("200", "201", "202", "204")
            assert failed == ["4XX", "5XX"]
            assert bool(told["responses"][done].get("content")) == (done != "204")
            for status in failed:
                assert list(told["responses"][status]["content"]) == ["application/problem+json"]


def test_each_schema_of_the_description_is_valid(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(described)))
    assert references == set(schemas)


def test_head_is_answered_as_get_is(client: httpx.Client) -> None:
    for place in (f"{API}/sessions", f"{API}/sessions/nothing", f"{API}/documents/curie.txt/text"):
        answered, head = client.get(place), client.head(place)
        assert (head.status_code, head.content) == (answered.status_code, b"")
        assert head.headers["content-length"] == answered.headers["content-length"]
    refused = client.put(f"{API}/sessions")
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.slow
def test_files_are_uploaded_and_indexed(server: Running, client: httpx.Client) -> None:
    files = [
        ("file", ("../../fram.txt", b"Nansen led Fram.\n", "text/plain")),
        ("file", ("scott.txt", b"Scott led Discovery.\n", "text/plain")),
    ]
    response = client.post(f"{API}/documents", files=files)
    assert response.status_code == 202
    place = response.headers["location"]
    with client.stream("GET", f"{place}/events") as stream:
        states = [json.loads(line[6:]) for line in stream.iter_lines() if line[:5] == "data:"]
    assert states[-1]["status"] == "done", states[-1]
    assert states[-1]["report"]["indexed"] == ["fram.txt", "scott.txt"]
    assert client.get(place).json() == states[-1]
    assert not (server.root / "jobs" / states[-1]["id"] / "files").exists()
    answer = client.post(f"{API}/ask", json={"question": "Who led Fram?", "mode": "graph"}).json()
    assert answer["sources"][0]["path"] == "fram.txt"
    reason = {"reason": "a forgery"}
    place = f"{API}/documents/{answer['sources'][0]['document']}"
    assert client.get(f"{place}/impact", params={"all_copies": True}).json()["paths"] == [
        "fram.txt"
    ]
    order = {**reason, "all_copies": True}
    retracted = client.post(f"{API}/documents/fram.txt/retract", json=order).json()
    assert retracted["questioned"] == [answer["explain_id"]]


def test_a_job_is_cancelled(client: httpx.Client) -> None:
    files = {
        "file": ("long.txt", "".join(f"Nansen led Fram to {n}.\n" for n in range(20_000)).encode())
    }
    job = client.post(f"{API}/documents", files=files).json()
    place = f"{API}/jobs/{job['id']}"
    with client.stream("GET", f"{place}/events") as stream:
        states = (json.loads(line[6:]) for line in stream.iter_lines() if line[:5] == "data:")
        assert any(state["status"] == "running" for state in states)
        assert client.delete(place).status_code == 200
        *_, ended = states
    assert ended["status"] == "cancelled"
    assert client.delete(place).status_code == 400
    assert "long.txt" not in [each["path"] for each in client.get(f"{API}/documents").json()]


@pytest.mark.parametrize("name", ["", "..", "/", ".hidden/..", "x" * 300])
def test_a_name_that_is_none_is_refused(client: httpx.Client, name: str) -> None:
    from tgraph.errors import UsageError
    from tgraph.extensions.server.uploads import safe_name

    with pytest.raises(UsageError):
        safe_name(name)


def test_collections_come_and_go(client: httpx.Client) -> None:
    place = "/api/v1/collections"
    assert client.post(place, json={"name": "new"}).status_code == 201
    assert client.post(place, json={"name": "new"}).status_code == 400
    assert client.post(place, json={"name": "../up"}).status_code == 400
    empty = client.post(f"{place}/new/ask", json={"question": "x"})
    assert (empty.status_code, empty.json()["type"][-15:]) == (409, "nothing-indexed")
    assert client.post(f"{place}/default/copies", json={"name": "copy"}).status_code == 201
    assert client.get(f"{place}/copy/sessions").json()
    for name in ("new", "copy"):
        assert client.delete(f"{place}/{name}").status_code == 204
    assert [each["name"] for each in client.get(place).json()] == ["default"]


def test_who_watches_sees_that_it_lives(client: httpx.Client) -> None:
    assert client.get("/health").json()["status"] == "ok"
    ready = client.get("/ready")
    assert (ready.status_code, ready.json()["checks"]) == (
        200,
        {"folder": "ok", "store": "ok", "tasks": "ok"},
    )
    metrics = client.get("/metrics").text
    assert 'tgraph_requests_total{door="health",status="200"}' in metrics
