"""Questions to the source graph: which documents stand, what is derived from what, which text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import ErasedTextError, EvidenceError, StoreError
from tgraph.librarian import Librarian
from tgraph.model import Chunk, SegmentKind
from tgraph.rendering import one_line
from tgraph.store.base import Store, Subject, Term, select, text_of

if TYPE_CHECKING:
    from tgraph.ingest.page_reading import PageReading

_NEVER = datetime.min.replace(tzinfo=UTC)


def value(store: Store, subject: str, predicate: NamedNode) -> Term | None:
    """The first value of a property in the source graph, or None."""
    quads = store.match(NamedNode(subject), predicate, None, v.SOURCE_GRAPH)
    return next((quad.object for quad in quads), None)


def text_value(store: Store, subject: str, predicate: NamedNode) -> str:
    """A property's text (or the IRI it names); empty where there is none."""
    term = value(store, subject, predicate)
    return term.value if isinstance(term, Literal | NamedNode) else ""


def latest_accession(store: Store, path: str) -> tuple[str, str] | None:
    """The standing accession of a path and its document, or None."""
    for quad in store.match(None, v.tg("path"), Literal(path), v.SOURCE_GRAPH):
        assert isinstance(quad.subject, NamedNode)
        accession = quad.subject.value
        if value(store, accession, v.prov("invalidatedAtTime")) is None:
            return accession, document_of_accession(store, accession)
    return None


def document_of_accession(store: Store, accession: str) -> str:
    return text_value(store, accession, v.prov("specializationOf"))


def is_retracted(store: Store, document: str) -> bool:
    """Whether a decision took the document back after it was taken in for the last time."""
    decided = [
        _time(store, quad.subject, v.prov("startedAtTime"))
        for quad in store.match(None, v.prov("used"), NamedNode(document), v.SOURCE_GRAPH)
        if next(store.match(quad.subject, v.RDF_TYPE, v.tg("Curation"), v.SOURCE_GRAPH), None)
    ]
    if not decided:
        return False
    taken = [_time(store, a, v.prov("generatedAtTime")) for a in _accessions(store, document)]
    return max(decided) >= max(taken, default=_NEVER)


def standing_accessions(store: Store, document: str) -> list[str]:
    """The accessions of the document that stand, under whatever paths."""
    ended = v.prov("invalidatedAtTime")
    found = [a.value for a in _accessions(store, document) if isinstance(a, NamedNode)]
    return sorted(a for a in found if value(store, a, ended) is None)


def _accessions(store: Store, document: str) -> list[Subject]:
    quads = store.match(None, v.prov("specializationOf"), NamedNode(document), v.SOURCE_GRAPH)
    return [quad.subject for quad in quads]


def _time(store: Store, subject: Subject, predicate: NamedNode) -> datetime:
    for quad in store.match(subject, predicate, None, v.SOURCE_GRAPH):
        assert isinstance(quad.object, Literal)
        return datetime.fromisoformat(quad.object.value)
    return _NEVER


def standing_documents(store: Store) -> set[str]:
    """The documents that some standing accession is of."""
    accessions = {
        quad.subject: quad.object
        for quad in store.match(None, v.prov("specializationOf"), None, v.SOURCE_GRAPH)
    }
    for quad in store.match(None, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH):
        accessions.pop(quad.subject, None)
    return {document.value for document in accessions.values() if isinstance(document, NamedNode)}


def is_note(store: Store, document: str) -> bool:
    """Whether the document is what a person stated by hand."""
    types = store.match(NamedNode(document), v.RDF_TYPE, v.tg("CurationNote"), v.SOURCE_GRAPH)
    return next(types, None) is not None


def lexical_documents(store: Store) -> set[str]:
    """The large graphs that are found by names and words alone: what they state has no vectors."""
    quads = store.match(None, v.tg("lexical"), None, v.SOURCE_GRAPH)
    return {quad.subject.value for quad in quads if isinstance(quad.subject, NamedNode)}


def document_of_chunk(chunk: str) -> str:
    """The document's IRI, which the chunk's IRI contains."""
    return v.document_iri(chunk.removeprefix(f"{v.URN}chunk:").partition(":")[0])


def page_of_chunk(chunk: str) -> int | None:
    """The number of the page that the chunk is of; None where the document has no pages."""
    parts = chunk.removeprefix(f"{v.URN}chunk:").split(":")
    return int(parts[1]) if len(parts) == 3 else None


