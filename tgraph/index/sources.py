"""Source graph queries: standing documents, derivations and texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import ErasedTextError, EvidenceError, StoreError
from tgraph.librarian import Librarian
from tgraph.model import Chunk, SegmentKind, kind_at
from tgraph.rendering import one_line
from tgraph.store.base import Store, Subject, Term, match_record, select_rows, text_of

if TYPE_CHECKING:
    from tgraph.ingest.page_reading import PageReading

RETRACTION = "Retraction"
"""The label of decisions that retract a document at a path."""
PRUNING = "Pruning"
"""The label of decisions that retract documents because the files are gone."""
_NEVER = datetime.min.replace(tzinfo=UTC)
_DOCUMENT = v.document_iri("")


def source_value(store: Store, subject: str, predicate: NamedNode) -> Term | None:
    """Return a source graph property's first value, or None."""
    quads = store.match(NamedNode(subject), predicate, None, v.SOURCE_GRAPH)
    return next((quad.object for quad in quads), None)


def read_document_dates(store: Store, document: str) -> Iterator[str]:
    """Yield the document's own dates as texts: as understood first, then as the metadata have
    them."""
    for predicate in v.tg("calendarDate"), v.dcterms("date"):
        for quad in store.match(NamedNode(document), predicate, None, v.SOURCE_GRAPH):
            if isinstance(quad.object, Literal):
                yield quad.object.value


def text_value(store: Store, subject: str, predicate: NamedNode) -> str:
    """Return a property's text (or the referenced IRI); empty if missing."""
    term = source_value(store, subject, predicate)
    return term.value if isinstance(term, Literal | NamedNode) else ""


def has_bytes(store: Store, document: str, sha256: str) -> bool:
    """Return whether a document (an IRI) was read from the bytes with a hash."""
    return text_value(store, document, v.tg("contentHash")) == sha256


def documents_of_bytes(store: Store, sha256: str) -> list[str]:
    """Return the documents that were read from the bytes with a hash, in order of IRIs: the first
    reading, and any reading of a later version of tgraph."""
    quads = store.match(None, v.tg("contentHash"), Literal(sha256), v.SOURCE_GRAPH)
    documents = (q.subject.value for q in quads if isinstance(q.subject, NamedNode))
    return sorted(document for document in documents if document.startswith(_DOCUMENT))


def readings_of(store: Store, document: str) -> list[str]:
    """Return all documents that were read from the bytes of a document, itself among them."""
    sha256 = text_value(store, document, v.tg("contentHash"))
    return documents_of_bytes(store, sha256) or [document]


def read_layout(store: Store, librarian: Librarian, page: str) -> str:
    """Return the packed layout of a page (an IRI); empty if the page has none, or lost it."""
    key = text_value(store, page, v.tg("layoutHash"))
    with suppress(StoreError):
        return librarian.get_text(key) if key else ""
    return ""


def latest_accession(store: Store, path: str) -> tuple[str, str] | None:
    """Return a path's standing accession and document, or None."""
    for quad in store.match(None, v.tg("path"), Literal(path), v.SOURCE_GRAPH):
        assert isinstance(quad.subject, NamedNode)
        accession = quad.subject.value
        if source_value(store, accession, v.prov("invalidatedAtTime")) is None:
            return accession, document_of_accession(store, accession)
    return None


def document_of_accession(store: Store, accession: str) -> str:
    return text_value(store, accession, v.prov("specializationOf"))


def is_retracted(store: Store, document: str) -> bool:
    """Return whether a curation decision retracted the document after its latest accession."""
    decided = [
        _read_time(store, quad.subject, v.prov("startedAtTime"))
        for quad in store.match(None, v.prov("used"), NamedNode(document), v.SOURCE_GRAPH)
        if next(store.match(quad.subject, v.RDF_TYPE, v.tg("Curation"), v.SOURCE_GRAPH), None)
    ]
    if not decided:
        return False
    accession_times = [
        _read_time(store, a, v.prov("generatedAtTime"))
        for a in _document_accessions(store, document)
    ]
    return max(decided) >= max(accession_times, default=_NEVER)


def standing_accessions(store: Store, document: str) -> dict[str, str]:
    """Return standing accessions of the document with the path of each, in path order."""
    ended = v.prov("invalidatedAtTime")
    paths = {
        a.value: text_value(store, a.value, v.tg("path"))
        for a in _document_accessions(store, document)
        if isinstance(a, NamedNode) and source_value(store, a.value, ended) is None
    }
    return dict(sorted(paths.items(), key=lambda item: (item[1], item[0])))


