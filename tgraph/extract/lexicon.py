"""How lists of words stand in the source: as one readable text."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The distinct words of a text that is separated by white space."""
    return frozenset(text.split())
