"""``tgraph sparql``, also ``tg-invoke-sparql-query``."""

from __future__ import annotations

from typing import Any

import click

from tgraph.cli.options import common, connection
from tgraph.cli.running import command, opened

FORMATS = ("table", "json", "csv", "tsv", "xml", "turtle", "ntriples")


@command("sparql")
@click.argument("text", metavar="[QUERY]", required=False)
@click.option("-q", "--query", help="The query, instead of the argument.")
@click.option("-i", "--input", "file", type=click.File(encoding="utf-8"), help="A file, or -.")
@click.option("--format", type=click.Choice(FORMATS), help="[default: table; turtle for CONSTRUCT]")
@click.option("-l", "--limit", type=click.IntRange(min=1), metavar="N", help="At most N rows.")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=60.0, show_default=True)
@click.option(
    "--memory", type=click.FloatRange(min=0.1), default=2.0, show_default=True, metavar="GB"
)
@click.option("--update", is_flag=True, help="Allow an update, which changes the graph as a whole.")
@connection
@common
def sparql(
    text: str | None, query: str | None, file: Any, format: str | None, update: bool, **bounds: Any
) -> None:
    """Ask knowledge and provenance in SPARQL 1.2.

    The default graph is the union of all graphs; GRAPH narrows it. The prefixes tg, prov, rdf,
    rdfs, xsd, oa, dcterms and skos are known. A query can't write, can't reach the network, and is
    stopped at its limits. An update is atomic, recorded, and can't touch the record of sessions.

    \b
    Examples:
      tgraph sparql "SELECT ?subgraph WHERE { ?subgraph tg:contains << ?s ?p ?o >> }" -l 10
      tgraph sparql "SELECT * WHERE { ?sel tg:edge << ?s ?p ?o >> ; tg:reasoning ?why }"
      tgraph sparql -i query.rq --format csv
    """
    from tgraph.cli.rows import print_query
    from tgraph.cli.terminal import many, say
    from tgraph.explain.guard import gives_triples
    from tgraph.explain.sparql import Bounds

    given = [item for item in (text, query, file) if item is not None]
    if len(given) != 1:
        raise click.UsageError("Give one query: as the argument, with -q or with -i.")
    body = given[0] if isinstance(given[0], str) else given[0].read()
    limits = Bounds(bounds["timeout"], int(bounds["memory"] * (1 << 30)), bounds["limit"])
    with opened() as graph:
        if update:
            added, removed = graph.update(body, limits)
            say(f"{many(added, 'quad')} added, {removed} removed.")
        else:
            default = "turtle" if gives_triples(body) else "table"
            print_query(graph, body, format or default, limits)