def list_standing_paths(store: Store, document: str) -> list[str]:
    """Return the paths at which a document stands in any of its readings, in order."""
    readings = readings_of(store, document)
    return sorted(p for reading in readings for p in standing_accessions(store, reading).values())


def last_accession(store: Store, path: str) -> str | None:
    """Return a path's newest accession, standing or ended; None for an unknown path."""
    quads = store.match(None, v.tg("path"), Literal(path), v.SOURCE_GRAPH)
    accessions = {q.subject.value for q in quads if isinstance(q.subject, NamedNode)}
    revised = {text_value(store, a, v.prov("wasRevisionOf")) for a in accessions}
    return max(
        accessions - revised,
        key=lambda a: (_read_time(store, NamedNode(a), v.prov("generatedAtTime")), a),
        default=None,
    )


def was_accession_retracted(store: Store, accession: str) -> bool:
    """Return whether a retraction, by decision rather than because a file is gone, ended the
    accession."""
    ended_by = text_value(store, accession, v.prov("wasInvalidatedBy"))
    return bool(ended_by) and text_value(store, ended_by, v.RDFS_LABEL) == RETRACTION


def _document_accessions(store: Store, document: str) -> list[Subject]:
    quads = store.match(None, v.prov("specializationOf"), NamedNode(document), v.SOURCE_GRAPH)
    return [quad.subject for quad in quads]


def _read_time(store: Store, subject: Subject, predicate: NamedNode) -> datetime:
    for quad in store.match(subject, predicate, None, v.SOURCE_GRAPH):
        assert isinstance(quad.object, Literal)
        return datetime.fromisoformat(quad.object.value)
    return _NEVER


def standing_documents(store: Store) -> set[str]:
    """Return documents with a standing accession."""
    accessions = {
        quad.subject: quad.object
        for quad in store.match(None, v.prov("specializationOf"), None, v.SOURCE_GRAPH)
    }
    for quad in store.match(None, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH):
        accessions.pop(quad.subject, None)
    return {document.value for document in accessions.values() if isinstance(document, NamedNode)}


def is_note(store: Store, document: str) -> bool:
    """Return whether a person stated the document by hand."""
    types = store.match(NamedNode(document), v.RDF_TYPE, v.tg("CurationNote"), v.SOURCE_GRAPH)
    return next(types, None) is not None


def lexical_documents(store: Store) -> set[str]:
    """Return large graphs searched by names and words only: statements of these graphs have no
    vectors."""
    quads = store.match(None, v.tg("lexical"), None, v.SOURCE_GRAPH)
    return {quad.subject.value for quad in quads if isinstance(quad.subject, NamedNode)}


def document_of_chunk(chunk: str) -> str:
    """The document's IRI, which the chunk's IRI contains."""
    return v.document_iri(chunk.removeprefix(f"{v.URN}chunk:").partition(":")[0])


def page_of_chunk(chunk: str) -> int | None:
    """Return the chunk's page number; None for documents without pages."""
    parts = chunk.removeprefix(f"{v.URN}chunk:").split(":")
    return int(parts[1]) if len(parts) == 3 else None


def parts_of_page(page: str) -> tuple[str, int | None]:
    """Return document and number of a page; the number is None for a document's own text."""
    digest, _, number = page.removeprefix(f"{v.URN}page:").partition(":")
    return (
        (v.document_iri(digest), int(number)) if page.startswith(f"{v.URN}page:") else (page, None)
    )


def range_of_chunk(chunk: str) -> tuple[int, int]:
    """Return start and end offsets of the chunk in the page text."""
    start, _, end = chunk.rpartition(":")[2].partition("-")
    return int(start), int(end)


def derived_items(store: Store, parent: str, kind: str) -> Iterator[str]:
    """Yield items of class ``tg:KIND`` derived directly from the parent."""
    quads = store.match(None, v.prov("wasDerivedFrom"), NamedNode(parent), v.SOURCE_GRAPH)
    for quad in quads:
        assert isinstance(quad.subject, NamedNode)
        types = store.match(quad.subject, v.RDF_TYPE, v.tg(kind), v.SOURCE_GRAPH)
        if next(types, None) is not None:
            yield quad.subject.value


def chunks_of_document(store: Store, document: str) -> Iterator[str]:
    yield from derived_items(store, document, "Chunk")
    for page in derived_items(store, document, "Page"):
        yield from derived_items(store, page, "Chunk")


def standing_chunks(store: Store) -> Iterator[tuple[str, str]]:
    """Yield (document, chunk) pairs of standing documents, sorted by IRI."""
    standing = standing_documents(store)
    chunks = store.match(None, v.RDF_TYPE, v.tg("Chunk"), v.SOURCE_GRAPH)
    chunk_iris = (q.subject.value for q in chunks if isinstance(q.subject, NamedNode))
    placed = ((document_of_chunk(chunk), chunk) for chunk in chunk_iris)
    yield from sorted(pair for pair in placed if pair[0] in standing)


