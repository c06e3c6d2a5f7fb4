"""Standing evidence, read for batches of edges or entities.

``EvidenceReader`` decides about standing and order. The evidence source decides where rows are
read: from the store (``StoredEvidence``), or from the table that an index run leaves beside the
vectors (``tgraph.index.lookup_table``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import NamedTuple, Protocol

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import ErasedTextError, EvidenceError
from tgraph.index.sources import (
    Texts,
    document_of_chunk,
    page_of_chunk,
    source_value,
    standing_documents,
    text_value,
)
from tgraph.model import Evidence
from tgraph.store.base import Store, Term, select_rows, text_of

DEFAULT_STRENGTH = 5.0

_AT_ONCE = 2_000
"""Entities that a query asks for."""

_DERIVED = v.prov("wasDerivedFrom")


class EvidenceRow(NamedTuple):
    """A place in a chunk that mentions an edge, entity or claim.

    ``about`` is the current edge, entity or claim with the evidence; the evidence was stated of
    ``about`` or of an item merged into ``about``. If the quote is missing, the text of the
    place is the quote."""

    about: str
    iri: str
    chunk: str
    start: int
    length: int
    quote: str | None
    strength: float
    description: str


class EvidenceSource(Protocol):
    """A source of evidence rows, possibly including rows of documents no longer standing."""

    def of_edges(self, edges: Sequence[str]) -> Iterable[EvidenceRow]:
        """Return the rows of the edges, including merged edges, in any order."""

    def of_entities(self, entities: Sequence[str]) -> Iterable[EvidenceRow]:
        """Return the rows of the entities, including merged names, by entity and IRI."""

    def places(self, entities: Sequence[str]) -> Mapping[str, Iterator[EvidenceRow]]:
        """Return evidence rows by entity: describing rows first, then rows only naming the
        entity.

        Rows are read on demand: a common name has many rows."""

    def by_iri(self, iris: Sequence[str]) -> Iterable[EvidenceRow]:
        """Return rows with the given IRIs, about the originally stated items, sorted by IRI and
        item."""

    def documents(self, documents: Collection[str]) -> dict[str, tuple[str, str]]:
        """Return titles and paths of standing documents among ``documents``."""

    def stated_in(self, chunks: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
        """Return start offsets and IRIs of edges stated in each chunk, in text order.

        The canonical edges of merged edges are included."""

    def mentions(self, entities: Collection[str] | None = None) -> dict[str, set[str]]:
        """Return chunks mentioning each entity under any name, from standing documents.

        Covers all entities by default."""


OnDoubt = Callable[[EvidenceError], None]
"""Is told of evidence that is not what the stored text says, and that is left out therefore."""


def raise_doubt(error: EvidenceError) -> None:
    raise error


def left_out(error: EvidenceError) -> str:
    """Return the message for omitted evidence."""
    return f"Evidence was left out. {error}"


class EvidenceReader:
    """Standing evidence; evidence from documents no longer standing is left out.

    Every quote is read from the stored text; ``doubt`` is called if the stored text differs
    from the record."""

    def __init__(self, source: EvidenceSource, texts: Texts, doubt: OnDoubt = raise_doubt) -> None:
        self.documents = source.documents
        self.mentions = source.mentions
        self.stated_in = source.stated_in
        self._source = source
        self._texts = texts
        self.doubt = doubt

    def of_edges(self, edges: Sequence[str], limit: int) -> dict[str, tuple[Evidence, ...]]:
        """Return each edge's strongest evidence, at most ``limit`` items, alternating
        documents; equal spans count once."""
        evidence_by_edge: defaultdict[str, list[Evidence]] = defaultdict(list)
        for _, evidence in self._read_standing(self._source.of_edges(edges)):
            evidence_by_edge[evidence.statement].append(evidence)
        return {
            edge: _spread_by_document(_distinct_spans(items), limit)
            for edge, items in evidence_by_edge.items()
        }

    def of_entities(self, entities: Sequence[str]) -> dict[str, list[tuple[Evidence, str]]]:
        """Return evidence and descriptions by entity, sorted by IRI; empty descriptions mean
        the entity is only named."""
        evidence_by_entity: defaultdict[str, list[tuple[Evidence, str]]] = defaultdict(list)
        for row, evidence in self._read_standing(self._source.of_entities(entities)):
            evidence_by_entity[evidence.statement].append((evidence, row.description))
        return evidence_by_entity

    def telling(self, entities: Sequence[str], limit: int) -> dict[str, tuple[Evidence, ...]]:
        """Return, by entity, the earliest evidence describing the entity, or else naming the
        entity.

        Returns at most ``limit`` places per entity, sorted by IRI."""
        evidence_by_entity: defaultdict[str, list[tuple[Evidence, bool]]] = defaultdict(list)
        row_iterators = self._source.places(entities)
        while row_iterators:
            row_batches = {
                entity: list(islice(rows, limit)) for entity, rows in row_iterators.items()
            }
            for row, evidence in self._read_standing(chain.from_iterable(row_batches.values())):
                evidence_by_entity[evidence.statement].append((evidence, bool(row.description)))
            short = (
                e
                for e, rows in row_batches.items()
                if len(rows) == limit > len(evidence_by_entity[e])
            )
            row_iterators = {entity: row_iterators[entity] for entity in short}
        return {
            entity: tuple(e for e, describes in places[:limit] if describes == places[0][1])
            for entity, places in evidence_by_entity.items()
            if places
        }

    def by_iri(self, iris: Sequence[str]) -> dict[str, Evidence]:
        """Return standing evidence by IRI."""
        evidence_by_iri: dict[str, Evidence] = {}
        for _, evidence in self._read_standing(self._source.by_iri(iris)):
            evidence_by_iri.setdefault(evidence.iri, evidence)
        return evidence_by_iri

    def _read_standing(self, rows: Iterable[EvidenceRow]) -> Iterator[tuple[EvidenceRow, Evidence]]:
        row_list = list(rows)
        documents = self.documents({document_of_chunk(row.chunk) for row in row_list})
        for row in row_list:
            title_path = documents.get(document_of_chunk(row.chunk))
            if title_path is None:
                continue
            try:
                yield row, evidence_of_row(row, title_path, self._texts)
            except ErasedTextError:
                continue
            except EvidenceError as error:
                self.doubt(error)


def stored_evidence(store: Store, texts: Texts, doubt: OnDoubt = raise_doubt) -> EvidenceReader:
    """Return an evidence reader for the store's statements."""
    return EvidenceReader(StoredEvidence(store), texts, doubt)


