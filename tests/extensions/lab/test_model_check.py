"""``tgraph doctor --model`` names what a server can't do, and the setting that mends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Terminal
from tgraph.engine.checks import HealthFinding
from tgraph.extensions.lab.model_check import examine_model, prompt_budgets
from tgraph.settings import load_settings
from tgraph.testing import Fault, ScriptedServer
from tgraph.testing.server import ServerRequest

KEY = "sk-very-secret-0123456789"
KEEPERS = '{"lighthouse": "Brun", "lit": 1871, "keepers": ["Ada Rell"]}'
EMBEDDING = {"EMBEDDING__PROVIDER": "openai"}


def ignoring(request: ServerRequest) -> str:
    """A server that takes a response format and keeps to the prompt alone."""
    return '{"answer": "Brun"}' if request.body.get("response_format") else KEEPERS


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The findings about a server of these abilities, by subject."""

    def ask(env: dict[str, str], **options: Any) -> dict[str, HealthFinding]:
        faults = [Fault.parse(text) for text in options.pop("faults", ())]
        for name, value in {"CHAT__MODEL": "scripted", **env}.items():
            monkeypatch.setenv(f"TGRAPH_{name}", value)
        with ScriptedServer(faults=faults, **options) as server:
            monkeypatch.setenv("TGRAPH_CHAT__BASE_URL", server.base_url)
            return {finding.subject: finding for finding in examine_model(None)}

    return ask


def test_a_server_that_can_everything(found: Any) -> None:
    told = found(EMBEDDING)
    assert {finding.status for finding in told.values()} == {"ok"}
    assert list(told) == [
        *("model", "structured output", "streaming", "context", "embeddings"),
    ]


