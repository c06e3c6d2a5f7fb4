"""``tgraph verify``."""

from __future__ import annotations

from typing import Any

import click

from tgraph.cli.options import chat_options, common, settings_of
from tgraph.cli.running import command, opened


@command("verify")
@click.argument("session", metavar="[ID]", default="last")
@click.option("--lexical", is_flag=True, help="Judge by words, without a model.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@chat_options
@common
def verify(session: str, lexical: bool, as_json: bool, **flags: Any) -> None:
    """Check whether each sentence of an answer is entailed by what it cites.

    The model judges, or where there is none the words: a sentence that is quoted is supported, any
    other needs its words, numbers and names. Where support is missing, the record is walked back
    step by step to the first step that lost it. The verdicts are recorded; `trace` shows them.

    Exit code 4: a sentence is not supported, or cites nothing.

    \b
    Examples:
      tgraph verify
      tgraph verify 1cc5e01a --lexical
      tgraph verify last --json | jq .recall
    """
    from tgraph.cli.reasons import print_verification

    with opened(settings_of(flags)) as graph:
        print_verification(graph.verify(session, lexical=lexical), as_json=as_json)
