"""Why an answer is as it is, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click

from tgraph.cli.terminal import json_text, many, one_line, safe
from tgraph.errors import VerificationError
from tgraph.explain.earlier import Place
from tgraph.explain.verified import JudgedSentence, Verification
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


# --- verification ---------------------------------------------------------------------------------


def print_verification(found: Verification, *, as_json: bool) -> None:
    """The verdicts as text or as JSON. ``VerificationError`` where a sentence lacks support."""
    if as_json:
        from tgraph.cli.schemas import verification_shape

        click.echo(json_text(verification_shape().plain(found)))
    else:
        for line in _verification_lines(found):
            click.echo(safe(line))
    if not found.passed:
        wrong = sum(n for verdict, n in found.counts.items() if verdict not in _FINE)
        lack = "lacks" if wrong == 1 else "lack"
        sentences = many(len(found.sentences), "sentence")
        raise VerificationError(f"{wrong} of {sentences} {lack} support.")


_FINE = ("supported", "undecided")


def _verification_lines(found: Verification) -> Iterator[str]:
    for number, sentence in enumerate(found.sentences, 1):
        yield f"{number}. [{sentence.verdict}] {one_line(sentence.text)}"
        yield from _sentence_lines(sentence)
    yield f"Judge: {found.judge}"
    yield "Verdicts: " + ", ".join(f"{n} {verdict}" for verdict, n in found.counts.items())
    yield f"Citation recall: {_share(found.recall)}, precision: {_share(found.precision)}"
    yield f"On record: {found.verification}"
    yield from (f"Note: {note}" for note in found.notes)


def _sentence_lines(sentence: JudgedSentence) -> Iterator[str]:
    if sentence.reason:
        yield f"   {one_line(sentence.reason, _LONGEST)}"
    for place in sentence.citations:
        page = f", page {place.page}" if place.page is not None else ""
        beside = "" if place.precise else "  (neither supports it alone nor is needed)"
        yield f"   “{one_line(place.quote, _LONGEST)}”{beside}"
        yield f"     {one_line(place.path)}{page}, characters {place.start}–{place.end}"
    for step in sentence.trail:
        yield f"   back to {step.step}: {step.verdict}"
    if sentence.lost:
        yield f"   lost at: {sentence.lost.step} ({sentence.lost.item})"
        yield f"     {one_line(sentence.lost.reason, _LONGEST)}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def where(place: Place) -> str:
    """The place in words."""
    page = f", page {place.page}" if place.page is not None else ""
    return f"{one_line(place.path or place.title)}{page}, characters {place.start}–{place.end}"
