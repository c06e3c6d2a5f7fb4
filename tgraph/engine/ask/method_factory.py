"""The method of each mode, made of the components that do its steps; ``auto`` chooses first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tgraph.engine.ask.authority import WeighedRetriever, WeighedSelector
from tgraph.engine.ask.methods import Bypass, Chosen, Method, TwoStages
from tgraph.engine.components import Components
from tgraph.errors import UsageError, nearest_names
from tgraph.index.sources import document_of_chunk
from tgraph.model import Agent, Candidate, Retrieval
from tgraph.models.base import Call, CallSink, ChatModel
from tgraph.plugins import RERANKERS
from tgraph.retrieve.base import Context, Keywords, Question, Retriever
from tgraph.retrieve.modes.base import (
    PROMPT,
    Form,
    Judged,
    Mode,
    Pipeline,
    Selecting,
    Shared,
)
from tgraph.retrieve.modes.registry import AUTO, MODES, AutoSettings
from tgraph.retrieve.modes.suggest import SUGGEST
from tgraph.retrieve.reports import reports_at_hand
from tgraph.retrieve.search.registry import make_retriever
from tgraph.version import __version__

if TYPE_CHECKING:
    from tgraph.answer.base import ConceptFinder, Selector, Synthesiser
    from tgraph.answer.keywords import KeywordFinder
    from tgraph.engine.ask.map_reduce import GlobalSearch
    from tgraph.retrieve.base import Rank, SeedFilter


def method_of(mode: str, parts: Components) -> Method:
    """The method of a mode. ``UsageError`` for a mode that there is not."""
    if mode not in MODES:
        known = (*MODES, AUTO)
        remedy = nearest_names(mode, known, most=len(known))
        raise UsageError(f"There is no mode {mode!r}.", remedy)
    found = MODES[mode]
    return _PIPELINES[found.pipeline](found, parts)


def in_steps(method: Method, question: str, parts: Components, form: Form | None = None) -> Method:
    """The method, answering the steps of the question first, where it takes any; what it describes
    is asked first where the mode does so. With a model only such modes take steps, and the model
    is asked for them where the parse or the question's ``form`` shows more than one."""
    if not isinstance(method, TwoStages):
        return method
    from tgraph.engine.ask.steps import Stepwise, plan_of

    mode = MODES[method.mode]
    if parts.chat is None:
        plan = plan_of(question, mode.stepwise)
        return Stepwise(method, plan) if plan else method
    wanted = mode.stepwise and getattr(getattr(parts.settings, mode.section), "steps", False)
    if not wanted or "#" in question:  # which stands for answers in steps
        return method
    if form not in _OF_STEPS and not plan_of(question, chained=True):
        return method
    from tgraph.engine.ask.steps_model import StepwiseByModel

    answerer = parts.step_answerer(_selecting(mode, parts).tokens + PROMPT)
    return StepwiseByModel(method, parts.decomposer, answerer)


def suggesting(parts: Components, count: int) -> Method:
    """The method that proposes questions, each sentence of its answer being one."""
    found = _selecting(SUGGEST, parts)
    suggester = parts.suggester(count, found.tokens + PROMPT)
    return TwoStages(SUGGEST.name, _retriever(SUGGEST, parts), _selector(found, parts), suggester)


def _two_stages(mode: Mode, parts: Components) -> Method:
    selecting = _selecting(mode, parts)
    judged = isinstance(selecting, Judged)
    return TwoStages(
        mode.name,
        _retriever(mode, parts),
        _selector(selecting, parts),
        parts.synthesiser(selecting.tokens if judged else selecting.tokens + PROMPT),
        _concepts(mode, parts),
        sharpens=not judged,
        reads=True,
        by_model=parts.chat is not None,
        keywords=_keywords(mode, parts),
        agent=Agent("method", mode.method, __version__) if mode.method else None,
    )


def _map_reduce(mode: Mode, parts: Components) -> Method:
    """By the model, or by the embedded default where there is none."""
    made = _quoting(mode, parts) if parts.chat is None else _by_model(mode, parts, parts.chat)
    return made if parts.settings.global_search.dynamic else replace(made, rater=None)


