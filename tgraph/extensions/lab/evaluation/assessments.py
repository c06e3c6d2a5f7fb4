"""Evaluation values and their presentation for people or RAGChecker: rows, Markdown, JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tgraph.extensions.lab.evaluation.files import ragchecker_item
from tgraph.extensions.lab.evaluation.metrics import (
    ALL_WITHIN,
    DEPTHS,
    GROUPS,
    RETRIEVAL,
    EvaluationItem,
    mean_percent,
)
from tgraph.model import NO_USAGE, Agent, Usage
from tgraph.rendering import brief_repr, escape_controls, format_count, one_line
from tgraph.vocabulary import agent_iri

APPROXIMATE = (
    "These figures are approximations: sentences stand for statements and likeness for entailment,"
    " because no language model judged. Compare them with each other, not with figures that a model"
    " made."
)


@dataclass(frozen=True, slots=True)
class Assessment:
    """An assessed question: RAGChecker metrics and retrieval metrics (0 to 1) where labels or
    gold exist, or ``error`` explaining failed judging."""

    item: EvaluationItem
    metrics: Mapping[str, float] = field(default_factory=dict)
    retrieval: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation: assessments in question order, and summary metrics.

    ``judges`` extracted and checked statements; the tuple is empty if the file brought every
    label. ``evaluation`` is the recorded IRI, empty if unrecorded."""

    assessments: tuple[Assessment, ...]
    mode: str | None = None
    judges: tuple[Agent, ...] = ()
    usage: Usage = NO_USAGE
    evaluation: str = ""
    explain_collection: str = ""

    __repr__ = brief_repr

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """RAGChecker metrics by group, in percent: unweighted means over judged questions.

        A group without judged questions is empty."""
        return {
            group: mean_percent([a.metrics for a in self.assessments], names)
            for group, names in GROUPS.items()
        }

    @property
    def retrieval(self) -> dict[str, float]:
        """Retrieval metrics in percent, over questions with gold."""
        return mean_percent([a.retrieval for a in self.assessments], RETRIEVAL)

    @property
    def judged_count(self) -> int:
        """Number of questions with RAGChecker metrics."""
        return sum(bool(a.metrics) for a in self.assessments)

    @property
    def failed_assessments(self) -> tuple[Assessment, ...]:
        """Assessments of failed questions, excluded from all means."""
        return tuple(a for a in self.assessments if a.error)

    @property
    def approximate(self) -> bool:
        """Whether a method without language model produced any judgement, now or for the file."""
        method = agent_iri("method", "", "")
        return any(j.startswith(method) for a in self.assessments for j in a.item.judges)

    @property
    def dropped_counts(self) -> dict[str, int]:
        """Counts of dropped content, by reason."""
        return dict(sum((Counter(a.dropped) for a in self.assessments), Counter[str]()))

    def to_ragchecker(self) -> dict[str, Any]:
        """Return the evaluation in RAGChecker's format."""
        rows = [ragchecker_item(a.item, a.metrics) for a in self.assessments]
        return {"results": rows, "metrics": self.metrics}

    def to_markdown(self) -> str:
        """Return a Markdown report."""
        return format_markdown(self)


GROUP_TITLES = {
    "overall": "Answers",
    "retriever": "Retrieval, by statements",
    "generator": "Generation",
    "retrieval": "Retrieval, by gold",
}
MEANINGS = {
    "precision": "of what the answers state, this much is right",
    "recall": "of what the right answers state, this much is said",
    "f1": "both in one",
    "claim_recall": "of what the right answers state, this much is in the context",
    "context_precision": "of the contexts, this many hold something of the right answer",
    "context_utilization": "of what is right and in the context, this much is said",
    "noise_sensitivity_in_relevant": "wrong, and taken from a context that helps",
    "noise_sensitivity_in_irrelevant": "wrong, and taken from a context that doesn't help",
    "hallucination": "wrong, and in no context",
    "self_knowledge": "right, and in no context",
    "faithfulness": "of what the answers state, this much is in the context",
    **{f"recall@{k}": f"of the gold, this much is among the first {k}" for k in DEPTHS},
    f"all_gold@{ALL_WITHIN}": f"all of the gold is among the first {ALL_WITHIN}",
    "mrr": "one divided by the rank of the first gold",
}
_WORST = ("f1", "faithfulness", "claim_recall")
_QUESTION = 70

TableRow = tuple[str, str, str]


def metric_rows(evaluation: Evaluation) -> Iterator[tuple[str, list[TableRow]]]:
    """Yield metric groups with figures: group title and rows (metric, percent, meaning)."""
    groups = {**evaluation.metrics, "retrieval": evaluation.retrieval}
    for group, figures in groups.items():
        table_rows = [(name, f"{value:.1f}", MEANINGS[name]) for name, value in figures.items()]
        if table_rows:
            yield GROUP_TITLES[group], table_rows


def question_rows(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    """Yield question rows: question ID, three figures in percent (or a failure note), question
    text."""
    for assessment in evaluation.assessments:
        item = assessment.item
        yield (
            one_line(item.query_id, 20),
            *_question_figures(assessment),
            one_line(item.query, _QUESTION),
        )


QUESTION_COLUMNS = ("Question", *_WORST, "Text")


def _question_figures(assessment: Assessment) -> list[str]:
    if assessment.error:
        return ["failed", "", ""]
    metrics = assessment.metrics
    return [f"{metrics[name] * 100:.1f}" if name in metrics else "" for name in _WORST]


def evaluation_remarks(evaluation: Evaluation) -> Iterator[str]:
    """Yield remarks about the evaluation, a sentence each."""
    judged = format_count(evaluation.judged_count, "question")
    yield f"Judged: {judged} of {len(evaluation.assessments):,}."
    if evaluation.mode:
        yield f"Answered in the mode {evaluation.mode}."
    if evaluation.judges:
        names = ", ".join(dict.fromkeys(agent.name for agent in evaluation.judges))
        yield f"Judged by: {names}."
    else:
        yield "Every label was given by the file."
    if evaluation.approximate:
        yield APPROXIMATE
    for assessment in evaluation.failed_assessments:
        yield f"Failed: question {assessment.item.query_id}: {assessment.error}"
    if evaluation.dropped_counts:
        counts = sorted(evaluation.dropped_counts.items(), key=lambda pair: (-pair[1], pair[0]))
        yield f"Left out: {', '.join(f'{count:,} {reason}' for reason, count in counts)}."
    if evaluation.evaluation:
        yield f"Evaluation: {evaluation.evaluation}"


def format_markdown(evaluation: Evaluation) -> str:
    """The report as Markdown: remarks, figures in percent, a row for each question."""
    parts = [
        "# Evaluation",
        "\n".join(f"- {_escape_cell(one_line(r))}" for r in evaluation_remarks(evaluation)),
    ]
    for title, table_rows in metric_rows(evaluation):
        parts.append(f"## {title}\n\n{_markdown_table(('metric', '%', 'meaning'), table_rows)}")
    parts.append(
        f"## Questions\n\n{_markdown_table(QUESTION_COLUMNS, list(question_rows(evaluation)))}"
    )
    return "\n\n".join(parts) + "\n"


def _markdown_table(columns: Sequence[str], found: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(map(_escape_cell, row))} |" for row in found]
    return "\n".join(lines)


def _escape_cell(text: str) -> str:
    """Foreign text that can't leave its cell."""
    return escape_controls(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
