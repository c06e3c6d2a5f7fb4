"""An evaluation as a person reads it: rows for tables, and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tgraph.explain.evaluated import APPROXIMATE, Assessment, Evaluation
from tgraph.explain.evaluation_ranking import ALL_WITHIN, DEPTHS
from tgraph.explain.safety import one_line, safe

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
    for assessment in evaluation.assessments:
        yield (
            one_line(assessment.item.query_id, 20),
            *_figures(assessment),
            one_line(assessment.item.query, _QUESTION),
        )


QUESTION_COLUMNS = ("Question", *_WORST, "Text")


def _figures(assessment: Assessment) -> list[str]:
    if assessment.error:
        return ["failed", "", ""]
    found = assessment.metrics
    return [f"{found[name] * 100:.1f}" if name in found else "" for name in _WORST]


def remarks(evaluation: Evaluation) -> Iterator[str]:
    """What to know beside the figures, a sentence each."""
    total, failed = len(evaluation.assessments), evaluation.failed
    judged = "1 question" if evaluation.judged == 1 else f"{evaluation.judged:,} questions"
    yield f"Judged: {judged} of {total:,}."
    if evaluation.mode:
        yield f"Answered in the mode {evaluation.mode}."
    if evaluation.judges:
        names = ", ".join(dict.fromkeys(agent.name for agent in evaluation.judges))
        yield f"Judged by: {names}."
    else:
        yield "Every label was given by the file."
    if evaluation.approximate:
        yield APPROXIMATE
    for assessment in failed:
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
