"""Graph ranking: entities and chunks as one network, in which a walk from what a question names
finds what belongs to it.

The network is that of HippoRAG 2 (Gutiérrez and others 2025, "From RAG to Memory"): its nodes are
the entities and the chunks of the published state; relationships tie entities, a mention ties a
chunk and an entity, and entities whose names mean nearly the same are tied as synonyms. Beyond it a
chunk is tied to what it is about: the entity that its document or its section is called after.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyoxigraph import Literal, Triple

from tgraph import vocabulary as v
from tgraph.index.evidence import EvidenceReader
from tgraph.index.sources import document_of_chunk
from tgraph.index.vectors.vector_index import VectorSet
from tgraph.retrieve.base import BoundedCache, Context
from tgraph.retrieve.labels import local_name
from tgraph.retrieve.search.names import NameIndex, is_name
from tgraph.retrieve.text.lexical import words
from tgraph.store.base import Store, select, text_of

if TYPE_CHECKING:
    from igraph import Graph
    from numpy import float64, int64
    from numpy.typing import NDArray

Pair = tuple[int, int]
Ties = Mapping[Pair, float]
"""Weights, greater than 0, by the two nodes that they tie."""

COMMON = 100
"""Names with one word in common, beyond which it says nothing."""

_AT_ONCE = 20_000
_ASIDE = re.compile(r"\s*\([^()]*\)$")


@dataclass(frozen=True, slots=True)
class Network:
    """Entities and chunks, by IRI in the order of their nodes: the entities first.

    ``spread`` is the number of chunks that name each entity. ``merged`` maps names of the texts to
    the entities that they were merged into. ``names`` has the nodes by their names, and the chunks
    by the titles of their documents.
    """

    entities: Sequence[str]
    chunks: Sequence[str]
    graph: Graph
    weights: Sequence[float]
    spread: Sequence[int]
    merged: Mapping[str, str]
    names: NameIndex
    _nodes: Mapping[str, int] = field(repr=False)

    def node(self, iri: str) -> int | None:
        """The node of an entity, under whichever of its names, or of a chunk; None for others."""
        return self._nodes.get(self.merged.get(iri, iri))

    def is_chunk(self, node: int) -> bool:
        return node >= len(self.entities)

    def iri(self, node: int) -> str:
        entities = len(self.entities)
        return self.entities[node] if node < entities else self.chunks[node - entities]

    def beside(self, node: int) -> list[int]:
        """The nodes that are tied to the node, ascending."""
        return sorted(set(self.graph.neighbors(node)) - {node})

    def walk(self, starts: Mapping[int, float], damping: float) -> NDArray[float64]:
        """How often a walk is at each node, in the order of the nodes; together 1.

        Personalised PageRank (Page and others 1999; Haveliwala 2002) over the ties as undirected:
        at each step the walk goes on with the probability ``damping``, along a tie by its weight,
        else it starts again at one of ``starts`` (weights of nodes, one greater than 0 at least).
        """
        import numpy as np

        reset = np.zeros(len(self.entities) + len(self.chunks))
        for node, weight in starts.items():
            reset[node] = weight
        found = self.graph.personalized_pagerank(
            directed=False, damping=damping, reset=reset.tolist(), weights=self.weights
        )
        return np.asarray(found)


def network_of(context: Context, synonymy: float, subject_weight: float) -> Network:
    """The network of the published state, made at its first question; ``synonymy`` is the likeness
    (cosine) from which entities count as synonyms, ``subject_weight`` what it counts for that a
    chunk is about an entity, beside naming it."""
    memory: BoundedCache[tuple[float, float], Network] = context.remembered("networks", 1)
    return memory.get((synonymy, subject_weight), lambda: _make(context, synonymy, subject_weight))


def _make(context: Context, synonymy: float, subject_weight: float) -> Network:
    vectors = context.vectors
    entities, chunks = list(vectors["entity"].keys), list(vectors["chunk"].keys)
    nodes = {iri: place for place, iri in enumerate((*entities, *chunks))}
    reader = _NetworkReader(context.store, context.evidence, nodes, len(entities))
    mentions = reader.mentions()
    return network(
        entities,
        chunks,
        [
            reader.facts(frozenset(vectors["edge"].keys)),
            dict.fromkeys(mentions, 1.0),
            dict.fromkeys(reader.subjects(chunks), subject_weight),
            synonyms(vectors["entity"], synonymy),
        ],
        Counter(entity for entity, _ in mentions),
        reader.merged,
        NameIndex(reader.names(chunks)),
    )


def network(
    entities: Sequence[str],
    chunks: Sequence[str],
    ties: Sequence[Ties],
    spread: Mapping[int, int],
    merged: Mapping[str, str],
    names: NameIndex,
) -> Network:
    """The network of these nodes and ties; ties of several kinds between two nodes add up."""
    from igraph import Graph

    weights: Counter[Pair] = Counter()
    for kind in ties:
        for (one, other), weight in kind.items():
            weights[min(one, other), max(one, other)] += weight  # type: ignore[assignment]
    pairs = sorted(pair for pair, weight in weights.items() if weight > 0)
    nodes = {iri: place for place, iri in enumerate((*entities, *chunks))}
    return Network(
        entities,
        chunks,
        Graph(n=len(nodes), edges=pairs),
        [float(weights[pair]) for pair in pairs],
        [spread.get(entity, 0) for entity in range(len(entities))],
        merged,
        names,
        nodes,
    )


class _NetworkReader:
    """Reads the ties of a published state. The first ``entities`` nodes are entities."""

    def __init__(
        self, store: Store, evidence: EvidenceReader, nodes: Mapping[str, int], entities: int
    ) -> None:
        self._store = store
        self._evidence = evidence
        self._nodes = nodes
        self._entities = entities
        merged = select(store, "retrieve/merged")
        self.merged = {text_of(row["name"]): text_of(row["entity"]) for row in merged}
        self._headings: dict[str, list[str]] = {}
        for row in select(store, "retrieve/headings"):
            self._headings.setdefault(text_of(row["subject"]), []).append(text_of(row["text"]))

    def facts(self, edges: Collection[str]) -> dict[Pair, float]:
        """The number of relationships between two entities."""
        found: Counter[Pair] = Counter()
        for quad in self._store.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
            if text_of(quad.subject) in edges and isinstance(quad.object, Triple):
                one = self._nodes.get(text_of(quad.object.subject))
                other = self._nodes.get(text_of(quad.object.object))
                if one is not None and other is not None and one != other:
                    found[min(one, other), max(one, other)] += 1
        return dict(found)

    def mentions(self) -> set[Pair]:
        """The entities with the chunks that name them."""
        return {
            (entity, node)
            for name, chunks in self._evidence.mentions().items()
            if (entity := self._entity(name)) is not None
            for chunk in chunks
            if (node := self._nodes.get(chunk)) is not None
        }

    def subjects(self, chunks: Sequence[str]) -> set[Pair]:
        """The entities that the chunks' documents or sections are called after, with the chunks."""
        return {
            (entity, self._nodes[chunk])
            for chunk in chunks
            for subject in (chunk, document_of_chunk(chunk))
            for heading in self._headings.get(subject, ())
            for name in heading.split(" > ")
            for entity in self._called(name)
        }

    def names(self, chunks: Sequence[str]) -> Iterator[tuple[str, int]]:
        """The entities by their names, as far as these are written as names, and the chunks by the
        titles of their documents, those of one word aside: they may be any word."""
        for predicate in (v.RDFS_LABEL, v.SKOS_ALT_LABEL):
            for quad in self._store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
                node = self._entity(text_of(quad.subject))
                if node is not None and isinstance(quad.object, Literal):
                    name = quad.object.value
                    if is_name(name):
                        yield name, node
        for chunk in chunks:
            for title in self._headings.get(document_of_chunk(chunk), ()):
                if len(title.split()) > 1:
                    yield title, self._nodes[chunk]

    def _called(self, name: str) -> Iterator[int]:
        for variant in {name, _ASIDE.sub("", name)}:
            entity = self._entity(v.entity_iri(variant)) if variant.strip() else None
            if entity is not None:
                yield entity

    def _entity(self, iri: str) -> int | None:
        return self._nodes.get(self.merged.get(iri, iri))


