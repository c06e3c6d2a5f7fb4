"""Workbench page framework: access, rendering, refusals.

Pages work without JavaScript and load nothing external: the content policy permits only
resources from this server, and no inline scripts or styles."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import EmptyCollectionError, TgraphError, UsageError
from tgraph.explain.render.templates import load_template
from tgraph.extensions.server.access import Access, Content, Declaration, Right
from tgraph.extensions.server.declared import DeclaredRoute
from tgraph.extensions.server.problems import TITLES, problem_of
from tgraph.extensions.server.requests import read_body
from tgraph.extensions.server.service import Pool, Service
from tgraph.store.base import load_query

T = TypeVar("T")

BASE = "/workbench"
SIGN_IN = f"{BASE}/sign-in"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_FORM = "application/x-www-form-urlencoded"


@dataclass
class Visit:
    """A visit to a collection page."""

    service: Service
    request: Request
    access: Access
    collection: str

    async def graph(self, work: Callable[[KnowledgeGraph], T], pool: Pool = "read") -> T:
        """Run ``work`` on the collection in a pool thread and return its result."""
        return await self.service.run(self.access, self.collection, work, pool=pool)

    def part(self, name: str) -> str:
        """Return a path parameter."""
        return str(self.request.path_params[name])

    def read_parameter(self, name: str, default: str = "") -> str:
        """Return a query parameter."""
        return str(self.request.query_params.get(name, default))

    def has_right(self, right: Right) -> bool:
        """Check visitor rights within this collection."""
        return right in self.access.rights and self.access.admits(self.collection)

    @cached_property
    def links(self) -> Links:
        """Page links of the collection."""
        return Links(self.collection)

    async def form(self) -> SentForm:
        """Read form fields; raise ``UsageError`` for unreadable forms."""
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _FORM:
            raise UsageError("The form can't be read.", f"Send it as {_FORM}.")
        data = await read_body(self.request, self.service.limits.request_kb * 1024)
        try:
            pairs = parse_qsl(data.decode(), keep_blank_values=True, max_num_fields=1_000)
        except ValueError as error:
            raise UsageError("The form can't be read.", "Send it in UTF-8.") from error
        return SentForm(tuple(pairs))

    async def page(self, template_name: str, **values: Any) -> Response:
        """Render a page template in a thread, since large pages take time."""

        def write_page() -> str:
            return render_page(template_name, self, **values)

        return html_response(await self.service.call(write_page))

    def part_of_page(self, name: str, macro: str, *values: Any) -> str:
        """Render a template macro, for incremental page updates."""
        return str(getattr(load_template(f"workbench/{name}").module, macro)(self.links, *values))


@dataclass(frozen=True)
class SentForm:
    """Form fields in submission order."""

    pairs: tuple[tuple[str, str], ...]

    def read_field(self, name: str) -> str:
        """Return a field stripped of white space; return an empty string for missing fields."""
        return next((value.strip() for key, value in self.pairs if key == name), "")

    def read_fields(self, name: str) -> tuple[str, ...]:
        """Return all non-empty values of a field."""
        return tuple(v.strip() for key, v in self.pairs if key == name and v.strip())

    def require_field(self, name: str, what: str) -> str:
        """Return a required field; raise ``UsageError`` for empty fields."""
        if not (value := self.read_field(name)):
            raise UsageError(f"{what} is missing.", "Go back, and fill it in.")
        return value


class Links:
    """Page addresses of a collection."""

    def __init__(self, collection: str) -> None:
        self.home = f"{BASE}/{quote(collection, safe='')}/"
        self.api = f"/api/v1/collections/{quote(collection, safe='')}"
        self._sparql = f"/sparql/{quote(collection, safe='')}"

    def build_address(self, *parts: str, **values: Any) -> str:
        """Return a page address below the collection, with query values; None and empty values
        are dropped."""
        path = self.home + "/".join(quote(part, safe="") for part in parts)
        parameters = {name: value for name, value in values.items() if value not in (None, "")}
        return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path

    def session(self, iri: str, **values: Any) -> str:
        """Return a session page address."""
        return self.build_address("sessions", iri.rpartition(":")[2], **values)

    def document(self, iri: str, **values: Any) -> str:
        """Return a document page address."""
        return self.build_address("documents", iri.rpartition(":")[2], **values)

    def place(self, cited: Any) -> str:
        """Return the page address showing a quote."""
        where = self.document(cited.document, page=cited.page, start=cited.start, end=cited.end)
        return f"{where}#quote"

    def resource(self, iri: str) -> str:
        """Return the page address of any IRI."""
        kinds = {"session": self.session, "document": self.document}
        kind = iri.removeprefix("urn:trustgraph:").partition(":")[0]
        if iri.startswith("urn:trustgraph:") and kind in kinds and iri.count(":") == 3:
            return kinds[kind](iri)
        if iri.startswith("urn:trustgraph:entity:"):
            return self.build_address("entity", iri=iri)
        return self.build_address("resource", iri=iri)

    def rdf(self, query: str) -> str:
        """Return the RDF address of a query's constructed triples."""
        return f"{self._sparql}?{urlencode({'query': query})}"

    def address_listing(self, query: str) -> str:
        """Return the RDF address of a page listing, built from a tgraph query."""
        return self.rdf(load_query(query))

    def address_description(self, iri: str) -> str:
        """Return the RDF address describing an IRI; return an empty string for IRIs invalid in
        queries."""
        unfit = set(iri) & set('<>"{}|^`\\') or any(c <= " " for c in iri)
        return "" if unfit else self.rdf(f"DESCRIBE <{iri}>")


