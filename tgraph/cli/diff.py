"""``tgraph diff``."""

from __future__ import annotations

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, opened


@command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="[B]", required=False)
@click.option("--all", "everything", is_flag=True, help="Show every candidate and selection.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.option("--exit-code", is_flag=True, help="Exit with 4 where the sessions differ.")
@common
def diff(before: str, after: str | None, everything: bool, as_json: bool, exit_code: bool) -> None:
    """Compare two sessions: parameters, candidates, selection, answer and citations.

    A and B are sessions, as for `tgraph trace`; B is the last one by default.

    \b
    Examples:
      tgraph diff 1cc5e01a last
      tgraph diff 1cc5e01a 7a1d93b0 --json --exit-code
    """
    from tgraph.cli.comparing import print_comparison
    from tgraph.errors import UsageError, VerificationError

    with opened() as graph:
        comparison = graph.compare(before, after or "last")
        if after is None and comparison.before == comparison.after:
            raise UsageError(
                "That is the last session itself, so there is nothing to compare it with.",
                "Name another one; `tgraph sessions` lists them.",
            )
        print_comparison(comparison, as_json=as_json, everything=everything)
        if exit_code and not comparison.same:
            raise VerificationError("The sessions differ.")
