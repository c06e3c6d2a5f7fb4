"""The knowledge of the graph: collections, entities and facts, decisions, audits, generations."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response
from starlette.status import HTTP_201_CREATED, HTTP_204_NO_CONTENT

from tgraph.engine import collections as of_folder
from tgraph.engine.collections import CollectionSummary
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.json_sessions import KnowledgeDiffOut
from tgraph.errors import UsageError
from tgraph.explain.audit.named_audits import Audit, list_audits
from tgraph.explain.trace.curations import Curation
from tgraph.explain.trace.entities import Merge, Split
from tgraph.explain.trace.facts import KnownFact
from tgraph.explain.trace.generations import Generation
from tgraph.extensions.server.requests import BodyParameters, QueryParameters
from tgraph.extensions.server.rest.documents import Reason
from tgraph.extensions.server.rest.routes import (
    CollectionCall,
    PathName,
    ServerCall,
    json_response,
    media,
    needs,
    rest_router,
)
from tgraph.extensions.server.sparql import BoundedFile
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


class CollectionName(BodyParameters):
    """The name of a collection."""

    name: str = Field(min_length=1, max_length=100)


class Searching(QueryParameters):
    text: str = Field("", max_length=200, description="part of the name; empty: all")
    limit: int = Field(50, ge=1, le=1_000)


class AuditArguments(QueryParameters):
    arguments: str = Field("", max_length=2_000, description="of the audit, parted by commas")


class Between(QueryParameters):
    before: str = Field(min_length=1, description="a time, a generation or a session; 0: nothing")
    after: str = Field("now", min_length=1)


class Splitting(Reason):
    """Two names that are not one entity."""

    name: str = Field(min_length=1, max_length=1_000)
    other: str | None = None


class KnowledgeExport(QueryParameters):
    format: KnowledgeFormat = "trig"
    sources: bool = Field(False, description="with the quotes that it rests on")


router = rest_router("knowledge")
collection_router = rest_router("collections")
audit_router = rest_router("audits")
_COLLECTION = "/collections/{collection}"

# --- collections ---


@collection_router.get(
    "/collections",
    summary="List collections",
    response_model=tuple[CollectionSummary, ...],
    dependencies=needs("read", gives="collections"),
)
async def collections(call: ServerCall) -> Response:
    """Return the collections that the token is for."""
    root = call.service.root
    summaries = await call.service.call(lambda: of_folder.list_collections(root))
    return json_response([summary for summary in summaries if call.access.admits(summary.name)])


@collection_router.post(
    "/collections",
    summary="Make an empty collection",
    response_model=dict[str, Any],
    status_code=HTTP_201_CREATED,
    dependencies=needs("govern", gives="done"),
)
async def create(call: ServerCall, asked: CollectionName) -> Response:
    """Make an empty collection."""
    call.access.check("govern", asked.name)
    root = call.service.root
    await call.service.call(lambda: of_folder.create_collection(root, asked.name))
    return json_response({"name": asked.name}, HTTP_201_CREATED)


@collection_router.post(
    f"{_COLLECTION}/copies",
    summary="Copy a collection with its record",
    response_model=dict[str, Any],
    status_code=HTTP_201_CREATED,
    dependencies=needs("govern", gives="done"),
)
async def copy(call: CollectionCall, asked: CollectionName) -> Response:
    """Copy a collection with its record."""
    call.access.check("govern", asked.name)
    root, name = call.service.root, call.collection
    await call.service.call(lambda: of_folder.copy_collection(root, name, asked.name), "audit")
    return json_response({"name": asked.name}, HTTP_201_CREATED)


@collection_router.delete(
    _COLLECTION,
    summary="Delete a collection permanently",
    response_class=Response,
    status_code=HTTP_204_NO_CONTENT,
    dependencies=needs("govern", gives="done"),
)
async def delete(call: CollectionCall) -> Response:
    """Delete a collection permanently."""
    service, name = call.service, call.collection

    def work() -> None:
        service.forget(name)
        of_folder.delete_collection(service.root, name)

    await service.call(work, "audit")
    return Response(status_code=HTTP_204_NO_CONTENT)


# --- entities ---


@router.get(
    f"{_COLLECTION}/entities",
    summary="Names of entities",
    response_model=tuple[str, ...],
    dependencies=needs("read", gives="knowledge"),
)
async def entities(call: CollectionCall, asked: Annotated[Searching, Query()]) -> Response:
    """Return names of entities; names that begin with the text come first."""
    text = asked.text.casefold()

    def work(graph: KnowledgeGraph) -> list[str]:
        names = (name for name in entity_names(graph.opened.read()) if text in name.casefold())
        return sorted(names, key=lambda name: (not name.casefold().startswith(text), name))

    return json_response((await call.graph(work))[: asked.limit])


@router.get(
    f"{_COLLECTION}/entities/{{entity}}/facts",
    summary="The facts about an entity",
    response_model=tuple[KnownFact, ...],
    dependencies=needs("read", gives=("knowledge", "documents")),
)
async def facts(call: CollectionCall, entity: PathName) -> Response:
    """Return the facts about an entity."""
    return json_response(await call.graph(lambda graph: graph.entities.read_facts(entity)))


@router.get(
    f"{_COLLECTION}/merges",
    summary="Merged names",
    response_model=tuple[Merge, ...],
    dependencies=needs("read", gives="knowledge"),
)
async def merges(call: CollectionCall) -> Response:
    """Return the names that stand for another entity."""
    return json_response(await call.graph(lambda graph: graph.entities.read_merges()))


@router.get(
    f"{_COLLECTION}/splits",
    summary="Split names",
    response_model=tuple[Split, ...],
    dependencies=needs("read", gives="knowledge"),
)
async def splits(call: CollectionCall) -> Response:
    """Return the names that were told apart."""
    return json_response(await call.graph(lambda graph: graph.entities.read_splits()))


@router.post(
    f"{_COLLECTION}/splits",
    summary="Split two names",
    response_model=dict[str, Any],
    status_code=HTTP_201_CREATED,
    dependencies=needs("govern", gives="done"),
)
async def split(call: CollectionCall, asked: Splitting) -> Response:
    """Split two names."""
    decision = await call.graph(
        lambda graph: graph.entities.split(asked.name, asked.other, reason=asked.reason), "audit"
    )
    return json_response({"split": decision}, HTTP_201_CREATED)


@router.post(
    f"{_COLLECTION}/rejoins",
    summary="Undo a split",
    response_model=dict[str, Any],
    status_code=HTTP_201_CREATED,
    dependencies=needs("govern", gives="done"),
)
async def rejoin(call: CollectionCall, asked: Splitting) -> Response:
    """Undo an entity split."""
    second_name = asked.other
    if second_name is None:
        raise UsageError("Both names are needed.")
    decision = await call.graph(
        lambda graph: graph.entities.rejoin(asked.name, second_name, reason=asked.reason), "audit"
    )
    return json_response({"split": decision}, HTTP_201_CREATED)


@router.get(
    f"{_COLLECTION}/curations",
    summary="What people decided",
    response_model=tuple[Curation, ...],
    dependencies=needs("read", gives="knowledge"),
)
async def curations(call: CollectionCall) -> Response:
    """Return the decisions of people."""
    return json_response(await call.graph(lambda graph: graph.history.read_curations()))


# --- audits and time ---


@audit_router.get(
    "/audits",
    summary="List audits",
    response_model=tuple[Audit, ...],
    dependencies=needs("read", gives="status"),
)
async def audits(call: ServerCall) -> Response:
    """Return the audits."""
    return json_response(await call.service.call(list_audits))


@audit_router.get(
    f"{_COLLECTION}/audits/{{audit}}",
    summary="Run an audit",
    response_model=dict[str, Any],
    dependencies=needs("read", gives=("knowledge", "documents", "sessions")),
)
async def audit(
    call: CollectionCall, audit: PathName, asked: Annotated[AuditArguments, Query()]
) -> Response:
    """Return the rows of an audit."""
    arguments = [part.strip() for part in asked.arguments.split(",") if part.strip()]

    def work(graph: KnowledgeGraph) -> dict[str, Any]:
        result = graph.audit(audit, *arguments)
        columns = result.audit.columns
        rows = [dict(zip(columns, row, strict=True)) for row in result.rows]
        return {"audit": asdict(result.audit), "passed": result.passed, "rows": rows}

    return json_response(await call.graph(work, "audit"))


@router.get(
    f"{_COLLECTION}/history",
    summary="The generations of knowledge",
    response_model=tuple[Generation, ...],
    dependencies=needs("read", gives="knowledge"),
)
async def history(call: CollectionCall) -> Response:
    """Return the generations of knowledge."""
    return json_response(await call.graph(lambda graph: graph.history.read_generations()))


@router.get(
    f"{_COLLECTION}/diff",
    summary="Changes of knowledge, with their causes",
    response_model=KnowledgeDiffOut,
    dependencies=needs("read", gives=("knowledge", "documents")),
)
async def knowledge_diff(call: CollectionCall, asked: Annotated[Between, Query()]) -> Response:
    """Return what came and went between two generations of knowledge."""

    def work(graph: KnowledgeGraph) -> dict[str, Any]:
        difference = graph.history.compare(asked.before, asked.after)
        return {"same": difference.is_same, **asdict(difference)}

    return json_response(await call.graph(work, "audit"))


@router.get(
    f"{_COLLECTION}/knowledge",
    summary="The knowledge of the graph",
    response_class=Response,
    responses=media(*_KNOWLEDGE.values()),
    dependencies=needs("read", gives=("knowledge", "documents")),
)
async def export_knowledge(
    call: CollectionCall, asked: Annotated[KnowledgeExport, Query()]
) -> Response:
    """Return the knowledge of the graph."""

    def work(graph: KnowledgeGraph) -> bytes:
        write = FUNCTIONS.require("export_knowledge", "interchange")
        with BoundedFile(call.service.limits.result_kb * 1024) as out:
            write(graph, out, asked.format, sources=asked.sources)
            out.seek(0)
            return out.read()

    return Response(await call.graph(work, "audit"), media_type=_KNOWLEDGE[asked.format])
