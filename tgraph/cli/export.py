"""``tgraph export``: the record of a session, or what the graph knows, for others."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tgraph.cli import completion
from tgraph.cli.options import common
from tgraph.cli.running import command, opened
from tgraph.cli.terminal import many, say, write_result
from tgraph.cli.trace import RECORD_FORMATS
from tgraph.errors import UsageError

KNOWLEDGE_FORMATS = ("trig", "turtle", "nquads", "graphml", "csv", "graphrag", "markdown")
CRATE = "crate"
_EVERY = tuple(dict.fromkeys((*RECORD_FORMATS, *KNOWLEDGE_FORMATS, CRATE)))


@command("export")
@click.argument("session", metavar="[ID]", required=False, shell_complete=completion.sessions)
@click.option("--format", type=click.Choice(_EVERY), default="trig", show_default=True)
@click.option(
    "--vocabulary",
    type=click.Choice(["tgraph", "trustgraph"]),
    default="tgraph",
    show_default=True,
    help="Whose names: tgraph's, or TrustGraph's for its own reader.",
)
@click.option("--classic", is_flag=True, help="Without triple terms: edges as rdf:Statement.")
@click.option(
    "--core",
    is_flag=True,
    help="Without calls, ratings, what was rejected, and what the answer does not rest on.",
)
@click.option("--knowledge", is_flag=True, help="What the graph knows, instead of a session.")
@click.option("--with-sources", is_flag=True, help="With --knowledge: also where it is stated.")
@click.option("--hash", "hash_only", is_flag=True, help="With --knowledge: print its hash alone.")
@click.option(
    "--without-texts",
    is_flag=True,
    help="With the format crate: only the hashes of pages and calls.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file, or a new folder.")
@common
def export(
    session: str | None,
    format: str,
    vocabulary: str,
    classic: bool,
    core: bool,
    knowledge: bool,
    with_sources: bool,
    hash_only: bool,
    without_texts: bool,
    output: Path | None,
) -> None:
    """Write the record of a session, with all that it refers to; or what the graph knows.

    Of a session TriG and N-Quads keep the graphs; JSON-LD, RDF/XML and PROV have no triple terms,
    so edges are written the classic way there. DOT and SVG draw how the answer came about.

    The format crate is an evidence package, for whoever has no access to the graph: a zip with the
    answer, the quotes, the pages, the record, the prompts, the calls and the report, which `tgraph
    verify-crate` checks and replays anywhere.

    With --knowledge: entities, edges with their attributes, and claims, as RDF 1.2 (trig, turtle,
    nquads), GraphML, CSV for Neo4j, GraphRAG's tables, or Markdown notes. The last three are
    several files, so name a folder.

    \b
    Examples:
      tgraph export last --format prov-n
      tgraph export 1cc5e01a --format svg -o answer.svg
      tgraph export last --format crate -o evidence.zip
      tgraph export last --format turtle --vocabulary trustgraph
      tgraph export --knowledge --with-sources -o knowledge.trig
      tgraph export --knowledge --format graphrag -o tables/
      tgraph export --knowledge --hash
    """
    if without_texts and format != CRATE:
        raise UsageError("--without-texts is there for evidence packages.", "Add --format crate.")
    if knowledge:
        if session or classic or core or vocabulary != "tgraph":
            raise UsageError("--knowledge is not of a session.", "Leave out what is.")
        _export_knowledge(format, output, sources=with_sources, hash_only=hash_only)
        return
    if format == CRATE and not (with_sources or hash_only):
        if classic or core or vocabulary != "tgraph":
            raise UsageError("An evidence package holds the whole record.", "Leave out the rest.")
        _export_package(session or "last", output, texts=not without_texts)
        return
    if with_sources or hash_only or format not in RECORD_FORMATS:
        raise UsageError("This is there for knowledge, not for a session.", "Add --knowledge.")
    with opened() as graph:
        written = graph.export(
            session or "last", format, vocabulary=vocabulary, classic=classic, core=core
        )
        write_result(written, output)


def _export_package(session: str, output: Path | None, *, texts: bool) -> None:
    if output is None:
        raise UsageError("An evidence package is a zip file.", "Name it with -o FILE.zip.")
    with opened() as graph:
        made = graph.package(session, texts=texts)
    write_result(made.data, output)
    say(f"Wrote {output}: {many(made.files, 'file')}, {len(made.data) / 1000:,.0f} kB.")
    say(f"SHA-256 of its manifest: {made.manifest}")
    if made.no_replay:
        say(f"Note: it can't be replayed from itself. {made.no_replay}")
    for note in made.notes:
        say(f"Note: {note}")


def _export_knowledge(format: str, output: Path | None, *, sources: bool, hash_only: bool) -> None:
    if format not in KNOWLEDGE_FORMATS:
        every = ", ".join(KNOWLEDGE_FORMATS)
        raise UsageError(f"There is no format {format!r} for knowledge.", f"There are: {every}.")
    with opened() as graph:
        if hash_only:
            found = graph.knowledge_hash()
            click.echo(found.hash)
            entities = many(found.entities, "entity", "entities")
            counted = f"{entities}, {many(found.edges, 'edge')}, {many(found.claims, 'claim')}"
            say(f"{counted}: {many(found.quads, 'statement')}")
        elif output is None:
            sys.stdout.flush()
            graph.export_knowledge(sys.stdout.buffer, format, sources=sources)
            sys.stdout.buffer.flush()
        else:
            graph.export_knowledge(output, format, sources=sources)
            say(f"Wrote {output}")
