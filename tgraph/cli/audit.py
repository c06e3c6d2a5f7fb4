"""``tgraph audit``: audit list, audit rows, and integrity check."""

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
from tgraph.cli.running import command, open_call_graph
from tgraph.cli.terminal import (
    GAP,
    build_table,
    create_console,
    escape_controls,
    format_count,
    is_terminal,
    one_line,
    print_json,
    print_message,
    print_renderable,
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
@click.argument("name", required=False, shell_complete=completion.complete_audits)
@click.argument("arguments", metavar="[ARG]...", nargs=-1)
@click.option("--ask", "question", metavar="QUESTION", help="Run the audit that answers this.")
@click.option("--list", "listing", is_flag=True, help="List the audits with their arguments.")
@click.option(
    "--format", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON; with integrity: the complete report."
)
@click.option(
    "--head", metavar="HASH", help="With integrity: a head of the chain that was saved earlier."
)
@click.option(
    "--public-key",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="With integrity: verify the signatures with this public key.",
)
@common
def audit(
    name: str | None,
    arguments: tuple[str, ...],
    question: str | None,
    listing: bool,
    format: str,
    as_json: bool,
    head: str | None,
    public_key: str | None,
) -> None:
    """Run an audit: a prepared query of the record.

    With --ask the audit is found by a question in words; what no audit accounts for is refused.

    Exit code 4: the audit is a check, and the check failed.

    \b
    Examples:
      tgraph audit --list
      tgraph audit documents-of-answer last
      tgraph audit answers-on-document endurance.md --format csv
      tgraph audit --ask "Which answers used endurance.md?"
      tgraph audit shapes all
      tgraph audit integrity --head HASH --public-key keys/record.pub
    """
    if listing:
        print_audits()
        return
    if question is not None:
        if name is not None:
            raise click.UsageError("Ask a question, or name an audit.")
        with open_call_graph() as graph:
            name, *asked = graph.find_audit(question)
            print_message(f"Audit: {' '.join(map(one_line, (name, *asked)))}")
            print_audit(graph.audit(name, *asked), "json" if as_json else format)
        return
    if name is None:
        raise click.UsageError("Name an audit, ask with --ask, or list them with --list.")
    if name != "integrity" and (head is not None or public_key is not None):
        raise click.UsageError("--head and --public-key are options of the audit integrity.")
    with open_call_graph() as graph:
        if name == "integrity":
            arguments = (*arguments, *([head] if head is not None else []))
            if len(arguments) > 1:
                raise click.UsageError("The audit integrity has at most one argument, the head.")
            if as_json or format == "table" or public_key is not None:
                integrity = graph.integrity(*arguments, public_key=public_key)
                print_integrity(integrity, as_json=as_json)
                return
        print_audit(graph.audit(name, *arguments), "json" if as_json else format)


def print_audits() -> None:
    """Print every audit with its arguments and question, group by group."""
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
        default_text = f' (default: "{default}")' if default is not None else ""
        lines.append(f"{name}: {parameter.description}{default_text}")
    if audit.check:
        lines.append(f"A check: exit code 4 if there are rows. The check requires: {audit.check}.")
    click.echo(f"  {' '.join(names)}")
    for line in lines:
        click.echo(_indented(line))
    click.echo()


def print_audit(result: AuditResult, format: str) -> None:
    """Print result rows in the given format.

    Raises ``VerificationError`` if the audit is a failed check."""
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
        row_limit = None if result.passed is None else SHOWN
        table_rows = [[one_line(cell) for cell in row] for row in result.rows[:row_limit]]
        _show_whole_words(columns, table_rows)
        if len(result.rows) > len(table_rows):
            remainder = format_count(len(result.rows) - len(table_rows), "more row")
            print_message(f"{remainder}; --json lists all of them.")
    if result.passed:
        print_message(f"{result.audit.title}: no problem.")
    elif result.passed is False:
        raise VerificationError(f"{result.audit.title}: {len(result.rows)} violations.")
    elif not result.rows:
        print_message(f"{result.audit.title}: nothing to report.")


def _show_whole_words(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows as a table; print a block per row if the table would break words on a
    terminal."""
    width = create_console().width
    if not is_terminal():
        print_renderable(build_table(columns, rows))
    elif widths := _column_widths([columns, *rows], width):
        print_renderable(build_table(columns, rows, widths))
    else:
        for row in rows:
            click.echo("\n".join(_format_block(columns, row, width)))


def _format_block(columns: Sequence[str], row: Sequence[str], width: int) -> Iterator[str]:
    indent = ""
    for column, cell in zip(columns, row, strict=True):
        text = f"{escape_controls(column)}: {escape_controls(cell)}".rstrip()
        yield fill(
            text,
            max(width, _LEAST),
            initial_indent=indent,
            subsequent_indent=_INDENT * 2,
            break_long_words=False,
            break_on_hyphens=False,
        )
        indent = _INDENT


def _column_widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return balanced column widths for a table of ``width``; empty if a column would be
    narrower than its longest word."""
    from rich.cells import cell_len

    columns = [[escape_controls(cell) for cell in column] for column in zip(*rows, strict=True)]
    full_widths = [max(map(cell_len, column)) for column in columns]
    column_widths = [
        max(cell_len(w) for cell in column for w in cell.split() or [""]) for column in columns
    ]
    room = width - GAP * (len(column_widths) - 1) - sum(column_widths)
    if room < 0:
        return []
    for _ in range(min(room, sum(full_widths) - sum(column_widths))):
        narrow = [n for n, have in enumerate(column_widths) if have < full_widths[n]]
        column_widths[min(narrow, key=column_widths.__getitem__)] += 1
    return column_widths


def print_integrity(found: Integrity, *, as_json: bool) -> None:
    """Print checked items, problems, and the chain head to save.

    Raises ``VerificationError`` if the record is not intact."""
    if as_json:
        print_json(found)
    else:
        for problem in found.problems[:SHOWN]:
            subject, detail = one_line(problem.subject), one_line(problem.detail)
            click.echo(f"{problem.kind} {problem.what}: {subject}\n    {detail}")
        if len(found.problems) > SHOWN:
            remainder = format_count(len(found.problems) - SHOWN, "more problem")
            print_message(f"{remainder}; --json lists all of them.")
        _say_checked(found)
    if not found.ok:
        problems = format_count(len(found.problems), "problem")
        raise VerificationError(f"The record differs from the sealed record: {problems}.")


def _say_checked(found: Integrity) -> None:
    if found.ok:
        click.echo(
            f"The record is intact: {format_count(found.bundles, 'bundle')} and "
            f"{format_count(found.batches, 'batch', 'batches')}, {found.quads} quads, "
            f"{format_count(found.texts, 'text')}."
        )
    from tgraph.explain.integrity.erasures import format_counts

    for erased in found.erased:
        counts = format_counts(erased.bundles, erased.batches, erased.texts)
        click.echo(
            f"Erased on {erased.time[:10]}, not tampered with: {erased.document} "
            f"({one_line(erased.reason)}): {counts}."
        )
    if found.saved_at is not None:
        click.echo(f"The saved head belongs to entry {found.saved_at}.")
    if found.signatures is not None:
        _say_signed(found.signatures)
    if found.unreferenced:
        texts = format_count(len(found.unreferenced), "text is", "texts are")
        print_message(f"{texts} stored that no record refers to; see --json.")
    click.echo(f"Head of the chain, after entry {found.sequence}: {found.head}")


def _say_signed(found: Signatures) -> None:
    """Print entries covered by the key's signatures, with times, and entries without a
    signature."""
    click.echo(f"Signatures by the key {found.key[:16]}: {found.valid} valid.")
    for stretch in found.stretches[-SHOWN:]:
        entries = f"entries {stretch.first} to {stretch.last}"
        if stretch.first == stretch.last:
            entries = f"entry {stretch.first}"
        how = f"signed {stretch.time}" if stretch.signature else "covered by no signature"
        click.echo(f"  {entries}: {how}")
    if found.others:
        click.echo(f"  {found.others} signatures belong to other keys.")
