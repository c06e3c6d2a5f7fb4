"""Long work: what it is given, what it tells, and how seldom it collects garbage."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tgraph.model import NO_USAGE, Usage

if TYPE_CHECKING:
    from tgraph.engine.components import Components
    from tgraph.record.ledger import Ledger
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


def silent(progress: Progress) -> None:
    """Shows nothing."""


def mute(message: str) -> None:
    """Says nothing."""


@dataclass(frozen=True)
class RunSetup:
    """What a change of a graph is made with. ``uuid`` names it, ``catalogue`` is where it is
    listed."""

    ledger: Ledger
    parts: Components
    settings: Settings
    uuid: str
    clock: Callable[[], datetime]
    catalogue: str
    progress: OnProgress
    message: OnMessage


_OBJECTS = 50_000
"""New objects between two searches. Commands and index runs make many objects that stay and few
cycles: Python's default of 700 costs them a twentieth of their time."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Cycles are searched for less often until the end, unless they are already."""
    before = gc.get_threshold()
    if not 0 < before[0] < _OBJECTS:
        yield
        return
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
