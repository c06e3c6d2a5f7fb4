"""``tgraph index``."""

from __future__ import annotations

from typing import Any

import click

from tgraph.cli.options import chat_options, common
from tgraph.cli.running import Command, command


class _Index(Command):
    interrupted = (
        "Interrupted. Nothing half-done was published; extractions so far are kept, and the same "
        "command continues from them."
    )


@command("index", cls=_Index)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--estimate", is_flag=True, help="Say what it would cost, and do nothing.")
@click.option("--reinstate", is_flag=True, help="Take in again what was retracted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="No progress; failures are still told.")
@click.option("--chunk-size", type=click.IntRange(min=20), metavar="N", help="Tokens in a chunk.")
@click.option("--chunk-overlap", type=click.IntRange(min=0), metavar="N", help="Tokens shared.")
@click.option("--chunk-by", type=click.Choice(["tokens", "sentences"]), help="How chunks are cut.")
@click.option("--gleanings", type=click.IntRange(min=0), metavar="N", help="Extra rounds.")
@click.option(
    "--method",
    type=click.Choice(["standard", "fast"]),
    help="fast: names and what stands together, without a model.",
)
@click.option("--claims/--no-claims", default=None, help="Read claims too (needs a model).")
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Calls at a time.")
@click.option("--price-in", type=click.FloatRange(min=0), metavar="USD", help="Per million.")
@click.option("--price-out", type=click.FloatRange(min=0), metavar="USD", help="Per million.")
@chat_options
@common
def index(paths: tuple[str, ...], **options: Any) -> None:
    """Take documents into the graph: files, folders, globs, or - for standard input.

    Text, Markdown, HTML, PDF, DOCX, CSV, JSON and JSON Lines are read. What is unchanged is left
    alone, what has changed supersedes what was there. A file that can't be read is named, and the
    others go on; then the exit code is 1, as where no chunk got a reply that could be used. An
    interrupted run continues where it stopped.

    \b
    Examples:
      tgraph index docs/ --root my-graph
      tgraph index docs/ --estimate --model gpt-4.1-mini
      curl -s https://example.org/a.txt | tgraph index -
    """
    from tgraph.cli.indexing import estimate, run

    if options.pop("estimate"):
        estimate(paths, options)
    else:
        run(paths, options)