FAULTS: dict[str, tuple[dict[str, str], dict[str, Any], str, str, str, str]] = {
    "key missing": ({}, {"api_key": KEY}, "model", "bad", "asks for an API key", "chat.api_key"),
    "key refused": (
        *({"CHAT__API_KEY": "sk-wrong-one"}, {"api_key": KEY}),
        *("model", "bad", "refused the API key", "chat.api_key"),
    ),
    "unknown model": (
        *({}, {"models": ["a", "b"]}),
        *("model", "bad", "does not have the model 'scripted'", "chat.model to one of: a, b"),
    ),
    "not listed": (
        *({"CHAT__MODEL": "other"}, {}, "model", "note"),
        *("doesn't list it", ""),
    ),
    "no format": (
        *({}, {"formats": ["text"]}, "structured output", "note"),
        *("json_schema is refused", "chat.structured_output to none"),
    ),
    "only objects": (
        *({}, {"formats": ["text", "json_object"]}, "structured output", "note"),
        *("json_schema is refused", "chat.structured_output to json_object"),
    ),
    "format ignored": (
        *({}, {"replies": {"preflight_structure": ignoring}}, "structured output", "bad"),
        *("asked for by json_schema", "chat.structured_output to none; if"),
    ),
    "prose around": (
        *({}, {"replies": {"preflight_structure": f"Here: {KEEPERS}"}}, "structured output"),
        *("note", "not kept to", "chat.structured_output"),
    ),
    "nonsense": (
        *({}, {"faults": ["prose:preflight_structure"]}, "structured output", "bad"),
        *("holds no JSON", "larger model"),
    ),
    "thinks": (
        *({}, {"faults": ["think"]}, "structured output", "note", "20 tokens of thinking"),
        "chat.thinking = off",
    ),
    "only thinks": (
        *({"CHAT__MAX_TOKENS": "50"}, {"faults": ["reasoning_only"]}, "structured output", "bad"),
        *("took all of the reply", "Set chat.thinking to off. Raise chat.max_tokens"),
    ),
    "told not to, and thinks": (
        *({"CHAT__THINKING": "off"}, {"faults": ["think_unclosed"]}, "structured output", "bad"),
        *("took all of the reply", "Set chat.max_tokens"),
    ),
    "length": (
        *({"CHAT__MAX_TOKENS": "40"}, {"faults": ["length"]}, "structured output", "bad"),
        *("chat.max_tokens = 40", "Raise chat.max_tokens"),
    ),
    "length of its own": (
        *({}, {"faults": ["length"]}, "structured output", "bad"),
        *("limit of the server's own", "Set chat.max_tokens"),
    ),
    "context": (
        *({}, {"context": 3000}, "context", "bad"),
        *("maximum context length is 3000 tokens", "to at most 2000"),
    ),
    "context cut": (
        *({}, {"context": 3000, "cuts": True}, "context", "bad"),
        *("the server reads 3,001, without a word", "reports.max_input_tokens"),
    ),
    "no usage": ({}, {"report_usage": False}, "streaming", "note", "estimated", ""),
    "no stream": (
        *({}, {"streams": False}, "streaming", "bad"),
        *("Streaming is not supported", "`tgraph ask` streams"),
    ),
    "no embeddings": (
        *(EMBEDDING, {"embeds": False}, "embeddings", "bad"),
        *("nothing OpenAI-compatible", "embedding.base_url"),
    ),
    "other size": (
        *(EMBEDDING, {"faults": ["longer_vectors:embeddings:2"]}, "embeddings", "bad"),
        *("changed its dimension from 64 to 65", "embedding.model"),
    ),
    "other vectors": (
        *(EMBEDDING, {"faults": ["other_vectors:embeddings:2"]}, "embeddings", "bad"),
        *("two vectors", "embedding.model"),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_named_with_what_mends_it(name: str, found: Any) -> None:
    env, options, subject, status, detail, remedy = FAULTS[name]
    told = found(env, **options)
    finding = told[subject]
    assert finding.status == status
    assert detail in finding.detail
    assert remedy in finding.remedy
    assert "sk-" not in repr(told)


def test_a_context_that_the_server_states_costs_no_long_prompt(found: Any) -> None:
    told = found({}, facts={"max_model_len": 4096})["context"]
    assert (told.status, told.detail[:30]) == ("bad", "the server says: 4,096 tokens;")
    assert found({}, facts={"meta": {"n_ctx": 40_000}})["context"].status == "ok"


def test_a_server_that_is_not_there_is_the_only_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TGRAPH_CHAT__BASE_URL", "http://127.0.0.1:9/v1")
    (finding,) = examine_model(None)
    assert (finding.status, finding.subject) == ("bad", "model")


def test_without_a_server_there_is_nothing_to_ask() -> None:
    (finding,) = examine_model(None)
    assert (finding.status, finding.remedy) == ("note", "Set chat.base_url, or OPENAI_API_KEY.")


def test_every_budget_of_a_prompt_is_known() -> None:
    names = prompt_budgets(load_settings(None))
    assert {"chunk.size", "reports.max_input_tokens", "graph.max_context_tokens"} < set(names)
    assert not any("output" in name or name == "chat.max_tokens" for name in names)


def test_the_command_ends_with_1_where_something_is_bad(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(terminal.root)
    with ScriptedServer(dimension=32, faults=[Fault("reasoning")]) as server:
        monkeypatch.setenv("TGRAPH_CHAT__BASE_URL", server.base_url)
        monkeypatch.setenv("TGRAPH_EMBEDDING__PROVIDER", "openai")
        result = terminal("doctor", "--model", "--json", "-r", root, code=1)
    told = {row["subject"]: row for row in json.loads(result.stdout)}
    assert "graph's" in told["embeddings"]["detail"]
    assert "embedding.model" in told["embeddings"]["remedy"]
    assert "Not in order: embeddings." in result.stderr
    assert terminal("doctor", "--model", "--repair", "-r", root, code=2)


def test_nothing_is_written(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in terminal.root.rglob("*")}

    before = files()
    with ScriptedServer() as server:
        monkeypatch.setenv("TGRAPH_CHAT__BASE_URL", server.base_url)
        terminal("doctor", "--model", "-r", str(terminal.root))
    assert files() == before
