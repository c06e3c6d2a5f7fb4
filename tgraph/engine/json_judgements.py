"""The JSON of verifications and replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AliasChoices, AliasPath, BeforeValidator, Field

from tgraph.engine.json_answers import SessionIri, UsageOut
from tgraph.engine.json_output import Output
from tgraph.explain.assess.verification import JudgedAnswer, JudgedSentence, Verification
from tgraph.model import Usage

if TYPE_CHECKING:
    from tgraph.engine.rerun.replay import Replay


def _read_usage(counts: Mapping[str, int]) -> Usage:
    return Usage(**counts)


def _get_first_value(values: Sequence[Any]) -> Any:
    return next(iter(values), None)


class VerificationOut(Output):
    """What ``tgraph verify --json`` prints."""

    session: SessionIri
    question: str
    mode: str
    judge: str = Field(description="the model or method that judged")
    passed: bool = Field(
        validation_alias=AliasChoices("passed", "is_supported"),
        description="no sentence lacks support, and the answer answers",
    )
    counts: dict[str, int] = Field(description="how many sentences have each verdict")
    recall: float | None = Field(description="ALCE's citation recall, 0 to 1")
    precision: float | None = Field(description="ALCE's citation precision, 0 to 1")
    sentences: tuple[JudgedSentence, ...]
    answer: JudgedAnswer | None = Field(description="the answer as a whole, and its short answer")
    verification: str = Field(description="IRI of the verification on record")
    usage: Annotated[UsageOut, BeforeValidator(_read_usage)]
    dropped: dict[str, int] = Field(description="what could not be used, by reason")
    notes: tuple[str, ...]


class DifferenceOut(Output):
    """Where two records differ."""

    subject: str = Field(description="IRI of what is spoken of, with the session's UUID fixed")
    property: str
    recorded: tuple[str, ...]
    replayed: tuple[str, ...]


class ReplayOut(Output):
    """What ``tgraph replay --json`` prints."""

    explain_id: SessionIri = Field(validation_alias="session")
    same: bool = Field(validation_alias=AliasChoices("same", "is_same"))
    recorded_hash: str = Field(description="replay hash of the record")
    replayed_hash: str = Field(description="replay hash of the replay")
    problem: str = Field(description="why the replay ended early, or empty")
    notes: tuple[str, ...] = Field(description="what had to be done differently")
    differences: Annotated[int, BeforeValidator(len)] = Field(
        description="how many properties differ"
    )
    first_difference: Annotated[DifferenceOut | None, BeforeValidator(_get_first_value)] = Field(
        validation_alias=AliasPath("differences")
    )


def verification_json(verification: Verification) -> dict[str, Any]:
    """Return the JSON object of a verification."""
    return VerificationOut.model_validate(verification).model_dump(mode="json")


def replay_json(replay: Replay) -> dict[str, Any]:
    """Return the JSON object of a replay."""
    return ReplayOut.model_validate(replay).model_dump(mode="json")
