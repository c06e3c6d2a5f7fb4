"""The public fakes: a scripted model, a scripted server, and the plausible replies of both."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import jsonschema
import openai
import pytest

import tgraph.testing
from tgraph.errors import ModelError
from tgraph.model import Prompt
from tgraph.models.base import Call, ChatModel, ChatRequest
from tgraph.testing import Fault, HashingEmbedder, ScriptedModel, ScriptedServer
from tgraph.testing.faults import FAULT_KINDS
from tgraph.testing.script import build_instance, parse_blocks, plausible_reply

TEXT = (
    "Marie Curie discovered polonium with Pierre Curie in Paris. The weather was fine.\n"
    "In Stockholm she received the Nobel Prize."
)
EDGES = [
    {"id": "e1", "edge": "Marie Curie | discovered | polonium", "quotes": ["She did."]},
    {"id": "e2", "edge": "Paris | lies on | Seine", "quotes": []},
]


def prompted(step: str, **data: str) -> ChatRequest:
    shown = "\n".join(f"<<<{name}\n{text}\n{name}>>>" for name, text in data.items())
    messages = [{"role": "system", "content": f"Step: {step}"}, {"role": "user", "content": shown}]
    return ChatRequest(Prompt(step, "", "0" * 64), messages)


def edge_lines() -> str:
    return "\n".join(json.dumps(edge) for edge in EDGES)


def said(step: str, **data: str) -> str:
    return ScriptedModel().complete(prompted(step, **data)).text


# --- plausible replies --------------------------------------------------------------------------


def test_blocks_are_found_by_name() -> None:
    request = prompted("x", TEXT="a\n<<b>>", EMPTY="", QUESTION="who?")
    assert parse_blocks(request.messages) == {"TEXT": "a\n<<b>>", "EMPTY": "", "QUESTION": "who?"}


def test_a_graph_is_made_of_the_names_of_each_sentence() -> None:
    graph = json.loads(said("extract_graph", TEXT=TEXT))
    names = [entity["name"] for entity in graph["entities"]]
    assert names == ["Marie Curie", "Pierre Curie", "Paris", "Stockholm", "Nobel Prize"]
    triples = [(r["subject"], r["predicate"], r["object"]) for r in graph["relationships"]]
    assert ("Marie Curie", "discovered polonium with", "Pierre Curie") in triples
    assert ("Stockholm", "she received", "Nobel Prize") in triples
    assert not any("Paris" in t[0] and "Stockholm" in t[2] for t in triples)
    for relationship in graph["relationships"]:
        assert relationship["quote"] in TEXT
        assert 1 <= relationship["strength"] <= 10


def test_a_text_without_names_has_an_empty_graph() -> None:
    graph = json.loads(said("extract_graph", TEXT="it rained. 天气很好。"))
    assert graph == {"entities": [], "relationships": [], "attributes": []}


def test_concepts_are_the_names_and_long_words_of_the_question() -> None:
    reply = json.loads(said("extract_concepts", QUESTION="Which element did Marie Curie discover?"))
    assert reply == {"concepts": ["Marie Curie", "element", "discover"]}


def test_the_edges_that_share_words_with_the_question_are_selected() -> None:
    reply = said("select_edges", QUESTION="What did Marie Curie find?", EDGES=edge_lines())
    rows = [json.loads(line) for line in reply.splitlines()]
    assert [row["id"] for row in rows] == ["e1"]
    assert 0 < rows[0]["score"] <= 1
    assert said("select_edges", QUESTION="Why zinc?", EDGES=edge_lines()) == '{"none": true}'


def test_the_selection_also_comes_in_a_schema() -> None:
    row = {"type": "object", "properties": {"id": {"type": "string"}}}
    schema = {"type": "object", "properties": {"edges": {"type": "array", "items": row}}}
    messages = prompted("select_edges", QUESTION="Marie Curie?", EDGES=edge_lines()).messages
    reply = json.loads(plausible_reply("select_edges", messages, schema))
    assert [edge["id"] for edge in reply["edges"]] == ["e1"]


def test_each_edge_becomes_a_sentence_that_cites_it() -> None:
    reply = said("synthesise_answer", QUESTION="Who?", EDGES=edge_lines() + "\nnot json")
    rows = [json.loads(line) for line in reply.splitlines()]
    assert rows[0] == {"sentence": "Marie Curie discovered polonium.", "citations": ["e1"]}
    assert [row["citations"] for row in rows] == [["e1"], ["e2"]]
    assert json.loads(said("synthesise_answer", EDGES="")) == {"no_evidence": True}


def test_nothing_is_added_to_a_graph_by_asking_for_more() -> None:
    assert json.loads(said("extract_graph_more", TEXT=TEXT))["relationships"] == []


def test_any_other_step_gets_what_its_schema_asks_for() -> None:
    schema: dict[str, Any] = {
        "$defs": {
            "Finding": {
                "type": "object",
                "properties": {"summary": {"type": "string"}, "rank": {"type": "integer"}},
                "required": ["summary", "rank"],
            }
        },
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "rating": {"type": "number", "minimum": 2, "maximum": 9},
            "kind": {"enum": ["a", "b"]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "findings": {"type": "array", "items": {"$ref": "#/$defs/Finding"}},
        },
        "required": ["title", "rating", "kind", "note", "findings"],
    }
    reply = json.loads(plausible_reply("report", prompted("report", TEXT=TEXT).messages, schema))
    jsonschema.validate(reply, schema)
    assert reply["findings"][0]["summary"].startswith("Marie Curie")
    assert build_instance({"const": 3}, "x") == 3


def test_a_step_without_schema_gets_a_sentence_of_its_data() -> None:
    assert said("summarise", TEXT=TEXT).startswith("Marie Curie discovered")


# --- the model ----------------------------------------------------------------------------------


def test_a_script_is_a_text_a_function_an_exception_or_a_list() -> None:
    model: ChatModel = ScriptedModel(
        {
            "text": "one",
            "function": lambda request: request.messages[0]["content"],
            "exception": ModelError("No."),
            "list": ["first", ModelError("Not now."), lambda _: "third"],
        }
    )
    assert model.complete(prompted("text")).text == "one"
    assert model.complete(prompted("function")).text == "Step: function"
    with pytest.raises(ModelError, match="No"):
        model.complete(prompted("exception"))
    assert model.complete(prompted("list")).text == "first"
    with pytest.raises(ModelError, match="Not now"):
        model.complete(prompted("list"))
    assert model.complete(prompted("list")).text == "third"
    with pytest.raises(LookupError, match="only 3 replies for list"):
        model.complete(prompted("list"))


def test_calls_are_counted_and_recorded_the_same_every_time() -> None:
    def run() -> tuple[list[Call], ScriptedModel]:
        calls: list[Call] = []
        model = ScriptedModel({"bad": ModelError("No.")}, piece=5)
        model.complete(prompted("summarise", TEXT=TEXT), calls.append)
        pieces = list(model.stream(prompted("summarise", TEXT=TEXT), calls.append))
        assert max(map(len, pieces)) == 5
        with pytest.raises(ModelError):
            list(model.stream(prompted("bad"), calls.append))
        return calls, model

    calls, model = run()
    assert calls == run()[0]
    assert (model.count("summarise"), model.count("bad")) == (2, 1)
    assert [call.reply.get("error") for call in calls] == [None, None, "No."]
    assert calls[1].request["stream"] is True


# --- the server ---------------------------------------------------------------------------------


@pytest.fixture
def server() -> Any:
    with ScriptedServer(models=["fox"], api_key="right") as running:
        yield running


def client(server: ScriptedServer, key: str = "right") -> openai.OpenAI:
    return openai.OpenAI(base_url=server.base_url, api_key=key, max_retries=0)


def test_the_openai_client_is_served(server: ScriptedServer) -> None:
    messages: Any = prompted("extract_concepts", QUESTION="Who was Marie Curie?").messages
    with client(server) as api:
        assert [model.id for model in api.models.list()] == ["fox"]
        whole = api.chat.completions.create(model="fox", messages=messages)
        assert json.loads(whole.choices[0].message.content or "") == {"concepts": ["Marie Curie"]}
        assert whole.usage is not None
        packed = api.embeddings.create(model="fox", input=["a fox", "a fox", "the sea"])
        plain = api.embeddings.create(model="fox", input="a fox", encoding_format="float")
    assert server.count("extract_concepts") == 1
    assert packed.data[0].embedding == packed.data[1].embedding != packed.data[2].embedding
    assert plain.data[0].embedding == pytest.approx(packed.data[0].embedding, abs=1e-6)


def test_streams_end_with_usage_only_if_asked(server: ScriptedServer) -> None:
    messages: Any = prompted("summarise", TEXT=TEXT).messages
    with client(server) as api:
        for include in (True, False):
            options: Any = {"include_usage": include}
            stream = api.chat.completions.create(
                model="fox", messages=messages, stream=True, stream_options=options
            )
            chunks = list(stream)
            text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            assert text.startswith("Marie Curie")
            assert (chunks[-1].usage is not None) is include


def test_wrong_keys_and_models_are_refused(server: ScriptedServer) -> None:
    with client(server, "wrong") as api, pytest.raises(openai.AuthenticationError):
        api.chat.completions.create(model="fox", messages=[])
    with client(server) as api, pytest.raises(openai.NotFoundError):
        api.chat.completions.create(model="wolf", messages=[])


def test_unknown_paths_are_not_found(server: ScriptedServer) -> None:
    for data in (None, b"{}"):
        with pytest.raises(urllib.error.HTTPError, match="404") as caught:
            urllib.request.urlopen(server.base_url + "/nothing", data)
        caught.value.close()


def test_unknown_ids_and_over_long_replies_can_be_had() -> None:
    messages: Any = prompted("select_edges", QUESTION="Marie?", EDGES=edge_lines()).messages
    faults = [Fault("unknown_ids", nth=1), Fault("over_long", nth=2), Fault("prose", nth=3)]
    with ScriptedServer(faults=faults) as server, client(server) as api:
        texts = [
            api.chat.completions.create(model="m", messages=messages).choices[0].message.content
            for _ in range(4)
        ]
    assert json.loads(texts[0] or "")["id"] == "made-up"
    assert len(texts[1] or "") > 100_000
    assert "{" not in (texts[2] or "")
    assert json.loads(texts[3] or "")["id"] == "e1"
    assert [request.fault for request in server.requests] == [
        "unknown_ids",
        "over_long",
        "prose",
        None,
    ]


def test_faults_are_limited_to_a_step_and_a_count() -> None:
    faults = [Fault("server_error", step="summarise", times=2)]
    with ScriptedServer(faults=faults) as server, client(server) as api:
        seen = []
        for step in ("other", "summarise", "summarise", "summarise"):
            messages: Any = prompted(step, TEXT=TEXT).messages
            try:
                api.chat.completions.create(model="m", messages=messages)
                seen.append(200)
            except openai.InternalServerError:
                seen.append(500)
    assert seen == [200, 500, 500, 200]


def test_faults_can_be_written_as_text() -> None:
    assert Fault.parse("hang") == Fault("hang")
    assert Fault.parse("drop:extract_graph:2") == Fault("drop", "extract_graph", 2)
    assert {Fault.parse(kind).kind for kind in FAULT_KINDS} == set(FAULT_KINDS)
    with pytest.raises(ValueError, match="not a fault; there are rate_limit"):
        Fault.parse("fire")


def test_the_server_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "tgraph.testing", "--api-key", "k", "--fault", "empty:x:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(url + "/models") as answer:
            assert json.load(answer)["object"] == "list"
        process.terminate()
        assert process.wait(timeout=20) == 0


def test_the_fakes_are_public() -> None:
    for name in tgraph.testing.__all__:
        assert getattr(tgraph.testing, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = tgraph.testing.Nothing
    assert HashingEmbedder().lexical
