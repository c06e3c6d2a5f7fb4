"""The retrieval modes by name, each made of the parts that do its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tgraph.engine.methods import Bypass, Method, TwoStages
from tgraph.engine.parts import PROMPT, Parts
from tgraph.errors import UsageError, nearest_names
from tgraph.model import Candidate, Retrieval
from tgraph.retrieve.base import Context, Keywords, Question, Retriever

if TYPE_CHECKING:
    from tgraph.answer.base import Selector
    from tgraph.answer.keywords import KeywordFinder
    from tgraph.retrieve.ppr import SeedFilter
    from tgraph.settings import BasicSearchSettings


AUTO = "auto"
"""What stands for the mode that a question asks for (``tgraph.engine.auto``)."""


def method_of(mode: str, parts: Parts) -> Method:
    """The method of a mode. ``UsageError`` for a mode that there is not."""
    if mode not in MODES:
        known = (*MODES, AUTO)
        remedy = nearest_names(mode, known, most=len(known))
        raise UsageError(f"There is no mode {mode!r}.", remedy)
    return MODES[mode](parts)


def _graph(parts: Parts) -> Method:
    from tgraph.retrieve.graph import GraphRetriever

    synthesiser = parts.synthesiser(parts.settings.graph.max_context_tokens)
    return TwoStages(GraphRetriever(), parts.selector, synthesiser, parts.concepts)


def _local(parts: Parts) -> Method:
    from tgraph.answer.budget import BudgetSelector
    from tgraph.retrieve.local import LocalRetriever

    local = parts.settings.local_search
    rest = max(0.0, 1.0 - local.report_share - local.chunk_share)
    shares = {"report": local.report_share, "graph": rest, "chunk": local.chunk_share}
    selector = BudgetSelector(local.max_context_tokens, shares)
    synthesiser = parts.synthesiser(local.max_context_tokens + PROMPT)
    return TwoStages(LocalRetriever(local), selector, synthesiser, sharpens=parts.chat is None)


def _basic(parts: Parts) -> Method:
    return _nearest_chunks(parts, "basic", parts.settings.basic_search)


def _naive(parts: Parts) -> Method:
    return _nearest_chunks(parts, "naive", parts.settings.naive_search)


def _nearest_chunks(parts: Parts, mode: str, settings: BasicSearchSettings) -> Method:
    from tgraph.answer.budget import BudgetSelector
    from tgraph.retrieve.basic import BasicRetriever

    budget = settings.max_context_tokens
    selector = BudgetSelector(budget, {"chunk": 1.0})
    synthesiser = parts.synthesiser(budget + PROMPT)
    retriever = BasicRetriever(settings, mode)
    return TwoStages(retriever, selector, synthesiser, sharpens=parts.chat is None)


def _lightrag(mode: str, parts: Parts) -> Method:
    from tgraph.answer.capped import CappedSelector
    from tgraph.retrieve.lightrag import LightRetriever

    light = parts.settings.lightrag_search
    caps = {"entity": light.max_entity_tokens, "edge": light.max_relationship_tokens}
    return TwoStages(
        LightRetriever(mode, light),
        CappedSelector(light.max_total_tokens - PROMPT, caps),
        parts.synthesiser(light.max_total_tokens),
        sharpens=parts.chat is None,
        keywords=_keywords(mode, parts),
    )


def _keywords(mode: str, parts: Parts) -> KeywordFinder:
    from tgraph.answer.keywords import GivenKeywords, Level
    from tgraph.retrieve.lightrag import GLOBAL, LEGS, LOCAL

    light = parts.settings.lightrag_search
    levels: Mapping[str, Level] = {LOCAL: "low", GLOBAL: "high"}
    needed = {levels[leg] for leg in LEGS[mode] if leg in levels}
    return GivenKeywords(Keywords(light.low_keywords, light.high_keywords), needed, parts.keywords)


def _bypass(parts: Parts) -> Method:
    return Bypass(parts.alone())


def _contextual(parts: Parts) -> Method:
    from tgraph.answer.budget import BudgetSelector
    from tgraph.retrieve.contextual import ContextualRetriever

    settings = parts.settings
    budget = settings.contextual_search.max_context_tokens
    rerank = parts.reranker.rank if parts.reranker else None
    return TwoStages(
        ContextualRetriever(settings.contextual_search, rerank, settings.rerank.pool),
        BudgetSelector(budget, {"chunk": 1.0}),
        parts.synthesiser(budget + PROMPT),
        sharpens=parts.chat is None,
    )


def _raptor(parts: Parts) -> Method:
    from tgraph.retrieve.raptor import CollapsedTree

    return _over_tree(CollapsedTree(parts.settings.raptor_search), parts)


def _raptor_traversal(parts: Parts) -> Method:
    from tgraph.retrieve.raptor import TreeTraversal

    return _over_tree(TreeTraversal(parts.settings.raptor_search), parts)


def _over_tree(retriever: Retriever, parts: Parts) -> Method:
    from tgraph.answer.capped import CappedSelector

    budget = parts.settings.raptor_search.max_context_tokens
    return TwoStages(
        retriever,
        CappedSelector(budget, {}),
        parts.synthesiser(budget + PROMPT),
        sharpens=parts.chat is None,
    )


def _ppr(parts: Parts) -> Method:
    from tgraph.answer.budget import BudgetSelector
    from tgraph.retrieve.ppr import PprRetriever

    ppr = parts.settings.ppr_search
    shares = {"graph": ppr.edge_share, "chunk": 1.0 - ppr.edge_share}
    selector = BudgetSelector(ppr.max_context_tokens, shares)
    synthesiser = parts.synthesiser(ppr.max_context_tokens + PROMPT)
    keep = _seed_filter(parts.selector) if ppr.filter and parts.chat is not None else None
    return TwoStages(PprRetriever(ppr, keep), selector, synthesiser, sharpens=parts.chat is None)


def _seed_filter(selector: Selector) -> SeedFilter:
    """The selector's choice among the edges that a walk may start from."""

    def keep(question: Question, edges: Sequence[Candidate], context: Context) -> list[str]:
        offered = Retrieval(tuple(edges), total=len(edges))
        selection = selector.select(question, offered, len(edges), context.sink)
        return [selected.candidate.item.iri for selected in selection.selected]

    return keep


