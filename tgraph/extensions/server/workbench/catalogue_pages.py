"""Catalogue pages: classes, properties, and the rows of a class with facets."""

from __future__ import annotations

from pyoxigraph import NamedNode
from starlette.responses import Response

from tgraph.compute.browsing import BrowsedRows, read_rows
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.extensions.server.workbench.pages import ListPart, Visit, WorkbenchPage, part_of
from tgraph.index.catalogue import Catalogue
from tgraph.model import Object, parse_term

ROWS = 50
"""Rows of a page."""


async def show_catalogue(visit: Visit) -> Response:
    """Show the classes and the properties of knowledge, filtered by a search text."""
    catalogue: Catalogue = await visit.graph(lambda graph: graph.catalogue())
    sought = visit.read_parameter("text").casefold()
    structured = [item for item in catalogue.properties if item.is_structured]
    labels = {item.iri: item.label for item in structured}
    classes = [item for item in catalogue.classes if sought in item.label.casefold()]
    properties = [item for item in structured if sought in item.label.casefold()]
    return await visit.page(
        "catalogue.html",
        classes=part_of(classes, visit.read_parameter("from")),
        properties=part_of(properties, visit.read_parameter("from")),
        labels=labels,
        sought=visit.read_parameter("text"),
        rdf="",
    )


async def show_rows(visit: Visit) -> Response:
    """Show the rows of a class, narrowed by values; each cell leads to its characters."""
    kind, key = visit.read_parameter("kind"), visit.read_parameter("key")
    wheres = visit.request.query_params.getlist("where")
    narrowing = [_read_narrowing(text) for text in wheres]
    start = visit.read_parameter("from")
    first = int(start) if start.isascii() and start.isdigit() and len(start) < 10 else 0

    def work(graph: KnowledgeGraph) -> BrowsedRows:
        return read_rows(graph.opened.context(), kind, key, narrowing, first, ROWS)

    browsed = await visit.graph(work)
    return await visit.page(
        "rows.html",
        browsed=browsed,
        part=ListPart(browsed.rows, browsed.first, browsed.total, ROWS),
        here={"kind": kind, "key": key},
        wheres=wheres,
        write_where=lambda column, value: f"{column.iri} {value}",
        rdf="",
    )


def _read_narrowing(text: str) -> tuple[str, Object]:
    """Return property and value of a parameter, both in N-Triples; raise ``UsageError`` else."""
    predicate, _, value = text.partition(" ")
    try:
        iri, term = parse_term(predicate), parse_term(value)
    except ValueError as error:
        raise UsageError("The rows can't be narrowed so.", "Choose a value of the page.") from error
    if not isinstance(iri, NamedNode):
        raise UsageError("The rows can't be narrowed so.", "Choose a value of the page.")
    return iri.value, term


PAGES = (
    WorkbenchPage("/catalogue", "catalogue", show_catalogue, ("knowledge",)),
    WorkbenchPage("/catalogue/rows", "rows", show_rows, ("knowledge", "documents")),
)
