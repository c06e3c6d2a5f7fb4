"""Independent counts of what a file holds against what stands in the stored text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tgraph.ingest.base import storable
from tgraph.model import UnitCount


def count_characters(texts: Iterable[str]) -> Counter[str]:
    """Return how often each character that isn't white space occurs in texts."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(storable(text))
    for character in [c for c in counts if c.isspace()]:
        del counts[character]
    return counts


def compare_characters(
    file: Counter[str], stored_text: str, left_out: Counter[str] | None = None
) -> UnitCount:
    """Return the characters of a file, those of them in the stored text, and those left out on
    purpose.

    Characters count by kind, in any order: characters that a reader adds (bullets, bars between
    cells) make up for no letters that are missing."""
    left = left_out or Counter()
    in_text = (file - left) & count_characters([stored_text])
    return UnitCount("characters", file.total(), in_text.total(), left.total())
