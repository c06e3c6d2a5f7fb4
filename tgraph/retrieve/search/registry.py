"""Retrievers of modes, made from settings.

A search module is imported when its retriever is made, so a question loads a single search."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tgraph.retrieve.base import Retriever, Services
from tgraph.retrieve.modes.base import Mode
from tgraph.retrieve.modes.basic import BASIC, NAIVE
from tgraph.retrieve.modes.bm25 import BM25
from tgraph.retrieve.modes.contextual import CONTEXTUAL
from tgraph.retrieve.modes.drift import DRIFT
from tgraph.retrieve.modes.global_search import GLOBAL
from tgraph.retrieve.modes.graph import GRAPH
from tgraph.retrieve.modes.local import LOCAL
from tgraph.retrieve.modes.ppr import PPR
from tgraph.retrieve.modes.raptor import RAPTOR, RAPTOR_TRAVERSAL
from tgraph.retrieve.modes.suggest import SUGGEST
from tgraph.settings import Settings

RetrieverMaker = Callable[[Settings, Services], Retriever]


def make_retriever(mode: Mode, settings: Settings, services: Services) -> Retriever:
    """Return the retriever of a mode. ``KeyError`` for a mode that retrieves nothing."""
    if mode.retriever is not None:
        retriever: Retriever = mode.retriever(settings, services)
        return retriever
    if mode.keywords is not None:
        from tgraph.retrieve.search.lightrag import LightRetriever

        return LightRetriever(mode, settings.lightrag_search, services.fills_prompts)
    return _MAKERS[mode.name](settings, services)


def _make_basic(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.vector import BasicRetriever

    return BasicRetriever(settings.basic_search, services.fills_prompts)


def _make_naive(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.vector import BasicRetriever

    return BasicRetriever(settings.naive_search, services.fills_prompts)


def _make_bm25(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.words import WordRetriever

    return WordRetriever(settings.bm25_search)


def _make_contextual(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.contextual import ContextualRetriever

    rerank = settings.rerank
    return ContextualRetriever(
        settings.contextual_search, services.rerank, rerank.pool, rerank.min_score
    )


def _make_drift(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.drift import local_settings
    from tgraph.retrieve.search.local import LocalRetriever

    return LocalRetriever(local_settings(settings.drift_search))


def _make_global(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.community_reports import ReportSearch

    return ReportSearch()


def _make_graph(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.graph import GraphRetriever

    return GraphRetriever()


def _make_local(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.local import LocalRetriever

    return LocalRetriever(settings.local_search, services.fills_prompts)


def _make_overview(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.overview import OverviewRetriever

    return OverviewRetriever(settings.local_search)


def _make_ppr(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.pagerank import PprRetriever

    ppr = settings.ppr_search
    return PprRetriever(ppr, services.filter_edges if ppr.filter else None)


def _make_raptor(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.summary_tree import CollapsedTree

    return CollapsedTree(settings.raptor_search)


def _make_raptor_traversal(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.search.summary_tree import TreeTraversal

    return TreeTraversal(settings.raptor_search)


_MAKERS: Mapping[str, RetrieverMaker] = {
    BASIC.name: _make_basic,
    BM25.name: _make_bm25,
    CONTEXTUAL.name: _make_contextual,
    DRIFT.name: _make_drift,
    GLOBAL.name: _make_global,
    GRAPH.name: _make_graph,
    LOCAL.name: _make_local,
    NAIVE.name: _make_naive,
    PPR.name: _make_ppr,
    RAPTOR.name: _make_raptor,
    RAPTOR_TRAVERSAL.name: _make_raptor_traversal,
    SUGGEST.name: _make_overview,
}
