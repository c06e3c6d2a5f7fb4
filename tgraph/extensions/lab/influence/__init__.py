"""Influence analysis: the answer is written again without parts of its selection."""

SAMPLES = 64
"""Sampled ablations, ContextCite's default too (Cohen-Wang and others, 2409.00729)."""
REPEATS = 3
"""Runs with nothing removed."""
