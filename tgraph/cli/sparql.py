"""``tgraph sparql``, also ``tg-invoke-sparql-query``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.options import batches, common, connection
from tgraph.cli.running import NO_EVIDENCE, command, open_call_graph
from tgraph.cli.terminal import (
    build_table,
    format_count,
    one_line,
    one_text,
    print_lines,
    print_message,
    print_renderable,
    write_blocks,
)

if TYPE_CHECKING:
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.explain.query.sparql import Bounds
    from tgraph.rendering import Notation


_LITERAL = re.compile(r'"((?:[^"\\]|\\(?:["\\nrtbf]|u[0-9A-Fa-f]{4}))*)"(?:@([\w-]+)|\^\^<[^>]*>)?')
TABLE_ROWS = 1000
"""As many rows as a table shows unless told otherwise."""


_NOTATIONS: Mapping[str, Notation] = {"csv": "plain", "xml": "xml"}
FORMATS = ("table", "json", "csv", "tsv", "xml", "turtle", "ntriples")


@command("sparql")
@click.argument("text", metavar="[QUERY]", required=False)
@click.option("-q", "--query", help="The query, in place of the argument; - reads standard input.")
@click.option(
    "-i",
    "--input",
    "file",
    type=click.File(encoding="utf-8"),
    help="A file with the query; - is standard input.",
)
@click.option("--format", type=click.Choice(FORMATS), help="[default: table; turtle for CONSTRUCT]")
@click.option(
    "-l", "--limit", type=click.IntRange(min=1), metavar="N", help="Print at most N rows."
)
@click.option("--timeout", type=click.FloatRange(min=0.1), default=60.0, show_default=True)
@click.option(
    "--memory", type=click.FloatRange(min=0.1), default=2.0, show_default=True, metavar="GB"
)
@click.option("--ask", "question", metavar="QUESTION", help="Print the query of a question.")
@click.option("--update", is_flag=True, help="Allow a SPARQL update of the graph.")
@connection
@batches
@common
def sparql(
    text: str | None,
    query: str | None,
    file: Any,
    format: str | None,
    question: str | None,
    update: bool,
    **bounds: Any,
) -> None:
    """Query knowledge and provenance in SPARQL 1.2.

    The default graph is the union of all graphs; GRAPH narrows it. The prefixes tg, prov, rdf,
    rdfs, xsd, oa, dcterms and skos are known. A query can't write, can't use the network, and is
    stopped at the limits of time and memory. An update (--update) is atomic and recorded, and can't
    change the record of sessions. With --ask the query that the mode sparql makes of a question is
    printed, and not run.

    \b
    Examples:
      tgraph sparql "SELECT ?subgraph WHERE { ?subgraph tg:contains << ?s ?p ?o >> }" -l 10
      tgraph sparql "SELECT * WHERE { ?sel tg:edge << ?s ?p ?o >> ; tg:reasoning ?why }"
      tgraph sparql -i query.rq --format csv
      tgraph sparql --ask "How many pumps does Norden make?"
    """
    if question is not None:
        _print_query_of(question)
        return
    from tgraph.explain.query.sparql import Bounds
    from tgraph.store.query_guard import gives_triples

    body = one_text("query", text, query, file.read() if file else None)
    limits = Bounds(bounds["timeout"], int(bounds["memory"] * (1 << 30)), bounds["limit"])
    with open_call_graph() as graph:
        if update:
            added, removed = graph.update(body, limits)
            print_message(f"{format_count(added, 'quad')} added, {removed} removed.")
        else:
            default = "turtle" if gives_triples(body) else "table"
            print_query(graph, body, format or default, limits)


def _print_query_of(question: str) -> None:
    """Print the SPARQL query of a question; exit with ``NO_EVIDENCE`` where none is likely."""
    with open_call_graph() as graph:
        plan = graph.plan_query(question)
        if plan.chosen is None:
            best = plan.ranked[0].unaccounted if plan.ranked else ()
            reason = plan.remark or "No query is likely enough to be what the question means."
            print_message(one_line(reason))
            if best:
                print_message(f"Not understood: {', '.join(best)}.")
            click.get_current_context().exit(NO_EVIDENCE)
        from tgraph.compute.printing import print_query as print_sparql

        for reason in plan.chosen.candidate.reasons:
            print_message(one_line(reason))
        print_lines(print_sparql(plan.chosen.candidate.query).splitlines())


def print_query(graph: KnowledgeGraph, query: str, format: str, bounds: Bounds) -> None:
    """Print a query result as a table, or stream the result in another format."""
    from tgraph.engine.sparql_results import stream_query_results

    if format == "table":
        _print_table(graph, query, bounds)
        return
    blocks = stream_query_results(graph.opened, query, format, bounds)
    write_blocks(blocks, _NOTATIONS.get(format, "u"))


def _print_table(graph: KnowledgeGraph, query: str, bounds: Bounds) -> None:
    row_limit = bounds.limit or TABLE_ROWS
    lines = _result_lines(graph, query, replace(bounds, limit=row_limit + 1))
    columns = json.loads(next(lines))
    rows = [[_format_term(cell) for cell in json.loads(line)] for line in lines]
    print_renderable(build_table(columns, rows[:row_limit]))
    if not rows:
        print_message("No results.")
    elif len(rows) > row_limit and bounds.limit is None:
        print_message(
            f"These are the first {row_limit} rows; --limit N or another --format shows more."
        )


def _result_lines(graph: KnowledgeGraph, query: str, bounds: Bounds) -> Iterator[bytes]:
    from tgraph.engine.sparql_results import stream_query_results

    remainder = b""
    for block in stream_query_results(graph.opened, query, "lines", bounds):
        *lines, remainder = (remainder + block).split(b"\n")
        yield from lines
    if remainder:
        yield remainder


def _format_term(text: str | None) -> str:
    """A term as a person reads it: IRIs with the known prefixes, plain strings without quotes."""
    if text is None:
        return ""
    if text.startswith("<") and not text.startswith("<<"):
        from tgraph.vocabulary import PREFIXES

        for prefix, namespace in PREFIXES.items():
            if text.startswith(f"<{namespace}"):
                return f"{prefix}:{text[len(namespace) + 1 : -1]}"
        return text[1:-1]
    literal = _LITERAL.fullmatch(text)
    if literal is None:
        return one_line(text)
    value = one_line(json.loads(f'"{literal[1]}"', strict=False))
    return f"{value} @{literal[2]}" if literal[2] else value
