"""Embedded texts: the text representing an entity, edge, chunk (alone or in context), report or
summary in vector search."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache, partial

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.chunk_contexts import (
    context_text,
    spelled_out,
    split_pieces,
    standing_contexts,
    with_context,
)
from tgraph.index.evidence import EvidenceReader, stored_evidence
from tgraph.index.prepended_metadata import prepend_preface, standing_prefaces
from tgraph.index.reports.report import read_report, read_reports
from tgraph.index.sources import (
    Texts,
    document_of_chunk,
    lexical_documents,
    standing_chunks,
    standing_documents,
    text_value,
)
from tgraph.index.summary_tree import standing_tree, summary_text
from tgraph.librarian import Librarian
from tgraph.model import CommunityReport
from tgraph.store.base import Store

PLURALS = {
    "entity": "entities",
    "edge": "edges",
    "chunk": "chunks",
    "report": "reports",
    "context": "contexts",
    "summary": "summaries",
}
KINDS = tuple(PLURALS)
LONGEST_TEXT = 1_000
"""Characters embedded of an edge's sentence, and of an entity's descriptions."""
_QUOTES = 12
_AT_ONCE = 5_000
# The address and title of a link or picture in Markdown, from the bracket that closes its text.
_ADDRESS = re.compile(r"\]\((?:[^()\s]|\([^()\s]*\)){1,2000}(?:\s+\"[^\"\n]{0,300}\")?\s?\)")
_WITHOUT_ADDRESSES = 2
"""The version of reading Markdown from which chunks are embedded without addresses."""


ItemSelection = Collection[str] | None
"""Some IRIs, or None for all there are."""


def items_of(
    kind: str,
    store: Store,
    librarian: Librarian,
    evidence: EvidenceReader | None = None,
    only: ItemSelection = None,
) -> Iterator[tuple[str, str]]:
    """Yield (IRI, text) pairs for knowledge items of a kind, sorted by IRI; ``only`` restricts
    the items.

    Sentences stating an edge are read from ``evidence``, by default from the store. Items
    stated only by ``lexical_documents`` are left out."""
    if kind in ("edge", "entity"):
        read = evidence or stored_evidence(store, Texts(store, librarian))
        return (_edge_items if kind == "edge" else _entity_items)(store, read, only)
    readers = {
        "chunk": _chunk_items,
        "report": _report_items,
        "context": _context_items,
        "summary": _summary_items,
    }
    return readers[kind](store, librarian, only)


def _entity_items(
    store: Store, evidence: EvidenceReader, only: ItemSelection
) -> Iterator[tuple[str, str]]:
    lexical = lexical_documents(store)
    if lexical and lexical >= standing_documents(store):
        return
    mentions = evidence.mentions() if lexical else {}
    for entity in _find_instances(store, "Entity", only):
        chunks = mentions.get(entity.value)
        if chunks and lexical.issuperset(map(document_of_chunk, chunks)):
            continue
        label = next(
            iter(_literal_texts(store, entity, v.RDFS_LABEL)), entity.value
        )  # an update took it
        described = " ".join(_literal_texts(store, entity, v.tg("description")))[:LONGEST_TEXT]
        yield entity.value, f"{label}: {described}" if described else label


def _edge_items(
    store: Store, evidence: EvidenceReader, only: ItemSelection
) -> Iterator[tuple[str, str]]:
    """Yield edge texts: each sentence stating the edge, plus the model-written description."""
    lexical = lexical_documents(store)
    if lexical and lexical >= standing_documents(store):
        return
    graphs = _graph_documents(store)
    edges = _find_instances(store, "Edge", only)
    for start in range(0, len(edges), _AT_ONCE):
        batch = edges[start : start + _AT_ONCE]
        places = evidence.of_edges([edge.value for edge in batch], _QUOTES)
        for edge in batch:
            described = " ".join(_literal_texts(store, edge, v.tg("description")))
            edge_evidence = places.get(edge.value, ())
            if edge_evidence and lexical.issuperset(item.document for item in edge_evidence):
                continue
            quotes = [item.quote for item in edge_evidence if item.document not in graphs]
            if len(quotes) < len(edge_evidence):  # a line of a graph is for parsers
                described = " ".join(filter(None, [_in_words(store, edge), described]))
            for text in dict.fromkeys(filter(None, [described, *quotes])):
                yield edge.value, text[:LONGEST_TEXT]


def _graph_documents(store: Store) -> set[str]:
    """Return documents in RDF formats."""
    return {
        quad.subject.value
        for media_type in v.GRAPH_MEDIA_TYPES
        for quad in store.match(None, v.tg("mimeType"), Literal(media_type), v.SOURCE_GRAPH)
        if isinstance(quad.subject, NamedNode)
    }


def _in_words(store: Store, edge: NamedNode) -> str:
    """Return the edge in words, using labels of the triple's terms."""
    quad = next(store.match(edge, v.RDF_REIFIES, None, v.SOURCE_GRAPH), None)
    parts = quad.object if quad is not None and isinstance(quad.object, Triple) else ()
    return " ".join(
        next(iter(_literal_texts(store, part, v.RDFS_LABEL)), "")
        if isinstance(part, NamedNode)
        else part.value
        for part in parts
        if isinstance(part, NamedNode | Literal)
    )


