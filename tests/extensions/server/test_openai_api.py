"""The OpenAI API, by the official client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.extensions.server.conftest import QUESTION, Running
from tgraph.retrieve.modes.registry import MODES

ANSWER = "Marie Curie discovered polonium."
ASKED: Any = [{"role": "user", "content": QUESTION}]


def pointed(server: Running, base: str = "/v1") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.address}{base}", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def chat(server: Running) -> Iterator[openai.OpenAI]:
    with pointed(server) as found:
        yield found


def test_every_mode_is_a_model(chat: openai.OpenAI) -> None:
    names = [each.id for each in chat.models.list()]
    assert names == ["tgraph-auto", *(f"tgraph-{mode}" for mode in MODES)]
    assert chat.models.retrieve("tgraph-graph").owned_by == "tgraph"


def test_an_answer_has_its_citations(chat: openai.OpenAI, server: Running) -> None:
    done = chat.chat.completions.create(model="tgraph-graph", messages=ASKED, temperature=0.5)
    message = done.choices[0].message
    assert message.content == ANSWER
    assert message.annotations
    cited = message.annotations[0].url_citation
    assert message.content[cited.start_index : cited.end_index] == ANSWER
    assert cited.url.startswith(f"{server.address}/workbench/default/documents/")
    assert "start=0&end=32" in cited.url
    assert done.model_extra is not None
    session = done.model_extra["explain_id"]
    assert done.id == f"chatcmpl-{session.rpartition(':')[2]}"
    with server.client() as client:
        found = client.get(f"/api/v1/collections/default/sessions/{session}").json()
    assert (found["question"], found["status"]) == (QUESTION, "completed")


def test_a_stream_adds_up_to_the_answer(chat: openai.OpenAI) -> None:
    stream = chat.chat.completions.create(
        model="tgraph-auto", messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    texts = [each.choices[0].delta.content or "" for each in chunks if each.choices]
    assert "".join(texts) == ANSWER
    assert [each.choices[0].finish_reason for each in chunks if each.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    last = [each for each in chunks if each.choices][-1].choices[0].delta
    assert last.model_extra is not None
    assert last.model_extra["annotations"][0]["url_citation"]["end_index"] == len(ANSWER)


def test_earlier_messages_are_the_history(chat: openai.OpenAI, server: Running) -> None:
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        *ASKED,
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": [{"type": "text", "text": "What else did she discover?"}]},
    ]
    done = chat.chat.completions.create(model="tgraph-graph", messages=messages)
    with server.client() as client:
        session = (done.model_extra or {})["explain_id"]
        trace = client.get(f"/api/v1/collections/default/sessions/{session}/trace").json()
    assert ANSWER in trace["parameters"]["history"]


def test_links_stand_in_the_text_where_that_is_wanted(server: Running) -> None:
    with pointed(server, "/cited/v1") as chat:
        done = chat.chat.completions.create(model="tgraph-graph", messages=ASKED)
    assert (done.choices[0].message.content or "").startswith(f"{ANSWER} [[1]](http://127.0.0.1:")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"model": "gpt-4.1"}, openai.NotFoundError),
        ({"model": "tgraph-graph@absent"}, openai.NotFoundError),
        ({"messages": [{"role": "user", "content": " "}]}, openai.BadRequestError),
        ({"messages": [{"role": "system", "content": "x"}]}, openai.BadRequestError),
        ({"messages": [{"role": "robot", "content": "x"}]}, openai.BadRequestError),
        ({"n": 2}, openai.BadRequestError),
        ({"tools": [{"type": "function"}]}, openai.BadRequestError),
        ({"response_format": {"type": "json_object"}}, openai.BadRequestError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_it_can_not_do_is_told(
    chat: openai.OpenAI, wrong: dict[str, Any], error: type[openai.APIStatusError], stream: bool
) -> None:
    asked: dict[str, Any] = {"model": "tgraph-graph", "messages": ASKED, "stream": stream, **wrong}
    with pytest.raises(error) as raised:
        chat.chat.completions.create(**asked)
    assert raised.value.message
