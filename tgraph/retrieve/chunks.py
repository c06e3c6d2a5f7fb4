"""Chunks as a question sees them: with their text, where they stand and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.index.counts import tokens_of
from tgraph.index.sources import document_of_chunk, page_of_chunk, range_of_chunk
from tgraph.model import Evidence, Item
from tgraph.retrieve.base import Context


def chunk_evidence(context: Context, chunks: Sequence[str]) -> dict[str, Evidence]:
    """The whole of each chunk as evidence of itself; chunks of what no longer stands are left
    out."""
    documents = context.evidence.documents({document_of_chunk(chunk) for chunk in chunks})
    found = {}
    for chunk in chunks:
        document = document_of_chunk(chunk)
        if document in documents:
            title, path = documents[document]
            start, end = range_of_chunk(chunk)
            text = context.texts.of_chunk(chunk)
            page = page_of_chunk(chunk)
            found[chunk] = Evidence(
                chunk, chunk, chunk, document, title, path, page, start, end, text
            )
    return found


def chunk_item(evidence: Evidence) -> Item:
    """The chunk that the evidence is the whole of."""
    page = f", page {evidence.page}" if evidence.page is not None else ""
    label = f"{evidence.title}{page}, characters {evidence.start}–{evidence.end}"
    return Item("chunk", evidence.chunk, label, evidence.quote)


def chunk_tokens(context: Context, chunks: Sequence[str]) -> dict[str, int]:
    """The lengths in tokens, as counted when the chunks were made."""

    def read(missing: list[str]) -> dict[str, int]:
        table = context.table()
        return tokens_of(context.store, missing) if table is None else table.tokens(missing)

    return context.remembered("chunk tokens", 50_000).get_all(chunks, read)
