"""Graph ranking mode: chunks ordered by a random walk from the question.

After HippoRAG 2 (Gutiérrez and others 2025): the walk starts from the ends of the edges nearest
to the question, from the entities named in the question, and from the nearest chunks; beyond
HippoRAG 2 also from the chunks called after what the question names, and from those called after
what these mention. Unlike HippoRAG 2, each group has a fixed share of its own, whatever its size,
so that no group drowns another; and chunks are ranked by walk probability combined with their own
similarity to the question. Chunks with the best answering sentences come first, whether a
single sentence or a bridge of two, as read by the mode ``graph``: a walk doesn't read."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from pyoxigraph import NamedNode

from tgraph.model import Candidate, EntityMatch, RankedOrder, Retrieval
from tgraph.retrieve.base import Context, Question, SeedFilter, in_conversation
from tgraph.retrieve.candidates import assign_ranks as renumbered
from tgraph.retrieve.candidates import chunk_candidates, cost_of
from tgraph.retrieve.entity_matching import add_labels, triples_of
from tgraph.retrieve.labels import labels_of, with_labels
from tgraph.retrieve.modes.ppr import PprSearchSettings
from tgraph.retrieve.orders import MOST_BEYOND, cut_order, left_out_order, list_hit_iris
from tgraph.retrieve.reasons import THIRD_WORDING, explain
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

MOST_PAGES = 20
"""Chunks called after one thing, beyond which the walk doesn't start from them: a long document."""


@dataclass(frozen=True, slots=True)
class WalkStart:
    """A starting entity of the walk, with walk weight and match."""

    node: int
    weight: float
    match: EntityMatch


class PprRetriever:
    """A retriever for the mode ``ppr``; ``keep`` filters candidate starting edges."""

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
        compared, known_count = self._compare(vector, "chunk", settings.dense_chunks, context)
        chunks = compared[: settings.dense_chunks]
        near_edges, every = self._compare(vector, "edge", settings.top_k_edges, context)
        offered = seed_edges(near_edges[: settings.top_k_edges], context)
        edges = self._filter_edges(question, offered, context)
        name_shares = named_shares(question.text, network, settings.name_weight)
        starts = walk_starts(question.text, name_shares, edges, network, settings)
        titles = {node: share for node, (share, _) in name_shares.items() if network.is_chunk(node)}
        before_pages = context.wording < THIRD_WORDING  # a session of a release without them
        pages = {} if before_pages else named_pages(name_shares, network)
        linked = linked_pages(pages, network)
        weights = self._start_weights(starts, (titles, pages, linked), chunks, network)
        walk = network.walk(weights, settings.damping) if weights else None
        order = rank_chunks(network, walk, chunks, vector, settings, context)
        read = read_first(question, settings.read, context)
        order = dict.fromkeys(read, 1.0) | {c: s for c, s in order.items() if c not in read}
        result = _WalkResult(
            network, starts, dict(chunks), frozenset(read), (pages, linked), walk, context
        )
        orders = (
            *self._starts_cut(list_hit_iris(near_edges), every, offered, edges),
            *self._chunks_cut(list(order), list_hit_iris(compared), known_count),
        )
        passages = dict(islice(order.items(), settings.passages))
        return result.retrieval(edges, passages, orders)

    def _compare(
        self, vector: NDArray[float32], kind: str, count: int, context: Context
    ) -> tuple[Hits, int]:
        """Return the nearest items of a kind, further items beyond the count, and the kind's
        total."""
        vectors = context.vectors[kind]
        return vectors.search(vector, count, beyond=MOST_BEYOND)[0], len(vectors)

    def _starts_cut(
        self,
        near: Sequence[str],
        total: int,
        offered: Sequence[Candidate],
        kept: Sequence[Candidate],
    ) -> tuple[RankedOrder, ...]:
        """Return edges the walk could have started from."""
        edge_limit = self._settings.top_k_edges
        why = "{item} is {place} edges by similarity to {question}, and the"
        limit = f"{why} walk starts from the first {edge_limit} (top-k-edges)"
        choice = (
            f"{why} model did not choose it among the first {edge_limit} to start from (filter)"
        )
        chosen = {edge.item.iri for edge in kept}
        refused = [edge.item.iri for edge in offered if edge.item.iri not in chosen]
        ranks = {iri: near.index(iri) + 1 for iri in refused}
        return (
            *cut_order("start", "top-k-edges", edge_limit, near, limit, total=total),
            *left_out_order("start", "filter", None, ranks, choice, total=total),
        )

    def _chunks_cut(
        self, order: Sequence[str], near: Sequence[str], total: int
    ) -> tuple[RankedOrder, ...]:
        """Return chunks beyond the selected chunks, and unranked chunks."""
        settings, ranked_chunks = self._settings, set(order)
        limit, often = settings.passages, max(OFTEN, settings.passages)
        why = "{item} is {place} chunks in the order of the walk, and the first"
        dense = "{item} is {place} chunks by similarity to {question}, and beside the first"
        dense = (
            f"{dense} {settings.dense_chunks} (dense-chunks) only the {often} were ranked at which"
        )
        ranks = {chunk: n for n, chunk in enumerate(near, 1) if chunk not in ranked_chunks}
        return (
            *cut_order("chunk", "passages", limit, order, f"{why} {limit} were taken (passages)"),
            *left_out_order(
                "chunk",
                "dense-chunks",
                settings.dense_chunks,
                ranks,
                f"{dense} the walk is most often",
                total=total,
            ),
        )

    def _filter_edges(
        self, question: Question, edges: list[Candidate], context: Context
    ) -> list[Candidate]:
        if self._keep is None or not edges:
            return edges
        edge_iris = set(self._keep(question, edges, context))
        return list(renumbered(edge for edge in edges if edge.item.iri in edge_iris))

    def _start_weights(
        self,
        starts: Sequence[WalkStart],
        direct: Iterable[Mapping[int, float]],
        chunks: Hits,
        network: Network,
    ) -> dict[int, float]:
        """Weigh the walk's starting nodes: entities, chunks that names lead to ``direct``, and
        chunks by similarity."""
        node_weights: defaultdict[int, float] = defaultdict(float)
        for chunk, share in chain.from_iterable(weights.items() for weights in direct):
            node_weights[chunk] += share
        for start in starts:
            node_weights[start.node] += start.weight
        top_score = max((score for _, score in chunks), default=0.0)
        near = {iri: math.exp(SHARPNESS * (score - top_score)) for iri, score in chunks}
        for iri, share in scale_weights(near, self._settings.passage_weight).items():
            node = network.node(iri)
            if node is not None:
                node_weights[node] += share
        return {node: weight for node, weight in node_weights.items() if weight > 0}