def _chunk_items(
    store: Store, librarian: Librarian, only: ItemSelection
) -> Iterator[tuple[str, str]]:
    texts, before = Texts(store, librarian), standing_prefaces(store)
    lexical = lexical_documents(store)
    if lexical and lexical >= standing_documents(store):
        return
    drops_addresses = cache(partial(_drops_addresses, store))
    for document, chunk in _chosen_chunks(store, only):
        if document not in lexical:
            text = texts.of_chunk(chunk)
            if drops_addresses(document):
                text = _ADDRESS.sub("]", text)
            yield chunk, prepend_preface(before.get(chunk, ""), text)


def _drops_addresses(store: Store, document: str) -> bool:
    """Return whether chunks of a document are embedded without the addresses of links: of Markdown
    from a version of its reading on."""
    node, markdown = NamedNode(document), Literal("text/markdown")
    if next(store.match(node, v.tg("mimeType"), markdown, v.SOURCE_GRAPH), None) is None:
        return False
    return int(text_value(store, document, v.tg("readingVersion")) or 1) >= _WITHOUT_ADDRESSES


def _context_items(
    store: Store, librarian: Librarian, only: ItemSelection
) -> Iterator[tuple[str, str]]:
    """Yield each piece of a chunk, preceded by the chunk's context."""
    texts, before = Texts(store, librarian), standing_prefaces(store)
    lexical = lexical_documents(store)
    for chunk, context in sorted(standing_contexts(store).items()):
        if document_of_chunk(chunk) in lexical or (only is not None and chunk not in only):
            continue
        preface = prepend_preface(before.get(chunk, ""), context_text(store, context))
        for piece in split_pieces(texts.of_chunk(chunk)):
            yield chunk, spelled_out(with_context(preface, piece))


def _report_items(
    store: Store, librarian: Librarian, only: ItemSelection
) -> Iterator[tuple[str, str]]:
    """Yield report texts: title, summary and finding headings.

    Paragraphs are left out: they quote texts that have vectors already, or elaborate the
    finding summaries."""
    reports = read_reports(store).values() if only is None else _chosen_reports(store, only)
    for report in sorted(reports, key=lambda report: report.iri):
        headings = [finding.summary for finding in report.findings]
        yield report.iri, "\n\n".join([report.title, report.summary, "\n".join(headings)])


def _summary_items(
    store: Store, librarian: Librarian, only: ItemSelection
) -> Iterator[tuple[str, str]]:
    for summary in sorted(standing_tree(store)):
        if only is not None and summary not in only:
            continue
        yield summary, summary_text(store, summary)


def _chosen_chunks(store: Store, only: ItemSelection) -> Iterator[tuple[str, str]]:
    """Yield standing chunks with documents, optionally restricted to ``only``."""
    if only is None:
        yield from standing_chunks(store)
        return
    standing = standing_documents(store)
    for chunk in sorted(only):
        document = document_of_chunk(chunk)
        if document in standing:
            yield document, chunk


def _chosen_reports(store: Store, only: Collection[str]) -> Iterator[CommunityReport]:
    for node in _find_instances(store, "CommunityReport", only):
        yield read_report(store, node)


def _find_instances(store: Store, kind: str, only: ItemSelection = None) -> list[NamedNode]:
    chosen: Iterable[NamedNode | None] = [None] if only is None else map(NamedNode, only)
    pattern = v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH
    quads = (quad for chosen_node in chosen for quad in store.match(chosen_node, *pattern))
    nodes = [quad.subject for quad in quads if isinstance(quad.subject, NamedNode)]
    return sorted(nodes, key=lambda node: node.value)


def _literal_texts(store: Store, subject: NamedNode, predicate: NamedNode) -> list[str]:
    quads = store.match(subject, predicate, None, v.KNOWLEDGE_GRAPH)
    return sorted(quad.object.value for quad in quads if isinstance(quad.object, Literal))
