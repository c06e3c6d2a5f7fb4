"""``tgraph sessions``, also ``tg-list-explain-traces``."""

from __future__ import annotations

import click

from tgraph.cli.options import common, connection
from tgraph.cli.running import command, opened


@command("sessions")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.option("--format", type=click.Choice(["table", "json"]), default="table", show_default=True)
@connection
@common
def sessions(limit: int, as_json: bool, format: str) -> None:
    """List the recorded sessions, newest first.

    \b
    Examples:
      tgraph sessions --limit 10
      tgraph sessions --json | jq -r '.[].explain_id'
    """
    from tgraph.cli.listing import print_sessions

    with opened() as graph:
        print_sessions(graph.sessions(limit), as_json=as_json or format == "json")
