"""The frame of the workbench's pages: who sees them, how they are written, and what they refuse.

The pages work without JavaScript, and load nothing from elsewhere: their policy allows what this
server itself sends, and no script or style within a page.
"""

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
from tgraph.errors import TgraphError, UsageError
from tgraph.explain.render.templates import template
from tgraph.extensions.server.access import Access, Right
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
    """Somebody at a page of a collection."""

    service: Service
    request: Request
    access: Access
    collection: str

    async def graph(self, work: Callable[[KnowledgeGraph], T], pool: Pool = "read") -> T:
        """What ``work`` gives of the collection, in a thread of the pool."""
        return await self.service.run(self.access, self.collection, work, pool=pool)

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def asked(self, name: str, default: str = "") -> str:
        """A value of the query."""
        return str(self.request.query_params.get(name, default))

    def may(self, right: Right) -> bool:
        """Whether it is theirs to do that here."""
        return right in self.access.rights and self.access.admits(self.collection)

    @cached_property
    def links(self) -> Links:
        """Where the pages of the collection are."""
        return Links(self.collection)

    async def form(self) -> SentForm:
        """What a form sent. ``UsageError`` where it is none."""
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
        """A page by its template, written in a thread since large ones take a while."""

        def written() -> str:
            return rendered(template_name, self, **values)

        return html(await self.service.call(written))

    def part_of_page(self, name: str, macro: str, *values: Any) -> str:
        """What a macro of a template writes, for a page that shows it as it comes."""
        return str(getattr(template(f"workbench/{name}").module, macro)(self.links, *values))


@dataclass(frozen=True)
class SentForm:
    """The fields of a form in their order."""

    pairs: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        """A field without white space around it; empty where there is none."""
        return next((value.strip() for key, value in self.pairs if key == name), "")

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a field, without empty ones."""
        return tuple(v.strip() for key, v in self.pairs if key == name and v.strip())

    def needed(self, name: str, what: str) -> str:
        """A field that must be filled in. ``UsageError`` where it is not."""
        if not (value := self.get(name)):
            raise UsageError(f"{what} is missing.", "Go back, and fill it in.")
        return value


class Links:
    """The addresses of the pages of a collection."""

    def __init__(self, collection: str) -> None:
        self.home = f"{BASE}/{quote(collection, safe='')}/"
        self.api = f"/api/v1/collections/{quote(collection, safe='')}"
        self._sparql = f"/sparql/{quote(collection, safe='')}"

    def to(self, *parts: str, **values: Any) -> str:
        """A page below the collection's, with values in its query; those that are None or empty
        are left out."""
        path = self.home + "/".join(quote(part, safe="") for part in parts)
        given = {name: value for name, value in values.items() if value not in (None, "")}
        return f"{path}?{urlencode(given, doseq=True)}" if given else path

    def session(self, iri: str, **values: Any) -> str:
        """The page of a session."""
        return self.to("sessions", iri.rpartition(":")[2], **values)

    def document(self, iri: str, **values: Any) -> str:
        """The page of a document."""
        return self.to("documents", iri.rpartition(":")[2], **values)

    def place(self, cited: Any) -> str:
        """Where a quote is shown in its page."""
        where = self.document(cited.document, page=cited.page, start=cited.start, end=cited.end)
        return f"{where}#quote"

    def resource(self, iri: str) -> str:
        """The page of anything that has an IRI."""
        kinds = {"session": self.session, "document": self.document}
        kind = iri.removeprefix("urn:trustgraph:").partition(":")[0]
        if iri.startswith("urn:trustgraph:") and kind in kinds and iri.count(":") == 3:
            return kinds[kind](iri)
        if iri.startswith("urn:trustgraph:entity:"):
            return self.to("entity", iri=iri)
        return self.to("resource", iri=iri)

    def rdf(self, query: str) -> str:
        """What a query constructs, as RDF."""
        return f"{self._sparql}?{urlencode({'query': query})}"

    def listed(self, query: str) -> str:
        """What a page lists, as RDF, by a query of tgraph's."""
        return self.rdf(load_query(query))

    def described(self, iri: str) -> str:
        """What is known of an IRI, as RDF; nothing where it can't stand in a query."""
        unfit = set(iri) & set('<>"{}|^`\\') or any(c <= " " for c in iri)
        return "" if unfit else self.rdf(f"DESCRIBE <{iri}>")


Handler = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True)
class WorkbenchPage:
    """A page of the workbench: its place below the collection's, and what it needs."""

    path: str
    name: str
    handler: Handler
    right: Right = "read"
    method: str = "GET"

    def route(self, service: Service) -> Route:
        """The route that answers it."""

        async def answer(request: Request) -> Response:
            return await answered(service, request, self.right, self.handler)

        path = f"{BASE}/{{collection}}{self.path}"
        return Route(path, answer, methods=[self.method], name=f"workbench_{self.name}")


async def answered(service: Service, request: Request, right: Right, handler: Handler) -> Response:
    """What the handler answers, once it is known that the visitor may ask for it."""
    access = request.state.access
    if access is None:
        return to_sign_in(request)
    collection = str(request.path_params.get("collection", ""))
    visit = Visit(service, request, access, collection)
    try:
        access.check(right, collection or None)
        return await handler(visit)
    except TgraphError as error:
        told = problem_of(error)
        return refused(visit, int(told["status"]), error.message, error.remedy)
    except HTTPException as error:
        return refused(visit, error.status_code, error.detail, "")


def refused(visit: Visit, status: int, said: str, remedy: str | None) -> Response:
    """A page that says what went wrong, and what helps."""
    title = TITLES.get(status, "Something failed")
    page = rendered("problem.html", visit, title=title, said=said, remedy=remedy or "")
    return html(page, status)


def to_sign_in(request: Request) -> Response:
    """Send to where one signs in, and back from there."""
    back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    reading = request.method in ("GET", "HEAD")
    return RedirectResponse(f"{SIGN_IN}?{urlencode({'next': back})}" if reading else SIGN_IN, 303)


def rendered(name: str, visit: Visit, **values: Any) -> str:
    """A page of a template. ``signed_in`` is whether there is a cookie to be rid of."""
    from tgraph.extensions.server.sign_in import COOKIE

    return template(f"workbench/{name}").render(
        visit=visit,
        links=visit.links,
        collection=visit.collection,
        person=visit.access.person,
        signed_in=COOKIE in visit.request.cookies,
        **values,
    )


def html(text: str, status: int = 200) -> Response:
    """The page with its policy."""
    headers = {"Content-Security-Policy": POLICY, "Vary": "Cookie, Authorization"}
    return HTMLResponse(text, status, headers)


def seen(place: str) -> Response:
    """Go on to another page (after something was done: 303, RFC 9110 15.4.4)."""
    return RedirectResponse(place, 303)


def sse(name: str, data: Any) -> bytes:
    """An event of a page that shows something as it comes."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


@dataclass(frozen=True, slots=True)
class ListPart:
    """One of the parts of a long list: its rows, where they begin, and how many there are."""

    rows: Sequence[Any]
    first: int
    total: int
    size: int

    @property
    def last(self) -> int:
        return self.first + len(self.rows)

    @property
    def before(self) -> int | None:
        return max(0, self.first - self.size) if self.first else None

    @property
    def after(self) -> int | None:
        return self.last if self.last < self.total else None


def part_of(rows: Sequence[Any], asked: str, size: int = 100) -> ListPart:
    """The part that begins at the place that was asked for; the first where it is no place."""
    first = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 0
    first = first if first < len(rows) else 0
    return ListPart(rows[first : first + size], first, len(rows), size)
