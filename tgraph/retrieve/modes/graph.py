"""Mode ``graph``: edges around question entities, each judged separately."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from tgraph.foreign_bytes import parse_json
from tgraph.retrieve.modes.base import DocsRow, Flag, Judged, Mode, Section


class TraversalStep(Section):
    """What a hop of the subgraph may follow: relationships by label or IRI, and entities of these
    types at their other end. An empty list follows everything."""

    types: tuple[str, ...] = ()
    relationships: tuple[str, ...] = ()
    graphs: tuple[str, ...] = Field((), max_length=0)


def _split_json_values(values: object) -> object:
    """Return separate values: TrustGraph's flags take a JSON list as an alternative to
    repetition."""
    return tuple(_iterate_members(values)) if isinstance(values, (list, tuple)) else values


def _iterate_members(values: list[object] | tuple[object, ...]) -> Iterator[object]:
    for value in values:
        if not (isinstance(value, str) and value.lstrip().startswith("[")):
            yield value
            continue
        for member in parse_json(value):
            yield member if isinstance(member, str) else json.dumps(member, ensure_ascii=False)


def _validate_steps(values: tuple[str, ...]) -> tuple[str, ...]:
    try:
        for value in values:
            TraversalStep.model_validate_json(value)
    except ValidationError as error:
        raise ValueError(
            'each hop is a JSON object such as {"types": ["person"], "relationships": ["designed"]}'
            " (documents are chosen by a filter)"
        ) from error
    return values


Listed = Annotated[tuple[str, ...], BeforeValidator(_split_json_values)]


class GraphSettings(Section):
    """The limits of the graph mode, with TrustGraph's defaults, and where it starts from."""

    entity_limit: int = Field(50, ge=1, description="seed entities")
    triple_limit: int = Field(30, ge=1, description="triples taken from one entity")
    max_subgraph_size: int = Field(150, ge=1, description="candidate edges")
    max_path_length: int = Field(2, ge=1, description="hops from a seed entity")
    edge_score_limit: int | None = Field(
        None, ge=1, description="of the candidates, those that are judged; unset: all"
    )
    edge_limit: int = Field(25, ge=1, description="edges selected")
    evidence_limit: int = Field(3, ge=1, description="quotes shown for an edge")
    history_turns: int = Field(5, ge=0, description="earlier turns that a question may refer to")
    max_context_tokens: int = Field(
        12_000, ge=500, description="tokens of a prompt; edges that don't fit are rejected"
    )
    grounding_seeds: Listed = Field((), description="what the question is about; else found")
    graph_seeds: Listed = Field(
        (), description="entities to grow the subgraph from, by name or IRI; else matched"
    )
    traversal_instructions: Annotated[Listed, AfterValidator(_validate_steps)] = Field(
        (), description="what each hop may follow, as JSON; hops beyond follow everything"
    )

    @model_validator(mode="after")
    def _one_start(self) -> Self:
        if self.grounding_seeds and self.graph_seeds:
            raise ValueError("grounding seeds and graph seeds exclude each other")
        return self

    @property
    def traversal(self) -> tuple[TraversalStep, ...]:
        """The traversal steps, defining followed edges per hop."""
        return tuple(map(TraversalStep.model_validate_json, self.traversal_instructions))

    @property
    def judged_count(self) -> int:
        """The number of candidate edges to judge."""
        return min(self.max_subgraph_size, self.edge_score_limit or self.max_subgraph_size)


ENTITY_LIMIT = Flag(
    ("-e", "--entity-limit"),
    "Largest number of entities matched to the question.",
    "limits",
    least=1,
)
TRIPLE_LIMIT = Flag(
    ("--triple-limit",), "Largest number of edges taken from one entity.", "limits", least=1
)
SUBGRAPH_SIZE = Flag(
    ("-s", "--max-subgraph-size"), "Largest number of candidate edges.", "limits", least=1
)
PATH_LENGTH = Flag(
    ("-p", "--max-path-length"), "Largest number of hops from a matched entity.", "limits", least=1
)
EDGE_LIMIT = Flag(
    ("--edge-limit",), "Largest number of edges selected for the answer.", "limits", least=1
)
EDGE_SCORE_LIMIT = Flag(
    ("--edge-score-limit",), "Largest number of candidate edges that are judged.", "limits", least=1
)
GROUNDING_SEEDS = Flag(
    ("--grounding-seeds",),
    "A concept of the question, in place of the concepts found in the question; also a JSON list"
    " (graph; repeatable).",
    "start",
    multiple=True,
    metavar="TEXT",
)
GRAPH_SEEDS = Flag(
    ("--graph-seeds",),
    "Grow the subgraph from this entity alone, by name or IRI; also a JSON list (repeatable).",
    "start",
    multiple=True,
    metavar="NAME",
)
TRAVERSAL = Flag(
    ("--traversal-instructions",),
    'The types and relationships that a hop of the subgraph follows: {"types": [...], '
    '"relationships": [...]}, an object for each hop or a list.',
    "start",
    multiple=True,
    metavar="JSON",
)

SUBGRAPH = {SUBGRAPH_SIZE: "graph.max_subgraph_size"}
"""The flag that counts wherever edges are candidates."""

GROWTH = {
    ENTITY_LIMIT: "graph.entity_limit",
    TRIPLE_LIMIT: "graph.triple_limit",
    **SUBGRAPH,
    PATH_LENGTH: "graph.max_path_length",
    GRAPH_SEEDS: "graph.graph_seeds",
    TRAVERSAL: "graph.traversal_instructions",
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
    selecting=lambda own: Judged(own.max_context_tokens),
    concepts=True,
    flags={
        **GROWTH,
        EDGE_LIMIT: "graph.edge_limit",
        EDGE_SCORE_LIMIT: "graph.edge_score_limit",
        GROUNDING_SEEDS: "graph.grounding_seeds",
    },
    answers=("one", "listed"),
    stepwise=True,
    cut_offs="tgraph.retrieve.search.graph_cut_offs:subgraph_cut_offs",
)
