"""The network of graph ranking in the tables: each node with its ties, and the names that lead to
nodes.

A row depends on its key alone: that of an entity on the edges that lead out of it, that of a chunk
on what the chunk mentions and on the headings that it stands under, that of a word on the vectors
of the entities whose names have the word. Merges of names are applied when the rows are read. The
rows do not depend on settings, which only weigh the ties.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode

from tgraph.index.changed_keys import ChangedKeys
from tgraph.index.lookup_rows import IS, NO_NAMES, TERMS, TEXTS_OF_KIND
from tgraph.index.network_ties import (
    COMMON,
    Headings,
    NetworkTies,
    WeightedPairs,
    Wording,
    first_windows,
    likeness,
    merged_names,
    synonym_pairs,
)
from tgraph.index.sqlite_files import Values
from tgraph.index.table_reader import TableReader, unpacked_edge
from tgraph.index.vectors.base import VectorIndex
from tgraph.store.base import Store

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

KEPT_LIKENESS = 0.7
"""The likeness of names (cosine) from which on it is kept; settings below it compare them anew."""

NAME, WORD, MERGED, EMBEDDER = "name", "word", "merged", "embedder"
"""Kinds of links: a form of the name of a node, a word of an entity's name, the entity that a name
was merged into, and the embedder of the vectors that say how alike names are."""

_TIE = [("other", "<i8"), ("count", "<u4"), ("about", "<u4")]
"""A tie as it is kept: the mark of the other end; of an entity how many edges lead there, of a
chunk whether it mentions the entity, and whether it is about the entity."""
_ALIKE = [("one", "<i8"), ("other", "<i8"), ("likeness", "<f4"), ("_", "<u4")]

_NODES = "SELECT iri, chunk, ties FROM node"
_SYNONYMS = "SELECT word, ties FROM alike"
_LINKS = "SELECT iri, text FROM link WHERE iri = ? AND kind = ?"
_LINKED = "SELECT iri, text FROM link WHERE kind = ? AND text = ?"
_ALL_LINKS = "SELECT iri, text FROM link WHERE kind = ?"
_FROM = f"{TERMS} WHERE reified AND subject {IS}"
_SPOKEN_OF = """
SELECT about FROM evidence WHERE chunk = (SELECT number FROM text WHERE text = ?)
AND stated AND NOT (about >= ? AND about < ?) AND NOT (about >= ? AND about < ?) GROUP BY about
"""


class ResourceLinks:
    """Pairs of a resource and a text, each of a kind."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader

    def of_resources(self, iris: Iterable[str], kind: str) -> list[tuple[str, str]]:
        """The links of the kind that the resources have."""
        return self._reader.rows_by_key("link", _LINKS, ((iri, kind) for iri in iris))

    def of_texts(self, kind: str, texts: Iterable[str] | None = None) -> list[tuple[str, str]]:
        """The links of the kind with one of the texts, or with any."""
        values: list[Values] = [(kind,)] if texts is None else [(kind, text) for text in texts]
        query = _ALL_LINKS if texts is None else _LINKED
        return [row for rows in self._reader.matching_rows("link", query, values) for row in rows]


class NetworkRows:
    """A ``NetworkSource`` over rows of the tables."""

    def __init__(
        self, reader: TableReader, vectors: Mapping[str, VectorIndex], wording: Wording
    ) -> None:
        self._reader = reader
        self._vectors = vectors
        self._wording = wording
        self._links = ResourceLinks(reader)

    def ties(self, least: float) -> NetworkTies | None:
        entities, chunks = self._vectors["entity"], self._vectors["chunk"]
        [rows] = self._reader.matching_rows("node", _NODES, [()])
        has_vectors = self._links.of_resources([repr(entities.agent)], EMBEDDER)
        if len(rows) != len(entities) + len(chunks) or not has_vectors:
            return None
        rows.sort(key=lambda row: (row[1], row[0]))  # the order of the nodes
        ties = _NodeTies(rows, len(entities))
        if least < KEPT_LIKENESS:
            synonyms = synonym_pairs(entities, least, self._wording)
        else:
            synonyms = ties.synonyms(self._reader.matching_rows("alike", _SYNONYMS, [()])[0], least)
        return ties.with_merges(self._links.of_texts(MERGED), synonyms)

    def merged_into(self, names: Iterable[str]) -> dict[str, str]:
        return dict(self._links.of_resources(names, MERGED))

    def find_named_resources(self, forms: Iterable[str]) -> dict[str, set[str]]:
        resources: defaultdict[str, set[str]] = defaultdict(set)
        for iri, form in self._links.of_texts(NAME, set(forms)):
            resources[form].add(iri)
        return resources


