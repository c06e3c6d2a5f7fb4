"""Rows on stdout: what audits and queries give."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence

import click

from tgraph.cli.terminal import json_text, one_line, say, show, table, write_bytes
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import VerificationError
from tgraph.explain.audit import AuditResult
from tgraph.explain.sparql import Bounds
from tgraph.vocabulary import PREFIXES

_LITERAL = re.compile(r'"((?:[^"\\]|\\(?:["\\nrtbf]|u[0-9A-Fa-f]{4}))*)"(?:@([\w-]+)|\^\^<[^>]*>)?')
TABLE_ROWS = 1000
"""As many rows as a table shows unless told otherwise."""


def print_audit(result: AuditResult, format: str) -> None:
    """The rows in the format. ``VerificationError`` where the audit is a check that failed."""
    columns = result.audit.columns
    if format == "json":
        click.echo(json_text([dict(zip(columns, row, strict=True)) for row in result.rows]))
    elif format == "csv":
        write_bytes(_csv([columns, *result.rows]).encode("utf-8", "replace"))
    elif result.rows:
        show(table(columns, ([one_line(cell) for cell in row] for row in result.rows)))
    if result.passed:
        say(f"{result.audit.title}: all is well.")
    elif result.passed is False:
        raise VerificationError(f"{result.audit.title}: {len(result.rows)} violations.")
    elif not result.rows:
        say(f"{result.audit.title}: nothing to report.")


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
