"""Document pages: list, upload, cited page, dependent results, retraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import EmptyCollectionError, TgraphError
from tgraph.explain.render.reading_report import report_lines
from tgraph.explain.trace.documents import DocumentSummary, SourceTree
from tgraph.extensions.server.jobs import ENDED, Job, Jobs
from tgraph.extensions.server.pdf_page import PageBoxes
from tgraph.extensions.server.rest.documents import quote_boxes
from tgraph.extensions.server.uploads import queue_upload
from tgraph.extensions.server.workbench.pages import Visit, WorkbenchPage, part_of, redirect_to
from tgraph.model import ReadingReport

WINDOW = 40_000
"""Characters of a page that are shown at once; the rest is a click away."""
_EVERY_PATH = "/"
"""Stands for all paths of a document in a form; no file has this path."""


def _server_jobs(visit: Visit) -> Jobs:
    server_jobs: Jobs = visit.request.app.state.jobs
    return server_jobs


async def show_documents(visit: Visit) -> Response:
    """Show standing documents, or all documents, with recent index jobs."""
    everything, sought = bool(visit.read_parameter("all")), visit.read_parameter("text").casefold()

    def work(graph: KnowledgeGraph) -> list[DocumentSummary]:
        try:
            summaries = graph.documents.summaries()
        except EmptyCollectionError:
            return []
        candidates = [summary for summary in summaries if summary.standing or everything]
        return [d for d in candidates if sought in f"{d.title} {d.path}".casefold()]

    summaries = await visit.graph(work)
    jobs = await visit.service.call(lambda: _server_jobs(visit).list_jobs(visit.collection)[:10])
    return await visit.page(
        "documents.html",
        part=part_of(summaries, visit.read_parameter("from")),
        jobs=jobs,
        ended=ENDED,
        everything=everything,
        sought=visit.read_parameter("text"),
        rdf=visit.links.address_listing("page/documents"),
    )


@dataclass(frozen=True)
class _ShownPage:
    """A section of page text around cited characters.

    ``stale`` means the requested place is absent from the page."""

    number: int | None
    before: str
    quote: str
    after: str
    first: int
    last: int
    total: int
    stale: bool


def _cut_page(text: str, number: int | None, visit: Visit) -> _ShownPage:
    start, end = (_parse_whole_number(visit.read_parameter(name)) for name in ("start", "end"))
    cited = start is not None and end is not None and start < end <= len(text)
    at = (
        start
        if cited and start is not None
        else _parse_whole_number(visit.read_parameter("at")) or 0
    )
    first = min(at, max(len(text) - 1, 0)) // WINDOW * WINDOW
    last = min(len(text), max(first + WINDOW, (end or 0) if cited else 0))
    if not cited or start is None or end is None:
        is_requested = start is not None or end is not None
        return _ShownPage(number, text[first:last], "", "", first, last, len(text), is_requested)
    parts = text[first:start], text[start:end], text[end:last]
    return _ShownPage(number, *parts, first, last, len(text), False)


def _parse_whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


async def show_document(visit: Visit) -> Response:
    """Show a stored document page with the requested quote and extractions."""
    name, requested_page = visit.part("document"), _parse_whole_number(visit.read_parameter("page"))

    def work(
        graph: KnowledgeGraph,
    ) -> tuple[SourceTree, _ShownPage, PageBoxes | None, ReadingReport | None]:
        tree = graph.documents.read_extractions(name)
        numbers = [page.number for page in tree.pages]
        number = requested_page if requested_page in numbers else numbers[0]
        page = _cut_page(graph.documents.read_text(tree.document.document, number), number, visit)
        report = graph.documents.read_report(tree.document.document)
        return tree, page, _on_image(graph, tree.document, page), report

    tree, page, on_image, report = await visit.graph(work)
    here = next(source_page for source_page in tree.pages if source_page.number == page.number)
    chunks = [c for c in here.chunks if c.start < page.last and c.end > page.first]
    return await visit.page(
        "document.html",
        document=tree.document,
        pages=[source_page.number for source_page in tree.pages],
        page=page,
        window=WINDOW,
        facts=[(chunk, edge) for chunk in chunks for edge in chunk.edges],
        claims=[claim for chunk in chunks for claim in chunk.claims],
        on_image=on_image,
        report=report,
        reading=list(report_lines(report)),
        rdf=visit.links.address_description(tree.document.document),
    )


def _on_image(
    graph: KnowledgeGraph, document: DocumentSummary, page: _ShownPage
) -> PageBoxes | None:
    """Return quote boxes on the page image, or None without an image."""
    if document.media_type != "application/pdf" or page.number is None:
        return None
    start = page.first + len(page.before)
    try:
        return quote_boxes(graph, document.document, page.number, start, start + len(page.quote))
    except TgraphError:  # the page is shown by its text all the same
        return None


async def show_impact(visit: Visit) -> Response:
    """Show retraction impact, with the retraction form."""
    name = visit.part("document")

    def work(graph: KnowledgeGraph) -> tuple[Any, DocumentSummary]:
        return graph.impact(name), graph.documents.read_extractions(name).document

    impact_report, summary = await visit.graph(work)
    return await visit.page(
        "impact.html", found=impact_report, document=summary, every_path=_EVERY_PATH, rdf=""
    )


async def retract_document(visit: Visit) -> Response:
    """Retract a document, recording a reason: at the path chosen where it has several."""
    name, form = visit.part("document"), await visit.form()
    reason = form.require_field("reason", "The reason")
    path = form.read_field("path")
    everywhere = path == _EVERY_PATH
    document = name if everywhere else path or name

    def work(graph: KnowledgeGraph) -> None:
        graph.retract(document, reason=reason, all_copies=everywhere)

    await visit.graph(work, "audit")
    return redirect_to(visit.links.build_address("documents", all="yes"))


async def upload_files(visit: Visit) -> Response:
    """Receive files and queue an index job; the job page shows progress."""
    job = await queue_upload(visit.service, visit.request, visit.access, visit.collection)
    return redirect_to(visit.links.build_address("jobs", job.id))


async def show_job(visit: Visit) -> Response:
    """Show a job; the page reloads until the job ends."""
    index_job = await _find_job(visit)

    def check_sessions(graph: KnowledgeGraph) -> bool:
        return not graph.sessions.summaries(1)

    is_first = index_job.status == "done" and visit.has_right("ask")
    return await visit.page(
        "job.html",
        job=index_job,
        is_first=is_first and await visit.graph(check_sessions),
        over=index_job.status in ENDED,
        report=index_job.report or {},
        rdf="",
    )


async def cancel_job(visit: Visit) -> Response:
    """Cancel an index job."""
    index_job = await _find_job(visit)
    await visit.service.call(lambda: _server_jobs(visit).cancel(index_job))
    return redirect_to(visit.links.build_address("jobs", index_job.id))


async def _find_job(visit: Visit) -> Job:
    name = visit.part("job")
    return await visit.service.call(lambda: _server_jobs(visit).find(visit.collection, name))


PAGES = (
    WorkbenchPage("/documents", "documents", show_documents, ("documents", "jobs")),
    WorkbenchPage("/documents", "upload", upload_files, ("job",), ("index",), "POST"),
    WorkbenchPage("/documents/{document}", "document", show_document, ("documents", "knowledge")),
    WorkbenchPage(
        "/documents/{document}/impact",
        "impact",
        show_impact,
        ("documents", "knowledge", "sessions"),
    ),
    WorkbenchPage(
        "/documents/{document}/retract", "retract", retract_document, ("done",), ("govern",), "POST"
    ),
    WorkbenchPage("/jobs/{job}", "job", show_job, ("jobs",)),
    WorkbenchPage("/jobs/{job}/cancel", "cancel", cancel_job, ("job",), ("index",), "POST"),
)
