"""What the graph knows: collections, entities and facts, decisions, audits, generations."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field
from starlette.responses import Response

from tgraph.engine import collections as of_folder
from tgraph.engine.collections import CollectionSummary
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.audit.named_audits import Audit, list_audits
from tgraph.extensions.server.operations import Operation, Parameters, RestCall
from tgraph.extensions.server.rest.documents import Reason
from tgraph.plugins import FUNCTIONS
from tgraph.retrieve.entity_matching import entity_names

_KNOWLEDGE = {
    "trig": "application/trig",
    "turtle": "text/turtle",
    "nquads": "application/n-quads",
    "graphml": "application/graphml+xml",
}
if TYPE_CHECKING:
    KnowledgeFormat = str
else:
    KnowledgeFormat = Literal[tuple(_KNOWLEDGE)]


class CollectionName(Parameters):
    """The name of a collection."""

    name: str = Field(min_length=1, max_length=100)


class Searching(Parameters):
    text: str = Field("", max_length=200, description="part of the name; empty: all")
    limit: int = Field(50, ge=1, le=1_000)


class AuditArguments(Parameters):
    arguments: str = Field("", max_length=2_000, description="of the audit, parted by commas")


class Between(Parameters):
    before: str = Field(min_length=1, description="a time, a generation or a session; 0: nothing")
    after: str = Field("now", min_length=1)


class Splitting(Reason):
    """Two names that are not one entity."""

    name: str = Field(min_length=1, max_length=1_000)
    other: str | None = None


class KnowledgeExport(Parameters):
    format: KnowledgeFormat = "trig"
    sources: bool = Field(False, description="with the quotes that it rests on")


# --- collections ---


async def collections(call: RestCall) -> Any:
    """Those that the token is for."""
    root, access = call.service.root, call.access
    found = await call.service.call(lambda: of_folder.list_collections(root))
    return [each for each in found if access.admits(each.name)]


async def create(call: RestCall) -> Any:
    """An empty one."""
    name = call.body.name
    call.access.check("govern", name)
    await call.service.call(lambda: of_folder.create_collection(call.service.root, name))
    return {"name": name}


async def copy(call: RestCall) -> Any:
    """A copy with the record."""
    name = call.body.name
    call.access.check("govern", name)
    root = call.service.root
    await call.service.call(lambda: of_folder.copy_collection(root, call.collection, name), "audit")
    return {"name": name}


async def delete(call: RestCall) -> Any:
    """For good."""
    service, name = call.service, call.collection

    def work() -> None:
        service.forget(name)
        of_folder.delete_collection(service.root, name)

    await service.call(work, "audit")


# --- entities ---


async def entities(call: RestCall) -> Any:
    """Their names."""
    asked = call.query
    wanted = asked.text.casefold()

    def work(graph: KnowledgeGraph) -> list[str]:
        found = (each for each in entity_names(graph.read()) if wanted in each.casefold())
        return sorted(found, key=lambda name: (not name.casefold().startswith(wanted), name))

    return (await call.graph(work))[: asked.limit]


async def facts(call: RestCall) -> Any:
    """The facts about one."""
    name = call.path("entity")
    return await call.graph(lambda graph: graph.facts(name))


async def merges(call: RestCall) -> Any:
    """Names that stand for another entity."""
    return await call.graph(lambda graph: graph.merges())


async def splits(call: RestCall) -> Any:
    """Names that were told apart."""
    return await call.graph(lambda graph: graph.splits())


async def split(call: RestCall) -> Any:
    """Tell two names apart."""
    asked: Splitting = call.body
    made = await call.graph(
        lambda graph: graph.split(asked.name, asked.other, reason=asked.reason), "audit"
    )
    return {"split": made}


async def rejoin(call: RestCall) -> Any:
    """Take a split back."""
    asked: Splitting = call.body
    if asked.other is None:
        raise UsageError("Both names are needed.")
    other = asked.other
    made = await call.graph(
        lambda graph: graph.rejoin(asked.name, other, reason=asked.reason), "audit"
    )
    return {"split": made}


async def curations(call: RestCall) -> Any:
    """What people decided."""
    return await call.graph(lambda graph: graph.curations())


# --- audits and time ---


async def audits(call: RestCall) -> Any:
    """The audits that there are."""
    return await call.service.call(list_audits)


async def audit(call: RestCall) -> Any:
    """The rows of one."""
    name = call.path("audit")
    arguments = [each.strip() for each in call.query.arguments.split(",") if each.strip()]

    def work(graph: KnowledgeGraph) -> Any:
        found = graph.audit(name, *arguments)
        columns = found.audit.columns
        rows = [dict(zip(columns, row, strict=True)) for row in found.rows]
        return {"audit": asdict(found.audit), "passed": found.passed, "rows": rows}

    return await call.graph(work, "audit")


async def history(call: RestCall) -> Any:
    """The generations of knowledge."""
    return await call.graph(lambda graph: graph.history())


async def knowledge_diff(call: RestCall) -> Any:
    """What came and went between two of them."""
    asked: Between = call.query

    def work(graph: KnowledgeGraph) -> Any:
        found = graph.knowledge_diff(asked.before, asked.after)
        return {"same": found.same, **asdict(found)}

    return await call.graph(work, "audit")


async def export_knowledge(call: RestCall) -> Response:
    """What the graph knows."""
    from io import BytesIO

    asked: KnowledgeExport = call.query

    def work(graph: KnowledgeGraph) -> bytes:
        out = BytesIO()
        write = FUNCTIONS.require("export_knowledge", "interchange")
        write(graph, out, asked.format, sources=asked.sources)
        return out.getvalue()

    return Response(await call.graph(work, "audit"), media_type=_KNOWLEDGE[asked.format])


_ROOT = "/api/v1/collections"
_ONE = f"{_ROOT}/{{collection}}"
_OBJECT = {"type": "object"}
OPERATIONS = (
    Operation(
        "GET", _ROOT, "collections", "List collections", collections,
        answer=tuple[CollectionSummary, ...], tags=("collections",),
    ),
    Operation(
        "POST", _ROOT, "create_collection", "Make an empty collection", create, "govern", _OBJECT,
        body=CollectionName, status=201, tags=("collections",),
    ),
    Operation(
        "POST", f"{_ONE}/copies", "copy_collection", "Copy a collection with its record", copy,
        "govern", _OBJECT, body=CollectionName, status=201, tags=("collections",),
    ),
    Operation(
        "DELETE", _ONE, "delete_collection", "Delete a collection, for good", delete, "govern",
        status=204, tags=("collections",),
    ),
    Operation(
        "GET", f"{_ONE}/entities", "entities", "Names of entities", entities,
        answer=tuple[str, ...], query=Searching, tags=("knowledge",),
    ),
    Operation(
        "GET", f"{_ONE}/entities/{{entity}}/facts", "facts", "The facts about an entity", facts,
        answer="facts", tags=("knowledge",),
    ),
    Operation(
        "GET", f"{_ONE}/merges", "merges", "Names that stand for another", merges,
        answer="merges", tags=("knowledge",),
    ),
    Operation(
        "GET", f"{_ONE}/splits", "splits", "Names that were told apart", splits, answer="splits",
        tags=("knowledge",),
    ),
    Operation(
        "POST", f"{_ONE}/splits", "split", "Tell two names apart", split, "govern", _OBJECT,
        body=Splitting, status=201, tags=("knowledge",),
    ),
    Operation(
        "POST", f"{_ONE}/rejoins", "rejoin", "Take a split back", rejoin, "govern", _OBJECT,
        body=Splitting, status=201, tags=("knowledge",),
    ),
    Operation(
        "GET", f"{_ONE}/curations", "curations", "What people decided", curations,
        answer="curations", tags=("knowledge",),
    ),
    Operation(
        "GET", "/api/v1/audits", "audits", "List audits", audits, answer=tuple[Audit, ...],
        tags=("audits",),
    ),
    Operation(
        "GET", f"{_ONE}/audits/{{audit}}", "audit", "Run an audit", audit, answer=_OBJECT,
        query=AuditArguments, tags=("audits",),
    ),
    Operation(
        "GET", f"{_ONE}/history", "history", "The generations of knowledge", history,
        answer="history", tags=("knowledge",),
    ),
    Operation(
        "GET", f"{_ONE}/diff", "knowledge_diff", "What came and went, and because of what",
        knowledge_diff, answer="knowledge-diff", query=Between, tags=("knowledge",),
    ),
    Operation(
        "GET", f"{_ONE}/knowledge", "export_knowledge", "What the graph knows", export_knowledge,
        query=KnowledgeExport, media=tuple(_KNOWLEDGE.values()), tags=("knowledge",),
    ),
)  # fmt: skip
