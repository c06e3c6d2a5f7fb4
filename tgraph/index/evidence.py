"""The standing evidence of many edges, or of many entities, at once.

``EvidenceReader`` says what stands and what comes first; where the rows are read is its source's
matter: the store itself (``StoredEvidence``), or the table that an index run leaves beside the
vectors (``tgraph.index.lookup_table``).
"""

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
    standing_documents,
    text_value,
    value,
)
from tgraph.model import Evidence
from tgraph.store.base import Store, Term, select, text_of

DEFAULT_STRENGTH = 5.0

_AT_ONCE = 2_000
"""Entities that a query asks for."""

_DERIVED = v.prov("wasDerivedFrom")


class EvidenceRow(NamedTuple):
    """A place in a chunk that speaks of something.

    ``about`` is the edge, entity or claim whose evidence it is now; it was stated of that, or of
    what was merged into it. A missing quote is the text of the place itself.
    """

    about: str
    iri: str
    chunk: str
    start: int
    length: int
    quote: str | None
    strength: float
    description: str


class EvidenceSource(Protocol):
    """Where rows are read; those of documents that no longer stand may be among them."""

    def of_edges(self, edges: Sequence[str]) -> Iterable[EvidenceRow]:
        """The rows of the edges, and of those merged into them, in any order."""

    def of_entities(self, entities: Sequence[str]) -> Iterable[EvidenceRow]:
        """The rows of the entities, and of the names merged into them, by entity and IRI."""

    def places(self, entities: Sequence[str]) -> Mapping[str, Iterator[EvidenceRow]]:
        """For each of the entities these rows, those that describe it before those that only name
        it, read as they are taken: of a common name there are many."""

    def by_iri(self, iris: Sequence[str]) -> Iterable[EvidenceRow]:
        """The rows of these IRIs, about what they were stated of, by IRI and that."""

    def documents(self, documents: Collection[str]) -> dict[str, tuple[str, str]]:
        """Title and path of those of the documents that stand."""

    def stated_in(self, chunks: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
        """For each of the chunks that states edges, the start and IRI of each from its beginning
        on; those that they were merged into are among them."""

    def mentions(self, entities: Collection[str] | None = None) -> dict[str, set[str]]:
        """The chunks of standing documents that speak of each entity, of all or of these, under
        whatever name."""


OnDoubt = Callable[[EvidenceError], None]
"""Is told of evidence that is not what the stored text says, and that is left out therefore."""


def raise_doubt(error: EvidenceError) -> None:
    raise error


def left_out(error: EvidenceError) -> str:
    """What is said of evidence that was left out."""
    return f"Evidence was left out. {error}"


class EvidenceReader:
    """Evidence that stands: that of a document which no longer stands is left out.

    Every quote is read from the stored text; ``doubt`` is told where that is not what is on record.
    """

    def __init__(self, source: EvidenceSource, texts: Texts, doubt: OnDoubt = raise_doubt) -> None:
        self.documents = source.documents
        self.mentions = source.mentions
        self.stated_in = source.stated_in
        self._source = source
        self._texts = texts
        self.doubt = doubt

    def of_edges(self, edges: Sequence[str], limit: int) -> dict[str, tuple[Evidence, ...]]:
        """For each edge its strongest evidence, at most ``limit``, a document at a time; the same
        span counts once."""
        found: defaultdict[str, list[Evidence]] = defaultdict(list)
        for _, evidence in self._standing(self._source.of_edges(edges)):
            found[evidence.statement].append(evidence)
        return {edge: _spread(_distinct(items), limit) for edge, items in found.items()}

    def of_entities(self, entities: Sequence[str]) -> dict[str, list[tuple[Evidence, str]]]:
        """For each entity the places that speak of it, with what each says of it (empty: only
        names it), in the order of their IRIs."""
        found: defaultdict[str, list[tuple[Evidence, str]]] = defaultdict(list)
        for row, evidence in self._standing(self._source.of_entities(entities)):
            found[evidence.statement].append((evidence, row.description))
        return found

    def telling(self, entities: Sequence[str], limit: int) -> dict[str, tuple[Evidence, ...]]:
        """For each entity the first places that describe it, or else that name it, at most
        ``limit``, in the order of their IRIs."""
        found: defaultdict[str, list[tuple[Evidence, bool]]] = defaultdict(list)
        left = self._source.places(entities)
        while left:
            taken = {entity: list(islice(rows, limit)) for entity, rows in left.items()}
            for row, evidence in self._standing(chain.from_iterable(taken.values())):
                found[evidence.statement].append((evidence, bool(row.description)))
            short = (e for e, rows in taken.items() if len(rows) == limit > len(found[e]))
            left = {entity: left[entity] for entity in short}
        return {
            entity: tuple(e for e, describes in places[:limit] if describes == places[0][1])
            for entity, places in found.items()
            if places
        }

    def by_iri(self, iris: Sequence[str]) -> dict[str, Evidence]:
        """The evidence of these IRIs, as far as it stands."""
        found: dict[str, Evidence] = {}
        for _, evidence in self._standing(self._source.by_iri(iris)):
            found.setdefault(evidence.iri, evidence)
        return found

    def _standing(self, rows: Iterable[EvidenceRow]) -> Iterator[tuple[EvidenceRow, Evidence]]:
        known = list(rows)
        documents = self.documents({document_of_chunk(row.chunk) for row in known})
        for row in known:
            named = documents.get(document_of_chunk(row.chunk))
            if named is None:
                continue
            try:
                yield row, evidence_of_row(row, named, self._texts)
            except ErasedTextError:
                continue
            except EvidenceError as error:
                self.doubt(error)


def stored_evidence(store: Store, texts: Texts, doubt: OnDoubt = raise_doubt) -> EvidenceReader:
    """The evidence as the store has it."""
    return EvidenceReader(StoredEvidence(store), texts, doubt)


class StoredEvidence:
    """Rows read from the statements themselves."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_edges(self, edges: Sequence[str]) -> Iterator[EvidenceRow]:
        return self._rows("retrieve/evidence", "edges", edges, "edge")

    def of_entities(self, entities: Sequence[str]) -> Iterator[EvidenceRow]:
        return self._rows("retrieve/entity-evidence", "entities", entities, "entity")

    def places(self, entities: Sequence[str]) -> dict[str, Iterator[EvidenceRow]]:
        found: defaultdict[str, list[EvidenceRow]] = defaultdict(list)
        for row in self.of_entities(entities):
            found[row.about].append(row)
        return {
            entity: iter(sorted(rows, key=lambda row: not row.description))
            for entity, rows in found.items()
        }

    def by_iri(self, iris: Sequence[str]) -> Iterator[EvidenceRow]:
        return self._rows("retrieve/places", "evidence", iris, "statement")

    def documents(self, documents: Collection[str]) -> dict[str, tuple[str, str]]:
        return documents_of(self._store, documents)

    def stated_in(self, chunks: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
        found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        nodes = [NamedNode(chunk) for chunk in chunks]
        rows = select(self._store, "retrieve/neighbours", {"chunks": nodes}) if nodes else []
        for row in rows:
            found[text_of(row["chunk"])].append((number_of(row["start"]), text_of(row["edge"])))
        return {chunk: sorted(places) for chunk, places in found.items()}

    def mentions(self, entities: Collection[str] | None = None) -> dict[str, set[str]]:
        if entities is None:
            return self._all_mentions()
        ordered = sorted(entities)
        batches = (ordered[at : at + _AT_ONCE] for at in range(0, len(ordered), _AT_ONCE))
        rows = [(row.about, row.chunk) for some in batches for row in self.of_entities(some)]
        standing = self.documents({document_of_chunk(chunk) for _, chunk in rows})
        found: defaultdict[str, set[str]] = defaultdict(set)
        for entity, chunk in rows:
            if document_of_chunk(chunk) in standing:
                found[entity].add(chunk)
        return found

    def _all_mentions(self) -> dict[str, set[str]]:
        store = self._store
        standing = standing_documents(store)
        canonical = canonical_names(store)
        found: defaultdict[str, set[str]] = defaultdict(set)
        for named in store.match(None, v.tg("entity"), None, v.SOURCE_GRAPH):
            entity = text_of(named.object)
            for origin in store.match(named.subject, _DERIVED, None, v.SOURCE_GRAPH):
                chunk = text_of(origin.object)
                if document_of_chunk(chunk) in standing:
                    for name in (entity, *canonical.get(entity, ())):
                        found[name].add(chunk)
        return found

    def _rows(
        self, query: str, parameter: str, iris: Sequence[str], about: str
    ) -> Iterator[EvidenceRow]:
        if iris:
            nodes = [NamedNode(iri) for iri in iris]
            for row in select(self._store, query, {parameter: nodes}):
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
    """The count; -1, which is no place, for what is none."""
    text = text_of(term)
    return int(text) if text.isdecimal() else -1


class RecordedPlace(NamedTuple):
    """What the record of an evidence says of its place; ``Texts.quote`` checks it."""

    chunk: str
    start: int
    end: int
    quote: str | None


def recorded_place(store: Store, evidence: str) -> RecordedPlace:
    """The place of an evidence as it is on record; one that is nowhere has no chunk."""
    start = number_of(value(store, evidence, v.tg("charOffset")))
    length = number_of(value(store, evidence, v.tg("charLength")))
    quote = value(store, evidence, v.tg("quote"))
    chunk = text_value(store, evidence, _DERIVED)
    return RecordedPlace(chunk, start, start + length, None if quote is None else text_of(quote))


class StatedOrigin(NamedTuple):
    """Where a graph of others has a statement from, by its own word: the named ``graph`` that makes
    it (empty for none), and what it derives it from, by IRI."""

    graph: str
    sources: tuple[str, ...]


def recorded_origin(store: Store, evidence: str) -> StatedOrigin:
    """What is on record of the origin of an evidence."""
    node = NamedNode(evidence)
    sources = store.match(node, v.prov("hadPrimarySource"), None, v.SOURCE_GRAPH)
    graph = text_value(store, evidence, v.tg("graph"))
    return StatedOrigin(graph, tuple(sorted(text_of(quad.object) for quad in sources)))


def evidence_of_row(row: EvidenceRow, named: tuple[str, str], texts: Texts) -> Evidence:
    """The evidence of a row; ``named`` are the title and path of its document. ``EvidenceError``
    where the row is not what the stored text says."""
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
    """Title and path of those of the documents that stand."""
    if not documents:
        return {}
    nodes = [NamedNode(document) for document in sorted(documents)]
    found: dict[str, tuple[str, str]] = {}
    for row in select(store, "retrieve/documents", {"documents": nodes}):
        found.setdefault(text_of(row["document"]), (text_of(row["title"]), text_of(row["path"])))
    return found


def canonical_names(store: Store) -> dict[str, list[str]]:
    """For each entity that others have absorbed, as merges stand, these others."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for merge in store.match(None, v.tg("absorbed"), None, v.SOURCE_GRAPH):
        about = partial(store.match, merge.subject, graph=v.SOURCE_GRAPH)
        if next(about(v.prov("invalidatedAtTime")), None) is None:
            found[text_of(merge.object)].append(text_of(next(about(v.tg("canonical"))).object))
    return found


def absorbed_by(store: Store, entity: str) -> set[str]:
    """The names that the entity has absorbed, as merges stand."""
    found = set()
    for merge in store.match(None, v.tg("canonical"), NamedNode(entity), v.SOURCE_GRAPH):
        about = partial(store.match, merge.subject, graph=v.SOURCE_GRAPH)
        if next(about(v.prov("invalidatedAtTime")), None) is None:
            found |= {text_of(quad.object) for quad in about(v.tg("absorbed"))}
    return found


def _distinct(evidence: Iterable[Evidence]) -> list[Evidence]:
    """The same span counts once."""
    found: dict[tuple[object, ...], Evidence] = {}
    for item in evidence:
        span = (item.document, item.page, item.start, item.end)
        if span not in found or item.iri < found[span].iri:
            found[span] = item
    return list(found.values())


def _spread(evidence: list[Evidence], limit: int) -> tuple[Evidence, ...]:
    """The strongest of each document first, then the second of each, and so on."""
    evidence.sort(key=lambda e: (-e.strength, e.path, e.page or 0, e.start, e.iri))
    turn: defaultdict[str, int] = defaultdict(int)
    turns = []
    for item in evidence:
        turns.append(turn[item.document])
        turn[item.document] += 1
    ordered = sorted(zip(turns, evidence, strict=True), key=lambda pair: pair[0])
    return tuple(item for _, item in ordered[:limit])
