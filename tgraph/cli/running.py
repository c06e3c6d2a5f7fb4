"""Running commands: opening the named graph, and ending failures in a single sentence."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.interruption import INTERRUPTED, MESSAGE, interruptible
from tgraph.cli.terminal import forget_stdout, have_streams, print_message
from tgraph.engine.garbage import seldom_collected
from tgraph.errors import TgraphError
from tgraph.masking import mask_urls
from tgraph.plugins import COMMANDS
from tgraph.shortages import explain_shortage

if TYPE_CHECKING:
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.engine.progress import OnMessage, OnProgress

NO_EVIDENCE = 3
"""The exit code where the documents hold no answer."""

DEFAULT_FOLDER = "tgraph-graph"
"""Where ``index`` makes a graph if there is none near; the other commands look there too."""


class Command(click.Command):
    """A command whose failures print one sentence on stderr and return an exit code by kind."""

    interrupted = MESSAGE

    def invoke(self, context: click.Context) -> Any:
        try:
            with interruptible():
                have_streams()
                _note_ignored()
                with seldom_collected():
                    return super().invoke(context)
        except KeyboardInterrupt:
            print_message(self.interrupted)
            context.exit(INTERRUPTED)
        except BrokenPipeError:
            forget_stdout()
            context.exit(0)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if _is_full(error):
                forget_stdout()
            context.exit(tell_failure(error))


class CommandGroup(click.Group):
    """A command group extended by commands of extensions.

    An extension names a group command as ``"GROUP COMMAND"``. Core commands are found before
    extensions are searched."""

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            return super().main(*args, **options)
        except TgraphError as error:  # where two extensions have the same name
            sys.exit(tell_failure(error))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        return command or self._added_command(self._prefix(ctx) + cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        prefix = self._prefix(ctx)
        added = [name.removeprefix(prefix) for name in COMMANDS.names() if _is_within(name, prefix)]
        COMMANDS.check_names(prefix + name for name in self.commands)
        return sorted({*self.commands, *added})

    @staticmethod
    def _prefix(ctx: click.Context) -> str:
        """Return what stands before the names of the group's commands in an extension."""
        return f"{ctx.info_name} " if ctx.parent is not None else ""

    @staticmethod
    def _added_command(name: str) -> click.Command | None:
        if name not in COMMANDS.names():
            return None
        command: click.Command | None = COMMANDS.call(name)
        return command


def _is_within(name: str, prefix: str) -> bool:
    """Return whether a command belongs to the group whose commands begin with the prefix."""
    return name.startswith(prefix) and " " not in name.removeprefix(prefix)


class ResumableCommand(Command):
    """A command whose finished work is recorded, allowing another call to continue."""

    interrupted = "Interrupted. The same command continues the work."


def tell_failure(error: Exception) -> int:
    """Print a failure as one sentence, with traceback on request; return the exit code."""
    if common_option("debug") or os.environ.get("TGRAPH_DEBUG"):
        import traceback

        traceback.print_exception(error)
    known = explain_shortage(error)
    print_message(f"Error: {known or _describe_unexpected(error)}")
    return known.exit_code if known else 1


def choose_exit_code(codes: Iterable[int]) -> int:
    """Return the exit code for several questions: the first failure's code, else 3 if evidence
    is missing."""
    failures = sorted(filter(None, codes), key=lambda code: code == NO_EVIDENCE)
    return failures[0] if failures else 0


def _describe_unexpected(error: Exception) -> str:
    error_text = mask_urls(" ".join(f"{type(error).__name__}: {error}".split()))
    return f"Unexpected error: {error_text}. --debug shows the traceback."


def _is_full(error: Exception) -> bool:
    """Return whether the error means a full disk."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def common_option(name: str) -> Any:
    """Return the value of an option shared by all commands; None if absent."""
    context = click.get_current_context(silent=True)
    return (context.obj or {}).get(name) if context is not None else None


def _note_ignored() -> None:
    if ignored := common_option("ignored"):
        names = ", ".join(dict.fromkeys(ignored))
        print_message(f"Note: {names} has no effect; tgraph works on a folder and needs no server.")


def command(
    name: str, cls: type[Command] = Command
) -> Callable[[Callable[..., None]], click.Command]:
    """Makes a click command with tgraph's way of failing."""
    return click.command(name, cls=cls, context_settings={"help_option_names": ["-h", "--help"]})


def find_root(*, create: bool = False) -> Path | None:
    """The folder that the call means: ``--root``, ``TGRAPH_ROOT``, else the nearest graph.

    A folder holds a graph itself or in ``tgraph-graph``. With ``create`` and none near, that is
    where it will be; otherwise ``NotAGraphError``.
    """
    if root_path := common_option("root") or os.environ.get("TGRAPH_ROOT"):
        return Path(root_path)
    from tgraph.errors import NotAGraphError
    from tgraph.store.folder import MARKER, check_owner

    here = Path.cwd()
    for folder in (here, *here.parents):
        for candidate in (folder, folder / DEFAULT_FOLDER):
            if (candidate / MARKER).is_file():
                check_owner(candidate)
                return candidate
    if create:
        return here / DEFAULT_FOLDER
    raise NotAGraphError(
        f"There is no tgraph graph in {here} or above it.",
        "Make a graph with `tgraph index PATH...`, or name a graph with --root or TGRAPH_ROOT.",
    )


def _watch_progress() -> AbstractContextManager[tuple[OnProgress, OnMessage]]:
    """Return progress bars for work that a question needs first."""
    from tgraph.cli.progress import show_progress

    return show_progress(quiet=False)


@contextmanager
def open_call_graph(
    settings: dict[str, Any] | None = None, *, create: bool = False
) -> Iterator[KnowledgeGraph]:
    """Open the graph named by the command call; graph messages go to stderr."""
    import tgraph

    with tgraph.open(
        find_root(create=create),
        create=create,
        collection=common_option("collection"),
        settings=settings,
        message=print_message,
        watching=_watch_progress,
    ) as graph:
        yield graph