def _quoting(mode: Mode, parts: Components) -> GlobalSearch:
    from tgraph.answer.map_reduce_embedded import EmbeddedMapper, EmbeddedRater, EmbeddedReducer
    from tgraph.engine.ask.map_reduce import GlobalSearch

    own = parts.settings.global_search
    mapper = EmbeddedMapper(budget=own.map_context_tokens, shuffle_seed=own.seed)
    return GlobalSearch(mode.name, mapper, EmbeddedReducer(), EmbeddedRater())


def _by_model(mode: Mode, parts: Components, chat: ChatModel) -> GlobalSearch:
    from tgraph.answer.community_selection import ModelRater
    from tgraph.answer.map_reduce_model import ModelMapper
    from tgraph.engine.ask.map_reduce import GlobalSearch

    own, prompts, many = parts.settings.global_search, parts.prompts, parts.concurrent_options
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


def _follow_ups(mode: Mode, parts: Components) -> Method:
    from tgraph.engine.ask.drift import Drift

    return Drift(
        mode.name,
        parts.explorer,
        _retriever(mode, parts),
        _selector(_selecting(mode, parts), parts),
        _broad_synthesiser(parts),
        parts.settings.drift_search,
        parts.settings.chat.concurrency,
        parts.cancel,
    )


def _broad_synthesiser(parts: Components) -> Synthesiser:
    if parts.chat is None:
        from tgraph.answer.drift import BroadSynthesiser

        return BroadSynthesiser()
    return parts.synthesiser(parts.settings.drift_search.reduce_context_tokens)


_PIPELINES: Mapping[Pipeline, Callable[[Mode, Components], Method]] = {
    "two stages": _two_stages,
    "map-reduce": _map_reduce,
    "follow-ups": _follow_ups,
    "alone": lambda mode, parts: Bypass(mode.name, parts.alone),
}


@dataclass(frozen=True, slots=True)
class _ComponentServices:
    """The ``Services`` that a graph's components offer retrievers."""

    parts: Components

    @property
    def rerank(self) -> Rank | None:
        provider = self.parts.settings.rerank.provider
        if provider == "embedded":
            return _rank_by_reader(self.parts)
        if provider and (make_rank := RERANKERS.get(provider)):
            added: Rank = make_rank(self.parts.settings)
            return added
        reranker = self.parts.reranker
        return reranker.rank if reranker else None

    @property
    def filter_edges(self) -> SeedFilter | None:
        return _seed_filter(self.parts.selector) if self.parts.chat is not None else None


def _rank_by_reader(parts: Components) -> Rank:
    """The reader's ranking; who the reader is, is asked when there is something to rank."""

    def rank(question: str, texts: Sequence[str], sink: CallSink) -> list[tuple[int, float]]:
        if parts.reader is None:
            raise UsageError(
                "Chunks should be ranked by the reader, and there is none.",
                "Set `reader.model`, or `rerank.provider` to server.",
            )
        from tgraph.retrieve.text.reading import rank_by_relevance

        return rank_by_relevance(parts.reader, question, texts, sink)

    return rank


def _seed_filter(selector: Selector) -> SeedFilter:
    """The selector's choice among edges."""

    def keep(question: Question, edges: Sequence[Candidate], context: Context) -> list[str]:
        offered = Retrieval(tuple(edges), total=len(edges))
        selection = selector.select(question, offered, len(edges), context.sink)
        return [selected.candidate.item.iri for selected in selection.selected]

    return keep


def _retriever(mode: Mode, parts: Components) -> Retriever:
    return WeighedRetriever(make_retriever(mode, parts.settings, _ComponentServices(parts)))


def _selecting(mode: Mode, parts: Components) -> Selecting:
    assert mode.selecting is not None
    return mode.selecting(getattr(parts.settings, mode.main_section))


