"""``tgraph tune``: prompts tuned for a single collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tgraph.cli import terminal
from tgraph.cli.options import chat_options, common, settings_of
from tgraph.cli.running import command, open_call_graph
from tgraph.errors import UsageError

if TYPE_CHECKING:
    from tgraph.extensions.lab.prompt_tuning import SampleMethod, Tuning


@command("tune")
@click.option(
    "--select",
    type=click.Choice(["random", "top", "kmeans"]),
    default="random",
    show_default=True,
    help=(
        "The chunks to read: a random choice (always the same), the first chunks, or a chunk "
        "of each group."
    ),
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=15,
    show_default=True,
    help="Number of chunks to read.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("--force", is_flag=True, help="Replace existing prompts.")
@click.option("--undo", "undone", is_flag=True, help="Delete tuned prompts.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@chat_options
@common
def tune(
    select: SampleMethod,
    limit: int,
    dry_run: bool,
    force: bool,
    undone: bool,
    as_json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Make prompts for this collection from some of its chunks.

    The subject area and language of the documents, the intended reader, the aims of reports, entity
    types and examples with exact quotes become part of the prompts extract_graph,
    extract_graph_more and community_report in the graph's folder, which the next index run uses. A
    language model, if set, finds these values; otherwise the values come from the graph. The tuning
    is recorded: `tgraph audit` and SPARQL list the chunks that each prompt was made from.

    --undo deletes the files, unless the files were changed; deleting the files by hand has the same
    effect.

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
        with open_call_graph(settings_of(flags)) as graph:
            gone = undo_tuning(graph.opened, graph.root)
        for path in gone:
            terminal.print_message(f"Deleted {path}.")
        if not gone:
            terminal.print_message("No tuned prompt is there as it was written.")
        return
    from tgraph.cli.progress import show_progress

    with open_call_graph(settings_of(flags)) as graph, show_progress(quiet) as (progress, _):
        tuning = tune_prompts(
            graph.opened,
            graph.root,
            select=select,
            limit=limit,
            dry_run=dry_run,
            force=force,
            progress=progress,
        )
    _print_tuning(tuning, as_json)


def _print_tuning(done: Tuning, as_json: bool) -> None:
    if as_json:
        terminal.print_json(done)
        return
    profile = done.profile
    rows = [
        ("Domain", profile.domain),
        ("Language", profile.language),
        ("Persona", profile.persona or "-"),
        ("Report", profile.role),
        ("Rating", profile.rating),
        ("Types", ", ".join(profile.types)),
        ("Examples", f"{len(profile.examples)}, each with its quote"),
        ("Made by", f"{done.agent}, from {terminal.format_count(len(done.chunks), 'chunk')}"),
    ]
    terminal.print_renderable(
        terminal.build_table(("", ""), [(n, terminal.one_line(t)) for n, t in rows])
    )
    for fallback in done.fallbacks:
        terminal.print_message(f"Without the model: {terminal.one_line(fallback)}")
    for prompt in done.prompts:
        if done.written:
            terminal.print_message(f"Wrote {prompt.path}.")
        else:
            click.echo(terminal.escape_controls(prompt.diff))
    if not done.written:
        terminal.print_message("Nothing was written.")
