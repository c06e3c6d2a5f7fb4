"""Building each mode's method from components; ``auto`` chooses a mode first."""

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
    SelectionRule,
    Shared,
)
from tgraph.retrieve.modes.registry import AUTO, MODES, AutoSettings
from tgraph.retrieve.modes.suggest import SUGGEST
from tgraph.retrieve.reasons import explain, extend_reason
from tgraph.retrieve.reports import reports_at_hand
from tgraph.retrieve.search.registry import make_retriever
from tgraph.version import __version__

if TYPE_CHECKING:
    from tgraph.answer.base import ConceptFinder, Selector, Synthesiser
    from tgraph.answer.keywords import KeywordFinder
    from tgraph.engine.ask.map_reduce import GlobalSearch
    from tgraph.retrieve.base import Rank, SeedFilter


def method_of(mode: str, parts: Components) -> Method:
    """Return a mode's method.

    Raises ``UsageError`` for an unknown mode."""
    if mode not in MODES:
        mode_names = (*MODES, AUTO)
        remedy = nearest_names(mode, mode_names, most=len(mode_names))
        raise UsageError(f"There is no mode {mode!r}.", remedy)
    mode_definition = MODES[mode]
    return _PIPELINES[mode_definition.pipeline](mode_definition, parts)


def in_steps(method: Method, question: str, parts: Components, form: Form | None = None) -> Method:
    """Return a method answering question steps first, if the question has steps.

    Descriptions in the question are asked first where the mode does so. With a model, only such
    modes take steps, and the model is asked for steps where the parse or the question's
    ``form`` shows more than one."""
    if not isinstance(method, TwoStages):
        return method
    from tgraph.engine.ask.steps import Stepwise, plan_of

    mode = MODES[method.mode]
    if parts.chat is None:
        plan = plan_of(question, mode.stepwise)
        return Stepwise(method, plan) if plan else method
    takes_steps = mode.stepwise and getattr(getattr(parts.settings, mode.section), "steps", False)
    if not takes_steps or "#" in question:  # which stands for answers in steps
        return method
    if form not in _OF_STEPS and not plan_of(question, chained=True):
        return method
    from tgraph.engine.ask.steps_model import StepwiseByModel

    answerer = parts.step_answerer(_mode_selecting(mode, parts).tokens + PROMPT)
    return StepwiseByModel(method, parts.decomposer, answerer)


def suggestion_method(parts: Components, count: int) -> Method:
    """Return the method proposing questions; each answer sentence is a question."""
    selecting = _mode_selecting(SUGGEST, parts)
    suggester = parts.suggester(count, selecting.tokens + PROMPT)
    return TwoStages(
        SUGGEST.name, _build_retriever(SUGGEST, parts), _build_selector(selecting, parts), suggester
    )


def _two_stages(mode: Mode, parts: Components) -> Method:
    selecting = _mode_selecting(mode, parts)
    judged = isinstance(selecting, Judged)
    return TwoStages(
        mode.name,
        _build_retriever(mode, parts),
        _build_selector(selecting, parts),
        parts.synthesiser(selecting.tokens if judged else selecting.tokens + PROMPT),
        _concept_finder(mode, parts),
        sharpens=not judged,
        reads=True,
        by_model=parts.chat is not None,
        keywords=_keyword_finder(mode, parts),
        agent=Agent("method", mode.method, __version__) if mode.method else None,
    )


def _map_reduce(mode: Mode, parts: Components) -> Method:
    """Return a map-reduce method using the model, or the embedded default without a model."""
    method = (
        _build_quoting_search(mode, parts)
        if parts.chat is None
        else _by_model(mode, parts, parts.chat)
    )
    return method if parts.settings.global_search.dynamic else replace(method, rater=None)


def _build_quoting_search(mode: Mode, parts: Components) -> GlobalSearch:
    from tgraph.answer.map_reduce_embedded import EmbeddedMapper, EmbeddedRater, EmbeddedReducer
    from tgraph.engine.ask.map_reduce import GlobalSearch

    search_settings = parts.settings.global_search
    mapper = EmbeddedMapper(
        budget=search_settings.map_context_tokens, shuffle_seed=search_settings.seed
    )
    return GlobalSearch(mode.name, mapper, EmbeddedReducer(), EmbeddedRater())


