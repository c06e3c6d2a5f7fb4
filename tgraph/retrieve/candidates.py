"""Candidates of one kind or another, each with what it costs; their ranks come last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tgraph.model import Candidate, Edge, Evidence
from tgraph.retrieve.chunks import chunk_item
from tgraph.retrieve.costs import cost_of
from tgraph.retrieve.entities import KnownEntity


def entity_candidate(entity: KnownEntity, score: float, why: str, limit: int) -> Candidate:
    """The entity with the places that describe it, else those that name it, at most ``limit``."""
    places = (entity.described or entity.named)[:limit]
    item = entity.item
    return Candidate(item, 0, score, evidence=places, reasons=(why,), tokens=cost_of(item))


def edge_candidate(
    edge: Edge, score: float, why: str, places: tuple[Evidence, ...], tokens: int | None = None
) -> Candidate:
    """The edge, which is shown with the quotes of its evidence; ``tokens`` is what it costs so,
    where that is known."""
    cost = cost_of(edge, evidence=places) if tokens is None else tokens
    return Candidate(edge, 0, score, evidence=places, reasons=(why,), tokens=cost)


def chunk_candidate(whole: Evidence, score: float, why: str, tokens: int | None) -> Candidate:
    """The chunk, which is its own evidence; ``tokens`` is its length where that is known."""
    item = chunk_item(whole)
    cost = cost_of(item, tokens)
    return Candidate(item, 0, score, evidence=(whole,), reasons=(why,), tokens=cost)


def ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The candidates with their ranks, from 1 in this order."""
    return tuple(replace(candidate, rank=rank) for rank, candidate in enumerate(candidates, 1))


def within(candidates: Sequence[Candidate], budget: int) -> list[Candidate]:
    """The candidates in their order as far as their tokens fit; what doesn't fit is passed over."""
    fitting = []
    for candidate in candidates:
        cost = candidate.tokens or 0
        if cost <= budget:
            budget -= cost
            fitting.append(candidate)
    return fitting
