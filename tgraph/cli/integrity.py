"""What ``tgraph audit integrity`` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tgraph.cli.terminal import json_text, many, one_line, say
from tgraph.errors import VerificationError
from tgraph.explain.erased import counted

if TYPE_CHECKING:
    from tgraph.explain.integrity import Integrity
    from tgraph.explain.signed import Signatures

SHOWN = 50
"""Problems that are listed as text; JSON has all of them."""


def print_integrity(found: Integrity, *, as_json: bool) -> None:
    """What was checked, what is wrong, and the head to save. ``VerificationError`` for a record
    that is not intact."""
    if as_json:
        click.echo(json_text(asdict(found)))
    else:
        for problem in found.problems[:SHOWN]:
            subject, detail = one_line(problem.subject), one_line(problem.detail)
            click.echo(f"{problem.kind} {problem.what}: {subject}\n    {detail}")
        if len(found.problems) > SHOWN:
            more = many(len(found.problems) - SHOWN, "more problem")
            say(f"{more}; --json lists all of them.")
        _say_checked(found)
    if not found.ok:
        problems = many(len(found.problems), "problem")
        raise VerificationError(f"The record is not as it was sealed: {problems}.")


def _say_checked(found: Integrity) -> None:
    if found.ok:
        click.echo(
            f"The record is intact: {many(found.bundles, 'bundle')} and "
            f"{many(found.batches, 'batch', 'batches')}, {found.quads} quads, "
            f"{many(found.texts, 'text')}."
        )
    for erased in found.erased:
        what = counted(erased.bundles, erased.batches, erased.texts)
        click.echo(
            f"Erased on {erased.time[:10]}, not tampered with: {erased.document} "
            f"({one_line(erased.reason)}): {what}."
        )
    if found.saved_at is not None:
        click.echo(f"The saved head is that of entry {found.saved_at}.")
    if found.signatures is not None:
        _say_signed(found.signatures)
    if found.unreferenced:
        texts = many(len(found.unreferenced), "text is", "texts are")
        say(f"{texts} kept that nothing on record needs; see --json.")
    click.echo(f"Head of the chain, after entry {found.sequence}: {found.head}")


def _say_signed(found: Signatures) -> None:
    """Which entries the key's signatures cover, from when on, and which none does."""
    click.echo(f"Signatures by the key {found.key[:16]}: {found.valid} valid.")
    for stretch in found.stretches[-SHOWN:]:
        which = f"entries {stretch.first} to {stretch.last}"
        if stretch.first == stretch.last:
            which = f"entry {stretch.first}"
        if stretch.signature:
            click.echo(f"  {which}: signed {stretch.time}")
        else:
            click.echo(f"  {which}: covered by no signature")
    if found.others:
        click.echo(f"  {found.others} signatures are by other keys.")
