"""Workbench: browser pages sharing one engine with all interfaces."""

from __future__ import annotations

from starlette.routing import BaseRoute

from tgraph.extensions.server.service import Service
from tgraph.extensions.server.sign_ins import SignIns
from tgraph.extensions.server.workbench import (
    audit_pages,
    catalogue_pages,
    collection_pages,
    document_pages,
    entrance,
    knowledge_pages,
    question_pages,
    session_pages,
)


def workbench_routes(service: Service, sign_ins: SignIns | None) -> list[BaseRoute]:
    """Return all workbench routes.

    Entrance routes come first, reserving their names against collections."""
    modules = (
        question_pages,
        session_pages,
        document_pages,
        knowledge_pages,
        catalogue_pages,
        collection_pages,
        audit_pages,
    )
    pages = [page.route(service) for module in modules for page in module.PAGES]
    return [
        *entrance.entrance_routes(service, sign_ins),
        *pages,
        entrance.missing_page_route(service),
    ]