def parts_of_page(page: str) -> tuple[str, int | None]:
    """The document and number of a page; a document's own text has no number."""
    digest, _, number = page.removeprefix(f"{v.URN}page:").partition(":")
    return (
        (v.document_iri(digest), int(number)) if page.startswith(f"{v.URN}page:") else (page, None)
    )


def range_of_chunk(chunk: str) -> tuple[int, int]:
    """Start and end of the chunk in its page's text."""
    start, _, end = chunk.rpartition(":")[2].partition("-")
    return int(start), int(end)


def derived(store: Store, parent: str, kind: str) -> Iterator[str]:
    """What of the class ``tg:KIND`` is derived directly from the parent."""
    quads = store.match(None, v.prov("wasDerivedFrom"), NamedNode(parent), v.SOURCE_GRAPH)
    for quad in quads:
        assert isinstance(quad.subject, NamedNode)
        types = store.match(quad.subject, v.RDF_TYPE, v.tg(kind), v.SOURCE_GRAPH)
        if next(types, None) is not None:
            yield quad.subject.value


def chunks_of_document(store: Store, document: str) -> Iterator[str]:
    yield from derived(store, document, "Chunk")
    for page in derived(store, document, "Page"):
        yield from derived(store, page, "Chunk")


def standing_chunks(store: Store) -> Iterator[tuple[str, str]]:
    """(document, chunk), in the order of their IRIs."""
    standing = standing_documents(store)
    chunks = store.match(None, v.RDF_TYPE, v.tg("Chunk"), v.SOURCE_GRAPH)
    known = (q.subject.value for q in chunks if isinstance(q.subject, NamedNode))
    placed = ((document_of_chunk(chunk), chunk) for chunk in known)
    yield from sorted(pair for pair in placed if pair[0] in standing)


def titles_and_headings(store: Store) -> dict[str, str]:
    """What documents are called and chunks stand under, the path of their headings."""
    rows = select(store, "retrieve/headings")
    return {text_of(row["subject"]): text_of(row["text"]) for row in reversed(rows)}


def document_titles(store: Store, documents: Iterable[str]) -> dict[str, str]:
    """The title of each document that has one."""
    known = titles_and_headings(store)
    return {document: known[document] for document in documents if known.get(document)}


def section_headings(store: Store) -> set[str]:
    """The headings that standing chunks stand under."""
    known = titles_and_headings(store)
    paths = (known.get(chunk, "") for _, chunk in standing_chunks(store))
    return {heading for path in paths for heading in path.split(" > ") if heading}


def evidence_of_document(store: Store, document: str) -> Iterator[str]:
    for chunk in chunks_of_document(store, document):
        yield from derived(store, chunk, "Evidence")


_MARK = re.compile(r"\[erased [0-9a-f]{16}\]")


def is_mark(text: str) -> bool:
    """Whether an erasure left this in the place of a text."""
    return _MARK.fullmatch(text) is not None


_BUNDLE = v.bundle_iri("")
_MOST_KEPT = 100_000_000
"""Characters of texts that are kept at the same time."""
_MOST_READINGS = 500
_REMEDY = "Run `tgraph audit integrity`, and put the graph back from a backup."


class KeptPages(Protocol):
    """What lies ready of documents and pages that stand, beside their texts."""

    def about_document(self, document: str) -> tuple[str, bool] | None:
        """Its media type, and whether it is what a person stated by hand; None for an unknown."""

    def text_hash(self, page: str) -> str:
        """The hash of the page's text; empty for an unknown one."""

    def reading(self, page: str) -> bytes | None:
        """How the page reads, packed."""


