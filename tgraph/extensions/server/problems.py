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
from tgraph.masking import hide_paths
from tgraph.shortages import explain_shortage

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
    """Server overload: too many requests in progress."""


class TooLargeError(TgraphError):
    """A request larger than permitted."""


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
    401: "The sign-in is missing or wrong",
    403: "The access is not allowed",
    404: "The resource does not exist",
    405: "The operation is not possible here",
    406: "The requested format is not available",
    409: "The operation is not possible now",
    410: "It was erased",
    413: "The request is too large",
    415: "The format of the request is not supported",
    422: "The content of the request can't be used",
    429: "There are too many requests",
    500: "Something failed",
    502: "The model failed",
    503: "The store is not available now",
}


def problem_details(status: int, kind: str, detail: str, **more: Any) -> dict[str, Any]:
    """The members of a problem details object."""
    members = {"type": f"{_BASE}{kind}", "title": TITLES.get(status, "Error"), "status": status}
    return {**members, "detail": detail, **more}


def problem_of(error: TgraphError) -> dict[str, Any]:
    """Return problem details of an error; ``exit_code`` matches the command line."""
    status, kind = next((s, k) for error_class, s, k in _KINDS if isinstance(error, error_class))
    remedy = {"remedy": hide_paths(error.remedy)} if error.remedy else {}
    detail = hide_paths(error.message)
    return problem_details(status, kind, detail, **remedy, exit_code=error.exit_code)


def problem_response(told: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Return problem details as an HTTP response."""
    status = int(told["status"])
    status_headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}.get(
        status, {}
    )
    return JSONResponse(told, status, {**status_headers, **(headers or {})}, PROBLEM)


async def on_tgraph_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, TgraphError)
    return problem_response(problem_of(error))


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    details = problem_details(error.status_code, "http", error.detail)
    return problem_response(details, error.headers)


async def on_disconnect(request: Request, error: Exception) -> Response:
    """Return a response that nobody reads: a client that goes is no fault of the server."""
    return Response(status_code=400)


async def on_unforeseen(request: Request, error: Exception) -> Response:
    """Log an unforeseen error and return a generic problem response.

    Details stay in the server log, since error texts may quote restricted content."""
    if shortage := explain_shortage(error):
        log.error("%s %s failed: %s", request.method, request.url.path, shortage)
        return problem_response(problem_of(shortage))
    log.exception("A request failed: %s %s", request.method, request.url.path)
    return problem_response(
        problem_details(
            500, "unforeseen", "An unexpected error occurred; see the log of the server."
        )
    )
