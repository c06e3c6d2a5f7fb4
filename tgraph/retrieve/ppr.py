"""Graph ranking as a mode: chunks in the order in which a walk from the question reaches them.

After HippoRAG 2 (Gutiérrez and others 2025): the walk starts from the ends of the edges nearest to
the question, from the entities that it names, and with a small weight from the chunks nearest to
it. The nearest of all stand first whatever the walk says.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode

from tgraph.index.evidence import evidence_of
from tgraph.model import Candidate, EntityMatch, Retrieval
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.basic import in_conversation
from tgraph.retrieve.chunks import chunk_evidence, chunk_item, chunk_tokens
from tgraph.retrieve.costs import cost_of
from tgraph.retrieve.labels import labels_of, with_labels
from tgraph.retrieve.lexical import STOP_WORDS
from tgraph.retrieve.ranking import Network, network_of
from tgraph.retrieve.seeds import triple_of
from tgraph.settings import PprSearchSettings

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

Hits = Sequence[tuple[str, float]]
SeedFilter = Callable[[Question, Sequence[Candidate], Context], Sequence[str]]
"""Which of the edges are worth starting from, by IRI: the model's part, where it has one."""

LONGEST = 10
"""Words of a name in a question."""

SHOWN = 3
"""Entities that a reason names."""

_WORD = re.compile(r"\w+(?:['’.\-]\w+)*")
_POSSESSIVE = re.compile(r"['’]s?$")


@dataclass(frozen=True, slots=True)
class Start:
    """An entity that the walk starts from: its weight in the walk, and how it was matched."""

    node: int
    weight: float
    match: EntityMatch


class PprRetriever:
    """The mode ``ppr``; ``keep`` chooses among the edges that it may start from."""

    mode = "ppr"
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
        chunks = context.vectors["chunk"].search(vector, settings.dense_chunks)[0]
        nearest = context.vectors["edge"].search(vector, settings.top_k_edges)[0]
        edges = self._kept(question, seed_edges(nearest, context), context)
        starts = starts_of(question.text, edges, network, settings)
        walk = network.walk(self._weights(starts, chunks, network), settings.damping)
        found = _Found(network, starts, dict(chunks), walk, settings, context)
        return found.retrieval(edges)

    def _kept(
        self, question: Question, edges: list[Candidate], context: Context
    ) -> list[Candidate]:
        if self._keep is None or not edges:
            return edges
        kept = set(self._keep(question, edges, context))
        chosen = [candidate for candidate in edges if candidate.item.iri in kept]
        return [replace(candidate, rank=rank) for rank, candidate in enumerate(chosen, 1)]

    def _weights(self, starts: Sequence[Start], chunks: Hits, network: Network) -> dict[int, float]:
        """Where the walk starts: the entities, and the chunks by their likeness, from the least
        of them (0) to the greatest (``passage_weight``)."""
        found: defaultdict[int, float] = defaultdict(float)
        for start in starts:
            found[start.node] += start.weight
        least = min((score for _, score in chunks), default=0.0)
        most = max((score for _, score in chunks), default=0.0)
        for iri, score in chunks:
            node = network.node(iri)
            if node is not None:
                share = (score - least) / (most - least) if most > least else 1.0
                found[node] += self._settings.passage_weight * share
        return {node: weight for node, weight in found.items() if weight > 0}


# --- where the walk starts ------------------------------------------------------------------------


def seed_edges(nearest: Hits, context: Context) -> list[Candidate]:
    """The edges that stand, with their labels and evidence, in the order given."""
    triples = {iri: triple for iri, _ in nearest if (triple := triple_of(iri, context))}
    limit = context.limits.evidence_limit
    evidence = evidence_of(context.store, context.texts, list(triples), limit)
    labelled = with_labels(context.store, list(triples.values()))
    edges = dict(zip(triples, labelled, strict=True))
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


def starts_of(
    text: str, edges: Sequence[Candidate], network: Network, settings: PprSearchSettings
) -> list[Start]:
    """The entities to start from, best first: those that the question names, and the ends of the
    edges, at most ``top_k_entities`` of these. What many chunks name weighs less (HippoRAG's node
    specificity)."""
    found: dict[int, Start] = {}
    for node, name in names_in(text, network).items():
        weight = settings.name_weight / max(network.spread[node], 1)
        found[node] = Start(node, weight, _match(node, network, name, 1.0, "name"))
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
    for node in sorted(weights, key=lambda n: (-weights[n], n))[: settings.top_k_entities]:
        known = found.get(node)
        weight = weights[node] + (known.weight if known else 0.0)
        match = known.match if known else _match(node, network, text, max(scores[node]), "edge")
        found[node] = Start(node, weight, match)
    return sorted(found.values(), key=lambda s: (s.match.method != "name", -s.weight, s.node))


