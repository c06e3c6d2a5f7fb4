"""The JSON of recorded sessions and of their traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from tgraph.engine.json_output import Output
from tgraph.explain.trace.comparison import Comparison
from tgraph.explain.trace.knowledge_diff import KnowledgeDiff
from tgraph.explain.trace.sessions import SessionSummary
from tgraph.explain.trace.values import Trace


class SessionOut(Output):
    """An entry of ``tgraph sessions --json``."""

    explain_id: str
    question: str
    mode: str
    started: str = Field(description="xsd:dateTime in UTC")
    ended: str = Field(description="empty while the session has no end")
    status: str = Field(
        description="completed, no-evidence, context-only, failed, interrupted, aborted, or empty"
    )
    questioned: str = Field(
        description="since when the answer does not stand (xsd:dateTime); empty while it does"
    )


def session_json(session: SessionSummary) -> dict[str, Any]:
    """Return the JSON object of a recorded session."""
    return SessionOut.model_validate(session).model_dump(mode="json")


@dataclass(frozen=True)
class SessionTraceOut(Trace):
    """Everything that is on record of a session."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        title="Trace", extra="forbid", json_schema_serialization_defaults_required=True
    )
    report: Annotated[Callable[[], str] | None, Field(exclude=True)] = None


@dataclass(frozen=True)
class ComparisonOut(Comparison):
    __doc__ = Comparison.__doc__
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(title="Comparison")
    same: bool = field(kw_only=True)


@dataclass(frozen=True)
class KnowledgeDiffOut(KnowledgeDiff):
    __doc__ = KnowledgeDiff.__doc__
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(title="KnowledgeDiff")
    same: bool = field(kw_only=True)
