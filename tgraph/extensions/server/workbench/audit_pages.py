"""Audits, and SPARQL with them as examples."""

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
from tgraph.resources import names, read_text
from tgraph.store.base import load_query

ROWS = 500
"""Rows of a result that a page shows; the result itself has all."""
_FIRST = "What entities are there?"


async def audits(visit: Visit) -> Response:
    """The audits by group."""
    known = await visit.service.call(list_audits)
    groups = [(name, list(found)) for name, found in groupby(known, key=lambda a: a.group)]
    return await visit.page("audits.html", groups=groups, rdf="")


async def audit(visit: Visit) -> Response:
    """One of them, run where it has all that it needs."""
    name = visit.part("audit")
    known = {each.name: each for each in await visit.service.call(list_audits)}
    if name not in known:
        raise UnknownNameError(f"There is no audit {name!r}.", "See the list of audits.")
    about = known[name]
    given = [visit.asked(each.name) for each in about.parameters]
    wanted = any(each.default is None for each in about.parameters)
    found: AuditResult | None = None
    if not wanted or any(given):
        arguments = _arguments(about.parameters, given)
        found = await visit.graph(lambda graph: graph.audit(name, *arguments), "audit")
    return await visit.page(
        "audit.html",
        audit=about,
        given=dict(zip((each.name for each in about.parameters), given, strict=True)),
        found=found,
        most=ROWS,
        query=_query(name),
        rdf="",
    )


def _arguments(parameters: Any, given: list[str]) -> list[str]:
    """What was filled in, up to the last; what is missing between has its default."""
    last = max((place for place, value in enumerate(given, 1) if value), default=0)
    pairs = zip(parameters[:last], given, strict=False)
    return [value or (parameter.default or "") for parameter, value in pairs]


def _query(name: str) -> str:
    """The audit's SPARQL; empty for one that is more than a query."""
    file = f"audit/{name}.rq"
    return read_text("sparql", file) if file in names("sparql") else ""


@dataclass(frozen=True)
class _ResultTable:
    """A result as a table; each cell is its words, and the IRI that it leads to or nothing.
    ``more`` says that there are more rows than are shown; ``drawn`` are triples as a graph."""

    columns: tuple[str, ...]
    rows: list[list[tuple[str, str]]]
    more: bool
    boolean: bool | None = None
    drawn: NodeLinkGraph | None = None


async def sparql(visit: Visit) -> Response:
    """The editor, and what the query found."""
    query = visit.asked("query")
    found = await visit.graph(lambda graph: _rows(graph, query), "audit") if query.strip() else None
    examples = await visit.service.call(_examples)
    drawn = found.drawn if found is not None else None
    picture = node_link_svg(drawn, visit.links.resource, "What was constructed") if drawn else ""
    return await visit.page(
        "sparql.html",
        query=query,
        found=found,
        examples=examples,
        picture=Markup(picture),  # noqa: S704 - tgraph's own, words of others escaped
        left_out=drawn.left_out if drawn else 0,
        rdf=visit.links.rdf(query) if found is not None else "",
    )


def _rows(graph: KnowledgeGraph, query: str) -> _ResultTable:
    found = graph.sparql(query, limit=ROWS + 1)
    if isinstance(found, QueryBoolean):
        return _ResultTable((), [], False, bool(found))
    if isinstance(found, list):
        cells = [[_cell(t.subject), _cell(t.predicate), _cell(t.object)] for t in found]
        triple = ("subject", "predicate", "object")
        return _ResultTable(triple, cells[:ROWS], len(cells) > ROWS, drawn=_drawn(cells))
    columns = tuple(each.value for each in found.variables)
    rows = [[_cell(row[name]) for name in columns] for row in found]
    return _ResultTable(columns, rows[:ROWS], len(rows) > ROWS)


def _drawn(cells: Sequence[Sequence[tuple[str, str]]]) -> NodeLinkGraph:
    """The triples as a graph; labels are what things are called, and no arrows."""
    words = {iri: said for row in cells for said, iri in row if iri}
    labels = {row[0][1]: row[2][0] for row in cells if row[1][1] == v.RDFS_LABEL.value}
    rows = [row for row in cells if row[1][1] != v.RDFS_LABEL.value] or cells
    triples = [(_key(row[0]), _key(row[1]), _key(row[2])) for row in rows]
    return triples_of(triples, {**words, **labels})


def _key(cell: tuple[str, str]) -> str:
    words, iri = cell
    return iri or f"“{words}”"


def _cell(term: Any) -> tuple[str, str]:
    if term is None:
        return "", ""
    if isinstance(term, NamedNode):
        return short_iri(term.value), term.value
    if isinstance(term, Triple):
        return " ".join(_cell(t)[0] for t in (term.subject, term.predicate, term.object)), ""
    return (term.value if isinstance(term, Literal) else str(term)), ""


def _examples() -> list[tuple[str, str]]:
    """Queries to begin with: what each audit asks that needs nothing more."""
    found = [(_FIRST, _without_header(load_query("page/entity-types")))]
    for each in list_audits():
        query = _query(each.name)
        if query and not each.parameters and "$" not in query:
            found.append((each.title, _without_header(query)))
    return found


def _without_header(query: str) -> str:
    """The query from its first line that says something to the store."""
    return "\n".join(line for line in query.splitlines() if not line.startswith("#")).strip()


PAGES = (
    WorkbenchPage("/audits", "audits", audits),
    WorkbenchPage("/audits/{audit}", "audit", audit),
    WorkbenchPage("/sparql", "sparql", sparql),
)
