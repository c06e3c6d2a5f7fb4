"""How a command runs: it opens the graph it is told to, and failures end in one sentence."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from tgraph.cli.interruption import INTERRUPTED, MESSAGE, interruptible
from tgraph.cli.terminal import forget_stdout, have_streams, say
from tgraph.engine.garbage import seldom_collected
from tgraph.errors import TgraphError

if TYPE_CHECKING:
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.engine.progress import OnMessage, OnProgress

DEFAULT_FOLDER = "tgraph-graph"
"""Where ``index`` makes a graph if there is none near; the other commands look there too."""


class Command(click.Command):
    """A command whose failures are one sentence on stderr with the exit code of their kind."""

    interrupted = MESSAGE

    def invoke(self, context: click.Context) -> Any:
        try:
            with interruptible():
                have_streams()
                _note_ignored()
                with seldom_collected():
                    return super().invoke(context)
        except TgraphError as error:
            _fail(context, str(error), error.exit_code)
        except KeyboardInterrupt:
            say(self.interrupted)
            context.exit(INTERRUPTED)
        except BrokenPipeError:
            forget_stdout()
            context.exit(0)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                _unforeseen(context, error)
            forget_stdout()
            _fail(context, "The output can't be written: the disk is full. Free some space.", 1)
        except MemoryError:
            _fail(context, "There is not enough memory.", 1)
        except Exception as error:
            _unforeseen(context, error)


def _unforeseen(context: click.Context, error: Exception) -> NoReturn:
    what = " ".join(f"{type(error).__name__}: {error}".split())
    _fail(context, f"Something unforeseen happened: {what}. --debug shows where.", 1)


def common_option(name: str) -> Any:
    """What the call says of an option that all commands share; None where it says nothing."""
    return (click.get_current_context().obj or {}).get(name)


def _note_ignored() -> None:
    if ignored := common_option("ignored"):
        names = ", ".join(dict.fromkeys(ignored))
        say(f"Note: {names} has no effect; tgraph works on a folder and needs no server.")


def _fail(context: click.Context, message: str, code: int) -> NoReturn:
    if common_option("debug") or os.environ.get("TGRAPH_DEBUG"):
        import traceback

        traceback.print_exc()
    say(f"Error: {message}")
    context.exit(code)


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
    if given := common_option("root") or os.environ.get("TGRAPH_ROOT"):
        return Path(given)
    from tgraph.errors import NotAGraphError
    from tgraph.store.folder import MARKER

    here = Path.cwd()
    for folder in (here, *here.parents):
        for candidate in (folder, folder / DEFAULT_FOLDER):
            if (candidate / MARKER).is_file():
                return candidate
    if create:
        return here / DEFAULT_FOLDER
    raise NotAGraphError(
        f"There is no tgraph graph in {here} or above it.",
        "Make one with `tgraph index PATH...`, or name one with --root or TGRAPH_ROOT.",
    )


def _watching() -> AbstractContextManager[tuple[OnProgress, OnMessage]]:
    """Bars, for what a question has to build first."""
    from tgraph.cli.progress import show_progress

    return show_progress(quiet=False)


@contextmanager
def opened(
    settings: dict[str, Any] | None = None, *, create: bool = False
) -> Iterator[KnowledgeGraph]:
    """The graph of the call, open; what it has to say goes to stderr."""
    import tgraph

    with tgraph.open(
        find_root(create=create),
        create=create,
        collection=common_option("collection"),
        settings=settings,
        message=say,
        watching=_watching,
    ) as graph:
        yield graph