def suggesting(parts: Parts, count: int) -> Method:
    """The method that proposes questions, each sentence of its answer being one."""
    from tgraph.answer.budget import BudgetSelector
    from tgraph.retrieve.overview import OverviewRetriever

    local = parts.settings.local_search
    selector = BudgetSelector(local.max_context_tokens, {"report": 0.2, "graph": 0.6, "chunk": 0.2})
    suggester = parts.suggester(count, local.max_context_tokens + PROMPT)
    return TwoStages(OverviewRetriever(local), selector, suggester)


def _global(parts: Parts) -> Method:
    from tgraph.engine.global_search import global_search

    return global_search(parts)


def _drift(parts: Parts) -> Method:
    from tgraph.engine.drift import drift

    return drift(parts)


MODES: Mapping[str, Callable[[Parts], Method]] = {
    "graph": _graph,
    "local": _local,
    "global": _global,
    "drift": _drift,
    "basic": _basic,
    "naive": _naive,
    "lightrag-local": partial(_lightrag, "lightrag-local"),
    "lightrag-global": partial(_lightrag, "lightrag-global"),
    "lightrag-hybrid": partial(_lightrag, "lightrag-hybrid"),
    "lightrag-mix": partial(_lightrag, "lightrag-mix"),
    "bypass": _bypass,
    "ppr": _ppr,
    "contextual": _contextual,
    "raptor": _raptor,
    "raptor-traversal": _raptor_traversal,
}
