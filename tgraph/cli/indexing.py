"""What ``index`` shows: progress with time left, a line for each failure, a summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.options import settings_of
from tgraph.cli.running import find_root, opened
from tgraph.cli.terminal import console, json_text, many, say
from tgraph.engine.progress import OnMessage, OnProgress, Progress, silent
from tgraph.model import Usage

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from tgraph.engine.indexing import IndexReport


def run(paths: Sequence[str], options: dict[str, Any]) -> None:
    """Index; exit code 1 where a file failed, or no chunk could be read by the model."""
    as_json, quiet = options.pop("as_json"), options.pop("quiet")
    reinstate = options.pop("reinstate")
    options.pop("price_in")
    options.pop("price_out")
    _refuse_a_graph_of_nothing(paths)
    with (
        opened(settings_of(options), create=True) as graph,
        show_progress(quiet) as (progress, message),
    ):
        report = graph.index(list(paths), reinstate=reinstate, progress=progress, message=message)
        root = graph.root
    for failure in report.failed:
        say(f"Failed: {failure.path}: {failure}")
    if as_json:
        click.echo(json_text(_facts(report, str(root))))
    elif not quiet:
        say(_summary(report, str(root)))
    if _is_unread(report):
        say(
            "No chunk got a reply that could be used: of these documents only their text is known,"
            " which the modes basic, naive and contextual search. Check the model and its prompts,"
            " then index the documents into a new graph."
        )
    if report.failed or _is_unread(report):
        click.get_current_context().exit(1)


def _is_unread(report: IndexReport) -> bool:
    from tgraph.engine.index.extraction import UNUSABLE

    return 0 < report.chunks == report.dropped.get(UNUSABLE, 0)


def _refuse_a_graph_of_nothing(paths: Sequence[str]) -> None:
    """``TgraphError`` where a graph would be made and no path leads to a file: a slip of the
    fingers leaves no empty graph behind."""
    from tgraph.errors import TgraphError
    from tgraph.ingest.discover import Unread, discover
    from tgraph.store.folder import MARKER

    root = find_root(create=True)
    if root is not None and (root / MARKER).is_file():
        return
    unread: list[Unread] = []
    for found in discover(paths):
        if not isinstance(found, Unread):
            return
        unread.append(found)
    for each in unread:
        say(f"Failed: {each.name}: {each.reason}")
    raise TgraphError("There is nothing to take in, so no graph was made.")


@contextmanager
def show_progress(quiet: bool) -> Iterator[tuple[OnProgress, OnMessage]]:
    """Bars on stderr where somebody watches it, otherwise a line a stage."""
    if quiet:
        yield silent, say
        return
    target = console(stderr=True)
    if not target.is_terminal:
        yield _Lines(), say
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("{task.description:<12}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[usage]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=target,
    )
    with bars:
        yield _Bars(bars), lambda text: bars.console.print(text, markup=False)


class _Bars:
    """One bar for each stage."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, progress: Progress) -> None:
        name = f"{progress.stage} {progress.detail}" if _is_part(progress) else progress.stage
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=progress.total, usage="")
        self._bars.update(
            self._tasks[name],
            completed=progress.done,
            total=progress.total,
            usage=_tokens(progress.usage),
        )


class _Lines:
    """One line on stderr for each stage that is complete."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, progress: Progress) -> None:
        name = f"{progress.stage} {progress.detail}" if _is_part(progress) else progress.stage
        if progress.total and progress.done >= progress.total and name not in self._told:
            self._told.add(name)
            tokens = _tokens(progress.usage)
            say(f"{name}: {progress.total:,}{f', {tokens}' if tokens else ''}")


def _is_part(progress: Progress) -> bool:
    """Whether the detail names a part with a count of its own, and not the file being read."""
    return progress.stage == "Embedding" and bool(progress.detail)


def _tokens(usage: Usage) -> str:
    if not usage.calls:
        return ""
    return f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"


def _summary(report: IndexReport, root: str) -> str:
    taken = f"{len(report.indexed)} indexed"
    if report.superseded:
        taken += f" ({len(report.superseded)} of them new versions)"
    parts = [taken]
    if report.unchanged:
        parts.append(f"{len(report.unchanged)} unchanged")
    if report.retracted:
        parts.append(f"{len(report.retracted)} left out as retracted")
    if report.erased:
        parts.append(f"{len(report.erased)} left out as erased")
    if report.failed:
        parts.append(f"{len(report.failed)} failed")
    found = (
        f"{many(report.chunks, 'chunk')}, {many(report.entities, 'entity', 'entities')}, "
        f"{many(report.relationships, 'relationship')}"
    )
    found += f", {many(report.claims, 'claim')}" if report.claims else ""
    text = f"Documents: {', '.join(parts)}. "
    text += f"Read, chunk by chunk: {found}. " if report.indexed or report.claims else ""
    text += f"{_communities(report)}. Graph: {root}"
    if report.usage.calls:
        text += f" ({_tokens(report.usage)}, {many(report.usage.calls, 'call')})"
    if report.dropped:
        counts = sorted(report.dropped.items(), key=lambda item: (-item[1], item[0]))
        text += f"\nLeft out: {', '.join(f'{n:,} {r}' for r, n in counts)}."
    return text


def _communities(report: IndexReport) -> str:
    alone = "1 entity stands" if report.isolated == 1 else f"{report.isolated:,} entities stand"
    text = f"Communities: {report.communities:,}"
    return f"{text} ({alone} alone)" if report.isolated else text


def _facts(report: IndexReport, root: str) -> dict[str, Any]:
    return {
        "root": root,
        "run": report.run,
        "indexed": report.indexed,
        "unchanged": report.unchanged,
        "superseded": report.superseded,
        "retracted": report.retracted,
        "erased": report.erased,
        "failed": [{"path": f.path, "reason": str(f)} for f in report.failed],
        "chunks": report.chunks,
        "entities": report.entities,
        "relationships": report.relationships,
        "claims": report.claims,
        "merged": report.merged,
        "communities": report.communities,
        "isolated": report.isolated,
        "reports": report.reports,
        "dropped": report.dropped,
        "usage": {
            "input_tokens": report.usage.input_tokens,
            "output_tokens": report.usage.output_tokens,
            "calls": report.usage.calls,
        },
        "generation": report.generation,
    }


def estimate(paths: Sequence[str], options: dict[str, Any]) -> None:
    """Say what indexing would cost, before anything is spent."""
    from dataclasses import asdict

    from tgraph.engine.estimate import estimate_index

    as_json = options.pop("as_json")
    options.pop("quiet")
    options.pop("reinstate")
    prices = options.pop("price_in"), options.pop("price_out")
    found = estimate_index(
        find_root(create=True),
        paths,
        {**settings_of(options), "collection": _collection()},
        prices,
    )
    if as_json:
        click.echo(json_text(asdict(found)))
    else:
        for line in found.lines():
            click.echo(line)
    for path, reason in found.failed:
        say(f"Failed: {path}: {reason}")
    if found.failed:
        click.get_current_context().exit(1)


def _collection() -> str | None:
    value = (click.get_current_context().obj or {}).get("collection")
    assert value is None or isinstance(value, str)
    return value
