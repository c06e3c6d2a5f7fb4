"""``tgraph ask``, also ``tg-invoke-graph-rag``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tgraph.cli.options import (
    ModeFlagsCommand,
    answer_options,
    chat_options,
    common,
    connection,
    filter_options,
    mode_option,
    reranking,
)
from tgraph.cli.running import command


@command("ask", ModeFlagsCommand)
@click.argument("words", metavar="[QUESTION]", nargs=-1)
@click.option("-q", "--question", help="The question, instead of the argument.")
@mode_option("How to retrieve: {modes}, or auto, which chooses by the question.")
@click.option(
    "-x", "--explainable", is_flag=True, help="Show each step on stderr as it is recorded."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--jsonl", is_flag=True, help="Print one JSON event per line, as they happen.")
@click.option("--json-schema", is_flag=True, help="Print the JSON Schemas of these and exit.")
@click.option("--no-streaming", is_flag=True, help="Print the answer when it is complete.")
@click.option("--show-usage", is_flag=True, help="Say on stderr what the answer cost.")
@click.option(
    "--history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Earlier turns: a JSON array, or JSON Lines, of {question, answer}.",
)
@filter_options
@answer_options
@reranking
@chat_options
@connection
@common
def ask(words: tuple[str, ...], question: str | None, **options: Any) -> None:
    """Answer a question from the documents, with proof.

    The answer goes to stdout; the evidence and the session's IRI go to stderr. A sentence that
    nothing proves is marked [no citation]. Exit code 3: the documents hold no answer.

    \b
    Examples:
      tgraph ask "When did the Endurance sink?"
      tgraph ask -x -q "Who designed the Fram?" --show-usage
      tgraph ask "Who designed the Fram?" --json | jq .sentences
      tgraph ask "Who was in command?" --document "nimrod*" --type person
      tgraph ask -m lightrag-mix "Whose ship was crushed by the ice?"
      tgraph ask -m lightrag-local "Who designed the ship?" --low-keyword Fram
      tgraph ask -m auto "What are the main themes?"
      tgraph ask -m global "What are the main themes?"
    """
    from tgraph.cli.asking import Ask, print_schemas

    if options.pop("json_schema"):
        print_schemas()
        return
    if bool(words) == (question is not None):
        raise click.UsageError("Give one question, as the argument or with -q.")
    Ask(options).run(question if question is not None else " ".join(words))
