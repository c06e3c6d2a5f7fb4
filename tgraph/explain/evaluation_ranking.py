"""How well was retrieved what the gold of a question says should be: recall, rank, all of it."""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.explain.evaluation import ContextText, EvaluationItem
from tgraph.retrieve.lexical import words

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
        if any(
            name == wanted.casefold() or name.endswith(f"/{wanted.casefold()}") for name in names
        )
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