PageHandler = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True)
class WorkbenchPage:
    """A workbench page: path below the collection, handler, contents, required rights."""

    path: str
    name: str
    handler: PageHandler
    contents: tuple[Content, ...]
    rights: tuple[Right, ...] = ("read",)
    method: str = "GET"

    def route(self, service: Service) -> Route:
        """Return the route serving this page."""
        declaration = Declaration(self.rights, self.contents)

        async def answer(request: Request) -> Response:
            return await answer_visit(service, request, declaration, self.handler)

        path, name = f"{BASE}/{{collection}}{self.path}", f"workbench_{self.name}"
        return DeclaredRoute(path, answer, declaration, methods=[self.method], name=name)


async def answer_visit(
    service: Service, request: Request, declaration: Declaration, handler: PageHandler
) -> Response:
    """Check visitor access, then return the handler's response."""
    access = request.state.access
    if access is None:
        return to_sign_in(request)
    collection = str(request.path_params.get("collection", ""))
    visit = Visit(service, request, access, collection)
    try:
        declaration.check(access, collection or None)
        return await handler(visit)
    except EmptyCollectionError as error:
        if request.method in ("GET", "HEAD"):
            return await visit.page("empty.html")
        return render_problem(visit, 409, error.message, "Bring documents first.")
    except TgraphError as error:
        details = problem_of(error)
        return render_problem(visit, int(details["status"]), error.message, error.remedy)
    except HTTPException as error:
        return render_problem(visit, error.status_code, error.detail, "")


def render_problem(visit: Visit, status: int, said: str, remedy: str | None) -> Response:
    """Return a page explaining a problem with its remedy."""
    title = TITLES.get(status, "Something failed")
    page = render_page("problem.html", visit, title=title, said=said, remedy=remedy or "")
    return html_response(page, status)


def to_sign_in(request: Request) -> Response:
    """Redirect to sign-in, returning to the current page afterwards."""
    back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    reading = request.method in ("GET", "HEAD")
    return RedirectResponse(f"{SIGN_IN}?{urlencode({'next': back})}" if reading else SIGN_IN, 303)


def render_page(name: str, visit: Visit, **values: Any) -> str:
    """Render a page template; ``signed_in`` tells whether a sign-in cookie exists."""
    from tgraph.extensions.server.sign_in import COOKIE

    return load_template(f"workbench/{name}").render(
        visit=visit,
        links=visit.links,
        collection=visit.collection,
        person=visit.access.person,
        upload_mb=visit.service.limits.upload_mb,
        signed_in=COOKIE in visit.request.cookies,
        **values,
    )


def html_response(text: str, status: int = 200) -> Response:
    """Return an HTML response with content security policy."""
    headers = {"Content-Security-Policy": POLICY, "Vary": "Cookie, Authorization"}
    return HTMLResponse(text, status, headers)


def redirect_to(place: str) -> Response:
    """Redirect to another page after an action (303, RFC 9110 15.4.4)."""
    return RedirectResponse(place, 303)


def format_page_event(name: str, data: Any) -> bytes:
    """Format a server-sent event for live page updates."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


@dataclass(frozen=True, slots=True)
class ListPart:
    """A segment of a long list: rows, start position, total count."""

    rows: Sequence[Any]
    first: int
    total: int
    size: int

    @property
    def end(self) -> int:
        return self.first + len(self.rows)

    @property
    def previous_start(self) -> int | None:
        return max(0, self.first - self.size) if self.first else None

    @property
    def next_start(self) -> int | None:
        return self.end if self.end < self.total else None


def part_of(rows: Sequence[Any], asked: str, size: int = 100) -> ListPart:
    """Return the list segment starting at the requested position; invalid positions select the
    first segment."""
    first = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 0
    first = first if first < len(rows) else 0
    return ListPart(rows[first : first + size], first, len(rows), size)
