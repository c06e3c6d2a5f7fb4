"""``tgraph why-not``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, opened
from tgraph.cli.terminal import one_line, print_json, print_lines

if TYPE_CHECKING:
    from tgraph.explain.earlier import Place
    from tgraph.explain.whynot import WhyNot


_CAUSES = {
    "used": "used in the answer after all",
    "not-in-corpus": "not in the corpus",
    "not-extracted": "in the corpus but not extracted",
    "not-linked": "extracted but not linked to the question",
    "beyond-limit": "linked but beyond a limit",
    "not-selected": "retrieved but not selected",
    "not-used": "selected but not used in the answer",
}
_LONGEST = 160


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
    with opened() as graph:
        print_why_not(graph.why_not(session, expected), as_json=as_json)


def print_why_not(found: WhyNot, *, as_json: bool) -> None:
    """The cause with what it rests on, as text or as JSON."""
    if as_json:
        print_json(found)
        return
    lines = [f"{found.kind}: {found.label}", f"cause: {_CAUSES[found.cause]}", found.reason]
    for item in found.items:
        rank = f"rank {item.rank}, " if item.rank else ""
        said = f"{item.kind}: {one_line(item.label, _LONGEST)}  ({rank}score {item.score:.2f})"
        lines.append(f"  {said}")
        if item.reason:
            lines.append(f"    {one_line(item.reason, _LONGEST)}")
    for place in found.places:
        lines.append(f"  “{one_line(place.quote, _LONGEST)}”")
        lines.append(f"    {_where(place)}")
    lines += [f"Note: {note}" for note in found.notes]
    print_lines(lines)


def _where(place: Place) -> str:
    """The place in words."""
    page = f", page {place.page}" if place.page is not None else ""
    return f"{one_line(place.path or place.title)}{page}, characters {place.start}–{place.end}"
