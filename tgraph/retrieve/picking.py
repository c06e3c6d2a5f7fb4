"""Picking: a few chunks out of the many that entities or edges come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tgraph.retrieve.base import Context

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

Groups = Sequence[Sequence[str]]
"""The chunks of each entity or edge, the most important entity or edge first. The two ways to pick
of them are LightRAG's (1.5.7, ``kg_chunk_pick_method``)."""


def pick_by_vector(
    groups: Groups, each: int, question: NDArray[float32], context: Context
) -> list[str]:
    """The chunks most similar to the question, ``each`` for every two groups."""
    wanted = {chunk for group in groups for chunk in group}
    hits = context.vectors["chunk"].search(question, each * len(groups) // 2, wanted)[0]
    return [chunk for chunk, _ in hits]


def pick_by_weight(groups: Groups, each: int) -> list[str]:
    """The chunks that most of the groups share, ``each`` of the first group, evenly fewer of those
    after it, one of the last; what a group can't use is dealt out to the others in turn."""
    own = _owned(groups)
    quotas = [_quota(place, len(own), each) for place in range(len(own))]
    taken = [group[:quota] for group, quota in zip(own, quotas, strict=True)]
    left = sum(quotas) - sum(map(len, taken))
    while left and any(len(a) < len(b) for a, b in zip(taken, own, strict=True)):
        for place, group in enumerate(own):
            if left and len(taken[place]) < len(group):
                taken[place] = group[: len(taken[place]) + 1]
                left -= 1
    return [chunk for group in taken for chunk in group]


def shared_by(groups: Groups) -> Mapping[str, int]:
    """How many of the groups each chunk is in."""
    return Counter(chunk for group in groups for chunk in set(group))


def _owned(groups: Groups) -> list[list[str]]:
    """Each chunk in the first group that has it, those that most groups share first."""
    counts = shared_by(groups)
    seen: set[str] = set()
    owned = []
    for group in groups:
        own = {chunk for chunk in group if chunk not in seen}
        seen |= own
        owned.append(sorted(own, key=lambda chunk: (-counts[chunk], chunk)))
    return owned


def _quota(place: int, count: int, each: int) -> int:
    return each if count == 1 else round(each - place * (each - 1) / (count - 1))
