"""Mode ``bm25``: chunks sharing most words with the question, without graph or vectors.

BM25 (Robertson and Zaragoza 2009) over unchanged chunks; rare words count most."""

from __future__ import annotations

from pydantic import Field

from tgraph.retrieve.modes.base import DocsRow, Mode, Section
from tgraph.retrieve.modes.basic import only_chunks


class Bm25SearchSettings(Section):
    """The mode ``bm25``; k1 and b are those of ``contextual``."""

    k: int = Field(10, ge=1, description="chunks retrieved")
    max_context_tokens: int = Field(12_000, ge=500, description="tokens of chunks in a prompt")


BM25 = Mode(
    "bm25",
    DocsRow(
        "whose very words stand in the text: names, numbers, code",
        "the chunks that share most words with it, neither graph nor vectors",
        "1",
    ),
    section="bm25_search",
    selecting=lambda own: only_chunks(own.max_context_tokens),
    method="bm25",
    reads_text=True,
)
