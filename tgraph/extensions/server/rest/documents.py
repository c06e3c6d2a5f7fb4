"""Documents: listed, read, uploaded and indexed as a job, taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from pydantic import Field
from starlette.responses import Response
from starlette.status import HTTP_202_ACCEPTED

from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UnknownNameError, UsageError
from tgraph.explain.trace.documents import DocumentSummary, find_document
from tgraph.extensions.server.events import event, event_stream
from tgraph.extensions.server.jobs import Job, Jobs
from tgraph.extensions.server.operations import Operation, Parameters, RestCall, number
from tgraph.extensions.server.pdf_page import PageBoxes, page_boxes, page_image
from tgraph.extensions.server.uploads import received
from tgraph.vocabulary import document_iri


class Everything(Parameters):
    all: bool = Field(False, description="those that no longer stand too")


class OfPage(Parameters):
    page: int | None = Field(None, ge=1, description="of a document that has pages")


class OfPlace(Parameters):
    start: int = Field(ge=0, description="the first character")
    end: int = Field(ge=1, description="the character after the last")


class Reason(Parameters):
    """Why; it is kept in the record."""

    reason: str = Field(min_length=1, max_length=2_000)


class Weight(Reason):
    """How much a document, or all whose paths match a pattern, is to be believed."""

    authority: float | None = Field(None, ge=0, le=1, description="null takes the weight back")


class Uploading(Parameters):
    reinstate: bool = Field(False, description="take in again what was retracted")


async def documents(call: RestCall) -> Any:
    """The documents."""
    everything = call.query.all

    def work(graph: KnowledgeGraph) -> list[DocumentSummary]:
        return [each for each in graph.documents() if each.standing or everything]

    return await call.graph(work)


async def source(call: RestCall) -> Any:
    """What was extracted from a document, and where."""
    name = call.path("document")
    return await call.graph(lambda graph: asdict(graph.source(name)))


async def text(call: RestCall) -> Response:
    """The text that citations count in."""
    name, page = call.path("document"), call.query.page
    found = await call.graph(lambda graph: graph.source_text(name, page))
    return Response(found, media_type="text/plain; charset=utf-8")


async def image(call: RestCall) -> Response:
    """A page as it looks."""
    data = await _pdf(call)
    page = number(call.path("page"))
    drawn = await call.service.call(lambda: page_image(data, page), "read")
    return Response(drawn, media_type="image/png", headers={"Cache-Control": "private, no-cache"})


async def boxes(call: RestCall) -> Any:
    """Where characters of a page are on its image."""
    data = await _pdf(call)
    name, page, asked = call.path("document"), number(call.path("page")), call.query

    def work(graph: KnowledgeGraph) -> PageBoxes:
        text = graph.source_text(name, page)
        if not 0 <= asked.start < asked.end <= len(text):
            raise UsageError(f"The page has {len(text):,} characters.", "Start before the end.")
        return page_boxes(data, page, text, asked.start, asked.end)

    return await call.graph(work)


async def _pdf(call: RestCall) -> bytes:
    name, page = call.path("document"), number(call.path("page"))
    return await call.graph(lambda graph: pdf_of(graph, name, page))


def pdf_of(graph: KnowledgeGraph, name: str, page: int) -> bytes:
    """The bytes of a PDF that has the page. ``UnknownNameError`` where it is another file, and as
    ``KnowledgeGraph.source_text`` does where its text is not kept any more."""
    graph.source_text(name, page)
    document = find_document(graph.read(), name)
    if document.media_type != "application/pdf":
        raise UnknownNameError("Only pages of PDFs have images.", "Its text is what is kept.")
    return graph.librarian.get(document.document.removeprefix(document_iri("")))


async def impact(call: RestCall) -> Any:
    """What would fall with it."""
    name = call.path("document")
    return await call.graph(lambda graph: graph.impact(name))


async def retract(call: RestCall) -> Any:
    """Take it back."""
    name, reason = call.path("document"), call.body.reason

    def work(graph: KnowledgeGraph) -> Any:
        done = graph.retract(name, reason=reason)
        return {"impact": asdict(done.impact), "questioned": list(done.questioned)}

    return await call.graph(work, "audit")


async def weigh(call: RestCall) -> Any:
    """Say how much it is to be believed."""
    name, asked = call.path("document"), call.body

    def work(graph: KnowledgeGraph) -> Any:
        path = graph.weigh(name, asked.authority, reason=asked.reason)
        return {"target": path, "authority": asked.authority}

    return await call.graph(work, "audit")


async def upload(call: RestCall) -> Response:
    """Take files in; a job indexes them."""
    from starlette.responses import JSONResponse

    jobs = jobs_of(call)
    call.service.graph(call.collection)
    job = await call.service.call(
        lambda: jobs.new(call.collection, call.access.person, reinstate=call.query.reinstate)
    )
    try:
        files = await received(call.request, jobs.files(job), call.service.limits.upload_mb << 20)
    except BaseException:
        await call.service.call(lambda: jobs.forget(job))
        raise
    queued = await call.service.call(lambda: jobs.queue(job, files))
    headers = {"Location": str(call.request.url_for("job", collection=job.collection, job=job.id))}
    return JSONResponse(asdict(queued), HTTP_202_ACCEPTED, headers)


def jobs_of(call: RestCall) -> Jobs:
    """The jobs of the server."""
    found: Jobs = call.request.app.state.jobs
    return found


async def jobs(call: RestCall) -> Any:
    """The jobs of the collection, the newest first."""
    known = jobs_of(call)
    return await call.service.call(lambda: known.of(call.collection))


async def job(call: RestCall) -> Any:
    """A job."""
    return await _found(call)


async def cancel(call: RestCall) -> Any:
    """End it; what it had extracted is kept, and nothing half-done is published."""
    found = await _found(call)
    return await call.service.call(lambda: jobs_of(call).cancel(found))


async def progress(call: RestCall) -> Any:
    """Its progress, until it ends."""
    found = await _found(call)
    return event_stream(_progress(call, found))


async def _progress(call: RestCall, job: Job) -> AsyncIterator[bytes]:
    async for state in jobs_of(call).follow(job, call.service):
        yield event(asdict(state))


async def _found(call: RestCall) -> Job:
    known, name = jobs_of(call), call.path("job")
    return await call.service.call(lambda: known.find(call.collection, name))


_ALL = "/api/v1/collections/{collection}/documents"
_ONE = f"{_ALL}/{{document}}"
_JOBS = "/api/v1/collections/{collection}/jobs"
_JOB = f"{_JOBS}/{{job}}"
_TAGS = ("documents",)
OPERATIONS = (
    Operation(
        "GET", _ALL, "documents", "List documents", documents,
        answer=tuple[DocumentSummary, ...], query=Everything, tags=_TAGS,
    ),
    Operation(
        "POST", _ALL, "upload", "Upload files, and index them as a job", upload, "index", Job,
        query=Uploading, uploads=True, status=HTTP_202_ACCEPTED, tags=_TAGS,
    ),
    Operation(
        "GET", _ONE, "source", "What was extracted from a document", source,
        answer={"type": "object"}, tags=_TAGS,
    ),
    Operation(
        "GET", f"{_ONE}/text", "text", "The text of a page", text, query=OfPage,
        media=("text/plain",), tags=_TAGS,
    ),
    Operation(
        "GET", f"{_ONE}/pages/{{page}}/image", "page_image", "A page of a PDF as an image", image,
        media=("image/png",), tags=_TAGS,
    ),
    Operation(
        "GET", f"{_ONE}/pages/{{page}}/boxes", "page_boxes", "Where characters are on that image",
        boxes, answer=PageBoxes, query=OfPlace, tags=_TAGS,
    ),
    Operation(
        "GET", f"{_ONE}/impact", "impact", "What would fall with a document", impact,
        answer="impact", tags=_TAGS,
    ),
    Operation(
        "POST", f"{_ONE}/retract", "retract", "Take a document back", retract, "govern",
        {"type": "object"}, body=Reason, tags=_TAGS,
    ),
    Operation(
        "PUT", f"{_ONE}/authority", "weigh", "Say how much documents are to be believed", weigh,
        "govern", {"type": "object"}, body=Weight, tags=_TAGS,
    ),
    Operation("GET", _JOBS, "jobs", "List jobs", jobs, answer=tuple[Job, ...], tags=("jobs",)),
    Operation("GET", _JOB, "job", "A job", job, answer=Job, tags=("jobs",)),
    Operation(
        "GET", f"{_JOB}/events", "job_events", "The progress of a job as it happens", progress,
        media=("text/event-stream",), tags=("jobs",),
    ),
    Operation("DELETE", _JOB, "cancel", "End a job", cancel, "index", Job, tags=("jobs",)),
)  # fmt: skip
