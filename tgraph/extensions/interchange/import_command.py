"""``tgraph import``: import of foreign graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.index import describe_run, say_failures
from tgraph.cli.options import common
from tgraph.cli.running import Command, command, open_call_graph
from tgraph.cli.terminal import format_count, print_json, print_message

if TYPE_CHECKING:
    from tgraph.extensions.interchange.graph_import import ImportReport

_SHOWN = 20
"""Skipped rows that are told; ``--json`` lists more."""


class _Import(Command):
    interrupted = "Interrupted. Nothing half-done was published; the same command starts again."


@command("import", cls=_Import)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--format", "format_", metavar="NAME", help="The format; default: it is recognised.")
@click.option("--base", metavar="IRI", default="", help="What relative IRIs are read against.")
@click.option(
    "--lang",
    "languages",
    metavar="CODES",
    default="",
    help="Languages of names, the best first, as in de,fr. Default: names without one, then en.",
)
@click.option("--reinstate", is_flag=True, help="Take in again what was retracted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="No progress; failures are still told.")
@common
def import_(
    paths: tuple[str, ...],
    format_: str | None,
    base: str,
    languages: str,
    reinstate: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Take graphs that others made into the graph: files, or folders of them.

    RDF 1.2 is read as Turtle, TriG, N-Triples, N-Quads, RDF/XML and JSON-LD, also packed by gzip
    (.gz). Resources keep their IRIs, and every triple rests on its line, which an answer quotes. A
    line or statement that can't be read is told with its number, and the others are kept; then the
    exit code is 1. What is unchanged is left alone, what has changed supersedes what was there.

    \b
    Examples:
      tgraph import thesaurus.ttl --root my-graph
      tgraph import dump.nt.gz --lang de,en
      tgraph import data/ --base https://example.org/
    """
    from tgraph.cli.progress import show_progress
    from tgraph.extensions.interchange.graph_import import GraphImport, ImportRun

    order = tuple(filter(None, (code.strip() for code in languages.split(","))))
    with open_call_graph(create=True) as graph, show_progress(quiet) as (progress, message):
        wanted = GraphImport(paths, format_, order, base, reinstate)
        report = ImportRun(graph.opened.setup(progress, message)).run(wanted)
        root = str(graph.root)
    _say_skipped(report)
    say_failures(report)
    if as_json:
        print_json(_report_facts(report, root))
    elif not quiet:
        print_message(describe_run(report, root, "imported"))
    if report.failed or report.skipped_count:
        click.get_current_context().exit(1)


def _say_skipped(report: ImportReport) -> None:
    for row in report.skipped[:_SHOWN]:
        print_message(f"Skipped: {row.file}:{row.row}: {row.reason}")
    if (overflow := report.skipped_count - _SHOWN) > 0:
        print_message(f"Skipped: {format_count(overflow, 'more line')}, which --json lists.")


def _report_facts(report: ImportReport, root: str) -> dict[str, Any]:
    from tgraph.engine.json_index_runs import index_json

    skipped = [{"file": r.file, "row": r.row, "reason": r.reason} for r in report.skipped]
    return {**index_json(report, root), "skipped": skipped, "skipped_count": report.skipped_count}
