"""``tgraph trace``, also ``tg-show-explain-trace``."""

from __future__ import annotations

from pathlib import Path

import click

from tgraph.cli.export import FORMATS as RECORD_FORMATS
from tgraph.cli.options import common, connection
from tgraph.cli.running import command, opened

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
    from tgraph.cli.terminal import json_text, show, text_of, write_result

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
