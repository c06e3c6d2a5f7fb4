"""The rows of the look-up tables (``tgraph.index.lookup_table``): of a store, or of what changed in
one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.extract.graphs.rdf_syntax import MEDIA_TYPES as GRAPH_TYPES
from tgraph.index.changed_keys import ChangedKeys
from tgraph.index.evidence import (
    DEFAULT_STRENGTH,
    EvidenceRow,
    StoredEvidence,
    absorbed_by,
    canonical_names,
    number_of,
    row_of,
)
from tgraph.index.knowledge import is_statement
from tgraph.index.lookup_table import FILES, LookupTable
from tgraph.index.sources import (
    derived,
    document_of_chunk,
    is_note,
    parts_of_page,
    standing_documents,
    text_value,
    value,
)
from tgraph.index.sqlite_files import in_file, in_memory
from tgraph.index.stored_graph import MOST_COUNTED, StoredCounts, statement_of
from tgraph.index.table_reader import (
    EDGE_PREFIX,
    INDEXES,
    INSERT,
    SCHEMA,
    packed,
    packed_edge,
    replace_keys,
    unpacked_edge,
)
from tgraph.librarian import Librarian
from tgraph.store.base import Store, Term, select, text_of

if TYPE_CHECKING:
    import sqlite3


def tabulate(
    store: Store,
    librarian: Librarian,
    before: LookupTable | None = None,
    scratch: Path | None = None,
) -> LookupTable:
    """The tables of a store; of standing documents alone. How pages read that did not change is
    taken from the table ``before``. They are in a file in the ``scratch`` folder, which whose it is
    deletes, else in memory: those of a million edges take gigabytes."""
    standing = StoredEvidence(store).documents(standing_documents(store))
    connection = in_memory() if scratch is None else in_file(scratch / f".{FILES.stem}.sqlite")
    connection.executescript(SCHEMA)
    texts = _Numbering({})
    spoken_of: set[str | bytes] = set()
    degree: Counter[str] = Counter()
    documents = list(_documents(store, standing))
    pages = store.match(None, v.tg("textHash"), None, v.SOURCE_GRAPH)
    tables: dict[str, Iterable[tuple[object, ...]]] = {
        "evidence": _all_rows(store, standing, texts, spoken_of),
        "edge": _edges(store, texts, spoken_of, degree),
        "text": texts.numbered(),
        "entity": degree.items(),
        "said": _sayings(store),
        "chunk": _lengths(store, standing),
        "document": documents,
        "page": _pages(pages, librarian, {iri: kind for iri, _, _, kind, _ in documents}, before),
    }
    for name, rows in tables.items():
        connection.executemany(INSERT[name], rows)
    _weigh(connection, store)
    connection.executescript(INDEXES)
    connection.commit()
    return LookupTable(connection)


def revise(
    before: LookupTable,
    store: Store,
    librarian: Librarian,
    changed: ChangedKeys,
    scratch: Path | None = None,
) -> LookupTable:
    """The tables of a store in which nothing but ``changed`` is other than it was ``before``; those
    of all of it, as of ``tabulate``, where that is too much."""
    connection = in_memory()
    if before.newer is not None:
        before.newer.backup(connection)
    else:
        connection.executescript(SCHEMA + INDEXES)
    pages = {page for document in changed.documents for page in _pages_of(store, document)}
    resources, edges = set(changed.resources), changed.edges
    keys: dict[str, Collection[str | bytes]] = {
        "evidence": resources.union(edges, changed.claims),
        "edge": set(map(packed_edge, edges)),
        "entity": resources,
        "said": resources,
        "chunk": changed.chunks,
        "document": changed.documents,
        "page": pages,
    }
    for table, own in keys.items():
        replace_keys(connection, table, own)
    texts = _Numbering(dict(connection.execute("SELECT text, number FROM text")))
    standing = StoredEvidence(store).documents(changed.documents)
    documents = list(_documents(store, standing))
    spoken_of: set[str] = set()
    hashes = (
        quad
        for page in sorted(pages)
        for quad in store.match(NamedNode(page), v.tg("textHash"), None, v.SOURCE_GRAPH)
    )
    tables: dict[str, Iterable[tuple[object, ...]]] = {
        "evidence": list(_rows_about(store, sorted(map(str, keys["evidence"])), texts, spoken_of)),
        "edge": list(_edge_rows(store, edges, texts, spoken_of)),
        "text": texts.numbered(),
        "entity": (row for row in StoredCounts(store).degrees(resources).items() if row[1]),
        "said": (row for each in resources for row in _sayings_of(store, each)),
        "chunk": _standing_lengths(
            StoredCounts(store).chunk_tokens(sorted(changed.chunks)), standing
        ),
        "document": documents,
        "page": _pages(hashes, librarian, {iri: kind for iri, _, _, kind, _ in documents}, before),
    }
    for name, rows in tables.items():
        connection.executemany(INSERT[name], rows)
    connection.commit()
    found = before.with_newer(connection)
    return found if found is not None else tabulate(store, librarian, before, scratch)


def _pages_of(store: Store, document: str) -> Iterator[str]:
    yield document
    yield from derived(store, document, "Page")


_UNASKED = frozenset(
    v.tg(kind).value
    for kind in ("Edge", "Claim", "Community", "CommunityReport", "Finding", "Summary")
)
"""Classes of what is looked up otherwise, and partly later than this is made."""

_NAMING = {v.RDFS_LABEL: "label", v.SKOS_ALT_LABEL: "alias"}

_DESCRIBE = """
UPDATE edge SET description = ifnull(min(description, ?1), ?1) WHERE iri = ?2 AND weight NOTNULL
"""


class _Numbering:
    """Numbers texts, so that one that many rows have is kept once; some are ``known``."""

    def __init__(self, known: dict[str, int]) -> None:
        self._numbers = known
        self._known = len(known)

    def number(self, text: str | None) -> int | None:
        return None if text is None else self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, triple: Triple) -> tuple[int, ...]:
        """Those of the terms, as N-Triples."""
        known = self._numbers
        return tuple(known.setdefault(text, len(known)) for text in map(str, triple))

    def numbered(self) -> Iterator[tuple[int, str]]:
        """The texts that were not known before."""
        new = islice(self._numbers.items(), self._known, None)
        yield from ((number, text) for text, number in new)


def _all_rows(
    store: Store, standing: Collection[str], texts: _Numbering, spoken_of: set[str | bytes]
) -> Iterator[tuple[object, ...]]:
    """Each row of evidence about what it was stated of, and about what that was merged into; it
    notes the edges that are ``spoken_of``."""
    others = _merged(store)
    rows = _EvidenceScan(store, standing, texts).rows()
    for place, (about, iri, *where, description) in enumerate(rows):
        if about.startswith(EDGE_PREFIX):
            spoken_of.add(packed_edge(about))
        for each in (about, *others.get(about, ())):
            yield each, iri, place, *where, description, each == about


_SLOTS = ("about", "chunk", "charOffset", "charLength", "quote", "strength", "is told")
_TOLD = len(_SLOTS) - 1


class _EvidenceScan:
    """Reads all evidence of standing documents. Each property is scanned once: a query that joins
    them takes seven times as much memory, and to look each up six times as long."""

    def __init__(self, store: Store, standing: Collection[str], texts: _Numbering) -> None:
        self._store = store
        self._standing = standing
        self._texts = texts
        self._found: dict[str | bytes, list[Any]] = {}

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows, without their places; one for each way to choose of several values."""
        self._take_subjects()
        self._take("chunk", v.prov("wasDerivedFrom"), self._chunk)
        self._found = {key: slots for key, slots in self._found.items() if slots[1] is not None}
        for name, read in (
            ("charOffset", number_of),
            ("charLength", number_of),
            ("quote", self._quote),
            ("strength", lambda term: float(text_of(term) or DEFAULT_STRENGTH)),
        ):
            self._take(name, v.tg(name), read)
        for key, term in self._scan(v.tg("description")):
            if slots := self._found.get(key):
                slots[_TOLD] = True
                yield from _rows_of(key, slots, text_of(term))
        for key, slots in self._found.items():
            if not slots[_TOLD]:
                yield from _rows_of(key, slots, "")

    def _scan(self, predicate: NamedNode) -> Iterator[tuple[str | bytes, Term]]:
        for quad in self._store.match(None, predicate, None, v.SOURCE_GRAPH):
            if isinstance(quad.subject, NamedNode):
                yield packed(quad.subject.value), quad.object

    def _take_subjects(self) -> None:
        names: dict[str, str | bytes] = {}
        for role in ("edge", "entity", "claim"):
            for key, term in self._scan(v.tg(role)):
                slots = self._found.setdefault(key, [None] * len(_SLOTS))
                about = text_of(term)
                packed = packed_edge(about) if role == "edge" else names.setdefault(about, about)
                _put(slots, 0, packed)

    def _take(self, name: str, predicate: NamedNode, read: Callable[[Term], object]) -> None:
        place = _SLOTS.index(name)
        for key, term in self._scan(predicate):
            slots = self._found.get(key)
            if slots is not None and (told := read(term)) is not None:
                _put(slots, place, told)

    def _chunk(self, term: Term) -> int | None:
        chunk = text_of(term)
        return self._texts.number(chunk) if document_of_chunk(chunk) in self._standing else None

    def _quote(self, term: Term) -> int | None:
        return self._texts.number(term.value if isinstance(term, Literal) else None)


