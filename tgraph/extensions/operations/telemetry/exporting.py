"""Span export: to the host application's tracer provider, or to a provider configured by
environment variables (``OTEL_*``).

A separate queue keeps callers from waiting."""

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
    """Telemetry: creates record observers and sends finished spans."""

    def __init__(self, settings: TelemetrySettings) -> None:
        self._settings = settings
        self._harmed = 0
        current_provider = trace.get_tracer_provider()
        with _LOCK:
            self._sending = None if _is_real(current_provider) else _own_provider()
        provider = self._sending.provider if self._sending else current_provider
        self._tracer = provider.get_tracer(NAME, __version__)

    def observer(self) -> Observer:
        """Return an observer for one record; its spans are children of the current span."""
        return SpanObserver(self._tracer, self._count_harm, content=self._settings.content)

    def send(self, message: Callable[[str], None]) -> None:
        """Start sending pending spans.

        Process exit waits for delivery up to the configured limit, then reports undelivered
        spans through ``message``. Host applications send their own spans."""
        if self._sending is not None:
            self._sending.send(self._settings.flush_seconds, message)

    def _count_harm(self) -> None:
        if self._sending is not None:
            self._sending.count()


def _ignore_message(message: str) -> None:
    """Ignore a message without recipient."""


def _is_real(provider: trace.TracerProvider) -> bool:
    """Return whether an application configured the tracer provider."""
    return not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)


class _DeliveryCounter(SpanExporter):
    """A span exporter with uniform failures, counting delivered spans."""

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
        self._message: Callable[[str], None] = _ignore_message
        threading.Thread(target=self._flush_on_request, name="tgraph-spans", daemon=True).start()
        atexit.register(self.finish)
        # OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_* are read by what is made here
        self.provider = TracerProvider(resource=_describe_process(), shutdown_on_exit=False)
        self.provider.add_span_processor(self)

    def on_end(self, span: ReadableSpan) -> None:
        """Count sampled spans, then proceed as ``SpanProcessor.on_end``."""
        if span.context and span.context.trace_flags.sampled:
            self.count()
        super().on_end(span)

    def count(self) -> None:
        """Count a span, made or failed."""
        with self._changing:
            self._made += 1

    @property
    def unsent(self) -> int:
        """The number of undelivered spans."""
        return self._made - self._delivery.delivered

    def send(self, seconds: float, message: Callable[[str], None]) -> None:
        """Request delivery of pending spans; ``finish`` waits up to ``seconds``."""
        with self._changing:
            self._until, self._message = time.monotonic() + seconds, message
            self._idle.clear()
            self._asked.set()

    def finish(self) -> None:
        """Wait for pending delivery at process exit, then report undelivered spans."""
        self._idle.wait(max(0.0, self._until - time.monotonic()))
        if self.unsent:
            self._message(
                f"{self.unsent} spans have not reached the telemetry backend"
                " (OTEL_EXPORTER_OTLP_ENDPOINT)."
            )

    def _flush_on_request(self) -> None:
        """Flush spans upon request in a dedicated thread, since SDK flushes have no time limit."""
        while self._asked.wait():
            self._asked.clear()
            self.force_flush()
            with self._changing:
                if not self._asked.is_set():
                    self._idle.set()


def _describe_process() -> Resource:
    """Return process resource attributes from the environment, named tgraph unless configured."""
    environment_resource = Resource.create()
    name = environment_resource.attributes.get(SERVICE_NAME, "")
    service_name = {SERVICE_NAME: NAME} if str(name).startswith("unknown_service") else {}
    return (
        Resource({ResourceAttributes.PROJECT_NAME: NAME})
        .merge(environment_resource)
        .merge(Resource(service_name))
    )


@cache
def _own_provider() -> _Sending | None:
    """Return the process's tracer provider; return None where the environment disables
    exporters."""
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # ``finish`` tells
    exporter = _create_exporter(os.environ.get(_WANTED, "otlp").strip().lower() or "otlp")
    return _Sending(exporter) if exporter is not None else None


def _create_exporter(wanted: str) -> SpanExporter | None:
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
    """An HTTP adapter reading reply status but no body, since bodies may be endless.

    Redirects raise errors: spans go only to their destination, and the exporter would treat
    redirects as success."""

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        """As ``HTTPAdapter.send``."""
        response = super().send(*args, **{**kwargs, "stream": True})
        response.close()
        if response.is_redirect:
            raise requests.TooManyRedirects(response=response)
        response._content = b""
        return response
