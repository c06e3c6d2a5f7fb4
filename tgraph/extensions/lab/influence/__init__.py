"""Influence analysis: the answer is written again without parts of its selection."""

REPEATS = 3
"""Runs with nothing removed; an item gets twice as many where answers differ by themselves."""
