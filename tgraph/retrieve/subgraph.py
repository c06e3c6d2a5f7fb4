"""Breadth-first subgraph search from seed entities, observing every limit.

If an entity has more edges than the limit, the edges nearest to the question are taken, ranked
by meaning and by sentence words together: among hundreds of edges of one entity many mean
nearly the same, and the right edge may rank low by meaning alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UsageError, nearest_names
from tgraph.index.graph_source import EdgeAttributes, Edges
from tgraph.index.hub import Hub
from tgraph.index.hub_rows import READ_EVIDENCE
from tgraph.index.stored_graph import StoredGraph, statement_of
from tgraph.model import RankedOrder
from tgraph.retrieve.base import Context
from tgraph.retrieve.filters import entities_of_types
from tgraph.retrieve.labels import Triple, labels_of, local_name
from tgraph.retrieve.orders import cut_order
from tgraph.retrieve.text.lexical import term_set
from tgraph.retrieve.text.question_analysis import AnalysedQuestion
from tgraph.retrieve.text.similarity import Similarity
from tgraph.store.base import Store, text_of

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

RANK_CONSTANT = 10
"""Of reciprocal rank fusion, as in ``contextual``."""

_HUBS = 100
"""Hubs that are held in memory."""


@dataclass(frozen=True, slots=True)
class HopFilter:
    """A filter for edges in one hop: allowed relationships and allowed target entities; None
    allows all."""

    relationships: frozenset[str] | None
    entities: frozenset[str] | None

    def admits(self, triple: Triple, entity: str) -> bool:
        """Return whether an edge may be followed from the given end entity."""
        if self.relationships is not None and triple[1].value not in self.relationships:
            return False
        other_ends = [end for end in ends(triple) if end != entity]
        return self.entities is None or any(end in self.entities for end in other_ends)


def hop_filters(context: Context) -> tuple[HopFilter, ...]:
    """Return traversal instructions as hop filters, resolving labels in the current state.

    Raise ``UsageError`` for a type without entities or a relationship without edges."""
    steps = context.limits.traversal
    if not steps:
        return ()
    predicates = context.read_once(
        "relationships by label", lambda: relationships_by_label(context.store)
    )
    return tuple(
        HopFilter(
            _of_labels(step.relationships, predicates) if step.relationships else None,
            entities_of_types(step.types, context.store) if step.types else None,
        )
        for step in steps
    )


def _of_labels(names: Sequence[str], known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    predicates: set[str] = set()
    for name in names:
        matches = known.get(name.casefold().strip()) or known.get(name)
        if not matches:
            raise UsageError(
                f"No relationship is called {name!r}.", nearest_names(name, sorted(known))
            )
        predicates |= matches
    return frozenset(predicates)


def relationships_by_label(store: Store) -> dict[str, frozenset[str]]:
    """Return all edge predicates, keyed by lower-case label and by IRI."""
    quads = store.match(None, None, None, v.KNOWLEDGE_GRAPH)
    used = {quad.predicate for quad in quads if v.is_statement(quad.predicate)}
    predicates: dict[str, frozenset[str]] = {p.value: frozenset({p.value}) for p in used}
    for predicate, label in labels_of(StoredGraph(store), sorted(used, key=str)).items():
        key = label.casefold()
        predicates[key] = predicates.get(key, frozenset()) | {text_of(predicate)}
    return predicates


@dataclass(slots=True)
class Subgraph:
    """Edges found so far: triple and hop by IRI, and what the limits left out; ``orders`` are the
    edges and entities that they cut off."""

    edges: dict[str, tuple[Triple, int]] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    reached: dict[str, int] = field(default_factory=dict)
    hops: Sequence[HopFilter] = ()
    orders: list[RankedOrder] = field(default_factory=list)
    _taken: dict[str, int] = field(default_factory=dict)

    def drop(self, reason: str, count: int) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def add(self, iri: str, triple: Triple, hop: int) -> None:
        if iri not in self.edges:
            self.edges[iri] = triple, hop

    def add_edge(self, iri: str, triple: Triple, hop: int, entity: str) -> None:
        """Add an edge for an entity, counting toward the entity's share of triples."""
        self.add(iri, triple, hop)
        self.reached.setdefault(entity, hop)
        self._taken[entity] = self._taken.get(entity, 0) + 1

    def follows(self, iri: str, triple: Triple, entity: str) -> bool:
        """Return whether hop filters allow following an edge from a reached entity."""
        hop = self.reached[entity]
        return hop >= len(self.hops) or self.hops[hop].admits(triple, entity)

    def admit(self, iri: str, triple: Triple, context: Context) -> None:
        """Add an edge for a visited end entity with remaining share of triples."""
        for end in sorted(ends(triple), key=lambda e: (self.reached.get(e, 99), e)):
            if end not in self.reached or not self.follows(iri, triple, end):
                continue
            if self._taken[end] < context.limits.triple_limit:
                self.add_edge(iri, triple, self.reached[end], end)
                return


