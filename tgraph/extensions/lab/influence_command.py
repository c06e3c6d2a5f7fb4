"""``tgraph influence``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli import completion
from tgraph.cli.explain import weight_text
from tgraph.cli.options import chat_options, common, settings_of
from tgraph.cli.running import Command, command, open_call_graph
from tgraph.cli.terminal import (
    build_table,
    format_count,
    one_line,
    print_json,
    print_lines,
    print_renderable,
)
from tgraph.extensions.lab.influence import REPEATS

if TYPE_CHECKING:
    from tgraph.extensions.lab.influence.values import (
        Influence,
        InfluenceEstimate,
        ItemInfluence,
        SentenceInfluence,
    )

_short = partial(one_line, most=100)


class _InfluenceCommand(Command):
    interrupted = (
        "Interrupted. The replies so far are kept, and the same command continues from them."
    )


_number = partial(click.option, type=click.IntRange(min=1), metavar="N")


@command("influence", cls=_InfluenceCommand)
@click.argument(
    "session", metavar="[ID]", default="last", shell_complete=completion.complete_sessions
)
@click.option("--estimate", is_flag=True, help="Say what it would cost, and do nothing.")
@_number("--budget", help="Calls at most.")
@_number(
    "--repeats", default=REPEATS, show_default=True, help="Runs of one kind where answers differ."
)
@_number("--concurrency", help="Calls at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@chat_options
@common
def influence(session: str, as_json: bool, **flags: Any) -> None:
    """Which of the selected edges does an answer depend on?

    The answer is written again without each of them, several times where the model's answers differ
    anyway, and what it still says is compared. That costs calls of the model: how many is said
    first, and `--estimate` stops there. Without a model it is free. The weights are recorded;
    `trace` shows them.

    \b
    Examples:
      tgraph influence --estimate
      tgraph influence last --budget 30
      tgraph influence 1cc5e01a --json | jq .cited_set
    """
    from tgraph.cli.progress import show_progress
    from tgraph.extensions.lab.influence.run import analyse_influence, prepare_analysis

    estimates, quiet = flags.pop("estimate"), flags.pop("quiet")
    options = {name: flags.pop(name) for name in ("budget", "repeats")}
    with open_call_graph(settings_of(flags)) as graph:
        if estimates:
            cost = prepare_analysis(graph.opened, session, **options).estimate()
            if as_json:
                print_json(cost)
            else:
                print_lines(_estimate_lines(cost))
            return
        with show_progress(quiet) as (progress, _):
            analysis = analyse_influence(graph.opened, session, progress=progress, **options)
        print_influence(analysis, as_json=as_json)


def _estimate_lines(found: InfluenceEstimate) -> Iterator[str]:
    sentences = format_count(found.sentences, "sentence")
    yield f"Selected:   {format_count(found.items, 'item')} for {sentences}"
    yield f"Method:     {found.method}, each item left out in turn"
    if found.model is None:
        yield "Model:      none; the embedded default writes without calls or cost"
        return
    yield f"Model:      {found.model}"
    yield f"Calls:      {found.calls:,}, of which {found.known:,} were had before"
    yield f"Later:      at most {found.later:,} more, where answers differ by themselves"
    yield f"Tokens in:  about {found.input_tokens:,}"
    yield f"Tokens out: about {found.output_tokens:,}"
    if found.cost is not None:
        yield f"Cost:       about {found.cost:,.2f} USD, without discounts and retries"


def print_influence(found: Influence, *, as_json: bool) -> None:
    """Print the influence analysis as text or JSON."""
    if as_json:
        print_json(found)
        return
    if ranked := found.ranked_items:
        rows = [
            (weight_text(i.weight), "yes" if i.cited else "no", i.kind, _short(i.label))
            for i in ranked
        ]
        print_renderable(build_table(("weight", "cited", "kind", "the answer depends on"), rows))
    print_lines(_lines(found))


def _lines(found: Influence) -> Iterator[str]:
    yield ""
    idle = [item for item in found.items if not item.influential]
    yield from _idle_lines(idle, found)
    for number, sentence in enumerate(found.sentences, 1):
        yield f"{number}. {one_line(sentence.text)}"
        yield from _influence_sentence_lines(sentence)
    yield ""
    yield from _measures(found)
    yield f"On record: {found.analysis}"
    yield from (f"Note: {note}" for note in found.notes)
    yield from (f"Left out: {count} × {reason}" for reason, count in found.dropped.items())


def _idle_lines(idle: list[ItemInfluence], found: Influence) -> Iterator[str]:
    if not idle:
        return
    yield f"{len(idle)} of {len(found.items)} selected items have no influence above the noise."
    for item in idle:
        if item.cited:
            yield f"  cited all the same: {_short(item.label)}"
    yield ""


def _influence_sentence_lines(sentence: SentenceInfluence) -> Iterator[str]:
    for dependency in sentence.depends_on:
        cited = "cited" if dependency.cited else "not cited"
        yield f"   {dependency.weight:5.2f}  {cited}: {_short(dependency.label)}"
    if not sentence.depends_on:
        yield "   depends on no single item"
    if sentence.without_cited is not None:
        yield f"   without all that it cites: {_presence_text(sentence.without_cited)}"
    if sentence.without_cited and sentence.without_places is not None:
        presence = _presence_text(sentence.without_places)
        yield f"   without all that rests on those characters: {presence}"
    if sentence.without_anything:
        yield "   without any document: still said"
    if sentence.reproduced < 1:
        yield f"   with nothing removed: said in {sentence.reproduced:.0%} of the runs"


def _presence_text(said: bool) -> str:
    return "still said" if said else "not said"


def _measures(found: Influence) -> Iterator[str]:
    yield (
        f"Method: {found.method} (each item left out in turn),"
        f" {format_count(len(found.runs), 'run')} by {found.writer}, compared by {found.measure}"
    )
    yield f"Noise floor: {found.noise_floor:.2f}"
    cited = found.cited_set
    yield (
        f"Cited set: necessity {weight_text(cited.necessity)}, sufficiency"
        f" {weight_text(cited.sufficiency)}, F1 {weight_text(cited.f1)}"
        + (f" (runs differ by up to {cited.spread:.2f})" if cited.spread is not None else "")
    )
    yield f"Said without any document: {weight_text(found.parametric)} of the answer"
    idle, hidden = found.gap.cited_without_influence, found.gap.influential_uncited
    yield (
        f"Cited without influence: {len(idle)}; influential and not cited: {len(hidden)};"
        f" gap {found.gap.gap:.2f}"
    )
    usage = found.usage
    if usage.get("calls"):
        yield (
            f"Calls: {usage['calls']:,}, {usage['input_tokens']:,} tokens in,"
            f" {usage['output_tokens']:,} out"
        )