def synonyms(vectors: VectorSet, least: float) -> dict[Pair, float]:
    """The pairs of entities whose names are at least so alike (cosine), with their likeness.

    Only names that share a word are compared, unless more than ``COMMON`` have it: that keeps the
    time in proportion to the number of entities, and most synonyms.
    """
    import numpy as np

    pairs = _sharing_a_word([local_name(iri) for iri in vectors.keys])
    if not len(pairs) or least > 1:
        return {}
    rows = vectors.vectors_of(np.searchsorted(vectors.owners, np.arange(len(vectors))))
    found: dict[Pair, float] = {}
    for start in range(0, len(pairs), _AT_ONCE):
        part = pairs[start : start + _AT_ONCE]
        likeness = np.round(np.einsum("ij,ij->i", rows[part[:, 0]], rows[part[:, 1]]), 6)
        near = likeness >= least
        for (one, other), score in zip(part[near].tolist(), likeness[near].tolist(), strict=True):
            found[one, other] = score
    return found


def _sharing_a_word(names: Sequence[str]) -> NDArray[int64]:
    """The pairs of names, by place, that share a word which few have; each once, in order."""
    import numpy as np

    having: defaultdict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        for word in set(words(name)):
            having[word].append(place)
    size = max(len(names), 1)
    found = [np.zeros(0, dtype=np.int64)]
    for places in having.values():
        if 1 < len(places) <= COMMON:
            ones, others = np.triu_indices(len(places), 1)
            known = np.array(places, dtype=np.int64)
            found.append(known[ones] * size + known[others])
    pairs = np.unique(np.concatenate(found))
    return np.stack([pairs // size, pairs % size], axis=1)
