"""Evaluation metrics: RAGChecker's eleven figures, computed from labels alone.

Definitions: Ru et al. 2024 (arXiv:2408.08067) as RAGChecker 0.1.9 computes them, including edge
cases: without statements or context a figure is 0. "X2Y" says whether X entails the statements
of Y; only the label ``Entailment`` counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from tgraph import vocabulary as v
from tgraph.answer.entailment import ENTAILMENT, StatementWords
from tgraph.errors import UsageError, nearest_names
from tgraph.explain.trace.values import Trace, TraceItem
from tgraph.index.evidence import documents_of, stored_evidence
from tgraph.index.sources import Texts, document_of_chunk
from tgraph.model import Answer, Edge
from tgraph.retrieve.text.lexical import words
from tgraph.store.base import Store

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

_ANSWER, _SAID = "answer2response", "response2answer"
_GROUNDED, _HELD = "retrieved2response", "retrieved2answer"
LABELS: Mapping[str, tuple[str, ...]] = {
    "precision": (_ANSWER,),
    "recall": (_SAID,),
    "f1": (_ANSWER, _SAID),
    "claim_recall": (_HELD,),
    "context_precision": (_HELD,),
    "context_utilization": (_SAID, _HELD),
    "noise_sensitivity_in_relevant": (_ANSWER, _GROUNDED, _HELD),
    "noise_sensitivity_in_irrelevant": (_ANSWER, _GROUNDED, _HELD),
    "hallucination": (_ANSWER, _GROUNDED),
    "self_knowledge": (_ANSWER, _GROUNDED),
    "faithfulness": (_GROUNDED,),
}
"""The labels that each metric is computed from."""


def chosen_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Return metrics selected by metric name or group name (``overall``, ``retriever``,
    ``generator``, ``all``, also with RAGChecker's ``_metrics`` suffix); all metrics without
    names. Raise ``UsageError`` for unknown names."""
    selected: set[str] = set()
    for name in names:
        group = name.removesuffix("_metrics")
        group_metrics = {"all": METRICS, **GROUPS}.get(group, (name,) if name in METRICS else ())
        if not group_metrics:
            remedy = nearest_names(name, (*GROUPS, "all", *METRICS), most=3)
            raise UsageError(f"There is no metric {name!r}.", remedy)
        selected.update(group_metrics)
    return tuple(name for name in METRICS if name in selected) or METRICS


def labels_for(metrics: Sequence[str]) -> frozenset[str]:
    """Return labels required by the metrics."""
    return frozenset(label for metric in metrics for label in LABELS[metric])


def need_answer(metrics: Sequence[str]) -> bool:
    """Tell whether any metric compares with the expected answer."""
    return labels_for(metrics) != {_GROUNDED}


Matrix = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ContextText:
    """A context text retrieved for a question; ``names`` are names used in gold entries."""

    doc_id: str
    text: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationItem:
    """An evaluation question with its answer, context, statements and labels; None means
    missing.

    A matrix has one row per statement, one label per context in a row. ``ranking`` lists
    retrieved texts, best first, if more than the context. ``session`` is the answering
    session's IRI, ``refused`` tells that it found no evidence. ``judges`` are IRIs of agents
    that made statements or labels."""

    query_id: str
    query: str
    gt_answer: str = ""
    response: str | None = None
    context: tuple[ContextText, ...] = ()
    gold_documents: tuple[str, ...] = ()
    gold_passages: tuple[str, ...] = ()
    response_claims: tuple[StatementWords, ...] | None = None
    gt_answer_claims: tuple[StatementWords, ...] | None = None
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
        """True if an expected answer exists; otherwise only retrieval can be judged."""
        return bool(self.gt_answer.strip()) or self.gt_answer_claims is not None

    def is_checked(self, metrics: Sequence[str] = METRICS) -> bool:
        """Tell whether all labels required by the metrics are present."""
        return all(getattr(self, label) is not None for label in labels_for(metrics))


def metrics_of(item: EvaluationItem, metrics: Sequence[str] = METRICS) -> dict[str, float]:
    """Return question metrics between 0 and 1, by default all eleven.

    Raise ``ValueError`` if required labels are missing."""
    if not item.is_checked(metrics):
        raise ValueError(f"question {item.query_id} has not been checked")
    statements = max(len(item.answer2response or ()), len(item.retrieved2response or ()))
    expected = max(len(item.response2answer or ()), len(item.retrieved2answer or ()))
    nothing = ((),)  # in the place of labels that none of the metrics needs
    figures = _figures_of(
        _entailed_flags(item.answer2response or statements * ("",)),
        _entailed_flags(item.response2answer or expected * ("",)),
        [_entailed_flags(row) for row in item.retrieved2response or statements * nothing],
        [_entailed_flags(row) for row in item.retrieved2answer or expected * nothing],
    )
    return {name: figures[name] for name in METRICS if name in metrics}