def _put(slots: list[Any], place: int, value: object) -> None:
    known = slots[place]
    slots[place] = value if known is None else [*_values(known), value]


def _values(slot: object) -> list[Any]:
    return slot if isinstance(slot, list) else [slot]


def _rows_of(key: str | bytes, slots: Sequence[Any], description: str) -> Iterator[tuple[Any, ...]]:
    """What was read of a piece of evidence, about each that it is about; nothing of one that is in
    no standing document, or nowhere."""
    if None in slots[:4]:
        return
    for about, *where, strength in product(*map(_values, slots[:_TOLD])):
        told = DEFAULT_STRENGTH if strength is None else strength
        yield unpacked_edge(about), key, *where, told, description


_AT_ONCE = 2_000


def _rows_about(
    store: Store, keys: Sequence[str], texts: _Numbering, spoken_of: set[str]
) -> Iterator[tuple[object, ...]]:
    """As ``_all_rows``, of some keys."""
    originals = {key: sorted(_originals(store, key)) for key in keys}
    wanted = sorted({*keys, *(other for others in originals.values() for other in others)})
    found: defaultdict[str, list[EvidenceRow]] = defaultdict(list)
    for start in range(0, len(wanted), _AT_ONCE):
        nodes = [NamedNode(each) for each in wanted[start : start + _AT_ONCE]]
        for solution in select(store, "index/evidence-of", {"stated": nodes}):
            row = row_of(solution, "stated")
            found[row.about].append(row)
    every = {document_of_chunk(row.chunk) for rows in found.values() for row in rows}
    standing = StoredEvidence(store).documents(every)
    for key in keys:
        place = 0
        for stated in (key, *originals[key]):
            for row in found[stated]:
                if document_of_chunk(row.chunk) not in standing:
                    continue
                spoken_of.add(row.about)
                chunk, quote = texts.number(row.chunk), texts.number(row.quote)
                where = packed(row.iri), place, chunk, row.start, row.length, quote
                yield key, *where, row.strength, row.description, stated == key
                place += 1