def _by_model(mode: Mode, parts: Components, chat: ChatModel) -> GlobalSearch:
    from tgraph.answer.community_selection import ModelRater
    from tgraph.answer.map_reduce_model import ModelMapper
    from tgraph.engine.ask.map_reduce import GlobalSearch

    search_settings, prompts, many = (
        parts.settings.global_search,
        parts.prompts,
        parts.concurrent_options,
    )
    mapper = ModelMapper(
        chat,
        prompts,
        max_words=search_settings.map_max_length,
        shuffle_seed=search_settings.seed,
        max_context_tokens=search_settings.map_context_tokens,
        **many,
    )
    reducer = parts.writer(
        chat, search_settings.reduce_context_tokens, search_settings.reduce_max_length
    )
    return GlobalSearch(mode.name, mapper, reducer, ModelRater(chat, prompts, **many))


def _follow_ups(mode: Mode, parts: Components) -> Method:
    from tgraph.engine.ask.drift import Drift

    return Drift(
        mode.name,
        parts.explorer,
        _build_retriever(mode, parts),
        _build_selector(_mode_selecting(mode, parts), parts),
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


def _computed(mode: Mode, parts: Components) -> Method:
    from tgraph.answer.computed import ComputedSynthesiser
    from tgraph.engine.ask.computing import Computing, GrammarMaker

    search = parts.settings.sparql_search
    maker = parts.query_writer or GrammarMaker(search.least_likelihood)
    return Computing(mode.name, search, ComputedSynthesiser(), maker)


_PIPELINES: Mapping[Pipeline, Callable[[Mode, Components], Method]] = {
    "two stages": _two_stages,
    "map-reduce": _map_reduce,
    "follow-ups": _follow_ups,
    "computed": _computed,
    "alone": lambda mode, parts: Bypass(mode.name, parts.model_alone),
}


@dataclass(frozen=True, slots=True)
class _ComponentServices:
    """The ``Services`` that a graph's components offer retrievers."""

    parts: Components

    @property
    def rerank(self) -> Rank | None:
        if self.parts.rank is not None:
            return self.parts.rank
        provider = self.parts.settings.rerank.provider
        if provider == "embedded":
            return _rank_by_reader(self.parts)
        if provider and (make_rank := RERANKERS.find_contribution(provider)):
            added: Rank = make_rank(self.parts.settings)
            return added
        reranker = self.parts.reranker
        return reranker.rank if reranker else None

    @property
    def filter_edges(self) -> SeedFilter | None:
        return _seed_filter(self.parts.selector) if self.fills_prompts else None

    @property
    def fills_prompts(self) -> bool:
        return self.parts.chat is not None


def _rank_by_reader(parts: Components) -> Rank:
    """Return a ranking function by the reader; the reader is loaded on first ranking."""

    def rank(question: str, texts: Sequence[str], sink: CallSink) -> list[tuple[int, float]]:
        if parts.reader is None:
            raise UsageError(
                "The setting rerank.provider needs a reader model, and no reader model is set.",
                "Set `reader.model`, or `rerank.provider` to server.",
            )
        from tgraph.retrieve.text.reading import rank_by_relevance

        return rank_by_relevance(parts.reader, question, texts, sink)

    return rank


def _seed_filter(selector: Selector) -> SeedFilter:
    """The selector's choice among edges."""

    def select_edges(question: Question, edges: Sequence[Candidate], context: Context) -> list[str]:
        offered = Retrieval(tuple(edges), total=len(edges))
        selection = selector.select(question, offered, len(edges), context.sink)
        return [selected.candidate.item.iri for selected in selection.selected]

    return select_edges


def _build_retriever(mode: Mode, parts: Components) -> Retriever:
    return WeighedRetriever(make_retriever(mode, parts.settings, _ComponentServices(parts)))


def _mode_selecting(mode: Mode, parts: Components) -> SelectionRule:
    assert mode.selecting is not None
    return mode.selecting(getattr(parts.settings, mode.main_section))


def _build_selector(selecting: SelectionRule, parts: Components) -> Selector:
    if isinstance(selecting, Judged):
        return WeighedSelector(parts.selector)
    from tgraph.answer.token_budget import BudgetSelector, CappedSelector

    if isinstance(selecting, Shared):
        return WeighedSelector(BudgetSelector(selecting.tokens, selecting.shares))
    return WeighedSelector(CappedSelector(selecting.tokens, selecting.caps))


def _concept_finder(mode: Mode, parts: Components) -> ConceptFinder | None:
    """Return the concept finder; None where the start entities are supplied."""
    limits = parts.settings.graph
    if not mode.concepts or limits.graph_seeds:
        return None
    from tgraph.answer.keywords import GivenConcepts

    seeds = limits.grounding_seeds
    return GivenConcepts(seeds) if seeds else parts.concepts


def _keyword_finder(mode: Mode, parts: Components) -> KeywordFinder | None:
    if mode.keywords is None:
        return None
    from tgraph.answer.keywords import GivenKeywords

    low, high = mode.keywords.given(getattr(parts.settings, mode.main_section))
    return GivenKeywords(Keywords(tuple(low), tuple(high)), mode.keywords.levels, parts.keywords)


def choose_method(question: Question, parts: Components, context: Context) -> Chosen:
    """Choose the method for the question's form, following the ``auto`` settings.

    What asks for a computation, over what the catalogue has, is computed."""
    if parts.settings.auto.computed and (chosen := choose_computed(question, parts, context)):
        return chosen
    chooser = parts.chooser
    calls: list[Call] = []
    choice = chooser.choose(question, context, calls.append)
    mode, why = mode_for(choice.form, parts.settings.auto, context)
    if choice.mode and parts.chat is None:
        mode, why = choice.mode, ""
    choice = replace(choice, reason=extend_reason(choice.reason, why))
    method = in_steps(method_of(mode, parts), question.text, parts, choice.form)
    return Chosen(method, choice, chooser.agent, tuple(calls))


def choose_computed(question: Question, parts: Components, context: Context) -> Chosen | None:
    """Return the method of the mode for computations, for a question that is surely one."""
    from tgraph.compute.linking import may_ask_computation

    if not may_ask_computation(question.text) or question.needed_turns:
        return None
    from tgraph.answer.mode_choice import ModeReason
    from tgraph.compute.computation import plan_query
    from tgraph.engine.ask.computing import GRAMMAR, Computing, GrammarMaker

    plan = plan_query(question.text, context, SURELY_COMPUTED)
    if plan.chosen is None or not plan.chosen.candidate.is_computing or plan.chosen.unaccounted:
        return None
    why = explain("form-computed", likelihood=plan.chosen.likelihood)
    about = ModeReason("listed", why)
    method = method_of(parts.settings.auto.computed, parts)
    if isinstance(method, Computing):  # the grammar, which chose it, is sure of its query
        method = replace(method, maker=GrammarMaker(method.settings.least_likelihood, plan))
    return Chosen(method, about, GRAMMAR)


SURELY_COMPUTED = 0.75
"""The likelihood from which a question is taken for a computation unasked."""


def mode_for(form: Form, auto: AutoSettings, context: Context) -> tuple[str, str]:
    """Return the mode for a question form over these documents, plus a reason.

    The reason is empty if the form alone decides."""
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
    """Return the mode for a question form, ignoring document length and graph sparseness."""
    anyhow = auto.model_copy(update={"sparse_edges": 0.0, "long_chunks": math.inf})
    return mode_for(form, anyhow, context)[0]


_OF_STEPS: frozenset[Form | None] = frozenset({"linked", "compared"})
"""What takes several steps to answer."""

_OF_PASSAGES: frozenset[Form] = frozenset({"one", "listed"})
"""What a passage or some of them answer by themselves."""


def edges_for_chunk(context: Context) -> float:
    """Return the average number of edges per chunk; infinity without chunks."""
    chunks = len(context.vectors["chunk"])
    return len(context.vectors["edge"]) / chunks if chunks else math.inf


def document_length(context: Context) -> float:
    """Return the average number of chunks per document."""

    def count() -> float:
        chunks = context.vectors["chunk"].keys
        return len(chunks) / max(1, len(set(map(document_of_chunk, chunks))))

    return context.read_once("length of documents", count)


def other_mode(question: Question, mode: str, parts: Components, context: Context) -> str:
    """Return a sentence recommending a better mode after a search without evidence; empty if no
    better mode exists."""
    from tgraph.answer.mode_choice import EmbeddedChooser

    choice = EmbeddedChooser().choose(question, context)
    better, why = mode_for(choice.form, parts.settings.auto, context)
    if better == mode or mode not in MODES or better not in MODES:
        return ""
    return (
        f"The mode {mode} found no evidence. {choice.reason[:1].upper()}{choice.reason[1:]}{why}:"
        f" try -m {better}, which -m {AUTO} chooses for it."
    )
