"""Long-running work: its setup, progress reports, and reduced garbage collection."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tgraph.model import NO_USAGE, Usage

if TYPE_CHECKING:
    from tgraph.engine.components import Components
    from tgraph.record.ledger import Ledger
    from tgraph.record.observer import Observer
    from tgraph.settings import Settings


@dataclass(frozen=True, slots=True)
class Progress:
    """A work stage with its progress; ``usage`` is the run cost so far."""

    stage: str
    done: int
    total: int
    usage: Usage = NO_USAGE
    detail: str = ""


OnProgress = Callable[[Progress], None]
CountProgress = Callable[[int, int], None]
"""A function that is called with the counts of done and of all items."""
OnMessage = Callable[[str], None]
Watching = Callable[[], AbstractContextManager[tuple[OnProgress, OnMessage]]]
"""Who is told of a piece of work and its messages, from its beginning to its end."""


def ignore_progress(progress: Progress) -> None:
    """Ignore a progress report."""


def count_progress(progress: OnProgress, stage: str) -> CountProgress:
    """Return a function that reports the progress of a stage."""
    return lambda done, total: progress(Progress(stage, done, total))


def ignore_message(message: str) -> None:
    """Ignore a message."""


@dataclass(frozen=True)
class RunSetup:
    """The setup of a graph change: ``uuid`` identifies the change, ``catalogue`` lists it,
    ``observe`` returns its record observer."""

    ledger: Ledger
    parts: Components
    settings: Settings
    uuid: str
    clock: Callable[[], datetime]
    observe: Callable[[], Observer]
    catalogue: str
    progress: OnProgress
    message: OnMessage