def _originals(store: Store, key: str) -> set[str]:
    """The edges, or the names, that were merged into this one."""
    quads = store.match(NamedNode(key), v.tg("original"), None, None)
    return {text_of(quad.object) for quad in quads}.union(absorbed_by(store, key)) - {key}


def _edge_rows(
    store: Store,
    edges: Mapping[str, Triple | None],
    texts: _Numbering,
    spoken_of: Collection[str],
) -> Iterator[tuple[object, ...]]:
    """As ``_edges``, of some."""
    for edge, triple in edges.items():
        if triple is None:
            continue
        there = store.match(triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH)
        stated = is_statement(triple.predicate) and next(there, None) is not None
        reified = value(store, edge, v.RDF_REIFIES) is not None
        if stated or (reified and edge in spoken_of):
            weight, text = _attributes_of(store, edge)
            numbers = (texts.number(str(term)) for term in triple)
            yield packed_edge(edge), *numbers, reified, stated, weight, text


def _attributes_of(store: Store, edge: str) -> tuple[float | None, str | None]:
    """The weight of an edge and what describes it, as far as it is one of knowledge."""
    said: defaultdict[NamedNode, list[str]] = defaultdict(list)
    for quad in store.match(NamedNode(edge), None, None, v.KNOWLEDGE_GRAPH):
        said[quad.predicate].append(text_of(quad.object))
    weights = said[v.tg("weight")] if v.TG + "Edge" in said[v.RDF_TYPE] else []
    if not weights:
        return None, None
    return float(weights[-1] or 1.0), min(said[v.tg("description")], default="")


