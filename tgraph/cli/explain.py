"""``tgraph verify`` and ``tgraph why-not``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli import completion
from tgraph.cli.options import chat_options, common, settings_of
from tgraph.cli.running import command, open_call_graph
from tgraph.cli.terminal import format_count, one_line, place_text, print_json, print_lines
from tgraph.errors import VerificationError

if TYPE_CHECKING:
    from tgraph.explain.assess.verification import JudgedAnswer, JudgedSentence, Verification
    from tgraph.explain.whynot.causes import WhyNot


_LONGEST = 160


@command("verify")
@click.argument(
    "session", metavar="[ID]", default="last", shell_complete=completion.complete_sessions
)
@click.option("--lexical", is_flag=True, help="Judge by words, without model or reader.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@chat_options
@common
def verify(session: str, lexical: bool, as_json: bool, **flags: Any) -> None:
    """Check whether the cited quotes entail each sentence, and whether the answer answers.

    The language model judges. Without a model, the reader model judges if possible, else a
    comparison of words: a sentence that stands word for word in a cited place is quoted, and for
    any other sentence the cited places must contain the words, numbers and names. If support is
    missing, the command follows the record back to the first step that lost the support. The
    verdicts are recorded and shown by `trace`.

    The answer as a whole: the short answer must be stated by a citation, and the reader reads the
    evidence of the selection once more: its probabilities must lead to the recorded verdict and to
    the short answer that was shown. With `--lexical`, only the short answer is checked.

    Exit code 4: a sentence is not supported, or cites nothing, or the answer does not answer.

    \b
    Examples:
      tgraph verify
      tgraph verify 1cc5e01a --lexical
      tgraph verify last --json | jq .recall
    """
    with open_call_graph(settings_of(flags)) as graph:
        print_verification(graph.verify(session, lexical=lexical), as_json=as_json)


def print_verification(found: Verification, *, as_json: bool) -> None:
    """The verdicts as text or as JSON. ``VerificationError`` where a sentence lacks support."""
    if as_json:
        from tgraph.engine.json_judgements import verification_json

        print_json(verification_json(found))
    else:
        print_lines(_verification_lines(found))
    if not found.is_supported:
        from tgraph.explain.assess.verification import FINE

        wrong = sum(n for verdict, n in found.counts.items() if verdict not in FINE)
        lack = "lacks" if wrong == 1 else "lack"
        sentences = format_count(len(found.sentences), "sentence")
        faults = [f"{wrong} of {sentences} {lack} support."] if wrong else []
        if found.answer is not None and found.answer.verdict not in FINE:
            faults.append(f"The answer does not hold: {found.answer.reason}.")
        raise VerificationError(" ".join(faults))


def _verification_lines(found: Verification) -> Iterator[str]:
    for number, sentence in enumerate(found.sentences, 1):
        yield f"{number}. [{sentence.verdict}] {one_line(sentence.text)}"
        yield from _sentence_lines(sentence)
    if found.answer is not None:
        yield from _answer_lines(found.answer)
    yield f"Judge: {found.judge}"
    yield "Verdicts: " + ", ".join(f"{n} {verdict}" for verdict, n in found.counts.items())
    yield f"Citation recall: {weight_text(found.recall)}, precision: {weight_text(found.precision)}"
    yield f"On record: {found.verification}"
    yield from (f"Note: {note}" for note in found.notes)


def _answer_lines(judged: JudgedAnswer) -> Iterator[str]:
    yield f"Answer: [{judged.verdict}] recorded as {judged.recorded.replace('_', ' ')}"
    yield f"   {one_line(judged.reason)}"
    if judged.recomputed:
        yield (
            f"   probability that the documents answer: {weight_text(judged.confidence)} on record,"
            f" {weight_text(judged.recomputed_confidence)} read again"
        )
    if (short := judged.short) is not None:
        yield f"Short answer: [{short.verdict}] {one_line(short.text)}"
        yield f"   {one_line(short.reason)}"
        yield (
            f"   probability that it is right: {weight_text(short.probability)} on record,"
            f" {weight_text(short.recomputed)} read again"
        )


def _sentence_lines(sentence: JudgedSentence) -> Iterator[str]:
    if sentence.reason:
        yield f"   {one_line(sentence.reason, _LONGEST)}"
    for place in sentence.citations:
        beside = "" if place.precise else "  (neither supports the sentence alone nor is necessary)"
        yield f"   “{one_line(place.quote, _LONGEST)}”{beside}"
        yield f"     {place_text(place.path, place.page, place.start, place.end)}"
    for step in sentence.trail:
        yield f"   back to {step.step}: {step.verdict}"
    if sentence.lost:
        yield f"   lost at: {sentence.lost.step} ({sentence.lost.item})"
        yield f"     {one_line(sentence.lost.reason, _LONGEST)}"


@command("why-not")
@click.argument("session", metavar="ID", shell_complete=completion.complete_sessions)
@click.argument("expected", metavar="X")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def why_not(session: str, expected: str, as_json: bool) -> None:
    """Explain why the expected X is not in the answer of the session ID.

    X is the name of an entity, a fact ("subject — predicate — object", or a sentence that names
    subject and object), a document's path, words of a document, or an IRI. The cause is exactly one
    of: used after all, not in the corpus, in the corpus but not extracted, kept out by a strict
    ontology, not linked to the question, beyond a limit, retrieved but not selected, selected but
    not used. No model is called.

    \b
    Examples:
      tgraph why-not last "Oscar Wisting"
      tgraph why-not last "Amundsen — reached — South Pole"
      tgraph why-not 1cc5e01a docs/fram.md --json
    """
    with open_call_graph() as graph:
        print_why_not(graph.why_not(session, expected), as_json=as_json)


def print_why_not(found: WhyNot, *, as_json: bool) -> None:
    """Print the cause with its grounds, as text or JSON."""
    if as_json:
        print_json(found)
        return
    print_lines(found.lines())


def weight_text(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
