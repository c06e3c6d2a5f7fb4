"""What the path functions of the REST interface share: rights, bounds and descriptions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Depends, Path, params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.extensions.server.access import Access, Content, Declaration, Right
from tgraph.extensions.server.problems import PROBLEM, problem_of, problem_response
from tgraph.extensions.server.requests import DESCRIBED, json_body, plain
from tgraph.extensions.server.service import Pool, Service
from tgraph.extensions.server.sign_in import access_of

T = TypeVar("T")
PathName = Annotated[str, Path(min_length=1)]


@dataclass(frozen=True)
class RestCall:
    """A request to the server, with the rights of the caller."""

    service: Service
    request: Request
    access: Access


@dataclass(frozen=True)
class CollectionRestCall(RestCall):
    """A request to a collection."""

    collection: str

    async def graph(self, work: Callable[[KnowledgeGraph], T], pool: Pool = "read") -> T:
        """Return the result of ``work`` on the collection, computed in a thread of the pool."""
        return await self.service.run(self.access, self.collection, work, pool=pool)


async def server_call(request: Request) -> RestCall:
    """Return the call of a request to the server."""
    return RestCall(request.app.state.service, request, access_of(request))


async def collection_call(request: Request, collection: PathName) -> CollectionRestCall:
    """Return the call of a request to a collection."""
    service = request.app.state.service
    return CollectionRestCall(service, request, access_of(request), collection)


ServerCall = Annotated[RestCall, Depends(server_call)]
CollectionCall = Annotated[CollectionRestCall, Depends(collection_call)]

_TOKEN = HTTPBearer(scheme_name="token", auto_error=False)


@dataclass(frozen=True)
class _Needs(params.Security):
    contents: tuple[Content, ...] = ()


def needs(*rights: Right, gives: Content | tuple[Content, ...]) -> list[params.Depends]:
    """Return the dependencies of a route that needs rights, with what its answers contain."""
    contents = gives if isinstance(gives, tuple) else (gives,)
    return [_Needs(_TOKEN, scopes=rights, contents=contents)]


class JsonRequest(Request):
    """A request whose JSON body was read already, within the bounds of the server."""

    def __init__(self, request: Request, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._value = value

    async def body(self) -> bytes:
        return b"{}"  # FastAPI asks for the JSON of a body that is not empty

    async def json(self) -> Any:
        return self._value


class RestRoute(APIRoute):
    """A route that checks the rights of the caller before the body is read, refuses a query where
    the path function takes none, and answers HEAD as GET."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        rights = " and ".join(f"`{right}`" for right in self.declaration.rights)
        self.description = f"{self.description}\n\nNeeds the right {rights}."
        no_token: list[dict[str, Any]] = [{}]  # a server that has no tokens asks for none
        self.openapi_extra = {**(self.openapi_extra or {}), "security": no_token}

    @property
    def declaration(self) -> Declaration:
        """The rights that a caller needs, and what answers contain."""
        (need,) = (dependency for dependency in self.dependencies if isinstance(dependency, _Needs))
        return Declaration(cast(tuple[Right, ...], need.scopes), need.contents)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def check_and_answer(request: Request) -> Response:
            self.declaration.check(access_of(request), request.path_params.get("collection"))
            if request.query_params and not self.dependant.query_params:
                raise RequestValidationError(
                    [
                        {"loc": ("query", name), "msg": "Extra inputs are not permitted"}
                        for name in request.query_params
                    ]
                )
            if self.body_field is None:
                return await answer(request)
            value = await json_body(request, request.app.state.service)
            return await answer(JsonRequest(request, value))

        return check_and_answer

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        is_head = match is Match.PARTIAL and scope["method"] in self._served_methods()
        return (Match.FULL if is_head else match), child_scope

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        methods = self._served_methods()
        if scope["method"] not in methods:
            raise HTTPException(405, headers={"Allow": ", ".join(methods)})
        await self.app(scope, receive, send)

    def _served_methods(self) -> set[str]:
        methods = set(self.methods or ())
        return methods | {"HEAD"} if "GET" in methods else methods


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "A problem.",
        "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status in ("4XX", "5XX")
}
EVENTS = "text/event-stream"
_EVENT = {
    "type": "object",
    "description": "Each event of the stream (server-sent events); its data is JSON.",
    "properties": {
        "data": {"type": "string", "contentMediaType": "application/json"},
        "event": {"type": "string"},
        "id": {"type": "string"},
        "retry": {"type": "integer"},
    },
    "required": ["data"],
}


def media(*types: str) -> dict[int | str, dict[str, Any]]:
    """Return the description of responses in these media types."""
    content = {name: {"schema": _EVENT if name == EVENTS else {"type": "string"}} for name in types}
    return {200: {"content": content}}


def rest_router(tag: str) -> APIRouter:
    """Return a router for the path functions of one subject."""
    return APIRouter(
        prefix="/api/v1",
        tags=[tag],
        route_class=RestRoute,
        responses=PROBLEMS,
        generate_unique_id_function=lambda route: route.name,
        strict_content_type=False,
    )


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return a response with a value, or several, as JSON."""
    return JSONResponse(plain(value), status, headers)


async def on_invalid_request(request: Request, error: Exception) -> Response:
    """Return the problem of a request whose path, query or body is wrong."""
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    part = errors[0]["loc"][0]
    reasons = "; ".join(
        f"{'.'.join(map(str, item['loc'][1:])) or part}: {item['msg']}"
        for item in errors
        if item["loc"][0] == part
    )
    return problem_response(
        problem_of(UsageError(f"The {part} of the request is wrong: {reasons}.", DESCRIBED))
    )
