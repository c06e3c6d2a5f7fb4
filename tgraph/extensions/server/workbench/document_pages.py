"""Documents: the list, uploading, a page with a quote in it, what hangs on one, taking one back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import TgraphError
from tgraph.explain.trace.documents import DocumentSummary, SourceTree
from tgraph.extensions.server.jobs import ENDED, Job, Jobs
from tgraph.extensions.server.pdf_page import PageBoxes, page_boxes
from tgraph.extensions.server.rest.documents import pdf_of
from tgraph.extensions.server.uploads import received
from tgraph.extensions.server.workbench.pages import Visit, WorkbenchPage, part_of, seen

WINDOW = 40_000
"""Characters of a page that are shown at once; the rest is a click away."""


def _jobs(visit: Visit) -> Jobs:
    found: Jobs = visit.request.app.state.jobs
    return found


async def documents(visit: Visit) -> Response:
    """Those that stand, or all; and the jobs that bring more."""
    everything, sought = bool(visit.asked("all")), visit.asked("text").casefold()

    def work(graph: KnowledgeGraph) -> list[DocumentSummary]:
        known = [each for each in graph.documents() if each.standing or everything]
        return [d for d in known if sought in f"{d.title} {d.path}".casefold()]

    found = await visit.graph(work)
    jobs = await visit.service.call(lambda: _jobs(visit).of(visit.collection)[:10])
    return await visit.page(
        "documents.html",
        part=part_of(found, visit.asked("from")),
        jobs=jobs,
        ended=ENDED,
        everything=everything,
        sought=visit.asked("text"),
        upload_mb=visit.service.limits.upload_mb,
        rdf=visit.links.listed("page/documents"),
    )


@dataclass(frozen=True)
class _ShownPage:
    """A stretch of a page's text with the cited characters in it. ``stale`` says that the place
    that was asked for is not in the page."""

    number: int | None
    before: str
    quote: str
    after: str
    first: int
    last: int
    total: int
    stale: bool


def _stretch(text: str, number: int | None, visit: Visit) -> _ShownPage:
    start, end = (_whole(visit.asked(name)) for name in ("start", "end"))
    cited = start is not None and end is not None and start < end <= len(text)
    at = start if cited and start is not None else _whole(visit.asked("at")) or 0
    first = min(at, max(len(text) - 1, 0)) // WINDOW * WINDOW
    last = min(len(text), max(first + WINDOW, (end or 0) if cited else 0))
    if not cited or start is None or end is None:
        wanted = start is not None or end is not None
        return _ShownPage(number, text[first:last], "", "", first, last, len(text), wanted)
    parts = text[first:start], text[start:end], text[end:last]
    return _ShownPage(number, *parts, first, last, len(text), False)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


async def document(visit: Visit) -> Response:
    """A page of it as it is stored, with the quote that was asked for, and what was extracted."""
    name, asked = visit.part("document"), _whole(visit.asked("page"))

    def work(graph: KnowledgeGraph) -> tuple[SourceTree, _ShownPage, PageBoxes | None]:
        tree = graph.source(name)
        numbers = [page.number for page in tree.pages]
        number = asked if asked in numbers else numbers[0]
        page = _stretch(graph.source_text(tree.document.document, number), number, visit)
        return tree, page, _on_image(graph, tree.document, page)

    tree, page, on_image = await visit.graph(work)
    here = next(each for each in tree.pages if each.number == page.number)
    chunks = [c for c in here.chunks if c.start < page.last and c.end > page.first]
    return await visit.page(
        "document.html",
        document=tree.document,
        pages=[each.number for each in tree.pages],
        page=page,
        window=WINDOW,
        facts=[(chunk, edge) for chunk in chunks for edge in chunk.edges],
        claims=[claim for chunk in chunks for claim in chunk.claims],
        on_image=on_image,
        rdf=visit.links.described(tree.document.document),
    )


def _on_image(
    graph: KnowledgeGraph, document: DocumentSummary, page: _ShownPage
) -> PageBoxes | None:
    """Where the quote is on the image of the page; None where there is no image."""
    if document.media_type != "application/pdf" or page.number is None:
        return None
    text = graph.source_text(document.document, page.number)
    start = page.first + len(page.before)
    try:
        data = pdf_of(graph, document.document, page.number)
        return page_boxes(data, page.number, text, start, start + len(page.quote))
    except TgraphError:  # the page is shown by its text all the same
        return None


async def impact(visit: Visit) -> Response:
    """What would fall with it, and the form that takes it back."""
    name = visit.part("document")

    def work(graph: KnowledgeGraph) -> tuple[Any, DocumentSummary]:
        return graph.impact(name), graph.source(name).document

    found, about = await visit.graph(work)
    return await visit.page("impact.html", found=found, document=about, rdf="")


async def retract(visit: Visit) -> Response:
    """Take it back, with the reason."""
    name, form = visit.part("document"), await visit.form()
    reason = form.needed("reason", "The reason")
    await visit.graph(lambda graph: graph.retract(name, reason=reason), "audit")
    return seen(visit.links.to("documents", all="yes"))


async def upload(visit: Visit) -> Response:
    """Take files in; a job indexes them, whose page shows how far it has come."""
    jobs, service = _jobs(visit), visit.service
    service.graph(visit.collection)
    person = visit.access.person
    job = await service.call(lambda: jobs.new(visit.collection, person, reinstate=False))
    try:
        files = await received(visit.request, jobs.files(job), service.limits.upload_mb << 20)
    except BaseException:
        await service.call(lambda: jobs.forget(job))
        raise
    await service.call(lambda: jobs.queue(job, files))
    return seen(visit.links.to("jobs", job.id))


async def job(visit: Visit) -> Response:
    """A job; the page comes again by itself until it has ended."""
    found = await _job(visit)
    return await visit.page(
        "job.html", job=found, over=found.status in ENDED, report=found.report or {}, rdf=""
    )


async def cancel(visit: Visit) -> Response:
    """End it."""
    found = await _job(visit)
    await visit.service.call(lambda: _jobs(visit).cancel(found))
    return seen(visit.links.to("jobs", found.id))


async def _job(visit: Visit) -> Job:
    name = visit.part("job")
    return await visit.service.call(lambda: _jobs(visit).find(visit.collection, name))


PAGES = (
    WorkbenchPage("/documents", "documents", documents),
    WorkbenchPage("/documents", "upload", upload, "index", "POST"),
    WorkbenchPage("/documents/{document}", "document", document),
    WorkbenchPage("/documents/{document}/impact", "impact", impact),
    WorkbenchPage("/documents/{document}/retract", "retract", retract, "govern", "POST"),
    WorkbenchPage("/jobs/{job}", "job", job),
    WorkbenchPage("/jobs/{job}/cancel", "cancel", cancel, "index", "POST"),
)
