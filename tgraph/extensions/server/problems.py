"""Errors over HTTP: problem details (RFC 9457) with the words of the command line."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tgraph import errors
from tgraph.errors import TgraphError
from tgraph.explain.query.sparql import StoppedQueryError
from tgraph.extensions.server.access import ForbiddenError, UnauthenticatedError

log = logging.getLogger("tgraph.extensions.server")

PROBLEM = "application/problem+json"
PROBLEM_SCHEMA = {
    "type": "object",
    "description": "RFC 9457; detail and remedy are what the command line says.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "remedy": {"type": "string"},
        "exit_code": {"type": "integer"},
    },
}
_BASE = "urn:trustgraph:problem:"


class BusyError(TgraphError):
    """There is too much to do already."""


class TooLargeError(TgraphError):
    """What was sent is larger than is taken."""


_KINDS: tuple[tuple[type[TgraphError], int, str], ...] = (
    (UnauthenticatedError, 401, "unauthenticated"),
    (ForbiddenError, 403, "forbidden"),
    (BusyError, 429, "busy"),
    (TooLargeError, 413, "too-large"),
    (errors.UnknownNameError, 404, "unknown-name"),
    (errors.NoCollectionError, 404, "no-collection"),
    (errors.NothingIndexedError, 409, "nothing-indexed"),
    (errors.UsageError, 400, "usage"),
    (StoppedQueryError, 422, "query-stopped"),
    (errors.QueryError, 400, "query"),
    (errors.IngestError, 422, "ingest"),
    (errors.EndpointError, 502, "endpoint"),
    (errors.ModelError, 502, "model"),
    (errors.ErasedTextError, 410, "erased"),
    (errors.EvidenceError, 500, "evidence"),
    (errors.DamagedStoreError, 500, "damaged-store"),
    (errors.StoreError, 503, "store"),
    (errors.VerificationError, 500, "verification"),
    (TgraphError, 500, "error"),
)
"""The first that an error is one of: its status and the end of its type."""

TITLES = {
    400: "The request is wrong",
    401: "Who asks is not known",
    403: "That is not allowed",
    404: "There is no such thing",
    405: "That can't be done here",
    406: "There is no such form of it",
    409: "That can't be done now",
    410: "It was erased",
    413: "That is too large",
    415: "That form is not read",
    422: "That can't be used",
    429: "Too much at once",
    500: "Something failed",
    502: "The model failed",
    503: "The store can't be used now",
}


def problem(status: int, kind: str, detail: str, **more: Any) -> dict[str, Any]:
    """The members of a problem details object."""
    about = {"type": f"{_BASE}{kind}", "title": TITLES.get(status, "Error"), "status": status}
    return {**about, "detail": detail, **more}


def problem_of(error: TgraphError) -> dict[str, Any]:
    """What an error is told as; ``exit_code`` is that of the command line."""
    status, kind = next((s, k) for known, s, k in _KINDS if isinstance(error, known))
    more = {"remedy": error.remedy} if error.remedy else {}
    return problem(status, kind, error.message, **more, exit_code=error.exit_code)


def problem_response(told: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """The problem as a response."""
    status = int(told["status"])
    own = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}.get(status, {})
    return JSONResponse(told, status, {**own, **(headers or {})}, PROBLEM)


async def on_tgraph_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, TgraphError)
    return problem_response(problem_of(error))


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = problem(error.status_code, "http", error.detail)
    return problem_response(told, error.headers)


async def on_unforeseen(request: Request, error: Exception) -> Response:
    """What it was stays in the server's log: it may quote what not everybody may read."""
    log.exception("A request failed: %s %s", request.method, request.url.path)
    return problem_response(
        problem(500, "unforeseen", "Something unforeseen happened; the server's log has it.")
    )
