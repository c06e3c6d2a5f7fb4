"""Co-occurrence graph: from sentences with names to knowledge, the second half of fast
indexing.

The choice of names and of related names depends on the whole collection, and is decided anew in
every run, from sentences of all standing chunks; changes touch the affected evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.engine.index.phase import IndexContext
from tgraph.extract.facts import WEAK
from tgraph.extract.language import RELATED
from tgraph.index.cooccurrence import (
    IriPair,
    Kept,
    Occurrences,
    decode_occurrences,
    select_names_and_pairs,
)
from tgraph.index.sources import (
    Texts,
    document_of_chunk,
    page_of_chunk,
    range_of_chunk,
    standing_documents,
    text_value,
)
from tgraph.index.standing_knowledge import Properties, Weigh
from tgraph.index.touched import Touched
from tgraph.model import Chunk, ExtractedRelationship, Extraction, Span
from tgraph.record.merges import standing_merges
from tgraph.record.sources import EvidenceRecord

RELATION = NamedNode(v.relation_iri(RELATED))
_SAME = 1e-4
"""Weights that differ by less are the same: they are rounded when they are written."""


@dataclass(frozen=True, slots=True)
class Cooccurrences:
    """Evidence weights, and counts of entities and relationships found in chunks of this run."""

    weigh: Weigh
    entities: int
    relationships: int


def update_cooccurrences(context: IndexContext, touched: Touched) -> Cooccurrences | None:
    """Select findings of fast readings, write missing evidence, and touch changed items.

    Returns None without fast readings."""
    store = context.copy.store
    readings = {
        quad.subject.value: text_value(store, quad.subject.value, v.prov("wasGeneratedBy"))
        for quad in store.match(None, v.tg("occurrences"), None, v.SOURCE_GRAPH)
        if isinstance(quad.subject, NamedNode)
    }
    if not readings:
        return None
    tying = _CooccurrenceGraph(context, readings)
    before = len(touched.edges) + len(touched.entities)
    tying.touch(touched)
    if len(touched.edges) + len(touched.entities) > before:
        context.record.dropped.update({r: n for r, n in tying.dropped.items() if n})
    return Cooccurrences(tying.weigh, tying.entities, tying.relationships)


class _CooccurrenceGraph:
    """Selects and weighs evidence from fast readings."""

    def __init__(self, context: IndexContext, readings: Mapping[str, str]) -> None:
        """``readings`` maps the subgraph of each fast reading to its activity."""
        self.entities = self.relationships = 0
        self._context = context
        self._store = context.copy.store
        self._texts = Texts(self._store, context.librarian)
        self._readings = readings
        self._activities = frozenset(readings.values())
        self._entities: set[str] = set()
        self._edges: dict[str, Triple] = {}
        self._stating: dict[str, str] = {}
        self._shares: dict[str, float] = {}
        chunks = list(self._standing_occurrences())
        selection = select_names_and_pairs(chunks, context.settings.fast)
        self.dropped = selection.dropped
        spread: defaultdict[IriPair, list[str]] = defaultdict(list)
        for chunk in chunks:
            self._write_evidence(chunk, selection, spread)
        for pair, evidence in spread.items():
            self._shares.update(dict.fromkeys(evidence, selection.weights[pair] / len(evidence)))

    def weigh(self, item: Properties) -> Properties | None:
        """Return evidence with its weight, or None for evidence not kept.

        Evidence of other readings counts unchanged; evidence of fast readings counts for its
        share of the pair's weight."""
        if item["wasGeneratedBy"][0].value not in self._activities:
            return item
        share = self._shares.get(item["evidence"][0].value)
        if share is None:
            return None
        return {**item, "strength": [Literal(share)]} if "edge" in item else item

    def _standing_occurrences(self) -> Iterator[Occurrences]:
        standing = standing_documents(self._store)
        for subgraph in sorted(self._readings):
            chunk = text_value(self._store, subgraph, v.prov("wasDerivedFrom"))
            if document_of_chunk(chunk) in standing:
                key = text_value(self._store, subgraph, v.tg("occurrences"))
                content = self._context.librarian.get_text(key)
                yield decode_occurrences(subgraph, chunk, content, self._page_text(chunk))

    def _page_text(self, chunk: str) -> str:
        return self._texts.of_page(document_of_chunk(chunk), page_of_chunk(chunk))

    def _write_evidence(
        self, chunk: Occurrences, kept: Kept, spread: defaultdict[IriPair, list[str]]
    ) -> None:
        """Write a chunk's evidence for kept names and pairs; add each pair's evidence to
        ``spread``."""
        keyed_entities = list(zip(chunk.keys, chunk.entities, strict=True))
        names = {key: entity.name for key, entity in reversed(keyed_entities)}
        pairs: dict[str, IriPair] = {}
        relationships = []
        page = self._page_text(chunk.chunk)
        for pair, stretches in kept.places[chunk.subgraph].items():
            first_name, second_name = names[pair[0]], names[pair[1]]
            pairs[_related_edge(first_name, second_name)] = pair
            for start, end in stretches:
                span = Span(start, end, page[start:end])
                relationships.append(
                    ExtractedRelationship(
                        first_name, RELATED, second_name, strength=WEAK, span=span
                    )
                )
        entities = tuple(entity for key, entity in keyed_entities if key in kept.names)
        extraction = Extraction(chunk.chunk, entities, tuple(relationships))
        activity = self._readings[chunk.subgraph]
        record = EvidenceRecord(chunk.subgraph, activity, _parse_chunk_iri(chunk.chunk), extraction)
        self._context.copy.add(record.quads())
        if activity.startswith(f"{v.URN}extraction:{self._context.uuid}:"):
            self.entities += len(record.entities)
            self.relationships += len(record.edges)
        self._entities |= record.entities
        self._edges |= record.edges
        for evidence, edge in record.evidence.items():
            self._shares[evidence] = 0.0
            if edge:
                self._stating[evidence] = edge
                spread[pairs[edge]].append(evidence)

    def touch(self, touched: Touched) -> None:
        """Touch entities and edges missing from knowledge, superfluous, or weighed differently."""
        merges = standing_merges(self._store)
        canonical = {
            edge: _canonical_triple(merges, triple) for edge, triple in self._edges.items()
        }
        weights: defaultdict[Triple, float] = defaultdict(float)
        for evidence, edge in self._stating.items():
            weights[canonical[edge]] += self._shares[evidence]
        known_weights = dict(self._known_edges())
        for edge, triple in self._edges.items():
            weight = known_weights.get(canonical[edge])
            if weight is None or abs(weight - weights[canonical[edge]]) > _SAME:
                touched.edges[edge] = triple
        for triple in known_weights.keys() - weights.keys():
            touched.edges[_edge_iri(triple)] = triple
        self._touch_entities(touched, {merges.get(e, e) for e in self._entities})

    def _known_edges(self) -> Iterator[tuple[Triple, float]]:
        for quad in self._store.match(None, RELATION, None, v.KNOWLEDGE_GRAPH):
            edge = NamedNode(_edge_iri(quad.triple))
            for weight in self._store.match(edge, v.tg("weight"), None, v.KNOWLEDGE_GRAPH):
                assert isinstance(weight.object, Literal)
                yield quad.triple, float(weight.object.value)

    def _touch_entities(self, touched: Touched, wanted: set[str]) -> None:
        known_entities = {
            quad.subject.value
            for quad in self._store.match(None, v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH)
            if isinstance(quad.subject, NamedNode)
        }
        touched.entities |= {entity for entity in self._entities if entity not in known_entities}
        for entity in known_entities - wanted:
            if self._is_ours(entity):
                touched.entities.add(entity)

    def _is_ours(self, entity: str) -> bool:
        """Return whether a fast reading provides evidence of the entity."""
        for quad in self._store.match(None, v.tg("entity"), NamedNode(entity), v.SOURCE_GRAPH):
            assert isinstance(quad.subject, NamedNode)
            evidence = quad.subject.value
            if text_value(self._store, evidence, v.prov("wasGeneratedBy")) in self._activities:
                return True
        return False


def _related_edge(one: str, other: str) -> str:
    return _edge_iri(Triple(NamedNode(v.entity_iri(one)), RELATION, NamedNode(v.entity_iri(other))))


def _edge_iri(triple: Triple) -> str:
    assert isinstance(triple.subject, NamedNode)
    assert isinstance(triple.object, NamedNode | Literal)
    return v.edge_iri(triple.subject, triple.predicate, triple.object)


def _canonical_triple(merges: Mapping[str, str], triple: Triple) -> Triple:
    """The triple with canonical names."""
    ends = [
        NamedNode(merges.get(end.value, end.value))
        for end in (triple.subject, triple.object)
        if isinstance(end, NamedNode)
    ]
    return Triple(ends[0], triple.predicate, ends[1])


def _parse_chunk_iri(chunk: str) -> Chunk:
    sha256 = document_of_chunk(chunk).removeprefix(v.document_iri(""))
    return Chunk(sha256, page_of_chunk(chunk), 0, *range_of_chunk(chunk), "", 0)
