"""Documents: listed, read, uploaded and indexed as a job, taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from pydantic import BeforeValidator, Field
from starlette.responses import Response
from starlette.status import HTTP_202_ACCEPTED

from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UnknownNameError, UsageError
from tgraph.explain.audit.impact import Impact
from tgraph.explain.trace.documents import DocumentSummary, find_document
from tgraph.extensions.server.events import event_stream, format_event
from tgraph.extensions.server.jobs import Job, Jobs
from tgraph.extensions.server.pdf_page import PageBoxes, page_boxes, page_image
from tgraph.extensions.server.requests import BodyParameters, QueryParameters, parse_number
from tgraph.extensions.server.rest.routes import (
    EVENTS,
    CollectionCall,
    CollectionRestCall,
    PathName,
    json_response,
    media,
    needs,
    rest_router,
)
from tgraph.extensions.server.uploads import queue_upload
from tgraph.index.sources import read_layout, text_value
from tgraph.ingest.blocks import unpack_lines
from tgraph.model import ReadingReport
from tgraph.vocabulary import page_of


class Everything(QueryParameters):
    all: bool = Field(False, description="those that no longer stand too")


class OfPage(QueryParameters):
    page: int | None = Field(None, ge=1, description="of a document that has pages")


class OfPlace(QueryParameters):
    start: int = Field(ge=0, description="the first character")
    end: int = Field(ge=1, description="the character after the last")


class Reason(BodyParameters):
    """The reason, kept in the record."""

    reason: str = Field(min_length=1, max_length=2_000)


class ImpactScope(QueryParameters):
    all_copies: bool = Field(False, description="at all paths of the same content")


class RetractionOrder(Reason):
    """The reason, and whether every copy of the content is retracted."""

    all_copies: bool = Field(False, description="every path where the same content stands")


class Weight(Reason):
    """How much a document, or all whose paths match a pattern, is to be believed."""

    authority: float | None = Field(None, ge=0, le=1, description="null takes the weight back")


class Uploading(QueryParameters):
    reinstate: bool = Field(
        False, description="take in again what was retracted; needs `govern` too"
    )


router = rest_router("documents")
job_router = rest_router("jobs")
_DOCUMENTS = "/collections/{collection}/documents"
_DOCUMENT = f"{_DOCUMENTS}/{{document}}"
_JOBS = "/collections/{collection}/jobs"
_JOB = f"{_JOBS}/{{job}}"
PageNumber = Annotated[int, BeforeValidator(parse_number)]
_FILES = {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1}
_UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {"type": "object", "properties": {"file": _FILES}, "required": ["file"]}
            }
        },
    }
}


@router.get(
    _DOCUMENTS,
    summary="List documents",
    response_model=tuple[DocumentSummary, ...],
    dependencies=needs("read", gives="documents"),
)
async def documents(call: CollectionCall, asked: Annotated[Everything, Query()]) -> Response:
    """Return the documents."""

    def work(graph: KnowledgeGraph) -> list[DocumentSummary]:
        return [
            document for document in graph.documents.summaries() if document.standing or asked.all
        ]

    return json_response(await call.graph(work))


@router.post(
    _DOCUMENTS,
    summary="Upload files, and index them as a job",
    response_model=Job,
    status_code=HTTP_202_ACCEPTED,
    openapi_extra=_UPLOAD,
    dependencies=needs("index", gives="job"),
)
async def upload(call: CollectionCall, asked: Annotated[Uploading, Query()]) -> Response:
    """Receive files and queue an index job; who undoes a retraction by it needs its right."""
    if asked.reinstate:
        call.access.check("govern", call.collection)
    job = await queue_upload(
        call.service, call.request, call.access, call.collection, reinstate=asked.reinstate
    )
    place = call.request.url_for("job", collection=job.collection, job=job.id)
    return json_response(job, HTTP_202_ACCEPTED, {"Location": str(place)})


@router.get(
    _DOCUMENT,
    summary="What was extracted from a document",
    response_model=dict[str, Any],
    dependencies=needs("read", gives=("documents", "knowledge")),
)
async def source(call: CollectionCall, document: PathName) -> Response:
    """Return what was extracted from a document, and where."""
    return json_response(
        await call.graph(lambda graph: asdict(graph.documents.read_extractions(document)))
    )


@router.get(
    f"{_DOCUMENT}/reading",
    summary="What of a document's file isn't in the stored text",
    response_model=ReadingReport | None,
    dependencies=needs("read", gives="documents"),
)
async def read_reading_report(call: CollectionCall, document: PathName) -> Response:
    """Return the reading report; null if an earlier version read the document."""
    return json_response(await call.graph(lambda graph: graph.documents.read_report(document)))


@router.get(
    f"{_DOCUMENT}/text",
    summary="The text of a page",
    response_class=Response,
    responses=media("text/plain"),
    dependencies=needs("read", gives="documents"),
)
async def text(
    call: CollectionCall, document: PathName, asked: Annotated[OfPage, Query()]
) -> Response:
    """Return the text in which citations count characters."""
    page_text = await call.graph(lambda graph: graph.documents.read_text(document, asked.page))
    return Response(page_text, media_type="text/plain; charset=utf-8")


@router.get(
    f"{_DOCUMENT}/pages/{{page}}/image",
    name="page_image",
    summary="A page of a PDF as an image",
    response_class=Response,
    responses=media("image/png"),
    dependencies=needs("read", gives="documents"),
)
async def draw_page(call: CollectionCall, document: PathName, page: PageNumber) -> Response:
    """Return the image of a page."""
    data = await call.graph(lambda graph: pdf_of(graph, document, page))
    image = await call.service.call(lambda: page_image(data, page), "read")
    return Response(image, media_type="image/png", headers={"Cache-Control": "private, no-cache"})


@router.get(
    f"{_DOCUMENT}/pages/{{page}}/boxes",
    name="page_boxes",
    summary="Where characters are on that image",
    response_model=PageBoxes,
    dependencies=needs("read", gives="documents"),
)
async def locate_boxes(
    call: CollectionCall, document: PathName, page: PageNumber, asked: Annotated[OfPlace, Query()]
) -> Response:
    """Return where characters of a page are on its image."""

    def work(graph: KnowledgeGraph) -> PageBoxes:
        text = graph.documents.read_text(document, page)
        if not 0 <= asked.start < asked.end <= len(text):
            raise UsageError(f"The page has {len(text):,} characters.", "Start before the end.")
        return quote_boxes(graph, document, page, asked.start, asked.end)

    return json_response(await call.graph(work))


def quote_boxes(graph: KnowledgeGraph, document: str, page: int, start: int, end: int) -> PageBoxes:
    """Return where characters of a page's stored text are on the page's image."""
    data, text = pdf_of(graph, document, page), graph.documents.read_text(document, page)
    store = graph.opened.read()
    page_source = page_of(find_document(store, document).document, page)
    lines = unpack_lines(read_layout(store, graph.opened.librarian, page_source))
    return page_boxes(data, page, text, start, end, lines)


def pdf_of(graph: KnowledgeGraph, name: str, page: int) -> bytes:
    """Return PDF bytes of a document containing the page.

    Raise ``UnknownNameError`` for other file types, and for discarded texts."""
    graph.documents.read_text(name, page)
    document = find_document(graph.opened.read(), name)
    if document.media_type != "application/pdf":
        raise UnknownNameError("Only pages of PDFs have images.", "Its text is what is kept.")
    key = text_value(graph.opened.read(), document.document, v.tg("contentHash"))
    return graph.opened.librarian.read_content(key)


@router.get(
    f"{_DOCUMENT}/impact",
    summary="What depends on a document",
    response_model=Impact,
    dependencies=needs("read", gives=("documents", "knowledge", "sessions")),
)
async def impact(
    call: CollectionCall, document: PathName, asked: Annotated[ImpactScope, Query()]
) -> Response:
    """Return what would fall with a document."""
    return json_response(
        await call.graph(lambda graph: graph.impact(document, all_copies=asked.all_copies))
    )


@router.post(
    f"{_DOCUMENT}/retract",
    summary="Retract a document",
    response_model=dict[str, Any],
    dependencies=needs("govern", "read", gives=("done", "documents", "sessions")),
)
async def retract(call: CollectionCall, document: PathName, asked: RetractionOrder) -> Response:
    """Retract a document."""

    def work(graph: KnowledgeGraph) -> dict[str, Any]:
        retraction = graph.retract(document, reason=asked.reason, all_copies=asked.all_copies)
        return {"impact": asdict(retraction.impact), "questioned": list(retraction.questioned)}

    return json_response(await call.graph(work, "audit"))


@router.put(
    f"{_DOCUMENT}/authority",
    summary="Set the authority of documents",
    response_model=dict[str, Any],
    dependencies=needs("govern", "read", gives=("done", "documents")),
)
async def weigh(call: CollectionCall, document: PathName, asked: Weight) -> Response:
    """Set how much a document is to be believed."""

    def work(graph: KnowledgeGraph) -> dict[str, Any]:
        path = graph.documents.set_authority(document, asked.authority, reason=asked.reason)
        return {"target": path, "authority": asked.authority}

    return json_response(await call.graph(work, "audit"))


# --- jobs ---


def _jobs(call: CollectionRestCall) -> Jobs:
    jobs: Jobs = call.request.app.state.jobs
    return jobs


async def _find_job(call: CollectionRestCall, name: str) -> Job:
    return await call.service.call(lambda: _jobs(call).find(call.collection, name))


@job_router.get(
    _JOBS,
    summary="List jobs",
    response_model=tuple[Job, ...],
    dependencies=needs("read", gives="jobs"),
)
async def jobs(call: CollectionCall) -> Response:
    """Return the jobs of the collection, the newest first."""
    return json_response(await call.service.call(lambda: _jobs(call).list_jobs(call.collection)))


@job_router.get(_JOB, summary="A job", response_model=Job, dependencies=needs("read", gives="jobs"))
async def job(call: CollectionCall, job: PathName) -> Response:
    """Return a job."""
    return json_response(await _find_job(call, job))


@job_router.get(
    f"{_JOB}/events",
    name="job_events",
    summary="The progress of a job as a stream",
    response_class=Response,
    responses=media(EVENTS),
    dependencies=needs("read", gives="jobs"),
)
async def follow_job(call: CollectionCall, job: PathName) -> Response:
    """Stream the progress of a job, until the job ends."""
    return event_stream(_progress_events(call, await _find_job(call, job)))


async def _progress_events(call: CollectionRestCall, job: Job) -> AsyncIterator[bytes]:
    async for state in _jobs(call).follow(job, call.service):
        yield format_event(asdict(state))


@job_router.delete(
    _JOB, summary="End a job", response_model=Job, dependencies=needs("index", gives="job")
)
async def cancel(call: CollectionCall, job: PathName) -> Response:
    """End a job; what the job extracted is kept, and nothing half-done is published."""
    running = await _find_job(call, job)
    return json_response(await call.service.call(lambda: _jobs(call).cancel(running)))
