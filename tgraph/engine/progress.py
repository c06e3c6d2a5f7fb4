"""Long work: what it is given, what it tells, and how seldom it collects garbage."""

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
    """A stage of the work and how much of it is done; ``usage`` is the cost of the run so far."""

    stage: str
    done: int
    total: int
    usage: Usage = NO_USAGE
    detail: str = ""


OnProgress = Callable[[Progress], None]
OnMessage = Callable[[str], None]
Watching = Callable[[], AbstractContextManager[tuple[OnProgress, OnMessage]]]
"""Who is told of a piece of work and its messages, from its beginning to its end."""


def silent(progress: Progress) -> None:
    """Shows nothing."""


def count_progress(progress: OnProgress, stage: str) -> Callable[[int, int], None]:
    """Return a function of (done, total) that reports the progress of a stage."""
    return lambda done, total: progress(Progress(stage, done, total))


def mute(message: str) -> None:
    """Says nothing."""


@dataclass(frozen=True)
class RunSetup:
    """What a change of a graph is made with. ``uuid`` names it, ``catalogue`` is where it is
    listed; ``observe`` makes who observes its record."""

    ledger: Ledger
    parts: Components
    settings: Settings
    uuid: str
    clock: Callable[[], datetime]
    observe: Callable[[], Observer]
    catalogue: str
    progress: OnProgress
    message: OnMessage