def ends(triple: Triple) -> list[str]:
    """List an edge's connected entities: two entities, or one if its object is a literal."""
    return list(dict.fromkeys(t.value for t in (triple[0], triple[2]) if isinstance(t, NamedNode)))


def grow_subgraph(
    seeds: Sequence[str], inquiry: AnalysedQuestion, meaning: Similarity, context: Context
) -> Subgraph:
    """``max_path_length`` hops from the seeds, ``triple_limit`` triples an entity, the nearest."""
    subgraph = Subgraph(hops=hop_filters(context))
    visited: set[str] = set()
    frontier = list(seeds)
    for hop in range(context.limits.max_path_length):
        if hop and not frontier:
            break
        nearest = {} if subgraph.hops else _at_hubs(frontier, inquiry, meaning, context)
        edges_by_entity = {e: edges_of(e, context) for e in frontier if e not in nearest}
        meaning.learn(iri for edges in edges_by_entity.values() for iri in edges)
        visited.update(frontier)
        reached: dict[str, float] = {}
        for entity in frontier:
            subgraph.reached.setdefault(entity, hop)
            subgraph._taken.setdefault(entity, 0)
            if entity in nearest:
                order, edges = nearest[entity]
                edge_selection: Sequence[str] = list(edges)
            else:
                edges = edges_by_entity[entity]
                followed = {i: t for i, t in edges.items() if subgraph.follows(i, t, entity)}
                subgraph.drop("not in the traversal instructions", len(edges) - len(followed))
                edges = followed
                order = _edges_in_order(entity, edges, inquiry, meaning, context)
                limit = context.limits.triple_limit
                edge_selection = order if len(order) <= limit else order[: share_of(limit)]
            subgraph.drop("triple limit", len(order) - len(edge_selection))
            subgraph.orders += _cut_edges(entity, order, len(edge_selection), context)
            for iri in edge_selection:
                subgraph.add_edge(iri, edges[iri], hop, entity)
                for end in ends(edges[iri]):
                    reached[end] = max(reached.get(end, -1.0), meaning.of_edge(iri))
        ranked = sorted(reached.keys() - visited, key=lambda entity: (-reached[entity], entity))
        if hop + 1 < context.limits.max_path_length:
            subgraph.drop("entity limit", max(0, len(ranked) - context.limits.entity_limit))
            subgraph.orders += _cut_entities(ranked, hop, context)
        frontier = ranked[: context.limits.entity_limit]
    return subgraph


def _edges_in_order(
    entity: str, edges: Edges, inquiry: AnalysedQuestion, meaning: Similarity, context: Context
) -> Sequence[str]:
    """Return an entity's edges in selection order: by similarity and, beyond the limit, also by
    words of edge sentences."""
    if len(edges) <= context.limits.triple_limit:
        return by_meaning(edges, meaning)
    return nearest_of(entity, edges, inquiry, meaning, context)


def _cut_edges(
    entity: str, order: Sequence[str], taken: int, context: Context
) -> tuple[RankedOrder, ...]:
    """Return an entity's edges beyond the selected edges."""
    limit = context.limits.triple_limit
    suffix = f"; {limit - taken} more only beside good sentences" if limit > taken else ""
    why = "{item} is {place} edges of {about} by similarity to {question} and words shared with"
    reason = f"{why} {{question}}, and {taken} were taken (triple-limit {limit}{suffix})"
    return cut_order("edge", "triple-limit", taken, order, reason, about=entity)


def _cut_entities(order: Sequence[str], hop: int, context: Context) -> tuple[RankedOrder, ...]:
    """Return entities reached by a hop but not expanded further."""
    limit, hops = context.limits.entity_limit, f"{hop + 1} hop{'s' if hop else ''}"
    why = f"{{item}} is {{place}} entities reached by {hops}, by similarity of their edges to"
    reason = f"{why} {{question}}, and the search continued from {limit} (entity-limit {limit})"
    return cut_order("reached", "entity-limit", limit, order, reason)


def _at_hubs(
    entities: Iterable[str], inquiry: AnalysedQuestion, meaning: Similarity, context: Context
) -> dict[str, tuple[Sequence[str], Edges]]:
    """For hub entities with more edges than the limit, return ordered edges, and the selected
    edges."""
    limit = context.limits.triple_limit
    hubs = {} if inquiry.by_words else hubs_of(entities, context)
    large_hubs = {entity: hub for entity, hub in hubs.items() if len(hub) > limit}
    orders = nearest_at(large_hubs, inquiry, meaning)
    selections = {entity: order[: share_of(limit)] for entity, order in orders.items()}
    edge_iris = list(dict.fromkeys(iri for order in selections.values() for iri in order))
    meaning.learn(edge_iris)
    triples = context.graph.hubs.triples(edge_iris) if edge_iris else {}
    return {
        entity: (orders[entity], {iri: triples[iri] for iri in order})
        for entity, order in selections.items()
    }


def by_meaning(edges: Iterable[str], meaning: Similarity) -> list[str]:
    """Sort edges by similarity in meaning, nearest first."""
    return sorted(edges, key=lambda iri: (-meaning.of_edge(iri), iri))


