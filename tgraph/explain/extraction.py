"""What was extracted from a document, and where: document, pages, chunks, edges with quotes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.explain.documents import DocumentSummary, find_document
from tgraph.explain.recalled import Recalled
from tgraph.index.sources import Texts, derived, range_of_chunk, text_value
from tgraph.librarian import Librarian
from tgraph.model import Edge
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class ExtractedEdge:
    """A statement that a chunk makes; ``quote`` is ``text[start:end]`` of the page."""

    edge: str
    subject: str
    subject_label: str
    predicate: str
    predicate_label: str
    object: str
    object_label: str
    evidence: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class SourceClaim:
    """A claim that a chunk makes; ``quote`` is ``text[start:end]`` of the page.

    ``subject`` and ``object`` are the entities that the text names, before any merge; ``object`` is
    empty where the claim is about nobody else.
    """

    claim: str
    subject: str
    object: str
    type: str
    status: str
    description: str
    evidence: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class SourceChunk:
    """A chunk with what was found in it."""

    chunk: str
    label: str
    start: int
    end: int
    tokens: int
    heading: str
    text: str
    entities: tuple[str, ...]
    edges: tuple[ExtractedEdge, ...]
    claims: tuple[SourceClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A page; ``number`` is None for the one text of a document without pages."""

    page: str
    number: int | None
    characters: int
    chunks: tuple[SourceChunk, ...]


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A document with everything that was extracted from it."""

    document: DocumentSummary
    characters: int
    pages: tuple[SourcePage, ...]


def read_source(store: Store, librarian: Librarian, name: str) -> SourceTree:
    """The tree of the document that the name means; raises as ``find_document`` does."""
    document = find_document(store, name)
    texts, names = Texts(store, librarian), Recalled(store)
    pages = [
        SourcePage(
            page=page,
            number=number,
            characters=_number(store, page, "charLength"),
            chunks=tuple(
                _chunk(store, texts, names, document.document, number, chunk)
                for chunk in sorted(derived(store, page, "Chunk"), key=range_of_chunk)
            ),
        )
        for number, page in _pages(store, document.document)
    ]
    length = _number(store, document.document, "charLength")
    return SourceTree(document, length, tuple(pages))


def source_text(store: Store, librarian: Librarian, name: str, page: int | None = None) -> str:
    """The stored text of a page, or of the whole document (its pages joined without anything
    between them). ``UsageError`` for a page that there is not."""
    document = find_document(store, name).document
    texts = Texts(store, librarian)
    numbers = [number for number, _ in _pages(store, document)]
    if page is None:
        return "".join(texts.of_page(document, number) for number in numbers)
    if page not in numbers:
        has = f"pages 1 to {len(numbers)}" if numbers != [None] else "no pages"
        raise UsageError(f"The document has {has}, so there is no page {page}.")
    return texts.of_page(document, page)


def _pages(store: Store, document: str) -> list[tuple[int | None, str]]:
    pages = [
        (_number(store, page, "pageNumber"), page) for page in derived(store, document, "Page")
    ]
    if not pages:
        return [(None, document)]
    return [(number, page) for number, page in sorted(pages)]


def _chunk(
    store: Store, texts: Texts, names: Recalled, document: str, page: int | None, chunk: str
) -> SourceChunk:
    start, end = range_of_chunk(chunk)
    text = texts.of_page(document, page)
    evidence = [_properties(store, item) for item in derived(store, chunk, "Evidence")]
    edges = names.edges(sorted(item["edge"] for item in evidence if "edge" in item))
    found = [
        _extracted(item, edges[item["edge"]], text)
        for item in evidence
        if item.get("edge") in edges
    ]
    return SourceChunk(
        chunk=chunk,
        label=text_value(store, chunk, v.RDFS_LABEL),
        start=start,
        end=end,
        tokens=_number(store, chunk, "tokenCount"),
        heading=text_value(store, chunk, v.tg("heading")),
        text=text[start:end],
        entities=tuple(sorted({item["name"] for item in evidence if "entity" in item})),
        edges=tuple(sorted(found, key=lambda e: (e.start, e.end, e.edge))),
        claims=tuple(
            sorted(
                (_claimed(item, text) for item in evidence if "claim" in item),
                key=lambda c: (c.start, c.end, c.claim),
            )
        ),
    )


def _claimed(item: Mapping[str, str], text: str) -> SourceClaim:
    return SourceClaim(
        claim=item["claim"],
        subject=item["subject"],
        object=item.get("object", ""),
        type=item["claimType"],
        status=item["claimStatus"],
        description=item["description"],
        **_quoted(item, text),
    )


def _extracted(item: Mapping[str, str], edge: Edge, text: str) -> ExtractedEdge:
    known: dict[str, Any] = edge.named_terms | _quoted(item, text)
    return ExtractedEdge(edge=item["edge"], **known)


def _quoted(item: Mapping[str, str], text: str) -> dict[str, Any]:
    """The evidence and where it stands."""
    start = int(item["charOffset"])
    end = start + int(item["charLength"])
    return {"evidence": item["evidence"], "start": start, "end": end, "quote": text[start:end]}


def _properties(store: Store, evidence: str) -> dict[str, str]:
    found = {"evidence": evidence}
    for quad in store.match(NamedNode(evidence), None, None, v.SOURCE_GRAPH):
        if isinstance(quad.object, Literal | NamedNode):
            found.setdefault(quad.predicate.value.removeprefix(v.TG), quad.object.value)
    return found


def _number(store: Store, subject: str, name: str) -> int:
    return int(text_value(store, subject, v.tg(name)) or 0)
