"""``tgraph replay``."""

from __future__ import annotations

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, opened


@command("replay")
@click.argument("session", metavar="[ID]", default="last")
@click.option("--live", is_flag=True, help="Call the models again, and show what changed.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@common
def replay(session: str, live: bool, as_json: bool) -> None:
    """Ask a recorded question again from its record, and compare the two records.

    Every reply comes from the record: no model and no embedder is called. Nothing of the replay is
    recorded. Where the knowledge has changed since, it is read as it was, from what the record has.
    With --live the models are called again, with the recorded prompts and parameters.

    Exit code 4: the replay came to another record (not with --live).

    \b
    Examples:
      tgraph replay last
      tgraph replay 1cc5e01a --live
    """
    from tgraph.cli.comparing import print_live, print_replay

    with opened() as graph:
        found = graph.replay(session, live=live)
        if live:
            print_live(graph.trace(session), found, as_json=as_json)
        else:
            print_replay(found, as_json=as_json)
