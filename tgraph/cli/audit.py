"""``tgraph audit``."""

from __future__ import annotations

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, opened


@command("audit")
@click.argument("name", required=False)
@click.argument("arguments", metavar="[ARG]...", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List the audits with their arguments.")
@click.option(
    "--format", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
@common
def audit(name: str | None, arguments: tuple[str, ...], listing: bool, format: str) -> None:
    """Ask the record a question that auditors ask.

    Exit code 4: the audit is a check, and it failed.

    \b
    Examples:
      tgraph audit --list
      tgraph audit documents-of-answer last
      tgraph audit answers-on-document endurance.md --format csv
      tgraph audit shapes all
    """
    from tgraph.cli.listing import print_audits
    from tgraph.cli.rows import print_audit

    if listing:
        print_audits()
        return
    if name is None:
        raise click.UsageError("Name an audit, or list them with --list.")
    with opened() as graph:
        print_audit(graph.audit(name, *arguments), format)
