"""Server status for monitoring: liveness, readiness, activity."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tgraph.engine.collections import list_collections
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import StoreError, TgraphError
from tgraph.extensions.server.access import Access
from tgraph.extensions.server.declared import OPEN, DeclaredRoute
from tgraph.extensions.server.service import Service
from tgraph.version import __version__

_PATIENCE = 10.0
_FRESH = 1.0
"""Seconds for which a check's result is shared."""


def status_routes(service: Service) -> list[DeclaredRoute]:
    """Return routes ``/health``, ``/ready`` and ``/metrics``.

    Status routes need no token and reveal no content."""
    started, readiness = time.time(), _Readiness(service)

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    async def ready(request: Request) -> Response:
        checks = await readiness.states()
        good = "failed" not in checks.values() and not service.stopping.is_set()
        status = "ready" if good else "not ready"
        return JSONResponse({"status": status, "checks": checks}, 200 if good else 503)

    async def metrics(request: Request) -> Response:
        text = "".join(_format_metrics(service, started))
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return [
        DeclaredRoute(path, endpoint, OPEN)
        for path, endpoint in (("/health", health), ("/ready", ready), ("/metrics", metrics))
    ]


class _Readiness:
    """Checks whether the server can answer: one check at a time, whose result all who ask within a
    moment share, so that asking costs no place among readers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = asyncio.Lock()
        self._checks: dict[str, str] = {}
        self._checked = float("-inf")

    async def states(self) -> dict[str, str]:
        """Return "ok" or "failed" by what was checked."""
        async with self._lock:
            if time.monotonic() - self._checked > _FRESH:
                self._checks = await self._run_checks()
                self._checked = time.monotonic()
        return self._checks | {"tasks": "failed" if self._service.supervisor.troubles else "ok"}

    async def _run_checks(self) -> dict[str, str]:
        service, checks = self._service, {"folder": "failed", "store": "failed"}
        try:
            async with asyncio.timeout(_PATIENCE):
                names = await service.call(lambda: list_collections(service.root))
                checks["folder"] = "ok"
                default = service.default_collection
                if any(summary.name == default and summary.generation for summary in names):
                    await service.run(Access(None), default, _read_store)
                checks["store"] = "ok"  # or nothing to answer from yet, and nothing wrong
        except (TgraphError, TimeoutError, OSError):
            pass
        return checks


def _read_store(graph: KnowledgeGraph) -> None:
    graph.opened.read()
    if graph.context().vectors is None:
        raise StoreError("The vectors are missing.")


def _format_metrics(service: Service, started: float) -> Iterator[str]:
    """Prometheus' text format 0.0.4."""
    yield "# TYPE tgraph_start_time_seconds gauge\n"
    yield f"tgraph_start_time_seconds {started:.3f}\n"
    yield "# TYPE tgraph_in_progress gauge\n"
    for pool in ("ask", "read", "audit"):
        yield f'tgraph_in_progress{{pool="{pool}"}} {service.waiting(pool)}\n'
    yield "# TYPE tgraph_requests_total counter\n"
    for (door, status), count in sorted(service.counters.requests.items()):
        yield f'tgraph_requests_total{{door="{door}",status="{status}"}} {count}\n'
    yield "# TYPE tgraph_request_seconds_total counter\n"
    for door, seconds in sorted(service.counters.seconds.items()):
        yield f'tgraph_request_seconds_total{{door="{door}"}} {seconds:.6f}\n'
