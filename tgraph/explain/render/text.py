"""Reports that were rated, read in batches, and drawn points from, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tgraph.explain.trace.values import Trace, TraceBatch, TracePoint, TraceRating
from tgraph.rendering import one_line

if TYPE_CHECKING:
    from rich.tree import Tree

_POINTS_LISTED = 6
"""Points of a batch, and ratings, that are shown where not everything is asked for."""

_BEST = 5
_LONGEST = 160


def batch_text(batch: TraceBatch, number: int) -> str:
    """A batch in words; ``number`` counts from 1."""
    said = "no reply that can be used" if batch.error else _count(len(batch.points), "point")
    return (
        f"Batch {number}: {_count(len(batch.reports), 'report')}, {batch.tokens:,} tokens → {said}"
    )


def point_text(point: TracePoint) -> str:
    """A point with its score in words, and why it is not used where it is not."""
    why = f"  (not used: {one_line(point.rejected)})" if point.rejected else ""
    return f"{point.score * 100:.0f}  {one_line(point.text, _LONGEST)}{why}"


def rating_text(rating: TraceRating) -> str:
    """A rating in words."""
    given = "?" if rating.score is None else f"{rating.score * _BEST:.0f}"
    verdict = "relevant" if rating.relevant else "not relevant"
    return f"level {rating.level}  {given} of {_BEST}, {verdict}: {one_line(rating.label)}"


def map_lines(trace: Trace) -> Iterator[str]:
    """The ratings and the batches with their best points, as lines."""
    if trace.ratings:
        relevant = sum(rating.relevant for rating in trace.ratings)
        yield f"Rated: {_count(len(trace.ratings), 'report')}, {relevant} relevant"
    for number, batch in enumerate(trace.batches, 1):
        yield batch_text(batch, number)


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


# --- as a tree ------------------------------------------------------------------------------------


def map_tree(tree: Tree, trace: Trace, *, everything: bool) -> None:
    """Add the ratings and the batches with their points, best first, to a session's tree."""
    from rich.text import Text

    if trace.ratings:
        branch = tree.add(Text().append("Ratings", "bold"))
        _some(branch, [rating_text(r) for r in trace.ratings], everything=everything)
    if not trace.batches:
        return
    points = sum(len(batch.points) for batch in trace.batches)
    counts = f"  {_count(len(trace.batches), 'batch')}".replace("batchs", "batches")
    branch = tree.add(Text().append("Map", "bold").append(f"{counts}, {_count(points, 'point')}"))
    for number, batch in enumerate(trace.batches, 1):
        leaf = branch.add(Text(batch_text(batch, number)))
        if batch.error:
            leaf.add(Text(one_line(batch.error), "red"))
        best = sorted(batch.points, key=lambda point: -point.score)
        _some(leaf, [point_text(point) for point in best], everything=everything)


def _some(tree: Tree, lines: list[str], *, everything: bool) -> None:
    from rich.text import Text

    shown = lines if everything else lines[:_POINTS_LISTED]
    for line in shown:
        tree.add(Text(line))
    if len(lines) > len(shown):
        tree.add(Text(f"… {len(lines) - len(shown)} more  (--all lists them)", "dim"))
