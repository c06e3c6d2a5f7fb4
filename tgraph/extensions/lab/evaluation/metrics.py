"""The figures of an evaluation: RAGChecker's eleven metrics, from labels alone.

Definitions: Ru et al. 2024 (arXiv:2408.08067) as RAGChecker 0.1.9 computes them, its edge cases
included: without statements or without context a figure is 0. "X2Y" says whether X entails the
statements of Y; only the label ``Entailment`` counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from tgraph import vocabulary as v
from tgraph.answer.entailment import ENTAILMENT, Statement
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
    """The metrics that these name, by themselves or by their group (``overall``, ``retriever``,
    ``generator``, ``all``, also with RAGChecker's ``_metrics`` behind it); all where none is named.
    ``UsageError`` for a name that is neither."""
    found: set[str] = set()
    for name in names:
        group = name.removesuffix("_metrics")
        known = {"all": METRICS, **GROUPS}.get(group, (name,) if name in METRICS else ())
        if not known:
            remedy = nearest_names(name, (*GROUPS, "all", *METRICS), most=3)
            raise UsageError(f"There is no metric {name!r}.", remedy)
        found.update(known)
    return tuple(name for name in METRICS if name in found) or METRICS


def labels_for(metrics: Sequence[str]) -> frozenset[str]:
    """The labels that the metrics are computed from."""
    return frozenset(label for metric in metrics for label in LABELS[metric])


def need_answer(metrics: Sequence[str]) -> bool:
    """Whether any of the metrics compares with the right answer."""
    return labels_for(metrics) != {_GROUNDED}


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

    def is_checked(self, metrics: Sequence[str] = METRICS) -> bool:
        """Whether every label is there that the metrics are computed from."""
        return all(getattr(self, label) is not None for label in labels_for(metrics))


def metrics_of(item: EvaluationItem, metrics: Sequence[str] = METRICS) -> dict[str, float]:
    """The metrics of one question, by default all eleven, each from 0 to 1. ``ValueError`` where
    labels lack that they are computed from."""
    if not item.is_checked(metrics):
        raise ValueError(f"question {item.query_id} has not been checked")
    statements = max(len(item.answer2response or ()), len(item.retrieved2response or ()))
    expected = max(len(item.response2answer or ()), len(item.retrieved2answer or ()))
    nothing = ((),)  # in the place of labels that none of the metrics needs
    found = _figures_of(
        _true(item.answer2response or statements * ("",)),
        _true(item.response2answer or expected * ("",)),
        [_true(row) for row in item.retrieved2response or statements * nothing],
        [_true(row) for row in item.retrieved2answer or expected * nothing],
    )
    return {name: found[name] for name in METRICS if name in metrics}


def _figures_of(
    correct: Sequence[bool],
    said: Sequence[bool],
    by_response: Sequence[Sequence[bool]],
    by_answer: Sequence[Sequence[bool]],
) -> dict[str, float]:
    """All eleven."""
    precision, recall = _mean(correct), _mean(said)
    both = precision and recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if both else 0.0,
        "claim_recall": _mean(list(map(any, by_answer))),
        "context_precision": _mean(_relevant(by_answer)),
        # of the right statements that the context holds, the share that the response states
        "context_utilization": _mean(list(compress(said, map(any, by_answer)))),
        **_noise(by_response, by_answer, correct),
        **_grounds(by_response, correct),
    }


def _relevant(by_answer: Sequence[Sequence[bool]]) -> list[bool]:
    """Which contexts entail at least one statement of the right answer."""
    return [any(column) for column in zip(*by_answer, strict=True)]


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
    faithful = list(map(any, by_response))
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

    columns = {name: [one[name] for one in figures if name in one] for name in names}
    return {n: float(np.round(np.mean(values) * 100, 1)) for n, values in columns.items() if values}


def _true(labels: Sequence[str]) -> list[bool]:
    return [label == ENTAILMENT for label in labels]


def _mean(truths: Sequence[bool]) -> float:
    return sum(truths) / len(truths) if truths else 0.0


# --- retrieval, by gold ---

DEPTHS = (2, 5, 10)
ALL_WITHIN = 8
RETRIEVAL = (*(f"recall@{k}" for k in DEPTHS), f"all_gold@{ALL_WITHIN}", "mrr")
"""The figures; the depths are those of HippoRAG's and tgraph's own benchmarks."""

_RUN = 3
_ENOUGH = 0.5


def retrieval_metrics(item: EvaluationItem) -> dict[str, float]:
    """The figures of one question, each from 0 to 1; none where it names no gold.

    Recall@k is the share of the gold among the first k texts (documents, where only these are
    named), all_gold whether all of it is there, mrr one divided by the first rank that holds any.
    """
    ranking = item.context if item.ranking is None else item.ranking
    if item.gold_passages:
        gold: Sequence[str] = tuple(dict.fromkeys(item.gold_passages))
        found = [_passages_in(text, gold) for text in ranking]
    elif item.gold_documents:
        gold = tuple(dict.fromkeys(item.gold_documents))
        found = [_documents_in(text, gold) for text in _by_document(ranking)]
    else:
        return {}
    return _figures(found, len(gold))


def _figures(found: Sequence[frozenset[int]], size: int) -> dict[str, float]:
    def within(depth: int) -> int:
        return len(frozenset().union(*found[:depth]))

    first = next((rank for rank, hits in enumerate(found, 1) if hits), 0)
    return {
        **{f"recall@{k}": within(k) / size for k in DEPTHS},
        f"all_gold@{ALL_WITHIN}": float(within(ALL_WITHIN) == size),
        "mrr": 1 / first if first else 0.0,
    }


def _by_document(ranking: Sequence[ContextText]) -> list[ContextText]:
    """The first text of each document."""
    first: dict[str, ContextText] = {}
    for text in ranking:
        first.setdefault(text.names[0] if text.names else text.doc_id, text)
    return list(first.values())


def _documents_in(text: ContextText, gold: Sequence[str]) -> frozenset[int]:
    names = {name.casefold() for name in (text.doc_id, *text.names)}
    return frozenset(
        at
        for at, wanted in enumerate(gold)
        if any(f"/{name}".endswith(f"/{wanted.casefold()}") for name in names)
    )


def _passages_in(text: ContextText, gold: Sequence[str]) -> frozenset[int]:
    named = _documents_in(text, gold)  # a passage may be given by its id
    return named | {at for at, passage in enumerate(gold) if _holds(text.text, passage)}


def _holds(text: str, passage: str) -> bool:
    """Whether the text holds the passage, or half of its runs of three words: a passage may go
    across the border of two chunks."""
    ours, wanted = words(text), words(passage)
    if not ours or not wanted:
        return False
    if f" {' '.join(wanted)} " in f" {' '.join(ours)} ":
        return True
    runs = _runs(wanted)
    return bool(runs) and len(runs & _runs(ours)) >= _ENOUGH * len(runs)


def _runs(found: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(found[at : at + _RUN]) for at in range(len(found) - _RUN + 1)}


# --- contexts ---

_EVIDENCE = 3


def shown_context(answer: Answer) -> tuple[ContextText, ...]:
    """What the answer was written from: of edges the quotes shown for them, those of a chunk in
    their order; of other items their texts. A chunk that was shown whole stands for its quotes."""
    quotes: dict[str, list[tuple[int, str]]] = {}
    whole: dict[str, str] = {}
    for selected in answer.selection:
        item = selected.item
        if not isinstance(item, Edge):
            whole[item.iri] = item.text
            quotes.setdefault(item.iri, [])
            continue
        for evidence in selected.candidate.evidence:
            quotes.setdefault(evidence.chunk, []).append((evidence.start, evidence.quote))
        if not selected.candidate.evidence:
            quotes.setdefault(item.iri, []).append((0, item.text))
    return tuple(
        ContextText(iri, whole.get(iri) or "\n".join(text for _, text in sorted(set(places))))
        for iri, places in quotes.items()
    )


def ranking_of(trace: Trace, store: Store, texts: Texts) -> tuple[ContextText, ...]:
    """The chunks that were retrieved, best first, each with the names of its document.

    Where a mode retrieves no chunks they are those that hold the evidence of what it does; those
    that points were drawn from come first.
    """
    items = sorted((*trace.selected, *trace.rejected), key=lambda item: item.rank)
    chunks = [item.item for item in items if item.kind == "chunk"]
    drawn = [e.chunk for item in items if item.kind == "point" for e in item.evidence]
    found = dict.fromkeys([*drawn, *(chunks or _chunks_of_evidence(items, store, texts))])
    documents = documents_of(store, {document_of_chunk(chunk) for chunk in found})
    return tuple(
        ContextText(chunk, texts.of_chunk(chunk), _names(chunk, documents)) for chunk in found
    )


def _chunks_of_evidence(items: Sequence[TraceItem], store: Store, texts: Texts) -> Iterator[str]:
    edges = [item.item for item in items if item.kind == "edge"]
    of_edges = stored_evidence(store, texts).of_edges(edges, _EVIDENCE)
    for item in items:
        yield from (e.chunk for e in of_edges.get(item.item, ()))
        yield from (e.chunk for e in item.evidence)


def _names(chunk: str, documents: dict[str, tuple[str, str]]) -> tuple[str, ...]:
    """What a document may be called by: IRI, content hash, title, path, name of the file."""
    document = document_of_chunk(chunk)
    title, path = documents.get(document, ("", ""))
    names = (document, document.removeprefix(v.document_iri("")), title, path)
    return tuple(name for name in (*names, path.rpartition("/")[2]) if name)
