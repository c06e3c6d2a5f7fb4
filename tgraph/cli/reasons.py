"""Why an answer is as it is, on the terminal."""

from __future__ import annotations

from dataclasses import asdict

import click

from tgraph.cli.terminal import json_text, one_line, safe
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


def print_why_not(found: WhyNot, *, as_json: bool) -> None:
    """The cause with what it rests on, as text or as JSON."""
    if as_json:
        click.echo(json_text(asdict(found)))
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
        lines.append(f"    {where(place)}")
    lines += [f"Note: {note}" for note in found.notes]
    for line in lines:
        click.echo(safe(line))


def where(place: Place) -> str:
    """The place in words."""
    page = f", page {place.page}" if place.page is not None else ""
    return f"{one_line(place.path or place.title)}{page}, characters {place.start}–{place.end}"
