"""Shell completion: ``tgraph completion``, plus completion of existing sessions, documents and
audits.

Unknown values are not completed; a shell is never shown an error while somebody types."""

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

NamedChoice = tuple[str, str]
"""A name, and what it is in words."""
SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_TGRAPH_COMPLETE"
_SESSIONS = 100
"""The newest sessions that are offered."""
_HELP = 70
"""Characters of what is said of one."""


OPEN_GRAPH = "open graph"
"""The name in the context's object under which a command that completes has its graph."""


def complete_modes(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete mode names, including ``auto``."""
    from tgraph.retrieve.modes.registry import AUTO, MODES

    return [CompletionItem(name) for name in (*MODES, AUTO) if name.startswith(begun)]


def complete_sessions(
    context: click.Context, _: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete recorded session UUIDs, newest first, including ``last``."""
    from tgraph.explain.trace.sessions import LAST
    from tgraph.vocabulary import session_iri

    prefix = session_iri("")
    recorded = _read_graph(
        context,
        lambda graph: [
            (each.explain_id.removeprefix(prefix), each.question)
            for each in graph.sessions.summaries(_SESSIONS)
        ],
    )
    return _matching_items([(LAST, "the newest session"), *recorded], begun)


def complete_documents(
    context: click.Context, _: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete standing documents by path, otherwise by file name."""
    paths = _read_graph(
        context,
        lambda graph: [
            (summary.path, summary.title)
            for summary in graph.documents.summaries()
            if summary.standing
        ],
    )
    names = [(path.rpartition("/")[2], title) for path, title in paths]
    return _matching_items(paths, begun) or _matching_items(names, begun)


def complete_audits(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete audit names."""
    from tgraph.explain.audit.named_audits import list_audits

    return _matching_items([(audit.name, audit.title) for audit in list_audits()], begun)


def _matching_items(named: Iterable[NamedChoice], begun: str) -> list[CompletionItem]:
    """Return completion items starting with the typed text.

    Names with several lines, or with characters that could command a terminal, are omitted: a
    line of the protocol has no room for them."""
    return [
        CompletionItem(name, help=one_line(description, _HELP) or None)
        for name, description in dict(named).items()
        if name.startswith(begun) and one_line(name) == name
    ]


def _read_graph(
    context: click.Context, read: Callable[[KnowledgeGraph], Iterable[NamedChoice]]
) -> Sequence[NamedChoice]:
    """Read completion values from the graph named on the command line so far.

    Returns nothing if the graph can't be read, because the command itself will report the
    reason."""
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
    """Print a script for completion of commands, modes, sessions, documents and audits.

    \b
    Examples:
      eval "$(tgraph completion bash)"                                  in ~/.bashrc
      eval "$(tgraph completion zsh)"                                   in ~/.zshrc, after compinit
      tgraph completion fish > ~/.config/fish/completions/tgraph.fish   once
    """
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    root = click.get_current_context().find_root()
    click.echo(completion_class(root.command, {}, "tgraph", _VARIABLE).source())
