"""Document metadata, put before chunks for reading, embedding and display.

A chunk by itself often leaves its subject unsaid (GraphRAG's ``prepend_metadata``). The chunk's
place and text stay unchanged: a quote is never taken from the preface."""

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
    """Return a line ``field: value`` for each field found in a document, in field order.

    Values come from the metadata, or else from the front matter."""
    tags = sorted(filter(None, document.metadata.get("tags", "").split(", ")))
    document_values = {**document.metadata, "title": document.title, "tags": ", ".join(tags)}
    first = document.pages[0].text if document.pages else ""
    return _preface_lines(fields, document_values, first)


def read_metadata(store: Store, document: str) -> dict[str, str]:
    """Return the metadata on record of a document (an IRI): title, author, date, language,
    description and tags, without those that the document lacks."""
    subject, values = NamedNode(document), {}
    for field, term in _TERMS.items():
        quads = store.match(subject, term, None, v.SOURCE_GRAPH)
        values[field] = ", ".join(
            sorted(q.object.value for q in quads if isinstance(q.object, Literal))
        )
    return {field: value for field, value in values.items() if value}


def stored_preface(store: Store, texts: Texts, document: str, fields: Sequence[str]) -> str:
    """Return the preface of a recorded document."""
    record_values = read_metadata(store, document)
    needs_page = any(field not in _TERMS for field in fields)
    paged = not text_value(store, document, v.tg("textHash"))
    return _preface_lines(
        fields, record_values, texts.of_page(document, 1 if paged else None) if needs_page else ""
    )


def _preface_lines(fields: Sequence[str], known: Mapping[str, str], first_page: str) -> str:
    front_matter = named_values(first_page) if any(field not in _TERMS for field in fields) else {}
    field_values = (
        (field, known.get(field) if field in _TERMS else front_matter.get(field))
        for field in fields
    )
    return "\n".join(
        f"{field}: {' '.join(value.split())}" for field, value in field_values if value
    )


def prepend_preface(preface: str, text: str) -> str:
    """Return the text for reading and embedding, with the preface prepended."""
    return f"{preface}\n\n{text}" if preface else text


def standing_prefaces(store: Store) -> dict[str, str]:
    """Return prefaces by chunk, for all chunks with a preface in knowledge."""
    return {
        quad.subject.value: quad.object.value
        for quad in _preface_quads(store)
        if isinstance(quad.subject, NamedNode) and isinstance(quad.object, Literal)
    }


def preface_quad(chunk: str, preface: str) -> Quad:
    """Return a quad stating the chunk's preface."""
    return Quad(NamedNode(chunk), _PREDICATE, Literal(preface), v.KNOWLEDGE_GRAPH)


def _preface_quads(store: Store) -> Iterator[Quad]:
    return store.match(None, _PREDICATE, None, v.KNOWLEDGE_GRAPH)
