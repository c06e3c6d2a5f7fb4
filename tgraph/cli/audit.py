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
@click.option("--json", "as_json", is_flag=True, help="As JSON; of integrity the whole report.")
@click.option("--head", metavar="HASH", help="With integrity: a head that was saved before.")
@click.option(
    "--public-key",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="With integrity: verify what this key has signed.",
)
@common
def audit(
    name: str | None,
    arguments: tuple[str, ...],
    listing: bool,
    format: str,
    as_json: bool,
    head: str | None,
    public_key: str | None,
) -> None:
    """Ask the record a question that auditors ask.

    Exit code 4: the audit is a check, and it failed.

    \b
    Examples:
      tgraph audit --list
      tgraph audit documents-of-answer last
      tgraph audit answers-on-document endurance.md --format csv
      tgraph audit shapes all
      tgraph audit integrity --head HASH --public-key keys/record.pub
    """
    from tgraph.cli.listing import print_audits
    from tgraph.cli.rows import print_audit

    if listing:
        print_audits()
        return
    if name is None:
        raise click.UsageError("Name an audit, or list them with --list.")
    if name != "integrity" and (head is not None or public_key is not None):
        raise click.UsageError("--head and --public-key go with integrity.")
    with opened() as graph:
        if name == "integrity":
            arguments = _heads(arguments, head)
            if as_json or format == "table" or public_key is not None:
                from tgraph.cli.integrity import print_integrity

                found = graph.integrity(*arguments, public_key=public_key)
                print_integrity(found, as_json=as_json)
                return
        print_audit(graph.audit(name, *arguments), "json" if as_json else format)


def _heads(arguments: tuple[str, ...], head: str | None) -> tuple[str, ...]:
    given = (*arguments, *([head] if head is not None else []))
    if len(given) > 1:
        raise click.UsageError("integrity takes one head at most.")
    return given