def _sayings_of(store: Store, iri: str) -> Iterator[tuple[str, str, str, bool]]:
    """As ``_sayings``, of one."""
    said = list(store.match(NamedNode(iri), None, None, v.KNOWLEDGE_GRAPH))
    kinds = {text_of(quad.object) for quad in said if quad.predicate == v.RDF_TYPE}
    if kinds & _UNASKED:
        return
    yield from ((iri, "type", kind, False) for kind in kinds)
    found: dict[tuple[str, str], bool] = {}
    for quad in said:
        kind = _NAMING.get(quad.predicate)
        if kind and isinstance(quad.object, Literal):
            key = kind, quad.object.value
            plain = quad.object == Literal(quad.object.value) and v.TG + "Entity" in kinds
            found[key] = plain or found.get(key, False)
    yield from ((iri, *key, askable) for key, askable in found.items())


def _standing_lengths(
    tokens: Mapping[str, int], standing: Collection[str]
) -> Iterator[tuple[str, int]]:
    return ((c, count) for c, count in tokens.items() if document_of_chunk(c) in standing)


def _edges(
    store: Store, texts: _Numbering, spoken_of: Collection[str | bytes], degree: Counter[str]
) -> Iterator[tuple[object, ...]]:
    """The triples of edges that standing documents speak of, and all statements of knowledge,
    which are counted; without what ``_weigh`` adds."""
    stated: dict[str | bytes, tuple[int, ...]] = {}
    incoming: Counter[str] = Counter()
    for predicate in _predicates(store):
        for quad in store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
            degree[text_of(quad.subject)] += 1
            if isinstance(quad.object, NamedNode):
                incoming[quad.object.value] += 1
            if isinstance(quad.subject, NamedNode):
                edge = packed_edge(v.edge_iri(*statement_of(quad.triple)))
                stated[edge] = texts.numbers(quad.triple)
    for entity in degree.keys() | incoming.keys():
        outgoing = min(degree[entity], MOST_COUNTED)
        degree[entity] = outgoing + min(incoming[entity], MOST_COUNTED)
    for quad in store.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
        edge = packed_edge(text_of(quad.subject))
        if isinstance(quad.object, Triple) and (edge in stated or edge in spoken_of):
            numbers = texts.numbers(quad.object)
            yield edge, *numbers, True, stated.pop(edge, None) is not None, None, None
    yield from ((edge, *numbers, False, True, None, None) for edge, numbers in stated.items())


