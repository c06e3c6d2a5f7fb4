"""The shape of what ``tgraph evaluate --json`` prints."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tgraph.explain.evaluated import Assessment, Evaluation


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class JudgeOut(_Model):
    """Who made the statements or checked them; a method's figures are approximations."""

    kind: Literal["software", "method", "model", "person"]
    name: str
    version: str


class MetricsOut(_Model):
    """Percentages with one decimal: unweighted means over the questions that have the figure."""

    overall: dict[str, float] = Field(description="precision, recall, f1")
    retriever: dict[str, float] = Field(description="claim_recall, context_precision")
    generator: dict[str, float] = Field(
        description="context_utilization, noise_sensitivity_in_relevant,"
        " noise_sensitivity_in_irrelevant, hallucination, self_knowledge, faithfulness"
    )


class AssessmentOut(_Model):
    """One question; figures from 0 to 1."""

    query_id: str
    query: str
    response: str | None = Field(description="null where there is none, because asking failed")
    metrics: dict[str, float] = Field(description="RAGChecker's eleven; empty where none")
    retrieval: dict[str, float] = Field(description="by gold; empty where the question names none")
    explain_id: str | None = Field(description="IRI of the session that answered")
    error: str | None = Field(description="why it could not be judged")


class EvaluationUsageOut(_Model):
    """What the judging cost; answering is in the sessions."""

    input_tokens: int
    output_tokens: int
    calls: int


class EvaluationOut(_Model):
    """What ``tgraph evaluate --json`` prints."""

    mode: str | None = Field(description="how questions were answered; null where none was asked")
    judges: tuple[JudgeOut, ...] = Field(description="empty where the file brought every label")
    approximate: bool = Field(description="whether a method judged, and no language model")
    metrics: MetricsOut
    retrieval: dict[str, float] = Field(
        description="percentages: recall@2, @5, @10, all_gold@8, mrr; empty without gold"
    )
    judged: int = Field(description="questions with RAGChecker's metrics")
    failed: int = Field(description="questions that could not be judged; they are in no mean")
    questions: tuple[AssessmentOut, ...]
    evaluation: str | None = Field(description="IRI of the record; null where there is no graph")
    explain_collection: str | None
    usage: EvaluationUsageOut
    dropped: dict[str, int] = Field(description="what was left out on the way, by reason")


def evaluation_out(evaluation: Evaluation) -> EvaluationOut:
    """An evaluation as it is printed."""
    usage = evaluation.usage
    return EvaluationOut(
        mode=evaluation.mode,
        judges=tuple(
            JudgeOut(kind=agent.kind, name=agent.name, version=agent.version)
            for agent in evaluation.judges
        ),
        approximate=evaluation.approximate,
        metrics=MetricsOut(**evaluation.metrics),
        retrieval=evaluation.retrieval,
        judged=evaluation.judged,
        failed=len(evaluation.failed),
        questions=tuple(map(_assessment_out, evaluation.assessments)),
        evaluation=evaluation.evaluation or None,
        explain_collection=evaluation.explain_collection or None,
        usage=EvaluationUsageOut(
            input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, calls=usage.calls
        ),
        dropped=evaluation.dropped,
    )


def _assessment_out(assessment: Assessment) -> AssessmentOut:
    return AssessmentOut(
        query_id=assessment.item.query_id,
        query=assessment.item.query,
        response=assessment.item.response,
        metrics=dict(assessment.metrics),
        retrieval=dict(assessment.retrieval),
        explain_id=assessment.item.session or None,
        error=assessment.error or None,
    )
