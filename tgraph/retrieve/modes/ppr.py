"""The mode ``ppr``: chunks that a walk over the graph reaches (personalised PageRank)."""

from __future__ import annotations

from pydantic import Field

from tgraph.retrieve.modes.base import DocsRow, Mode, Section, Shared
from tgraph.retrieve.modes.graph import GROWTH


class PprSearchSettings(Section):
    """The mode ``ppr``: numbers of HippoRAG 2, weights by cross-validation (``docs/reference/
    retrieval.md``)."""

    passages: int = Field(10, ge=1, description="chunks retrieved")
    top_k_edges: int = Field(5, ge=0, description="edges nearest to the question")
    top_k_entities: int = Field(5, ge=0, description="of their ends that the walk starts from")
    dense_chunks: int = Field(500, ge=1, description="chunks nearest to the question")
    edge_weight: float = Field(1.0, ge=0, description="share of the edges' ends in the starts")
    name_weight: float = Field(2.0, ge=0, description="share of entities that the question names")
    passage_weight: float = Field(1.0, ge=0, description="share of the chunks nearest to it")
    subject_weight: float = Field(
        1.0, ge=0, description="of the tie between a chunk and what its document is called after"
    )
    synonymy: float = Field(0.8, ge=0, description="cosine from which entities are synonyms")
    damping: float = Field(0.85, gt=0, lt=1, description="chance that the walk goes on")
    likeness: float = Field(
        6.0, ge=0, description="weight of a chunk's own cosine beside the logarithm of the walk"
    )
    head: int = Field(0, ge=0, description="chunks nearest to the question that stand first")
    read: int = Field(
        2, ge=0, description="chunks that go before them, in which the mode graph reads the answer"
    )
    filter: bool = Field(True, description="let the model choose among the edges to start from")
    steps: bool = Field(
        True, description="let the model take questions of several steps apart and answer each step"
    )
    max_context_tokens: int = Field(12_000, ge=500, description="tokens of evidence in a prompt")
    edge_share: float = Field(0.15, ge=0, le=1, description="share of edges in these tokens")


PPR = Mode(
    "ppr",
    DocsRow(
        "that take several documents to answer, each leading to the next",
        "the edges nearest to the question, and the chunks that a walk over the graph reaches from"
        " them",
        "2; in steps 1 more, and 2 for each step",
    ),
    section="ppr_search",
    selecting=lambda own: Shared(
        own.max_context_tokens, {"graph": own.edge_share, "chunk": 1.0 - own.edge_share}
    ),
    reads_text=True,
    flags=GROWTH,
    answers=("linked", "compared"),
    stepwise=True,
)
