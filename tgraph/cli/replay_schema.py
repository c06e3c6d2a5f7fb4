"""The shapes of what ``tgraph replay`` and ``tgraph diff`` print as JSON."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tgraph.explain.compared import Comparison


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DifferenceOut(_Model):
    """Where two records differ."""

    subject: str = Field(description="IRI of what is spoken of, with the session's UUID fixed")
    property: str
    recorded: tuple[str, ...]
    replayed: tuple[str, ...]


class ReplayOut(_Model):
    """What ``tgraph replay --json`` prints."""

    explain_id: str = Field(description="IRI of the session")
    same: bool
    recorded_hash: str = Field(description="replay hash of the record")
    replayed_hash: str = Field(description="replay hash of the replay")
    problem: str = Field(description="why the replay ended early, or empty")
    notes: tuple[str, ...] = Field(description="what had to be done differently")
    differences: int = Field(description="how many properties differ")
    first_difference: DifferenceOut | None


def replay_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas by the names of their files."""
    comparison = TypeAdapter(Comparison).json_schema(mode="serialization")
    properties = {"same": {"title": "Same", "type": "boolean"}, **comparison["properties"]}
    required = ["same", *comparison["required"]]
    return {
        "replay": ReplayOut.model_json_schema(mode="serialization"),
        "diff": {**comparison, "properties": properties, "required": required},
    }
