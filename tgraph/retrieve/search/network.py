"""Graph ranking: entities and chunks as one network, in which a walk from what a question names
finds what belongs to it.

The network is that of HippoRAG 2 (Gutiérrez and others 2025, "From RAG to Memory"): its nodes are
the entities and the chunks of the published state; relationships tie entities, a mention ties a
chunk and an entity, and entities whose names mean nearly the same are tied as synonyms. Beyond it a
chunk is tied to what it is about: the entity that its document or its section is called after.

An index run keeps each node with its ties in the look-up tables (``keep_network``), whatever the
settings, which only weigh them. Where there are no tables, the ties are read from the store.

The walk is computed here rather than by igraph (PRPACK), which ranks the same nodes at four times
the CPU time and more: 36 ms in place of 9 in a graph of 10,000 edges, 68 in place of 4 and 364 in
place of 66 in networks of 10,000 and 100,000 relationships; to build igraph's graph takes 8, 7 and
172 ms (``python -m benchmarks.walks``).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

from pyoxigraph import Literal, Triple

from tgraph import vocabulary as v
from tgraph.index.changed_keys import ChangedKeys
from tgraph.index.lookup_table import LookupTable
from tgraph.index.sources import document_of_chunk
from tgraph.index.vectors.base import VectorIndex
from tgraph.retrieve.base import BoundedCache, Context
from tgraph.retrieve.labels import local_name
from tgraph.retrieve.search.names import KeptNames, NameIndex, is_name, variants
from tgraph.retrieve.text.lexical import words
from tgraph.store.base import Store, select, text_of

if TYPE_CHECKING:
    from numpy import float32, float64, int64
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
_TIE = [("other", "<i8"), ("count", "<u4"), ("about", "<u4")]
"""A tie as it is kept: the mark of the other end; of an entity how many edges lead there, of a
chunk whether it speaks of it, and whether it is about it."""
_ALIKE = [("one", "<i8"), ("other", "<i8"), ("likeness", "<f4"), ("_", "<u4")]
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

NAME, WORD, MERGED, EMBEDDER = "name", "word", "merged", "embedder"
"""Kinds of links: what a node is called, a word of an entity's name, the entity that a name was
merged into, and whose vectors say how alike names are."""


def keep_network(
    table: LookupTable,
    store: Store,
    vectors: Mapping[str, VectorIndex],
    changed: ChangedKeys | None = None,
) -> None:
    """Put the network into the tables, or what of it may have ``changed``.

    Each row depends on its key alone: an entity's on the edges that lead out of it, a chunk's on
    what it speaks of and what it and its document are called, a word's on the vectors of the
    entities whose names have it. What names stand for, if they were merged, is seen when the rows
    are read.
    """
    keeper, revised = _NetworkKeeper(table, store, vectors), table.newer is not None
    agent = repr(vectors["entity"].agent)
    if changed is None or not table.links([agent], EMBEDDER):
        entities, chunks = list(vectors["entity"].keys), list(vectors["chunk"].keys)
        keeper.keep([*entities, *keeper.merged], chunks, revised=revised)
        table.put("link", [(agent, EMBEDDER, "")], [agent] if revised else None)
    else:
        keeper.keep(sorted(changed.resources), sorted(changed.chunks), revised=True)


class _NetworkKeeper:
    """Makes the rows of resources and chunks."""

    def __init__(
        self, table: LookupTable, store: Store, vectors: Mapping[str, VectorIndex]
    ) -> None:
        self._table = table
        self._vectors = vectors
        self.merged = _merged(store)
        self._headings = _headings(store)

    def keep(
        self, resources: Sequence[str], chunks: Sequence[str], *, revised: bool = False
    ) -> None:
        """Put the rows of these into the tables; ``revised`` says that others may be there."""
        table = self._table
        words = {text for _, text in table.links(resources, WORD)} if revised else set()
        keys = {*resources, *chunks} if revised else None
        entities = self._standing("entity", resources)
        standing = self._standing("chunk", chunks)
        table.put("link", self._links(resources, entities, standing), keys)
        table.put("node", [*self._entities(entities), *self._chunks(standing)], keys)
        words.update(text for _, text in table.links(resources, WORD))
        table.put("alike", self._alike(sorted(words)), words if revised else None)

    def _standing(self, kind: str, iris: Sequence[str]) -> list[str]:
        known = self._vectors[kind].keys
        return sorted({iri for iri in iris if known.find(iri) is not None})

    def _links(
        self, resources: Iterable[str], entities: Iterable[str], chunks: Iterable[str]
    ) -> Iterator[tuple[str, str, str]]:
        for iri in resources:
            for name in filter(is_name, self._table.names(iri)):
                yield from ((iri, NAME, " ".join(key)) for key in variants(name))
            if iri in self.merged:
                yield iri, MERGED, self.merged[iri]
        for entity in entities:
            yield from ((entity, WORD, word) for word in set(words(local_name(entity))))
        for chunk in chunks:
            for title in _titles(chunk, self._headings):
                yield from ((chunk, NAME, " ".join(key)) for key in variants(title))

    def _entities(self, entities: Sequence[str]) -> Iterator[tuple[str, bool, bytes]]:
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        relations = list(self._table.relations(entities))
        known = self._vectors["edge"].keys.places({edge for edge, _, _ in relations})
        edges = {self._vectors["edge"].keys[place] for place in known.tolist()}
        for edge, subject, obj in relations:
            if edge in edges:
                found[subject][obj] += 1
        for entity in entities:
            ties = [(_mark(obj), count, 0) for obj, count in sorted(found[entity].items())]
            yield entity, False, _packed(ties, _TIE)

    def _chunks(self, chunks: Sequence[str]) -> Iterator[tuple[str, bool, bytes]]:
        for chunk in chunks:
            spoken = set(self._table.spoken_of(chunk))
            about = set(_called_after(chunk, self._headings))
            ties = [(_mark(e), e in spoken, e in about) for e in sorted(spoken | about)]
            yield chunk, True, _packed(ties, _TIE)

    def _alike(self, words: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The entities whose names share each word, two at a time, where they are alike."""
        import numpy as np

        vectors = self._vectors["entity"]
        for word in words:
            having = sorted(iri for iri, _ in self._table.linked(WORD, [word]))
            if not 1 < len(having) <= COMMON:
                continue
            places = np.array([vectors.keys.find(iri) for iri in having])
            rows = _first_windows(vectors, places)
            ones, others = np.triu_indices(len(having), 1)
            likeness = _likeness(rows[ones], rows[others])
            near = np.flatnonzero(likeness >= KEPT_LIKENESS)
            marks = [_mark(iri) for iri in having]
            found = [(marks[ones[i]], marks[others[i]], likeness[i], 0) for i in near.tolist()]
            yield word, _packed(found, _ALIKE)


