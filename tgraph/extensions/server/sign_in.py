"""Request authentication: bearer token or the cookie of a sign-in, plus origin check."""

from __future__ import annotations

from typing import Any
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from tgraph.errors import TgraphError, UsageError
from tgraph.extensions.server.access import Access, ForbiddenError, Tokens, UnauthenticatedError
from tgraph.extensions.server.problems import problem_of, problem_response
from tgraph.extensions.server.sign_ins import SignIns

COOKIE = "tgraph_session"
_SAFE = ("GET", "HEAD", "OPTIONS")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class SignIn:
    """Authentication middleware.

    Without tokens, anyone reaching the server is admitted; the server then listens on loopback
    only and answers only to its own names, preventing DNS rebinding by web pages. Pages from
    other origins may change nothing."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens | None,
        sign_ins: SignIns | None,
        person: str | None,
        hosts: tuple[str, ...] = (),
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._sign_ins = sign_ins
        self._person = person
        self._hosts = (*_LOOPBACK, *hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            self._check_origin(connection, scope["method"])
            scope["state"]["access"] = self._find_access(connection)
        except TgraphError as error:
            response = problem_response(problem_of(error))
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _find_access(self, connection: HTTPConnection) -> Access | None:
        """Return requester access, or None without credentials; public resources need no token."""
        if self._tokens is None or self._sign_ins is None:
            return Access(self._person)
        if "authorization" in connection.headers:
            access = self._tokens.find(_read_token(connection))
            if access is None:
                raise UnauthenticatedError("There is no such token.", "Ask for a new one.")
            return access
        session = connection.cookies.get(COOKIE)
        return None if session is None else self._sign_ins.find(session)

    def _check_origin(self, connection: HTTPConnection, method: str) -> None:
        host = _split_host("Host", f"//{connection.headers.get('host', '')}").hostname or ""
        if self._tokens is None and host not in self._hosts:
            raise ForbiddenError(
                f"This server doesn't answer to the name {host!r}.", "Use localhost, or tokens."
            )
        origin = connection.headers.get("origin")
        foreign = origin is not None and _split_host(
            "Origin", origin
        ).netloc != connection.headers.get("host")
        if _is_cross_site(connection.headers, method) and "authorization" not in connection.headers:
            raise ForbiddenError("A page of another site may not send this request.")
        if foreign and (method not in _SAFE or self._tokens is None):
            raise ForbiddenError("A page of another origin may not send this request.")


def _split_host(header: str, url: str) -> SplitResult:
    """Return the parts of an address in a header; raise ``UsageError`` where it is none."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError as error:
        raise UsageError(f"The header {header} has no valid address.") from error
    return parts


def _is_cross_site(headers: Headers, method: str) -> bool:
    """Return whether a page of another site sends a request in a browser (Fetch Metadata Request
    Headers, W3C); that a person follows a link to a page is allowed."""
    if headers.get("sec-fetch-site") != "cross-site":
        return False
    is_link = headers.get("sec-fetch-mode") == "navigate"
    return not (is_link and method == "GET" and headers.get("sec-fetch-dest") == "document")


def _read_token(connection: HTTPConnection) -> str:
    scheme, _, token = connection.headers["authorization"].partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def access_of(request: Request) -> Access:
    """Return requester access; raise ``UnauthenticatedError`` without credentials."""
    access: Any = request.state.access
    if access is None:
        raise UnauthenticatedError(
            "The request needs a token.",
            "Send the token as Authorization: Bearer TOKEN, or sign in.",
        )
    assert isinstance(access, Access)
    return access
