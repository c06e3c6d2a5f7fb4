"""``tgraph tune``: prompts that are made for one collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tgraph.cli import terminal
from tgraph.cli.options import chat_options, common, settings_of
from tgraph.cli.running import command, opened
from tgraph.errors import UsageError

if TYPE_CHECKING:
    from tgraph.extensions.lab.prompt_tuning import Selecting, Tuning


@command("tune")
@click.option(
    "--select",
    type=click.Choice(["random", "top", "kmeans"]),
    default="random",
    show_default=True,
    help="Which chunks are looked at: any (the same each time), the first, or one of each group.",
)
@click.option("--limit", type=click.IntRange(1), default=15, show_default=True, help="How many.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("--force", is_flag=True, help="Replace prompts that are there.")
@click.option("--undo", "undone", is_flag=True, help="Take tuned prompts away again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@chat_options
@common
def tune(
    select: Selecting,
    limit: int,
    dry_run: bool,
    force: bool,
    undone: bool,
    as_json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Make prompts for this collection from some of its chunks.

    The field of the documents, their language, a reader, what reports should tell, types of
    entities and examples with exact quotes become the prompts extract_graph, extract_graph_more and
    community_report in the graph's folder, which the next index run uses. A language model finds
    them where one is set; without one they come of the graph itself. What was done is on record:
    `tgraph audit` and SPARQL find the chunks that each prompt was made from.

    --undo deletes the files, unless they were changed since; deleting them by hand does the same.

    \b
    Examples:
      tgraph tune --dry-run
      tgraph tune --select kmeans --limit 20
      tgraph tune --undo
    """
    if undone and (dry_run or force):
        raise UsageError("--undo goes with no other of these flags.")
    from tgraph.extensions.lab.prompt_tuning import tune_prompts, undo_tuning

    if undone:
        with opened(settings_of(flags)) as graph:
            gone = undo_tuning(graph.opened, graph.root)
        for path in gone:
            terminal.say(f"Deleted {path}.")
        if not gone:
            terminal.say("No tuned prompt is there as it was written.")
        return
    from tgraph.cli.progress import show_progress

    with opened(settings_of(flags)) as graph, show_progress(quiet) as (progress, _):
        done = tune_prompts(
            graph.opened,
            graph.root,
            select=select,
            limit=limit,
            dry_run=dry_run,
            force=force,
            progress=progress,
        )
    _show(done, as_json)


def _show(done: Tuning, as_json: bool) -> None:
    if as_json:
        terminal.print_json(done)
        return
    found = done.profile
    rows = [
        ("Domain", found.domain),
        ("Language", found.language),
        ("Persona", found.persona or "-"),
        ("Report", found.role),
        ("Rating", found.rating),
        ("Types", ", ".join(found.types)),
        ("Examples", f"{len(found.examples)}, each with its quote"),
        ("Made by", f"{done.agent}, from {terminal.many(len(done.chunks), 'chunk')}"),
    ]
    terminal.show(terminal.table(("", ""), [(n, terminal.one_line(t)) for n, t in rows]))
    for told in done.fallbacks:
        terminal.say(f"Without the model: {terminal.one_line(told)}")
    for each in done.prompts:
        if done.written:
            terminal.say(f"Wrote {each.path}.")
        else:
            click.echo(terminal.safe(each.diff))
    if not done.written:
        terminal.say("Nothing was written.")