def _mark(iri: str) -> int:
    return int.from_bytes(sha256(iri.encode()).digest()[:8], signed=True)


def _packed(ties: Sequence[tuple[object, ...]], kind: Sequence[tuple[str, str]]) -> bytes:
    import numpy as np

    return np.array(ties, dtype=list(kind)).tobytes()


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
    ties = _KeptTies(rows, len(entities), table.linked(MERGED))
    return Network(
        entities,
        chunks,
        ties.adjacency(table.alike(), synonymy, subject_weight),
        ties.spread(),
        KeptNames(table, NAME, find),
        find,
    )


class _KeptTies:
    """The ties of kept rows, with nodes in place of marks."""

    def __init__(
        self,
        rows: Sequence[tuple[str, bool, bytes]],
        entities: int,
        merged: Iterable[tuple[str, str]],
    ) -> None:
        import numpy as np

        self._size = len(rows)
        self._entities = entities
        nodes = {_mark(iri): node for node, (iri, _, _) in enumerate(rows)}
        self._nodes = _Lookup(nodes)
        into = {_mark(name): nodes.get(_mark(entity), -1) for name, entity in merged}
        found = np.frombuffer(b"".join([row[2] for row in rows]), dtype=_TIE)
        sizes = np.array([len(row[2]) for row in rows], dtype=np.int64) // found.itemsize
        owners = np.repeat(np.arange(len(rows)), sizes)
        out = owners < entities
        facts, spoken = found[out], found[~out]
        self._facts = self._pairs(owners[out], self._nodes.of(facts["other"]), facts["count"])
        named = _Lookup(nodes | into).of(spoken["other"])
        named = np.where(named < entities, named, -1)
        mentioned, about = spoken["count"] > 0, spoken["about"] > 0
        chunks = owners[~out]
        self._mentions = self._distinct(chunks[mentioned], named[mentioned])
        self._subjects = self._distinct(chunks[about], named[about])

    def spread(self) -> list[int]:
        """In how many chunks each of the entities is named."""
        import numpy as np

        counts = np.bincount(self._mentions // self._size, minlength=self._entities)
        found: list[int] = counts.tolist()
        return found

    def adjacency(
        self, alike: Sequence[tuple[str, bytes]], synonymy: float, subject_weight: float
    ) -> Adjacency:
        import numpy as np

        rows = np.frombuffer(b"".join([ties for _, ties in alike]), dtype=_ALIKE)
        rows = rows[rows["likeness"] >= np.float32(synonymy)]
        one, other = (self._nodes.of(rows[end]) for end in ("one", "other"))
        pairs, likeness = self._pairs(one, other, rows["likeness"])
        pairs, first = np.unique(pairs, return_index=True)
        kinds = [
            self._facts,
            (self._mentions, np.ones(len(self._mentions))),
            (self._subjects, np.full(len(self._subjects), subject_weight)),
            (pairs, likeness[first]),
        ]
        keys, back = np.unique(np.concatenate([k for k, _ in kinds]), return_inverse=True)
        weights = np.bincount(back, np.concatenate([w for _, w in kinds]), len(keys))
        keys, weights = keys[weights > 0], weights[weights > 0]
        ones, others = keys // self._size, keys % self._size
        owners = np.concatenate([ones, others])
        order = np.argsort(owners, kind="stable")
        starts = np.searchsorted(owners[order], np.arange(self._size + 1))
        ends = np.concatenate([others, ones])[order]
        return Adjacency(starts, ends, np.concatenate([weights, weights])[order])

    def _pairs(
        self, ones: NDArray[int64], others: NDArray[int64], values: NDArray[Any]
    ) -> tuple[NDArray[int64], NDArray[float64]]:
        """Two different nodes as one number, the smaller first, and the values of these ties."""
        import numpy as np

        tied = (ones >= 0) & (others >= 0) & (ones != others)
        ones, others = ones[tied], others[tied]
        keys = np.minimum(ones, others) * self._size + np.maximum(ones, others)
        return keys, values[tied].astype(np.float64)

    def _distinct(self, ones: NDArray[int64], others: NDArray[int64]) -> NDArray[int64]:
        import numpy as np

        return np.unique(self._pairs(ones, others, ones)[0])


class _Lookup:
    """Nodes by marks; -1 for none."""

    def __init__(self, nodes: Mapping[int, int]) -> None:
        import numpy as np

        marks = np.fromiter(nodes.keys(), dtype=np.int64, count=len(nodes))
        order = np.argsort(marks)
        self._marks = marks[order]
        self._nodes = np.fromiter(nodes.values(), dtype=np.int64, count=len(nodes))[order]

    def of(self, marks: NDArray[int64]) -> NDArray[int64]:
        import numpy as np

        if not len(self._marks):
            return np.full(len(marks), -1)
        places = np.minimum(np.searchsorted(self._marks, marks), len(self._marks) - 1)
        return np.where(self._marks[places] == marks, self._nodes[places], -1)


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
    """Reads the ties of the nodes from the store."""

    def __init__(
        self,
        store: Store,
        mentions: Callable[[], Mapping[str, Collection[str]]],
        nodes: Mapping[str, int],
    ) -> None:
        self._store = store
        self._mentions = mentions
        self._nodes = nodes
        self.merged = _merged(store)
        self._headings = _headings(store)

    def facts(self, edges: VectorIndex) -> dict[Pair, int]:
        """The number of relationships between two entities, of those that have vectors."""
        known = frozenset(edges.keys)
        found: Counter[Pair] = Counter()
        for quad in self._store.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
            if text_of(quad.subject) in known and isinstance(quad.object, Triple):
                one = self._nodes.get(text_of(quad.object.subject))
                other = self._nodes.get(text_of(quad.object.object))
                if one is not None and other is not None and one != other:
                    found[min(one, other), max(one, other)] += 1
        return dict(found)

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
            for name in _called_after(chunk, self._headings)
            if (entity := self._entity(name)) is not None
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
            yield from ((title, self._nodes[chunk]) for title in _titles(chunk, self._headings))

    def _entity(self, iri: str) -> int | None:
        return self._nodes.get(self.merged.get(iri, iri))


Headings = Mapping[str, Sequence[str]]
"""The titles of documents and the headings of chunks, by IRI."""


def _headings(store: Store) -> Headings:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in select(store, "retrieve/headings"):
        found[text_of(row["subject"])].append(text_of(row["text"]))
    return found


def _merged(store: Store) -> dict[str, str]:
    """The entities that names were merged into."""
    rows = select(store, "retrieve/merged")
    return {text_of(row["name"]): text_of(row["entity"]) for row in rows}


def _titles(chunk: str, headings: Headings) -> list[str]:
    titles = headings.get(document_of_chunk(chunk), ())
    return [title for title in titles if len(title.split()) > 1]


def _called_after(chunk: str, headings: Headings) -> Iterator[str]:
    """What a chunk's document or section may be called after, as entities."""
    for subject in (chunk, document_of_chunk(chunk)):
        for heading in headings.get(subject, ()):
            for name in heading.split(" > "):
                found = {name, _ASIDE.sub("", name)}
                yield from (v.entity_iri(variant) for variant in found if variant.strip())


def synonyms(vectors: VectorIndex, least: float) -> dict[Pair, float]:
    """The pairs of entities whose names are at least so alike (cosine), with their likeness.

    Only names that share a word are compared, unless more than ``COMMON`` have it: that keeps the
    time in proportion to the number of entities, and most synonyms.
    """
    import numpy as np

    pairs = _sharing_a_word([local_name(iri) for iri in vectors.keys])
    if not len(pairs) or least > 1:
        return {}
    rows = _first_windows(vectors, np.arange(len(vectors)))
    found: dict[Pair, float] = {}
    for start in range(0, len(pairs), _AT_ONCE):
        part = pairs[start : start + _AT_ONCE]
        likeness = _likeness(rows[part[:, 0]], rows[part[:, 1]])
        near = likeness >= least
        for (one, other), score in zip(part[near].tolist(), likeness[near].tolist(), strict=True):
            found[one, other] = score
    return found


def _first_windows(vectors: VectorIndex, places: NDArray[int64]) -> NDArray[float32]:
    """The vector of the first window of each place in the keys."""
    windows = vectors.read_windows(places)
    return windows.vectors[windows.starts]


def _likeness(ones: NDArray[float32], others: NDArray[float32]) -> NDArray[float32]:
    import numpy as np

    found: NDArray[float32] = np.round(np.einsum("ij,ij->i", ones, others), 6)
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
