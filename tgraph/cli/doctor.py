"""``tgraph doctor``."""

from __future__ import annotations

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, find_root


@command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@common
def doctor(as_json: bool) -> None:
    """Check that everything tgraph needs is in order. Exit code 1: something is not.

    \b
    Example:
      tgraph doctor --root my-graph
    """
    from tgraph.cli import terminal
    from tgraph.engine.doctor import examine
    from tgraph.errors import NotAGraphError

    try:
        root = find_root()
    except NotAGraphError:
        root = None
    collection = (click.get_current_context().obj or {}).get("collection")
    findings = list(examine(root, collection))
    if as_json:
        terminal.print_json(findings)
    else:
        rows = ((f.status, f.subject, terminal.one_line(f.detail)) for f in findings)
        terminal.show(terminal.table(("", "What", "Finding"), rows))
    bad = [finding.subject for finding in findings if finding.status == "bad"]
    if bad:
        terminal.say(f"Not in order: {', '.join(bad)}.")
        click.get_current_context().exit(1)
