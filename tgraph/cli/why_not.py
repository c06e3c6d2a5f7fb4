"""``tgraph why-not``."""

from __future__ import annotations

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, opened


@command("why-not")
@click.argument("session", metavar="ID")
@click.argument("expected", metavar="X")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def why_not(session: str, expected: str, as_json: bool) -> None:
    """Say why X, which was expected, is not in the answer of the session ID.

    X is an entity or a name of it, a fact ("subject — predicate — object", or a sentence that names
    both), a document's path, words of a document, or the IRI of any of them. The cause is exactly
    one of: used after all, not in the corpus, in the corpus but not extracted, not linked to the
    question, beyond a limit, retrieved but not selected, selected but not used. No model is asked.

    \b
    Examples:
      tgraph why-not last "Oscar Wisting"
      tgraph why-not last "Amundsen — reached — South Pole"
      tgraph why-not 1cc5e01a docs/fram.md --json
    """
    from tgraph.cli.reasons import print_why_not

    with opened() as graph:
        print_why_not(graph.why_not(session, expected), as_json=as_json)