def _selector(selecting: Selecting, parts: Components) -> Selector:
    if isinstance(selecting, Judged):
        return WeighedSelector(parts.selector)
    from tgraph.answer.token_budget import BudgetSelector, CappedSelector

    if isinstance(selecting, Shared):
        return WeighedSelector(BudgetSelector(selecting.tokens, selecting.shares))
    return WeighedSelector(CappedSelector(selecting.tokens, selecting.caps))


def _concepts(mode: Mode, parts: Components) -> ConceptFinder | None:
    """Who finds what a question is about; nobody where the entities to start from are given."""
    limits = parts.settings.graph
    if not mode.concepts or limits.graph_seeds:
        return None
    from tgraph.answer.keywords import GivenConcepts

    given = limits.grounding_seeds
    return GivenConcepts(given) if given else parts.concepts


def _keywords(mode: Mode, parts: Components) -> KeywordFinder | None:
    if mode.keywords is None:
        return None
    from tgraph.answer.keywords import GivenKeywords

    low, high = mode.keywords.given(getattr(parts.settings, mode.main_section))
    return GivenKeywords(Keywords(tuple(low), tuple(high)), mode.keywords.levels, parts.keywords)


def chosen(question: Question, parts: Components, context: Context) -> Chosen:
    """The method for the form of the question, by the settings ``auto``."""
    chooser = parts.chooser
    calls: list[Call] = []
    about = chooser.choose(question, context, calls.append)
    mode, why = mode_for(about.form, parts.settings.auto, context)
    about = replace(about, reason=f"{about.reason}{why}")
    method = in_steps(method_of(mode, parts), question.text, parts, about.form)
    return Chosen(method, about, chooser.agent, tuple(calls))


def mode_for(form: Form, auto: AutoSettings, context: Context) -> tuple[str, str]:
    """The mode for questions of a form over these documents; and why, where it is not the form
    alone that decides."""
    mode: str = getattr(auto, form)
    why = ""
    if mode in MODES and MODES[mode].reports == "only":
        if reports_at_hand(context) is not None:
            return mode, why
        form, mode, why = "listed", auto.listed, ", but there are no community reports"
    if (edges := edges_for_chunk(context)) < auto.sparse_edges:
        return auto.sparse, f"{why}, and the graph is sparse ({edges:.1f} edges for each chunk)"
    if form in _OF_PASSAGES and (length := document_length(context)) >= auto.long_chunks:
        return auto.long, f"{why}, and the documents are long ({length:.0f} chunks each)"
    return mode, why


def mode_for_form(form: Form, auto: AutoSettings, context: Context) -> str:
    """The mode for questions of a form, whether documents are long or the graph is sparse."""
    anyhow = auto.model_copy(update={"sparse_edges": 0.0, "long_chunks": math.inf})
    return mode_for(form, anyhow, context)[0]


_OF_STEPS: frozenset[Form | None] = frozenset({"linked", "compared"})
"""What takes several steps to answer."""

_OF_PASSAGES: frozenset[Form] = frozenset({"one", "listed"})
"""What a passage or some of them answer by themselves."""


def edges_for_chunk(context: Context) -> float:
    """The edges for each chunk, on average; without end where there are no chunks."""
    chunks = len(context.vectors["chunk"])
    return len(context.vectors["edge"]) / chunks if chunks else math.inf


def document_length(context: Context) -> float:
    """The chunks of a document, on average."""

    def count() -> float:
        chunks = context.vectors["chunk"].keys
        return len(chunks) / max(1, len(set(map(document_of_chunk, chunks))))

    return context.once("length of documents", count)


def other_mode(question: Question, mode: str, parts: Components, context: Context) -> str:
    """A sentence on the mode that is for a question to which another found no evidence; empty where
    there is none."""
    from tgraph.answer.mode_choice import EmbeddedChooser

    about = EmbeddedChooser().choose(question, context)
    better, why = mode_for(about.form, parts.settings.auto, context)
    if better == mode or mode not in MODES or better not in MODES:
        return ""
    return (
        f"The mode {mode} found no evidence. {about.reason[:1].upper()}{about.reason[1:]}{why}:"
        f" try -m {better}, which -m {AUTO} chooses for it."
    )
