"""``tgraph source``, also ``tg-show-extraction-provenance``."""

from __future__ import annotations

import click

from tgraph.cli.options import common, connection
from tgraph.cli.running import command, opened


@command("source")
@click.argument("document", metavar="DOC")
@click.option("--text", is_flag=True, help="Write the stored text, exactly as citations count it.")
@click.option("--page", type=click.IntRange(min=1), metavar="N", help="With --text: this page.")
@click.option("--format", type=click.Choice(["tree", "json"]), default="tree", show_default=True)
@click.option("--show-content", is_flag=True, help="Show the beginning of each chunk's text.")
@click.option(
    "--max-content", type=click.IntRange(min=1), default=200, show_default=True, metavar="N"
)
@connection
@common
def source(
    document: str, text: bool, page: int | None, format: str, show_content: bool, max_content: int
) -> None:
    """Show what was extracted from a document, and from which characters.

    DOC is a path, a title, the document's IRI or content hash, or an unambiguous beginning of one.

    \b
    Examples:
      tgraph source endurance.md
      tgraph source nimrod.pdf --text --page 2
    """
    from tgraph.cli.terminal import print_json, show, write_bytes

    if page is not None and not text:
        raise click.UsageError("--page goes with --text.")
    with opened() as graph:
        if text:
            write_bytes(graph.source_text(document, page).encode("utf-8", "surrogatepass"))
            return
        found = graph.source(document)
        if format == "json":
            print_json(found)
        else:
            from tgraph.explain.render.trees import source_tree

            show(source_tree(found, content=max_content if show_content else None))
