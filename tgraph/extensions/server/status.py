"""Server status for monitoring: liveness, readiness, activity."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tgraph.engine.collections import list_collections
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import TgraphError
from tgraph.extensions.server.access import Access
from tgraph.extensions.server.service import Service
from tgraph.version import __version__

_PATIENCE = 10.0


def status_routes(service: Service) -> list[Route]:
    """Return routes ``/health``, ``/ready`` and ``/metrics``.

    Status routes need no token and reveal no content."""
    started = time.time()

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    async def ready(request: Request) -> Response:
        checks = await _run_checks(service)
        good = all(checks.values()) and not service.stopping.is_set()
        check_states = {name: "ok" if passed else "failed" for name, passed in checks.items()}
        status = "ready" if good else "not ready"
        return JSONResponse({"status": status, "checks": check_states}, 200 if good else 503)

    async def metrics(request: Request) -> Response:
        text = "".join(_format_metrics(service, started))
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return [Route("/health", health), Route("/ready", ready), Route("/metrics", metrics)]


async def _run_checks(service: Service) -> dict[str, bool]:
    """Check folder, store with vectors, and models for usability."""

    def store(graph: KnowledgeGraph) -> bool:
        graph.opened.read()
        return graph.context().vectors is not None

    results = {"folder": False, "store": False}
    try:
        async with asyncio.timeout(_PATIENCE):
            names = await service.call(lambda: list_collections(service.root))
            results["folder"] = True
            if any(
                summary.name == service.default_collection and summary.generation
                for summary in names
            ):
                results["store"] = await service.run(
                    Access(None), service.default_collection, store
                )
            else:
                results["store"] = True  # nothing to answer from yet, and nothing wrong
    except (TgraphError, TimeoutError):
        pass
    return results


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
