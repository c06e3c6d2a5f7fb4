"""Rights by what is returned: each route is asked, and its answers are looked into."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import tgraph
from tests.extensions.server.conftest import (
    API,
    VALUES,
    Running,
    make_graph,
    rights,
    running,
    small_parts,
)
from tests.extensions.server.test_mcp import text, with_client
from tgraph.extensions.server.access import (
    RIGHTS,
    RIGHTS_BY_CONTENT,
    Access,
    Content,
    Declaration,
)
from tgraph.extensions.server.app import create_app
from tgraph.extensions.server.declared import DeclaredOperation, list_operations
from tgraph.extensions.server.mcp_server import DECLARATIONS
from tgraph.extensions.server.rest.request_settings import ALLOWED
from tgraph.retrieve.modes.registry import ModeSettings
from tgraph.settings import Settings

ASKED = "Did Vexling ask who discovered radium?"
SIGNS: dict[str, tuple[Content, ...]] = {
    "Vexling": ("sessions",),
    "Marie Curie discovered": ("documents", "knowledge", "sessions", "answer"),
    "joblet.txt": ("jobs", "job", "documents", "knowledge", "sessions", "answer"),
}
"""Words that stand in some contents alone, and these."""
COSTLY = (
    "graph.max_path_length",
    "graph.edge_score_limit",
    "drift_search.depth",
    "drift_search.breadth",
    "global_search.dynamic_num_repeats",
    "local_search.top_k_entities",
    "contextual_search.pool",
)
COLLECTION, WORD = HIDDEN = ("vaulted", "Quorvane")
QUESTION = {"question": "Who discovered polonium?", "mode": "graph"}
BODIES: dict[str, dict[str, Any]] = {
    "ask": QUESTION,
    "context": QUESTION,
    "search": {"text": "polonium"},
    "suggest": {"count": 2},
    "verify": {"lexical": True},
    "retract": {"reason": "It is wrong."},
    "authority": {"reason": "It is old.", "authority": 0.5},
    "completions": {
        "model": "tgraph-graph",
        "messages": [{"role": "user", "content": QUESTION["question"]}],
    },
}
QUERY = {
    "text": "radium",
    "query": "SELECT * { ?s ?p ?o }",
    "before": "0",
    "start": "0",
    "end": "5",
    "after": "last",
    "expected": "radium",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose records have words of who asked, and of what is elsewhere."""
    root = make_graph(tmp_path_factory.mktemp("rights"))
    parts = small_parts(root / "cache")
    with tgraph.open(root, settings=VALUES, parts=parts) as graph:
        graph.ask(ASKED, "graph", history=())
    (root.parent / "quorvane.txt").write_text("Quorvane built the vault.\n")
    elsewhere: dict[str, Any] = {"collection": COLLECTION, "create": True, "settings": VALUES}
    with tgraph.open(root, parts=parts, **elsewhere) as graph:
        graph.index([root.parent / "quorvane.txt"])
        graph.ask("Who built the vault, Quorvane?", "graph", history=())
    tokens = {"all": for_default(*RIGHTS), "nowhere": Access("Eve", ("x",))}
    for right in RIGHTS:
        tokens[right] = for_default(right)
        tokens[f"without {right}"] = for_default(*(each for each in RIGHTS if each != right))
    with running(root, tokens) as server, server.client("all") as client:
        files = {"file": ("joblet.txt", b"Marie Curie discovered nothing here.")}
        client.post(f"{API}/documents", files=files).raise_for_status()
        yield server


def for_default(*given: Any) -> Access:
    return rights(*given, collections=("default",))


def list_routes(server: Running) -> list[DeclaredOperation]:
    """All but that of agents, whose tools are declared themselves."""
    found = list_operations(create_app(server.service).routes)
    return sorted((each for each in found if each.path != "/mcp"), key=is_for_last)


def is_for_last(operation: DeclaredOperation) -> bool:
    """Return whether an operation takes away what others are asked about."""
    return operation.method == "DELETE" or operation.path.endswith(("/retract", "/delete"))