def read_first(question: Question, count: int, context: Context) -> list[str]:
    """Return chunks containing the best evidence of the mode ``graph``, at most ``count``."""
    if not count:
        return []
    candidates = GraphRetriever().retrieve(question, context).candidates
    places = (place.chunk for candidate in candidates for place in candidate.evidence)
    return list(islice(dict.fromkeys(places), count))


def scale_weights(weights: Mapping[K, float], whole: float) -> dict[K, float]:
    """Scale weights proportionally to sum ``whole``; return an empty mapping if all weights are
    0."""
    total = sum(weights.values())
    return {key: whole * weight / total for key, weight in weights.items()} if total > 0 else {}


def rank_chunks(
    network: Network,
    walk: NDArray[float64] | None,
    near: Hits,
    vector: NDArray[float32],
    settings: PprSearchSettings,
    context: Context,
) -> dict[str, float]:
    """Rank chunks, best first, with scores; the best score is 1.

    Score formula: walk share times e to the power of ``likeness`` times cosine between chunk
    and question. The nearest ``head`` chunks come first, with the best chunk's score."""
    import numpy as np

    likeness = dict(near)
    visits = np.zeros(len(network.chunks)) if walk is None else walk[len(network.entities) :]
    visits = np.round(visits / max(float(visits.max(initial=0.0)), 1e-300), 9)
    often = np.argsort(-visits, kind="stable")[: max(OFTEN, settings.passages)].tolist()
    often = [network.chunks[place] for place in often if visits[place] > 0]
    unscored_chunks = [chunk for chunk in often if chunk not in likeness]
    if unscored_chunks:
        likeness.update(
            context.vectors["chunk"].search(vector, len(unscored_chunks), unscored_chunks)[0]
        )
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
    """Return valid edges as candidates, with labels and evidence, in the given order."""
    triples = triples_of([iri for iri, _ in nearest], context)
    limit = context.limits.evidence_limit
    evidence = context.evidence.of_edges(list(triples), limit)
    edges = dict(zip(triples, with_labels(context.graph, list(triples.values())), strict=True))
    candidates: list[Candidate] = []
    for iri, score in nearest:
        places = evidence.get(iri, ())
        if iri in edges and places and score > 0:
            why = explain("seed-similarity", score=score)
            cost = cost_of(edges[iri], evidence=places)
            candidates.append(
                Candidate(
                    edges[iri],
                    len(candidates) + 1,
                    score,
                    evidence=places,
                    reasons=(why,),
                    tokens=cost,
                )
            )
    return candidates


