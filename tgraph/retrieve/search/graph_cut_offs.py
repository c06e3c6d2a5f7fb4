"""Cuts of the graph search: limits on the way from a matched entity to a missing item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyoxigraph import NamedNode

from tgraph.model import RankedOrder
from tgraph.retrieve.base import Context
from tgraph.retrieve.labels import labels_of
from tgraph.retrieve.orders import CutOff, CutOffs, Missing, OrderReader, RecordedSearch
from tgraph.retrieve.subgraph import all_edges, ends

NEAR = 2
"""Hops beyond ``max-path-length`` within which something still counts as linked to the question."""

_GROWTH = ("triple-limit", "entity-limit")
"""Limits on the way from a matched entity."""


def subgraph_cut_offs(missing: Missing, search: RecordedSearch, context: Context) -> CutOffs:
    """Return cuts along the path from the nearest matched entity to the missing item: a hop
    limit, or the first edge or entity outranked by others."""
    if not search.matches or not missing.edges | missing.entities:
        return
    hops = context.limits.max_path_length
    label, way = _way_to(missing, search, context, hops + NEAR)
    distance = sum(1 for _, edge in way if edge)
    if distance > hops:
        why = f"the nearest matched entity, {label}, is {distance} hops away, and {hops} hops were"
        yield CutOff("max-path-length", hops, distance, f"{why} gone (max-path-length)")
    elif distance:
        yield from _cuts_on_the_way(way, label, missing, search, context)


def _way_to(
    missing: Missing, search: RecordedSearch, context: Context, most: int
) -> tuple[str, list[tuple[str, str]]]:
    """Return the label of the nearest matched entity, and the path to the missing item as pairs
    of entity and outgoing edge.

    Paths longer than ``most`` are not returned."""
    ways: dict[str, list[tuple[str, str]]] = {match.entity: [] for match in search.matches}
    labels = {match.entity: match.label for match in search.matches}
    frontier = list(ways)
    for _ in range(most):
        if not frontier:
            break
        reached: list[str] = []
        for entity in sorted(frontier):
            for edge, triple in all_edges(entity, context.store).items():
                neighbours = set(ends(triple)) - {entity}
                way = [*ways[entity], (entity, edge)]
                if edge in missing.edges or neighbours & missing.entities:
                    return labels[way[0][0]], way
                for neighbour in neighbours - ways.keys():
                    ways[neighbour] = way
                    reached.append(neighbour)
        frontier = reached
    return "", []


def _cuts_at(
    entity: str, edge: str, what: Mapping[str, str], name: str, orders: Sequence[RankedOrder]
) -> CutOffs:
    """Return cut-offs of the entity among reached entities, and of the edge among the entity's
    edges.

    ``what`` has the words for either in a reason, ``name`` the entity name."""
    reader = OrderReader(
        lambda order, item: item == (entity if order.kind == "reached" else edge),
        lambda order, _: what[order.kind],
        lambda _: name,
        lambda order: order.about == entity,
    )
    for order in sorted(orders, key=lambda order: order.kind == "edge"):
        if cut := reader.find_beyond_cut(order) or reader.find_beyond_list(order):
            yield cut


def _cuts_on_the_way(
    way: Sequence[tuple[str, str]],
    label: str,
    missing: Missing,
    search: RecordedSearch,
    context: Context,
) -> CutOffs:
    """Return the first cut along the path, using recorded orders; without a rank if no order
    has one."""
    read = [order for order in search.orders if order.limit == "most-read"]
    in_subgraph = OrderReader(
        lambda _, edge: edge in missing.edges, lambda *_: "it", str, lambda _: False
    )
    if cut := in_subgraph.first_cut(read):
        yield cut
    grown = [order for order in search.orders if order.limit in _GROWTH]
    names = labels_of(context.graph, [NamedNode(entity) for entity, _ in way])
    start = f"the matched entity {label} is {len(way)} hops away; on the way"
    for entity, edge in way:
        name = names[NamedNode(entity)]
        an_edge = "it" if edge in missing.edges else f"{start} an edge"
        yield from _cuts_at(
            entity, edge, {"reached": f"{start} {name}", "edge": an_edge}, name, grown
        )
    if len(way) > 1:
        limit = "entity-limit" if "entity limit" in search.dropped else "triple-limit"
        cutoff = int(getattr(context.limits, limit.replace("-", "_")))
        why = f"the matched entity {label} is {len(way)} hops away; of the edges on the way"
        yield CutOff(
            limit, cutoff, None, f"{why} others were nearer to the question ({limit} {cutoff})"
        )
