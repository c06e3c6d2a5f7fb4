"""``tgraph history``, and the text of ``tgraph diff --knowledge``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tgraph.cli.options import common, json_array
from tgraph.cli.running import command, opened
from tgraph.cli.terminal import many, one_line, print_json, print_lines, say, show, table, time

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
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the newest N.")
@json_array
@common
def history(limit: int | None, as_json: bool) -> None:
    """List the generations of knowledge: when each was published, and what made it.

    Each change of knowledge (an index run, a correction, a retraction) makes a generation.
    `tgraph ask --as-of` asks one, `tgraph diff --knowledge` compares two.

    \b
    Examples:
      tgraph history
      tgraph history --limit 1 --json | jq '.[0].number'
    """
    with opened() as graph:
        found = graph.history()[:limit]
    if as_json:
        print_json(found)
    elif found:
        columns = "Generation", "Published (UTC)", "What", "Documents, reason"
        rows = ((str(g.number), time(g.published), g.what, _told(g)) for g in found)
        show(table(columns, rows))
    else:
        say("Nothing has been indexed yet.")


def _told(generation: Generation) -> str:
    by = f" ({generation.person})" if generation.person else ""
    said = [f"{one_line(generation.reason)}{by}"] if generation.reason else []
    signs = (("+", generation.taken), ("-", generation.ended))
    return "; ".join([*said, *(_paths(sign, paths) for sign, paths in signs if paths)])


def _paths(sign: str, paths: Sequence[str]) -> str:
    shown = ", ".join(f"{sign} {one_line(path)}" for path in paths[:_PATHS])
    return shown + (f" and {len(paths) - _PATHS} more" if len(paths) > _PATHS else "")


def print_knowledge_diff(found: KnowledgeDiff, most: int | None, *, as_json: bool) -> None:
    """The difference as JSON or text, in which each list shows ``most`` changes (None: all)."""
    if as_json:
        print_json({"same": found.same, **asdict(found)})
    else:
        print_lines(_lines(found, most))


def _lines(found: KnowledgeDiff, most: int | None) -> Iterator[str]:
    yield f"From {_point(found.before)} to {_point(found.after)}"
    if found.before.generation > found.after.generation:
        yield "The first is the later one: what came since goes here."
    if found.generations:
        yield "Between them"
        yield from _some([_row(generation) for generation in found.generations], most)
    if found.same:
        yield "Knowledge is the same."
        return
    for title, changes in (
        ("Entities", found.entities),
        ("Facts", found.facts),
        ("Claims", found.claims),
    ):
        yield from _section(title, changes, most)
    names = [_merged("merged into", pair) for pair in found.merged]
    names += [_merged("told apart from", pair) for pair in found.unmerged]
    if names:
        yield f"Names: {len(found.merged):,} merged, {len(found.unmerged):,} told apart"
        yield from _some(names, most)
    counts = (f"{kind} +{came:,} -{went:,}" for kind, (came, went) in found.others.items())
    if others := ", ".join(counts):
        yield f"Also: {others}"


def _row(generation: Generation) -> str:
    told = _told(generation)
    row = f"  {generation.number}  {time(generation.published)}  {generation.what}"
    return f"{row}: {told}" if told else row


def _point(point: PointInTime) -> str:
    since = f", {time(point.published)} UTC" if point.published else ""
    asked = f" (as of {point.name})" if point.name != str(point.generation) else ""
    return f"generation {point.generation}{since}{asked}"


def _section(title: str, changes: Sequence[ItemChange], most: int | None) -> Iterator[str]:
    alike = {sign: [c for c in changes if c.change == sign] for sign in _SIGNS}
    if not changes:
        yield f"{title}: the same"
        return
    yield f"{title}: " + ", ".join(f"{len(alike[sign]):,} {sign}" for sign in _SIGNS)
    for sign, found in alike.items():
        shown = found if most is None else found[:most]
        for change in shown:
            yield f"  {_SIGNS[sign]} {one_line(change.label, _LONGEST)}  ({_because(change)})"
            for value in change.values:
                before, after = (
                    one_line(x, _LONGEST) or "nothing" for x in (value.before, value.after)
                )
                yield f"      {value.name}: {before} -> {after}"
        yield from _left_out(_SIGNS[sign], len(found) - len(shown))


def _because(change: ItemChange) -> str:
    numbers = ", ".join(map(str, change.generations))
    told = f"{'generation' if len(change.generations) == 1 else 'generations'} {numbers}"
    documents = [_document(d) for d in change.documents[:_PATHS]]
    left = len(change.documents) - len(documents)
    more = [f"and {many(left, 'document')} more"] if left else []
    return f"{told}: {', '.join([*documents, *more])}" if documents else told


def _document(document: ChangedDocument) -> str:
    return f"{_SIGNS[document.change]} {one_line(document.path)}"


def _merged(how: str, pair: MergedNames) -> str:
    return f"  {one_line(pair.name, _LONGEST)} {how} {one_line(pair.entity, _LONGEST)}"


def _some(lines: Sequence[str], most: int | None) -> Iterator[str]:
    yield from lines if most is None else lines[:most]
    if most is not None:
        yield from _left_out("", len(lines) - most)


def _left_out(sign: str, count: int) -> Iterator[str]:
    if count > 0:
        yield f"  {sign} and {count:,} more (--all)".replace("   ", "  ")
