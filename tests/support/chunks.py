"""Chunks of texts that tests write."""

from __future__ import annotations

from tgraph.ingest.chunk import page_chunks
from tgraph.model import Chunk, Document, Heading, Page


def chunk_of(
    text: str, start: int = 0, headings: tuple[str, ...] = (), media_type: str = "text/plain"
) -> Chunk:
    """The text as a chunk that begins at ``start`` of its page, under the headings."""
    page = Page(None, "\n" * start + text)
    above = tuple(Heading(heading, level, 0) for level, heading in enumerate(headings, 1))
    document = Document("0" * 64, "", media_type, (page,))
    (chunk,) = page_chunks(document, page, [(start, start + len(text), len(text) // 4)], above)
    return chunk
