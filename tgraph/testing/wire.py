"""How the scripted server speaks HTTP: replies, streams, vectors and broken connections."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import struct
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tgraph.testing.faults import Fault, spoil

if TYPE_CHECKING:
    from tgraph.testing.server import ScriptedServer, ServerRequest

_PIECE = 24
_WORD = re.compile(r"\w+")
_LONGEST_HANG = 600.0


def hashed_vector(text: str, dimension: int) -> list[float]:
    """A unit vector of a text's words, the same everywhere; texts that share words are close."""
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
        """Clients that go away are part of the game."""


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
            rows = [{"id": n, "object": "model", "created": 0, "owned_by": "tgraph"} for n in names]
            self._send(200, {"object": "list", "data": rows})
        else:
            self._send(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path not in ("/v1/chat/completions", "/v1/embeddings", "/v1/rerank"):
            self._send(404, {"error": {"message": "not found"}})
            return
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        request, fault = self.fake.receive(self.path, json.loads(raw), key)
        with self.fake.under_way():
            self.fake.stopping.wait(self.fake.delay)
            if not self._breaks(fault):
                self._serve(request, fault)

    def _breaks(self, fault: Fault | None) -> bool:
        """Carries out a fault of the transport; whether that was the whole answer."""
        kind = fault.kind if fault else None
        if fault is not None and kind == "rate_limit":
            error = {"message": "Rate limit reached.", "code": "rate_limit_exceeded"}
            self._send(429, {"error": error}, {"Retry-After": f"{fault.retry_after:g}"})
        elif kind == "server_error":
            self._send(500, {"error": {"message": "The server had an error."}})
        elif kind == "hang":
            self.fake.stopping.wait(_LONGEST_HANG)
            self._drop()
        elif kind == "drop":
            self._drop()
        elif kind == "not_json":
            self._write(200, b"<html><body>Welcome</body></html>", "text/html")
        else:
            return False
        return True

    def _serve(self, request: ServerRequest, fault: Fault | None) -> None:
        refused = self.fake.refusal(request, fault)
        if refused is not None:
            self._send(refused[0], {"error": refused[1]})
        elif request.path.endswith("/embeddings"):
            self._embed(request.body)
        elif request.path.endswith("/rerank"):
            self._rerank(request)
        else:
            text, finish = spoil(self.fake.say(request), fault)
            if request.body.get("stream"):
                self._stream(request.body, text, finish, fault.kind if fault else None)
            else:
                self._complete(request.body, text, finish)

    # --- answers --------------------------------------------------------------------------------

    def _complete(self, body: Mapping[str, Any], text: str, finish: str) -> None:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        reply = {**_envelope(body, "chat.completion"), "choices": [choice]}
        if self.fake.report_usage:
            reply["usage"] = _usage(body, text)
        self._send(200, reply)

    def _stream(self, body: Mapping[str, Any], text: str, finish: str, fault: str | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if fault in ("cut_stream", "unfinished"):
            text = text[: len(text) // 2]
        for start in range(0, len(text), _PIECE):
            self._event(_piece(body, text[start : start + _PIECE], None))
        if fault == "cut_stream":
            self._drop()
            return
        if fault != "unfinished":
            self._event(_piece(body, "", finish))
            if self.fake.report_usage and body.get("stream_options", {}).get("include_usage"):
                last = {**_envelope(body, "chat.completion.chunk"), "choices": []}
                self._event({**last, "usage": _usage(body, text)})
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _embed(self, body: Mapping[str, Any]) -> None:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        size = body.get("dimensions", self.fake.dimension)
        packed = body.get("encoding_format") == "base64"
        rows = [
            {
                "object": "embedding",
                "index": i,
                "embedding": _encoded(hashed_vector(t, size), packed),
            }
            for i, t in enumerate(texts)
        ]
        reply: dict[str, Any] = {"object": "list", "model": body.get("model"), "data": rows}
        if self.fake.report_usage:
            count = sum(len(text) // 4 + 1 for text in texts)
            reply["usage"] = {"prompt_tokens": count, "total_tokens": count}
        self._send(200, reply)

    def _rerank(self, request: ServerRequest) -> None:
        """The script's own JSON, or the texts by the share of the question's words in them."""
        scripted = self.fake.script.reply("rerank", request)
        if scripted is not None:
            self._write(200, scripted.encode(), "application/json")
            return
        wanted = set(_WORD.findall(str(request.body["query"]).lower()))
        texts = request.body["documents"]
        scores = [len(wanted & set(_WORD.findall(t.lower()))) / max(1, len(wanted)) for t in texts]
        rows = [{"index": i, "relevance_score": score} for i, score in enumerate(scores)]
        rows.sort(key=lambda row: -row["relevance_score"])
        reply: dict[str, Any] = {"model": request.body.get("model"), "results": rows}
        if self.fake.report_usage:
            reply["usage"] = {"total_tokens": sum(len(text) // 4 + 1 for text in texts)}
        self._send(200, reply)

    # --- the wire -------------------------------------------------------------------------------

    def _event(self, event: Mapping[str, Any]) -> None:
        self._chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _send(
        self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        self._write(status, json.dumps(body).encode(), "application/json", headers)

    def _write(
        self, status: int, data: bytes, media: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": media, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _drop(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


def _envelope(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": body.get("model")}


def _piece(body: Mapping[str, Any], text: str, finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return {**_envelope(body, "chat.completion.chunk"), "choices": [choice]}


def _usage(body: Mapping[str, Any], text: str) -> dict[str, int]:
    sent = sum(len(str(m.get("content") or "")) for m in body.get("messages", ())) // 4 + 1
    got = len(text) // 4 + 1
    return {"prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got}


def _encoded(vector: Sequence[float], packed: bool) -> Sequence[float] | str:
    if not packed:
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
