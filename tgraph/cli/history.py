"""``tgraph history``, and the text of ``tgraph diff --knowledge``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tgraph.cli.options import common, json_array
from tgraph.cli.running import command, open_call_graph
from tgraph.cli.terminal import (
    build_table,
    format_count,
    format_time,
    one_line,
    print_json,
    print_lines,
    print_message,
    print_renderable,
)

if TYPE_CHECKING:
    from tgraph.explain.trace.generations import Generation, PointInTime
    from tgraph.explain.trace.knowledge_diff import (
        ChangedDocument,
        ItemChange,
        KnowledgeDiff,
        MergedNames,
    )

_PATHS = 3
_LONGEST = 160
_SIGNS = {"came": "+", "went": "-", "changed": "~"}


@command("history")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="List only the newest N generations."
)
@json_array
@common
def history(limit: int | None, as_json: bool) -> None:
    """List the generations of knowledge with the time of publication and the cause.

    Each change of knowledge (an index run, a correction, a retraction) makes a generation. `tgraph
    ask --as-of` asks a generation, `tgraph diff --knowledge` compares two generations.

    \b
    Examples:
      tgraph history
      tgraph history --limit 1 --json | jq '.[0].number'
    """
    with open_call_graph() as graph:
        generations = graph.history.read_generations()[:limit]
    if as_json:
        print_json(generations)
    elif generations:
        columns = "Generation", "Published (UTC)", "What", "Documents, reason"
        rows = (
            (str(g.number), format_time(g.published), g.what, _generation_details(g))
            for g in generations
        )
        print_renderable(build_table(columns, rows))
    else:
        print_message("Nothing has been indexed yet.")


def _generation_details(generation: Generation) -> str:
    by = f" ({generation.person})" if generation.person else ""
    reason_parts = [f"{one_line(generation.reason)}{by}"] if generation.reason else []
    signs = (("+", generation.taken), ("-", generation.ended))
    return "; ".join(
        [*reason_parts, *(_format_paths(sign, paths) for sign, paths in signs if paths)]
    )


def _format_paths(sign: str, paths: Sequence[str]) -> str:
    path_list = ", ".join(f"{sign} {one_line(path)}" for path in paths[:_PATHS])
    return path_list + (f" and {len(paths) - _PATHS} more" if len(paths) > _PATHS else "")


def print_knowledge_diff(found: KnowledgeDiff, most: int | None, *, as_json: bool) -> None:
    """Print the difference as JSON or text, listing ``most`` changes per section (None: all)."""
    if as_json:
        print_json({"same": found.is_same, **asdict(found)})
    else:
        print_lines(_diff_lines(found, most))


def _diff_lines(found: KnowledgeDiff, most: int | None) -> Iterator[str]:
    yield f"From {_describe_point(found.before)} to {_describe_point(found.after)}"
    if found.before.generation > found.after.generation:
        yield "The first point is later than the second: later additions are shown as removed."
    if found.generations:
        yield "Between them"
        yield from _limit_lines(
            [_generation_row(generation) for generation in found.generations], most
        )
    if found.is_same:
        yield "Knowledge is the same."
        return
    for title, changes in (
        ("Entities", found.entities),
        ("Facts", found.facts),
        ("Claims", found.claims),
    ):
        yield from _section_lines(title, changes, most)
    names = [_format_merge("merged into", pair) for pair in found.merged]
    names += [_format_merge("told apart from", pair) for pair in found.unmerged]
    if names:
        yield f"Names: {len(found.merged):,} merged, {len(found.unmerged):,} told apart"
        yield from _limit_lines(names, most)
    counts = (f"{kind} +{came:,} -{went:,}" for kind, (came, went) in found.others.items())
    if count_list := ", ".join(counts):
        yield f"Also: {count_list}"


def _generation_row(generation: Generation) -> str:
    details = _generation_details(generation)
    row = f"  {generation.number}  {format_time(generation.published)}  {generation.what}"
    return f"{row}: {details}" if details else row


def _describe_point(point: PointInTime) -> str:
    since = f", {format_time(point.published)} UTC" if point.published else ""
    alias = f" (as of {point.name})" if point.name != str(point.generation) else ""
    return f"generation {point.generation}{since}{alias}"


def _section_lines(title: str, changes: Sequence[ItemChange], most: int | None) -> Iterator[str]:
    alike = {sign: [c for c in changes if c.change == sign] for sign in _SIGNS}
    if not changes:
        yield f"{title}: the same"
        return
    yield f"{title}: " + ", ".join(f"{len(alike[sign]):,} {sign}" for sign in _SIGNS)
    for sign, sign_changes in alike.items():
        visible_changes = sign_changes if most is None else sign_changes[:most]
        for change in visible_changes:
            yield f"  {_SIGNS[sign]} {one_line(change.label, _LONGEST)}  ({_change_cause(change)})"
            for value in change.values:
                before, after = (
                    one_line(x, _LONGEST) or "nothing" for x in (value.before, value.after)
                )
                yield f"      {value.name}: {before} -> {after}"
        yield from _left_out(_SIGNS[sign], len(sign_changes) - len(visible_changes))


def _change_cause(change: ItemChange) -> str:
    numbers = ", ".join(map(str, change.generations))
    generation_text = f"{'generation' if len(change.generations) == 1 else 'generations'} {numbers}"
    documents = [_format_document(d) for d in change.documents[:_PATHS]]
    omitted_count = len(change.documents) - len(documents)
    overflow = [f"and {format_count(omitted_count, 'document')} more"] if omitted_count else []
    return (
        f"{generation_text}: {', '.join([*documents, *overflow])}" if documents else generation_text
    )


def _format_document(document: ChangedDocument) -> str:
    return f"{_SIGNS[document.change]} {one_line(document.path)}"


def _format_merge(how: str, pair: MergedNames) -> str:
    return f"  {one_line(pair.name, _LONGEST)} {how} {one_line(pair.entity, _LONGEST)}"


def _limit_lines(lines: Sequence[str], most: int | None) -> Iterator[str]:
    yield from lines if most is None else lines[:most]
    if most is not None:
        yield from _left_out("", len(lines) - most)


def _left_out(sign: str, count: int) -> Iterator[str]:
    if count > 0:
        yield f"  {sign} and {count:,} more (--all)".replace("   ", "  ")
