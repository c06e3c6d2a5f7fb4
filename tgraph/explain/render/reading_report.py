"""Reading reports in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tgraph.model import ReadingLoss, ReadingReport, UnitCount
from tgraph.rendering import format_count, one_line

UNREPORTED = (
    "There is no reading report: an earlier version of tgraph, or an extension, read the document."
)
_MOST_KINDS = 4


def summarise_losses(report: ReadingReport) -> str:
    """Return a clause on what of a document isn't in the stored text; empty for a whole one."""
    counts: Counter[str] = Counter()
    for loss in report.losses:
        counts[loss.kind] += loss.count
    kinds = [format_count(count, one_line(kind)) for kind, count in counts.most_common()]
    if not kinds:
        return ""
    rest = counts.total() - sum(count for _, count in counts.most_common(_MOST_KINDS))
    listed = [*kinds[:_MOST_KINDS], *([f"{rest} of other kinds"] if rest > 0 else [])]
    text = ", ".join(listed[:-1]) + (" and " if listed[:-1] else "") + listed[-1]
    is_one = len(listed) == 1 and counts.total() == 1
    return f"{text} {'is' if is_one else 'are'} not in the text"


def report_lines(report: ReadingReport | None) -> Iterator[str]:
    """Yield the lines of a reading report."""
    if report is None:
        yield UNREPORTED
        return
    if report.reader:
        yield f"Read by {one_line(report.reader)}."
    yield from map(_unit_line, report.units)
    if report.is_whole:
        yield "Nothing is known to be missing from the text."
    yield from map(_loss_line, report.losses)
    yield from (f"Warning: {one_line(warning)}" for warning in report.warnings)


def _unit_line(count: UnitCount) -> str:
    left_out = f", {count.left_out:,} left out on purpose" if count.left_out else ""
    unit = one_line(count.unit).capitalize()
    return f"{unit}: {count.in_file:,} in the file, {count.in_text:,} in the text{left_out}."


def _loss_line(loss: ReadingLoss) -> str:
    place = f", {one_line(loss.place)}" if loss.place else ""
    reason = f": {one_line(loss.reason)}" if loss.reason else ""
    mark = " A mark stands in the text." if loss.marked else ""
    return f"Not in the text: {format_count(loss.count, one_line(loss.kind))}{place}{reason}.{mark}"
