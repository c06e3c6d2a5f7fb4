"""Collection pages, and knowledge history pages."""

from __future__ import annotations

from starlette.responses import Response

from tgraph.engine import collections as of_folder
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.trace.generations import Generation
from tgraph.explain.trace.knowledge_diff import KnowledgeDiff
from tgraph.extensions.server.workbench.pages import (
    Links,
    Visit,
    WorkbenchPage,
    part_of,
    redirect_to,
)

CHANGES = 300
"""Changes of a kind that a page shows."""


async def show_collections(visit: Visit) -> Response:
    """Show visible collections, with forms for creating, copying and deleting."""
    summaries = await visit.service.call(lambda: of_folder.list_collections(visit.service.root))
    rows = [
        (summary, Links(summary.name).home)
        for summary in summaries
        if visit.access.admits(summary.name)
    ]
    return await visit.page("collections.html", rows=rows, rdf="")


async def create_collection(visit: Visit) -> Response:
    """Create an empty collection, or copy the current collection with its record."""
    form = await visit.form()
    name = form.require_field("name", "The name of the collection")
    visit.access.check("govern", name)
    root, here = visit.service.root, visit.collection
    if form.read_field("copy"):
        await visit.service.call(lambda: of_folder.copy_collection(root, here, name), "audit")
    else:
        await visit.service.call(lambda: of_folder.create_collection(root, name))
    return redirect_to(Links(name).home)


async def delete_collection(visit: Visit) -> Response:
    """Delete the current collection permanently after name confirmation."""
    service, name = visit.service, visit.collection
    if (await visit.form()).read_field("name") != name:
        raise UsageError(
            "The typed name differs from the name of the collection.", "Nothing was deleted."
        )

    def work() -> None:
        service.forget(name)
        of_folder.delete_collection(service.root, name)

    await service.call(work, "audit")
    return redirect_to("/workbench/")


async def show_history(visit: Visit) -> Response:
    """Show knowledge generations, newest first."""

    def work(graph: KnowledgeGraph) -> list[Generation]:
        return graph.history.read_generations()

    part = part_of(await visit.graph(work), visit.read_parameter("from"))
    return await visit.page(
        "history.html", part=part, rdf=visit.links.address_listing("page/history")
    )


async def show_changes(visit: Visit) -> Response:
    """Show knowledge added, removed and changed between two points in time."""
    before, after = visit.read_parameter("before", "0"), visit.read_parameter("after", "now")

    def work(graph: KnowledgeGraph) -> KnowledgeDiff:
        return graph.history.compare(before, after)

    difference = await visit.graph(work, "audit")
    kinds = (
        ("entities", difference.entities),
        ("facts", difference.facts),
        ("claims", difference.claims),
    )
    return await visit.page(
        "changes.html",
        found=difference,
        before=before,
        after=after,
        kinds=[(name, items[:CHANGES], len(items)) for name, items in kinds if items],
        rdf="",
    )


PAGES = (
    WorkbenchPage("/collections", "collections", show_collections, ("collections",)),
    WorkbenchPage(
        "/collections", "create_collection", create_collection, ("done",), ("govern",), "POST"
    ),
    WorkbenchPage(
        "/collections/delete",
        "delete_collection",
        delete_collection,
        ("done",),
        ("govern",),
        "POST",
    ),
    WorkbenchPage("/history", "history", show_history, ("knowledge",)),
    WorkbenchPage("/history/changes", "changes", show_changes, ("knowledge", "documents")),
)