def titles_and_headings(store: Store) -> dict[str, str]:
    """Return document titles and chunk heading paths by IRI."""
    rows = select_rows(store, "retrieve/headings")
    return {text_of(row["subject"]): text_of(row["text"]) for row in reversed(rows)}


def document_titles(store: Store, documents: Iterable[str]) -> dict[str, str]:
    """Return titles by document, leaving out untitled documents."""
    titles = titles_and_headings(store)
    return {document: titles[document] for document in documents if titles.get(document)}


def section_headings(store: Store) -> set[str]:
    """The headings that standing chunks stand under."""
    headings = titles_and_headings(store)
    paths = (headings.get(chunk, "") for _, chunk in standing_chunks(store))
    return {heading for path in paths for heading in path.split(" > ") if heading}


def evidence_of_document(store: Store, document: str) -> Iterator[str]:
    for chunk in chunks_of_document(store, document):
        yield from derived_items(store, chunk, "Evidence")


_MARK = re.compile(r"\[erased [0-9a-f]{16}\]")


def is_mark(text: str) -> bool:
    """Return whether the text is an erasure mark left in place of erased text."""
    return _MARK.fullmatch(text) is not None


_BUNDLE = v.bundle_iri("")
_MOST_KEPT = 100_000_000
"""Characters of texts that are kept at the same time."""
_MOST_READINGS = 500
_REMEDY = "Run `tgraph audit integrity`, and put the graph back from a backup."


class KeptPages(Protocol):
    """Prepared data of standing documents and pages, stored beside the texts."""

    def about_document(self, document: str) -> tuple[str, bool] | None:
        """Return the document's media type, and whether a person wrote the document as a note;
        None if unknown."""

    def text_hash(self, page: str) -> str:
        """Return the page's text hash; empty for unknown pages."""

    def reading(self, page: str) -> bytes | None:
        """How the page reads, packed."""


