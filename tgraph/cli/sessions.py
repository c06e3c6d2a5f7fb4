"""``tgraph sessions``, also ``tg-list-explain-traces``."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import click

from tgraph.cli.options import common, connection
from tgraph.cli.running import command, opened
from tgraph.cli.terminal import (
    PIPE_WIDTH,
    console,
    is_terminal,
    one_line,
    print_json,
    say,
    show,
    table,
    time,
)

if TYPE_CHECKING:
    from tgraph.explain.sessions import SessionSummary

_WHOLE, _SHORT = 36, 13
"""A whole UUID, and as much of it as tells sessions apart where the terminal is narrow."""
_WIDE = 130
_BETWEEN = 19 + 11 + 6 + 4 * 3  # time, status, mode, and the gaps
_LEAST = 20
_NARROW = 76
"""Columns below which a table would break its cells."""


@command("sessions")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.option("--format", type=click.Choice(["table", "json"]), default="table", show_default=True)
@connection
@common
def sessions(limit: int, as_json: bool, format: str) -> None:
    """List the recorded sessions, newest first.

    \b
    Examples:
      tgraph sessions --limit 10
      tgraph sessions --json | jq -r '.[].explain_id'
    """
    with opened() as graph:
        print_sessions(graph.sessions(limit), as_json=as_json or format == "json")


def print_sessions(sessions: Sequence[SessionSummary], *, as_json: bool) -> None:
    """The sessions as a table that fits the terminal, or as JSON."""
    if as_json:
        from tgraph.cli.schemas import session_shape

        print_json(list(map(session_shape().plain, sessions)))
        return
    from tgraph.vocabulary import session_iri

    if not sessions:
        say("No session has been recorded yet.")
        return
    width = console().width if is_terminal() else PIPE_WIDTH
    if width < _NARROW:
        _print_blocks(sessions, width)
        return
    id_width = _WHOLE if width >= _WIDE else _SHORT
    room = max(width - id_width - _BETWEEN, _LEAST)
    rows = [
        (
            session.explain_id.removeprefix(session_iri(""))[:id_width],
            time(session.started),
            _standing(session),
            session.mode,
            one_line(session.question, room),
        )
        for session in sessions
    ]
    show(table(("Session", "Time (UTC)", "Status", "Mode", "Question"), rows))


def _print_blocks(sessions: Sequence[SessionSummary], width: int) -> None:
    """The sessions one below the other, for terminals that have no room for a table."""
    from tgraph.vocabulary import session_iri

    for session in sessions:
        name = session.explain_id.removeprefix(session_iri(""))[:_SHORT]
        click.echo(f"{name}  {time(session.started)}")
        about = f"{_standing(session)}, {session.mode}: {one_line(session.question)}"
        click.echo(fill(about, max(width, _LEAST), initial_indent="  ", subsequent_indent="  "))


def _standing(session: SessionSummary) -> str:
    return "questioned" if session.questioned else session.status or "open"
