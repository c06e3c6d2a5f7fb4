"""The operations below ``/api/v1``."""

from __future__ import annotations

from tgraph.extensions.server.operations import Operation
from tgraph.extensions.server.rest import asking, documents, knowledge, sessions

OPERATIONS: tuple[Operation, ...] = (
    *asking.OPERATIONS,
    *sessions.OPERATIONS,
    *documents.OPERATIONS,
    *knowledge.OPERATIONS,
)
