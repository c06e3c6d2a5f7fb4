"""What long work tells whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tgraph.model import Usage


@dataclass(frozen=True, slots=True)
class Progress:
    """A stage of the work with how much of it is done; ``usage`` is what the run has cost so far."""

    stage: str
    done: int
    total: int
    usage: Usage = Usage()
    detail: str = ""


OnProgress = Callable[[Progress], None]
OnMessage = Callable[[str], None]


def silent(progress: Progress) -> None:
    """Shows nothing."""


def mute(message: str) -> None:
    """Says nothing."""
