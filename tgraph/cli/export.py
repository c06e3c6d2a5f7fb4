"""``tgraph export``."""

from __future__ import annotations

from pathlib import Path

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, opened

FORMATS = (
    *("trig", "turtle", "nquads", "json-ld", "rdf-xml"),
    *("prov-n", "prov-json", "prov-xml", "dot", "svg"),
)


@command("export")
@click.argument("session", metavar="[ID]", default="last")
@click.option("--format", type=click.Choice(FORMATS), default="trig", show_default=True)
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
    from tgraph.cli.terminal import write_result

    with opened() as graph:
        written = graph.export(session, format, vocabulary=vocabulary, classic=classic)
        write_result(written, output)
