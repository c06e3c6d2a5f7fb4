"""The modes ``raptor`` and ``raptor-traversal``: a tree of summaries over the chunks."""

from __future__ import annotations

from pydantic import Field

from tgraph.retrieve.modes.base import Capped, DocsRow, Flag, Mode, Need, Section


class RaptorSettings(Section):
    """The tree of summaries; levels, dimensions and threshold are RAPTOR's (Sarthi et al. 2024)."""

    enabled: bool = Field(
        False, description="grow the tree when indexing, not only from the first question on"
    )
    levels: int = Field(5, ge=1, description="the greatest height of the tree")
    dimensions: int = Field(10, ge=1, description="principal components that are clustered")
    threshold: float = Field(
        0.1, gt=0, lt=1, description="likelihood from which something belongs to a cluster"
    )
    max_cluster_tokens: int = Field(
        12_000, ge=500, description="tokens of a cluster; what is larger is divided"
    )
    max_words: int = Field(130, ge=20, description="the longest summary; RAPTOR's have 131 tokens")


class RaptorSearchSettings(Section):
    """The modes ``raptor`` and ``raptor-traversal``, with the paper's limits."""

    max_context_tokens: int = Field(
        2_000, ge=500, description="tokens of summaries and chunks in a prompt"
    )
    k: int = Field(20, ge=1, description="nodes of the tree retrieved at once (raptor)")
    top_k: int = Field(5, ge=1, description="nodes taken of each level (raptor-traversal)")
    evidence_limit: int = Field(3, ge=1, description="chunks that a summary is cited by")
    start_layer: int | None = Field(
        None, ge=0, description="level that is searched first, chunks being 0; unset: the top"
    )
    num_layers: int | None = Field(
        None, ge=1, description="levels that are searched, from there down; unset: all"
    )
    threshold: float | None = Field(
        None, ge=0, le=1, description="cosine from which nodes are taken, whatever k and top_k say"
    )


START_LAYER = Flag(
    ("--start-layer",),
    "The level of the tree where the search starts; chunks are level 0 (raptor).",
    "limits",
    0,
)
NUM_LAYERS = Flag(
    ("--num-layers",),
    "The number of levels searched, from the start downwards (raptor).",
    "limits",
    1,
)
THRESHOLD = Flag(
    ("--threshold",),
    "Select all nodes with at least this cosine similarity, in place of the nearest nodes "
    "(raptor).",
    "limits",
    metavar="X",
    share=True,
)

_FLAGS = {
    START_LAYER: "raptor_search.start_layer",
    NUM_LAYERS: "raptor_search.num_layers",
    THRESHOLD: "raptor_search.threshold",
}


_TREE = Need(
    "tree",
    "raptor.enabled",
    "The mode raptor needs a tree of summaries; it is made now, and kept up to date from here on.",
)

RAPTOR = Mode(
    "raptor",
    DocsRow(
        "that take in much, or some things in detail and others not",
        "summaries of clusters of chunks on all levels, and chunks, the nearest of them all",
        "1",
    ),
    section="raptor_search",
    selecting=lambda own: Capped(own.max_context_tokens),
    need=_TREE,
    reads_text=True,
    flags=_FLAGS,
    cut_offs="tgraph.retrieve.search.summary_tree:unsearched_levels",
)
RAPTOR_TRAVERSAL = Mode(
    "raptor-traversal",
    DocsRow(
        "the same, from the whole to the part",
        "the nearest of the top, then the nearest below them, and so on",
        "1",
    ),
    section="raptor_search",
    selecting=lambda own: Capped(own.max_context_tokens),
    need=_TREE,
    reads_text=True,
    flags=_FLAGS,
    cut_offs="tgraph.retrieve.search.summary_tree:unsearched_levels",
)
