"""The rows of changed keys of a store, for tables beside those of before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.index.changed_keys import ChangedKeys
from tgraph.index.evidence import EvidenceRow, StoredEvidence, absorbed_by, row_of
from tgraph.index.sources import derived_items, document_of_chunk, source_value
from tgraph.index.stored_graph import StoredCounts
from tgraph.index.table_reader import pack_iri, packed_edge
from tgraph.index.table_rows import NAMING, UNASKED, TableRows, TextNumbers, saying_row
from tgraph.store.base import Store, select_rows, text_of

_AT_ONCE = 2_000


class ChangedRows(TableRows):
    """The rows of ``changed`` keys; ``keys`` has the keys by table."""

    def __init__(self, store: Store, texts: TextNumbers, changed: ChangedKeys) -> None:
        super().__init__(store, texts, changed.documents)
        self._changed = changed
        self._resources = set(changed.resources)
        self._mentioned: set[str] = set()
        documents = changed.documents
        self._pages = {page for document in documents for page in _pages_of(store, document)}

    @property
    def keys(self) -> Mapping[str, Collection[str | bytes]]:
        resources, changed = self._resources, self._changed
        return {
            "evidence": resources.union(changed.edges, changed.claims),
            "edge": set(map(packed_edge, changed.edges)),
            "entity": resources,
            "said": resources,
            "chunk": changed.chunks,
            "document": changed.documents,
            "page": self._pages,
        }

    def evidence(self) -> Iterator[tuple[object, ...]]:
        keys = sorted(map(str, self.keys["evidence"]))
        originals = {key: sorted(_originals(self._store, key)) for key in keys}
        rows = self._stated_rows(
            sorted({*keys, *(o for group in originals.values() for o in group)})
        )
        chunks = (row.chunk for group in rows.values() for row in group)
        standing = StoredEvidence(self._store).documents(set(map(document_of_chunk, chunks)))
        for key in keys:
            stated_rows = [
                (subject, row) for subject in (key, *originals[key]) for row in rows[subject]
            ]
            there = (pair for pair in stated_rows if document_of_chunk(pair[1].chunk) in standing)
            for place, (subject, row) in enumerate(there):
                self._mentioned.add(subject)
                chunk, quote = self._texts.number(row.chunk), self._texts.number(row.quote)
                where = pack_iri(row.iri), place, chunk, row.start, row.length, quote
                yield key, *where, row.strength, row.description, subject == key

    def _stated_rows(self, keys: Sequence[str]) -> Mapping[str, list[EvidenceRow]]:
        """The rows of evidence by the key that they were stated of."""
        rows: defaultdict[str, list[EvidenceRow]] = defaultdict(list)
        for start in range(0, len(keys), _AT_ONCE):
            nodes = [NamedNode(key) for key in keys[start : start + _AT_ONCE]]
            for solution in select_rows(self._store, "index/evidence-of", {"stated": nodes}):
                row = row_of(solution, "stated")
                rows[row.about].append(row)
        return rows

    def edges(self) -> Iterator[tuple[object, ...]]:
        for edge, triple in self._changed.edges.items():
            if triple is None:
                continue
            is_stated = v.is_statement(triple.predicate) and self._is_stated(triple)
            reified = source_value(self._store, edge, v.RDF_REIFIES) is not None
            if is_stated or (reified and edge in self._mentioned):
                numbers = self._texts.numbers(triple)
                yield packed_edge(edge), *numbers, reified, is_stated, *self._attributes(edge)

    def _is_stated(self, triple: Triple) -> bool:
        subject, predicate, obj = triple
        quads = self._store.match(subject, predicate, obj, v.KNOWLEDGE_GRAPH)
        return next(quads, None) is not None

    def _attributes(self, edge: str) -> tuple[float | None, str | None]:
        """The weight and the description of an edge; None twice where knowledge lacks the edge."""
        texts: defaultdict[NamedNode, list[str]] = defaultdict(list)
        for quad in self._store.match(NamedNode(edge), None, None, v.KNOWLEDGE_GRAPH):
            texts[quad.predicate].append(text_of(quad.object))
        weights = texts[v.tg("weight")] if v.TG + "Edge" in texts[v.RDF_TYPE] else []
        if not weights:
            return None, None
        return float(weights[-1] or 1.0), min(texts[v.tg("description")], default="")

    def degrees(self) -> Iterator[tuple[str, int]]:
        counts = StoredCounts(self._store).degrees(self._resources)
        return ((entity, count) for entity, count in counts.items() if count)

    def sayings(self) -> Iterator[tuple[str, str, str, bool]]:
        for iri in self._resources:
            quads = list(self._store.match(NamedNode(iri), None, None, v.KNOWLEDGE_GRAPH))
            kinds = {text_of(quad.object) for quad in quads if quad.predicate == v.RDF_TYPE}
            if kinds & UNASKED:
                continue
            yield from ((iri, "type", kind, False) for kind in kinds)
            is_entity = v.TG + "Entity" in kinds
            for quad in quads:
                if quad.predicate in NAMING and isinstance(quad.object, Literal):
                    yield saying_row(iri, quad.predicate, quad.object, is_entity=is_entity)

    def _chunk_tokens(self) -> Mapping[str, int]:
        return StoredCounts(self._store).chunk_tokens(sorted(self._changed.chunks))

    def _page_hashes(self) -> Iterator[Quad]:
        for page in sorted(self._pages):
            yield from self._store.match(NamedNode(page), v.tg("textHash"), None, v.SOURCE_GRAPH)


def _pages_of(store: Store, document: str) -> Iterator[str]:
    yield document
    yield from derived_items(store, document, "Page")


def _originals(store: Store, key: str) -> set[str]:
    """Return edges or names merged into the given key."""
    quads = store.match(NamedNode(key), v.tg("original"), None, v.KNOWLEDGE_GRAPH)
    return {text_of(quad.object) for quad in quads}.union(absorbed_by(store, key)) - {key}
