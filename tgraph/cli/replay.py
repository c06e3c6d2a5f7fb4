"""``tgraph replay`` and ``tgraph diff``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tgraph.cli import completion
from tgraph.cli.options import common
from tgraph.cli.running import command, open_call_graph
from tgraph.cli.terminal import one_line, place_text, print_json, print_lines, print_message
from tgraph.errors import UsageError, VerificationError

if TYPE_CHECKING:
    from tgraph.engine.rerun.replay import Replay
    from tgraph.explain.trace.comparison import (
        Comparison,
        Moved,
        OneSided,
        OneSidedPlace,
        RecordDifference,
    )
    from tgraph.explain.trace.values import Trace


_LONGEST = 300
_MOST = 10
"""Candidates, selections and changes of one sort that are shown unless everything is wanted."""


@command("replay")
@click.argument(
    "session", metavar="[ID]", default="last", shell_complete=completion.complete_sessions
)
@click.option("--live", is_flag=True, help="Call the models again, and show what changed.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@common
def replay(session: str, live: bool, as_json: bool) -> None:
    """Ask a recorded question again from its record, and compare the two records.

    All replies come from the record: no model and no embedder is called. The replay itself is not
    recorded. If the knowledge has changed, the earlier knowledge is rebuilt from the record. With
    --live the models are called again, with the recorded prompts and parameters.

    Exit code 4: the two records differ (not with --live).

    \b
    Examples:
      tgraph replay last
      tgraph replay 1cc5e01a --live
    """
    with open_call_graph() as graph:
        replayed = graph.replay(session, live=live)
        if live:
            print_live(graph.trace(session), replayed, as_json=as_json)
        else:
            print_replay(replayed, as_json=as_json)


@command("diff")
@click.argument("before", metavar="A", shell_complete=completion.complete_sessions)
@click.argument("after", metavar="[B]", required=False, shell_complete=completion.complete_sessions)
@click.option(
    "--knowledge", is_flag=True, help="Compare the knowledge at A and B, in place of two sessions."
)
@click.option("--all", "everything", is_flag=True, help="Show all differences, without a limit.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.option("--exit-code", is_flag=True, help="Exit with code 4 if there is a difference.")
@common
def diff(
    before: str,
    after: str | None,
    knowledge: bool,
    everything: bool,
    as_json: bool,
    exit_code: bool,
) -> None:
    """Compare two sessions: parameters, candidates, selection, answer and citations.

    A and B are sessions, as for `tgraph trace`; B is the last one by default.

    With --knowledge: the entities, facts, claims and names that were added, removed or changed
    between A and B, with the documents and decisions that caused the change. A and B are dates or
    times, generations (`tgraph history`; 0 is before the first) or sessions; B is `now` by default.

    \b
    Examples:
      tgraph diff 1cc5e01a last
      tgraph diff 1cc5e01a 7a1d93b0 --json --exit-code
      tgraph diff --knowledge 2026-03-01
      tgraph diff --knowledge 3 4 --all
    """
    with open_call_graph() as graph:
        if knowledge:
            from tgraph.cli.history import print_knowledge_diff

            difference = graph.history.compare(before, after or "now")
            print_knowledge_diff(difference, None if everything else _MOST, as_json=as_json)
            if exit_code and not difference.is_same:
                raise VerificationError("Knowledge differs.")
            return
        comparison = graph.sessions.compare(before, after or "last")
        if after is None and comparison.before == comparison.after:
            raise UsageError(
                "The session is the last session, so there is no other session to compare.",
                "Name another session; `tgraph sessions` lists all sessions.",
            )
        print_comparison(comparison, as_json=as_json, everything=everything)
        if exit_code and not comparison.is_same:
            raise VerificationError("The sessions differ.")


def print_replay(found: Replay, *, as_json: bool) -> None:
    """Print both hashes with the earliest difference.

    Raises ``VerificationError`` if the hashes differ."""
    if as_json:
        from tgraph.engine.json_judgements import replay_json

        print_json(replay_json(found))
    else:
        print_lines(_replay_lines(found))
    if not found.is_same:
        raise VerificationError("The record of the replay differs from the recorded session.")


def _replay_lines(found: Replay) -> Iterator[str]:
    yield f"Session   {found.session}"
    yield f"Recorded  {found.recorded_hash}"
    yield f"Replayed  {found.replayed_hash}"
    for note in found.notes:
        yield f"Note: {note}"
    if found.is_same:
        yield "The records are the same; no model was called."
        return
    yield "Different."
    if found.problem:
        yield f"The replay ended early: {one_line(found.problem)}"
    if found.differences:
        yield from _difference_lines(found.differences[0])
        if len(found.differences) > 1:
            yield f"and {len(found.differences) - 1} more."


def _difference_lines(first: RecordDifference) -> Iterator[str]:
    yield f"First difference: {first.property} of {first.subject}"
    for name, values in (("recorded", first.recorded), ("replayed", first.replayed)):
        value_list = "; ".join(one_line(value, _LONGEST) for value in values[:3]) or "nothing"
        overflow = f" and {len(values) - 3} more" if len(values) > 3 else ""
        yield f"  {name}: {value_list}{overflow}"


def print_live(recorded: Trace, found: Replay, *, as_json: bool) -> None:
    """Print changes caused by calling the models again.

    Raises ``VerificationError`` if the live run failed."""
    if found.trace is None or found.problem:
        raise VerificationError(f"The live run ended early: {found.problem}")
    from tgraph.explain.trace.comparison import compare_sessions

    for note in found.notes:
        print_message(f"Note: {note}")
    print_comparison(
        compare_sessions(recorded, found.trace, names=("recorded", "live")), as_json=as_json
    )


def print_comparison(comparison: Comparison, *, as_json: bool, everything: bool = False) -> None:
    """Print the comparison as text or JSON; ``everything`` lists every candidate in the text."""
    if as_json:
        print_json({"same": comparison.is_same, **asdict(comparison)})
        return
    if comparison.is_same:
        click.echo("The sessions do not differ.")
        return
    print_lines(_comparison_lines(comparison, everything))


def _comparison_lines(comparison: Comparison, everything: bool) -> Iterator[str]:
    question_changes = [
        f"  {c.name}: {_format_value(c.before)} -> {_format_value(c.after)}"
        for c in comparison.asked
    ]
    yield from _section_lines("Asked", question_changes)
    limit = None if everything else _MOST
    removed = _limit_lines(
        [_format_item("-", item) for item in comparison.candidates_removed], limit
    )
    added = _limit_lines([_format_item("+", item) for item in comparison.candidates_added], limit)
    moved = _limit_lines([_format_move(item) for item in comparison.candidates_moved], limit)
    yield from _section_lines("Candidates", [*removed, *added, *moved])
    removed_selections = _limit_lines(
        [_format_selected("-", item) for item in comparison.selected_removed], limit
    )
    new = _limit_lines([_format_selected("+", item) for item in comparison.selected_added], limit)
    yield from _section_lines("Selected", [*removed_selections, *new])
    yield from _section_lines("Answer", [f"  {one_line(line)}" for line in comparison.answer])
    gone = [_format_place("-", place) for place in comparison.citations_removed]
    added_places = [_format_place("+", place) for place in comparison.citations_added]
    yield from _section_lines("Citations", [*gone, *added_places])


def _section_lines(title: str, lines: Sequence[str]) -> Iterator[str]:
    yield title if lines else f"{title}: the same"
    yield from lines


def _format_item(sign: str, item: OneSided) -> str:
    rank = f"#{item.rank} " if item.rank else ""
    return f"  {sign} {rank}{one_line(item.label, _LONGEST)}  {item.score:.3f}"


def _format_selected(sign: str, item: OneSided) -> str:
    reason = f"  ({one_line(item.reasoning, _LONGEST)})" if item.reasoning else ""
    return f"{_format_item(sign, item)}{reason}"


def _limit_lines(lines: Sequence[str], most: int | None) -> list[str]:
    """Return the first lines, plus the number of omitted lines."""
    if most is None or len(lines) <= most:
        return list(lines)
    return [*lines[:most], f"  {lines[0].strip()[0]} and {len(lines) - most} more (--all)"]


def _format_move(item: Moved) -> str:
    rank = f"#{item.rank_before} -> #{item.rank_after}"
    score = f"{item.score_before:.3f} -> {item.score_after:.3f}"
    return f"  ~ {one_line(item.label, _LONGEST)}  {rank}, {score}"


def _format_place(sign: str, place: OneSidedPlace) -> str:
    where = place_text(place.path, place.page, place.start, place.end)
    return f"  {sign} {where}: {one_line(place.quote, _LONGEST)}"


def _format_value(text: str) -> str:
    return one_line(text, _LONGEST) or "nothing"
