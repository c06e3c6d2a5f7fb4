"""Workbench entrance: sign-in, sign-out, collection choice, static files."""

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
from tgraph.explain.render.templates import load_template
from tgraph.extensions.server.access import Access, Declaration, ForbiddenError
from tgraph.extensions.server.declared import OPEN, DeclaredRoute
from tgraph.extensions.server.service import Service
from tgraph.extensions.server.sign_in import COOKIE
from tgraph.extensions.server.sign_ins import LIFETIME, SignIns
from tgraph.extensions.server.workbench.pages import (
    BASE,
    SIGN_IN,
    Links,
    SentForm,
    Visit,
    answer_visit,
    html_response,
    redirect_to,
)
from tgraph.resources import data_file

_ASSETS = {
    "workbench.css": "text/css; charset=utf-8",
    "workbench.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


_HOME = Declaration(("read",), ("collections",))


def entrance_routes(service: Service, sign_ins: SignIns | None) -> list[Route]:
    """Return routes for ``/``, ``/workbench/``, sign-in, sign-out and assets."""
    home = partial(_open_home, service)
    return [
        DeclaredRoute("/", home, _HOME),
        DeclaredRoute("/favicon.ico", _redirect_icon, OPEN),
        DeclaredRoute(BASE, home, _HOME),
        DeclaredRoute(f"{BASE}/", home, _HOME),
        DeclaredRoute(f"{BASE}/static/{{name}}", _serve_asset, OPEN),
        DeclaredRoute(SIGN_IN, partial(_sign_in_page, sign_ins), OPEN),
        DeclaredRoute(SIGN_IN, partial(_sign_in, service, sign_ins), OPEN, methods=["POST"]),
        DeclaredRoute(
            f"{BASE}/sign-out", partial(_sign_out, service, sign_ins), OPEN, methods=["POST"]
        ),
    ]


def missing_page_route(service: Service) -> Route:
    """Return a catch-all route answering unknown workbench addresses with "no such page"."""

    async def missing(visit: Visit) -> Response:
        raise HTTPException(404, "There is no such page.")

    async def answer(request: Request) -> Response:
        return await answer_visit(service, request, declaration, missing)

    declaration = Declaration(("read",), ("status",))
    return DeclaredRoute(f"{BASE}/{{collection}}/{{rest:path}}", answer, declaration)


async def _redirect_icon(request: Request) -> Response:
    return RedirectResponse(f"{BASE}/static/icon.svg", 303)


async def _open_home(service: Service, request: Request) -> Response:
    """Redirect to the default collection if admitted, otherwise to an admitted collection."""

    async def redirect_home(visit: Visit) -> Response:
        default_name = service.default_collection
        summaries = await service.call(lambda: list_collections(service.root))
        names = [summary.name for summary in summaries if visit.access.admits(summary.name)]
        if visit.access.admits(default_name):
            return redirect_to(Links(default_name).home)
        if not names:  # nor is said what others are called
            raise ForbiddenError(
                "This token is for no collection that there is.",
                "Ask the operator of the server for a token.",
            )
        return redirect_to(Links(names[0]).home)

    return await answer_visit(service, request, _HOME, redirect_home)


async def _serve_asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        raise HTTPException(404, "There is no such file.")
    content = data_file(f"workbench/{name}").read_bytes()
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_ASSETS[name], headers=headers)


# --- who ---


async def _sign_in_page(sign_ins: SignIns | None, request: Request) -> Response:
    if sign_ins is None:
        return redirect_to(f"{BASE}/")
    return _sign_in_form(str(request.query_params.get("next", "")))


def _sign_in_form(back: str, wrong: str = "") -> Response:
    page = load_template("workbench/sign-in.html").render(back=back, wrong=wrong)
    return html_response(page, 401 if wrong else 200)


async def _sign_in(service: Service, sign_ins: SignIns | None, request: Request) -> Response:
    if sign_ins is None:
        return redirect_to(f"{BASE}/")
    try:
        form: SentForm = await Visit(service, request, Access(None, (), ()), "").form()
    except UsageError as error:
        return _sign_in_form("", error.message)
    token, back = form.read_field("token"), form.read_field("next")
    session = await service.call(lambda: sign_ins.begin(token)) if token else None
    if session is None:
        return _sign_in_form(back, "The token does not exist or has expired.")
    response = redirect_to(_safe_return_path(back))
    secure = request.url.scheme == "https"
    response.set_cookie(
        COOKIE,
        session,
        max_age=int(LIFETIME),
        path="/",
        secure=secure,
        httponly=True,
        samesite="lax",
    )
    return response


def _safe_return_path(back: str) -> str:
    """Return a path within the workbench unchanged; replace other paths with the workbench
    start."""
    parts = urlsplit(back)
    inside = back.startswith(f"{BASE}/") and not parts.scheme and not parts.netloc
    safe = inside and "\\" not in back and back.isprintable()
    return back if safe else f"{BASE}/"


async def _sign_out(service: Service, sign_ins: SignIns | None, request: Request) -> Response:
    session = request.cookies.get(COOKIE)
    if sign_ins is not None and session is not None:
        await service.call(lambda: sign_ins.end(session))
    response = redirect_to(SIGN_IN)
    response.delete_cookie(COOKIE, path="/")
    return response
