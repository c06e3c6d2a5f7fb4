"""Shared call handling of all model server clients: timing, counting, recording."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from typing import Literal as Choice

from tgraph.errors import RefusedPromptError
from tgraph.model import Agent, Prompt, Usage
from tgraph.models.base import REFUSED_PROMPT, Call, CallSink, Clock
from tgraph.models.endpoint import Endpoint

Counter = Callable[[str], int]
_OWN = frozenset(("_lock", "_counter"))  # of one process
_MESSAGE_OVERHEAD = 4  # tokens around each message, as OpenAI's cookbook counts them


def read_member(reply: Any, name: str) -> Any:
    """Return a member of a server's JSON object; None if missing or no object."""
    return reply.get(name) if isinstance(reply, Mapping) else None


def rough_tokens(text: str) -> int:
    """Estimate a text's token count: a token per four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def _count_of(value: object) -> int | None:
    """Return a server's count; None for invalid counts."""
    return value if type(value) is int and value >= 0 else None


@dataclass(slots=True)
class Exchange:
    """A running model request; final data becomes the recorded call.

    ``request_text`` is the request as canonical JSON, if already known."""

    kind: Choice["chat", "embedding", "rerank"]
    agent: Agent
    prompt: Prompt | None
    request: Mapping[str, Any] = field(default_factory=dict)
    request_text: str = ""
    reply: dict[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=lambda: Usage(calls=1))


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A call under way: ``step`` names its prompt (blank: none), ``began`` is in seconds of
    ``time.monotonic``."""

    step: str
    began: float


_waiting_calls: dict[int, WaitingCall] = {}


def list_waiting_calls() -> list[WaitingCall]:
    """Return this process's model calls under way, the longest first."""
    return list(_waiting_calls.values())


class Client:
    """What chat models and embedders share: an endpoint, a model, a clock."""

    def __init__(
        self, model: str, endpoint: Endpoint, count_tokens: Counter | None, clock: Clock
    ) -> None:
        self.model = model
        self.endpoint = endpoint
        self._counter = count_tokens
        self._clock = clock
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name not in _OWN}
        return {**state, "_counter": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    @property
    def agent(self) -> Agent:
        return Agent("model", self.model, provider=self.endpoint.url)

    def close(self) -> None:
        """Closes the endpoint's connections."""
        self.endpoint.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def _exchange(
        self, kind: Choice["chat", "embedding", "rerank"], prompt: Prompt | None, sink: CallSink
    ) -> Iterator[Exchange]:
        exchange, started = Exchange(kind, self.agent, prompt), self._clock()
        _waiting_calls[id(exchange)] = WaitingCall(prompt.name if prompt else "", time.monotonic())
        try:
            yield exchange
        except BaseException as error:
            abort_reason = (
                "The reader stopped before the end." if isinstance(error, GeneratorExit) else ""
            )
            exchange.reply["error"] = abort_reason or str(error) or type(error).__name__
            if isinstance(error, RefusedPromptError):
                exchange.reply[REFUSED_PROMPT] = True
            raise
        finally:
            del _waiting_calls[id(exchange)]
            sink(
                Call(
                    kind=kind,
                    request=exchange.request,
                    reply=exchange.reply,
                    agent=exchange.agent,
                    started=started,
                    ended=self._clock(),
                    usage=exchange.usage,
                    prompt=prompt,
                    request_text=exchange.request_text,
                )
            )

    @contextmanager
    def _post_request(
        self,
        kind: Choice["embedding", "rerank"],
        path: str,
        body: Mapping[str, Any],
        tokens: int,
        sink: CallSink,
    ) -> Iterator[tuple[Exchange, Any]]:
        """Send a request of about ``tokens`` tokens; yield the exchange and server reply."""
        with self._exchange(kind, None, sink) as exchange:
            exchange.request = body
            with self.endpoint.open(
                lambda client: client.post(path, body=body, cast_to=object), self.model, tokens
            ) as (result, slot):
                yield exchange, result
                slot.record_tokens(exchange.usage.input_tokens)

    def _count_tokens(self, text: str) -> int:
        if self._counter is None:
            from tgraph.models.tokens import count_tokens, encoding_for

            encoding = encoding_for(self.model)
            self._counter = lambda text: count_tokens(text, encoding)
        return self._counter(text)

    def _usage(
        self, server: object, sent: Sequence[str], got: str, thought: str = ""
    ) -> tuple[Usage, dict[str, Any]]:
        """Return usage, reported by the server or estimated, plus the recorded form."""
        thinking = self._reasoning_tokens(server, thought)
        input_count = _count_of(read_member(server, "prompt_tokens"))
        estimated: dict[str, Any] = {}
        if input_count is not None:
            usage = Usage(
                input_count, _count_of(read_member(server, "completion_tokens")) or 0, 1, thinking
            )
        else:
            count = sum(self._count_tokens(text) + _MESSAGE_OVERHEAD for text in sent)
            out = (self._count_tokens(got) if got else 0) + thinking
            usage, estimated = Usage(count, out, 1, thinking), {"estimated": True}
        counted = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        if thinking:
            counted["reasoning_tokens"] = thinking
        return usage, counted | estimated

    def _reasoning_tokens(self, server: object, thought: str) -> int:
        """Return reasoning tokens of a reply, reported by the server or counted locally."""
        details = read_member(server, "completion_tokens_details")
        reported_count = _count_of(read_member(details, "reasoning_tokens")) or 0
        return reported_count or (self._count_tokens(thought) if thought else 0)
