"""How often Python searches for cycles of objects."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

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


def never_collected_at_the_end() -> None:
    """When Python ends it doesn't search for cycles among all that is left, whose memory the system
    takes back at once: after a question that was a seventh of the process's time. What is told to
    happen at the end (``atexit``) from now on happens before."""
    atexit.register(gc.freeze)