class Texts:
    """Stored texts of pages and documents, each read once and verified by hash.

    All quotes are taken from these texts, by offsets."""

    def __init__(
        self,
        store: Store,
        librarian: Librarian,
        kept: Callable[[], KeptPages | None] = lambda: None,
    ) -> None:
        self._store = store
        self._librarian = librarian
        self._kept = kept
        self._texts: dict[str, str] = {}
        self._readings: dict[str, PageReading] = {}
        self._documents: dict[str, tuple[str, bool]] = {}
        self._size = 0

    @property
    def librarian(self) -> Librarian:
        return self._librarian

    def with_store(self, store: Store) -> Texts:
        """Return the texts as named in another store."""
        return Texts(store, self._librarian)

    def of_page(self, document: str, page: int | None) -> str:
        """Return the stored text of a page.

        Raises ``EvidenceError`` if the text is lost or altered, and ``ErasedTextError`` if the
        text was erased."""
        subject = v.page_of(document, page)
        text = self._texts.get(subject)
        if text is None:
            text = self._read_text(document, page)
            self._size += len(text)
            if self._size > _MOST_KEPT:
                self._texts, self._size = {}, len(text)
            self._texts[subject] = text
        return text

    def _read_text(self, document: str, page: int | None) -> str:
        subject, page_cache = v.page_of(document, page), self._kept()
        key = page_cache.text_hash(subject) if page_cache else ""
        key = key or text_value(self._store, subject, v.tg("textHash"))
        try:
            return self._librarian.get_text(key)
        except StoreError as error:
            where = self.place(document, page)
            if was_erased(self._store, key):
                raise ErasedTextError(f"The text of {where} was erased.") from error
            message = f"The stored text of {where} can't be quoted: {error.message}"
            raise EvidenceError(message, _REMEDY) from error

    def quote(self, chunk: str, start: int, end: int, recorded: str | None) -> str:
        """Return the page text from ``start`` to ``end``, verified against the ``recorded``
        quote.

        If no quote was recorded, the place must be the whole chunk. Raises ``EvidenceError`` if
        the text differs or lies outside the chunk; further errors as in ``check``."""
        document = document_of_chunk(chunk)
        try:
            page, (low, high) = page_of_chunk(chunk), range_of_chunk(chunk)
        except ValueError as error:
            message = f"{chunk} is no chunk of {self.place(document)}."
            raise EvidenceError(message, _REMEDY) from error
        in_chunk = low <= start and end <= high
        covers_chunk = (start, end) == (low, high)
        quoted_text = self.check(document, page, start, end, recorded)
        if not (covers_chunk if recorded is None else in_chunk):
            raise self._mismatch_error(document, page, start, end)
        return quoted_text

    def check(
        self, document: str, page: int | None, start: int, end: int, recorded: str | None
    ) -> str:
        """Return verified page text, as in ``quote``; raise ``ErasedTextError`` if an erasure
        mark replaces the text."""
        text = self.of_page(document, page)
        if is_mark(text) or (recorded is not None and is_mark(recorded)):
            raise ErasedTextError(f"What stood in {self.place(document, page)} was erased.")
        quoted_text = text[start:end] if 0 <= start < end <= len(text) else ""
        if not quoted_text or (recorded is not None and quoted_text != recorded):
            raise self._mismatch_error(document, page, start, end)
        return quoted_text

    def _mismatch_error(
        self, document: str, page: int | None, start: int, end: int
    ) -> EvidenceError:
        where = self.place(document, page, start, end)
        message = f"What is on record of {where}, is not what stands there."
        return EvidenceError(message, _REMEDY)

    def place(self, document: str, page: int | None = None, start: int = -1, end: int = -1) -> str:
        """A place in words: the document's title, its page, the characters."""
        title = text_value(self._store, document, v.dcterms("title"))
        label = f"“{one_line(title)}”" if title else document
        where = f", page {page}" if page is not None else ""
        return f"{label}{where}" + (f", characters {start}–{end}" if start >= 0 else "")

    def media_type(self, document: str) -> str:
        """Return the media type of the document's file."""
        return self._document_facts(document)[0]

    def is_graph(self, chunk: str) -> bool:
        """Check whether a chunk comes from a graph document rather than text."""
        return self.media_type(document_of_chunk(chunk)) in v.GRAPH_MEDIA_TYPES

    def is_note(self, document: str) -> bool:
        """Return whether a person stated the document by hand."""
        return self._document_facts(document)[1]

    def _document_facts(self, document: str) -> tuple[str, bool]:
        if document not in self._documents:
            page_cache = self._kept()
            facts = page_cache.about_document(document) if page_cache else None
            media_type = v.tg("mimeType")
            self._documents[document] = facts or (
                text_value(self._store, document, media_type),
                is_note(self._store, document),
            )
        return self._documents[document]

    def reading(self, document: str, page: int | None) -> PageReading:
        """Return the parsed reading of a page.

        Raises ``EvidenceError`` and ``ErasedTextError`` as in ``of_page``."""
        from tgraph.ingest.page_reading import read_page, unpack_reading

        subject = v.page_of(document, page)
        page_reading = self._readings.get(subject)
        if page_reading is None:
            text, page_cache = self.of_page(document, page), self._kept()
            data = page_cache.reading(subject) if page_cache else None
            page_reading = (
                unpack_reading(data, text)
                if data
                else read_page(text, self.media_type(document), self.layout(document, page))
            )
            if len(self._readings) >= _MOST_READINGS:
                self._readings = {}
            self._readings[subject] = page_reading
        return page_reading

    def layout(self, document: str, page: int | None) -> str:
        """Return the packed layout of a page; empty if the page has none."""
        return read_layout(self._store, self._librarian, v.page_of(document, page))

    def segment_kind(self, chunk: str, start: int, end: int) -> SegmentKind | None:
        """Return the segment kind at a chunk position, as in ``kind_at``; None if the page text
        is lost or erased."""
        try:
            page = self.reading(document_of_chunk(chunk), page_of_chunk(chunk))
        except StoreError:
            return None
        return kind_at(page.segments, start, end)

    def of_chunk(self, chunk: str) -> str:
        start, end = range_of_chunk(chunk)
        return self.of_page(document_of_chunk(chunk), page_of_chunk(chunk))[start:end]


def was_erased(store: Store, key: str) -> bool:
    """Return whether a recorded erasure removed the text with the given hash."""
    return any(match_record(store, None, v.tg("removedText"), Literal(key)))


def stored_chunk(store: Store, texts: Texts, chunk: str) -> Chunk:
    """Return the chunk as originally made, read from the store."""
    heading = text_value(store, chunk, v.tg("heading"))
    start, end = range_of_chunk(chunk)
    return Chunk(
        sha256=document_of_chunk(chunk).removeprefix(v.document_iri("")),
        page=page_of_chunk(chunk),
        index=int(text_value(store, chunk, v.tg("chunkIndex"))),
        start=start,
        end=end,
        text=texts.of_chunk(chunk),
        tokens=int(text_value(store, chunk, v.tg("tokenCount"))),
        headings=tuple(heading.split(" > ")) if heading else (),
    )