class StoredEvidence:
    """Evidence rows read directly from store statements."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_edges(self, edges: Sequence[str]) -> Iterator[EvidenceRow]:
        return self._select_rows("retrieve/evidence", "edges", edges, "edge")

    def of_entities(self, entities: Sequence[str]) -> Iterator[EvidenceRow]:
        return self._select_rows("retrieve/entity-evidence", "entities", entities, "entity")

    def places(self, entities: Sequence[str]) -> dict[str, Iterator[EvidenceRow]]:
        rows_by_entity: defaultdict[str, list[EvidenceRow]] = defaultdict(list)
        for row in self.of_entities(entities):
            rows_by_entity[row.about].append(row)
        return {
            entity: iter(sorted(rows, key=lambda row: not row.description))
            for entity, rows in rows_by_entity.items()
        }

    def by_iri(self, iris: Sequence[str]) -> Iterator[EvidenceRow]:
        return self._select_rows("retrieve/places", "evidence", iris, "statement")

    def documents(self, documents: Collection[str]) -> dict[str, tuple[str, str]]:
        return documents_of(self._store, documents)

    def stated_in(self, chunks: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
        places_by_chunk: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        nodes = [NamedNode(chunk) for chunk in chunks]
        rows = select_rows(self._store, "retrieve/neighbours", {"chunks": nodes}) if nodes else []
        for row in rows:
            places_by_chunk[text_of(row["chunk"])].append(
                (number_of(row["start"]), text_of(row["edge"]))
            )
        return {chunk: sorted(places) for chunk, places in places_by_chunk.items()}

    def mentions(self, entities: Collection[str] | None = None) -> dict[str, set[str]]:
        if entities is None:
            return self._all_mentions()
        ordered = sorted(entities)
        batches = (ordered[at : at + _AT_ONCE] for at in range(0, len(ordered), _AT_ONCE))
        rows = [(row.about, row.chunk) for batch in batches for row in self.of_entities(batch)]
        standing = self.documents({document_of_chunk(chunk) for _, chunk in rows})
        chunks_by_entity: defaultdict[str, set[str]] = defaultdict(set)
        for entity, chunk in rows:
            if document_of_chunk(chunk) in standing:
                chunks_by_entity[entity].add(chunk)
        return chunks_by_entity

    def _all_mentions(self) -> dict[str, set[str]]:
        store = self._store
        standing = standing_documents(store)
        canonical = canonical_names(store)
        chunks_by_name: defaultdict[str, set[str]] = defaultdict(set)
        for mention in store.match(None, v.tg("entity"), None, v.SOURCE_GRAPH):
            entity = text_of(mention.object)
            for origin in store.match(mention.subject, _DERIVED, None, v.SOURCE_GRAPH):
                chunk = text_of(origin.object)
                if document_of_chunk(chunk) in standing:
                    for name in (entity, *canonical.get(entity, ())):
                        chunks_by_name[name].add(chunk)
        return chunks_by_name

    def _select_rows(
        self, query: str, parameter: str, iris: Sequence[str], about: str
    ) -> Iterator[EvidenceRow]:
        if iris:
            nodes = [NamedNode(iri) for iri in iris]
            for row in select_rows(self._store, query, {parameter: nodes}):
                yield row_of(row, about)


def row_of(row: Mapping[str, Term | None], about: str) -> EvidenceRow:
    """The row of a query with the columns evidence, chunk, start, length, quote, strength, perhaps
    description, and ``about``."""
    quote = row["quote"]
    return EvidenceRow(
        text_of(row[about]),
        text_of(row["evidence"]),
        text_of(row["chunk"]),
        number_of(row["start"]),
        number_of(row["length"]),
        quote.value if isinstance(quote, Literal) else None,
        float(text_of(row["strength"]) or DEFAULT_STRENGTH),
        text_of(row.get("description")),
    )


def number_of(term: Term | None) -> int:
    """Return the count in a term; -1, never a valid place, for terms lacking a count."""
    text = text_of(term)
    return int(text) if text.isdecimal() else -1


class RecordedPlace(NamedTuple):
    """The recorded place of an evidence, checked by ``Texts.quote``."""

    chunk: str
    start: int
    end: int
    quote: str | None


def recorded_place(store: Store, evidence: str) -> RecordedPlace:
    """Return the recorded place of an evidence; an empty chunk means no recorded place."""
    start = number_of(source_value(store, evidence, v.tg("charOffset")))
    length = number_of(source_value(store, evidence, v.tg("charLength")))
    quote = source_value(store, evidence, v.tg("quote"))
    chunk = text_value(store, evidence, _DERIVED)
    return RecordedPlace(chunk, start, start + length, None if quote is None else text_of(quote))


class StatedOrigin(NamedTuple):
    """The origin that an external graph states for a statement.

    ``graph`` is the named graph containing the statement (empty if none), and ``sources``
    contains the IRIs of primary sources."""

    graph: str
    sources: tuple[str, ...]


def recorded_origin(store: Store, evidence: str) -> StatedOrigin:
    """Return the recorded origin of an evidence."""
    node = NamedNode(evidence)
    sources = store.match(node, v.prov("hadPrimarySource"), None, v.SOURCE_GRAPH)
    graph = text_value(store, evidence, v.tg("graph"))
    return StatedOrigin(graph, tuple(sorted(text_of(quad.object) for quad in sources)))


def evidence_of_row(row: EvidenceRow, named: tuple[str, str], texts: Texts) -> Evidence:
    """Return the evidence of a row.

    ``named`` contains the document's title and path. Raises ``EvidenceError`` if the row
    disagrees with the stored text."""
    end = row.start + row.length
    quote = texts.quote(row.chunk, row.start, end, row.quote)
    document, page = document_of_chunk(row.chunk), page_of_chunk(row.chunk)
    return Evidence(
        iri=row.iri,
        statement=row.about,
        chunk=row.chunk,
        document=document,
        title=named[0],
        path=named[1],
        page=page,
        start=row.start,
        end=end,
        quote=quote,
        strength=row.strength,
        by_hand=texts.is_note(document),
    )


def documents_of(store: Store, documents: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return titles and paths of standing documents among ``documents``."""
    if not documents:
        return {}
    nodes = [NamedNode(document) for document in sorted(documents)]
    document_names: dict[str, tuple[str, str]] = {}
    for row in select_rows(store, "retrieve/documents", {"documents": nodes}):
        document_names.setdefault(
            text_of(row["document"]), (text_of(row["title"]), text_of(row["path"]))
        )
    return document_names


