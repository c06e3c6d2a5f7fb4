"""The rows of all keys of a store, for tables that are made whole.

Each property is scanned once: to look up key after key takes 1.7 times as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.index.evidence import DEFAULT_STRENGTH, canonical_names, number_of
from tgraph.index.sources import document_of_chunk, standing_documents
from tgraph.index.stored_graph import MOST_COUNTED, statement_of
from tgraph.index.table_reader import EDGE_PREFIX, pack_iri, packed_edge, unpacked_edge
from tgraph.index.table_rows import NAMING, UNASKED, TableRows, TextNumbers, saying_row
from tgraph.store.base import Store, Term, select_rows, text_of

if TYPE_CHECKING:
    import sqlite3

_DESCRIBE = """
UPDATE edge SET description = ifnull(min(description, ?1), ?1) WHERE iri = ?2 AND weight NOTNULL
"""


class AllRows(TableRows):
    """The rows of all keys."""

    def __init__(self, store: Store, texts: TextNumbers) -> None:
        super().__init__(store, texts, standing_documents(store))
        self._mentioned: set[str | bytes] = set()
        self._degrees: Counter[str] = Counter()

    def evidence(self) -> Iterator[tuple[object, ...]]:
        canonical = _read_merge_targets(self._store)
        rows = _EvidenceScan(self._store, self._standing, self._texts).rows()
        for place, (subject, iri, *where, description) in enumerate(rows):
            if subject.startswith(EDGE_PREFIX):
                self._mentioned.add(packed_edge(subject))
            for key in (subject, *canonical.get(subject, ())):
                yield key, iri, place, *where, description, key == subject

    def edges(self) -> Iterator[tuple[object, ...]]:
        """Without weights and descriptions, which ``weigh`` adds."""
        statements = self._statements()
        for quad in self._store.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
            edge = packed_edge(text_of(quad.subject))
            if isinstance(quad.object, Triple) and (edge in statements or edge in self._mentioned):
                numbers = self._texts.numbers(quad.object)
                yield edge, *numbers, True, statements.pop(edge, None) is not None, None, None
        yield from (
            (edge, *numbers, False, True, None, None) for edge, numbers in statements.items()
        )

    def _statements(self) -> dict[str | bytes, tuple[int, ...]]:
        """The terms of the edges that knowledge states, by their numbers; the degrees of their ends
        are counted on the way."""
        statements: dict[str | bytes, tuple[int, ...]] = {}
        outgoing, incoming = self._degrees, Counter[str]()
        for predicate in self._predicates():
            for quad in self._store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
                outgoing[text_of(quad.subject)] += 1
                if isinstance(quad.object, NamedNode):
                    incoming[quad.object.value] += 1
                if isinstance(quad.subject, NamedNode):
                    edge = packed_edge(v.edge_iri(*statement_of(quad.triple)))
                    statements[edge] = self._texts.numbers(quad.triple)
        for entity in outgoing.keys() | incoming.keys():
            counts = outgoing[entity], incoming[entity]
            self._degrees[entity] = sum(min(count, MOST_COUNTED) for count in counts)
        return statements

    def _predicates(self) -> Iterator[NamedNode]:
        """The predicates of statements of the corpus."""
        for row in select_rows(self._store, "index/predicates"):
            predicate = row["predicate"]
            if isinstance(predicate, NamedNode) and v.is_statement(predicate):
                yield predicate

    def weigh(self, connection: sqlite3.Connection) -> None:
        """Put the weights and the descriptions of edges into the rows of the edges."""
        kinds = self._store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH)
        edges = {packed_edge(text_of(quad.subject)) for quad in kinds}

        def values(predicate: str) -> Iterator[tuple[str, str | bytes]]:
            for quad in self._store.match(None, v.tg(predicate), None, v.KNOWLEDGE_GRAPH):
                if (edge := packed_edge(text_of(quad.subject))) in edges:
                    yield text_of(quad.object), edge

        weights = ((float(text or 1.0), edge) for text, edge in values("weight"))
        connection.executemany("UPDATE edge SET weight = ? WHERE iri = ?", weights)
        connection.executemany(_DESCRIBE, values("description"))
        fill = "UPDATE edge SET description = ifnull(description, '') WHERE weight NOTNULL"
        connection.execute(fill)

    def degrees(self) -> Iterator[tuple[str, int]]:
        yield from self._degrees.items()

    def sayings(self) -> Iterator[tuple[str, str, str, bool]]:
        kinds = partial(self._store.match, None, v.RDF_TYPE, graph=v.KNOWLEDGE_GRAPH)
        unasked = (q for q in kinds(None) if text_of(q.object) in UNASKED)
        edges = {packed_edge(text_of(quad.subject)) for quad in unasked}
        entities = {text_of(quad.subject) for quad in kinds(v.tg("Entity"))}
        for quad in kinds(None):
            if packed_edge(iri := text_of(quad.subject)) not in edges:
                yield iri, "type", text_of(quad.object), False
        for predicate in NAMING:
            for quad in self._store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
                iri = text_of(quad.subject)
                if isinstance(quad.object, Literal) and iri and packed_edge(iri) not in edges:
                    yield saying_row(iri, predicate, quad.object, is_entity=iri in entities)

    def _chunk_tokens(self) -> Mapping[str, int]:
        rows = select_rows(self._store, "index/chunk-tokens")
        return {text_of(row["chunk"]): int(text_of(row["tokens"])) for row in rows}

    def _page_hashes(self) -> Iterator[Quad]:
        return self._store.match(None, v.tg("textHash"), None, v.SOURCE_GRAPH)


_SLOTS = ("about", "chunk", "charOffset", "charLength", "quote", "strength", "is told")
_TOLD = len(_SLOTS) - 1


class _EvidenceScan:
    """A scan of all evidence from standing documents.

    Each property is scanned once: a query joining the properties takes seven times as much
    memory, and looking up each property takes six times as long."""

    def __init__(self, store: Store, standing: Collection[str], texts: TextNumbers) -> None:
        self._store = store
        self._standing = standing
        self._texts = texts
        self._found: dict[str | bytes, list[Any]] = {}

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield evidence rows without places, a row for each combination of multiple values."""
        self._take_subjects()
        self._fill_slots("chunk", v.prov("wasDerivedFrom"), self._chunk_number)
        self._found = {key: slots for key, slots in self._found.items() if slots[1] is not None}
        for name, read in (
            ("charOffset", number_of),
            ("charLength", number_of),
            ("quote", self._quote_number),
            ("strength", lambda term: float(text_of(term) or DEFAULT_STRENGTH)),
        ):
            self._fill_slots(name, v.tg(name), read)
        for key, term in self._scan_property(v.tg("description")):
            if slots := self._found.get(key):
                slots[_TOLD] = True
                yield from _rows_of(key, slots, text_of(term))
        for key, slots in self._found.items():
            if not slots[_TOLD]:
                yield from _rows_of(key, slots, "")

    def _scan_property(self, predicate: NamedNode) -> Iterator[tuple[str | bytes, Term]]:
        for quad in self._store.match(None, predicate, None, v.SOURCE_GRAPH):
            if isinstance(quad.subject, NamedNode):
                yield pack_iri(quad.subject.value), quad.object

    def _take_subjects(self) -> None:
        names: dict[str, str | bytes] = {}
        for role in ("edge", "entity", "claim"):
            for key, term in self._scan_property(v.tg(role)):
                slots = self._found.setdefault(key, [None] * len(_SLOTS))
                subject_iri = text_of(term)
                packed = (
                    packed_edge(subject_iri)
                    if role == "edge"
                    else names.setdefault(subject_iri, subject_iri)
                )
                _append_value(slots, 0, packed)

    def _fill_slots(self, name: str, predicate: NamedNode, read: Callable[[Term], object]) -> None:
        place = _SLOTS.index(name)
        for key, term in self._scan_property(predicate):
            slots = self._found.get(key)
            if slots is not None and (slot_value := read(term)) is not None:
                _append_value(slots, place, slot_value)

    def _chunk_number(self, term: Term) -> int | None:
        chunk = text_of(term)
        return self._texts.number(chunk) if document_of_chunk(chunk) in self._standing else None

    def _quote_number(self, term: Term) -> int | None:
        return self._texts.number(term.value if isinstance(term, Literal) else None)


def _append_value(slots: list[Any], place: int, value: object) -> None:
    current_value = slots[place]
    slots[place] = value if current_value is None else [*_values(current_value), value]


def _values(slot: object) -> list[Any]:
    return slot if isinstance(slot, list) else [slot]


def _rows_of(key: str | bytes, slots: Sequence[Any], description: str) -> Iterator[tuple[Any, ...]]:
    """Yield rows of a scanned evidence, by subject; no rows for evidence without a standing
    document or place."""
    if None in slots[:4]:
        return
    for subject_iri, *where, strength in product(*map(_values, slots[:_TOLD])):
        row_strength = DEFAULT_STRENGTH if strength is None else strength
        yield unpacked_edge(subject_iri), key, *where, row_strength, description


def _read_merge_targets(store: Store) -> Mapping[str, Collection[str]]:
    """Return merge targets by edge or entity."""
    canonical = canonical_names(store)
    for quad in store.match(None, v.tg("original"), None, v.KNOWLEDGE_GRAPH):
        canonical.setdefault(text_of(quad.object), []).append(text_of(quad.subject))
    return {iri: sorted({*targets} - {iri}) for iri, targets in canonical.items()}
