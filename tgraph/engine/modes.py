"""The retrieval modes by name, each made of the parts that do its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tgraph.engine.methods import Method, TwoStages
from tgraph.engine.parts import PROMPT, Parts
from tgraph.errors import UsageError
from tgraph.model import Candidate, Retrieval
from tgraph.retrieve.base import Context, Question

if TYPE_CHECKING:
    from tgraph.answer.base import Selector
    from tgraph.retrieve.ppr import SeedFilter


def method_of(mode: str, parts: Parts) -> Method:
    """The method of a mode. ``UsageError`` for a mode that there is not."""
    if mode not in MODES:
        raise UsageError(f"There is no mode {mode!r}.", f"There are: {', '.join(MODES)}.")
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
    from tgraph.answer.budget import BudgetSelector
    from tgraph.retrieve.basic import BasicRetriever

    budget = parts.settings.basic_search.max_context_tokens
    selector = BudgetSelector(budget, {"chunk": 1.0})
    synthesiser = parts.synthesiser(budget + PROMPT)
    return TwoStages(
        BasicRetriever(parts.settings.basic_search),
        selector,
        synthesiser,
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
    "ppr": _ppr,
}
