"""Judges answers: what they depend on, how good they are, whether they are entailed."""

SAMPLES = 64
"""Sampled ablations, ContextCite's default too (Cohen-Wang and others, 2409.00729)."""
REPEATS = 3
"""Runs with nothing removed."""
