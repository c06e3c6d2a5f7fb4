"""``tgraph suggest``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tgraph.cli.options import chat_options, common, connection
from tgraph.cli.running import command


@command("suggest")
@click.option(
    "-n", "--count", type=click.IntRange(1, 50), default=5, show_default=True, metavar="N"
)
@click.option(
    "--history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The conversation so far: a JSON array, or JSON Lines, of {question, answer}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, as `ask` does.")
@chat_options
@connection
@common
def suggest(count: int, history: Path | None, as_json: bool, **options: Any) -> None:
    """Propose questions that the documents can answer.

    Without a history they start from the centres of the collection, with one from what it was
    about. Each question names what led to it; the session is recorded like any other.

    \b
    Examples:
      tgraph suggest
      tgraph suggest -n 3 --history conversation.json
    """
    from tgraph.cli.asking import print_suggestions

    print_suggestions(count, history, options, as_json=as_json)
