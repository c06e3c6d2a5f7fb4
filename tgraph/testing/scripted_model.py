"""A scripted language model for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime, timedelta

from tgraph.errors import ModelError
from tgraph.model import Agent, Usage
from tgraph.models.base import Call, CallSink, ChatReply, ChatRequest, no_sink
from tgraph.models.client import rough_tokens
from tgraph.models.server_capabilities import ServerCapabilities
from tgraph.testing.script import Script, ScriptedReply, plausible_reply

_START = datetime(2026, 1, 1, tzinfo=UTC)


def ticking_clock(start: datetime = _START) -> Callable[[], datetime]:
    """Return a clock advancing one millisecond per reading."""
    lock, ticks = threading.Lock(), [0]

    def read() -> datetime:
        with lock:
            ticks[0] += 1
            return start + timedelta(milliseconds=ticks[0])

    return read


class ScriptedModel:
    """A ``ChatModel`` without server, giving scripted replies.

    ``replies`` maps prompt names to replies: a text, a function of the ``ChatRequest``, an
    exception to raise, or a list used in order. Unlisted steps get plausible replies built from
    the prompt (``tgraph.testing.script``). ``stream`` yields ``piece`` characters at a time.
    ``requests`` holds every request in order; ``count(step)`` counts requests of a step. Calls
    go to their sink like real model calls."""

    def __init__(
        self,
        replies: Mapping[str, ScriptedReply[ChatRequest]] | None = None,
        *,
        name: str = "scripted",
        piece: int = 8,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._name = name
        self._script: Script[ChatRequest] = Script(replies)
        self._piece = piece
        self._clock = clock or ticking_clock()
        self.requests: list[ChatRequest] = []

    @property
    def agent(self) -> Agent:
        return Agent("model", self._name, provider="tgraph.testing")

    def count(self, step: str) -> int:
        return sum(request.prompt.name == step for request in self.requests)

    def complete(self, request: ChatRequest, sink: CallSink = no_sink) -> ChatReply:
        return self._answer_request(request, sink, stream=False)

    def stream(
        self, request: ChatRequest, sink: CallSink = no_sink
    ) -> Generator[str, None, ChatReply]:
        """Yield reply pieces; after the last piece, the sink receives the call."""
        calls: list[Call] = []
        try:
            reply = self._answer_request(request, calls.append, stream=True)
            for start in range(0, len(reply.text), self._piece):
                yield reply.text[start : start + self._piece]
        finally:
            for call in calls:
                sink(call)
        return reply

    def _answer_request(self, request: ChatRequest, sink: CallSink, *, stream: bool) -> ChatReply:
        self.requests.append(request)
        started = self._clock()
        body = ServerCapabilities().body(request, self._name, stream=stream)
        sent = sum(rough_tokens(m["content"]) for m in request.messages)

        def finish(reply: Mapping[str, object], usage: Usage) -> None:
            ended, prompt = self._clock(), request.prompt
            sink(Call("chat", body, reply, self.agent, started, ended, usage, prompt))

        try:
            text = self._write_reply(request)
        except BaseException as error:
            finish({"error": str(error) or type(error).__name__}, Usage(sent, 0, 1))
            raise
        usage = Usage(sent, rough_tokens(text), 1)
        counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        finish({"text": text, "finish_reason": "stop", "model": self._name, "usage": counts}, usage)
        return ChatReply(text, "stop", usage, self._name)

    def _write_reply(self, request: ChatRequest) -> str:
        scripted = self._script.reply(request.prompt.name, request)
        if scripted is None:
            return plausible_reply(request.prompt.name, request.messages, request.schema)
        if not scripted.strip():
            raise ModelError(f"The reply of {self._name} is empty.", "Ask again.")
        return scripted