def nearest_of(
    entity: str,
    edges: Iterable[str],
    inquiry: AnalysedQuestion,
    meaning: Similarity,
    context: Context,
) -> list[str]:
    """Rank an entity's edges by closeness to the question, nearest first.

    Two ranks are fused by reciprocal rank fusion (Cormack and others 2009): rank by meaning,
    and rank by question words shared with the edge's sentences, ignoring the entity's own name."""
    near = by_meaning(edges, meaning)
    weights = _weights_at(entity, inquiry)
    shared = _words_shared(near, weights, context)
    if not any(shared.values()):
        return near
    by_words = sorted(near, key=lambda iri: -shared[iri])
    worth = dict.fromkeys(near, 0.0)
    for order in (near, by_words):
        for rank, iri in enumerate(order):
            worth[iri] += 1 / (RANK_CONSTANT + rank)
    return sorted(near, key=lambda iri: -worth[iri])


def _weights_at(entity: str, inquiry: AnalysedQuestion) -> dict[str, float]:
    """Return question term weights, ignoring terms of the entity's own name."""
    entity_terms = term_set(local_name(entity))
    return {term: weight for term, weight in inquiry.weights.items() if term not in entity_terms}


def _words_shared(
    edges: Iterable[str], weights: Mapping[str, float], context: Context
) -> dict[str, float]:
    """Return, for each edge, the total weight of question terms shared with the edge's best
    sentence."""
    read = partial(context.evidence.of_edges, limit=READ_EVIDENCE)
    evidence = context.open_cache("evidence", 50_000).get_all(edges, read)
    return {
        iri: max(
            (
                sum(weight for term, weight in weights.items() if term in quote_terms)
                for quote_terms in (term_set(place.quote) for place in evidence.get(iri, ()))
            ),
            default=0.0,
        )
        for iri in edges
    }


def share_of(triple_limit: int) -> int:
    """Return the number of edges taken from an entity exceeding the triple limit; remaining
    places serve edges beside good sentences."""
    return max(1, triple_limit * 2 // 3)


def edges_of(entity: str, context: Context) -> Edges:
    """Return an entity's edges, at most ``HUB`` in each direction."""
    memory = context.open_cache("edges", 4_000)
    edges: Edges = memory.load_item(
        entity, lambda: context.graph.statements.read_edges_around(entity)
    )
    return edges


def all_edges(entity: str, store: Store) -> Edges:
    """Return all edges of an entity."""
    node = NamedNode(entity)
    outgoing = store.match(node, None, None, v.KNOWLEDGE_GRAPH)
    incoming = store.match(None, None, node, v.KNOWLEDGE_GRAPH)
    triples = [
        statement_of(quad.triple)
        for quad in chain(outgoing, incoming)
        if v.is_statement(quad.predicate) and isinstance(quad.subject, NamedNode)
    ]
    return {v.edge_iri(*triple): triple for triple in triples}


def weights_of(context: Context, edges: Sequence[str]) -> dict[str, EdgeAttributes]:
    """Return weight and description of each known edge."""
    memory = context.open_cache("attributes of edges", 50_000)
    return memory.get_all(edges, context.graph.statements.attributes)


# --- hubs ---


def hubs_of(entities: Iterable[str], context: Context) -> dict[str, Hub]:
    """Those of the entities whose edges stand ready with their words."""

    def read(missing: list[str]) -> dict[str, Hub | None]:
        return dict.fromkeys(missing) | context.graph.hubs.hubs(missing)

    hubs = context.open_cache("hubs", _HUBS).get_all(entities, read)
    return {entity: hub for entity, hub in hubs.items() if hub is not None}


def nearest_at(
    hubs: Mapping[str, Hub], inquiry: AnalysedQuestion, meaning: Similarity
) -> dict[str, list[str]]:
    """Rank each hub's edges like ``nearest_of``."""
    import numpy as np

    if not hubs:
        return {}
    likeness = meaning.of_all(np.concatenate([hub.iris for hub in hubs.values()]))
    bounds = np.cumsum([len(hub) for hub in hubs.values()])[:-1]
    orders = {}
    for (entity, hub), similarities in zip(hubs.items(), np.split(likeness, bounds), strict=True):
        order = _fuse_orders(similarities, hub.weigh_shared_terms(_weights_at(entity, inquiry)))
        orders[entity] = [iri.decode() for iri in hub.iris[order].tolist()]
    return orders


def _fuse_orders(likeness: NDArray[float64], shared: NDArray[float64]) -> NDArray[int64]:
    """Fuse ranks of edges, given in IRI order, like ``nearest_of``."""
    import numpy as np

    near = np.argsort(-likeness, kind="stable")
    if not shared.any():
        return near
    by_words = near[np.argsort(-shared[near], kind="stable")]
    worth = np.zeros(len(near))
    for order in (near, by_words):
        worth[order] += 1 / (RANK_CONSTANT + np.arange(len(order)))
    return near[np.argsort(-worth[near], kind="stable")]
