"""``tgraph publish``: graph knowledge and provenance record in an external triple store."""

from __future__ import annotations

import click

from tgraph.cli.options import common, settings_of
from tgraph.cli.running import ResumableCommand, command, open_call_graph
from tgraph.cli.terminal import format_count, print_json, print_message


@command("publish", cls=ResumableCommand)
@click.option("--to", metavar="URL", help="The URL for SPARQL updates.")
@click.option(
    "--query-url",
    metavar="URL",
    help="The URL for SPARQL queries, if different from the usual URL.",
)
@click.option(
    "--user", metavar="NAME", help="The user's name in the store (password: publish.password)."
)
@click.option(
    "--classic/--terms",
    default=None,
    help="Write edges without or with triple terms; default: as the store supports.",
)
@click.option("--anew", is_flag=True, help="Delete the published data first.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@common
def publish(
    to: str | None,
    query_url: str | None,
    user: str | None,
    classic: bool | None,
    anew: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Update a triple store with the graph: knowledge, sources, sessions, the chain.

    Any store with the SPARQL 1.1 Protocol can be used. The progress is saved in the store, so the
    command continues after the last run or interruption; a repeated run changes nothing. The
    default graph becomes <urn:graph:knowledge> in the store. After an erasure, everything is
    deleted from the store and published again. The password is TGRAPH_PUBLISH__PASSWORD or
    publish.password.

    \b
    Examples:
      tgraph publish --to http://localhost:7878/update
      tgraph publish --to http://localhost:8890/sparql-auth --user dba
      tgraph publish --to http://localhost:7200/repositories/r/statements --json
    """
    from tgraph.cli.progress import show_progress
    from tgraph.extensions.interchange.publishing import publish_collection

    flags = {"to": to, "query_url": query_url, "user": user}
    with open_call_graph(settings_of(flags)) as graph, show_progress(quiet) as (progress, _):
        outcome = publish_collection(
            graph.opened, without_terms=classic, anew=anew, progress=progress
        )
    if as_json:
        print_json(outcome)
        return
    view = " in the classic view" if outcome.classic else ""
    new = format_count(outcome.after - outcome.before, "entry", "entries")
    anew_ = " Everything was published anew." if outcome.anew else ""
    print_message(
        f"Published {new} of the chain to {outcome.endpoint}{view}: {outcome.quads:,} quads.{anew_}"
    )