def send(
    client: httpx.Client, operation: DeclaredOperation, collection: str = "default", job: str = "x"
) -> httpx.Response:
    """Send what the operation is for."""
    known = {"collection": collection, "session": "last", "other": "last", "job": job, "page": "1"}
    known |= {"document": "curie.txt", "entity": "Marie Curie", "audit": "sessions"}
    known |= {"iri": "urn:trustgraph:entity:polonium", "model": "tgraph-graph"}
    path = re.sub(r"{(\w+)(?::\w+)?}", lambda m: known.get(m[1], "x"), operation.path)
    if operation.method in ("GET", "DELETE"):
        return client.request(operation.method, path, params=fitting_query(operation))
    if path.startswith("/workbench"):
        form = {**QUESTION, "after": "last"}
        return client.request(operation.method, path, data=form, follow_redirects=True)
    if path.startswith("/sparql"):
        return client.post(path, data={"query": QUERY["query"]})
    return client.request(operation.method, path, json=BODIES.get(path.rpartition("/")[2], {}))


def fitting_query(operation: DeclaredOperation) -> dict[str, str]:
    """Return what of the query the route takes: REST refuses others."""
    path = operation.path
    if path.startswith("/graphs"):
        return {"default": ""}
    if not path.startswith("/api"):
        return QUERY
    names = {"why-not": ("text",), "boxes": ("start", "end"), "entities": ("text",)}
    wanted = ("before",) if path.endswith("{collection}/diff") else ()
    return {name: QUERY[name] for name in names.get(path.rpartition("/")[2], wanted)}


def test_every_route_needs_the_rights_to_its_contents(served: Running) -> None:
    declarations = {each.path: each.declaration for each in list_routes(served)}
    for name, declaration in {**declarations, **DECLARATIONS}.items():
        assert isinstance(declaration, Declaration)
        assert declaration.contents, name
        for content in declaration.contents:
            assert set(RIGHTS_BY_CONTENT[content]) <= set(declaration.rights), (name, content)


@pytest.mark.slow
@pytest.mark.parametrize("right", RIGHTS)
def test_a_route_refuses_who_lacks_one_of_its_rights(served: Running, right: Any) -> None:
    with served.client(f"without {right}") as client:
        for operation in list_routes(served):
            if right in operation.declaration.rights:
                assert send(client, operation).status_code == 403, operation


@pytest.mark.slow
def test_the_right_to_ask_alone_reads_nothing_of_others(served: Running) -> None:
    with served.client("ask") as client:
        for operation in list_routes(served):
            assert "Vexling" not in send(client, operation).text, operation


@pytest.mark.slow
@pytest.mark.parametrize("token", ["all", "nowhere"])
def test_no_answer_names_a_collection_that_the_token_is_not_for(
    served: Running, token: str
) -> None:
    with served.client(token) as client:
        for operation in list_routes(served):
            if "{collection}" in operation.path:
                response = send(client, operation, COLLECTION)
                assert response.status_code == 403, operation
                assert WORD not in response.text, operation
            elif not is_for_last(operation):
                said = send(client, operation).text
                assert not any(sign in said for sign in HIDDEN), operation
                names_default = "/default" in said or "'default'" in said
                is_open = token == "all" or not operation.declaration.rights
                assert is_open or not names_default, operation


def test_the_right_to_ask_alone_answers_and_names_no_session(served: Running) -> None:
    with served.client("ask") as client:
        assert client.post(f"{API}/ask", json=QUESTION).status_code == 200
        assert client.post(f"{API}/ask", json={**QUESTION, "as_of": "1"}).status_code == 200
        assert client.post(f"{API}/ask", json={**QUESTION, "as_of": "last"}).status_code == 403
        assert client.post(f"{API}/sessions/last/verify", json={}).status_code == 403
        assert client.post("/workbench/default/suggest", data={}).status_code == 403
        form = {"question": "Who?", "after": "last"}
        assert client.post("/workbench/default/ask", data=form).status_code == 403

    async def verify(client: Any) -> Any:
        return await client.call_tool("verify", {})

    refused = with_client(served, verify, "ask")
    assert (refused.is_error, "right to read" in text(refused)) == (True, True)


def test_an_error_names_nothing_that_the_token_may_not_read(served: Running) -> None:
    asked = [{"filters": {"documents": ["["]}}, {"settings": {"graph.graph_seeds": ["Nobody"]}}]
    model = {"model": "tgraph-nothing", "messages": BODIES["completions"]["messages"]}
    for more in asked:
        said = {}
        for token in ("all", "ask"):
            with served.client(token) as client:
                answers = [
                    client.post(f"{API}/ask", json={**QUESTION, **more, "stream": stream})
                    for stream in (False, True)
                ]
                said[token] = "".join(answer.text for answer in answers)
        assert "curie.txt" in said["all"] or "Marie Curie" in said["all"]
        assert not any(name in said["ask"] for name in ("curie.txt", "Marie Curie", "Polonium"))
        assert said["ask"].count("There is no") + said["ask"].count("No document") == 2
    with served.client("ask") as client:  # what is no secret is told
        assert "/v1/models" in client.post("/v1/chat/completions", json=model).text


