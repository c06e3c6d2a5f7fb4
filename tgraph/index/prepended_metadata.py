"""What a document says of itself, put before its chunks where these are read, embedded and shown.

A chunk by itself often leaves unsaid what it is of (GraphRAG's ``prepend_metadata``). Its place and
its text stay as they are: a quote is never taken from what stands before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.index.sources import Texts, text_value
from tgraph.ingest.front_matter import named_values
from tgraph.model import Document
from tgraph.store.base import Store

_TERMS = {
    "title": v.dcterms("title"),
    "author": v.dcterms("creator"),
    "date": v.dcterms("date"),
    "language": v.dcterms("language"),
    "description": v.dcterms("description"),
    "tags": v.dcterms("subject"),
}
_PREDICATE = v.tg("prependedMetadata")


def document_preface(document: Document, fields: Sequence[str]) -> str:
    """A line ``field: value`` for each of the fields that the document has, in their order: of its
    metadata, else of its front matter."""
    tags = sorted(filter(None, document.metadata.get("tags", "").split(", ")))
    known = {**document.metadata, "title": document.title, "tags": ", ".join(tags)}
    first = document.pages[0].text if document.pages else ""
    return _lines(fields, known, first)


def stored_preface(store: Store, texts: Texts, document: str, fields: Sequence[str]) -> str:
    """The same of a document on record."""
    subject = NamedNode(document)
    known = {}
    for field, term in _TERMS.items():
        quads = store.match(subject, term, None, v.SOURCE_GRAPH)
        known[field] = ", ".join(
            sorted(q.object.value for q in quads if isinstance(q.object, Literal))
        )
    own = any(field not in _TERMS for field in fields)
    paged = not text_value(store, document, v.tg("textHash"))
    return _lines(fields, known, texts.of_page(document, 1 if paged else None) if own else "")


def _lines(fields: Sequence[str], known: Mapping[str, str], first_page: str) -> str:
    own = named_values(first_page) if any(field not in _TERMS for field in fields) else {}
    found = ((field, known.get(field) if field in _TERMS else own.get(field)) for field in fields)
    return "\n".join(f"{field}: {' '.join(value.split())}" for field, value in found if value)


def prefaced(preface: str, text: str) -> str:
    """The text as it is read and embedded, with what stands before it."""
    return f"{preface}\n\n{text}" if preface else text


def standing_prefaces(store: Store) -> dict[str, str]:
    """What stands before each chunk, where knowledge has something."""
    return {
        quad.subject.value: quad.object.value
        for quad in _stated(store)
        if isinstance(quad.subject, NamedNode) and isinstance(quad.object, Literal)
    }


def preface_quad(chunk: str, preface: str) -> Quad:
    """The statement that this stands before the chunk."""
    return Quad(NamedNode(chunk), _PREDICATE, Literal(preface), v.KNOWLEDGE_GRAPH)


def _stated(store: Store) -> Iterator[Quad]:
    return store.match(None, _PREDICATE, None, v.KNOWLEDGE_GRAPH)
