"""``tgraph evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tgraph.cli.options import chat_options, common, mode_option
from tgraph.cli.running import command


@command("evaluate")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@mode_option("How to answer the questions that have no response yet; as in `ask`.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--markdown", is_flag=True, help="Print the report as Markdown.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file for everything in RAGChecker's JSON; .md: for the report.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Calls at a time.")
@chat_options
@common
def evaluate(file: Path, **options: Any) -> None:
    """Judge answers by RAGChecker's metrics, and the retrieval by gold passages or documents.

    FILE is RAGChecker's JSON, or a list of questions (JSON, JSON Lines, TOML) with query and
    gt_answer, gold_passages or gold_documents. Questions without a response are asked. A language
    model takes answers apart into statements and checks them; without one both are approximated.
    The result is recorded beside the sessions that it judges. Exit code 1: some could not be
    judged.

    \b
    Examples:
      tgraph evaluate questions.toml -m local -o judged.json
      tgraph evaluate checking_inputs.json --model gpt-4.1-mini
      tgraph evaluate judged.json --markdown
    """
    from tgraph.cli.evaluating import run

    run(file, options)
