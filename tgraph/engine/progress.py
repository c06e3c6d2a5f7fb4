"""What long work tells whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tgraph.model import NO_USAGE, Usage


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
