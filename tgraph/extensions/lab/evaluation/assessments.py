"""The values of an evaluation, and how a person or RAGChecker reads them: rows, Markdown, JSON."""

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
    percent,
)
from tgraph.model import NO_USAGE, Agent, Usage
from tgraph.rendering import brief, many, one_line, safe
from tgraph.vocabulary import agent_iri

APPROXIMATE = (
    "These figures are approximations: sentences stand for statements and likeness for entailment,"
    " because no language model judged. Compare them with each other, not with figures that a model"
    " made."
)


@dataclass(frozen=True, slots=True)
class Assessment:
    """How one question came out: RAGChecker's metrics and those of the retrieval (0 to 1) as far as
    there is something to judge by, or ``error``: why it could not be judged."""

    item: EvaluationItem
    metrics: Mapping[str, float] = field(default_factory=dict)
    retrieval: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation: the assessments in the order of the questions, and what they come to.

    ``judges`` made the statements and checked them; there are none where the file brought every
    label. ``evaluation`` is the IRI under which it is on record, empty where it isn't.
    """

    assessments: tuple[Assessment, ...]
    mode: str | None = None
    judges: tuple[Agent, ...] = ()
    usage: Usage = NO_USAGE
    evaluation: str = ""
    explain_collection: str = ""

    __repr__ = brief

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """RAGChecker's metrics by group, in percent: unweighted means over the questions that could
        be judged. A group is empty where none could."""
        return {
            group: percent([a.metrics for a in self.assessments], names)
            for group, names in GROUPS.items()
        }

    @property
    def retrieval(self) -> dict[str, float]:
        """The retrieval metrics in percent, over the questions that name gold."""
        return percent([a.retrieval for a in self.assessments], RETRIEVAL)

    @property
    def judged(self) -> int:
        """How many questions have RAGChecker's metrics."""
        return sum(bool(a.metrics) for a in self.assessments)

    @property
    def failed(self) -> tuple[Assessment, ...]:
        """What could not be judged; it is in no mean."""
        return tuple(a for a in self.assessments if a.error)

    @property
    def approximate(self) -> bool:
        """Whether a method, and no language model, did any of the judging, now or for the file."""
        method = agent_iri("method", "", "")
        return any(j.startswith(method) for a in self.assessments for j in a.item.judges)

    @property
    def dropped(self) -> dict[str, int]:
        """What was left out on the way, by reason."""
        return dict(sum((Counter(a.dropped) for a in self.assessments), Counter[str]()))

    def to_ragchecker(self) -> dict[str, Any]:
        """The whole in RAGChecker's format."""
        rows = [ragchecker_item(a.item, a.metrics) for a in self.assessments]
        return {"results": rows, "metrics": self.metrics}

    def to_markdown(self) -> str:
        """A report for people."""
        return markdown(self)


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

Row = tuple[str, str, str]


def rows(evaluation: Evaluation) -> Iterator[tuple[str, list[Row]]]:
    """For each group that has figures its title and (metric, percent, meaning)."""
    groups = {**evaluation.metrics, "retrieval": evaluation.retrieval}
    for group, figures in groups.items():
        found = [(name, f"{value:.1f}", MEANINGS[name]) for name, value in figures.items()]
        if found:
            yield GROUP_TITLES[group], found


def questions(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    """For each question its id, three figures in percent (or why there are none), and its text."""
    for found in evaluation.assessments:
        item = found.item
        yield one_line(item.query_id, 20), *_figures(found), one_line(item.query, _QUESTION)


QUESTION_COLUMNS = ("Question", *_WORST, "Text")


def _figures(assessment: Assessment) -> list[str]:
    if assessment.error:
        return ["failed", "", ""]
    found = assessment.metrics
    return [f"{found[name] * 100:.1f}" if name in found else "" for name in _WORST]


def remarks(evaluation: Evaluation) -> Iterator[str]:
    """What to know beside the figures, a sentence each."""
    yield f"Judged: {many(evaluation.judged, 'question')} of {len(evaluation.assessments):,}."
    if evaluation.mode:
        yield f"Answered in the mode {evaluation.mode}."
    if evaluation.judges:
        names = ", ".join(dict.fromkeys(agent.name for agent in evaluation.judges))
        yield f"Judged by: {names}."
    else:
        yield "Every label was given by the file."
    if evaluation.approximate:
        yield APPROXIMATE
    for assessment in evaluation.failed:
        yield f"Failed: question {assessment.item.query_id}: {assessment.error}"
    if evaluation.dropped:
        counts = sorted(evaluation.dropped.items(), key=lambda pair: (-pair[1], pair[0]))
        yield f"Left out: {', '.join(f'{count:,} {reason}' for reason, count in counts)}."
    if evaluation.evaluation:
        yield f"Evaluation: {evaluation.evaluation}"


def markdown(evaluation: Evaluation) -> str:
    """The report as Markdown: remarks, figures in percent, a row for each question."""
    parts = ["# Evaluation", "\n".join(f"- {_cell(one_line(r))}" for r in remarks(evaluation))]
    for title, found in rows(evaluation):
        parts.append(f"## {title}\n\n{_table(('metric', '%', 'meaning'), found)}")
    parts.append(f"## Questions\n\n{_table(QUESTION_COLUMNS, list(questions(evaluation)))}")
    return "\n\n".join(parts) + "\n"


def _table(columns: Sequence[str], found: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in found]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Foreign text that can't leave its cell."""
    return safe(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
