"""A command: ``tgraph entries`` prints how documents begin."""

from __future__ import annotations

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, open_call_graph


@command("entries")
@click.argument("part", default="")
@common
def entries(part: str) -> None:
    """Print the first line of each document whose path has PART in it."""
    with open_call_graph() as graph:
        for document in graph.documents.summaries():
            if part in document.path:
                line = graph.documents.read_text(document.document).partition("\n")[0]
                click.echo(f"{document.title}: {line}")
