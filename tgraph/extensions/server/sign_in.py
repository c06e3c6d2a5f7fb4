"""Who a request is from: a bearer token, or the workbench's cookie; and from which page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from tgraph.errors import TgraphError
from tgraph.extensions.server.access import Access, ForbiddenError, Tokens, UnauthenticatedError
from tgraph.extensions.server.problems import problem_of, problem_response

COOKIE = "tgraph_token"
_SAFE = ("GET", "HEAD", "OPTIONS")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class SignIn:
    """Middleware that says who asks. Without tokens it is whoever can reach the server, which then
    listens on loopback alone and answers to its names alone (so that no page of the web can reach
    it by a name of its own, DNS rebinding). No page of another origin may change anything."""

    def __init__(
        self, app: ASGIApp, tokens: Tokens | None, person: str | None, hosts: tuple[str, ...] = ()
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._person = person
        self._hosts = (*_LOOPBACK, *hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            self._check_origin(connection, scope["method"])
            scope["state"]["access"] = self._access(connection)
        except TgraphError as error:
            response = problem_response(problem_of(error))
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _access(self, connection: HTTPConnection) -> Access | None:
        """None for who has not said; what needs no token is answered all the same."""
        if self._tokens is None:
            return Access(self._person)
        presented = _presented(connection)
        if presented is None:
            return None
        found = self._tokens.find(presented)
        if found is None and "authorization" in connection.headers:
            raise UnauthenticatedError("There is no such token.", "Ask for a new one.")
        return found

    def _check_origin(self, connection: HTTPConnection, method: str) -> None:
        host = urlsplit(f"//{connection.headers.get('host', '')}").hostname or ""
        if self._tokens is None and host not in self._hosts:
            raise ForbiddenError(
                f"This server doesn't answer to the name {host!r}.", "Use localhost, or tokens."
            )
        origin = connection.headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != connection.headers.get("host")
        if foreign and (method not in _SAFE or self._tokens is None):
            raise ForbiddenError("A page of another origin may not do that.")


def _presented(connection: HTTPConnection) -> str | None:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return connection.cookies.get(COOKIE)


def access_of(request: Request) -> Access:
    """Who asks. ``UnauthenticatedError`` where nobody says."""
    found: Any = request.state.access
    if found is None:
        raise UnauthenticatedError(
            "This needs a token.", "Send it as Authorization: Bearer TOKEN, or sign in."
        )
    assert isinstance(found, Access)
    return found
