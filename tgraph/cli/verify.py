"""``tgraph verify``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.options import chat_options, common, settings_of
from tgraph.cli.running import command, opened
from tgraph.cli.terminal import many, one_line, print_json, print_lines
from tgraph.errors import VerificationError

if TYPE_CHECKING:
    from tgraph.explain.verified import JudgedSentence, Verification

_LONGEST = 160


@command("verify")
@click.argument("session", metavar="[ID]", default="last")
@click.option("--lexical", is_flag=True, help="Judge by words, without a model.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@chat_options
@common
def verify(session: str, lexical: bool, as_json: bool, **flags: Any) -> None:
    """Check whether each sentence of an answer is entailed by what it cites.

    The model judges, or where there is none the words: a sentence that is quoted is supported, any
    other needs its words, numbers and names. Where support is missing, the record is walked back
    step by step to the first step that lost it. The verdicts are recorded; `trace` shows them.

    Exit code 4: a sentence is not supported, or cites nothing.

    \b
    Examples:
      tgraph verify
      tgraph verify 1cc5e01a --lexical
      tgraph verify last --json | jq .recall
    """
    with opened(settings_of(flags)) as graph:
        print_verification(graph.verify(session, lexical=lexical), as_json=as_json)


def print_verification(found: Verification, *, as_json: bool) -> None:
    """The verdicts as text or as JSON. ``VerificationError`` where a sentence lacks support."""
    if as_json:
        from tgraph.cli.schemas import verification_shape

        print_json(verification_shape().plain(found))
    else:
        print_lines(_verification_lines(found))
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
