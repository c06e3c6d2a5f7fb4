"""The ASGI application: all interfaces on one engine."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.telemetry import TelemetryConfig
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tgraph.errors import TgraphError
from tgraph.extensions.server.access import Tokens
from tgraph.extensions.server.declared import OPEN, DeclaredRoute
from tgraph.extensions.server.jobs import Jobs
from tgraph.extensions.server.linked_data import linked_data_routes
from tgraph.extensions.server.openai_api import openai_routes
from tgraph.extensions.server.problems import (
    PROBLEM_SCHEMA,
    on_http_error,
    on_tgraph_error,
    on_unforeseen,
    problem_details,
    problem_response,
)
from tgraph.extensions.server.rest import ROUTES
from tgraph.extensions.server.rest.routes import on_invalid_request
from tgraph.extensions.server.service import Service
from tgraph.extensions.server.sign_in import SignIn
from tgraph.extensions.server.sign_ins import SignIns
from tgraph.extensions.server.sparql import sparql_routes
from tgraph.extensions.server.status import status_routes
from tgraph.extensions.server.workbench import workbench_routes
from tgraph.version import __version__

if TYPE_CHECKING:
    from tgraph.extensions.server.mcp_doors import HttpDoor

_NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""What is told to others is told by ``tgraph.extensions.operations.telemetry`` alone."""


def create_app(
    service: Service,
    tokens: Tokens | None = None,
    *,
    person: str | None = None,
    hosts: Sequence[str] = (),
) -> Starlette:
    """Create the ASGI application.

    Without ``tokens``, requests addressed to this machine's names or ``hosts`` are answered as
    ``person``."""

    agents = _open_agent_door(service)
    sign_ins = SignIns(service.root, tokens) if tokens else None

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with service.running(), agents.running() if agents else nullcontext():
            running = asyncio.create_task(
                service.supervisor.keep_running(
                    "The queue of index jobs", lambda succeed: app.state.jobs.run(service, succeed)
                )
            )
            try:
                yield
            finally:
                service.stopping.set()
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running

    app = FastAPI(
        title="tgraph",
        version=__version__,
        description="Answers questions over documents, and proves every answer.",
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        servers=[{"url": "/"}],
        openapi_url=None,  # the description is made in a thread, and no page loads from elsewhere
        docs_url=None,
        redoc_url=None,
        telemetry=_NO_TELEMETRY,
        middleware=[
            Middleware(Guarded, service=service),
            Middleware(SignIn, tokens=tokens, sign_ins=sign_ins, person=person, hosts=tuple(hosts)),
        ],
        exception_handlers={
            TgraphError: on_tgraph_error,
            HTTPException: on_http_error,
            RequestValidationError: on_invalid_request,
            Exception: on_unforeseen,
        },
        lifespan=lifespan,
    )
    app.router.routes.extend(_collect_routes(service, sign_ins))
    app.router.routes.extend(agents.routes if agents else ())
    app.state.jobs = Jobs(service.root, service.limits, service.settings)
    app.state.service = service
    return app


def _open_agent_door(service: Service) -> HttpDoor | None:
    """Return the agent interface; without its packages installed, return None."""
    try:
        from tgraph.extensions.server.mcp_doors import HttpDoor
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("tgraph"):
            raise
        return None
    return HttpDoor(service)


def _collect_routes(service: Service, sign_ins: SignIns | None) -> list[BaseRoute]:
    """Return routes of all interfaces; each interface function maps a service to routes."""
    return [
        *status_routes(service),
        *openai_routes(service),
        *sparql_routes(service),
        *linked_data_routes(service),
        _description_route(),
        *ROUTES,
        *workbench_routes(service, sign_ins),
    ]


def _description_route() -> DeclaredRoute:
    """Return the route of the OpenAPI document, which is made for the first request."""
    cache: list[bytes] = []

    async def describe(request: Request) -> Response:
        if not cache:
            cache.append(await asyncio.to_thread(_describe, request.app))
        return Response(cache[0], media_type="application/json")

    return DeclaredRoute("/api/v1/openapi.json", describe, OPEN, name="openapi")


def _describe(app: FastAPI) -> bytes:
    document = app.openapi()
    document["components"]["schemas"]["Problem"] = PROBLEM_SCHEMA
    return json.dumps(document, ensure_ascii=False).encode()


_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox")


_STOPPED = problem_details(503, "stopping", "The server stops before the request was answered.")


class Guarded:
    """Application-wide middleware: restrictive browser headers (responses may set a policy),
    disabled caching, response counts by interface."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})
        began, status = time.perf_counter(), 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_headers(message.get("headers", ()))
            await send(message)

        try:
            await self._app(scope, receive, send_guarded)
        except asyncio.CancelledError:
            if not self._service.stopping.is_set():
                raise
            if not status:  # the time of the stop is over
                await problem_response(_STOPPED)(scope, receive, send_guarded)
        finally:
            door = scope["path"].split("/")[1] if scope["path"].count("/") else ""
            self._service.counters.count(door, status or 500, time.perf_counter() - began)


def _with_headers(given: Any) -> list[tuple[bytes, bytes]]:
    headers = list(given)
    header_names = {name.lower() for name, _ in headers}
    default_headers = [*_HEADERS, _POLICY, (b"cache-control", b"no-store")]
    return [
        *headers,
        *((name, value) for name, value in default_headers if name not in header_names),
    ]
