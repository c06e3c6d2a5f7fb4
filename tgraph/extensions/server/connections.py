"""Bounds of connections: their number, and the time that a silent or slow client may hold one."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"retry-after: 5\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
)
_LENGTHS = {b"content-length", b"transfer-encoding"}
_MOST_CONNECTIONS = 1000
_OTHER_FILES = 256
"""Descriptors that stores, logs and worker processes need beside connections."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The most connections at once, and the most seconds that a client may take: for the head of a
    request, between two parts of its body, for the whole body, and to read what waits for
    delivery."""

    connections: int = _MOST_CONNECTIONS
    head_seconds: float = 20.0
    body_seconds: float = 30.0
    whole_body_seconds: float = 600.0
    delivery_seconds: float = 30.0


def raise_descriptor_limit() -> int:
    """Raise this process's limit of open files as far as allowed; return how many connections fit
    below the limit, at most 1,000."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * _MOST_CONNECTIONS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(8, min(_MOST_CONNECTIONS, (soft - _OTHER_FILES) // 2))


def bounded_protocol(
    limits: ConnectionLimits, is_stopping: Callable[[], bool]
) -> type[H11Protocol]:
    """Return uvicorn's protocol of HTTP/1.1 with limits.

    The protocol refuses connections made while the server stops: uvicorn ends only the connections
    that were made before."""
    members = {"limits": limits, "is_stopping": staticmethod(is_stopping)}
    return type("BoundedProtocol", (_BoundedProtocol,), members)


_Stage = Literal["head", "body", "answer"]


class _BoundedProtocol(H11Protocol):
    limits: ConnectionLimits
    is_stopping: Callable[[], bool]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._stage: _Stage = "answer"
        self._timer: asyncio.TimerHandle | None = None
        self._whole_body: asyncio.TimerHandle | None = None
        self._delivery: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self._watch()
        if self.is_stopping():
            self._refuse(b"The server is stopping; retry.")
        elif len(self.connections) > self.limits.connections:
            self._refuse(b"Too many connections; retry.")

    def _refuse(self, reason: bytes) -> None:
        self.transport.write(_REFUSAL % (len(reason), reason))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._timer, self._whole_body, self._delivery):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch(is_progress=True)

    def handle_events(self) -> None:
        """Handle what was received; a request with two lengths, which another server between may
        read otherwise, is the last of its connection (RFC 9112, 6.1)."""
        super().handle_events()
        if self.cycle is not None and {name for name, _ in self.cycle.scope["headers"]} >= _LENGTHS:
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._delivery is None:
            self._delivery = self.loop.call_later(self.limits.delivery_seconds, self._abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._delivery is not None:
            self._delivery.cancel()
            self._delivery = None

    def _current_stage(self) -> _Stage:
        if self.conn.their_state is h11.SEND_BODY:
            return "body"
        answered = self.cycle is None or self.cycle.response_complete
        return "head" if answered and self.conn.their_state is h11.IDLE else "answer"

    def _watch(self, *, is_progress: bool = False) -> None:
        """Set the timer of the stage that the connection is in.

        A head has one time in all, however many bytes trickle in; each part of a body has its
        own, and the body one in all."""
        stage = self._current_stage()
        if stage == self._stage and not (stage == "body" and is_progress):
            return
        self._stage = stage
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if stage != "body" and self._whole_body is not None:
            self._whole_body.cancel()
            self._whole_body = None
        if stage == "head":
            self._timer = self.loop.call_later(self.limits.head_seconds, self._abort)
        elif stage == "body":
            self._timer = self.loop.call_later(self.limits.body_seconds, self._end_silent_body)
            self._whole_body = self._whole_body or self.loop.call_later(
                self.limits.whole_body_seconds, self._abort
            )

    def _end_silent_body(self) -> None:
        if self.flow.read_paused:  # the server is behind, not the client
            self._timer = self.loop.call_later(self.limits.body_seconds, self._end_silent_body)
        else:
            self._abort()

    def _abort(self) -> None:
        self.transport.abort()
