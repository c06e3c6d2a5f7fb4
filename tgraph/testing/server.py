"""A small OpenAI-compatible HTTP server on loopback that answers from a script, with faults."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tgraph.testing.faults import Fault, Faults
from tgraph.testing.script import Reply, Script, plausible_reply, step_named_in
from tgraph.testing.wire import Handler, HttpServer


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """One request as it arrived; ``key`` is the bearer token, ``fault`` what befell it."""

    path: str
    step: str
    body: Mapping[str, Any]
    key: str
    fault: str | None


class ScriptedServer:
    """An OpenAI-compatible server: ``/v1/models``, ``/v1/chat/completions``, ``/v1/embeddings``,
    ``/v1/rerank``.

    ``with ScriptedServer() as server:`` listens on a free port of 127.0.0.1 and gives
    ``server.base_url``. ``replies`` maps a step to a text, a function of the ``ServerRequest`` or a
    list of these; other steps get plausible replies made from their prompts, so that whole runs
    work without configuration. The step is the name of the ``response_format``, or what a line
    ``Step: NAME`` says. ``faults`` break requests by step and count. ``rejects`` names parameters
    that are refused with HTTP 400, ``formats`` the response formats that are accepted. With
    ``api_key`` a request without that key gets 401; with ``models`` an unlisted model gets 404.
    ``report_usage=False`` leaves token counts out; ``delay`` seconds pass before each answer.
    ``requests`` is the log, ``peak`` the most requests that were under way at once.
    """

    def __init__(
        self,
        replies: Mapping[str, Reply[ServerRequest]] | None = None,
        *,
        faults: Sequence[Fault] = (),
        api_key: str | None = None,
        models: Sequence[str] = (),
        rejects: Collection[str] = (),
        formats: Collection[str] = ("json_schema", "json_object", "text"),
        report_usage: bool = True,
        dimension: int = 64,
        delay: float = 0.0,
        port: int = 0,
    ) -> None:
        self.script: Script[ServerRequest] = Script(replies)
        self.faults = Faults(faults)
        self.api_key = api_key
        self.models = tuple(models)
        self.rejects = tuple(rejects)
        self.formats = tuple(formats)
        self.report_usage = report_usage
        self.dimension = dimension
        self.delay = delay
        self.requests: list[ServerRequest] = []
        self.peak = 0
        self._under_way = 0
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        self._port = port
        self._http: HttpServer | None = None

    @property
    def base_url(self) -> str:
        assert self._http is not None, "the server has not been started"
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def count(self, step: str) -> int:
        """How many requests of that step have arrived."""
        return sum(request.step == step for request in list(self.requests))

    def start(self) -> Self:
        handler = type("_BoundHandler", (Handler,), {"fake": self})
        self._http = HttpServer(("127.0.0.1", self._port), handler)
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        step = _OTHERS.get(path.rpartition("/")[2]) or _step(body)
        fault = self.faults.next(step)
        request = ServerRequest(path, step, body, key, fault.kind if fault else None)
        with self._lock:
            self.requests.append(request)
        return request, fault

    def refusal(
        self, request: ServerRequest, fault: Fault | None
    ) -> tuple[int, dict[str, str]] | None:
        """The status and error of a request that is refused, None for one that is served."""
        body = request.body
        if (self.api_key and request.key != self.api_key) or (
            fault and fault.kind == "unauthorised"
        ):
            said = f"Incorrect API key provided: {request.key}."
            return 401, {"message": said, "code": "invalid_api_key"}
        if self.models and body.get("model") not in self.models:
            said = f"The model {body.get('model')!r} does not exist."
            return 404, {"message": said, "code": "model_not_found"}
        for name in self.rejects:
            if name in body:
                said = f"Unsupported parameter: {name!r} is not supported with this model."
                return 400, {"message": said, "param": name}
        wanted = body.get("response_format", {}).get("type", "text")
        if wanted not in self.formats or (
            fault and fault.kind == "reject_format" and wanted != "text"
        ):
            return 400, {"message": f"response_format {wanted} is not supported."}
        return None

    def say(self, request: ServerRequest) -> str:
        scripted = self.script.reply(request.step, request)
        if scripted is not None:
            return scripted
        wanted = request.body.get("response_format", {}).get("json_schema", {})
        return plausible_reply(request.step, request.body["messages"], wanted.get("schema"))


_OTHERS = {"embeddings": "embeddings", "rerank": "rerank"}
"""Steps that are known by the path."""


def _step(body: Mapping[str, Any]) -> str:
    wanted = body.get("response_format") or {}
    name = wanted.get("json_schema", {}).get("name", "")
    return str(name) or step_named_in(body.get("messages", ()))
