"""A small OpenAI-compatible HTTP server on loopback that answers from a script, with faults."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import struct
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tgraph.testing.faults import THOUGHT, Fault, Faults, spoil_reply
from tgraph.testing.script import Script, ScriptedReply, plausible_reply, step_named_in

_REASONING = ("reasoning", "reasoning_only", "content_parts")


# --- HTTP ---


_PIECE = 24
_WORD = re.compile(r"\w+")
_LONGEST_HANG = 600.0


def hashed_vector(text: str, dimension: int) -> list[float]:
    """Return a reproducible unit vector of text words; texts sharing words have similar
    vectors."""
    vector = [0.0] * dimension
    for word in _WORD.findall(text.lower()) or [""]:
        digest = hashlib.sha256(word.encode()).digest()
        index, sign = int.from_bytes(digest[:4], "big") % dimension, 1 if digest[4] % 2 else -1
        vector[index] += sign
    norm = sum(x * x for x in vector) ** 0.5
    if not norm:
        vector[0] = norm = 1.0
    return [x / norm for x in vector]


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore disconnecting clients."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    fake: ScriptedServer

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: ``ScriptedServer.requests`` is the log."""

    def do_GET(self) -> None:
        names = self.fake.models or ("scripted",)
        if self.path.rstrip("/").endswith("/models"):
            model_fields = {
                "object": "model",
                "created": 0,
                "owned_by": "tgraph",
                **self.fake.facts,
            }
            rows = [{"id": name, **model_fields} for name in names]
            self._send_json(200, {"object": "list", "data": rows})
        else:
            self._send_json(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path not in ("/v1/chat/completions", "/v1/embeddings", "/v1/rerank"):
            self._send_json(404, {"error": {"message": "not found"}})
            return
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        request, fault = self.fake.receive(self.path, json.loads(raw), key)
        with self.fake.under_way():
            self.fake.stopping.wait(self.fake.delay)
            if not self._apply_fault(fault):
                self._serve_request(request, fault)

    def _apply_fault(self, fault: Fault | None) -> bool:
        """Apply a transport fault; return whether the fault was the whole reply."""
        kind = fault.kind if fault else None
        if fault is not None and kind == "rate_limit":
            error = {"message": "Rate limit reached.", "code": "rate_limit_exceeded"}
            self._send_json(429, {"error": error}, {"Retry-After": f"{fault.retry_after:g}"})
        elif kind == "server_error":
            self._send_json(500, {"error": {"message": "The server had an error."}})
        elif kind == "hang":
            self.fake.stopping.wait(_LONGEST_HANG)
            self._drop_connection()
        elif kind == "drop":
            self._drop_connection()
        elif kind == "not_json":
            self._write_response(200, b"<html><body>Welcome</body></html>", "text/html")
        else:
            return False
        return True

    def _serve_request(self, request: ServerRequest, fault: Fault | None) -> None:
        refused = self.fake.refusal(request, fault)
        if refused is not None:
            self._send_json(refused[0], {"error": refused[1]})
        elif request.path.endswith("/embeddings"):
            self._send_embeddings(request, fault.kind if fault else None)
        elif request.path.endswith("/rerank"):
            self._send_ranking(request)
        else:
            text, finish = spoil_reply(self.fake.write_reply(request), fault)
            thought = THOUGHT if fault and fault.kind in _REASONING else ""
            if request.body.get("stream"):
                self._stream_reply(request.body, text, finish, fault, thought)
            else:
                message = {"role": "assistant", "content": text}
                if thought:
                    message["reasoning_content"] = thought
                self._send_completion(request.body, text, finish, _shape_content(message, fault))

    def _send_completion(
        self, body: Mapping[str, Any], text: str, finish: str, message: Mapping[str, Any]
    ) -> None:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        reply = {**_reply_envelope(body, "chat.completion"), "choices": [choice]}
        if self.fake.report_usage:
            reply["usage"] = self._count_usage(body, text)
        self.fake.stopping.wait(self.fake.pace * -(-len(text) // _PIECE))
        self._send_json(200, reply)

    def _count_usage(self, body: Mapping[str, Any], text: str) -> dict[str, int]:
        return _estimate_usage(self.fake.truncate_request(body), text)

    def _stream_reply(
        self, body: Mapping[str, Any], text: str, finish: str, fault: Fault | None, thought: str
    ) -> None:
        kind = fault.kind if fault else None
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if kind in ("cut_stream", "unfinished"):
            text = text[: len(text) // 2]
        for start in range(0, len(thought), _PIECE):
            delta = {"reasoning_content": thought[start : start + _PIECE]}
            self._send_event(_reply_chunk(body, _shape_content(delta, fault), None))
        for start in range(0, len(text), _PIECE):
            self.fake.stopping.wait(self.fake.pace)
            delta = {"content": text[start : start + _PIECE]}
            self._send_event(_reply_chunk(body, _shape_content(delta, fault), None))
        if kind == "cut_stream":
            self._drop_connection()
            return
        if kind != "unfinished":
            self._send_event(_reply_chunk(body, {}, finish))
            if self.fake.report_usage and body.get("stream_options", {}).get("include_usage"):
                last = {**_reply_envelope(body, "chat.completion.chunk"), "choices": []}
                self._send_event({**last, "usage": self._count_usage(body, text)})
        self._send_chunk(b"data: [DONE]\n\n")
        self._send_chunk(b"")

    def _send_embeddings(self, request: ServerRequest, fault: str | None) -> None:
        """Send scripted JSON, or word-based text vectors."""
        if self._send_scripted("embeddings", request):
            return
        body = request.body
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        size = body.get("dimensions", self.fake.dimension)
        packed = body.get("encoding_format") == "base64"
        size += fault == "longer_vectors"
        texts = [f"other {text}" for text in texts] if fault == "other_vectors" else texts
        vectors = [_encode_vector(vector, packed) for vector in self.fake.embed(texts, size)]
        rows = [
            {"object": "embedding", "index": i, "embedding": vector}
            for i, vector in enumerate(vectors)
        ]
        reply: dict[str, Any] = {"object": "list", "model": body.get("model"), "data": rows}
        if self.fake.report_usage:
            count = sum(len(text) // 4 + 1 for text in texts)
            reply["usage"] = {"prompt_tokens": count, "total_tokens": count}
        self._send_json(200, reply)

    def _send_scripted(self, step: str, request: ServerRequest) -> bool:
        """Send a scripted reply, if present; return whether the script had a reply."""
        scripted = self.fake.script.reply(step, request)
        if scripted is not None:
            self._write_response(200, scripted.encode(), "application/json")
        return scripted is not None

    def _send_ranking(self, request: ServerRequest) -> None:
        """Send scripted JSON, or texts ranked by share of query words."""
        if self._send_scripted("rerank", request):
            return
        query_words = set(_WORD.findall(str(request.body["query"]).lower()))
        texts = request.body["documents"]
        scores = [
            len(query_words & set(_WORD.findall(t.lower()))) / max(1, len(query_words))
            for t in texts
        ]
        rows = [{"index": i, "relevance_score": score} for i, score in enumerate(scores)]
        rows.sort(key=lambda row: -row["relevance_score"])
        reply: dict[str, Any] = {"model": request.body.get("model"), "results": rows}
        if self.fake.report_usage:
            reply["usage"] = {"total_tokens": sum(len(text) // 4 + 1 for text in texts)}
        self._send_json(200, reply)

    def _send_event(self, event: Mapping[str, Any]) -> None:
        self._send_chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _send_json(
        self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        self._write_response(status, json.dumps(body).encode(), "application/json", headers)

    def _write_response(
        self, status: int, data: bytes, media: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": media, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _drop_connection(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


def _reply_envelope(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": body.get("model")}


def _reply_chunk(
    body: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**_reply_envelope(body, "chat.completion.chunk"), "choices": [choice]}


def _shape_content(message: Mapping[str, str], fault: Fault | None) -> Mapping[str, Any]:
    """Return a message in the shape of a fault: thought and text as a list of parts."""
    if fault is None or fault.kind != "content_parts":
        return message
    parts: list[dict[str, Any]] = []
    if thought := message.get("reasoning_content"):
        parts.append({"type": "thinking", "thinking": [{"type": "text", "text": thought}]})
    if text := message.get("content"):
        parts.append({"type": "text", "text": text})
    return {"role": "assistant", "content": parts}


def _estimate_usage(body: Mapping[str, Any], text: str) -> dict[str, int]:
    sent = sum(len(str(m.get("content") or "")) for m in body.get("messages", ())) // 4 + 1
    got = len(text) // 4 + 1
    return {"prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got}


def _encode_vector(vector: Sequence[float], packed: bool) -> Sequence[float] | str:
    if not packed:
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


# --- the server ---


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A received request; ``key`` is the bearer token, ``fault`` the applied fault."""

    path: str
    step: str
    body: Mapping[str, Any]
    key: str
    fault: str | None


@dataclass(eq=False)
class ScriptedServer:
    """An OpenAI-compatible server: ``/v1/models``, ``/v1/chat/completions``, ``/v1/embeddings``,
    ``/v1/rerank``.

    ``with ScriptedServer() as server:`` listens on a free port of 127.0.0.1 and gives
    ``server.base_url``. ``replies`` maps a step to a text, a function of the ``ServerRequest`` or a
    list of these; other steps get plausible replies made from their prompts, so that whole runs
    work without configuration. The step is the name of the ``response_format``, or what a line
    ``Step: NAME`` says. ``faults`` break requests by step and count. ``rejects`` names parameters
    that are refused with HTTP 400, ``formats`` the response formats that are accepted. With
    ``api_key`` a request without that key gets 401; with ``models`` an unlisted model gets 404;
    ``facts`` are what the list says of each beside its name.
    ``report_usage=False`` leaves token counts out; ``delay`` seconds pass before each answer and
    ``pace`` before each piece of its text. A prompt of more than ``context`` tokens is refused, or,
    with ``cuts``, read without its beginning. ``embeds`` and ``streams`` say whether it can.
    ``requests`` is the log, ``peak`` the most requests that were under way at once.
    """

    replies: Mapping[str, ScriptedReply[ServerRequest]] | None = None
    _: KW_ONLY
    faults: Sequence[Fault] = ()
    api_key: str | None = None
    models: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    rejects: Collection[str] = ()
    formats: Collection[str] = ("json_schema", "json_object", "text")
    report_usage: bool = True
    dimension: int = 64
    delay: float = 0.0
    pace: float = 0.0
    context: int | None = None
    cuts: bool = False
    embeds: bool = True
    streams: bool = True
    port: int = 0

    def __post_init__(self) -> None:
        self.script: Script[ServerRequest] = Script(self.replies)
        self._faults = Faults(self.faults)
        self.requests: list[ServerRequest] = []
        self.peak = self._under_way = 0
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        self._http: HttpServer | None = None

    @property
    def base_url(self) -> str:
        assert self._http is not None, "the server has not been started"
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def count(self, step: str) -> int:
        """Return the number of received requests for a step."""
        return sum(request.step == step for request in list(self.requests))

    def start(self) -> Self:
        handler = type("_BoundHandler", (Handler,), {"fake": self})
        self._http = HttpServer(("127.0.0.1", self.port), handler)
        threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def close(self) -> None:
        """Stops listening and lets go of requests that hang."""
        self.stopping.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def under_way(self) -> Iterator[None]:
        with self._lock:
            self._under_way += 1
            self.peak = max(self.peak, self._under_way)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def receive(
        self, path: str, body: Mapping[str, Any], key: str
    ) -> tuple[ServerRequest, Fault | None]:
        """Logs a request and says which fault befalls it."""
        name = path.rpartition("/")[2]
        step = name if name in _OTHERS else _detect_step(body)
        fault = self._faults.take_fault(step)
        request = ServerRequest(path, step, body, key, fault.kind if fault else None)
        with self._lock:
            self.requests.append(request)
        return request, fault

    def refusal(
        self, request: ServerRequest, fault: Fault | None
    ) -> tuple[int, dict[str, str]] | None:
        """Return status and error of a refused request; accepted requests return None."""
        body = request.body
        kind = fault.kind if fault else None
        if (self.api_key and request.key != self.api_key) or kind == "unauthorised":
            error_text = f"Incorrect API key provided: {request.key}."
            return 401, {"message": error_text, "code": "invalid_api_key"}
        if self.models and body.get("model") not in self.models:
            error_text = f"The model {body.get('model')!r} does not exist."
            return 404, {"message": error_text, "code": "model_not_found"}
        if request.step == "embeddings" and not self.embeds:
            return 404, {"message": "not found"}
        if body.get("stream") and not self.streams:
            return 400, {"message": "Streaming is not supported.", "param": "stream"}
        if self.context is not None and not self.cuts and _count_tokens(body) > self.context:
            error_text = f"This model's maximum context length is {self.context} tokens."
            return 400, {"message": error_text, "code": "context_length_exceeded"}
        for name in self.rejects:
            if name in body:
                error_text = f"Unsupported parameter: {name!r} is not supported with this model."
                return 400, {"message": error_text, "param": name}
        format_type = body.get("response_format", {}).get("type", "text")
        if format_type not in self.formats or (kind == "reject_format" and format_type != "text"):
            return 400, {"message": f"response_format {format_type} is not supported."}
        return None

    def embed(self, texts: Sequence[str], size: int) -> Sequence[Sequence[float]]:
        """Return the vectors of texts, each of ``size`` numbers."""
        return [hashed_vector(text, size) for text in texts]

    def write_reply(self, request: ServerRequest) -> str:
        scripted = self.script.reply(request.step, request)
        if scripted is not None:
            return scripted
        schema_format = request.body.get("response_format", {}).get("json_schema", {})
        messages = self.truncate_request(request.body)["messages"]
        return plausible_reply(request.step, messages, schema_format.get("schema"))

    def truncate_request(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request truncated to its readable part."""
        if not self.cuts or self.context is None or _count_tokens(body) <= self.context:
            return body
        last = {**body["messages"][-1]}
        last["content"] = last["content"][-4 * self.context :]
        return {**body, "messages": [last]}


_OTHERS = ("embeddings", "rerank")
"""Steps that are known by the path."""


def _count_tokens(body: Mapping[str, Any]) -> int:
    """Return an approximate token count of a request."""
    return _estimate_usage(body, "")["prompt_tokens"]


def _detect_step(body: Mapping[str, Any]) -> str:
    response_format = body.get("response_format") or {}
    name = response_format.get("json_schema", {}).get("name", "")
    return str(name) or step_named_in(body.get("messages", ()))
