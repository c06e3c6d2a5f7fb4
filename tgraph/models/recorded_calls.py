"""Replay of recorded calls: model, embedder, ranking and reader without real calls.

A request gets the reply recorded for an equal request, the first not yet given; equal requests
are numbered by occurrence. An unrecorded request is an error, never a call."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

from tgraph.errors import EndpointError, ModelError, RefusedPromptError, TgraphError
from tgraph.model import Agent, Usage
from tgraph.models.base import (
    REFUSED_PROMPT,
    Call,
    CallSink,
    ChatReply,
    ChatRequest,
    Json,
    decode_vectors,
    no_sink,
    request_hash,
    well_formed,
)
from tgraph.models.reader import Passage, PassageReading, asks_for, recorded_readings
from tgraph.models.server_capabilities import ServerCapabilities

_KNOWN = frozenset({"text", "finish_reason", "model", "usage"})


class UnrecordedError(TgraphError):
    """An error for a request without recorded reply."""

    exit_code = 4


class RecordedCalls:
    """A session's calls, each replayed once; thread-safe.

    ``fatal`` is the text of the failure that ended the session, if any."""

    def __init__(self, calls: Iterable[Call], fatal: str = "") -> None:
        self.calls = sorted(calls, key=lambda call: (call.started, call.occurrence))
        self.fatal = fatal
        self._taken: set[int] = set()
        self._lock = threading.Lock()

    def start_again(self) -> None:
        """Reset replay: all recorded calls become available again."""
        with self._lock:
            self._taken.clear()

    def list_unrequested(self) -> list[Call]:
        """Return calls not yet requested."""
        return [call for number, call in enumerate(self.calls) if number not in self._taken]

    def chat(self, request: ChatRequest, *, stream: bool) -> list[Call]:
        """Return recorded calls of a request: failed attempts, if any, and the reply."""
        step = request.prompt.name
        with self._lock:
            for number, call in self._unused_calls("chat"):
                if (
                    call.prompt
                    and call.prompt.name == step
                    and _matches_request(call, request, stream)
                ):
                    self._taken.add(number)
                    return [call]
        raise UnrecordedError(f"No reply to this request of the step {step} was recorded.")

    def pass_call(self, call: Call, sink: CallSink) -> None:
        """Pass a recorded call to the sink unrequested."""
        with self._lock:
            self._taken.add(next(n for n, candidate in enumerate(self.calls) if candidate is call))
        sink(call)

    def embedding(self, texts: Sequence[str]) -> list[Call]:
        """Return calls that embedded the given texts, in order."""
        matching_calls: list[Call] = []
        remaining_texts = [_embeddable_text(text) for text in texts]
        with self._lock:
            while remaining_texts:
                number, call = self._find_embedding(remaining_texts)
                self._taken.add(number)
                matching_calls.append(call)
                if "error" in call.reply:
                    return matching_calls
                remaining_texts = remaining_texts[len(call.request["input"]) :]
        return matching_calls

    def rank(
        self, question: str, texts: Sequence[str], sink: CallSink = no_sink
    ) -> list[tuple[int, float]]:
        """The recorded ranking of the texts, as of ``tgraph.models.rerank.Reranker.rank``."""
        request_pair = question, [text or " " for text in texts]
        with self._lock:
            for number, call in self._unused_calls("rerank"):
                if (call.request["query"], call.request["documents"]) == request_pair:
                    self._taken.add(number)
                    break
            else:
                raise UnrecordedError(f"No ranking of these {len(texts)} texts was recorded.")
        sink(_clear_repaired(call))
        if "error" in call.reply:
            raise self.failure(call)
        return [(int(place), float(score)) for place, score in call.reply["scores"]]

    def reading(self, question: str, passages: Sequence[Passage]) -> Call:
        """Return the call that read the given passages."""
        with self._lock:
            for number, call in self._unused_calls("reading"):
                if asks_for(call, question, passages):
                    self._taken.add(number)
                    return call
        raise UnrecordedError(f"No reading of these {len(passages)} passages was recorded.")

    def support(self, statement: str, texts: Sequence[str]) -> Call | None:
        """Return the recorded call judging support by the texts; None if support was never
        judged."""
        request_pair = statement, list(map(well_formed, texts))
        with self._lock:
            for number, call in self._unused_calls("support"):
                if (call.request["statement"], call.request["texts"]) == request_pair:
                    self._taken.add(number)
                    return call
        if any(call.kind == "support" for call in self.calls):
            raise UnrecordedError(f"No support by these {len(texts)} texts was recorded.")
        return None

    def _find_embedding(self, rest: Sequence[str]) -> tuple[int, Call]:
        for number, call in self._unused_calls("embedding"):
            call_texts = [_embeddable_text(text) for text in call.request["input"]]
            if call_texts == list(rest[: len(call_texts)]):
                return number, call
        raise UnrecordedError(f"No vectors were recorded for {len(rest)} texts: {rest[0][:80]!r}.")

    def _unused_calls(self, kind: str) -> list[tuple[int, Call]]:
        numbered_calls = enumerate(self.calls)
        return [
            (n, call) for n, call in numbered_calls if call.kind == kind and n not in self._taken
        ]

    def failure(self, call: Call) -> ModelError:
        """Return a call's failure as originally raised."""
        text = str(call.reply["error"])
        if REFUSED_PROMPT in call.reply:
            return RefusedPromptError(text)
        return EndpointError(text) if text == self.fatal else ModelError(text)


