"""Frequency of Python's garbage collection."""

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
    """Collect garbage less often inside the block, unless already rare."""
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
    """Skip garbage collection at interpreter exit, where the system frees memory anyway.

    After a question, the collection took a seventh of the process's time. ``atexit`` functions
    registered later run earlier."""
    atexit.register(gc.freeze)
