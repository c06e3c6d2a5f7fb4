"""The operations below ``/api/v1``."""

from __future__ import annotations

from tgraph.server.operations import Operation
from tgraph.server.rest import asking, documents, knowledge, sessions

OPERATIONS: tuple[Operation, ...] = (
    *asking.OPERATIONS,
    *sessions.OPERATIONS,
    *documents.OPERATIONS,
    *knowledge.OPERATIONS,
)
