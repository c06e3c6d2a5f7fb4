"""Where spans go: to the provider of the application that uses tgraph, or else to the one that the
environment (``OTEL_*``) describes, by a queue of its own that nobody waits for."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import requests
from openinference.semconv.resource import ResourceAttributes
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExporter,
    SpanExportResult,
)
from requests.adapters import HTTPAdapter

from tgraph.errors import UsageError
from tgraph.extensions.operations.telemetry.spans import SpanObserver
from tgraph.record.observer import Observer
from tgraph.settings import TelemetrySettings
from tgraph.version import __version__

NAME = "tgraph"
_LOCK = threading.Lock()
_WANTED = "OTEL_TRACES_EXPORTER"
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


class Telemetry:
    """Makes an observer for each record, and sends what the process has made so far."""

    def __init__(self, settings: TelemetrySettings) -> None:
        self._settings = settings
        self._harmed = 0
        given = trace.get_tracer_provider()
        with _LOCK:
            self._sending = None if _is_real(given) else _own_provider()
        provider = self._sending.provider if self._sending else given
        self._tracer = provider.get_tracer(NAME, __version__)

    def observer(self) -> Observer:
        """The observer of one record, whose spans are children of the current one."""
        return SpanObserver(self._tracer, self._harm, content=self._settings.content)

    def send(self, message: Callable[[str], None]) -> None:
        """Begin to send what waits. The end of the process waits for that as long as the settings
        allow; ``message`` is told then how many spans reached nobody. An application sends its
        own."""
        if self._sending is not None:
            self._sending.send(self._settings.flush_seconds, message)

    def _harm(self) -> None:
        if self._sending is not None:
            self._sending.count()


def _ignore(message: str) -> None:
    """Nobody is there to be told."""


def _is_real(provider: trace.TracerProvider) -> bool:
    """Whether an application has set it."""
    return not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)


class _DeliveryCounter(SpanExporter):
    """An exporter that fails in one way only, and counts what was delivered."""

    def __init__(self, inner: SpanExporter) -> None:
        self.delivered = 0
        self._inner = inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """As ``SpanExporter.export``."""
        try:
            result = self._inner.export(spans)
        except Exception:
            return SpanExportResult.FAILURE
        if result is SpanExportResult.SUCCESS:
            self.delivered += len(spans)
        return result

    def shutdown(self) -> None:
        """As ``SpanExporter.shutdown``."""
        self._inner.shutdown()


class _Sending(BatchSpanProcessor):
    """A queue of bounded length, emptied by a thread. What it can't hold is lost."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._delivery = _DeliveryCounter(exporter)
        super().__init__(self._delivery)
        self._made = 0
        self._changing = threading.Lock()
        self._asked, self._idle = threading.Event(), threading.Event()
        self._idle.set()
        self._until = 0.0
        self._message: Callable[[str], None] = _ignore
        threading.Thread(target=self._serve, name="tgraph-spans", daemon=True).start()
        atexit.register(self.finish)
        # OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_* are read by what is made here
        self.provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self.provider.add_span_processor(self)

    def on_end(self, span: ReadableSpan) -> None:
        """As ``SpanProcessor.on_end``."""
        if span.context and span.context.trace_flags.sampled:
            self.count()
        super().on_end(span)

    def count(self) -> None:
        """A span was made, or should have been."""
        with self._changing:
            self._made += 1

    @property
    def unsent(self) -> int:
        """How many spans were made and not delivered."""
        return self._made - self._delivery.delivered

    def send(self, seconds: float, message: Callable[[str], None]) -> None:
        """Have what waits sent; ``finish`` waits so long for it."""
        with self._changing:
            self._until, self._message = time.monotonic() + seconds, message
            self._idle.clear()
            self._asked.set()

    def finish(self) -> None:
        """Wait for what is being sent, and tell how much was not: the end of the process."""
        self._idle.wait(max(0.0, self._until - time.monotonic()))
        if self.unsent:
            self._message(
                f"{self.unsent} spans have not reached the telemetry backend"
                " (OTEL_EXPORTER_OTLP_ENDPOINT)."
            )

    def _serve(self) -> None:
        """The SDK's own flush knows no limit of time, so it has a thread to itself."""
        while self._asked.wait():
            self._asked.clear()
            self.force_flush()
            with self._changing:
                if not self._asked.is_set():
                    self._idle.set()


def _resource() -> Resource:
    """What the environment says of this process, which is tgraph where that doesn't name it."""
    given = Resource.create()
    name = given.attributes.get(SERVICE_NAME, "")
    own = {SERVICE_NAME: NAME} if str(name).startswith("unknown_service") else {}
    return Resource({ResourceAttributes.PROJECT_NAME: NAME}).merge(given).merge(Resource(own))


@cache
def _own_provider() -> _Sending | None:
    """The process's own; None where the environment wants no exporter."""
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # ``finish`` tells
    exporter = _exporter(os.environ.get(_WANTED, "otlp").strip().lower() or "otlp")
    return _Sending(exporter) if exporter is not None else None


def _exporter(wanted: str) -> SpanExporter | None:
    if wanted == "none":
        return None
    if wanted == "console":
        return ConsoleSpanExporter(out=sys.stderr)
    if wanted != "otlp":
        raise UsageError(
            f"{_WANTED} is {wanted!r}, which tgraph has not.", "There are: otlp, console, none."
        )
    protocol = next((os.environ[name] for name in _PROTOCOLS if os.environ.get(name)), "")
    if protocol not in ("", "http/protobuf"):
        raise UsageError(
            f"Spans can't be sent by {protocol!r}.",
            f"Set {_PROTOCOLS[1]} to http/protobuf, and the endpoint to its port (4318).",
        )
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _StatusOnly())
    return OTLPSpanExporter(session=session)


class _StatusOnly(HTTPAdapter):
    """Takes the status of an answer and leaves its body, which may have no end. Spans go where they
    were sent and nowhere else; the exporter would take a redirection for success."""

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        """As ``HTTPAdapter.send``."""
        response = super().send(*args, **{**kwargs, "stream": True})
        response.close()
        if response.is_redirect:
            raise requests.TooManyRedirects(response=response)
        response._content = b""
        return response
