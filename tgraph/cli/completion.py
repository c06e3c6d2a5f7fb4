"""What a shell completes: ``tgraph completion``, and the sessions, documents and audits that there
are. What can't be told is not completed; a shell is never shown an error while somebody types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from tgraph.cli.running import command, common_option, find_root
from tgraph.cli.terminal import one_line
from tgraph.errors import TgraphError

if TYPE_CHECKING:
    from tgraph.engine.graph import KnowledgeGraph

Named = tuple[str, str]
"""A name, and what it is in words."""
SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_TGRAPH_COMPLETE"
_SESSIONS = 100
"""The newest sessions that are offered."""
_HELP = 70
"""Characters of what is said of one."""


OPEN_GRAPH = "open graph"
"""The name in the context's object under which a command that completes has its graph."""


def modes(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """The modes, and ``auto``."""
    from tgraph.retrieve.modes.registry import AUTO, MODES

    return [CompletionItem(name) for name in (*MODES, AUTO) if name.startswith(begun)]


def sessions(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The recorded sessions by UUID, newest first, and ``last``."""
    from tgraph.explain.trace.sessions import LAST
    from tgraph.vocabulary import session_iri

    prefix = session_iri("")
    recorded = _read(
        context,
        lambda graph: [
            (each.explain_id.removeprefix(prefix), each.question)
            for each in graph.sessions(_SESSIONS)
        ],
    )
    return _items([(LAST, "the newest session"), *recorded], begun)


def documents(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The standing documents by their paths, else by the names of their files."""
    paths = _read(
        context,
        lambda graph: [(each.path, each.title) for each in graph.documents() if each.standing],
    )
    names = [(path.rpartition("/")[2], title) for path, title in paths]
    return _items(paths, begun) or _items(names, begun)


def audits(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The audits by name."""
    from tgraph.explain.audit.named_audits import list_audits

    return _items([(audit.name, audit.title) for audit in list_audits()], begun)


def _items(named: Iterable[Named], begun: str) -> list[CompletionItem]:
    """Those that go on from what was begun; a line of the protocol has no room for a name that has
    more than one line, or what could command a terminal."""
    return [
        CompletionItem(name, help=one_line(about, _HELP) or None)
        for name, about in dict(named).items()
        if name.startswith(begun) and one_line(name) == name
    ]


def _read(
    context: click.Context, read: Callable[[KnowledgeGraph], Iterable[Named]]
) -> Sequence[Named]:
    """What is read of the graph that the line names so far; nothing where that can't be done, for
    the command itself will say why."""
    import tgraph

    with context.scope(cleanup=False):
        try:
            if (graph := common_option(OPEN_GRAPH)) is not None:
                return list(read(graph))
            with tgraph.open(find_root(), collection=common_option("collection")) as graph:
                return list(read(graph))
        except (TgraphError, OSError):
            return ()


@command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what makes SHELL complete commands, modes, sessions, documents and audits.

    \b
    Examples:
      eval "$(tgraph completion bash)"                                  in ~/.bashrc
      eval "$(tgraph completion zsh)"                                   in ~/.zshrc, after compinit
      tgraph completion fish > ~/.config/fish/completions/tgraph.fish   once
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    root = click.get_current_context().find_root()
    click.echo(made(root.command, {}, "tgraph", _VARIABLE).source())