def walk_starts(
    text: str,
    named: Mapping[int, tuple[float, str]],
    edges: Sequence[Candidate],
    network: Network,
    settings: PprSearchSettings,
) -> list[WalkStart]:
    """Return starting entities of the walk, best first: ``named`` entities, and edge ends, at
    most ``top_k_entities``.

    Entities named in many chunks weigh less (HippoRAG's node specificity)."""
    starts = {
        node: WalkStart(node, share, _entity_match(node, network, name, 1.0, "name"))
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
    for node, share in scale_weights({n: weights[n] for n in best}, settings.edge_weight).items():
        name_start = starts.get(node)
        match = (
            name_start.match
            if name_start
            else _entity_match(node, network, text, max(scores[node]), "edge")
        )
        starts[node] = WalkStart(node, share + (name_start.weight if name_start else 0.0), match)
    return sorted(starts.values(), key=lambda s: (s.match.method != "name", -s.weight, s.node))


def named_pages(named: Mapping[int, tuple[float, str]], network: Network) -> dict[int, float]:
    """Return the chunks called after what is ``named``, with the share of each."""
    titled = Counter(name for node, (_, name) in named.items() if network.is_chunk(node))
    pages: defaultdict[int, float] = defaultdict(float)
    for node, (share, name) in named.items():
        if titled[name] > MOST_PAGES:
            continue
        about = [node] if network.is_chunk(node) else _list_pages(node, network)
        for page in about:
            pages[page] += share / len(about)
    return dict(pages)


def linked_pages(pages: Mapping[int, float], network: Network) -> dict[int, float]:
    """Return the chunks called after what ``pages`` mention, other than these; each page passes
    on its share in equal parts."""
    shares: defaultdict[int, float] = defaultdict(float)
    for page, share in pages.items():
        linked: dict[int, float] = {}
        for entity in network.list_neighbours(page):
            about = _list_pages(entity, network)
            linked |= {c: max(linked.get(c, 0.0), 1 / len(about)) for c in about if c not in pages}
        for chunk, part in scale_weights(linked, share).items():
            shares[chunk] += part
    return dict(shares)


def _list_pages(entity: int, network: Network) -> list[int]:
    """Return the chunks whose title is an entity; an empty list beyond ``MOST_PAGES`` chunks."""
    about = network.chunks_about(entity)
    return about if len(about) <= MOST_PAGES else []


def _entity_match(
    node: int, network: Network, concept: str, score: float, method: str
) -> EntityMatch:
    return EntityMatch(network.iri(node), "", concept, round(score, 6), method)


def named_shares(text: str, network: Network, whole: float) -> dict[int, tuple[float, str]]:
    """Return nodes named in a text, adding each node's share of ``whole`` and the naming words.

    Nodes named in many chunks weigh less; all chunks of a document with this title together
    count as much as an entity named in one chunk."""
    name_texts: dict[int, str] = {}
    rare: dict[int, float] = {}
    for name in network.names.in_text(text):
        chunks = sum(map(network.is_chunk, name.nodes))
        for node in name.nodes:
            name_texts.setdefault(node, name.text)
            rare[node] = 1 / (chunks if network.is_chunk(node) else max(network.spread[node], 1))
    return {node: (share, name_texts[node]) for node, share in scale_weights(rare, whole).items()}


# --- what it finds ---


@dataclass(frozen=True, slots=True)
class _WalkResult:
    """A walk result: ``near`` maps the chunks nearest to the question to similarities; ``read``
    holds chunks with the best answering sentences, ``pages`` the ``named_pages`` and the
    ``linked_pages``."""

    network: Network
    starts: Sequence[WalkStart]
    near: Mapping[str, float]
    read: frozenset[str]
    pages: tuple[Collection[int], Collection[int]]
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
        reasons = self._chunk_reasons(list(order))
        chunk_rows = ((chunk, score, reasons[chunk]) for chunk, score in order.items())
        chunks = chunk_candidates(self.context, chunk_rows)
        matches = add_labels([start.match for start in self.starts], self.context.graph)
        return Retrieval(
            candidates=renumbered([*edges, *chunks]),
            total=len(edges),
            items=len(chunks),
            matches=tuple(matches),
            orders=orders,
        )

    def _chunk_reasons(self, chunks: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return retrieval reasons for each chunk: entities leading the walk there, and
        similarity to the question."""
        leading = {chunk: self._leading_entities(chunk) for chunk in chunks}
        nodes = {NamedNode(self.network.iri(n)) for entities in leading.values() for n in entities}
        labels = labels_of(self.context.graph, nodes)
        reasons_by_chunk = {}
        for chunk, entities in leading.items():
            names = [labels[NamedNode(self.network.iri(node))] for node in entities]
            reasons = [explain("chunk-read-best")] if chunk in self.read else []
            reasons += [explain("chunk-walk", names=", ".join(names))] if names else []
            if chunk in self.near:
                reasons.append(explain("chunk-similarity", score=self.near[chunk]))
            for kind, pages in zip(("chunk-named", "chunk-linked"), self.pages, strict=True):
                reasons += [explain(kind)] if self.network.node(chunk) in pages else []
            reasons_by_chunk[chunk] = tuple(reasons) or (explain("chunk-walk-others"),)
        return reasons_by_chunk

    def _leading_entities(self, chunk: str) -> list[int]:
        """Return the chunk's neighbouring entities with highest walk probability."""
        node, walk = self.network.node(chunk), self.walk
        if node is None or walk is None:
            return []
        beside = self.network.list_neighbours(node)
        entities = [n for n in beside if n < len(self.network.entities) and walk[n] > 0]
        return sorted(entities, key=lambda n: (-round(float(walk[n]), 12), n))[:SHOWN]
