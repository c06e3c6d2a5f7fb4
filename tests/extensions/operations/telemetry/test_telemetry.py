"""Spans for OpenTelemetry: their tree is the tree of the record; they are off unless wanted, tell
nothing unasked, and no backend can do any harm."""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from openinference.semconv.trace import SpanAttributes
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from pyoxigraph import Literal, NamedNode

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import TgraphError, UsageError
from tgraph.extensions.operations.telemetry import exporting
from tgraph.testing import Fault, ScriptedServer

TEXT = """# Marie Curie

Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie at the Sorbonne.
Henri Becquerel shared the Nobel Prize with Marie Curie.
"""
QUESTION = "What did Marie Curie discover?"
KIND = SpanAttributes.OPENINFERENCE_SPAN_KIND
IRI, WITHIN = "tgraph.prov.iri", "tgraph.prov.within"

Tree = dict[str, tuple[str | None, datetime, datetime]]
"""By its IRI: the IRI of what an activity is part of, and from when to when it went on."""


def opened(root: Path, server: ScriptedServer | None = None, **settings: Any) -> KnowledgeGraph:
    values = {
        "embedding.provider": "hashing",
        "reader.model": "none",
        "extract.gleanings": 0,
        "telemetry.enabled": True,
    }
    if server is not None:
        values |= {"chat.base_url": server.base_url, "chat.model": "scripted", "chat.retries": 0}
    values |= {name.replace("__", "."): value for name, value in settings.items()}
    return tgraph.open(root / "graph", create=True, settings=values)


