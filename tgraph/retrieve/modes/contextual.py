"""The mode ``contextual``: chunks found in their context, by meaning and by words."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from tgraph.plugins import RERANKERS
from tgraph.retrieve.modes.base import ADDRESS, DocsRow, Flag, Mode, Need, Section, admit_added
from tgraph.retrieve.modes.basic import only_chunks


class ContextualSearchSettings(Section):
    """The mode ``contextual``, after Anthropic's "Contextual Retrieval" (2024)."""

    enabled: bool = Field(
        False, description="situate chunks when indexing, not only from the first question on"
    )
    by_model: bool = Field(
        False, description="contexts written by the model: one call a chunk, the document in each"
    )
    max_document_tokens: int = Field(
        30_000, ge=500, description="of a longer document the model sees the part around the chunk"
    )
    names: int = Field(20, ge=0, description="names of the document in a context without a model")
    k: int = Field(20, ge=1, description="chunks retrieved")
    pool: int = Field(150, ge=1, description="chunks that each of the two searches contributes")
    rrf_k: int = Field(
        10, ge=0, description="of reciprocal rank fusion (Cormack et al. 2009, with 60): steeper"
    )
    max_context_tokens: int = Field(12_000, ge=500, description="tokens of chunks in a prompt")


class RerankSettings(Section):
    """What ranks texts for a question: the reader, or a server (POST ``/rerank``: Cohere, Jina,
    vLLM and others); unset: chunks stay in the order of their search."""

    provider: Annotated[Literal["embedded"] | None, admit_added(RERANKERS)] = Field(
        None,
        description="embedded: the reader ranks (`reader.model`); unset: the server at base_url",
    )
    base_url: Annotated[str | None, ADDRESS] = Field(None, description="up to and without /rerank")
    model: str = Field("", description="the model's name at the endpoint")
    api_key: SecretStr | None = Field(None, description="its key")
    pool: int = Field(150, ge=1, description="chunks that are ranked anew")
    min_score: float | None = Field(
        None, ge=0, le=1, description="score below which a ranked chunk is left out"
    )


RERANKER_INPUT = Flag(
    ("--max-reranker-input",),
    "Largest number of chunks sent to a reranker (contextual).",
    "limits",
    least=1,
)
MIN_RERANK_SCORE = Flag(
    ("--min-rerank-score",),
    "Leave out chunks with a lower reranker score (contextual).",
    "limits",
    metavar="X",
    share=True,
)

CONTEXTUAL = Mode(
    "contextual",
    DocsRow(
        "whose words stand in the text, of a passage that leaves unsaid what it is about; code",
        "chunks in their context, by meaning and by words, fused, and if you like ranked anew by a"
        " server or the reader",
        "1",
    ),
    section="contextual_search",
    beneath=("rerank",),
    selecting=lambda own: only_chunks(own.max_context_tokens),
    need=Need(
        "contexts",
        "contextual_search.enabled",
        "The mode contextual needs the contexts of chunks; they are made now, and kept up to date"
        " from here on.",
    ),
    reads_text=True,
    flags={RERANKER_INPUT: "rerank.pool", MIN_RERANK_SCORE: "rerank.min_score"},
)
