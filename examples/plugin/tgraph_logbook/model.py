"""A chat model without a server: it answers with the first line of the first piece of evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from tgraph.model import Agent, Usage
from tgraph.models.base import Call, CallSink, ChatReply, ChatRequest, no_sink
from tgraph.models.server_capabilities import ServerCapabilities

_EVIDENCE = re.compile(r"<<<EVIDENCE\n(\{.*\})")


class QuotingModel:
    """A ``ChatModel``. Each call goes to the sink, which puts the call on record; a replay finds
    the reply by the request's body."""

    agent = Agent("model", "quoting", "0.1.0", provider="tgraph-logbook")

    def complete(self, request: ChatRequest, sink: CallSink = no_sink) -> ChatReply:
        return self._answer(request, sink, stream=False)

    def stream(self, request: ChatRequest, sink: CallSink = no_sink) -> Iterator[str]:
        yield self._answer(request, sink, stream=True).text

    def _answer(self, request: ChatRequest, sink: CallSink, *, stream: bool) -> ChatReply:
        started, prompt = datetime.now(UTC), request.messages[-1]["content"]
        body = ServerCapabilities().body(request, self.agent.name, stream=stream)
        text = _quote_evidence(prompt)
        usage = Usage(len(prompt) // 4, len(text) // 4, 1)
        reply = {"text": text, "finish_reason": "stop", "model": self.agent.name}
        ended = datetime.now(UTC)
        sink(Call("chat", body, reply, self.agent, started, ended, usage, request.prompt))
        return ChatReply(text, "stop", usage, self.agent.name)


def _quote_evidence(prompt: str) -> str:
    evidence = _EVIDENCE.search(prompt)
    if evidence is None:
        return json.dumps({"no_evidence": True})
    piece = json.loads(evidence[1])
    quote = piece["chunk"].partition("\n")[0]
    return json.dumps({"sentence": quote, "citations": [piece["id"]]}, ensure_ascii=False)
