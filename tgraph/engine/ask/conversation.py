"""A question to an open collection: history, knowledge state, mode, and prerequisites."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from typing import TYPE_CHECKING, Self

from tgraph.engine.ask.method_factory import (
    choose_method,
    in_steps,
    method_of,
    mode_for_form,
    other_mode,
    suggestion_method,
)
from tgraph.engine.ask.methods import Chosen, Method, without_retrieval
from tgraph.engine.ask.parameters import (
    ONLY,
    QUERY,
    REVISES,
    STANDS_ALONE,
    WRITER,
    record_settings,
)
from tgraph.engine.ask.question_run import AnswerStream, ContextStream, QuestionRun
from tgraph.engine.ask.streams import result_of
from tgraph.errors import UsageError
from tgraph.index.chunk_contexts import lacks_contexts
from tgraph.index.sources import standing_chunks
from tgraph.index.summary_tree import standing_tree
from tgraph.model import Answer, Only, Turn
from tgraph.record.session import SessionDescription, SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.retrieve.modes.registry import AUTO, mode_named
from tgraph.retrieve.modes.suggest import SUGGEST
from tgraph.retrieve.subset import is_empty, narrow_context
from tgraph.retrieve.text.follow_up import stands_alone
from tgraph.retrieve.text.word_vectors import by_words_if_foreign
from tgraph.store.base import Store
from tgraph.store.statements import Value

if TYPE_CHECKING:
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.trace.generations import PointInTime
    from tgraph.retrieve.modes.base import Need


def _lacks_tree(store: Store) -> bool:
    """Return whether a tree is missing although enough chunks exist."""
    return not standing_tree(store) and len(list(islice(standing_chunks(store), 2))) == 2


_MISSING: Mapping[str, Callable[[Store], bool]] = {
    "contexts": lacks_contexts,
    "tree": _lacks_tree,
}
"""Whether a state of the graph lacks what a mode needs."""

_LACKS = {"contexts": "no contexts of chunks", "tree": "no tree of summaries"}


def write_point(point: str | int | datetime | date | None) -> str:
    """Return the written form of a point in time, empty for None; see ``point_in_time``."""
    if point is None:
        return ""
    return point.isoformat() if isinstance(point, date) else str(point)


def point_in_time(opened: OpenCollection, name: str) -> PointInTime:
    """Resolve a date, time, generation or session to a point in time; see ``find_point``."""
    from tgraph.explain.trace.generations import find_point

    knowledge = opened.context().store
    return find_point(knowledge, opened.read, opened.catalogue, name, opened.clock())


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """A question as it is asked of an open collection.

    ``mode`` is the name of a mode, or ``auto``. ``sparql`` is a query in place of the question's
    own, changed from that of the session ``revises``. ``history`` are the turns before the
    question; None stands for the turns that were asked in the collection before. ``as_of`` names
    the point in time whose knowledge answers, empty for the newest (``find_point``). ``only`` is
    what is wanted in place of an answer. ``count`` is the number of questions that are to be
    proposed, for a request of proposals.
    """

    text: str
    mode: str = AUTO
    history: Sequence[Turn] | None = None
    filters: Filters = NO_FILTERS
    as_of: str = ""
    only: Only | None = None
    count: int | None = None
    sparql: str = ""
    revises: str = ""


@dataclass(frozen=True, slots=True)
class AskedKnowledge:
    """The knowledge behind a question: newest, or as of ``point``, narrowed by filters."""

    opened: OpenCollection
    filters: Filters
    point: PointInTime | None = None

    @classmethod
    def resolve(cls, opened: OpenCollection, request: QuestionRequest) -> Self:
        """Resolve the knowledge addressed by a request.

        A message names the earlier knowledge and its unavailable parts."""
        point = point_in_time(opened, request.as_of) if request.as_of else None
        if point is not None:
            if not point.generation:
                raise UsageError(
                    "There is no generation 0.", "`tgraph history` lists the generations."
                )
            since = point.published[:19].replace("T", " ")
            opened.message(f"As of generation {point.generation}, of {since} UTC.")
            for note in opened.context_as_of(point.generation).notes:
                opened.message(note)
        return cls(opened, request.filters, point)

    def context(self) -> Context:
        """Return the newest state with structures built by ``prepare``, or the state at the
        point."""
        opened = self.opened
        if self.point:
            return narrow_context(opened.context_as_of(self.point.generation), self.filters)
        # what filters leave is put together from the statements, one by one: not over a network
        full_context = opened.own_context() if self.filters else opened.context()
        return narrow_context(full_context, self.filters)

    def prepare(self, mode: str) -> None:
        """Build structures needed by the mode.

        Nothing can be built in earlier knowledge; raises ``UsageError`` if earlier knowledge
        lacks a needed structure."""
        if self.point is None:
            prepare_mode(self.opened, mode)
            return
        need = _missing_need(mode, self.opened.context_as_of(self.point.generation))
        if need is not None:
            raise UsageError(
                f"Generation {self.point.generation} has {_LACKS[need.what]}, which the mode "
                f"{mode} searches: the part had not been built by then.",
                "Ask in another mode, or as of a later generation (`tgraph history`).",
            )


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """A request prepared for answering: question after its turns, addressed knowledge, method."""

    request: QuestionRequest
    question: Question
    knowledge: AskedKnowledge
    method: Method

    @contextmanager
    def run(self) -> Iterator[QuestionRun]:
        """The run of the question, within which the collection counts as asked."""
        opened, question, knowledge = self.knowledge.opened, self.question, self.knowledge
        opened.ledger.check_key()
        knowledge.prepare(self.method.mode)
        with opened.asking():
            context, method = knowledge.context(), self.method
            if knowledge.filters and is_empty(context):
                opened.message("No document or fact passes the filters.")
                method = without_retrieval(method)
            description = SessionDescription(
                question.text,
                method.mode,
                self._parameters(method),
                context.generation,
                opened.folder.name,
                opened.settings.explain_collection,
                opened.settings.person,
                knowledge.point.name if knowledge.point else "",
            )
            record = opened.record(SessionRecord)
            context = by_words_if_foreign(question.text, context)
            yield QuestionRun(method, question, context, record, description)

    def _parameters(self, method: Method) -> Mapping[str, Value]:
        """The parameters of the session: settings, history, filters, and what was wanted."""
        opened, request = self.knowledge.opened, self.request
        chat = opened.parts.chat
        parameters = record_settings(
            opened.settings,
            method.mode,
            self.question.history,
            request.count,
            chosen=isinstance(method, Chosen),
        )
        if self.question.stands_alone:
            parameters[STANDS_ALONE] = True
        if request.sparql:
            parameters |= {QUERY: request.sparql, REVISES: request.revises}
        if request.only is not None:
            parameters[ONLY] = request.only
            if chat is not None:
                parameters[WRITER] = chat.agent.name
        return {**parameters, **self.knowledge.filters.parameters}


def prepare_question(opened: OpenCollection, request: QuestionRequest) -> PreparedQuestion:
    """Prepare a request: resolve question, knowledge and method.

    Raises ``UsageError`` for an empty or too long question, an unknown mode, or a prompt without a
    language model."""
    if not request.text.strip():
        raise UsageError("The question is empty.")
    longest = opened.settings.answer.longest_question
    if len(request.text) > longest:
        raise UsageError(
            f"The question has {len(request.text):,} characters; at most {longest:,} are allowed.",
            "Ask a shorter question, or set answer.longest_question higher.",
        )
    if request.only == "prompt" and opened.parts.chat is None:
        raise UsageError(
            "A prompt needs a language model, and no language model is set.",
            "Set `chat.base_url` or OPENAI_API_KEY, or ask for the context alone.",
        )
    turns = _limit_history(opened, request)
    needs_none = bool(turns) and stands_alone(request.text, turns)
    question = Question(
        request.text,
        turns,
        stands_alone=needs_none,
        sparql=request.sparql,
        revises=request.revises,
    )
    knowledge = AskedKnowledge.resolve(opened, request)
    if request.sparql:
        _check_query(request.sparql, knowledge.context())
    method = _choose_method(opened, question, request.mode, knowledge)
    return PreparedQuestion(request, question, knowledge, method)


def _check_query(sparql: str, context: Context) -> None:
    """Raise ``QueryError`` for a written query that can't be asked, before a session begins."""
    from tgraph.compute.computation import catalogue_of
    from tgraph.compute.query_reader import read_query

    read_query(sparql, catalogue_of(context))