def _figures_of(
    correct: Sequence[bool],
    said: Sequence[bool],
    by_response: Sequence[Sequence[bool]],
    by_answer: Sequence[Sequence[bool]],
) -> dict[str, float]:
    """Return all eleven RAGChecker metrics."""
    precision, recall = _mean_truth(correct), _mean_truth(said)
    is_defined = precision and recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if is_defined else 0.0,
        "claim_recall": _mean_truth(list(map(any, by_answer))),
        "context_precision": _mean_truth(_find_relevant(by_answer)),
        # of the right statements that the context holds, the share that the response states
        "context_utilization": _mean_truth(list(compress(said, map(any, by_answer)))),
        **_noise_sensitivity(by_response, by_answer, correct),
        **_grounding_shares(by_response, correct),
    }


def _find_relevant(by_answer: Sequence[Sequence[bool]]) -> list[bool]:
    """Return flags for relevant contexts, which entail at least one statement of the expected
    answer."""
    return [any(column) for column in zip(*by_answer, strict=True)]


def _noise_sensitivity(
    by_response: Sequence[Sequence[bool]],
    by_answer: Sequence[Sequence[bool]],
    correct: Sequence[bool],
) -> dict[str, float]:
    """Return shares of wrong statements from relevant and from irrelevant contexts."""
    relevant = _find_relevant(by_answer)
    inside, outside = [], []
    for row, right in zip(by_response, correct, strict=True):
        sources = set() if right else {r for r, there in zip(relevant, row, strict=False) if there}
        inside.append(True in sources)
        outside.append(sources == {False})
    return {
        "noise_sensitivity_in_relevant": _mean_truth(inside),
        "noise_sensitivity_in_irrelevant": _mean_truth(outside),
    }


def _grounding_shares(
    by_response: Sequence[Sequence[bool]], correct: Sequence[bool]
) -> dict[str, float]:
    """Return shares of ungrounded wrong statements, ungrounded right statements, and statements
    entailed by a context."""
    if not any(by_response):
        return dict.fromkeys(("hallucination", "self_knowledge", "faithfulness"), 0.0)
    faithful = list(map(any, by_response))
    pairs = list(zip(faithful, correct, strict=True))
    return {
        "hallucination": _mean_truth([not grounded and not right for grounded, right in pairs]),
        "self_knowledge": _mean_truth([not grounded and right for grounded, right in pairs]),
        "faithfulness": _mean_truth(faithful),
    }


def mean_percent(figures: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, float]:
    """Return mean figures in percent with one decimal, as RAGChecker prints them.

    A question without a figure does not count for its mean; a figure missing from all questions
    is left out."""
    import numpy as np

    columns = {
        name: [question_figures[name] for question_figures in figures if name in question_figures]
        for name in names
    }
    return {n: float(np.round(np.mean(values) * 100, 1)) for n, values in columns.items() if values}


def _entailed_flags(labels: Sequence[str]) -> list[bool]:
    return [label == ENTAILMENT for label in labels]


def _mean_truth(truths: Sequence[bool]) -> float:
    return sum(truths) / len(truths) if truths else 0.0


# --- retrieval, by gold ---

DEPTHS = (2, 5, 10)
ALL_WITHIN = 8
RETRIEVAL = (*(f"recall@{k}" for k in DEPTHS), f"all_gold@{ALL_WITHIN}", "mrr")
"""The figures; the depths are those of HippoRAG's and tgraph's own benchmarks."""

_RUN = 3
_ENOUGH = 0.5


def retrieval_metrics(item: EvaluationItem) -> dict[str, float]:
    """Return retrieval metrics between 0 and 1; empty without gold.

    Recall@k is the share of gold among the first k texts (documents, if only documents are
    given), all_gold whether all gold is present, mrr one divided by the first rank with gold."""
    ranking = item.context if item.ranking is None else item.ranking
    if item.gold_passages:
        gold: Sequence[str] = tuple(dict.fromkeys(item.gold_passages))
        matches = [_passages_in(text, gold) for text in ranking]
    elif item.gold_documents:
        gold = tuple(dict.fromkeys(item.gold_documents))
        matches = [_documents_in(text, gold) for text in _by_document(ranking)]
    else:
        return {}
    return _ranking_figures(matches, len(gold))


