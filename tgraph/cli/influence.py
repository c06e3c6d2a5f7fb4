"""``tgraph influence``."""

from __future__ import annotations

from typing import Any

import click

from tgraph.cli.options import chat_options, common, settings_of
from tgraph.cli.running import Command, command, opened
from tgraph.explain.influence_runs import REPEATS, SAMPLES


class _Influence(Command):
    interrupted = (
        "Interrupted. The replies so far are kept, and the same command continues from them."
    )


@command("influence", cls=_Influence)
@click.argument("session", metavar="[ID]", default="last")
@click.option("--estimate", is_flag=True, help="Say what it would cost, and do nothing.")
@click.option("--budget", type=click.IntRange(min=1), metavar="N", help="Calls at most.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=REPEATS,
    show_default=True,
    metavar="N",
    help="Runs with nothing removed.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=SAMPLES,
    show_default=True,
    metavar="N",
    help="Random halves.",
)
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Calls at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@chat_options
@common
def influence(session: str, as_json: bool, **flags: Any) -> None:
    """Which of the selected edges does an answer depend on?

    The answer is written again without each of them, or, where more than 20 items were selected or
    the model's answers differ anyway, from random halves of them, and what it still says is
    compared. That costs calls of the model: how many is said first, and `--estimate` stops there.
    Without a model it is free. The weights are recorded; `trace` shows them.

    \b
    Examples:
      tgraph influence --estimate
      tgraph influence last --budget 30
      tgraph influence 1cc5e01a --json | jq .cited_set
    """
    from tgraph.cli.indexing import show_progress
    from tgraph.cli.influence_text import print_estimate, print_influence

    estimates, quiet = flags.pop("estimate"), flags.pop("quiet")
    asked = {name: flags.pop(name) for name in ("budget", "repeats", "samples")}
    with opened(settings_of(flags)) as graph:
        if estimates:
            print_estimate(graph.influence_estimate(session, **asked), as_json=as_json)
            return
        with show_progress(quiet) as (progress, _):
            found = graph.influence(session, progress=progress, **asked)
        print_influence(found, as_json=as_json)
