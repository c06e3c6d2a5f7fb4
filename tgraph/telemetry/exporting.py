"""Where spans go: to the provider of the application that uses tgraph, or else to the one that the
environment (``OTEL_*``) describes, by a queue of its own that nobody waits for."""

from __future__ import annotations

import logging
import os
import threading
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
from tgraph.record.observer import Observer
from tgraph.settings import TelemetrySettings
from tgraph.telemetry.spans import SpanObserver
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
        self._told = 0
        given = trace.get_tracer_provider()
        with _LOCK:
            self._sending = None if _is_real(given) else _own_provider()
        provider = self._sending.provider if self._sending else given
        self._tracer = provider.get_tracer(NAME, __version__)

    def observer(self) -> Observer:
        """The observer of one record, whose spans are children of the current one."""
        return SpanObserver(self._tracer, self._harm, content=self._settings.content)

    def flush(self, message: Callable[[str], None]) -> None:
        """Send what waits, for no longer than the settings allow; ``message`` is told how many
        spans never reached anybody. An application sends its own."""
        if self._sending is None:
            return
        self._sending.flush(self._settings.flush_seconds)
        lost = self._sending.unsent + self._harmed
        if lost > self._told:
            message(f"{lost - self._told} spans of this process have not reached {self.backend}.")
        self._told = lost

    @property
    def backend(self) -> str:
        """Where the spans go, in words."""
        return "the telemetry backend (OTEL_EXPORTER_OTLP_ENDPOINT)"

    def _harm(self) -> None:
        self._harmed += 1


def _is_real(provider: trace.TracerProvider) -> bool:
    """Whether an application has set it."""
    return not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)


class _Counted(SpanExporter):
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
        self._counted = _Counted(exporter)
        super().__init__(self._counted)
        self._made = 0
        # OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_* are read by what is made here
        self.provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self.provider.add_span_processor(self)

    def on_end(self, span: ReadableSpan) -> None:
        """As ``SpanProcessor.on_end``."""
        if span.context and span.context.trace_flags.sampled:
            self._made += 1
        super().on_end(span)

    @property
    def unsent(self) -> int:
        """How many spans were made and not delivered."""
        return self._made - self._counted.delivered

    def flush(self, seconds: float) -> None:
        """Send what waits, or stop waiting for it. (The SDK's own flush knows no limit.)"""
        if self.unsent:
            sender = threading.Thread(target=self.force_flush, name="tgraph-spans", daemon=True)
            sender.start()
            sender.join(seconds)


def _resource() -> Resource:
    """What the environment says of this process, which is tgraph where that doesn't name it."""
    given = Resource.create()
    name = given.attributes.get(SERVICE_NAME, "")
    own = {SERVICE_NAME: NAME} if str(name).startswith("unknown_service") else {}
    return Resource({ResourceAttributes.PROJECT_NAME: NAME}).merge(given).merge(Resource(own))


@cache
def _own_provider() -> _Sending | None:
    """The process's own; None where the environment wants no exporter."""
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # ``flush`` tells instead
    exporter = _exporter(os.environ.get(_WANTED, "otlp").strip().lower() or "otlp")
    return _Sending(exporter) if exporter is not None else None


def _exporter(wanted: str) -> SpanExporter | None:
    if wanted == "none":
        return None
    if wanted == "console":
        return ConsoleSpanExporter()
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
        session.mount(scheme, _Unread())
    return OTLPSpanExporter(session=session)


class _Unread(HTTPAdapter):
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
