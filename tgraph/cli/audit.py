"""``tgraph audit``: the audits there are, their rows, and the check of integrity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from io import StringIO
from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING

import click

from tgraph.cli import completion
from tgraph.cli.options import common
from tgraph.cli.running import command, opened
from tgraph.cli.terminal import (
    GAP,
    console,
    is_terminal,
    many,
    one_line,
    print_json,
    safe,
    say,
    show,
    table,
    write_bytes,
)
from tgraph.errors import VerificationError
from tgraph.rendering import as_cell

if TYPE_CHECKING:
    from tgraph.explain.audit.named_audits import Audit, AuditResult
    from tgraph.explain.integrity.check import Integrity
    from tgraph.explain.integrity.entries import Signatures

_LEAST, _INDENT = 20, "  "
_TEXT_INDENT = " " * 6
SHOWN = 50
"""Violations that are listed as text; JSON has all of them."""
_indented = partial(
    fill,
    width=100,
    initial_indent=_TEXT_INDENT,
    subsequent_indent=_TEXT_INDENT,
    break_on_hyphens=False,
)


@command("audit")
@click.argument("name", required=False, shell_complete=completion.audits)
@click.argument("arguments", metavar="[ARG]...", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List the audits with their arguments.")
@click.option(
    "--format", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="As JSON; of integrity the whole report.")
@click.option("--head", metavar="HASH", help="With integrity: a head that was saved before.")
@click.option(
    "--public-key",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="With integrity: verify what this key has signed.",
)
@common
def audit(
    name: str | None,
    arguments: tuple[str, ...],
    listing: bool,
    format: str,
    as_json: bool,
    head: str | None,
    public_key: str | None,
) -> None:
    """Ask the record a question that auditors ask.

    Exit code 4: the audit is a check, and it failed.

    \b
    Examples:
      tgraph audit --list
      tgraph audit documents-of-answer last
      tgraph audit answers-on-document endurance.md --format csv
      tgraph audit shapes all
      tgraph audit integrity --head HASH --public-key keys/record.pub
    """
    if listing:
        print_audits()
        return
    if name is None:
        raise click.UsageError("Name an audit, or list them with --list.")
    if name != "integrity" and (head is not None or public_key is not None):
        raise click.UsageError("--head and --public-key go with integrity.")
    with opened() as graph:
        if name == "integrity":
            arguments = (*arguments, *([head] if head is not None else []))
            if len(arguments) > 1:
                raise click.UsageError("integrity takes one head at most.")
            if as_json or format == "table" or public_key is not None:
                found = graph.integrity(*arguments, public_key=public_key)
                print_integrity(found, as_json=as_json)
                return
        print_audit(graph.audit(name, *arguments), "json" if as_json else format)


def print_audits() -> None:
    """Every audit with its arguments and the question it answers, group by group."""
    from tgraph.explain.audit.named_audits import list_audits

    for group, audits in groupby(list_audits(), key=lambda audit: audit.group):
        click.echo(f"{group}\n")
        for audit in audits:
            _print_audit(audit)


def _print_audit(audit: Audit) -> None:
    names, lines = [audit.name], [audit.question]
    for parameter in audit.parameters:
        name, default = parameter.name.upper(), parameter.default
        names.append(name if default is None else f"[{name}]")
        known = f' (default: "{default}")' if default is not None else ""
        lines.append(f"{name}: {parameter.description}{known}")
    if audit.check:
        lines.append(f"A check: exit code 4 if there are rows. It holds: {audit.check}.")
    click.echo(f"  {' '.join(names)}")
    for line in lines:
        click.echo(_indented(line))
    click.echo()


def print_audit(result: AuditResult, format: str) -> None:
    """The rows in the format. ``VerificationError`` where the audit is a check that failed."""
    columns = result.audit.columns
    if format == "json":
        print_json([dict(zip(columns, row, strict=True)) for row in result.rows])
    elif format == "csv":
        import csv

        out = StringIO()
        rows = [[as_cell(value) for value in row] for row in result.rows]
        csv.writer(out, lineterminator="\n").writerows([columns, *rows])
        write_bytes(out.getvalue().encode("utf-8", "replace"))
    elif result.rows:
        most = None if result.passed is None else SHOWN
        shown = [[one_line(cell) for cell in row] for row in result.rows[:most]]
        _show_whole_words(columns, shown)
        if len(result.rows) > len(shown):
            more = many(len(result.rows) - len(shown), "more row")
            say(f"{more}; --json lists all of them.")
    if result.passed:
        say(f"{result.audit.title}: all is well.")
    elif result.passed is False:
        raise VerificationError(f"{result.audit.title}: {len(result.rows)} violations.")
    elif not result.rows:
        say(f"{result.audit.title}: nothing to report.")


def _show_whole_words(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The rows as a table; one below the other on a terminal in which it would break words."""
    width = console().width
    if not is_terminal():
        show(table(columns, rows))
    elif widths := _widths([columns, *rows], width):
        show(table(columns, rows, widths))
    else:
        for row in rows:
            click.echo("\n".join(_block(columns, row, width)))