def test_a_number_that_may_begin_a_session_needs_the_right_to_read(served: Running) -> None:
    for point, status in ((12345678, 403), ("12345678", 403), (-1, 403), (1, 200)):
        with served.client("ask") as client:
            answer = client.post(f"{API}/ask", json={**QUESTION, "as_of": point})
            assert answer.status_code == status


def test_who_may_index_takes_no_retraction_back(served: Running) -> None:
    files = {"file": ("curie.txt", b"Marie Curie discovered polonium.")}
    with served.client("index") as client:
        refused = client.post(f"{API}/documents", params={"reinstate": True}, files=files)
    assert (refused.status_code, "govern" in refused.json()["detail"]) == (403, True)


@pytest.mark.slow
def test_an_answer_contains_what_its_route_declares(served: Running) -> None:
    """The last of these tests: it retracts and deletes."""
    seen = set()
    with served.client("all") as client:
        job = str(client.get(f"{API}/jobs").json()[0]["id"])
        for operation in list_routes(served):
            said = send(client, operation, job=job).text
            for sign, contents in SIGNS.items():
                if sign in said:
                    seen.add(sign)
                    assert set(contents) & set(operation.declaration.contents), (operation, sign)
            assert not any(sign in said for sign in HIDDEN), operation
    assert seen == set(SIGNS)


@pytest.mark.parametrize(
    "settings",
    [
        {"rerank": {"base_url": "http://evil.example", "model": "x"}},
        {"rerank.base_url": "http://evil.example"},
        {"rerank.provider": "embedded"},
        {"chat.base_url": "http://evil.example"},
        {"prompts": "/etc"},
        {"raptor.levels": 1},
        {"raptor": {"levels": 1}},
        {"contextual_search.by_model": True},
        {"answer.longest_question": 10},
        {"graph": {"edge_limit": 1}},
        {"person": "Bob"},
        {"": 1},
    ],
)
def test_a_request_brings_no_setting_but_those_listed(
    client: httpx.Client, settings: dict[str, Any]
) -> None:
    refused = client.post(f"{API}/ask", json={**QUESTION, "settings": settings})
    assert (refused.status_code, "can't be set" in refused.json()["detail"]) == (400, True)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        *((name, 10**9, "at most") for name in COSTLY),
        ("graph.max_path_length", "1000000000", "at most"),
        ("local_search.include", ["x"] * 101, "at most"),
        ("graph.traversal_instructions", ["[" * 100_000], "deep"),
        ("sparql_search.seconds", 10.0**9, "at most"),
        ("answer.response_type", "\ud800", "surrogate"),
    ],
)
def test_a_request_keeps_the_server_busy_for_no_longer_than_a_few_questions(
    client: httpx.Client, name: str, value: Any, problem: str
) -> None:
    body = json.dumps({"question": "Who?", "mode": "graph", "settings": {name: value}})
    refused = client.post(f"{API}/ask", content=body)
    assert (refused.status_code, problem in refused.json()["detail"]) == (400, True)
    most = {"graph.max_path_length": 40, "global_search.seed": 10**9}
    assert client.post(f"{API}/ask", json={**QUESTION, "settings": most}).status_code == 200


def test_each_setting_of_modes_is_allowed_or_refused_on_purpose() -> None:
    sections = {**ModeSettings.model_fields, "answer": Settings.model_fields["answer"]}
    fields = {
        f"{section}.{name}"
        for section, field in sections.items()
        for name in getattr(field.annotation, "model_fields", ())
    }
    assert {name for name in fields - ALLOWED if not name.startswith("raptor.")} == {
        "contextual_search.enabled",
        "contextual_search.by_model",
        "sparql_search.by_model",
        "contextual_search.max_document_tokens",
        "contextual_search.names",
        "rerank.provider",
        "rerank.base_url",
        "rerank.model",
        "rerank.api_key",
        "answer.longest_question",
    }
    assert ALLOWED - fields == {"integrity.strict"}