class Texts:
    """The stored texts of pages and documents, each read once, and checked against its hash.

    Whatever is quoted is taken from here, by its offsets."""

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

    def over(self, store: Store) -> Texts:
        """The texts as another store names them."""
        return Texts(store, self._librarian)

    def of_page(self, document: str, page: int | None) -> str:
        """The stored text. ``EvidenceError`` where it is lost or is not what was stored,
        ``ErasedTextError`` where it was erased."""
        subject = v.page_of(document, page)
        text = self._texts.get(subject)
        if text is None:
            text = self._read(document, page)
            self._size += len(text)
            if self._size > _MOST_KEPT:
                self._texts, self._size = {}, len(text)
            self._texts[subject] = text
        return text

    def _read(self, document: str, page: int | None) -> str:
        subject, kept = v.page_of(document, page), self._kept()
        key = kept.text_hash(subject) if kept else ""
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
        """The characters of the chunk's page from ``start`` to ``end``, which are what was
        ``recorded``; where no quote was, the place is the chunk.

        ``EvidenceError`` where they are not, or stand outside of the chunk, and as ``check``.
        """
        document = document_of_chunk(chunk)
        try:
            page, (low, high) = page_of_chunk(chunk), range_of_chunk(chunk)
        except ValueError as error:
            message = f"{chunk} is no chunk of {self.place(document)}."
            raise EvidenceError(message, _REMEDY) from error
        within = low <= start and end <= high
        whole = (start, end) == (low, high)
        found = self.check(document, page, start, end, recorded)
        if not (whole if recorded is None else within):
            raise self._differs(document, page, start, end)
        return found

    def check(
        self, document: str, page: int | None, start: int, end: int, recorded: str | None
    ) -> str:
        """As ``quote``, of a page. ``ErasedTextError`` where a mark stands in place of it."""
        text = self.of_page(document, page)
        if is_mark(text) or (recorded is not None and is_mark(recorded)):
            raise ErasedTextError(f"What stood in {self.place(document, page)} was erased.")
        found = text[start:end] if 0 <= start < end <= len(text) else ""
        if not found or (recorded is not None and found != recorded):
            raise self._differs(document, page, start, end)
        return found

    def _differs(self, document: str, page: int | None, start: int, end: int) -> EvidenceError:
        where = self.place(document, page, start, end)
        message = f"What is on record of {where}, is not what stands there."
        return EvidenceError(message, _REMEDY)

    def place(self, document: str, page: int | None = None, start: int = -1, end: int = -1) -> str:
        """A place in words: the document's title, its page, the characters."""
        title = text_value(self._store, document, v.dcterms("title"))
        named = f"“{one_line(title)}”" if title else document
        where = f", page {page}" if page is not None else ""
        return f"{named}{where}" + (f", characters {start}–{end}" if start >= 0 else "")

    def media_type(self, document: str) -> str:
        """That of the file that the document was read from."""
        return self._about(document)[0]

    def is_note(self, document: str) -> bool:
        """Whether the document is what a person stated by hand."""
        return self._about(document)[1]

    def _about(self, document: str) -> tuple[str, bool]:
        if document not in self._documents:
            kept = self._kept()
            known = kept.about_document(document) if kept else None
            media_type = v.tg("mimeType")
            self._documents[document] = known or (
                text_value(self._store, document, media_type),
                is_note(self._store, document),
            )
        return self._documents[document]

    def reading(self, document: str, page: int | None) -> PageReading:
        """How the page reads. ``EvidenceError`` and ``ErasedTextError`` as of ``of_page``."""
        from tgraph.ingest.page_reading import read_page, unpacked

        subject = v.page_of(document, page)
        found = self._readings.get(subject)
        if found is None:
            text, kept = self.of_page(document, page), self._kept()
            data = kept.reading(subject) if kept else None
            found = unpacked(data, text) if data else read_page(text, self.media_type(document))
            if len(self._readings) >= _MOST_READINGS:
                self._readings = {}
            self._readings[subject] = found
        return found

    def segment_kind(self, chunk: str, start: int, end: int) -> SegmentKind | None:
        """As ``kind_at``, of the page that the chunk is of; None also where its text is lost or
        erased."""
        from tgraph.ingest.page_reading import kind_at

        try:
            page = self.reading(document_of_chunk(chunk), page_of_chunk(chunk))
        except StoreError:
            return None
        return kind_at(page.segments, start, end)

    def of_chunk(self, chunk: str) -> str:
        start, end = range_of_chunk(chunk)
        return self.of_page(document_of_chunk(chunk), page_of_chunk(chunk))[start:end]


def was_erased(store: Store, key: str) -> bool:
    """Whether an erasure on record removed the text of the hash."""
    graphs = (q.graph_name for q in store.match(None, v.tg("removedText"), Literal(key), None))
    return any(isinstance(g, NamedNode) and g.value.startswith(_BUNDLE) for g in graphs)


def stored_chunk(store: Store, texts: Texts, chunk: str) -> Chunk:
    """The chunk as it was made, read back."""
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
