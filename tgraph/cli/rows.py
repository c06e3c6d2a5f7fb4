"""Rows on stdout: what audits and queries give."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from textwrap import fill

import click

from tgraph.cli.terminal import (
    GAP,
    console,
    is_terminal,
    json_text,
    one_line,
    safe,
    say,
    show,
    table,
    write_bytes,
)
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import VerificationError
from tgraph.explain.audit import AuditResult
from tgraph.explain.sparql import Bounds
from tgraph.vocabulary import PREFIXES

_LITERAL = re.compile(r'"((?:[^"\\]|\\(?:["\\nrtbf]|u[0-9A-Fa-f]{4}))*)"(?:@([\w-]+)|\^\^<[^>]*>)?')
TABLE_ROWS = 1000
"""As many rows as a table shows unless told otherwise."""
_LEAST, _INDENT = 20, "  "


def print_audit(result: AuditResult, format: str) -> None:
    """The rows in the format. ``VerificationError`` where the audit is a check that failed."""
    columns = result.audit.columns
    if format == "json":
        click.echo(json_text([dict(zip(columns, row, strict=True)) for row in result.rows]))
    elif format == "csv":
        write_bytes(_csv([columns, *result.rows]).encode("utf-8", "replace"))
    elif result.rows:
        _show_whole_words(columns, [[one_line(cell) for cell in row] for row in result.rows])
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


def _csv(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def print_query(graph: KnowledgeGraph, query: str, format: str, bounds: Bounds) -> None:
    """The result of a query as a table, or streamed in another format."""
    if format == "table":
        _table(graph, query, bounds)
        return
    last = b"\n"
    for block in graph.sparql_stream(query, format, bounds):
        write_bytes(block)
        last = block[-1:]
    if last != b"\n":
        write_bytes(b"\n")


def _table(graph: KnowledgeGraph, query: str, bounds: Bounds) -> None:
    most = bounds.limit or TABLE_ROWS
    lines = _lines(graph, query, Bounds(bounds.timeout, bounds.memory, most + 1))
    columns = json.loads(next(lines))
    rows = [[_term(cell) for cell in json.loads(line)] for line in lines]
    show(table(columns, rows[:most]))
    if not rows:
        say("No results.")
    elif len(rows) > most and bounds.limit is None:
        say(f"These are the first {most} rows; --limit N or another --format shows more.")


def _lines(graph: KnowledgeGraph, query: str, bounds: Bounds) -> Iterator[bytes]:
    rest = b""
    for block in graph.sparql_stream(query, "lines", bounds):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _term(text: str | None) -> str:
    """A term as a person reads it: IRIs with the known prefixes, plain strings without quotes."""
    if text is None:
        return ""
    if text.startswith("<") and not text.startswith("<<"):
        for prefix, namespace in PREFIXES.items():
            if text.startswith(f"<{namespace}"):
                return f"{prefix}:{text[len(namespace) + 1 : -1]}"
        return text[1:-1]
    literal = _LITERAL.fullmatch(text)
    if literal is None:
        return one_line(text)
    value = one_line(json.loads(f'"{literal[1]}"', strict=False))
    return f"{value} @{literal[2]}" if literal[2] else value
