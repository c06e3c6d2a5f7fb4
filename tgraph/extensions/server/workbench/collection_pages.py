"""The collections of a graph, and how the knowledge of one became what it is."""

from __future__ import annotations

from starlette.responses import Response

from tgraph.engine import collections as of_folder
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.trace.generations import Generation
from tgraph.explain.trace.knowledge_diff import KnowledgeDiff
from tgraph.extensions.server.workbench.pages import Links, Visit, WorkbenchPage, part_of, seen

CHANGES = 300
"""Changes of a kind that a page shows."""


async def collections(visit: Visit) -> Response:
    """Those that the visitor may see, and forms that make, copy and delete one."""
    found = await visit.service.call(lambda: of_folder.list_collections(visit.service.root))
    rows = [(each, Links(each.name).home) for each in found if visit.access.admits(each.name)]
    return await visit.page("collections.html", rows=rows, rdf="")


async def create(visit: Visit) -> Response:
    """An empty one; a copy of the one at hand, with its record, where that is wanted."""
    form = await visit.form()
    name = form.needed("name", "The name of the collection")
    visit.access.check("govern", name)
    root, here = visit.service.root, visit.collection
    if form.get("copy"):
        await visit.service.call(lambda: of_folder.copy_collection(root, here, name), "audit")
    else:
        await visit.service.call(lambda: of_folder.create_collection(root, name))
    return seen(Links(name).home)


async def delete(visit: Visit) -> Response:
    """The one at hand, for good, once its name was typed."""
    service, name = visit.service, visit.collection
    if (await visit.form()).get("name") != name:
        raise UsageError("The name that was typed is another.", "Nothing was deleted.")

    def work() -> None:
        service.forget(name)
        of_folder.delete_collection(service.root, name)

    await service.call(work, "audit")
    return seen("/workbench/")


async def history(visit: Visit) -> Response:
    """The generations of knowledge, the newest first."""

    def work(graph: KnowledgeGraph) -> list[Generation]:
        return graph.history()

    part = part_of(await visit.graph(work), visit.asked("from"))
    return await visit.page("history.html", part=part, rdf=visit.links.listed("page/history"))


async def changes(visit: Visit) -> Response:
    """What came, went and changed between two points in time."""
    before, after = visit.asked("before", "0"), visit.asked("after", "now")

    def work(graph: KnowledgeGraph) -> KnowledgeDiff:
        return graph.knowledge_diff(before, after)

    found = await visit.graph(work, "audit")
    kinds = ("entities", found.entities), ("facts", found.facts), ("claims", found.claims)
    return await visit.page(
        "changes.html",
        found=found,
        before=before,
        after=after,
        kinds=[(name, items[:CHANGES], len(items)) for name, items in kinds if items],
        rdf="",
    )


PAGES = (
    WorkbenchPage("/collections", "collections", collections),
    WorkbenchPage("/collections", "create_collection", create, "govern", "POST"),
    WorkbenchPage("/collections/delete", "delete_collection", delete, "govern", "POST"),
    WorkbenchPage("/history", "history", history),
    WorkbenchPage("/history/changes", "changes", changes),
)
