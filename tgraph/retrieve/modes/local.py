"""Mode ``local``: all content around the question's entities."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tgraph.retrieve.modes.base import DocsRow, Flag, Mode, Section, SelectionRule, Shared
from tgraph.retrieve.modes.global_search import COMMUNITY_LEVEL
from tgraph.retrieve.modes.graph import SUBGRAPH


class LocalSearchSettings(Section):
    """The mode ``local``, with Microsoft GraphRAG's defaults."""

    top_k_entities: int = Field(10, ge=1, description="entities that a question leads to")
    oversampling: int = Field(2, ge=1, description="times as many are looked at, then cut back")
    top_k_relationships: int = Field(
        10, ge=0, description="edges that lead out of the entities, for each of them"
    )
    community_level: int = Field(2, ge=0, description="the deepest level of reports that is used")
    max_context_tokens: int = Field(12_000, ge=500, description="tokens of evidence in a prompt")
    report_share: float = Field(0.15, ge=0, le=1, description="share of reports in these tokens")
    chunk_share: float = Field(
        0.5, ge=0, le=1, description="share of chunks; entities, edges and claims have the rest"
    )
    relationship_ranking_attribute: Literal["rank", "weight", "text_unit_count"] | None = Field(
        None,
        description="by what edges are ranked: the relationships of their ends (rank, as where it"
        " is unset), their weight, or how many chunks state them",
    )
    include: tuple[str, ...] = Field((), description="entities to start from in any case")
    exclude: tuple[str, ...] = Field((), description="entities to leave out")


INCLUDE_ENTITY = Flag(
    ("--include-entity",),
    "Always start from this entity (local search).",
    "start",
    multiple=True,
    metavar="NAME",
)
EXCLUDE_ENTITY = Flag(
    ("--exclude-entity",),
    "Leave this entity out (local search).",
    "start",
    multiple=True,
    metavar="NAME",
)


RELATIONSHIP_RANKING = Flag(
    ("--relationship-ranking-attribute",),
    "Rank edges by the number of relationships of both entities (rank), by weight, or by the "
    "number of chunks that state the edge (local search).",
    "limits",
    choices=("rank", "weight", "text_unit_count"),
)


def shared_with_rest(own: Any) -> SelectionRule:
    """Return token shares: reports, chunks, and the remainder for entities, edges and claims."""
    graph_share = max(0.0, 1.0 - own.report_share - own.chunk_share)
    shares = {"report": own.report_share, "graph": graph_share, "chunk": own.chunk_share}
    return Shared(own.max_context_tokens, shares)


LOCAL = Mode(
    "local",
    DocsRow(
        "about one thing, as a whole",
        "reports, descriptions, edges, claims and chunks around the nearest entities",
        "1",
    ),
    section="local_search",
    selecting=shared_with_rest,
    reports="beside",
    flags={
        **SUBGRAPH,
        INCLUDE_ENTITY: "local_search.include",
        EXCLUDE_ENTITY: "local_search.exclude",
        COMMUNITY_LEVEL: "local_search.community_level",
        RELATIONSHIP_RANKING: "local_search.relationship_ranking_attribute",
    },
)
