"""What ``tgraph impact`` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tgraph.cli.listing import time
from tgraph.cli.terminal import json_text, many, one_line, say

if TYPE_CHECKING:
    from tgraph.explain.impact import AffectedAnswer, Impact

SHOWN = 50
"""Facts that are listed as text; JSON has all of them."""


def print_impact(found: Impact, *, as_json: bool) -> None:
    """The facts and answers as text, or everything as JSON."""
    if as_json:
        click.echo(json_text(asdict(found)))
        return
    standing = "" if found.standing else " (does not stand any more)"
    click.echo(f"{one_line(found.path)}: {one_line(found.title)}{standing}")
    click.echo(f"Facts that rest on it alone: {len(found.facts):,}")
    for fact in found.facts[:SHOWN]:
        click.echo(f"  {one_line(fact.fact)}")
    if len(found.facts) > SHOWN:
        say(f"{many(len(found.facts) - SHOWN, 'more fact')}; --json lists all of them.")
    click.echo(f"Facts that other documents support too: {found.shared:,}")
    click.echo(f"Answers that rest on it: {len(found.answers):,}")
    for answer in found.answers:
        _print_answer(answer)


def _print_answer(answer: AffectedAnswer) -> None:
    doubt = f", questioned since {time(answer.questioned)}" if answer.questioned else ""
    click.echo(f"  {answer.session} ({time(answer.started)}{doubt})")
    click.echo(f"    {one_line(answer.question)}")
    for sentence in answer.sentences:
        alone = " [rests on it alone]" if sentence.alone else ""
        click.echo(f"    {sentence.index + 1}. {one_line(sentence.text)}{alone}")