class Spans:
    """An application that keeps the spans of its process."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    def take(self) -> list[ReadableSpan]:
        """The spans that have ended since the last time."""
        spans = list(self._kept.get_finished_spans())
        self._kept.clear()
        return spans


def application() -> Iterator[Spans]:
    spans = Spans()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer_provider", lambda: spans.provider)
        yield spans


@pytest.fixture
def spans() -> Iterator[Spans]:
    yield from application()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[ReadableSpan]]:
    """The place of a graph, and the spans of the run that made it."""
    root = tmp_path_factory.mktemp("made")
    (root / "curie.md").write_text(TEXT)
    for spans in application():
        with ScriptedServer() as server, opened(root, server) as kg:
            kg.index([root / "curie.md"])
        taken = spans.take()
    return root, taken


@pytest.fixture
def root(made: tuple[Path, list[ReadableSpan]]) -> Path:
    return made[0]


def name(node: object) -> str:
    assert isinstance(node, NamedNode)
    return node.value


def recorded(kg: KnowledgeGraph, whole: str) -> Tree:
    """The session or run and what is part of it, by PROV: steps and calls."""
    store = kg.opened.read()

    def time(activity: str, of: str) -> datetime | None:
        found = next(store.match(NamedNode(activity), v.prov(of), None, None), None)
        if found is None:
            return None
        assert isinstance(found.object, Literal)
        return datetime.fromisoformat(found.object.value)

    part_of = v.dcterms("isPartOf")
    tree: Tree = {}
    parts = [name(q.subject) for q in store.match(None, part_of, NamedNode(whole), None)]
    for part in [whole, *parts]:
        of = {name(q.object) for q in store.match(NamedNode(part), part_of, None, None)}
        began, ended = time(part, "startedAtTime"), time(part, "endedAtTime")
        if began is not None:
            assert ended is not None
            tree[part] = next(iter(of - {whole}), None if part == whole else whole), began, ended
    return tree


def spanned(spans: Sequence[ReadableSpan]) -> Tree:
    """The same by the spans. A phase of a run is on no record: what is in it is in the run."""
    by_id = {span.context.span_id: span for span in spans if span.context}

    def above(span: ReadableSpan) -> str | None:
        parent = by_id.get(span.parent.span_id) if span.parent else None
        return None if parent is None else said(parent).get(IRI) or above(parent)

    return {
        said(span)[IRI]: (above(span), moment(span.start_time), moment(span.end_time))
        for span in spans
        if IRI in said(span)
    }


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def moment(nanoseconds: int | None) -> datetime:
    assert nanoseconds is not None
    micro, rest = divmod(nanoseconds, 1000)
    assert not rest
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micro)


def root_of(spans: Sequence[ReadableSpan]) -> ReadableSpan:
    (found,) = (span for span in spans if said(span).get(IRI) == said(span)[WITHIN])
    return found


def of_kind(spans: Sequence[ReadableSpan], kind: str) -> list[ReadableSpan]:
    return [span for span in spans if said(span)[KIND] == kind]


# --- the tree of spans is the tree of the record ------------------------------------------------


def test_the_spans_of_an_index_run_are_its_phases_and_the_calls_on_record(made):
    root, spans = made
    run = root_of(spans)
    with opened(root, telemetry__enabled=False) as kg:
        tree = recorded(kg, said(run)[IRI])
        calls = {
            name(q.subject) for q in kg.opened.read().match(None, v.RDF_TYPE, v.tg("Call"), None)
        }
    assert calls
    on_record = {iri: told for iri, told in tree.items() if iri in {*calls, said(run)[IRI]}}
    assert spanned(spans) == on_record
    phases = [span for span in spans if "tgraph.phase" in said(span)]
    assert [span.name for span in phases][:2] == ["Reading", "Extracting"]
    assert phases[-1].name == "Publishing"
    assert {span.parent and span.parent.span_id for span in phases} == {run.context.span_id}
    assert (said(run)["tgraph.status"], said(run)["tgraph.recorded"]) == ("completed", True)
    assert len(spans) == len(calls) + len(phases) + 1


@pytest.mark.parametrize("by_model", [False, True])
def test_the_spans_of_a_question_are_the_tree_of_its_record(root, spans, by_model):
    with ScriptedServer() as server, opened(root, server if by_model else None) as kg:
        answer = kg.ask(QUESTION, mode="graph")
        found = spans.take()
        assert spanned(found) == recorded(kg, answer.session)
        replay = kg.replay(answer.session)
        assert replay.is_same
    assert spans.take() == []  # a replay records nothing, and is none of the record
    session = root_of(found)
    assert {said(span)[WITHIN] for span in found} == {answer.session}
    assert {span.status.status_code for span in found} == {StatusCode.OK}
    assert said(session) | {
        KIND: "CHAIN",
        "tgraph.mode": "graph",
        "tgraph.usage.calls": answer.usage.calls,
        "tgraph.usage.input_tokens": answer.usage.input_tokens,
        "tgraph.answer.sentences": len(answer.sentences),
    } == said(session)
    chats = of_kind(found, "LLM")
    assert bool(chats) == by_model
    output = sum(said(span)["gen_ai.usage.output_tokens"] for span in chats)
    assert output == answer.usage.output_tokens
    for chat in chats:
        told = said(chat)
        assert told["gen_ai.request.model"] == told["llm.model_name"] == "scripted"
        assert told["llm.token_count.prompt"] == told["gen_ai.usage.input_tokens"] > 0
    (traversal,) = (s for s in of_kind(found, "RETRIEVER") if s.name == "Traversal")
    assert said(traversal)["tgraph.retrieval.edges"] > 0
    assert of_kind(found, "EMBEDDING")


def test_a_failure_is_the_status_of_each_span_that_failed(root, spans):
    fault = Fault("unauthorised", "synthesise_answer")
    with ScriptedServer(faults=[fault]) as server, opened(root, server) as kg:
        with pytest.raises(TgraphError):
            kg.ask(QUESTION, mode="graph")
        found, session = (taken := spans.take()), root_of(taken)
        assert spanned(found) == recorded(kg, said(session)[IRI])
        assert kg.trace().status == said(session)["tgraph.status"] == "failed"
    failed = [span for span in found if span.status.status_code is StatusCode.ERROR]
    names = {span.name for span in failed}
    assert names == {"GraphRAG query session", "Synthesising", "chat scripted"}
    assert len(failed) == 3
    assert {span.status.description for span in failed} == {"failed"}  # no server's words
    assert said(session)["error.type"] == "EndpointError"


def test_an_interruption_is_the_status_of_the_session(root, spans):
    with opened(root) as kg:
        stream = kg.stream(QUESTION, mode="graph")
        next(stream)
        next(stream)
        stream.close()
        found, session = (taken := spans.take()), root_of(taken)
        assert spanned(found) == recorded(kg, said(session)[IRI])
        assert kg.trace().status == said(session)["tgraph.status"] == "interrupted"
    assert session.status.status_code is StatusCode.ERROR


def test_an_index_run_that_fails_says_that_nothing_is_on_record(tmp_path, spans):
    (tmp_path / "curie.md").write_text(TEXT)
    fault = Fault("unauthorised", "extract_graph")
    with ScriptedServer(faults=[fault]) as server, opened(tmp_path, server) as kg:
        with pytest.raises(TgraphError):
            kg.index([tmp_path / "curie.md"])
        found = spans.take()
        run = root_of(found)
        assert not list(kg.opened.read().match(NamedNode(said(run)[IRI]), None, None, None))
    assert (said(run)["tgraph.status"], said(run)["tgraph.recorded"]) == ("failed", False)
    failed = {span.name for span in found if span.status.status_code is StatusCode.ERROR}
    assert failed == {"Index run", "Extracting", "chat scripted"}


# --- in an application --------------------------------------------------------------------------


def test_an_applications_current_span_is_above_the_session(root, spans):
    with opened(root) as kg:
        with spans.provider.get_tracer("app").start_as_current_span("request") as request:
            kg.ask(QUESTION, mode="graph")
        with kg.view({"telemetry.content": True}) as view:  # whoever asks can't turn that on
            view.ask(QUESTION, mode="graph")
    found = spans.take()
    (first, second) = (span for span in found if said(span).get(IRI) == said(span).get(WITHIN, 0))
    assert first.parent == request.get_span_context()
    assert second.parent is None
    assert not [s for s in found if SpanAttributes.INPUT_VALUE in said(s)]


def test_what_breaks_in_making_spans_breaks_nothing_else(root, spans):
    class Broken(SpanProcessor):
        def on_start(self, *args: Any, **kwargs: Any) -> None:
            raise RuntimeError("broken")

        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("broken")

    spans.provider.add_span_processor(Broken())
    with opened(root) as kg:
        answer = kg.ask(QUESTION, mode="graph")
        assert kg.trace(answer.session).status == "completed"


# --- what spans tell ----------------------------------------------------------------------------


@pytest.mark.parametrize("content", [False, True])
def test_texts_are_in_spans_where_they_are_wanted_and_nowhere_else(root, spans, content):
    with (
        ScriptedServer() as server,
        opened(root, server, telemetry__content=content, person="Ada Lovelace") as kg,
    ):
        answer = kg.ask(QUESTION, mode="graph")
    found = spans.take()
    told = " ".join(f"{s.name} {s.status.description} {said(s)}" for s in found)
    for word in ("discover", "Polonium", answer.text):
        assert (word in told) == content
    if content:
        chat, session = of_kind(found, "LLM")[0], said(root_of(found))
        assert session["input.value"] == QUESTION
        assert session["output.value"] == answer.text
        assert said(chat)["llm.input_messages.0.message.role"] == "system"
        assert QUESTION in said(chat)["llm.input_messages.1.message.content"]
        (traversal,) = (s for s in of_kind(found, "RETRIEVER") if s.name == "Traversal")
        first = "retrieval.documents.0.document"
        assert said(traversal)[f"{first}.id"].startswith("urn:trustgraph:edge:")
        assert said(traversal)[f"{first}.content"]
        (texts, *_) = (said(s) for s in of_kind(found, "EMBEDDING"))
        assert texts["embedding.embeddings.0.embedding.text"]
    assert all(len(said(span)) < 128 for span in found)  # or the first would be forgotten


# --- sending ------------------------------------------------------------------------------------


class Backend(BaseHTTPRequestHandler):
    """A receiver of OTLP over HTTP, good or bad."""

    behaviour: ClassVar[str] = "good"
    received: ClassVar[list[tuple[str, Message, ExportTraceServiceRequest]]] = []
    released: ClassVar[threading.Event] = threading.Event()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = ExportTraceServiceRequest.FromString(body)
        self.received.append((self.path, self.headers, request))
        if self.behaviour == "hangs":
            self.released.wait()
        status = {"refuses": 400, "redirects": 307}.get(self.behaviour, 200)
        self.send_response(status)
        if self.behaviour == "redirects":
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        if self.behaviour == "endless":
            self._never_end()

    def _never_end(self) -> None:
        try:
            while not self.released.is_set():
                self.wfile.write(b"spans " * 10_000)
        except OSError:
            self.released.set()  # it was cut off

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Backend]]:
    """What the environment names as the place to send spans to."""
    Backend.behaviour, Backend.released = "good", threading.Event()
    Backend.received.clear()
    exporting._own_provider.cache_clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    yield Backend
    Backend.released.set()
    if exporting._own_provider.cache_info().currsize and exporting._own_provider():
        atexit.unregister(sending().finish)
    server.shutdown()
    server.server_close()
    exporting._own_provider.cache_clear()


def sending() -> exporting._Sending:
    """What sends the spans of this process."""
    found = exporting._own_provider()
    assert found is not None
    return found


def test_a_receiver_of_otlp_gets_the_spans(root, backend):
    told: list[str] = []
    with opened(root, telemetry__flush_seconds=60) as kg:
        kg.opened.message = told.append
        answer = kg.ask(QUESTION, mode="graph")
        tree = recorded(kg, answer.session)
    sending().finish()
    assert told == []
    ((path, headers, request),) = backend.received
    assert (path, headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
    assert headers["Authorization"] == "Bearer secret"
    (of_resource,) = request.resource_spans
    resource = {a.key: a.value.string_value for a in of_resource.resource.attributes}
    assert (
        resource
        | {
            "service.name": "tgraph",
            "openinference.project.name": "tgraph",
            "deployment.environment.name": "test",
        }
        == resource
    )
    sent = [span for scope in of_resource.scope_spans for span in scope.spans]
    iris = {a.value.string_value for span in sent for a in span.attributes if a.key == IRI}
    assert iris == set(tree)


@pytest.mark.parametrize("behaviour", ["hangs", "refuses", "redirects", "gone"])
def test_a_bad_backend_costs_its_spans_and_no_more(root, backend, monkeypatch, behaviour):
    backend.behaviour = behaviour
    if behaviour == "gone":
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    told: list[str] = []
    waits = behaviour in ("refuses", "redirects")
    with opened(root, telemetry__flush_seconds=60 if waits else 0) as kg:
        kg.opened.message = told.append
        answer = kg.ask(QUESTION, mode="graph")
        count = len(recorded(kg, answer.session))
    assert told == []
    sending().finish()
    lost = f"{count} spans have not reached the telemetry backend"
    assert told == [f"{lost} (OTEL_EXPORTER_OTLP_ENDPOINT)."]
    assert {path for path, _, _ in backend.received} <= {"/v1/traces"}


def test_a_backend_whose_answer_has_no_end_is_cut_off(root, backend):
    backend.behaviour = "endless"
    with opened(root, telemetry__flush_seconds=60) as kg:
        kg.ask(QUESTION, mode="graph")
    assert backend.released.wait(60)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OTEL_TRACES_EXPORTER", "zipkin"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
)
def test_what_the_environment_asks_for_in_vain_is_said(root, backend, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with opened(root) as kg, pytest.raises(UsageError, match=value):
        kg.ask(QUESTION, mode="graph")


def test_no_exporter_and_no_sdk_are_what_the_environment_may_ask_for(root, backend, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    with opened(root) as kg:
        kg.ask(QUESTION, mode="graph")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    exporting._own_provider.cache_clear()
    with opened(root) as kg:
        kg.ask(QUESTION, mode="graph")
    assert backend.received == []


# --- off ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_the_setting_nothing_of_it_is_imported(root):
    code = (
        "import sys, tgraph\n"
        "values = {'embedding.provider': 'hashing', 'reader.model': 'none'}\n"
        f"with tgraph.open({str(root / 'graph')!r}, settings=values) as kg:\n"
        f"    kg.ask({QUESTION!r}, mode='graph')\n"
        "names = ('opentelemetry', 'openinference', 'requests', 'google.protobuf',\n"
        "         'tgraph.extensions.operations.telemetry')\n"
        "sys.exit(str([m for m in sys.modules if m.startswith(names)] or 0))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip().splitlines()[-1:] in ([], ["0"])


def test_without_the_extra_it_is_said_how_to_get_it(root, monkeypatch):
    monkeypatch.delitem(sys.modules, "tgraph.extensions.operations.telemetry.exporting")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with (
        opened(root) as kg,
        pytest.raises(UsageError, match=r"opentelemetry is not installed") as e,
    ):
        kg.ask(QUESTION, mode="graph")
    assert "tgraph-rag[otel]" in str(e.value)