def stream_answer(opened: OpenCollection, request: QuestionRequest) -> AnswerStream:
    """As ``KnowledgeGraph.stream``."""
    prepared = prepare_question(opened, request)
    with prepared.run() as run:
        answer = yield from run.stream()
    if answer.no_evidence and request.mode != AUTO:
        context = prepared.knowledge.context()
        if not is_empty(context):
            mode_hint = other_mode(prepared.question, request.mode, opened.parts, context)
            if mode_hint:
                opened.message(mode_hint)
    if request.history is None:
        opened.turns.append(Turn(request.text, answer.text))
    return answer


def context(opened: OpenCollection, request: QuestionRequest) -> ContextStream:
    """As ``KnowledgeGraph.stream_context``."""
    with prepare_question(opened, request).run() as run:
        return (yield from run.context())


def suggest_questions(opened: OpenCollection, count: int, history: Sequence[Turn] | None) -> Answer:
    """As ``KnowledgeGraph.suggest``."""
    text = f"Which {count} questions could be asked next?"
    request = QuestionRequest(text, SUGGEST.name, history, count=count)
    question, knowledge = (
        Question(text, _limit_history(opened, request)),
        AskedKnowledge.resolve(opened, request),
    )
    prepared = PreparedQuestion(
        request, question, knowledge, suggestion_method(opened.parts, count)
    )
    with prepared.run() as run:
        return result_of(run.stream())