def canonical_names(store: Store) -> dict[str, list[str]]:
    """Return, by absorbed name, the canonical entities of all standing merges."""
    canonical_by_absorbed: defaultdict[str, list[str]] = defaultdict(list)
    for merge in store.match(None, v.tg("absorbed"), None, v.SOURCE_GRAPH):
        merge_statements = partial(store.match, merge.subject, graph=v.SOURCE_GRAPH)
        if next(merge_statements(v.prov("invalidatedAtTime")), None) is None:
            canonical_by_absorbed[text_of(merge.object)].append(
                text_of(next(merge_statements(v.tg("canonical"))).object)
            )
    return canonical_by_absorbed


def absorbed_by(store: Store, entity: str) -> set[str]:
    """Return names absorbed by the entity in standing merges."""
    absorbed_names = set()
    for merge in store.match(None, v.tg("canonical"), NamedNode(entity), v.SOURCE_GRAPH):
        merge_statements = partial(store.match, merge.subject, graph=v.SOURCE_GRAPH)
        if next(merge_statements(v.prov("invalidatedAtTime")), None) is None:
            absorbed_names |= {text_of(quad.object) for quad in merge_statements(v.tg("absorbed"))}
    return absorbed_names


def _distinct_spans(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return evidence with equal text spans counted once; the smallest IRI wins."""
    evidence_by_span: dict[tuple[object, ...], Evidence] = {}
    for item in evidence:
        span = (item.document, item.page, item.start, item.end)
        if span not in evidence_by_span or item.iri < evidence_by_span[span].iri:
            evidence_by_span[span] = item
    return list(evidence_by_span.values())


def _spread_by_document(evidence: list[Evidence], limit: int) -> tuple[Evidence, ...]:
    """Return up to ``limit`` items in document rounds: each document's strongest evidence, then
    each document's second strongest, etc."""
    evidence.sort(key=lambda e: (-e.strength, e.path, e.page or 0, e.start, e.iri))
    turn: defaultdict[str, int] = defaultdict(int)
    turns = []
    for item in evidence:
        turns.append(turn[item.document])
        turn[item.document] += 1
    ordered = sorted(zip(turns, evidence, strict=True), key=lambda pair: pair[0])
    return tuple(item for _, item in ordered[:limit])