class ReplayedChat:
    """A ``ChatModel`` whose replies are recorded ones."""

    def __init__(self, agent: Agent, recorded: RecordedCalls) -> None:
        self.agent = agent
        self._recorded = recorded

    def complete(self, request: ChatRequest, sink: CallSink = no_sink) -> ChatReply:
        return self._replay_reply(request, sink, stream=False)

    def stream(
        self, request: ChatRequest, sink: CallSink = no_sink
    ) -> Generator[str, None, ChatReply]:
        """Yield the reply as a single piece."""
        reply = self._replay_reply(request, sink, stream=True)
        yield reply.text
        return reply

    def _replay_reply(self, request: ChatRequest, sink: CallSink, *, stream: bool) -> ChatReply:
        [call] = self._recorded.chat(request, stream=stream)
        sink(_clear_repaired(replace(call, prompt=request.prompt)))
        if "error" in call.reply:
            raise self._recorded.failure(call)
        return reply_of(call.reply, call.usage)


class ReplayedEmbedder:
    """An ``Embedder`` whose vectors are recorded ones."""

    def __init__(
        self, agent: Agent, recorded: RecordedCalls, *, lexical: bool, max_tokens: int | None
    ) -> None:
        self.agent = agent
        self.lexical = lexical
        self.max_tokens = max_tokens
        self._recorded = recorded

    @property
    def dimension(self) -> int:
        """The recorded vector dimension; raises ``UnrecordedError`` if no vector was recorded."""
        for call in self._recorded.calls:
            if "dimension" in call.reply:
                return int(call.reply["dimension"])
        raise UnrecordedError("The session has no recorded vectors.")

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        import numpy as np

        rows: list[NDArray[Any]] = []
        for call in self._recorded.embedding(texts):
            sink(_clear_repaired(call))
            if "error" in call.reply:
                raise self._recorded.failure(call)
            rows.append(decode_vectors(call.reply["vectors"], int(call.reply["dimension"])))
        if not rows:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.concatenate(rows).astype(np.float32)


class ReplayedReader:
    """A ``Reader`` replaying recorded readings, in any language."""

    language = ""

    def __init__(self, agent: Agent, recorded: RecordedCalls) -> None:
        self.agent = agent
        self._recorded = recorded

    def read(
        self, question: str, passages: Sequence[Passage], sink: CallSink = no_sink
    ) -> list[PassageReading]:
        if not passages:
            return []
        call = self._recorded.reading(question, passages)
        sink(_clear_repaired(call))
        return recorded_readings(call)

    def supports(
        self, statement: str, texts: Sequence[str], sink: CallSink = no_sink
    ) -> list[float] | None:
        """Return recorded support logits; None without texts or recorded support."""
        call = self._recorded.support(statement, texts) if texts else None
        if call is None:
            return None
        sink(_clear_repaired(call))
        return list(map(float, call.reply["logits"]))


def recorded_call(
    content: Mapping[str, Any], agent: Agent, started: datetime, usage: Usage, *, cached: bool
) -> Call:
    """Return a call restored from librarian content (``tgraph.record.recorder.call_content``)."""
    return Call(
        kind=content["kind"],
        request=content["request"],
        reply=content["reply"],
        agent=agent,
        started=started,
        ended=started,
        usage=usage,
        cached=cached,
        occurrence=int(content["occurrence"]),
    )


def reply_of(reply: Json, usage: Usage) -> ChatReply:
    """The reply that a call's record holds."""
    extra = {name: value for name, value in reply.items() if name not in _KNOWN}
    reason, model = str(reply.get("finish_reason", "stop")), str(reply.get("model", ""))
    return ChatReply(str(reply["text"]), reason, usage, model, extra)


def _clear_repaired(call: Call) -> Call:
    return replace(call, repaired=False)


def _embeddable_text(text: str) -> str:
    """Return text as sent by embedders: well formed and nonempty."""
    return well_formed(text) or " "


def _matches_request(call: Call, request: ChatRequest, stream: bool) -> bool:
    """Return whether the recorded request equals the given request, in the server's dialect."""
    body = call.request
    request_body = _dialect_of(body).body(request, body.get("model", ""), stream=stream)
    return request_hash("chat", request_body) == call.request_hash


def _dialect_of(body: Json) -> ServerCapabilities:
    """Return the dialect of a recorded request body."""
    form = (body.get("response_format") or {}).get("type", "none")
    limits = [name for name in ("max_tokens", "max_completion_tokens") if name in body]
    return ServerCapabilities(
        format=form,
        limit=limits[0] if limits else "none",  # type: ignore[arg-type]
        temperature="temperature" in body,
        seed="seed" in body,
        stream_options="stream_options" in body,
        effort="reasoning_effort" in body,
        template="chat_template_kwargs" in body,
        bound=body[limits[0]] if limits else None,
    )
