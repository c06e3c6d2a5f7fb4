"""How many runs an influence analysis makes unless it is told otherwise."""

from __future__ import annotations

SAMPLES = 64
"""Sampled ablations, ContextCite's default too (Cohen-Wang and others, 2409.00729)."""

REPEATS = 3
"""Runs with nothing removed."""
