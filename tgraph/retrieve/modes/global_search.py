"""The mode ``global``: reports are read in batches, each gives points, the best make the answer."""

from __future__ import annotations

from pydantic import Field

from tgraph.retrieve.modes.base import DocsRow, Flag, Mode, Section


class GlobalSearchSettings(Section):
    """Global search, with GraphRAG's defaults; the limits of dynamic selection are tgraph's."""

    community_level: int = Field(2, ge=0, description="reports are read down to this level")
    min_rating: float = Field(0.0, ge=0, le=10, description="reports rated lower are left out")
    seed: int = Field(86, description="of the shuffle that spreads the reports over batches")
    map_context_tokens: int = Field(
        12_000, ge=500, description="tokens of the prompt in which a batch of reports is read"
    )
    map_max_length: int = Field(1000, ge=1, description="words of the points of a batch")
    reduce_context_tokens: int = Field(
        12_000, ge=500, description="tokens of the prompt in which points become the answer"
    )
    reduce_max_length: int = Field(2000, ge=1, description="words of the answer")
    dynamic: bool = Field(
        False, description="rate reports from the top and read only what is relevant"
    )
    dynamic_threshold: int = Field(1, ge=1, le=5, description="the rating that is relevant, of 5")
    dynamic_keep_parent: bool = Field(
        False, description="read a relevant report also where parts of it are relevant"
    )
    dynamic_max_level: int = Field(2, ge=0, description="reports are rated down to this level")
    dynamic_max_calls: int = Field(100, ge=1, description="ratings asked of the model")
    dynamic_num_repeats: int = Field(1, ge=1, description="ratings of a report, of which most win")


COMMUNITY_LEVEL = Flag(
    ("--community-level",),
    "Use reports down to this level (global, local, drift).",
    "reports",
    least=0,
)
DYNAMIC_SELECTION = Flag(
    ("--dynamic-community-selection/--no-dynamic-community-selection",),
    "Rate reports from the top level down and read only relevant reports (global).",
    "reports",
)


GLOBAL = Mode(
    "global",
    DocsRow(
        "about the documents as a whole",
        "the reports on communities of entities, all that there are at a level",
        "1 for a batch of reports, and 1",
    ),
    section="global_search",
    pipeline="map-reduce",
    reports="only",
    flags={
        COMMUNITY_LEVEL: "global_search.community_level",
        DYNAMIC_SELECTION: "global_search.dynamic",
    },
    answers=("whole",),
    cut_offs="tgraph.retrieve.search.community_reports:reports_left_out",
)
