"""Thoughts are told from replies, whole or in pieces, and counted; none reaches a reader."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.errors import ModelError
from tgraph.model import Prompt, Usage
from tgraph.models.base import Call, ChatReply, ChatRequest
from tgraph.models.endpoint import Endpoint
from tgraph.models.openai import OpenAIChat
from tgraph.models.thinking import ThoughtFilter, without_thoughts
from tgraph.testing import Fault, ScriptedServer
from tgraph.testing.faults import THOUGHT, FaultKind

ROW = '{"sentence": "He said <think> and left.", "citations": ["e1"]}'
QUOTED = '{"sentence": "It ends with </think>.", "citations": ["e1"]}'
QUOTING = (
    f"Here is the answer:\n{QUOTED}\n{ROW}",
    f"Here is the answer:\n```json\n{QUOTED}\n{ROW}\n```",
    'Here:\n{\n  "sentence": "The tag is \\"</think>\\"",\n  "citations": []\n}',
    "The tag </think> ends it. The answer follows.",
    "The tag `</think>`\nends it.",
)
REQUEST = ChatRequest(Prompt("say", "Say it.", "0" * 64), [{"role": "user", "content": "Speak."}])


@pytest.mark.parametrize(
    ("text", "reply", "thought"),
    [
        (ROW, ROW, ""),
        (f"\n {ROW}", f"\n {ROW}", ""),
        (f"<think>{THOUGHT}</think>{ROW}", ROW, THOUGHT),
        (f"\n<THINK>\n{THOUGHT}\n</Think>\n\n{ROW}", ROW, THOUGHT),
        (f"{THOUGHT}</think>\n{ROW}", ROW, THOUGHT),
        (f"<think>{THOUGHT}", "", THOUGHT),
        (f"<thinking>a</thinking><think>b</think>{ROW}", ROW, "a\nb"),
        (f"[THINK]{THOUGHT}[/THINK]{ROW}", ROW, THOUGHT),
        (f"<reasoning>a </think> b</reasoning>{ROW}", ROW, "a </think> b"),
        ("[1, 2]", "[1, 2]", ""),
        ("```json\n{}\n```", "```json\n{}\n```", ""),
        ("A plain sentence.", "A plain sentence.", ""),
        ("<thin", "<thin", ""),
        (f"First a draft:\n{ROW}\nDone.\n</think>\n\n{ROW}", ROW, f"First a draft:\n{ROW}\nDone."),
        (f"{THOUGHT}\n</think>", "", THOUGHT),
        *((text, text, "") for text in QUOTING),
        ("", "", ""),
        ("<think></think>" * 5_000 + ROW, ROW, ""),
    ],
)
def test_a_thought_is_told_from_the_reply(text: str, reply: str, thought: str) -> None:
    said, thinking = without_thoughts(text)
    assert (said, thinking.strip()) == (reply, thought)


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "[THINK]", "[/THINK]", "{", "x y", "\n", "<", "`"]),
        max_size=8,
    ),
    st.lists(st.integers(0, 40), max_size=6),
)
def test_how_a_text_is_cut_into_pieces_changes_nothing(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    told, out, start = ThoughtFilter(), "", 0
    for cut in [*sorted(min(cut, len(text)) for cut in cuts), len(text)]:
        out += told.feed(text[start:cut])
        start = cut
    out += told.finish()
    assert (out, told.thought) == without_thoughts(text)


def test_json_is_given_out_as_it_comes() -> None:
    told = ThoughtFilter()
    assert [told.feed(piece) for piece in ("<th", "ink>a</thi", "nk>\n", "{", '"a"')] == [
        *("", "", "", "{", '"a"')
    ]


KINDS: tuple[FaultKind, ...] = ("think", "think_unopened", "reasoning", "content_parts")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("usage", [False, True])
def test_a_client_keeps_thoughts_to_itself_and_counts_them(
    kind: FaultKind, stream: bool, usage: bool
) -> None:
    calls: list[Call] = []
    with (
        ScriptedServer({"": ROW}, faults=[Fault(kind)], report_usage=usage) as server,
        OpenAIChat("m", Endpoint(server.base_url)) as chat,
    ):
        pieces: list[str] = []
        if stream:
            reply = _streamed(chat, calls, pieces)
            assert "".join(pieces) == ROW
            assert len(pieces) > 1
        else:
            reply = chat.complete(REQUEST, calls.append)
    assert reply.text == ROW
    assert reply.extra["reasoning"].strip() == THOUGHT
    assert reply.usage.reasoning_tokens > 10
    assert usage or reply.usage.output_tokens > reply.usage.reasoning_tokens
    (call,) = calls
    assert call.reply["text"] == ROW
    assert call.reply["usage"]["reasoning_tokens"] == call.usage.reasoning_tokens


def _streamed(chat: OpenAIChat, calls: list[Call], pieces: list[str]) -> ChatReply:
    def run() -> Iterator[ChatReply]:
        reply = yield from chat.stream(REQUEST, calls.append)  # type: ignore[misc]
        yield reply

    *said, reply = run()
    pieces += said  # type: ignore[arg-type]
    return reply


@pytest.mark.parametrize("kind", ["think_unclosed", "reasoning_only"])
def test_a_reply_that_is_all_thinking_says_which_setting_helps(kind: FaultKind) -> None:
    with (
        ScriptedServer(faults=[Fault(kind)]) as server,
        OpenAIChat("m", Endpoint(server.base_url)) as chat,
        pytest.raises(ModelError, match="used up its tokens by thinking") as caught,
    ):
        chat.complete(REQUEST)
    assert caught.value.remedy == "Raise chat.max_tokens, or set chat.thinking to off."


def test_what_the_server_counted_as_thinking_counts() -> None:
    one = Usage(1, 20, 1, 15)
    assert one + one == Usage(2, 40, 2, 30)


def test_without_thinking_the_server_is_told_so_and_may_refuse() -> None:
    with (
        ScriptedServer(rejects=["chat_template_kwargs"]) as server,
        OpenAIChat("m", Endpoint(server.base_url), thinking=False) as chat,
    ):
        chat.complete(REQUEST)
        chat.complete(REQUEST)
    first, taught, tried_again, *others = (request.body for request in server.requests)
    for body in (first, tried_again):
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
    others.append(taught)
    assert [body.get("reasoning_effort") for body in others] == ["none", "none"]
    assert not any("chat_template_kwargs" in body for body in others)
