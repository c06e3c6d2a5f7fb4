"""``tgraph export``: session records or graph knowledge in exchange formats."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from tgraph.cli import completion
from tgraph.cli.options import ExtensibleChoice, common
from tgraph.cli.running import command, open_call_graph
from tgraph.cli.terminal import format_count, print_message, write_result
from tgraph.cli.trace import CRATE, KNOWN_FORMATS, RECORD_FORMATS
from tgraph.errors import UsageError
from tgraph.plugins import SESSION_FORMATS

KNOWLEDGE_FORMATS = ("trig", "turtle", "nquads", "graphml", "csv", "graphrag", "markdown")
KNOWLEDGE_ONLY = frozenset(KNOWLEDGE_FORMATS) - frozenset(RECORD_FORMATS)
_EVERY = tuple(dict.fromkeys((*RECORD_FORMATS, *KNOWLEDGE_FORMATS, CRATE)))


@command("export")
@click.argument(
    "session", metavar="[ID]", required=False, shell_complete=completion.complete_sessions
)
@click.option(
    "--format",
    type=ExtensibleChoice(_EVERY, SESSION_FORMATS, KNOWN_FORMATS),
    default="trig",
    show_default=True,
)
@click.option(
    "--vocabulary",
    type=click.Choice(["tgraph", "trustgraph"]),
    default="tgraph",
    show_default=True,
    help="The vocabulary: tgraph's, or TrustGraph's for TrustGraph's own reader.",
)
@click.option("--classic", is_flag=True, help="Write edges as rdf:Statement, without triple terms.")
@click.option(
    "--core",
    is_flag=True,
    help=(
        "Leave out calls, ratings, rejected candidates, and selected items that the answer "
        "does not use."
    ),
)
@click.option(
    "--knowledge", is_flag=True, help="Export the knowledge of the graph, in place of a session."
)
@click.option(
    "--with-sources", is_flag=True, help="With --knowledge: include the places in documents."
)
@click.option(
    "--hash",
    "hash_only",
    is_flag=True,
    help="With --knowledge: print only the hash of the knowledge.",
)
@click.option(
    "--without-texts",
    is_flag=True,
    help="With the format crate: write only the hashes of pages and calls.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write to this file or new folder."
)
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
    """Export the record of a session with all referenced resources, or the knowledge of the graph.

    TriG and N-Quads keep the named graphs of a session. JSON-LD, RDF/XML and PROV have no triple
    terms, so edges are written as rdf:Statement. DOT and SVG draw the way from the documents to the
    answer.

    The format crate is an evidence package, for readers without access to the graph: a zip with the
    answer, the quotes, the pages, the record, the prompts, the calls and the report, which `tgraph
    verify-crate` checks and replays anywhere.

    With --knowledge: entities, edges with their attributes, and claims, as RDF 1.2 (trig, turtle,
    nquads), GraphML, CSV for Neo4j, GraphRAG's tables, or Markdown notes. The last three formats
    are several files: -o names a folder.

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
    if with_sources or hash_only or format in KNOWLEDGE_ONLY:
        raise UsageError("This is there for knowledge, not for a session.", "Add --knowledge.")
    with open_call_graph() as graph:
        written = graph.export(
            session or "last", format, vocabulary=vocabulary, classic=classic, core=core
        )
        write_result(written, output)


def _export_package(session: str, output: Path | None, *, texts: bool) -> None:
    from tgraph.engine.session_reader import SessionReader

    if output is None:
        raise UsageError("An evidence package is a zip file.", "Name it with -o FILE.zip.")
    with open_call_graph() as graph:
        written = SessionReader(graph.opened).write(session, CRATE, texts=texts)
    write_result(written.data, output)
    print_message(f"Wrote {output}: {written.summary}.")
    for note in written.notes:
        print_message(note)


def _export_knowledge(format: str, output: Path | None, *, sources: bool, hash_only: bool) -> None:
    if format not in KNOWLEDGE_FORMATS:
        every = ", ".join(KNOWLEDGE_FORMATS)
        raise UsageError(f"There is no format {format!r} for knowledge.", f"There are: {every}.")
    from tgraph.extensions.interchange.knowledge.formats import write_knowledge
    from tgraph.extensions.interchange.knowledge.statements import Knowledge, knowledge_source

    with open_call_graph() as graph:
        source = partial(knowledge_source, graph.opened)
        if hash_only:
            knowledge = Knowledge(graph.opened.read()).hash()
            click.echo(knowledge.hash)
            entities = format_count(knowledge.entities, "entity", "entities")
            edges = format_count(knowledge.edges, "edge")
            parts = f"{entities}, {edges}, {format_count(knowledge.claims, 'claim')}"
            print_message(f"{parts}: {format_count(knowledge.quads, 'statement')}")
        elif output is None:
            sys.stdout.flush()
            write_knowledge(source(), format, sys.stdout.buffer, sources=sources)
            sys.stdout.buffer.flush()
        else:
            write_knowledge(source(), format, output, sources=sources)
            print_message(f"Wrote {output}")
