"""``tgraph import``: import of foreign graphs."""

from __future__ import annotations

from dataclasses import asdict
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
@click.option(
    "--format", "format_", metavar="NAME", help="The format of the files. Default: detected."
)
@click.option("--base", metavar="IRI", default="", help="The base IRI of relative IRIs.")
@click.option(
    "--lang",
    "languages",
    metavar="CODES",
    default="",
    help=(
        "The preferred languages of names, such as de,fr. Default: names without a language, "
        "then en."
    ),
)
@click.option("--reinstate", is_flag=True, help="Include retracted documents again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Show failures, but no progress.")
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
    """Import existing graphs: files, or folders with files.

    RDF 1.2 is read as Turtle, TriG, N-Triples, N-Quads, RDF/XML and JSON-LD, also packed by
    gzip (.gz). Resources keep their IRIs. The evidence of a triple is a line of the file, which
    answers quote. Unreadable and mended lines and statements are listed with their numbers, all
    others are imported, and the exit code is 1. Unchanged files are skipped; a changed file
    replaces the earlier version.

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
        graph_import = GraphImport(paths, format_, order, base, reinstate)
        report = ImportRun(graph.opened.setup(progress, message)).run(graph_import)
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
        outcome = "Mended" if row.mended else "Skipped"
        print_message(f"{outcome}: {row.file}:{row.row}: {row.reason}")
    if (overflow := report.skipped_count - _SHOWN) > 0:
        print_message(f"Skipped: {format_count(overflow, 'more line')}, which --json lists.")


def _report_facts(report: ImportReport, root: str) -> dict[str, Any]:
    from tgraph.engine.json_index_runs import index_json

    skipped = [asdict(row) for row in report.skipped]
    return {**index_json(report, root), "skipped": skipped, "skipped_count": report.skipped_count}
