"""Where agents reach the Model Context Protocol: ``/mcp`` of a server, and standard input."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tgraph.errors import TgraphError
from tgraph.extensions.server.access import Access, Declaration
from tgraph.extensions.server.declared import DeclaredRoute
from tgraph.extensions.server.mcp_server import mcp_server
from tgraph.extensions.server.problems import problem_of, problem_response
from tgraph.extensions.server.service import ServerLimits, Service
from tgraph.extensions.server.sign_in import access_of

PATH = "/mcp"
_AGENTS = Declaration((), ("status",))
"""Any right will do for the list of tools; each tool declares its own."""


class HttpDoor:
    """``/mcp`` by streamable HTTP, without sessions: nobody can hold the server by beginning
    them, or take over another's, and any server process answers any request.

    Tokens, origins and host names are checked before, as for every other door."""

    def __init__(self, service: Service) -> None:
        self._server = mcp_server(service, _access_over_http)
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._app = self._server.streamable_http_app(
            streamable_http_path=PATH, transport_security=security, stateless_http=True
        )

    @property
    def routes(self) -> list[BaseRoute]:
        (route,) = self._app.routes
        assert isinstance(route, Route)
        return [DeclaredRoute(PATH, _WithAccess(route.app), _AGENTS, methods=["POST"])]

    def running(self) -> AbstractAsyncContextManager[None]:
        """Run agent sessions from server start until server stop."""
        return self._server.session_manager.run()


class _WithAccess:
    """Middleware rejecting requests without credentials or without any rights."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            access = access_of(Request(scope))
            if not access.rights:
                access.check("read")
        except TgraphError as error:
            await problem_response(problem_of(error))(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _access_over_http(context: Context[Any, Any]) -> Access:
    request = context.request_context.request
    assert isinstance(request, Request)
    return access_of(request)


def over_stdio(root: Path, settings: Mapping[str, Any]) -> None:
    """Serve one agent through standard input and output, until disconnection.

    Records name the configured person for all requests."""
    import anyio

    service = Service(root, ServerLimits(), settings)
    server = mcp_server(service, lambda context: Access(service.person))

    async def serve() -> None:
        async with service.running():
            await server.run_stdio_async()

    anyio.run(serve)
    service.leave()
