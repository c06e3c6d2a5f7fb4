"""Graph ranking: entities and chunks as one network, in which a walk from what a question names
finds what belongs to it.

The network is that of HippoRAG 2 (Gutiérrez and others 2025, "From RAG to Memory"): its nodes are
the entities and the chunks of the published state; relationships tie entities, a mention ties a
chunk and an entity, and entities whose names mean nearly the same are tied as synonyms. Beyond it a
chunk is tied to what it is about: the entity that its document or its section is called after.

An index run keeps each node with its ties in the look-up tables (``keep_network``), whatever the
settings, which only weigh them. Where there are no tables, the ties are read from the store.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Self

from pyoxigraph import Literal, Triple

from tgraph import vocabulary as v
from tgraph.index.lookup_table import LookupTable
from tgraph.index.sources import document_of_chunk
from tgraph.index.vectors.vector_index import VectorSet
from tgraph.retrieve.base import BoundedCache, Context
from tgraph.retrieve.labels import local_name
from tgraph.retrieve.search.names import KeptNames, NameIndex, is_name, variants
from tgraph.retrieve.text.lexical import words
from tgraph.store.base import Store, select, text_of

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

Pair = tuple[int, int]
Ties = Mapping[Pair, float]
"""Weights, greater than 0, by the two nodes that they tie."""

COMMON = 100
"""Names with one word in common, beyond which it says nothing."""

KEPT_LIKENESS = 0.7
"""The likeness of names (cosine) from which on it is kept; settings below it compare them anew."""

_AT_ONCE = 20_000
_ASIDE = re.compile(r"\s*\([^()]*\)$")
_TIE = [("other", "<i8"), ("count", "<u4"), ("likeness", "<f4")]
"""A tie as it is kept: the mark of the other end, how many facts and mentions tie them, and how
alike their names are, or 1 where a chunk is about an entity."""
_EXACT, _MOST_STEPS = 1e-11, 500
"""What the residual of a walk may be beside its start, and steps after which it is good enough."""


@dataclass(frozen=True)
class Adjacency:
    """Ties in both directions: those of a node lie between two ``starts``, each with the node at
    its other end and a weight greater than 0."""

    starts: NDArray[int64]
    others: NDArray[int64]
    weights: NDArray[float64]

    @classmethod
    def of(cls, size: int, ties: Iterable[Ties]) -> Self:
        """Those of so many nodes; ties of several kinds between two nodes add up."""
        import numpy as np

        found: Counter[Pair] = Counter()
        for kind in ties:
            for (one, other), weight in kind.items():
                found[min(one, other), max(one, other)] += weight  # type: ignore[assignment]
        pairs = sorted(pair for pair, weight in found.items() if weight > 0)
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        weights = np.array([found[pair] for pair in pairs], dtype=np.float64)
        both = np.concatenate([ends, ends[:, ::-1]])
        order = np.argsort(both[:, 0], kind="stable")
        starts = np.searchsorted(both[order, 0], np.arange(size + 1))
        return cls(starts, both[order, 1], np.concatenate([weights, weights])[order])

    def beside(self, node: int) -> list[int]:
        """The nodes that are tied to the node, ascending."""
        found = self.others[self.starts[node] : self.starts[node + 1]]
        return sorted(set(found.tolist()) - {node})

    @cached_property
    def _roots(self) -> NDArray[float64]:
        """The square roots of what the ties of each node weigh together; 1 where it has none."""
        import numpy as np

        total = self._sums(self.weights)
        return np.where(total > 0, np.sqrt(total), 1.0)

    @cached_property
    def _scaled(self) -> NDArray[float64]:
        """The weights, each beside what the ties of its two ends weigh."""
        import numpy as np

        own = np.repeat(self._roots, np.diff(self.starts))
        found: NDArray[float64] = self.weights / own / self._roots[self.others]
        return found

    @cached_property
    def _tied(self) -> NDArray[int64]:
        """The nodes that have ties."""
        import numpy as np

        return np.flatnonzero(np.diff(self.starts))

    def _sums(self, values: NDArray[float64]) -> NDArray[float64]:
        """For each node the sum of what its ties have."""
        import numpy as np

        found = np.zeros(len(self.starts) - 1)
        if len(values):
            found[self._tied] = np.add.reduceat(values, self.starts[self._tied])
        return found

    def walk(self, start: NDArray[float64], damping: float) -> NDArray[float64]:
        """As of ``Network``. The equations of the walk, made symmetric, are solved by conjugate
        gradients (Hestenes and Stiefel 1952)."""
        import numpy as np

        found = np.zeros(len(start))
        rest = start / start.sum() / self._roots
        way, size = rest, _dot(rest, rest)
        least = size * _EXACT**2
        for _ in range(_MOST_STEPS):
            if size <= least:
                break
            along = way - damping * self._sums(way[self.others] * self._scaled)
            step = size / _dot(way, along)
            found += step * way
            rest = rest - step * along
            before, size = size, _dot(rest, rest)
            way = rest + (size / before) * way
        visits = np.maximum(found * self._roots, 0.0)
        whole: NDArray[float64] = visits / visits.sum()
        return whole


def _dot(one: NDArray[float64], other: NDArray[float64]) -> float:
    return float((one * other).sum())  # BLAS would start threads for it


@dataclass(frozen=True, slots=True)
class Network:
    """Entities and chunks, by IRI in the order of their nodes: the entities first.

    ``spread`` is the number of chunks that name each entity. ``names`` has the nodes by their
    names, and the chunks by the titles of their documents. ``find`` gives the node of an entity,
    under whichever of its names, or of a chunk; None for others.
    """

    entities: Sequence[str]
    chunks: Sequence[str]
    ties: Adjacency
    spread: Sequence[int]
    names: NameIndex
    find: Callable[[str], int | None]
    _known: dict[str, int | None] = field(default_factory=dict, repr=False)

    def node(self, iri: str) -> int | None:
        """The node of an entity, under whichever of its names, or of a chunk; None for others."""
        if iri not in self._known:
            self._known[iri] = self.find(iri)
        return self._known[iri]

    def is_chunk(self, node: int) -> bool:
        return node >= len(self.entities)

    def iri(self, node: int) -> str:
        entities = len(self.entities)
        return self.entities[node] if node < entities else self.chunks[node - entities]

    def beside(self, node: int) -> list[int]:
        """The nodes that are tied to the node, ascending."""
        return self.ties.beside(node)

    def walk(self, starts: Mapping[int, float], damping: float) -> NDArray[float64]:
        """How often a walk is at each node, in the order of the nodes; together 1.

        Personalised PageRank (Page and others 1999; Haveliwala 2002) over the ties as undirected:
        at each step the walk goes on with the probability ``damping``, along a tie by its weight,
        else it starts again at one of ``starts`` (weights of nodes, one greater than 0 at least).
        """
        import numpy as np

        start = np.zeros(len(self.entities) + len(self.chunks))
        for node, weight in starts.items():
            start[node] = weight
        return self.ties.walk(start, damping)


def network_of(context: Context, synonymy: float, subject_weight: float) -> Network:
    """The network of the published state, read at its first question; ``synonymy`` is the likeness
    (cosine) from which entities count as synonyms, ``subject_weight`` what it counts for that a
    chunk is about an entity, beside naming it."""
    memory: BoundedCache[tuple[float, float], Network] = context.remembered("networks", 1)

    def read() -> Network:
        kept = _kept(context, synonymy, subject_weight)
        return _made(context, synonymy, subject_weight) if kept is None else kept

    return memory.get((synonymy, subject_weight), read)


def network(
    entities: Sequence[str],
    chunks: Sequence[str],
    ties: Sequence[Ties],
    spread: Mapping[int, int],
    merged: Mapping[str, str],
    names: NameIndex,
) -> Network:
    """The network of these nodes and ties; ties of several kinds between two nodes add up.
    ``merged`` maps names of the texts to the entities that they were merged into."""
    nodes = {iri: place for place, iri in enumerate((*entities, *chunks))}
    return Network(
        entities,
        chunks,
        Adjacency.of(len(nodes), ties),
        [spread.get(entity, 0) for entity in range(len(entities))],
        names,
        lambda iri: nodes.get(merged.get(iri, iri)),
    )


def _made(context: Context, synonymy: float, subject_weight: float) -> Network:
    """The network as the store has it."""
    vectors = context.vectors
    entities, chunks = list(vectors["entity"].keys), list(vectors["chunk"].keys)
    nodes = {iri: place for place, iri in enumerate((*entities, *chunks))}
    reader = _NetworkReader(context.store, context.evidence.mentions, nodes)
    mentions = reader.mentions()
    return network(
        entities,
        chunks,
        [
            reader.facts(context.vectors["edge"]),
            dict.fromkeys(mentions, 1.0),
            dict.fromkeys(reader.subjects(chunks), subject_weight),
            synonyms(vectors["entity"], synonymy),
        ],
        Counter(entity for entity, _ in mentions),
        reader.merged,
        NameIndex(reader.names(chunks)),
    )


# --- as it is kept ---


def keep_network(table: LookupTable, store: Store, vectors: Mapping[str, VectorSet]) -> None:
    """Put the nodes and their ties into the tables."""
    entities, chunks = list(vectors["entity"].keys), list(vectors["chunk"].keys)
    nodes = {iri: place for place, iri in enumerate((*entities, *chunks))}
    reader = _NetworkReader(store, table.mentions, nodes, table)
    mentions, subjects = reader.mentions(), reader.subjects(chunks)
    counts: Counter[Pair] = Counter(reader.facts(vectors["edge"]))
    counts.update(mentions)
    alike = synonyms(vectors["entity"], KEPT_LIKENESS) | dict.fromkeys(subjects, 1.0)
    spread = Counter(entity for entity, _ in mentions)
    marks = [_mark(iri) for iri in nodes]
    table.put_nodes(
        (iri, node >= len(entities), marks[node], spread[node], ties)
        for (iri, node), ties in zip(nodes.items(), _as_rows(counts, alike, marks), strict=True)
    )
    iris = [*entities, *chunks]
    table.put_links(
        (iris[node], NAME, " ".join(key))
        for name, node in reader.names(chunks)
        for key in variants(name)
    )
    table.put_links((name, MERGED, entity) for name, entity in reader.merged.items())
    table.put_links([(repr(vectors["entity"].agent), EMBEDDER, "")])


NAME, MERGED, EMBEDDER = "name", "merged", "embedder"
"""Kinds of links: what a node is called, the entity that a name was merged into, and whose vectors
say how alike names are."""


def _mark(iri: str) -> int:
    return int.from_bytes(sha256(iri.encode()).digest()[:8], signed=True)


def _as_rows(counts: Ties, alike: Ties, marks: Sequence[int]) -> Iterator[bytes]:
    """The ties of each node, in their order."""
    import numpy as np

    pairs = sorted(counts.keys() | alike.keys())
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    found = np.zeros(2 * len(pairs), dtype=_TIE)
    found["count"] = [counts.get(pair, 0) for pair in pairs] * 2
    found["likeness"] = [alike.get(pair, 0.0) for pair in pairs] * 2
    found["other"] = np.array(marks, dtype=np.int64)[ends[:, ::-1].T.ravel()]
    order = np.argsort(ends.T.ravel(), kind="stable")
    found = found[order]
    bounds = np.searchsorted(ends.T.ravel()[order], np.arange(len(marks) + 1)).tolist()
    for start, end in pairwise(bounds):
        yield found[start:end].tobytes()


def _kept(context: Context, synonymy: float, subject_weight: float) -> Network | None:
    """The network as an index run kept it; None where it did not, or not for such settings."""
    table = context.table()
    if table is None or synonymy < KEPT_LIKENESS:
        return None
    entities, chunks = context.vectors["entity"].keys, context.vectors["chunk"].keys
    rows = table.nodes()
    agent = repr(context.vectors["entity"].agent)
    if len(rows) != len(entities) + len(chunks) or not table.links([agent], EMBEDDER):
        return None
    find = _Finder(table, entities, chunks)
    return Network(
        entities,
        chunks,
        _adjacency(rows, len(entities), synonymy, subject_weight),
        [row[3] for row in rows[: len(entities)]],
        KeptNames(table, NAME, find),
        find,
    )


def _adjacency(
    rows: Sequence[tuple[str, bool, int, int, bytes]],
    entities: int,
    synonymy: float,
    subject_weight: float,
) -> Adjacency:
    import numpy as np

    marks = np.array([row[2] for row in rows], dtype=np.int64)
    order = np.argsort(marks)
    found = np.frombuffer(b"".join([row[4] for row in rows]), dtype=_TIE)
    sizes = np.array([len(row[4]) for row in rows], dtype=np.int64) // found.itemsize
    others = order[np.searchsorted(marks, found["other"], sorter=order)]
    owners = np.repeat(np.arange(len(rows)), sizes)
    about = (others >= entities) | (owners >= entities)
    alike = found["likeness"]
    more = np.where(about, alike * subject_weight, np.where(alike >= synonymy, alike, 0.0))
    weights = found["count"] + more
    tied = weights > 0
    starts = np.searchsorted(owners[tied], np.arange(len(rows) + 1))
    return Adjacency(starts, others[tied], weights[tied].astype(np.float64))


class _Finder:
    """Finds nodes by their IRIs, or by those that were merged into them."""

    def __init__(self, table: LookupTable, entities: Sequence[str], chunks: Sequence[str]) -> None:
        self._table = table
        self._entities = entities
        self._chunks = chunks

    def __call__(self, iri: str) -> int | None:
        chunk = _place(self._chunks, iri)
        if chunk is not None:
            return len(self._entities) + chunk
        merged = self._table.links([iri], MERGED)
        return _place(self._entities, merged[0][1] if merged else iri)


def _place(keys: Sequence[str], iri: str) -> int | None:
    place = bisect_left(keys, iri)
    return place if place < len(keys) and keys[place] == iri else None


# --- reading ties ---


class _NetworkReader:
    """Reads the ties of the nodes, from the tables where there are any."""

    def __init__(
        self,
        store: Store,
        mentions: Callable[[], Mapping[str, Collection[str]]],
        nodes: Mapping[str, int],
        table: LookupTable | None = None,
    ) -> None:
        self._store = store
        self._mentions = mentions
        self._nodes = nodes
        self._table = table
        merged = select(store, "retrieve/merged")
        self.merged = {text_of(row["name"]): text_of(row["entity"]) for row in merged}
        self._headings: dict[str, list[str]] = {}
        for row in select(store, "retrieve/headings"):
            self._headings.setdefault(text_of(row["subject"]), []).append(text_of(row["text"]))

    def facts(self, edges: VectorSet) -> dict[Pair, int]:
        """The number of relationships between two entities, of those that have vectors."""
        known = frozenset(edges.keys)
        found: Counter[Pair] = Counter()
        for edge, subject, obj in self._relations():
            one, other = self._nodes.get(subject), self._nodes.get(obj)
            if edge in known and one is not None and other is not None and one != other:
                found[min(one, other), max(one, other)] += 1
        return dict(found)

    def _relations(self) -> Iterator[tuple[str, str, str]]:
        if self._table is not None:
            yield from self._table.relations()
            return
        for quad in self._store.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
            if isinstance(quad.object, Triple):
                yield (
                    text_of(quad.subject),
                    text_of(quad.object.subject),
                    text_of(quad.object.object),
                )

    def mentions(self) -> set[Pair]:
        """The entities with the chunks that name them."""
        return {
            (entity, node)
            for name, chunks in self._mentions().items()
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
