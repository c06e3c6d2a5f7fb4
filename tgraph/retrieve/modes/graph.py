"""The mode ``graph``: edges around the entities of the question, each judged by itself."""

from __future__ import annotations

from pydantic import Field

from tgraph.retrieve.modes.base import DocsRow, Flag, Judged, Mode, Section


class GraphSettings(Section):
    """The limits of the graph mode, with TrustGraph's defaults."""

    entity_limit: int = Field(50, ge=1)
    triple_limit: int = Field(30, ge=1, description="triples taken from one entity")
    max_subgraph_size: int = Field(150, ge=1, description="candidate edges")
    max_path_length: int = Field(2, ge=1, description="hops from a seed entity")
    edge_limit: int = Field(25, ge=1, description="edges selected")
    evidence_limit: int = Field(3, ge=1, description="quotes shown for an edge")
    history_turns: int = Field(5, ge=0, description="earlier turns that a question may refer to")
    max_context_tokens: int = Field(
        12_000, ge=500, description="tokens of a prompt; edges that don't fit are rejected"
    )


ENTITY_LIMIT = Flag(("-e", "--entity-limit"), "Seed entities.", "limits", least=1)
TRIPLE_LIMIT = Flag(("--triple-limit",), "Edges taken from one entity.", "limits", least=1)
SUBGRAPH_SIZE = Flag(("-s", "--max-subgraph-size"), "Candidate edges.", "limits", least=1)
PATH_LENGTH = Flag(("-p", "--max-path-length"), "Hops from a seed entity.", "limits", least=1)
EDGE_LIMIT = Flag(("--edge-limit",), "Edges selected for the answer.", "limits", least=1)

SUBGRAPH = {SUBGRAPH_SIZE: "graph.max_subgraph_size"}
"""The flag that counts wherever edges are candidates."""

GROWTH = {
    ENTITY_LIMIT: "graph.entity_limit",
    TRIPLE_LIMIT: "graph.triple_limit",
    **SUBGRAPH,
    PATH_LENGTH: "graph.max_path_length",
}
"""The flags that count wherever the graph mode reads; all have TrustGraph's names."""


GRAPH = Mode(
    "graph",
    DocsRow(
        "about named things and how they hang together",
        "edges around the named entities, ranked, then selected one by one with a reason",
        "3",
    ),
    section="graph",
    retriever="tgraph.retrieve.search.graph:graph_retriever",
    selecting=lambda own: Judged(own.max_context_tokens),
    concepts=True,
    flags={**GROWTH, EDGE_LIMIT: "graph.edge_limit"},
    answers=("one", "listed"),
    stepwise=True,
    orders="tgraph.retrieve.search.graph:graph_orders",
)
