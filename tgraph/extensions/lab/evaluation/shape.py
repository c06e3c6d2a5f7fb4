"""What ``tgraph evaluate --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping

from tgraph.engine.json_shape import JsonKey, JsonShape
from tgraph.extensions.lab.evaluation.assessments import Assessment, Evaluation
from tgraph.extensions.lab.evaluation.metrics import GROUPS
from tgraph.model import Agent, Usage


def evaluation_shape() -> JsonShape:
    """What ``tgraph evaluate --json`` prints."""
    figures = dict[str, float]
    judge = JsonShape(
        "JudgeOut",
        Agent,
        "Who made the statements or checked them; a method's figures are approximations.",
        "kind name version",
    )
    metrics = JsonShape(
        "MetricsOut",
        Mapping,
        "Percentages with one decimal: unweighted means over the questions that have the figure.",
        " ".join(GROUPS),
        given={group: JsonKey(figures, ", ".join(names)) for group, names in GROUPS.items()},
    )
    assessment = JsonShape(
        "AssessmentOut",
        Assessment,
        "One question; figures from 0 to 1.",
        "query_id=item.query_id query=item.query response=item.response metrics retrieval"
        " explain_id=item.session error",
        given={
            "query_id": JsonKey(str),
            "query": JsonKey(str),
            "response": JsonKey(str | None, "null where there is none, because asking failed"),
            "explain_id": JsonKey(
                str | None, "IRI of the session that answered", lambda a: a.item.session or None
            ),
            "error": JsonKey(str | None, "why it could not be judged", lambda a: a.error or None),
        },
    )
    usage = JsonShape(
        "EvaluationUsageOut",
        Usage,
        "What the judging cost; answering is in the sessions.",
        "input_tokens output_tokens calls",
    )
    return JsonShape(
        "EvaluationOut",
        Evaluation,
        "What ``tgraph evaluate --json`` prints.",
        "mode judges approximate metrics retrieval judged failed questions=assessments evaluation"
        " explain_collection usage dropped",
        (judge, metrics, assessment, usage),
        {
            "metrics": JsonKey(Mapping),
            "failed": JsonKey(
                int,
                "questions that could not be judged; they are in no mean",
                lambda found: len(found.failed),
            ),
            "evaluation": JsonKey(
                str | None,
                "IRI of the record; null where there is no graph",
                lambda found: found.evaluation or None,
            ),
            "explain_collection": JsonKey(
                str | None, read=lambda found: found.explain_collection or None
            ),
        },
    )
