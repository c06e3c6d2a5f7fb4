"""Following folders: an index round now, and one after every change, once it is quiet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from tgraph.engine.progress import OnMessage, OnProgress, ignore_progress
from tgraph.errors import TgraphError, UsageError
from tgraph.ingest.files import is_graph_folder

if TYPE_CHECKING:
    from watchfiles import Change

    from tgraph.engine.index.run import IndexReport

QUIET_MS = 1_000
"""Milliseconds without a change after which a round begins."""
LONGEST_SECONDS = 30.0
"""Seconds of changes, one after another, after which a round begins all the same."""
RETRY_SECONDS = 60.0
"""Time from a round that failed to the next one."""


def follow_folders(
    folders: Sequence[str],
    index: Callable[[OnProgress], IndexReport],
    stop: Event | None,
    progress: OnProgress,
    message: OnMessage,
) -> Iterator[IndexReport]:
    """Yield the report of each round; see ``KnowledgeGraph.follow``.

    Raise the error of the first round: a wrong setting does not mend itself."""
    check_folders(folders)
    return _index_rounds(folders, index, stop, progress, message)


def check_folders(paths: Sequence[str]) -> None:
    """Raise ``UsageError`` for a path that is no folder."""
    for path in paths:
        if not Path(path).is_dir():
            raise UsageError(f"{path} is no folder.", "Only folders can be watched.")


def _index_rounds(
    folders: Sequence[str],
    index: Callable[[OnProgress], IndexReport],
    stop: Event | None,
    progress: OnProgress,
    message: OnMessage,
) -> Iterator[IndexReport]:
    due, is_first = time.monotonic(), True
    for is_changed in _watch_folders(folders, stop):
        now = time.monotonic()
        if is_changed:
            due = min(due, now)
        if now < due or (is_changed and now < due + LONGEST_SECONDS):
            continue
        due = float("inf")
        try:
            report = index(progress if is_first else ignore_progress)
        except TgraphError as error:
            if is_first:
                raise
            due = time.monotonic() + RETRY_SECONDS
            message(f"{error} The next round is in {RETRY_SECONDS:.0f} seconds.")
        else:
            yield report
        is_first = False


def _watch_folders(folders: Sequence[str], stop: Event | None) -> Iterator[bool]:
    """Yield True for changes, and False after each quiet time.

    Changes are collected from the start, also while the caller works on earlier ones."""
    from watchfiles import watch

    roots = [Path(folder).absolute() for folder in folders]

    def may_be_document(_change: Change, path: str) -> bool:
        return any(_is_visible(Path(path), root) for root in roots)

    changes = watch(
        *roots,
        watch_filter=may_be_document,
        rust_timeout=QUIET_MS,
        yield_on_timeout=True,
        stop_event=stop,
        recursive=True,
    )
    yield from map(bool, changes)


def _is_visible(path: Path, root: Path) -> bool:
    """Return whether a path below a root is neither hidden nor part of a graph."""
    if not path.is_relative_to(root):
        return False
    parts = path.relative_to(root).parts
    if any(part.startswith(".") for part in parts):
        return False
    return not any(map(is_graph_folder, (path, *list(path.parents)[: len(parts)])))
