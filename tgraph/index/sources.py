"""Questions to the source graph: which documents stand, what is derived from what, which text."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.librarian import Librarian
from tgraph.model import Evidence
from tgraph.store.base import Store, Term


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


def accessions_of(store: Store, document: str) -> list[str]:
    """The accessions of a document that stand, sorted by path."""
    quads = store.match(None, v.prov("specializationOf"), NamedNode(document), v.SOURCE_GRAPH)
    found = [quad.subject.value for quad in quads if isinstance(quad.subject, NamedNode)]
    standing = [a for a in found if value(store, a, v.prov("invalidatedAtTime")) is None]
    return sorted(standing, key=lambda accession: text_value(store, accession, v.tg("path")))


def standing_documents(store: Store) -> set[str]:
    """The documents that some standing accession is of."""
    accessions = {
        quad.subject: quad.object
        for quad in store.match(None, v.prov("specializationOf"), None, v.SOURCE_GRAPH)
    }
    for quad in store.match(None, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH):
        accessions.pop(quad.subject, None)
    return {document.value for document in accessions.values() if isinstance(document, NamedNode)}


def document_of_chunk(chunk: str) -> str:
    """The document's IRI, which the chunk's IRI contains."""
    return v.document_iri(chunk.removeprefix(f"{v.URN}chunk:").partition(":")[0])


def page_of_chunk(chunk: str) -> int | None:
    """The number of the page that the chunk is of; None where the document has no pages."""
    parts = chunk.removeprefix(f"{v.URN}chunk:").split(":")
    return int(parts[1]) if len(parts) == 3 else None


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


def evidence_of_document(store: Store, document: str) -> Iterator[str]:
    for chunk in chunks_of_document(store, document):
        yield from derived(store, chunk, "Evidence")


class Texts:
    """The stored texts of pages and documents, each read once."""

    def __init__(self, store: Store, librarian: Librarian) -> None:
        self._store = store
        self._librarian = librarian
        self._texts: dict[str, str] = {}

    def of_page(self, document: str, page: int | None) -> str:
        """The stored text. ``StoreError`` where the librarian has lost it."""
        subject = v.page_of(document, page)
        if subject not in self._texts:
            key = text_value(self._store, subject, v.tg("textHash"))
            self._texts[subject] = self._librarian.get_text(key)
        return self._texts[subject]

    def of_chunk(self, chunk: str) -> str:
        start, end = range_of_chunk(chunk)
        return self.of_page(document_of_chunk(chunk), page_of_chunk(chunk))[start:end]


class EvidenceReader:
    """Reads evidence whole, with the title and path of the document; only what stands."""

    def __init__(self, store: Store, texts: Texts) -> None:
        self._store = store
        self._texts = texts
        self._documents: dict[str, tuple[str, str] | None] = {}

    def of_edge(self, edge: str) -> list[Evidence]:
        """The standing evidence of an edge and of the edges merged into it, strongest first."""
        edges = [NamedNode(edge), *self._merged_into(edge)]
        found = [
            evidence
            for node in edges
            for quad in self._store.match(None, v.tg("edge"), node, v.SOURCE_GRAPH)
            if isinstance(quad.subject, NamedNode)
            and (evidence := self.read(quad.subject.value, edge)) is not None
        ]
        found.sort(key=lambda e: (-e.strength, e.document, e.page or 0, e.start, e.iri))
        return list({(e.document, e.page, e.start, e.end): e for e in reversed(found)}.values())[
            ::-1
        ]

    def _merged_into(self, edge: str) -> Iterator[NamedNode]:
        """The edges merged into this one; one that is known by itself has been separated since."""
        merged = self._store.match(NamedNode(edge), v.tg("mergedFrom"), None, v.SOURCE_GRAPH)
        for quad in merged:
            assert isinstance(quad.object, NamedNode)
            known = self._store.match(quad.object, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH)
            if next(known, None) is None:
                yield quad.object

    def read(self, subject: str, edge: str) -> Evidence | None:
        """One evidence, or None where its document does not stand any more."""
        properties = {
            quad.predicate: quad.object
            for quad in self._store.match(NamedNode(subject), None, None, v.SOURCE_GRAPH)
        }
        chunk = properties.get(v.prov("wasDerivedFrom"))
        if not isinstance(chunk, NamedNode):
            return None
        document = document_of_chunk(chunk.value)
        named = self._document(document)
        if named is None:
            return None
        start = _integer(properties[v.tg("charOffset")])
        end = start + _integer(properties[v.tg("charLength")])
        page = page_of_chunk(chunk.value)
        quote = properties.get(v.tg("quote"))
        strength = properties.get(v.tg("strength"))
        return Evidence(
            iri=subject,
            edge=edge,
            chunk=chunk.value,
            document=document,
            title=named[0],
            path=named[1],
            page=page,
            start=start,
            end=end,
            quote=quote.value
            if isinstance(quote, Literal)
            else self._texts.of_page(document, page)[start:end],
            strength=float(strength.value) if isinstance(strength, Literal) else 5.0,
        )

    def _document(self, document: str) -> tuple[str, str] | None:
        """Title and path of a document that stands, None of one that doesn't."""
        if document not in self._documents:
            standing = accessions_of(self._store, document)
            title = text_value(self._store, document, v.dcterms("title"))
            path = text_value(self._store, standing[0], v.tg("path")) if standing else ""
            self._documents[document] = (title, path) if standing else None
        return self._documents[document]


def _integer(term: object) -> int:
    assert isinstance(term, Literal)
    return int(term.value)
