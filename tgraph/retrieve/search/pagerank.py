"""Graph ranking as a mode: chunks in the order in which a walk from the question reaches them.

After HippoRAG 2 (Gutiérrez and others 2025): the walk starts from the ends of the edges nearest to
the question, from the entities that it names, and from the chunks nearest to it. Unlike there each
of the three has a share of its own, whatever their number, so that none drowns another; and chunks
are ranked by where the walk goes and by their own likeness to the question together. In front stand
the chunks whose sentences answer best, one by itself or two over a bridge, as the mode ``graph``
reads them: a walk doesn't read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from pyoxigraph import NamedNode

from tgraph.model import Candidate, EntityMatch, RankedOrder, Retrieval
from tgraph.retrieve.base import Context, Question, SeedFilter, in_conversation
from tgraph.retrieve.candidates import chunk_candidates, cost_of
from tgraph.retrieve.candidates import ranked as renumbered
from tgraph.retrieve.entity_matching import labelled, triples_of
from tgraph.retrieve.labels import labels_of, with_labels
from tgraph.retrieve.modes.ppr import PprSearchSettings
from tgraph.retrieve.orders import MOST_BEYOND, cut_order, iris, left_out_order
from tgraph.retrieve.search.graph import GraphRetriever
from tgraph.retrieve.search.network import Network, network_of

if TYPE_CHECKING:
    from numpy import float32, float64
    from numpy.typing import NDArray


K = TypeVar("K")
Hits = Sequence[tuple[str, float]]
SHARPNESS = 10.0
"""How much sooner the walk starts from a chunk that is more like the question (cosine)."""

OFTEN = 100
"""Chunks, at which the walk is most often, that are ranked beside the nearest."""

UNVISITED = 1e-5
"""What a chunk counts for beyond the walk, of what it is at most often."""

SHOWN = 3
"""Entities that a reason names."""


@dataclass(frozen=True, slots=True)
class WalkStart:
    """An entity that the walk starts from: its weight in the walk, and how it was matched."""

    node: int
    weight: float
    match: EntityMatch


class PprRetriever:
    """The mode ``ppr``; ``keep`` chooses among the edges that it may start from."""

    step = "GraphRanking"
    matches_entities = True

    def __init__(self, settings: PprSearchSettings, keep: SeedFilter | None = None) -> None:
        self._settings = settings
        self._keep = keep

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        settings = self._settings
        network = network_of(context, settings.synonymy, settings.subject_weight)
        text = in_conversation(question)
        vector = context.embed([text])
        compared, known = self._compare(vector, "chunk", settings.dense_chunks, context)
        chunks = compared[: settings.dense_chunks]
        near_edges, every = self._compare(vector, "edge", settings.top_k_edges, context)
        offered = seed_edges(near_edges[: settings.top_k_edges], context)
        edges = self._kept(question, offered, context)
        named = named_shares(question.text, network, settings.name_weight)
        starts = walk_starts(question.text, named, edges, network, settings)
        titles = {node: share for node, (share, _) in named.items() if network.is_chunk(node)}
        weights = self._weights(starts, titles, chunks, network)
        walk = network.walk(weights, settings.damping) if weights else None
        order = ranked(network, walk, chunks, vector, settings, context)
        read = read_first(question, settings.read, context)
        order = dict.fromkeys(read, 1.0) | {c: s for c, s in order.items() if c not in read}
        found = _WalkResult(network, starts, dict(chunks), frozenset(read), walk, context)
        orders = (
            *self._starts_cut(iris(near_edges), every, offered, edges),
            *self._chunks_cut(list(order), iris(compared), known),
        )
        taken = dict(islice(order.items(), settings.passages))
        return found.retrieval(edges, taken, orders)

    def _compare(
        self, vector: NDArray[float32], kind: str, count: int, context: Context
    ) -> tuple[Hits, int]:
        """The nearest of a kind and some more, and how many there are of the kind."""
        vectors = context.vectors[kind]
        return vectors.search(vector, count, beyond=MOST_BEYOND)[0], len(vectors)

    def _starts_cut(
        self,
        near: Sequence[str],
        total: int,
        offered: Sequence[Candidate],
        kept: Sequence[Candidate],
    ) -> tuple[RankedOrder, ...]:
        """The edges that the walk could have started from."""
        most = self._settings.top_k_edges
        why = "{item} is {place} edges by likeness to {question}, and the"
        limit = f"{why} walk starts from the first {most} (top-k-edges)"
        choice = f"{why} model did not choose it among the first {most} to start from (filter)"
        chosen = {edge.item.iri for edge in kept}
        refused = [edge.item.iri for edge in offered if edge.item.iri not in chosen]
        ranks = {iri: near.index(iri) + 1 for iri in refused}
        return (
            *cut_order("start", "top-k-edges", most, near, limit, total=total),
            *left_out_order("start", "filter", None, ranks, choice, total=total),
        )

    def _chunks_cut(
        self, order: Sequence[str], near: Sequence[str], total: int
    ) -> tuple[RankedOrder, ...]:
        """The chunks beyond those that are taken, and those that were not ranked at all."""
        own, ranked_chunks = self._settings, set(order)
        most, often = own.passages, max(OFTEN, own.passages)
        why = "{item} is {place} chunks in the order of the walk, of which the first"
        dense = "{item} is {place} chunks by likeness to {question}, and beside the first"
        dense = f"{dense} {own.dense_chunks} (dense-chunks) only the {often} were ranked at which"
        ranks = {chunk: n for n, chunk in enumerate(near, 1) if chunk not in ranked_chunks}
        return (
            *cut_order("chunk", "passages", most, order, f"{why} {most} were taken (passages)"),
            *left_out_order(
                "chunk",
                "dense-chunks",
                own.dense_chunks,
                ranks,
                f"{dense} the walk is most often",
                total=total,
            ),
        )

    def _kept(
        self, question: Question, edges: list[Candidate], context: Context
    ) -> list[Candidate]:
        if self._keep is None or not edges:
            return edges
        kept = set(self._keep(question, edges, context))
        return list(renumbered(edge for edge in edges if edge.item.iri in kept))

    def _weights(
        self,
        starts: Sequence[WalkStart],
        titles: Mapping[int, float],
        chunks: Hits,
        network: Network,
    ) -> dict[int, float]:
        """Where the walk starts: the entities, the chunks whose title is named, and the chunks by
        their likeness."""
        found: defaultdict[int, float] = defaultdict(float, titles)
        for start in starts:
            found[start.node] += start.weight
        most = max((score for _, score in chunks), default=0.0)
        near = {iri: math.exp(SHARPNESS * (score - most)) for iri, score in chunks}
        for iri, share in shares(near, self._settings.passage_weight).items():
            node = network.node(iri)
            if node is not None:
                found[node] += share
        return {node: weight for node, weight in found.items() if weight > 0}


def read_first(question: Question, count: int, context: Context) -> list[str]:
    """The chunks, at most ``count``, in which the best evidence of the mode ``graph`` stands."""
    if not count:
        return []
    candidates = GraphRetriever().retrieve(question, context).candidates
    places = (place.chunk for candidate in candidates for place in candidate.evidence)
    return list(islice(dict.fromkeys(places), count))


def shares(weights: Mapping[K, float], whole: float) -> dict[K, float]:
    """The weights in their proportions, together ``whole``; none where all are 0."""
    total = sum(weights.values())
    return {key: whole * weight / total for key, weight in weights.items()} if total > 0 else {}


def ranked(
    network: Network,
    walk: NDArray[float64] | None,
    near: Hits,
    vector: NDArray[float32],
    settings: PprSearchSettings,
    context: Context,
) -> dict[str, float]:
    """The chunks, best first, with their scores: 1 for the best.

    A score is the chunk's share of the walk times e to the ``likeness``-fold cosine between chunk
    and question. The nearest ``head`` stand first, with the score of the best.
    """
    import numpy as np

    likeness = dict(near)
    visits = np.zeros(len(network.chunks)) if walk is None else walk[len(network.entities) :]
    visits = np.round(visits / max(float(visits.max(initial=0.0)), 1e-300), 9)
    often = np.argsort(-visits, kind="stable")[: max(OFTEN, settings.passages)].tolist()
    often = [network.chunks[place] for place in often if visits[place] > 0]
    others = [chunk for chunk in often if chunk not in likeness]
    if others:
        likeness.update(context.vectors["chunk"].search(vector, len(others), others)[0])
    first = len(network.entities)
    scores = {}
    for chunk, cosine in likeness.items():
        node = network.node(chunk)
        share = 0.0 if node is None else float(visits[node - first])
        scores[chunk] = math.log(share + UNVISITED) + settings.likeness * cosine
    order = sorted(scores, key=lambda chunk: (-round(scores[chunk], 6), chunk))
    head = [chunk for chunk, _ in near[: settings.head]]
    best = scores[order[0]] if order else 0.0
    return {
        chunk: 1.0 if chunk in head else round(math.exp(scores[chunk] - best), 6)
        for chunk in dict.fromkeys((*head, *order))
    }


# --- where the walk starts ---


def seed_edges(nearest: Hits, context: Context) -> list[Candidate]:
    """The edges that stand, with their labels and evidence, in the order given."""
    triples = triples_of([iri for iri, _ in nearest], context)
    limit = context.limits.evidence_limit
    evidence = context.evidence.of_edges(list(triples), limit)
    edges = dict(zip(triples, with_labels(context.graph, list(triples.values())), strict=True))
    found: list[Candidate] = []
    for iri, score in nearest:
        places = evidence.get(iri, ())
        if iri in edges and places and score > 0:
            why = f"a sentence of it is {score:.2f} similar in meaning to the question"
            cost = cost_of(edges[iri], evidence=places)
            found.append(
                Candidate(
                    edges[iri], len(found) + 1, score, evidence=places, reasons=(why,), tokens=cost
                )
            )
    return found


def walk_starts(
    text: str,
    named: Mapping[int, tuple[float, str]],
    edges: Sequence[Candidate],
    network: Network,
    settings: PprSearchSettings,
) -> list[WalkStart]:
    """The entities to start from, best first: those that are ``named``, and the ends of the edges,
    at most ``top_k_entities`` of these. What many chunks name weighs less (HippoRAG's node
    specificity)."""
    found = {
        node: WalkStart(node, share, _match(node, network, name, 1.0, "name"))
        for node, (share, name) in named.items()
        if not network.is_chunk(node)
    }
    scores: defaultdict[int, list[float]] = defaultdict(list)
    for candidate in edges:
        for term in (candidate.edge.subject, candidate.edge.object):
            node_ = network.node(term.value) if isinstance(term, NamedNode) else None
            if node_ is not None:
                scores[node_].append(candidate.score)
    weights = {
        node: sum(of_edges) / len(of_edges) / max(network.spread[node], 1)
        for node, of_edges in scores.items()
    }
    best = sorted(weights, key=lambda n: (-weights[n], n))[: settings.top_k_entities]
    for node, share in shares({n: weights[n] for n in best}, settings.edge_weight).items():
        known = found.get(node)
        match = known.match if known else _match(node, network, text, max(scores[node]), "edge")
        found[node] = WalkStart(node, share + (known.weight if known else 0.0), match)
    return sorted(found.values(), key=lambda s: (s.match.method != "name", -s.weight, s.node))


def _match(node: int, network: Network, concept: str, score: float, method: str) -> EntityMatch:
    return EntityMatch(network.iri(node), "", concept, round(score, 6), method)


def named_shares(text: str, network: Network, whole: float) -> dict[int, tuple[float, str]]:
    """The nodes that a text names, each with its share of the ``whole`` and the words that name it.

    What many chunks name weighs less; the chunks of a document that is called so count together as
    much as an entity that one chunk names."""
    said: dict[int, str] = {}
    rare: dict[int, float] = {}
    for name in network.names.in_text(text):
        chunks = sum(map(network.is_chunk, name.nodes))
        for node in name.nodes:
            said.setdefault(node, name.text)
            rare[node] = 1 / (chunks if network.is_chunk(node) else max(network.spread[node], 1))
    return {node: (share, said[node]) for node, share in shares(rare, whole).items()}


# --- what it finds ---


@dataclass(frozen=True, slots=True)
class _WalkResult:
    """What the walk came to. ``near`` is the likeness of the chunks nearest to the question,
    ``read`` are those whose sentences answer it best."""

    network: Network
    starts: Sequence[WalkStart]
    near: Mapping[str, float]
    read: frozenset[str]
    walk: NDArray[float64] | None
    context: Context

    def retrieval(
        self,
        edges: Sequence[Candidate],
        order: Mapping[str, float],
        orders: tuple[RankedOrder, ...],
    ) -> Retrieval:
        """The edges that the walk starts from, then the chunks in the order given; ``orders`` are
        what limits cut off."""
        reasons = self._reasons(list(order))
        found = ((chunk, score, reasons[chunk]) for chunk, score in order.items())
        chunks = chunk_candidates(self.context, found)
        matches = labelled([start.match for start in self.starts], self.context.graph)
        return Retrieval(
            candidates=renumbered([*edges, *chunks]),
            total=len(edges),
            items=len(chunks),
            matches=tuple(matches),
            orders=orders,
        )

    def _reasons(self, chunks: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """For each chunk, over which of its entities the walk came, and its own likeness."""
        leading = {chunk: self._leading(chunk) for chunk in chunks}
        nodes = {NamedNode(self.network.iri(n)) for found in leading.values() for n in found}
        labels = labels_of(self.context.graph, nodes)
        said = {}
        for chunk, found in leading.items():
            names = [labels[NamedNode(self.network.iri(node))] for node in found]
            reasons = ["its sentences answer the question best"] if chunk in self.read else []
            reasons += [f"the walk comes to it over {', '.join(names)}"] if names else []
            if chunk in self.near:
                reasons.append(f"it is {self.near[chunk]:.2f} similar in meaning to the question")
            said[chunk] = tuple(reasons) or ("the walk comes to it over another chunk's entities",)
        return said

    def _leading(self, chunk: str) -> list[int]:
        """The entities beside the chunk at which the walk is most often."""
        node, walk = self.network.node(chunk), self.walk
        if node is None or walk is None:
            return []
        beside = self.network.beside(node)
        entities = [n for n in beside if n < len(self.network.entities) and walk[n] > 0]
        return sorted(entities, key=lambda n: (-round(float(walk[n]), 12), n))[:SHOWN]