def prepare_mode(opened: OpenCollection, mode: str) -> None:
    """Build what the mode needs and no index run has built, by the settings of the graph: they who
    ask with settings of their own build nothing for others."""
    need = _missing_need(mode, opened.context())
    if need is None:
        return
    if opened.folder.replica.exists():
        raise UsageError(
            f"This replica has {_LACKS[need.what]}, which the mode {mode} searches.",
            f"Have it built where the graph is written (`{need.setting}`), or ask in another mode.",
        )
    from tgraph.engine.index.preparation import PrepareRun  # late: few questions index

    with opened.watching() as (progress, message):
        message(need.message)
        PrepareRun(opened.original.setup(progress, message)).prepare(need)


def _missing_need(mode: str, context: Context) -> Need | None:
    """Return a structure needed by the mode but missing from the graph, or None."""
    mode_definition = mode_named(mode)
    need = mode_definition.need if mode_definition is not None else None
    if need is None:
        return None
    is_lacking = context.read_once(f"lacks {need.what}", lambda: _MISSING[need.what](context.store))
    return need if is_lacking else None


def _limit_history(opened: OpenCollection, request: QuestionRequest) -> tuple[Turn, ...]:
    """Return preceding turns, limited by the settings."""
    turns = tuple(opened.turns if request.history is None else request.history)
    return turns[-opened.settings.graph.history_turns :] if turns else ()


def _choose_method(
    opened: OpenCollection, question: Question, mode: str, knowledge: AskedKnowledge
) -> Method:
    """The method of the mode, or of the mode that ``auto`` chooses."""
    if mode != AUTO:
        return in_steps(method_of(mode, opened.parts), question.text, opened.parts)
    context = knowledge.context()
    method = choose_method(question, opened.parts, context)
    need = _missing_need(method.mode, opened.context())
    if need is None or not opened.folder.replica.exists():
        opened.message(f"Mode: {method.mode}, because {method.about.reason}.")
        return method
    mode = mode_for_form(method.about.form, opened.settings.auto, context)
    opened.message(
        f"Mode: {mode}. {method.mode} would be better: {method.about.reason}, but this"
        f" replica has {_LACKS[need.what]} (`{need.setting}`)."
    )
    return in_steps(method_of(mode, opened.parts), question.text, opened.parts)