def _predicates(store: Store) -> Iterator[NamedNode]:
    """Those of statements of the corpus."""
    for found in select(store, "index/predicates", union=False):
        predicate = found["predicate"]
        if isinstance(predicate, NamedNode) and is_statement(predicate):
            yield predicate


def _weigh(connection: sqlite3.Connection, store: Store) -> None:
    """Put the weights of edges, and what describes them, into their rows."""
    kinds = store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH)
    edges = {packed_edge(text_of(quad.subject)) for quad in kinds}

    def told(predicate: str) -> Iterator[tuple[str, str | bytes]]:
        for quad in store.match(None, v.tg(predicate), None, v.KNOWLEDGE_GRAPH):
            if (edge := packed_edge(text_of(quad.subject))) in edges:
                yield text_of(quad.object), edge

    weights = ((float(text or 1.0), edge) for text, edge in told("weight"))
    connection.executemany("UPDATE edge SET weight = ? WHERE iri = ?", weights)
    connection.executemany(_DESCRIBE, told("description"))
    connection.execute("UPDATE edge SET description = ifnull(description, '') WHERE weight NOTNULL")


def _sayings(store: Store) -> Iterator[tuple[str, str, str, bool]]:
    """Names and types of entities, relations and types, and whether they are entities with a name
    that can be asked for, which is one without a language; a name may come with and without."""
    kinds = partial(store.match, None, v.RDF_TYPE, graph=v.KNOWLEDGE_GRAPH)
    others = {packed_edge(text_of(q.subject)) for q in kinds(None) if text_of(q.object) in _UNASKED}
    entities = {text_of(quad.subject) for quad in kinds(v.tg("Entity"))}
    for quad in kinds(None):
        if packed_edge(iri := text_of(quad.subject)) not in others:
            yield iri, "type", text_of(quad.object), False
    for predicate, kind in _NAMING.items():
        for quad in store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
            name, iri = quad.object, text_of(quad.subject)
            if isinstance(name, Literal) and iri and packed_edge(iri) not in others:
                plain = name == Literal(name.value) and iri in entities
                yield iri, kind, name.value, plain


def _lengths(store: Store, standing: Collection[str]) -> Iterator[tuple[str, int]]:
    """The chunks of standing documents with their lengths in tokens."""
    rows = select(store, "index/chunk-tokens")
    tokens = {text_of(row["chunk"]): int(text_of(row["tokens"])) for row in rows}
    return _standing_lengths(tokens, standing)


def _documents(
    store: Store, standing: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, str, str, str, bool]]:
    for iri, (title, path) in standing.items():
        yield iri, title, path, text_value(store, iri, v.tg("mimeType")), is_note(store, iri)


def _pages(
    hashes: Iterable[Quad],
    librarian: Librarian,
    media_types: Mapping[str, str],
    known: LookupTable | None,
) -> Iterator[tuple[str, str, bytes | None]]:
    """The pages of standing documents with the hash of their text and how it reads; not how graphs
    do, of which no page is read as a whole, nor texts that are lost or erased."""
    from tgraph.ingest.page_reading import packed, read_page  # who looks up doesn't segment

    for quad in hashes:
        page, key = text_of(quad.subject), text_of(quad.object)
        media_type = media_types.get(parts_of_page(page)[0])
        if media_type is None:
            continue
        reading = None
        if known is not None and known.pages.text_hash(page) == key:
            reading = known.pages.reading(page)
        elif media_type not in GRAPH_TYPES:
            with suppress(StoreError):
                text = librarian.get_text(key)
                reading = packed(read_page(text, media_type), text)
        yield page, key, reading


def _merged(store: Store) -> Mapping[str, Collection[str]]:
    """For each edge or entity those that it was merged into."""
    found = canonical_names(store)
    for quad in store.match(None, v.tg("original"), None):
        found.setdefault(text_of(quad.object), []).append(text_of(quad.subject))
    return {iri: sorted({*others} - {iri}) for iri, others in found.items()}
