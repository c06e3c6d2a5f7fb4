"""``tgraph impact`` and ``tgraph retract``."""

from __future__ import annotations

from typing import Any

import click

from tgraph.cli.options import chat_options, common, settings_of
from tgraph.cli.running import command, opened


@command("impact")
@click.argument("document", metavar="DOC")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def impact(document: str, as_json: bool) -> None:
    """Show what would fall with a document: facts that rest on it alone, and answers.

    DOC is a path, a title, the document's IRI or content hash, or an unambiguous beginning of one.

    \b
    Example:
      tgraph impact endurance.md
    """
    from tgraph.cli.impact_text import print_impact

    with opened() as graph:
        print_impact(graph.impact(document), as_json=as_json)


@command("retract")
@click.argument("document", metavar="DOC")
@click.option("--reason", required=True, help="Why; it is kept in the record.")
@chat_options
@common
def retract(document: str, reason: str, **flags: Any) -> None:
    """Take a document back: nothing is answered from it any more.

    Facts that rest on it alone leave the graph, the rest is derived again, and answers that rest on
    it are called into question: `sessions` and `trace` say so. The record stays; who decided is in
    it if the setting `person` names them. `index --reinstate` takes the document in again.

    \b
    Example:
      tgraph retract endurance.md --reason "the log was forged"
    """
    from tgraph.cli.terminal import say

    with opened(settings_of(flags)) as graph:
        done = graph.retract(document, reason=reason)
        facts = len(done.impact.facts)
        say(
            f"Retracted {done.impact.path}. Facts that rested on it alone: {facts:,}. "
            f"Answers called into question: {len(done.questioned):,}."
        )
