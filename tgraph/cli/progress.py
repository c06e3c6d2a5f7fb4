"""Progress on stderr: bars where somebody watches, otherwise a line for each stage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tgraph.cli.terminal import create_console, print_message
from tgraph.engine.progress import OnMessage, OnProgress, Progress, ignore_progress
from tgraph.model import Usage

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


_WIDE = 80
"""Columns in which the tokens of a stage have room beside its bar."""


@contextmanager
def show_progress(quiet: bool) -> Iterator[tuple[OnProgress, OnMessage]]:
    """Show progress bars on a stderr terminal, otherwise a line per stage."""
    if quiet:
        yield ignore_progress, print_message
        return
    target = create_console(stderr=True)
    if not target.is_terminal:
        yield _Lines(), print_message
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    tokens = [TextColumn("{task.fields[usage]}")] if target.width >= _WIDE else []
    bars = Bars(
        TextColumn("{task.description:<12}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        *tokens,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=target,
    )
    with bars:
        yield _Bars(bars), lambda text: bars.console.print(text, markup=False)


class _Bars:
    """Progress bars, one per stage."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, progress: Progress) -> None:
        name = _stage_name(progress)
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=progress.total, usage="")
        self._bars.update(
            self._tasks[name],
            completed=progress.done,
            total=progress.total,
            usage=tokens_text(progress.usage),
        )


class _Lines:
    """Progress lines on stderr, one per complete stage."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, progress: Progress) -> None:
        name = _stage_name(progress)
        if progress.total and progress.done >= progress.total and name not in self._told:
            self._told.add(name)
            tokens = tokens_text(progress.usage)
            print_message(f"{name}: {progress.total:,}{f', {tokens}' if tokens else ''}")


def _stage_name(progress: Progress) -> str:
    """Return the stage name, plus a separately counted part (files are left out)."""
    is_part = progress.stage == "Embedding" and progress.detail
    return f"{progress.stage} {progress.detail}" if is_part else progress.stage


def tokens_text(usage: Usage) -> str:
    if not usage.calls:
        return ""
    return f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
