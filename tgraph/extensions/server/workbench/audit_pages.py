"""Audit pages, and a SPARQL editor with audit queries as examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup
from pyoxigraph import Literal, NamedNode, QueryBoolean, Triple
from starlette.responses import Response

from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UnknownNameError
from tgraph.explain.audit.named_audits import AuditResult, list_audits
from tgraph.extensions.server.node_link import NodeLinkGraph, node_link_svg, triples_of
from tgraph.extensions.server.workbench.knowledge_pages import short_iri
from tgraph.extensions.server.workbench.pages import Visit, WorkbenchPage
from tgraph.resources import list_names, read_text
from tgraph.store.base import load_query

ROWS = 500
"""Rows of a result that a page shows; the result itself has all."""
_FIRST = "What entities are there?"


async def show_audits(visit: Visit) -> Response:
    """Show audits by group."""
    named_audits = await visit.service.call(list_audits)
    groups = [
        (name, list(audit_group))
        for name, audit_group in groupby(named_audits, key=lambda a: a.group)
    ]
    return await visit.page("audits.html", groups=groups, rdf="")


async def show_audit(visit: Visit) -> Response:
    """Show an audit, run when all required arguments are present."""
    name = visit.part("audit")
    audits_by_name = {entry.name: entry for entry in await visit.service.call(list_audits)}
    if name not in audits_by_name:
        raise UnknownNameError(f"There is no audit {name!r}.", "See the list of audits.")
    named_audit = audits_by_name[name]
    argument_values = [visit.read_parameter(entry.name) for entry in named_audit.parameters]
    needs_arguments = any(entry.default is None for entry in named_audit.parameters)
    audit_result: AuditResult | None = None
    if not needs_arguments or any(argument_values):
        arguments = _fill_arguments(named_audit.parameters, argument_values)
        audit_result = await visit.graph(lambda graph: graph.audit(name, *arguments), "audit")
    return await visit.page(
        "audit.html",
        audit=named_audit,
        given=dict(
            zip((entry.name for entry in named_audit.parameters), argument_values, strict=True)
        ),
        found=audit_result,
        most=ROWS,
        query=_audit_query(name),
        rdf="",
    )


def _fill_arguments(parameters: Any, given: list[str]) -> list[str]:
    """Return arguments up to the last filled value; gaps take parameter defaults."""
    last = max((place for place, value in enumerate(given, 1) if value), default=0)
    pairs = zip(parameters[:last], given, strict=False)
    return [value or (parameter.default or "") for parameter, value in pairs]


def _audit_query(name: str) -> str:
    """Return an audit's SPARQL; return an empty string for audits beyond a single query."""
    file = f"audit/{name}.rq"
    return read_text("sparql", file) if file in list_names("sparql") else ""


@dataclass(frozen=True)
class _ResultTable:
    """A query result table; each cell has words and a target IRI, possibly empty.

    ``more`` signals further rows beyond the displayed rows; ``drawn`` holds triples as a graph."""

    columns: tuple[str, ...]
    rows: list[list[tuple[str, str]]]
    more: bool
    boolean: bool | None = None
    drawn: NodeLinkGraph | None = None


async def show_sparql(visit: Visit) -> Response:
    """Show the SPARQL editor with query results."""
    query = visit.read_parameter("query")
    result_table = (
        await visit.graph(lambda graph: _query_rows(graph, query), "audit")
        if query.strip()
        else None
    )
    examples = await visit.service.call(_example_queries)
    drawn = result_table.drawn if result_table is not None else None
    picture = node_link_svg(drawn, visit.links.resource, "What was constructed") if drawn else ""
    return await visit.page(
        "sparql.html",
        query=query,
        found=result_table,
        examples=examples,
        picture=Markup(picture),  # noqa: S704 - tgraph's own, words of others escaped
        left_out=drawn.left_out if drawn else 0,
        rdf=visit.links.rdf(query) if result_table is not None else "",
    )


def _query_rows(graph: KnowledgeGraph, query: str) -> _ResultTable:
    query_result = graph.sparql(query, limit=ROWS + 1)
    if isinstance(query_result, QueryBoolean):
        return _ResultTable((), [], False, bool(query_result))
    if isinstance(query_result, list):
        cells = [
            [_format_cell(t.subject), _format_cell(t.predicate), _format_cell(t.object)]
            for t in query_result
        ]
        triple = ("subject", "predicate", "object")
        return _ResultTable(triple, cells[:ROWS], len(cells) > ROWS, drawn=_draw_triples(cells))
    columns = tuple(variable.value for variable in query_result.variables)
    rows = [[_format_cell(row[name]) for name in columns] for row in query_result]
    return _ResultTable(columns, rows[:ROWS], len(rows) > ROWS)


def _draw_triples(cells: Sequence[Sequence[tuple[str, str]]]) -> NodeLinkGraph:
    """Return result triples as a node-link graph, drawing label triples as node labels instead
    of arrows."""
    words = {iri: cell_text for row in cells for cell_text, iri in row if iri}
    labels = {row[0][1]: row[2][0] for row in cells if row[1][1] == v.RDFS_LABEL.value}
    rows = [row for row in cells if row[1][1] != v.RDFS_LABEL.value] or cells
    triples = [(_cell_key(row[0]), _cell_key(row[1]), _cell_key(row[2])) for row in rows]
    return triples_of(triples, {**words, **labels})


def _cell_key(cell: tuple[str, str]) -> str:
    words, iri = cell
    return iri or f"“{words}”"


def _format_cell(term: Any) -> tuple[str, str]:
    if term is None:
        return "", ""
    if isinstance(term, NamedNode):
        return short_iri(term.value), term.value
    if isinstance(term, Triple):
        return " ".join(_format_cell(t)[0] for t in (term.subject, term.predicate, term.object)), ""
    return (term.value if isinstance(term, Literal) else str(term)), ""


def _example_queries() -> list[tuple[str, str]]:
    """Return example queries: an introduction, plus SPARQL of audits without parameters."""
    examples = [(_FIRST, _without_header(load_query("page/entity-types")))]
    for named_audit in list_audits():
        query = _audit_query(named_audit.name)
        if query and not named_audit.parameters and "$" not in query:
            examples.append((named_audit.title, _without_header(query)))
    return examples


def _without_header(query: str) -> str:
    """Return a query without comment lines."""
    return "\n".join(line for line in query.splitlines() if not line.startswith("#")).strip()


PAGES = (
    WorkbenchPage("/audits", "audits", show_audits, ("status",)),
    WorkbenchPage("/audits/{audit}", "audit", show_audit, ("knowledge", "documents", "sessions")),
    WorkbenchPage("/sparql", "sparql", show_sparql, ("knowledge", "documents", "sessions")),
)
