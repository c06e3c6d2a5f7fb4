"""``tgraph sessions`` and ``tgraph trace``, and their names at TrustGraph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import click

from tgraph.cli import completion
from tgraph.cli.options import ExtensibleChoice, common, connection, json_array
from tgraph.cli.running import command, open_call_graph
from tgraph.cli.terminal import (
    GAP,
    PIPE_WIDTH,
    build_table,
    create_console,
    format_time,
    is_terminal,
    json_text,
    one_line,
    print_json,
    print_message,
    print_renderable,
    text_of,
    write_result,
)
from tgraph.plugins import SESSION_FORMATS

if TYPE_CHECKING:
    from tgraph.explain.trace.sessions import SessionSummary


RECORD_FORMATS = (
    *("trig", "turtle", "nquads", "json-ld", "rdf-xml"),
    *("prov-n", "prov-json", "prov-xml", "dot", "svg"),
)


FORMATS = ("text", "json", "html", *RECORD_FORMATS)
CRATE = "crate"
"""An evidence package, which `tgraph export` writes."""
KNOWN_FORMATS = (*FORMATS, CRATE)
"""The formats of the core and of tgraph's own extensions."""


@command("trace")
@click.argument(
    "session", metavar="[ID]", default="last", shell_complete=completion.complete_sessions
)
@click.option(
    "--format",
    type=ExtensibleChoice(FORMATS, SESSION_FORMATS, KNOWN_FORMATS),
    default="text",
    show_default=True,
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file."
)
@click.option(
    "--all", "everything", is_flag=True, help="Show rejected candidates and every quote too."
)
@click.option(
    "--max-answer",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cut the answer after N characters.",
)
@click.option("--show-provenance", is_flag=True, hidden=True, help="Always shown.")
@connection
@common
def trace(
    session: str,
    format: str,
    output: Path | None,
    everything: bool,
    max_answer: int | None,
    show_provenance: bool,
) -> None:
    """Show how an answer came about: sentences, edges with reasons, quotes, documents.

    ID is a session's IRI, its UUID, an unambiguous beginning of it, or `last`.

    \b
    Examples:
      tgraph trace
      tgraph trace 1cc5e01a --all
      tgraph trace last --format html -o answer.html
      tgraph trace last --format trig -o session.trig
    """
    with open_call_graph() as graph:
        if format == "text":
            from tgraph.explain.render.text_trees import trace_tree

            tree = trace_tree(graph.trace(session), everything=everything, most=max_answer)
            if output is None:
                print_renderable(tree)
            else:
                write_result(text_of(tree).encode(), output)
        elif format == "json":
            write_result((json_text(graph.trace(session).as_dict()) + "\n").encode(), output)
        else:
            write_result(graph.export(session, format), output)


_WHOLE, _SHORT = 36, 13
"""A whole UUID, and as much of it as tells sessions apart where the terminal is narrow."""
_WIDE = 130
_TIME = 19
_LEAST = 30
"""Columns that a question must have, or the sessions stand one below the other."""


@command("sessions")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N")
@json_array
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
    with open_call_graph() as graph:
        print_sessions(graph.sessions.summaries(limit), as_json=as_json or format == "json")


def print_sessions(sessions: Sequence[SessionSummary], *, as_json: bool) -> None:
    """Print sessions as a table fitting the terminal, or as JSON."""
    if as_json:
        from tgraph.engine.json_sessions import session_json

        print_json(list(map(session_json, sessions)))
        return
    if not sessions:
        print_message("No session has been recorded yet.")
        return
    width = create_console().width if is_terminal() else PIPE_WIDTH
    id_width = _WHOLE if width >= _WIDE else _SHORT
    column_widths = (
        max(len(_session_state(s)) for s in sessions),
        max(len(s.mode) for s in sessions),
    )
    room = (
        width
        - id_width
        - _TIME
        - sum(max(6, column_width) for column_width in column_widths)
        - 4 * GAP
    )
    if room < _LEAST:
        _print_blocks(sessions, width)
        return
    rows = [
        (
            _short_session_id(session, id_width),
            format_time(session.started),
            _session_state(session),
            session.mode,
            one_line(session.question, room),
        )
        for session in sessions
    ]
    print_renderable(build_table(("Session", "Time (UTC)", "Status", "Mode", "Question"), rows))


def _print_blocks(sessions: Sequence[SessionSummary], width: int) -> None:
    """Print sessions as separate blocks, for terminals too narrow for a table."""
    for session in sessions:
        click.echo(f"{_short_session_id(session, _SHORT)}  {format_time(session.started)}")
        summary_text = f"{_session_state(session)}, {session.mode}: {one_line(session.question)}"
        click.echo(
            fill(summary_text, max(width, _LEAST), initial_indent="  ", subsequent_indent="  ")
        )


def _short_session_id(session: SessionSummary, width: int) -> str:
    from tgraph.vocabulary import session_iri

    return session.explain_id.removeprefix(session_iri(""))[:width]


def _session_state(session: SessionSummary) -> str:
    return "questioned" if session.questioned else session.status or "open"
