"""The JSON of evaluations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasChoices, AliasPath, BeforeValidator, Field

from tgraph.engine.json_answers import Dropped
from tgraph.engine.json_output import Output
from tgraph.extensions.lab.evaluation.metrics import GROUPS

if TYPE_CHECKING:
    from tgraph.extensions.lab.evaluation.assessments import Evaluation


def _null_if_empty(text: str | None) -> str | None:
    return text or None


class JudgeOut(Output):
    """Who made the statements or checked them; a method's figures are approximations."""

    kind: Literal["software", "method", "model", "person"]
    name: str
    version: str


Figures = dict[str, float]


class MetricsOut(Output):
    """Percentages with one decimal: unweighted means over the questions that have the figure."""

    overall: Figures = Field(description=", ".join(GROUPS["overall"]))
    retriever: Figures = Field(description=", ".join(GROUPS["retriever"]))
    generator: Figures = Field(description=", ".join(GROUPS["generator"]))


class AssessmentOut(Output):
    """One question; figures from 0 to 1."""

    query_id: str = Field(validation_alias=AliasPath("item", "query_id"))
    query: str = Field(validation_alias=AliasPath("item", "query"))
    response: str | None = Field(
        validation_alias=AliasPath("item", "response"),
        description="null where there is none, because asking failed",
    )
    metrics: Figures = Field(description="RAGChecker's eleven; empty where none")
    retrieval: Figures = Field(description="by gold; empty where the question names none")
    explain_id: Annotated[str | None, BeforeValidator(_null_if_empty)] = Field(
        validation_alias=AliasPath("item", "session"),
        description="IRI of the session that answered",
    )
    error: Annotated[str | None, BeforeValidator(_null_if_empty)] = Field(
        description="why it could not be judged"
    )


class EvaluationUsageOut(Output):
    """What the judging cost; answering is in the sessions."""

    input_tokens: int
    output_tokens: int
    calls: int


class EvaluationOut(Output):
    """What ``tgraph evaluate --json`` prints."""

    mode: str | None = Field(description="how questions were answered; null where none was asked")
    judges: tuple[JudgeOut, ...] = Field(description="empty where the file brought every label")
    approximate: bool = Field(description="whether a method judged, and no language model")
    metrics: MetricsOut
    retrieval: Figures = Field(
        description="percentages: recall@2, @5, @10, all_gold@8, mrr; empty without gold"
    )
    judged: int = Field(
        validation_alias=AliasChoices("judged", "judged_count"),
        description="questions with RAGChecker's metrics",
    )
    failed: Annotated[int, BeforeValidator(len)] = Field(
        validation_alias=AliasChoices("failed", "failed_assessments"),
        description="questions that could not be judged; they are in no mean",
    )
    questions: tuple[AssessmentOut, ...] = Field(validation_alias="assessments")
    evaluation: Annotated[str | None, BeforeValidator(_null_if_empty)] = Field(
        description="IRI of the record; null where there is no graph"
    )
    explain_collection: Annotated[str | None, BeforeValidator(_null_if_empty)]
    usage: EvaluationUsageOut
    dropped: Dropped = Field(validation_alias=AliasChoices("dropped", "dropped_counts"))


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the JSON object of an evaluation."""
    return EvaluationOut.model_validate(evaluation).model_dump(mode="json")
