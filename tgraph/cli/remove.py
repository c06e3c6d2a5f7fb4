"""``tgraph remove``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.options import chat_options, common, settings_of
from tgraph.cli.running import command, opened

if TYPE_CHECKING:
    from tgraph.engine.purging import Purge
    from tgraph.explain.impact import Impact


@command("remove")
@click.argument("document", metavar="DOC")
@click.option("--purge", is_flag=True, help="Erase the text everywhere, for good.")
@click.option("--reason", help="Why; it is kept in the record.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask for confirmation.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@chat_options
@common
def remove(
    document: str, purge: bool, reason: str | None, yes: bool, quiet: bool, **flags: Any
) -> None:
    """Erase a document for good (a right-to-erasure request): it leaves everything.

    It is retracted first. Then its text leaves the librarian, quotes, descriptions, reports,
    answers, calls of models, vectors, caches and snapshots; what other documents say too stays.
    Marks stand where it was. Each session that held some of it is sealed again, and the chain says
    so: `audit integrity` says erased, `replay` refuses. It can't be taken back.

    Nobody else may have the graph open. If it is interrupted, run the same command again.

    \b
    Example:
      tgraph remove endurance.md --purge --reason "erasure request 17"
    """
    from tgraph.cli.indexing import show_progress
    from tgraph.errors import UsageError

    if not purge:
        raise UsageError(
            "A document is taken back with `tgraph retract DOC` and erased for good with --purge."
        )
    if not reason:
        raise UsageError("A decision needs a reason.", "Give it with --reason.")
    with opened(settings_of(flags)) as graph:
        if not yes:
            _confirm(graph.impact(document))
        with show_progress(quiet) as (progress, message):
            done = graph.purge(document, reason=reason, progress=progress, message=message)
    _say_done(done)


def _confirm(found: Impact) -> None:
    """Ask at the terminal. ``UsageError`` where nobody can answer."""
    import sys

    from tgraph.cli.terminal import one_line, say
    from tgraph.errors import UsageError

    say(
        f"{one_line(found.path)}: {one_line(found.title)}\n"
        f"Facts that rest on it alone: {len(found.facts):,}. "
        f"Answers that rest on it: {len(found.answers):,}."
    )
    if not sys.stdin.isatty():
        raise UsageError("Erasing can't be taken back, and nobody is asked here.", "Say --yes.")
    click.confirm("Erase its text everywhere, for good?", abort=True, err=True)


def _say_done(done: Purge) -> None:
    from tgraph.cli.terminal import say
    from tgraph.explain.erased import counted

    what = counted(done.bundles, done.batches, done.texts)
    if done.already:
        say(f"{done.impact.document} had been erased already ({what}).")
        return
    say(
        f"Erased {done.impact.document}: {what}. "
        f"Answers called into question: {len(done.questioned):,}. On record as {done.erasure}."
    )
