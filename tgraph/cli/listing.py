"""Lists on the terminal: sessions, audits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from textwrap import fill

import click

from tgraph.cli.terminal import (
    PIPE_WIDTH,
    console,
    is_terminal,
    json_text,
    one_line,
    say,
    show,
    table,
)
from tgraph.explain.audit import Audit, list_audits
from tgraph.explain.entities import Merge, Split
from tgraph.explain.sessions import SessionSummary
from tgraph.vocabulary import session_iri

_WHOLE, _SHORT = 36, 13
"""A whole UUID, and as much of it as tells sessions apart where the terminal is narrow."""
_WIDE = 130
_BETWEEN = 19 + 11 + 6 + 4 * 3  # time, status, mode, and the gaps
_LEAST = 20
_NARROW = 76
"""Columns below which a table would break its cells."""

_TEXT_WIDTH, _INDENT = 100, " " * 6


def print_sessions(sessions: Sequence[SessionSummary], *, as_json: bool) -> None:
    """The sessions as a table that fits the terminal, or as JSON."""
    if as_json:
        from tgraph.cli.schemas import session_shape

        click.echo(json_text(list(map(session_shape().plain, sessions))))
        return
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
    for session in sessions:
        name = session.explain_id.removeprefix(session_iri(""))[:_SHORT]
        click.echo(f"{name}  {time(session.started)}")
        about = f"{_standing(session)}, {session.mode}: {one_line(session.question)}"
        click.echo(fill(about, max(width, _LEAST), initial_indent="  ", subsequent_indent="  "))


def _standing(session: SessionSummary) -> str:
    return "questioned" if session.questioned else session.status or "open"


def print_merges(merges: Sequence[Merge], *, as_json: bool) -> None:
    """The merges as a table, or as JSON."""
    if as_json:
        click.echo(json_text([asdict(merge) for merge in merges]))
    elif merges:
        rows = (
            (
                one_line(merge.absorbed_name),
                one_line(merge.canonical_name),
                time(merge.merged),
                one_line("; ".join(ground.text for ground in merge.grounds)),
            )
            for merge in merges
        )
        show(table(("Name", "Entity", "Merged (UTC)", "Grounds"), rows))
    else:
        say("No names have been merged.")


def print_splits(splits: Sequence[Split], *, as_json: bool) -> None:
    """The splits as a table, or as JSON."""
    if as_json:
        click.echo(json_text([asdict(split) for split in splits]))
    elif splits:
        rows = (
            (
                *map(one_line, split.names),
                time(split.decided),
                one_line(split.person),
                one_line(split.reason),
            )
            for split in splits
        )
        show(table(("Name", "Other", "Split (UTC)", "By", "Reason"), rows))
    else:
        say("No names have been split.")


def time(text: str) -> str:
    """An xsd:dateTime for people, to the second."""
    return text[:19].replace("T", " ")


def print_audits() -> None:
    """Every audit with its arguments and the question it answers, group by group."""
    for group, audits in groupby(list_audits(), key=lambda audit: audit.group):
        click.echo(f"{group}\n")
        for audit in audits:
            _print_audit(audit)


def _print_audit(audit: Audit) -> None:
    click.echo(f"  {audit.name} {_signature(audit)}".rstrip())
    lines = [audit.question]
    for parameter in audit.parameters:
        default = f' (default: "{parameter.default}")' if parameter.default is not None else ""
        lines.append(f"{parameter.name.upper()}: {parameter.description}{default}")
    if audit.check:
        lines.append(f"A check: exit code 4 if there are rows. It holds: {audit.check}.")
    for line in lines:
        click.echo(_wrapped(line))
    click.echo()


def _wrapped(text: str) -> str:
    return fill(
        text,
        _TEXT_WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_on_hyphens=False,
    )


def _signature(audit: Audit) -> str:
    names = (
        p.name.upper() if p.default is None else f"[{p.name.upper()}]" for p in audit.parameters
    )
    return " ".join(names)