def _ranking_figures(found: Sequence[frozenset[int]], size: int) -> dict[str, float]:
    def count_within(depth: int) -> int:
        return len(frozenset().union(*found[:depth]))

    first = next((rank for rank, hits in enumerate(found, 1) if hits), 0)
    return {
        **{f"recall@{k}": count_within(k) / size for k in DEPTHS},
        f"all_gold@{ALL_WITHIN}": float(count_within(ALL_WITHIN) == size),
        "mrr": 1 / first if first else 0.0,
    }


def _by_document(ranking: Sequence[ContextText]) -> list[ContextText]:
    """Return the first text per document."""
    first: dict[str, ContextText] = {}
    for text in ranking:
        first.setdefault(text.names[0] if text.names else text.doc_id, text)
    return list(first.values())


def _documents_in(text: ContextText, gold: Sequence[str]) -> frozenset[int]:
    names = {name.casefold() for name in (text.doc_id, *text.names)}
    return frozenset(
        at
        for at, gold_name in enumerate(gold)
        if any(f"/{name}".endswith(f"/{gold_name.casefold()}") for name in names)
    )


def _passages_in(text: ContextText, gold: Sequence[str]) -> frozenset[int]:
    named_positions = _documents_in(text, gold)  # a passage may be given by its id
    return named_positions | {
        at for at, passage in enumerate(gold) if _holds_passage(text.text, passage)
    }


def _holds_passage(text: str, passage: str) -> bool:
    """Tell whether a text contains the passage, or half of its three-word runs: a passage may
    cross a chunk border."""
    ours, passage_words = words(text), words(passage)
    if not ours or not passage_words:
        return False
    if f" {' '.join(passage_words)} " in f" {' '.join(ours)} ":
        return True
    runs = _word_runs(passage_words)
    return bool(runs) and len(runs & _word_runs(ours)) >= _ENOUGH * len(runs)


def _word_runs(found: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(found[at : at + _RUN]) for at in range(len(found) - _RUN + 1)}


# --- contexts ---

_EVIDENCE = 3


def shown_context(answer: Answer) -> tuple[ContextText, ...]:
    """Return context texts shown to the answer writer: edge quotes grouped by chunk in text
    order, and texts of other items.

    A chunk shown completely replaces its quotes."""
    quotes: dict[str, list[tuple[int, str]]] = {}
    complete_texts: dict[str, str] = {}
    for selected in answer.selection:
        item = selected.item
        if not isinstance(item, Edge):
            complete_texts[item.iri] = item.text
            quotes.setdefault(item.iri, [])
            continue
        for evidence in selected.candidate.evidence:
            quotes.setdefault(evidence.chunk, []).append((evidence.start, evidence.quote))
        if not selected.candidate.evidence:
            quotes.setdefault(item.iri, []).append((0, item.text))
    return tuple(
        ContextText(
            iri, complete_texts.get(iri) or "\n".join(text for _, text in sorted(set(places)))
        )
        for iri, places in quotes.items()
    )


def ranking_of(trace: Trace, store: Store, texts: Texts) -> tuple[ContextText, ...]:
    """Return retrieved chunks, best first, with document names.

    For modes without chunk retrieval, chunks containing item evidence are returned; source
    chunks of points come first."""
    items = sorted((*trace.selected, *trace.rejected), key=lambda item: item.rank)
    chunks = [item.item for item in items if item.kind == "chunk"]
    drawn = [e.chunk for item in items if item.kind == "point" for e in item.evidence]
    ordered_chunks = dict.fromkeys([*drawn, *(chunks or _chunks_of_evidence(items, store, texts))])
    documents = documents_of(store, {document_of_chunk(chunk) for chunk in ordered_chunks})
    return tuple(
        ContextText(chunk, texts.of_chunk(chunk), _document_names(chunk, documents))
        for chunk in ordered_chunks
    )


def _chunks_of_evidence(items: Sequence[TraceItem], store: Store, texts: Texts) -> Iterator[str]:
    edges = [item.item for item in items if item.kind == "edge"]
    of_edges = stored_evidence(store, texts).of_edges(edges, _EVIDENCE)
    for item in items:
        yield from (e.chunk for e in of_edges.get(item.item, ()))
        yield from (e.chunk for e in item.evidence)


def _document_names(chunk: str, documents: dict[str, tuple[str, str]]) -> tuple[str, ...]:
    """Return names of a document: IRI, content hash, title, path, file name."""
    document = document_of_chunk(chunk)
    title, path = documents.get(document, ("", ""))
    names = (document, document.removeprefix(v.document_iri("")), title, path)
    return tuple(name for name in (*names, path.rpartition("/")[2]) if name)
