"""What is embedded: the text that stands for an entity, an edge, a chunk (by itself and in its
context), a report or a summary in vector search."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.chunk_contexts import (
    context_text,
    pieces,
    spelled_out,
    standing_contexts,
    with_context,
)
from tgraph.index.evidence import EvidenceReader, stored_evidence
from tgraph.index.prepended_metadata import prefaced, standing_prefaces
from tgraph.index.reports.report import read_reports
from tgraph.index.sources import Texts, standing_chunks
from tgraph.index.summary_tree import standing_tree, summary_text
from tgraph.index.vectors.vector_index import text_hash
from tgraph.librarian import Librarian
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
_DESCRIPTIONS = 1_000
_QUOTES = 12
_AT_ONCE = 5_000


def items_of(
    kind: str, store: Store, librarian: Librarian, evidence: EvidenceReader | None = None
) -> Iterator[tuple[str, str]]:
    """(IRI, text) of everything of a kind that knowledge holds, in the order of the IRIs.

    The sentences that state an edge are read from ``evidence``, by default from the store.
    """
    if kind == "edge":
        return _edges(store, evidence or stored_evidence(store, Texts(store, librarian)))
    readers = {
        "entity": _entities,
        "chunk": _chunks,
        "report": _reports,
        "context": _contexts,
        "summary": _summaries,
    }
    return readers[kind](store, librarian)


def _entities(store: Store, librarian: Librarian) -> Iterator[tuple[str, str]]:
    for entity in _instances(store, "Entity"):
        label = next(iter(_texts(store, entity, v.RDFS_LABEL)), entity.value)  # an update took it
        described = " ".join(_texts(store, entity, v.tg("description")))[:_DESCRIPTIONS]
        yield entity.value, f"{label}: {described}" if described else label


def _edges(store: Store, evidence: EvidenceReader) -> Iterator[tuple[str, str]]:
    """An edge is found by each sentence that states it, and by what a model said of it."""
    edges = _instances(store, "Edge")
    for start in range(0, len(edges), _AT_ONCE):
        batch = edges[start : start + _AT_ONCE]
        places = evidence.of_edges([edge.value for edge in batch], _QUOTES)
        for edge in batch:
            described = " ".join(_texts(store, edge, v.tg("description")))
            quotes = [item.quote for item in places.get(edge.value, ())]
            for text in dict.fromkeys(filter(None, [described, *quotes])):
                yield edge.value, text[:_DESCRIPTIONS]


def _chunks(store: Store, librarian: Librarian) -> Iterator[tuple[str, str]]:
    texts, before = Texts(store, librarian), standing_prefaces(store)
    for _, chunk in standing_chunks(store):
        yield chunk, prefaced(before.get(chunk, ""), texts.of_chunk(chunk))


def _contexts(store: Store, librarian: Librarian) -> Iterator[tuple[str, str]]:
    """A chunk is found by each of its pieces, its context before each."""
    texts, before = Texts(store, librarian), standing_prefaces(store)
    for chunk, context in sorted(standing_contexts(store).items()):
        said = prefaced(before.get(chunk, ""), context_text(store, context))
        for piece in pieces(texts.of_chunk(chunk)):
            yield chunk, spelled_out(with_context(said, piece))


def _reports(store: Store, librarian: Librarian) -> Iterator[tuple[str, str]]:
    """What each report is about, without the paragraphs: these quote what has vectors already, or
    say more about what the findings' summaries say."""
    for report in sorted(read_reports(store).values(), key=lambda report: report.iri):
        headings = [finding.summary for finding in report.findings]
        yield report.iri, "\n\n".join([report.title, report.summary, "\n".join(headings)])


def _summaries(store: Store, librarian: Librarian) -> Iterator[tuple[str, str]]:
    for summary in sorted(standing_tree(store)):
        yield summary, summary_text(store, summary)


def sentence_hash(quote: str) -> bytes:
    """What a vector set knows an edge's sentence by."""
    return text_hash(quote[:_DESCRIPTIONS])


def _instances(store: Store, kind: str) -> list[NamedNode]:
    quads = store.match(None, v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH)
    nodes = [quad.subject for quad in quads if isinstance(quad.subject, NamedNode)]
    return sorted(nodes, key=lambda node: node.value)


def _texts(store: Store, subject: NamedNode, predicate: NamedNode) -> list[str]:
    quads = store.match(subject, predicate, None, v.KNOWLEDGE_GRAPH)
    return sorted(quad.object.value for quad in quads if isinstance(quad.object, Literal))
