"""The method of each mode, made of the parts that do its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tgraph.engine.methods import Bypass, Method, TwoStages
from tgraph.engine.parts import Parts
from tgraph.errors import UsageError, nearest_names
from tgraph.model import Agent, Candidate, Retrieval
from tgraph.models.base import ChatModel
from tgraph.retrieve.base import Context, Keywords, Question, Retriever
from tgraph.retrieve.modes.base import PROMPT, Judged, Mode, Pipeline, Selecting, Shared, load
from tgraph.retrieve.modes.registry import AUTO, MODES
from tgraph.retrieve.modes.suggest import SUGGEST
from tgraph.version import __version__

if TYPE_CHECKING:
    from tgraph.answer.base import Selector, Synthesiser
    from tgraph.answer.keywords import KeywordFinder
    from tgraph.engine.global_search import GlobalSearch
    from tgraph.retrieve.base import Rank, SeedFilter


def method_of(mode: str, parts: Parts) -> Method:
    """The method of a mode. ``UsageError`` for a mode that there is not."""
    if mode not in MODES:
        known = (*MODES, AUTO)
        remedy = nearest_names(mode, known, most=len(known))
        raise UsageError(f"There is no mode {mode!r}.", remedy)
    found = MODES[mode]
    return _PIPELINES[found.pipeline](found, parts)


def suggesting(parts: Parts, count: int) -> Method:
    """The method that proposes questions, each sentence of its answer being one."""
    found = _selecting(SUGGEST, parts)
    suggester = parts.suggester(count, found.tokens + PROMPT)
    return TwoStages(SUGGEST.name, _retriever(SUGGEST, parts), _selector(found, parts), suggester)


# --- the pipelines --------------------------------------------------------------------------------


def _two_stages(mode: Mode, parts: Parts) -> Method:
    selecting = _selecting(mode, parts)
    judged = isinstance(selecting, Judged)
    return TwoStages(
        mode.name,
        _retriever(mode, parts),
        _selector(selecting, parts),
        parts.synthesiser(selecting.tokens if judged else selecting.tokens + PROMPT),
        parts.concepts if mode.concepts else None,
        sharpens=parts.chat is None and not judged,
        keywords=_keywords(mode, parts),
        agent=Agent("method", mode.method, __version__) if mode.method else None,
    )


def _map_reduce(mode: Mode, parts: Parts) -> Method:
    """By the model, or by the embedded default where there is none."""
    made = _quoting(mode, parts) if parts.chat is None else _by_model(mode, parts, parts.chat)
    return made if parts.settings.global_search.dynamic else replace(made, rater=None)


def _quoting(mode: Mode, parts: Parts) -> GlobalSearch:
    from tgraph.answer.extracts import EmbeddedMapper, EmbeddedRater, EmbeddedReducer
    from tgraph.engine.global_search import GlobalSearch

    own = parts.settings.global_search
    mapper = EmbeddedMapper(budget=own.map_context_tokens, shuffle_seed=own.seed)
    return GlobalSearch(mode.name, mapper, EmbeddedReducer(), EmbeddedRater())


def _by_model(mode: Mode, parts: Parts, chat: ChatModel) -> GlobalSearch:
    from tgraph.answer.mapping import ModelMapper
    from tgraph.answer.rating import ModelRater
    from tgraph.engine.global_search import GlobalSearch

    own, prompts, many = parts.settings.global_search, parts.settings.prompts, parts.many
    mapper = ModelMapper(
        chat,
        prompts,
        max_words=own.map_max_length,
        shuffle_seed=own.seed,
        max_context_tokens=own.map_context_tokens,
        **many,
    )
    reducer = parts.writer(chat, own.reduce_context_tokens, own.reduce_max_length)
    return GlobalSearch(mode.name, mapper, reducer, ModelRater(chat, prompts, **many))


def _follow_ups(mode: Mode, parts: Parts) -> Method:
    from tgraph.engine.drift import Drift

    return Drift(
        mode.name,
        parts.explorer(),
        _retriever(mode, parts),
        _selector(_selecting(mode, parts), parts),
        _broad_synthesiser(parts),
        parts.settings.drift_search,
        parts.settings.chat.concurrency,
        parts.cancel,
    )


def _broad_synthesiser(parts: Parts) -> Synthesiser:
    if parts.chat is None:
        from tgraph.answer.drift_embedded import BroadSynthesiser

        return BroadSynthesiser()
    return parts.synthesiser(parts.settings.drift_search.reduce_context_tokens)


def _alone(mode: Mode, parts: Parts) -> Method:
    return Bypass(mode.name, parts.alone())


_PIPELINES: Mapping[Pipeline, Callable[[Mode, Parts], Method]] = {
    "two stages": _two_stages,
    "map-reduce": _map_reduce,
    "follow-ups": _follow_ups,
    "alone": _alone,
}


# --- their parts ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lent:
    """``Services`` of the parts."""

    parts: Parts

    @property
    def rerank(self) -> Rank | None:
        reranker = self.parts.reranker
        return reranker.rank if reranker else None

    @property
    def filter_edges(self) -> SeedFilter | None:
        return _seed_filter(self.parts.selector) if self.parts.chat is not None else None


def _seed_filter(selector: Selector) -> SeedFilter:
    """The selector's choice among edges."""

    def keep(question: Question, edges: Sequence[Candidate], context: Context) -> list[str]:
        offered = Retrieval(tuple(edges), total=len(edges))
        selection = selector.select(question, offered, len(edges), context.sink)
        return [selected.candidate.item.iri for selected in selection.selected]

    return keep


def _retriever(mode: Mode, parts: Parts) -> Retriever:
    made: Retriever = load(mode.retriever)(parts.settings, _Lent(parts))
    return made


def _selecting(mode: Mode, parts: Parts) -> Selecting:
    assert mode.selecting is not None
    return mode.selecting(getattr(parts.settings, mode.main_section))


def _selector(selecting: Selecting, parts: Parts) -> Selector:
    if isinstance(selecting, Judged):
        return parts.selector
    if isinstance(selecting, Shared):
        from tgraph.answer.budget import BudgetSelector

        return BudgetSelector(selecting.tokens, selecting.shares)
    from tgraph.answer.capped import CappedSelector

    return CappedSelector(selecting.tokens, selecting.caps)


def _keywords(mode: Mode, parts: Parts) -> KeywordFinder | None:
    if mode.keywords is None:
        return None
    from tgraph.answer.keywords import GivenKeywords

    low, high = mode.keywords.given(getattr(parts.settings, mode.main_section))
    return GivenKeywords(Keywords(tuple(low), tuple(high)), mode.keywords.levels, parts.keywords)
