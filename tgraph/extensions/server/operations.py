"""An operation of the REST interface: one value from which come its route and its description."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.extensions.server.access import Access, Right
from tgraph.extensions.server.problems import TooLargeError
from tgraph.extensions.server.service import Pool, Service
from tgraph.extensions.server.sign_in import access_of

T = TypeVar("T")
Q = TypeVar("Q", bound=BaseModel)

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Parameters(BaseModel):
    """What a request says, in its query or its body."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoParameters(Parameters):
    """Nothing more than the path."""


@dataclass
class RestCall:
    """A request to an operation: who asks what, and what it is answered with."""

    service: Service
    request: Request
    access: Access
    collection: str
    query: Any
    body: Any

    def path(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    async def graph(self, work: Callable[[KnowledgeGraph], T], pool: Pool = "read") -> T:
        """What ``work`` gives of the collection, in a thread of the pool."""
        return await self.service.run(self.access, self.collection, work, pool=pool)


Handler = Callable[[RestCall], Awaitable[Any]]


@dataclass(frozen=True)
class Operation:
    """``answer`` is the name of a schema of the command line's JSON, a type, or a JSON Schema;
    ``media`` are other forms than JSON that are answered, ``right`` what a token needs."""

    method: Method
    path: str
    name: str
    summary: str
    handler: Handler
    right: Right = "read"
    answer: Any = None
    query: type[Parameters] = NoParameters
    body: type[Parameters] | None = None
    status: int = 200
    media: tuple[str, ...] = ()
    uploads: bool = False
    tags: tuple[str, ...] = field(default=())

    def route(self, service: Service) -> Route:
        """The route that answers it."""

        async def answer(request: Request) -> Response:
            return await self._answer(service, request)

        return Route(self.path, answer, methods=[self.method], name=self.name)

    async def _answer(self, service: Service, request: Request) -> Response:
        access = access_of(request)
        collection = str(request.path_params.get("collection", ""))
        access.check(self.right, collection or None)
        query = validated(self.query, dict(request.query_params), "query")
        body = None
        if self.body is not None:
            body = validated(self.body, await json_body(request, service), "body")
        told = await self.handler(RestCall(service, request, access, collection, query, body))
        if isinstance(told, Response):
            return told
        if told is None:
            return Response(status_code=204)
        return JSONResponse(plain(told), self.status)


def plain(value: Any) -> Any:
    """A value, or several, as JSON's values."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def validated(kind: type[Q], values: Any, where: str) -> Q:
    """The parameters. ``UsageError`` where they are wrong, which says how."""
    try:
        return kind.model_validate(values, strict=where == "body")
    except ValidationError as error:
        said = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or where}: {item['msg']}" for item in error.errors()
        )
        raise UsageError(f"The {where} of the request is wrong: {said}.", _DESCRIBED) from None


_DESCRIBED = "GET /api/v1/openapi.json describes it."


async def json_body(request: Request, service: Service) -> Any:
    """The request's JSON. ``UsageError`` where it is none."""
    data = await read_body(request, service.limits.request_kb * 1024)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", ""):
        raise UsageError("The body has to be JSON.", "Send Content-Type: application/json.")
    try:
        return json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise UsageError("The body is no JSON.", _DESCRIBED) from error


async def read_body(request: Request, most: int) -> bytes:
    """The body, as far as there is room for it. ``TooLargeError`` beyond."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            raise TooLargeError(f"The request has more than {most:,} bytes.")
        pieces.append(piece)
    return b"".join(pieces)


def number(text: str) -> int:
    """A number of a path. ``UsageError`` where it is none."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise UsageError(f"{text!r} is not a whole number.")
    return int(text)


def typed(value: object, kind: type[T]) -> T:
    """The value as what it is known to be."""
    return cast(T, value)
