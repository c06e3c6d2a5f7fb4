"""The modes ``basic`` and ``naive``: the chunks nearest to the question, with GraphRAG's and with
LightRAG's defaults.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tgraph.retrieve.modes.base import DocsRow, Mode, Section, SelectionRule, Shared


class BasicSearchSettings(Section):
    """The mode ``basic``, with Microsoft GraphRAG's defaults."""

    usual_k: ClassVar[int] = 10

    k: int | None = Field(
        None,
        ge=1,
        description="chunks retrieved; unset: 10, and more beside a language model while they fit"
        " into its prompt",
    )
    least_score: float = Field(-1.0, ge=-1, le=1, description="cosine below which a chunk is left")
    max_context_tokens: int = Field(12_000, ge=500, description="tokens of chunks in a prompt")


class NaiveSearchSettings(BasicSearchSettings):
    """The mode ``naive``: the same with the defaults of LightRAG 1.5.7."""

    usual_k: ClassVar[int] = 20

    k: int | None = Field(
        None,
        ge=1,
        description="chunks retrieved; unset: 20, and more beside a language model while they fit"
        " into its prompt",
    )
    least_score: float = Field(0.2, ge=-1, le=1, description="cosine below which a chunk is left")
    max_context_tokens: int = Field(26_000, ge=500, description="tokens of chunks in a prompt")


def only_chunks(tokens: int) -> SelectionRule:
    """Return a selection of chunks alone, with the complete token budget."""
    return Shared(tokens, {"chunk": 1.0})


BASIC = Mode(
    "basic",
    DocsRow("whose words stand in the text", "the nearest chunks", "1"),
    section="basic_search",
    selecting=lambda own: only_chunks(own.max_context_tokens),
    reads_text=True,
)
NAIVE = Mode(
    "naive",
    DocsRow(
        "the same as `basic`",
        "the same with LightRAG's defaults: 20 chunks, none below a cosine of 0.2",
        "1",
    ),
    section="naive_search",
    selecting=lambda own: only_chunks(own.max_context_tokens),
    reads_text=True,
)
