"""Modes ``lightrag-*``: content reached through keywords of two levels, plus source chunks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tgraph.retrieve.modes.base import (
    PROMPT,
    Capped,
    DocsRow,
    Flag,
    KeywordNeed,
    Level,
    Mode,
    Section,
    SelectionRule,
)
from tgraph.retrieve.modes.graph import SUBGRAPH


class LightragSearchSettings(Section):
    """The modes ``lightrag-*``, with the defaults of LightRAG 1.5.7."""

    top_k: int = Field(40, ge=1, description="entities, and edges, that keywords lead to")
    least_score: float = Field(0.2, ge=-1, le=1, description="cosine below which nothing is found")
    chunk_top_k: int | None = Field(
        None,
        ge=0,
        description="chunks retrieved; unset: 20, and more beside a language model while they fit"
        " into its prompt",
    )
    related_chunk_number: int = Field(5, ge=1, description="chunks of an entity or an edge")
    chunk_pick: Literal["vector", "weight"] = Field(
        "vector",
        description="how they are picked: by likeness to the question, or by how many share",
    )
    max_entity_tokens: int = Field(6_000, ge=0, description="tokens of entities in a prompt")
    max_relationship_tokens: int = Field(8_000, ge=0, description="tokens of edges in a prompt")
    max_total_tokens: int = Field(30_000, ge=5_000, description="tokens of a prompt")
    low_keywords: tuple[str, ...] = Field((), description="what the question names; else found")
    high_keywords: tuple[str, ...] = Field((), description="its themes; else found")


USUAL_CHUNKS = 20
"""Chunks that are retrieved where ``chunk_top_k`` is unset."""

LOW_KEYWORD = Flag(
    ("--low-keyword",),
    "A keyword for entities of the question, in place of the keywords found (lightrag-*; "
    "repeatable).",
    "keywords",
    multiple=True,
    metavar="TEXT",
)
HIGH_KEYWORD = Flag(
    ("--high-keyword",),
    "A keyword for the topic of the question, in place of the keywords found (lightrag-*; "
    "repeatable).",
    "keywords",
    multiple=True,
    metavar="TEXT",
)
_LOW = {LOW_KEYWORD: "lightrag_search.low_keywords"}
_HIGH = {HIGH_KEYWORD: "lightrag_search.high_keywords"}


def _selection_caps(own: LightragSearchSettings) -> SelectionRule:
    caps = {"entity": own.max_entity_tokens, "edge": own.max_relationship_tokens}
    return Capped(own.max_total_tokens - PROMPT, caps)


def _build_mode(name: str, row: DocsRow, *levels: Level, reads_chunks: bool = False) -> Mode:
    """Return a mode of low keywords with their entities, high keywords with their edges, or both,
    and perhaps of the chunks nearest to the question."""
    return Mode(
        name,
        row,
        section="lightrag_search",
        selecting=_selection_caps,
        keywords=KeywordNeed(levels, lambda own: (own.low_keywords, own.high_keywords)),
        reads_text=reads_chunks,
        flags={
            **SUBGRAPH,
            **(_LOW if "low" in levels else {}),
            **(_HIGH if "high" in levels else {}),
        },
    )


LIGHTRAG_LOCAL = _build_mode(
    "lightrag-local",
    DocsRow(
        "about things that it names",
        "those entities, their edges, and chunks that both come from",
        "2",
    ),
    "low",
)
LIGHTRAG_GLOBAL = _build_mode(
    "lightrag-global",
    DocsRow(
        "about a theme",
        "the edges nearest to it, their ends, and chunks that both come from",
        "2",
    ),
    "high",
)
LIGHTRAG_HYBRID = _build_mode(
    "lightrag-hybrid",
    DocsRow("about both", "the last two, in turn", "2"),
    "low",
    "high",
)
LIGHTRAG_MIX = _build_mode(
    "lightrag-mix",
    DocsRow("about both", "the same, and the nearest chunks", "2"),
    "low",
    "high",
    reads_chunks=True,
)
