"""How many examples a property is tried on where it costs more than most."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""What hypothesis takes by itself, and the profile ``repeatable``."""


def examples(count: int) -> int:
    """``count``, and more where the profile asks for more than is usual (``explore``)."""
    return count * max(1, settings().max_examples // USUAL)
