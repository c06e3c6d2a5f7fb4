"""Where the mode ``graph`` cuts: hops, the edges of an entity, the subgraph, what is read of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tgraph.models.replay import UnrecordedError
from tgraph.retrieve.base import Context
from tgraph.retrieve.corpus import frequencies
from tgraph.retrieve.graph import READ, in_context, reading_order
from tgraph.retrieve.inquiry import read_question
from tgraph.retrieve.meaning import Meaning
from tgraph.retrieve.orders import (
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    iris,
    nearest,
    nth,
    rerun,
)
from tgraph.retrieve.passages import meaning_of
from tgraph.retrieve.subgraph import Subgraph, all_edges, ends, grow, share_of

NEAR = 2
"""Hops beyond ``max-path-length`` within which something still counts as linked to the question."""

_MOST = 1 << 20
_LIFTED = (("triple_limit",), ("entity_limit",), ("triple_limit", "entity_limit"))
"""The limits that are lifted, one after the other, and what is beside them."""


def graph_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The edges by their distance from the matched entities, those of an entity by likeness, and
    those of the subgraph as they are read."""
    if not search.matches or not missing.edges | missing.entities:
        return
    hops = context.limits.max_path_length
    distance, entity, label = _distance(missing, search, context, hops + NEAR)
    if distance > hops:
        why = f"it lies {distance} hops from the nearest matched entity, {label}, and {hops} were"
        yield CutOff("max-path-length", hops, distance, f"{why} gone (max-path-length)")
    elif distance:
        if distance == 1:
            yield from _of_entity(entity, label, missing, search, context)
        with suppress(UnrecordedError):
            yield from _grown(label, missing, search, context)
        if distance > 1:
            yield _on_the_way(distance, label, search, context)


def _distance(
    missing: Missing, search: RecordedSearch, context: Context, most: int
) -> tuple[int, str, str]:
    """How many edges lead from a matched entity to the missing, counting its own, and that entity
    with its label; 0 where there are more than ``most``."""
    matched = {match.entity: match.label for match in search.matches}
    seen, frontier = set(matched), {iri: iri for iri in matched}
    for distance in range(1, most + 1):
        reached: dict[str, str] = {}
        for entity, start in sorted(frontier.items()):
            for edge, triple in all_edges(entity, context.store).items():
                others = set(ends(triple)) - {entity}
                if edge in missing.edges or others & missing.entities:
                    return distance, start, matched[start]
                for other in others - seen:
                    reached.setdefault(other, start)
        seen |= reached.keys()
        frontier = reached
    return 0, "", ""


def _of_entity(
    entity: str, label: str, missing: Missing, search: RecordedSearch, context: Context
) -> Orders:
    """It is an edge of a matched entity: others of that entity went before it."""
    cutoff = context.limits.triple_limit
    around = all_edges(entity, context.store).keys()
    near = iris(nearest(context, "edge", search.question.text, around))
    said = f"it is one of {len(around)} edges of {label}, of which"
    wanted = missing.edges & around
    if wanted.isdisjoint(near):
        why = f"{said} the {cutoff} nearest to the question were taken at most (triple-limit)"
        yield CutOff("triple-limit", cutoff, None, why)
    elif len(around) > cutoff:
        taken = share_of(cutoff)
        kept = f"; {cutoff - taken} more only beside good sentences" if cutoff > taken else ""
        why = f"by likeness to the question, and {taken} were taken (triple-limit {cutoff}{kept})"
        yield RankedOrder(
            "triple-limit", taken, near, wanted, lambda at: f"{said} it is the {nth(at.rank)} {why}"
        )


def _on_the_way(distance: int, label: str, search: RecordedSearch, context: Context) -> CutOff:
    name = "entity-limit" if "entity limit" in search.dropped else "triple-limit"
    cutoff = int(getattr(context.limits, name.replace("-", "_")))
    why = f"it lies {distance} hops from the matched entity {label}; of the edges on the way others"
    return CutOff(name, cutoff, None, f"{why} were nearer to the question ({name} {cutoff})")


def _grown(label: str, missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The subgraph is grown once more, from the same entities: its edges as they are read; else
    the limits without which the missing comes in."""
    inquiry = read_question(in_context(search.question), frequencies(context))
    meaning = meaning_of(inquiry, context)
    seeds = [match.entity for match in search.matches]

    def is_in(limits: Mapping[str, int]) -> bool:
        return not missing.edges.isdisjoint(_grow(seeds, limits, meaning, context).edges)

    if not is_in({}):
        why = f"of the edges on the way from {label} others were nearer to the question: it comes"
        for field, *others in _LIFTED:
            beside = dict.fromkeys(others, _MOST)
            also = "".join(f"; {other.replace('_', '-')} was in the way too" for other in others)
            into = f"{why} into the subgraph"
            yield from rerun(context.limits, field, _MOST, beside, is_in, into, also)
        return
    order = reading_order(_grow(seeds, {}, meaning, context), meaning, search.matches)
    why = "edges of the subgraph by likeness to the question, and the sentences of the first"
    yield RankedOrder("most-read", READ, order, missing.edges, f"{why} {READ} are read (fixed)")


def _grow(
    seeds: Sequence[str], limits: Mapping[str, int], meaning: Meaning, context: Context
) -> Subgraph:
    settings = context.settings
    graph = settings.graph.model_copy(update=dict(limits))
    wide = replace(context, settings=settings.model_copy(update={"graph": graph}))
    return grow(seeds, meaning, wide)