class _NodeTies:
    """The ties in rows, which are in the order of their nodes and begin with so many entities."""

    def __init__(self, rows: Sequence[tuple[str, bool, bytes]], entities: int) -> None:
        self._rows = rows
        self._entities = entities
        self._marks = {_mark(iri): node for node, (iri, _, _) in enumerate(rows)}
        self._nodes = _NodesByMark(self._marks)

    def synonyms(self, rows: Iterable[tuple[str, bytes]], least: float) -> WeightedPairs:
        """The synonyms in the rows of words that have at least this likeness."""
        import numpy as np

        pairs = np.frombuffer(b"".join([packed for _, packed in rows]), dtype=_ALIKE)
        pairs = pairs[pairs["likeness"] >= np.float32(least)]
        sources, targets = (self._nodes.find(pairs[end]) for end in ("one", "other"))
        return WeightedPairs.from_ends(sources, targets, pairs["likeness"], add=False)

    def with_merges(
        self, merged: Iterable[tuple[str, str]], synonyms: WeightedPairs
    ) -> NetworkTies:
        """All ties, where names of texts stand for the entities that they were merged into."""
        import numpy as np

        into = {_mark(name): self._marks.get(_mark(entity), -1) for name, entity in merged}
        ties = np.frombuffer(b"".join([packed for _, _, packed in self._rows]), dtype=_TIE)
        bounds = [len(packed) // ties.itemsize for _, _, packed in self._rows]
        owners = np.repeat(np.arange(len(self._rows)), np.array(bounds, dtype=np.int64))
        leads_from_entity = owners < self._entities
        facts, places = ties[leads_from_entity], ties[~leads_from_entity]
        ends = self._nodes.find(facts["other"])
        chunks = owners[~leads_from_entity]
        entities = _NodesByMark(self._marks | into).find(places["other"])
        entities = np.where(entities < self._entities, entities, -1)
        mentions, subjects = (
            WeightedPairs.from_ends(chunks[tied], entities[tied], np.ones(tied.sum()), add=False)
            for tied in (places["count"] > 0, places["about"] > 0)
        )
        counted = WeightedPairs.from_ends(owners[leads_from_entity], ends, facts["count"])
        return NetworkTies(counted, mentions, subjects, synonyms)


class _NodesByMark:
    """Nodes by the marks of their IRIs."""

    def __init__(self, nodes: Mapping[int, int]) -> None:
        import numpy as np

        marks = np.fromiter(nodes.keys(), dtype=np.int64, count=len(nodes))
        order = np.argsort(marks)
        self._marks = marks[order]
        self._nodes = np.fromiter(nodes.values(), dtype=np.int64, count=len(nodes))[order]

    def find(self, marks: NDArray[int64]) -> NDArray[int64]:
        """The nodes of the marks, -1 for other marks."""
        import numpy as np

        if not len(self._marks):
            return np.full(len(marks), -1)
        places = np.minimum(np.searchsorted(self._marks, marks), len(self._marks) - 1)
        return np.where(self._marks[places] == marks, self._nodes[places], -1)


def _mark(iri: str) -> int:
    return int.from_bytes(sha256(iri.encode()).digest()[:8], signed=True)


def _pack(ties: Sequence[tuple[object, ...]], kind: Sequence[tuple[str, str]]) -> bytes:
    import numpy as np

    return np.array(ties, dtype=list(kind)).tobytes()


def write_network_rows(
    reader: TableReader,
    store: Store,
    vectors: Mapping[str, VectorIndex],
    wording: Wording,
    changed: ChangedKeys | None = None,
) -> None:
    """Write the rows of the network, or the rows that may have ``changed``."""
    writer = _NetworkWriter(reader, store, vectors, wording)
    agent = repr(vectors["entity"].agent)
    revised = reader.newer is not None
    if changed is None or not ResourceLinks(reader).of_resources([agent], EMBEDDER):
        entities, chunks = list(vectors["entity"].keys), list(vectors["chunk"].keys)
        writer.write([*entities, *writer.merged], chunks, revised=revised)
        reader.write("link", [(agent, EMBEDDER, "")], [agent] if revised else None)
    else:
        writer.write(sorted(changed.resources), sorted(changed.chunks), revised=True)


class _NetworkWriter:
    """Makes the rows of resources and chunks."""

    def __init__(
        self,
        reader: TableReader,
        store: Store,
        vectors: Mapping[str, VectorIndex],
        wording: Wording,
    ) -> None:
        self._reader = reader
        self._links = ResourceLinks(reader)
        self._vectors = vectors
        self._wording = wording
        self.merged = merged_names(store)
        self._headings = Headings(store)

    def write(self, resources: Sequence[str], chunks: Sequence[str], *, revised: bool) -> None:
        """Write the rows of these; ``revised`` says that earlier rows of them may be there."""
        words = self._words(resources) if revised else set()
        keys = {*resources, *chunks} if revised else None
        entities = self._with_vectors("entity", resources)
        standing = self._with_vectors("chunk", chunks)
        self._reader.write("link", self._link_rows(resources, entities, standing), keys)
        rows = chain(self._entity_rows(entities), self._chunk_rows(standing))
        self._reader.write("node", rows, keys)
        words |= self._words(resources)
        self._reader.write("alike", self._synonym_rows(sorted(words)), words if revised else None)

    def _words(self, resources: Iterable[str]) -> set[str]:
        return {word for _, word in self._links.of_resources(resources, WORD)}

    def _with_vectors(self, kind: str, iris: Sequence[str]) -> list[str]:
        keys = self._vectors[kind].keys
        return sorted({iri for iri in iris if keys.find(iri) is not None})

    def _link_rows(
        self, resources: Iterable[str], entities: Iterable[str], chunks: Iterable[str]
    ) -> Iterator[tuple[str, str, str]]:
        for iri in resources:
            for name in self._names(iri):
                yield from ((iri, NAME, form) for form in self._wording.name_forms(name))
            if iri in self.merged:
                yield iri, MERGED, self.merged[iri]
        for entity in entities:
            yield from ((entity, WORD, word) for word in set(self._wording.words(entity)))
        for chunk in chunks:
            for title in self._headings.titles(chunk):
                yield from ((chunk, NAME, form) for form in self._wording.title_forms(title))

    def _names(self, resource: str) -> Iterator[str]:
        """Return all labels and aliases of the resource."""
        kinds = [(resource, "label"), (resource, "alias")]
        return (text for _, text in self._reader.rows_by_key("said", TEXTS_OF_KIND, kinds))

    def _entity_rows(self, entities: Sequence[str]) -> Iterator[tuple[str, bool, bytes]]:
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        relations = list(self._relations(entities))
        keys = self._vectors["edge"].keys
        edges = {keys[place] for place in keys.places({e for e, _, _ in relations}).tolist()}
        for edge, subject, obj in relations:
            if edge in edges:
                counts[subject][obj] += 1
        for entity in entities:
            ties = [(_mark(obj), count, 0) for obj, count in sorted(counts[entity].items())]
            yield entity, False, _pack(ties, _TIE)

    def _relations(self, subjects: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """The edges that lead from the subjects to resources: edge, subject, object."""
        values = ((str(NamedNode(subject)), -1) for subject in subjects)
        for rows in self._reader.matching_rows("edge", _FROM, values):
            for iri, subject, _, obj in rows:
                if obj.startswith("<"):
                    yield unpacked_edge(iri), subject[1:-1], obj[1:-1]

    def _chunk_rows(self, chunks: Sequence[str]) -> Iterator[tuple[str, bool, bytes]]:
        for chunk in chunks:
            [rows] = self._reader.matching_rows("evidence", _SPOKEN_OF, [(chunk, *NO_NAMES)])
            mentioned = {entity for (entity,) in rows}
            subjects = set(self._headings.subjects(chunk))
            ties = [(_mark(e), e in mentioned, e in subjects) for e in sorted(mentioned | subjects)]
            yield chunk, True, _pack(ties, _TIE)

    def _synonym_rows(self, words: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """For each word the pairs of entities whose names have the word and are alike."""
        import numpy as np

        vectors = self._vectors["entity"]
        for word in words:
            entities = sorted(iri for iri, _ in self._links.of_texts(WORD, [word]))
            if not 1 < len(entities) <= COMMON:
                continue
            places = np.array([vectors.keys.find(iri) for iri in entities])
            rows = first_windows(vectors, places)
            sources, targets = np.triu_indices(len(entities), 1)
            scores = likeness(rows[sources], rows[targets])
            near = np.flatnonzero(scores >= KEPT_LIKENESS)
            marks = [_mark(iri) for iri in entities]
            pairs = [(marks[sources[i]], marks[targets[i]], scores[i], 0) for i in near.tolist()]
            yield word, _pack(pairs, _ALIKE)