def _match(node: int, network: Network, concept: str, score: float, method: str) -> EntityMatch:
    return EntityMatch(network.iri(node), "", concept, round(score, 6), method)


def names_in(text: str, network: Network) -> dict[int, str]:
    """The entities that a text names, with the words that do; longer names go before the shorter
    ones in them."""
    words = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    taken = [False] * len(words)
    found: dict[int, str] = {}
    for length in range(min(LONGEST, len(words)), 0, -1):
        for first in range(len(words) - length + 1):
            part = slice(first, first + length)
            name = text[words[first][0] : words[first + length - 1][1]]
            if all(taken[part]) or (length == 1 and name.lower() in STOP_WORDS):
                continue
            for node in _called(name, network):
                found.setdefault(node, name)
                taken[part] = [True] * length
    return found


def _called(name: str, network: Network) -> Iterator[int]:
    for variant in dict.fromkeys((name, f"{name}.", _POSSESSIVE.sub("", name))):
        node = network.named(variant) if variant else None
        if node is not None:
            yield node


# --- what it finds --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """What the walk came to. ``near`` is the likeness of the chunks nearest to the question."""

    network: Network
    starts: Sequence[Start]
    near: Mapping[str, float]
    walk: NDArray[float64]
    settings: PprSearchSettings
    context: Context

    def retrieval(self, edges: Sequence[Candidate]) -> Retrieval:
        ranked = self.ranked()
        evidence = chunk_evidence(self.context, ranked)
        tokens = chunk_tokens(self.context, list(evidence))
        reasons = self._reasons([chunk for chunk in ranked if chunk in evidence])
        most = max((self._visits(chunk) for chunk in ranked), default=1.0) or 1.0
        chunks: list[Candidate] = []
        for chunk in filter(evidence.__contains__, ranked):
            item = chunk_item(evidence[chunk])
            chunks.append(
                Candidate(
                    item,
                    len(edges) + len(chunks) + 1,
                    round(self._visits(chunk) / most, 6),
                    evidence=(evidence[chunk],),
                    reasons=reasons[chunk],
                    tokens=cost_of(item, tokens.get(chunk)),
                )
            )
        return Retrieval(
            candidates=(*edges, *chunks),
            total=len(edges),
            items=len(chunks),
            matches=self._matches(),
        )

    def ranked(self) -> list[str]:
        """The chunks, best first, at most ``passages``: the nearest ``head``, then by the walk."""
        import numpy as np

        entities = len(self.network.entities)
        visits = np.round(self.walk[entities:], 12)
        order = np.argsort(-visits, kind="stable")[: self.settings.passages].tolist()
        reached = (self.network.chunks[place] for place in order if visits[place] > 0)
        head = list(self.near)[: self.settings.head]
        return list(dict.fromkeys((*head, *reached)))[: self.settings.passages]

    def _visits(self, chunk: str) -> float:
        node = self.network.node(chunk)
        return 0.0 if node is None else float(self.walk[node])

    def _reasons(self, chunks: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """For each chunk, over which of its entities the walk came, and its own likeness."""
        leading = {chunk: self._leading(chunk) for chunk in chunks}
        nodes = {NamedNode(self.network.iri(n)) for found in leading.values() for n in found}
        labels = labels_of(self.context.store, nodes)
        said = {}
        for chunk, found in leading.items():
            names = [labels[NamedNode(self.network.iri(node))] for node in found]
            reasons = [f"the walk comes to it over {', '.join(names)}"] if names else []
            if chunk in self.near:
                reasons.append(f"it is {self.near[chunk]:.2f} similar in meaning to the question")
            said[chunk] = tuple(reasons) or ("the walk comes to it",)
        return said

    def _leading(self, chunk: str) -> list[int]:
        """The entities beside the chunk at which the walk is most often."""
        node = self.network.node(chunk)
        beside = [] if node is None else self.network.beside(node)
        entities = [n for n in beside if n < len(self.network.entities)]
        return sorted(entities, key=lambda n: (-round(float(self.walk[n]), 12), n))[:SHOWN]

    def _matches(self) -> tuple[EntityMatch, ...]:
        matches = [start.match for start in self.starts]
        labels = labels_of(self.context.store, [NamedNode(m.entity) for m in matches])
        return tuple(replace(m, label=labels[NamedNode(m.entity)]) for m in matches)
