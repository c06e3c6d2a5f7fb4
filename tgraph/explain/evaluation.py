"""The figures of an evaluation: RAGChecker's eleven metrics, from labels alone.

Definitions: Ru et al. 2024 (arXiv:2408.08067) as RAGChecker 0.1.9 computes them, its edge cases
included: without statements or without context a figure is 0. "X2Y" says whether X entails the
statements of Y; only the label ``Entailment`` counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tgraph.answer.judging import ENTAILMENT, Statement

GROUPS: Mapping[str, tuple[str, ...]] = {
    "overall": ("precision", "recall", "f1"),
    "retriever": ("claim_recall", "context_precision"),
    "generator": (
        "context_utilization",
        "noise_sensitivity_in_relevant",
        "noise_sensitivity_in_irrelevant",
        "hallucination",
        "self_knowledge",
        "faithfulness",
    ),
}
"""RAGChecker's metrics by what they judge."""

METRICS = tuple(name for names in GROUPS.values() for name in names)
Matrix = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ContextText:
    """A text that was retrieved for a question. ``names`` are what a gold entry may call it by."""

    doc_id: str
    text: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationItem:
    """One question with what there is of answer, context, statements and labels; None: not yet.

    A matrix has a row for each statement and in it a label for each context. ``ranking`` is what
    was retrieved, best first, where that is more than the context. ``session`` is the IRI of the
    session that answered, ``refused`` says that it found no evidence. ``judges`` are the IRIs of
    the agents that made statements or labels.
    """

    query_id: str
    query: str
    gt_answer: str = ""
    response: str | None = None
    context: tuple[ContextText, ...] = ()
    gold_documents: tuple[str, ...] = ()
    gold_passages: tuple[str, ...] = ()
    response_claims: tuple[Statement, ...] | None = None
    gt_answer_claims: tuple[Statement, ...] | None = None
    answer2response: tuple[str, ...] | None = None
    response2answer: tuple[str, ...] | None = None
    retrieved2response: Matrix | None = None
    retrieved2answer: Matrix | None = None
    ranking: tuple[ContextText, ...] | None = None
    session: str = ""
    refused: bool = False
    judges: tuple[str, ...] = ()

    @property
    def has_answer(self) -> bool:
        """Whether there is a right answer to judge by; else only the retrieval can be judged."""
        return bool(self.gt_answer.strip()) or self.gt_answer_claims is not None

    @property
    def is_checked(self) -> bool:
        """Whether every label is there."""
        return None not in (
            self.answer2response,
            self.response2answer,
            self.retrieved2response,
            self.retrieved2answer,
        )


def metrics_of(item: EvaluationItem) -> dict[str, float]:
    """The eleven metrics of one question, each from 0 to 1. ``ValueError`` where labels lack."""
    if (
        item.answer2response is None
        or item.response2answer is None
        or item.retrieved2response is None
        or item.retrieved2answer is None
    ):
        raise ValueError(f"question {item.query_id} has not been checked")
    correct, said = _true(item.answer2response), _true(item.response2answer)
    by_response = [_true(row) for row in item.retrieved2response]
    by_answer = [_true(row) for row in item.retrieved2answer]
    precision, recall = _mean(correct), _mean(said)
    both = precision and recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if both else 0.0,
        **_retriever(by_answer),
        "context_utilization": _utilization(by_answer, said),
        **_noise(by_response, by_answer, correct),
        **_grounds(by_response, correct),
    }


def _retriever(by_answer: Sequence[Sequence[bool]]) -> dict[str, float]:
    return {
        "claim_recall": _mean([any(row) for row in by_answer]),
        "context_precision": _mean(_relevant(by_answer)),
    }


def _relevant(by_answer: Sequence[Sequence[bool]]) -> list[bool]:
    """Which contexts entail at least one statement of the right answer."""
    return [any(column) for column in zip(*by_answer, strict=True)]


def _utilization(by_answer: Sequence[Sequence[bool]], said: Sequence[bool]) -> float:
    """Of the right statements that the context holds, the share that the response states."""
    used = [there for row, there in zip(by_answer, said, strict=True) if any(row)]
    return _mean(used)


def _noise(
    by_response: Sequence[Sequence[bool]],
    by_answer: Sequence[Sequence[bool]],
    correct: Sequence[bool],
) -> dict[str, float]:
    """Wrong statements that come from a relevant context, or else from an irrelevant one."""
    relevant = _relevant(by_answer)
    inside, outside = [], []
    for row, right in zip(by_response, correct, strict=True):
        sources = set() if right else {r for r, there in zip(relevant, row, strict=False) if there}
        inside.append(True in sources)
        outside.append(sources == {False})
    return {
        "noise_sensitivity_in_relevant": _mean(inside),
        "noise_sensitivity_in_irrelevant": _mean(outside),
    }


def _grounds(by_response: Sequence[Sequence[bool]], correct: Sequence[bool]) -> dict[str, float]:
    """Statements that no context entails, wrong and right, and those that one does."""
    if not any(by_response):
        return dict.fromkeys(("hallucination", "self_knowledge", "faithfulness"), 0.0)
    faithful = [any(row) for row in by_response]
    pairs = list(zip(faithful, correct, strict=True))
    return {
        "hallucination": _mean([not grounded and not right for grounded, right in pairs]),
        "self_knowledge": _mean([not grounded and right for grounded, right in pairs]),
        "faithfulness": _mean(faithful),
    }


def percent(figures: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, float]:
    """The means of the figures times 100 with one decimal, as RAGChecker prints them; a question
    that lacks a figure doesn't count for it, and a figure that no question has is left out."""
    import numpy as np

    means = {}
    for name in names:
        values = [one[name] for one in figures if name in one]
        if values:
            means[name] = float(np.round(np.mean(values) * 100, 1))
    return means


def _true(labels: Sequence[str]) -> list[bool]:
    return [label == ENTAILMENT for label in labels]


def _mean(truths: Sequence[bool]) -> float:
    return sum(truths) / len(truths) if truths else 0.0
