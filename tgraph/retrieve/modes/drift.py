"""Mode ``drift``: reports first, then local search for a tree of follow-up questions."""

from __future__ import annotations

from pydantic import Field

from tgraph.retrieve.modes.base import DocsRow, Mode, Section
from tgraph.retrieve.modes.global_search import COMMUNITY_LEVEL
from tgraph.retrieve.modes.graph import SUBGRAPH
from tgraph.retrieve.modes.local import shared_with_rest


class DriftSearchSettings(Section):
    """The mode ``drift``: reports, shares and depth as in Microsoft GraphRAG, the rest tgraph's."""

    k: int = Field(20, ge=1, description="reports, the nearest, that the primer reads")
    community_level: int = Field(2, ge=0, description="the deepest level of reports that is used")
    folds: int = Field(3, ge=1, description="parts in which the primer reads the reports")
    depth: int = Field(3, ge=0, description="follow-ups of follow-ups are asked so deep")
    breadth: int = Field(4, ge=1, description="follow-up questions asked at the same time")
    follow_ups: int = Field(5, ge=1, description="follow-up questions that one answer may propose")
    call_budget: int = Field(
        13, ge=3, description="calls of the model in all; those of an embedder come on top"
    )
    duplicate: float = Field(
        0.95, gt=0, le=1, description="similarity from which two questions are the same"
    )
    top_k_entities: int = Field(10, ge=1, description="entities that a question leads to")
    top_k_relationships: int = Field(
        10, ge=0, description="edges that lead out of the entities, for each of them"
    )
    report_share: float = Field(
        0.1, ge=0, le=1, description="share of reports in the evidence of a question"
    )
    chunk_share: float = Field(
        0.9, ge=0, le=1, description="share of chunks; entities, edges and claims have the rest"
    )
    primer_context_tokens: int = Field(
        12_000, ge=500, description="tokens of reports in a prompt of the primer"
    )
    max_context_tokens: int = Field(
        12_000, ge=500, description="tokens of evidence in a prompt of a question"
    )
    reduce_context_tokens: int = Field(
        12_000, ge=500, description="tokens of the prompt in which points become the answer"
    )


DRIFT = Mode(
    "drift",
    DocsRow(
        "that begin broadly and end in details",
        "the reports nearest to a hypothetical answer, then local search for each follow-up"
        " question",
        "13 at most",
    ),
    section="drift_search",
    beneath=("local_search",),
    pipeline="follow-ups",
    selecting=shared_with_rest,
    reports="beside",
    flags={**SUBGRAPH, COMMUNITY_LEVEL: "drift_search.community_level"},
    cut_offs="tgraph.retrieve.search.drift:questions_not_asked",
)
