"""Into the workbench: signing in and out, which collection, and the files that its pages load."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tgraph.engine.collections import list_collections
from tgraph.errors import UsageError
from tgraph.explain.render.templates import template
from tgraph.extensions.server.access import Access, Tokens
from tgraph.extensions.server.service import Service
from tgraph.extensions.server.sign_in import COOKIE
from tgraph.extensions.server.workbench.pages import (
    BASE,
    SIGN_IN,
    Links,
    SentForm,
    Visit,
    answered,
    html,
    seen,
)
from tgraph.resources import data

_ASSETS = {
    "workbench.css": "text/css; charset=utf-8",
    "workbench.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_MONTH = 30 * 24 * 3600


def entrance_routes(service: Service, tokens: Tokens | None) -> list[Route]:
    """``/``, ``/workbench/``, signing in and out, and the assets."""
    home = partial(_home, service)
    return [
        Route("/", home),
        Route("/favicon.ico", _icon),
        Route(BASE, home),
        Route(f"{BASE}/", home),
        Route(f"{BASE}/static/{{name}}", _asset),
        Route(SIGN_IN, partial(_sign_in_page, tokens)),
        Route(SIGN_IN, partial(_sign_in, service, tokens), methods=["POST"]),
        Route(f"{BASE}/sign-out", _sign_out, methods=["POST"]),
    ]


def nowhere(service: Service) -> Route:
    """What any other address below the workbench's is answered with: that there is no such page."""

    async def missing(visit: Visit) -> Response:
        raise HTTPException(404, "There is no such page.")

    async def answer(request: Request) -> Response:
        return await answered(service, request, "read", missing)

    return Route(f"{BASE}/{{collection}}/{{rest:path}}", answer)


async def _icon(request: Request) -> Response:
    return RedirectResponse(f"{BASE}/static/icon.svg", 303)


async def _home(service: Service, request: Request) -> Response:
    """The collection of the settings, if it is theirs, else one that is."""

    async def go(visit: Visit) -> Response:
        own = service.default_collection
        found = await service.call(lambda: list_collections(service.root))
        names = [each.name for each in found if visit.access.admits(each.name)]
        if visit.access.admits(own) or not names:
            return seen(Links(own).home)
        return seen(Links(names[0]).home)

    return await answered(service, request, "read", go)


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        raise HTTPException(404, "There is no such file.")
    content = data(f"workbench/{name}").read_bytes()
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_ASSETS[name], headers=headers)


# --- who ---


async def _sign_in_page(tokens: Tokens | None, request: Request) -> Response:
    if tokens is None:
        return seen(f"{BASE}/")
    return _asking(str(request.query_params.get("next", "")))


def _asking(back: str, wrong: str = "") -> Response:
    page = template("workbench/sign-in.html").render(back=back, wrong=wrong)
    return html(page, 401 if wrong else 200)


async def _sign_in(service: Service, tokens: Tokens | None, request: Request) -> Response:
    if tokens is None:
        return seen(f"{BASE}/")
    try:
        form: SentForm = await Visit(service, request, Access(None, (), ()), "").form()
    except UsageError as error:
        return _asking("", error.message)
    token, back = form.get("token"), form.get("next")
    if not token or tokens.find(token) is None:
        return _asking(back, "There is no such token, or its time is over.")
    response = seen(_within(back))
    secure = request.url.scheme == "https"
    response.set_cookie(
        COOKIE, token, max_age=_MONTH, path="/", secure=secure, httponly=True, samesite="lax"
    )
    return response


def _within(back: str) -> str:
    """Where to go on, if that is a page of the workbench."""
    parts = urlsplit(back)
    inside = back.startswith(f"{BASE}/") and not parts.scheme and not parts.netloc
    safe = inside and "\\" not in back and back.isprintable()
    return back if safe else f"{BASE}/"


async def _sign_out(request: Request) -> Response:
    response = seen(SIGN_IN)
    response.delete_cookie(COOKIE, path="/")
    return response