def _block(columns: Sequence[str], row: Sequence[str], width: int) -> Iterator[str]:
    indent = ""
    for column, cell in zip(columns, row, strict=True):
        text = f"{safe(column)}: {safe(cell)}".rstrip()
        yield fill(
            text,
            max(width, _LEAST),
            initial_indent=indent,
            subsequent_indent=_INDENT * 2,
            break_long_words=False,
            break_on_hyphens=False,
        )
        indent = _INDENT


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """What each column of a table of this width gets, as level as they need it; none where one
    would be narrower than a word in it."""
    from rich.cells import cell_len

    columns = [[safe(cell) for cell in column] for column in zip(*rows, strict=True)]
    wanted = [max(map(cell_len, column)) for column in columns]
    found = [
        max(cell_len(w) for cell in column for w in cell.split() or [""]) for column in columns
    ]
    room = width - GAP * (len(found) - 1) - sum(found)
    if room < 0:
        return []
    for _ in range(min(room, sum(wanted) - sum(found))):
        narrow = [n for n, have in enumerate(found) if have < wanted[n]]
        found[min(narrow, key=found.__getitem__)] += 1
    return found


def print_integrity(found: Integrity, *, as_json: bool) -> None:
    """What was checked, what is wrong, and the head to save. ``VerificationError`` for a record
    that is not intact."""
    if as_json:
        print_json(found)
    else:
        for problem in found.problems[:SHOWN]:
            subject, detail = one_line(problem.subject), one_line(problem.detail)
            click.echo(f"{problem.kind} {problem.what}: {subject}\n    {detail}")
        if len(found.problems) > SHOWN:
            more = many(len(found.problems) - SHOWN, "more problem")
            say(f"{more}; --json lists all of them.")
        _say_checked(found)
    if not found.ok:
        problems = many(len(found.problems), "problem")
        raise VerificationError(f"The record is not as it was sealed: {problems}.")


def _say_checked(found: Integrity) -> None:
    if found.ok:
        click.echo(
            f"The record is intact: {many(found.bundles, 'bundle')} and "
            f"{many(found.batches, 'batch', 'batches')}, {found.quads} quads, "
            f"{many(found.texts, 'text')}."
        )
    from tgraph.explain.integrity.erasures import counted

    for erased in found.erased:
        what = counted(erased.bundles, erased.batches, erased.texts)
        click.echo(
            f"Erased on {erased.time[:10]}, not tampered with: {erased.document} "
            f"({one_line(erased.reason)}): {what}."
        )
    if found.saved_at is not None:
        click.echo(f"The saved head is that of entry {found.saved_at}.")
    if found.signatures is not None:
        _say_signed(found.signatures)
    if found.unreferenced:
        texts = many(len(found.unreferenced), "text is", "texts are")
        say(f"{texts} kept that nothing on record needs; see --json.")
    click.echo(f"Head of the chain, after entry {found.sequence}: {found.head}")


def _say_signed(found: Signatures) -> None:
    """Which entries the key's signatures cover, from when on, and which none does."""
    click.echo(f"Signatures by the key {found.key[:16]}: {found.valid} valid.")
    for stretch in found.stretches[-SHOWN:]:
        which = f"entries {stretch.first} to {stretch.last}"
        if stretch.first == stretch.last:
            which = f"entry {stretch.first}"
        how = f"signed {stretch.time}" if stretch.signature else "covered by no signature"
        click.echo(f"  {which}: {how}")
    if found.others:
        click.echo(f"  {found.others} signatures are by other keys.")
