"""How often Python searches for cycles of objects."""

from __future__ import annotations

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
