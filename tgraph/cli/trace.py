"""``tgraph trace``, also ``tg-show-explain-trace``, and ``tgraph export``."""

from __future__ import annotations

from pathlib import Path

import click

from tgraph.cli.options import common, connection
from tgraph.cli.running import command, opened
from tgraph.cli.terminal import json_text, show, text_of, write_result

RECORD_FORMATS = (
    *("trig", "turtle", "nquads", "json-ld", "rdf-xml"),
    *("prov-n", "prov-json", "prov-xml", "dot", "svg"),
)


FORMATS = ("text", "json", "html", *RECORD_FORMATS)


@command("trace")
@click.argument("session", metavar="[ID]", default="last")
@click.option("--format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file.")
@click.option(
    "--all", "everything", is_flag=True, help="Also the rejected candidates, and every quote."
)
@click.option("--max-answer", type=click.IntRange(min=1), metavar="N", help="Cut the answer here.")
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
    with opened() as graph:
        if format == "text":
            from tgraph.explain.render.trees import trace_tree

            tree = trace_tree(graph.trace(session), everything=everything, most=max_answer)
            if output is None:
                show(tree)
            else:
                write_result(text_of(tree).encode(), output)
        elif format == "json":
            write_result((json_text(graph.trace(session).as_dict()) + "\n").encode(), output)
        elif format == "html":
            write_result(graph.report(session).encode(), output)
        else:
            write_result(graph.export(session, format), output)


@command("export")
@click.argument("session", metavar="[ID]", default="last")
@click.option("--format", type=click.Choice(RECORD_FORMATS), default="trig", show_default=True)
@click.option(
    "--vocabulary",
    type=click.Choice(["tgraph", "trustgraph"]),
    default="tgraph",
    show_default=True,
    help="Whose names: tgraph's, or TrustGraph's for its own reader.",
)
@click.option("--classic", is_flag=True, help="Without triple terms: edges as rdf:Statement.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file.")
@common
def export(session: str, format: str, vocabulary: str, classic: bool, output: Path | None) -> None:
    """Write the record of a session, with all that it refers to.

    TriG and N-Quads keep the graphs; JSON-LD, RDF/XML and PROV have no triple terms, so edges are
    written the classic way there. DOT and SVG draw how the answer came about.

    \b
    Examples:
      tgraph export last --format prov-n
      tgraph export 1cc5e01a --format svg -o answer.svg
      tgraph export last --format turtle --vocabulary trustgraph
    """
    with opened() as graph:
        written = graph.export(session, format, vocabulary=vocabulary, classic=classic)
        write_result(written, output)
