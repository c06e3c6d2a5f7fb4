"""The path functions below ``/api/v1``, and their routes."""

from __future__ import annotations

from tgraph.extensions.server.rest import asking, documents, knowledge, sessions
from tgraph.extensions.server.rest.routes import RestRoute

ROUTES: tuple[RestRoute, ...] = tuple(
    route
    for router in (
        asking.router,
        sessions.router,
        documents.router,
        documents.job_router,
        knowledge.collection_router,
        knowledge.router,
        knowledge.audit_router,
    )
    for route in router.routes
    if isinstance(route, RestRoute)
)
