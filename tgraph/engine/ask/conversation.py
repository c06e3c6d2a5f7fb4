"""A question of an open collection: its history, what of the knowledge is asked, in which mode, and
what that needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from tgraph.engine.ask.method_factory import (
    chosen,
    in_steps,
    method_of,
    mode_for_form,
    other_mode,
    suggesting,
)
from tgraph.engine.ask.methods import Chosen, Method, without_retrieval
from tgraph.engine.ask.parameters import ONLY, STANDS_ALONE, WRITER, recorded
from tgraph.engine.ask.question_run import ContextStream, QuestionRun, Stream
from tgraph.engine.ask.streams import result_of
from tgraph.errors import UsageError
from tgraph.index.chunk_contexts import lacks_contexts
from tgraph.index.sources import standing_chunks
from tgraph.index.summary_tree import standing_tree
from tgraph.model import Answer, Only, Turn
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.retrieve.modes.registry import AUTO, mode_named
from tgraph.retrieve.subset import is_empty, narrowed
from tgraph.retrieve.text.follow_up import stands_alone
from tgraph.retrieve.text.word_vectors import by_words_if_foreign
from tgraph.store.base import Store
from tgraph.store.statements import Value

if TYPE_CHECKING:
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.trace.generations import PointInTime
    from tgraph.retrieve.modes.base import Need


def _lacks_tree(store: Store) -> bool:
    """Whether there are chunks enough for a tree, and none."""
    return not standing_tree(store) and len(list(islice(standing_chunks(store), 2))) == 2


_MISSING: Mapping[str, Callable[[Store], bool]] = {
    "contexts": lacks_contexts,
    "tree": _lacks_tree,
}
"""Whether a state of the graph lacks what a mode needs."""

_LACKS = {"contexts": "no contexts of chunks", "tree": "no tree of summaries"}


def point_in_time(opened: OpenCollection, name: str) -> PointInTime:
    """What a date, a time, a generation or a session means; see ``find_point``."""
    from tgraph.explain.trace.generations import find_point

    knowledge = opened.context().store
    return find_point(knowledge, opened.read, opened.catalogue, name, opened.clock())


@dataclass(frozen=True, slots=True)
class AskedKnowledge:
    """What a question is asked of: the newest knowledge or, with a ``point``, as it was then; of
    this, what the filters admit."""

    opened: OpenCollection
    filters: Filters
    point: PointInTime | None = None

    def context(self) -> Context:
        """The newest state with what ``prepare`` has built in it, or that of the point."""
        opened = self.opened
        if self.point:
            return narrowed(opened.context_as_of(self.point.generation), self.filters)
        # what filters leave is put together from the statements, one by one: not over a network
        whole = opened.own_context() if self.filters else opened.context()
        return narrowed(whole, self.filters)

    def announce(self) -> None:
        """Say what of earlier knowledge is asked, and what of it can't be had."""
        if self.point is not None:
            since = self.point.published[:19].replace("T", " ")
            self.opened.message(f"As of generation {self.point.generation}, of {since} UTC.")
            for note in self.opened.context_as_of(self.point.generation).notes:
                self.opened.message(note)

    def prepare(self, mode: str) -> None:
        """Build what the mode needs. Nothing can be built in earlier knowledge: there it is a
        ``UsageError`` where that lacks it."""
        if self.point is None:
            prepare(self.opened, mode)
            return
        need = _lacking(mode, self.opened.context_as_of(self.point.generation))
        if need is not None:
            raise UsageError(
                f"Generation {self.point.generation} has {_LACKS[need.what]}, which the mode "
                f"{mode} searches: nobody had asked for it by then.",
                "Ask in another mode, or as of a later generation (`tgraph history`).",
            )


def stream(
    opened: OpenCollection,
    question: str,
    mode: str,
    history: Sequence[Turn] | None,
    filters: Filters,
    as_of: str = "",
) -> Stream:
    """As ``KnowledgeGraph.stream``."""
    if not question.strip():
        raise UsageError("The question is empty.")
    asked = in_turn(question, _history(opened, history))
    state = _knowledge(opened, filters, as_of)
    method = _method(opened, asked, mode, state)
    answer = yield from _asked(opened, asked, method, state)
    if answer.no_evidence and mode != AUTO:
        context = state.context()
        other = "" if is_empty(context) else other_mode(asked, mode, opened.parts, context)
        if other:
            opened.message(other)
    if history is None:
        opened.turns.append(Turn(question, answer.text))
    return answer


def _knowledge(opened: OpenCollection, filters: Filters, as_of: str) -> AskedKnowledge:
    """What a question is asked of; of earlier knowledge it is said."""
    point = point_in_time(opened, as_of) if as_of else None
    if point is not None and not point.generation:
        raise UsageError("There is no generation 0.", "`tgraph history` lists the generations.")
    state = AskedKnowledge(opened, filters, point)
    state.announce()
    return state


def context(
    opened: OpenCollection,
    question: str,
    mode: str,
    only: Only,
    history: Sequence[Turn] | None,
    filters: Filters,
    as_of: str = "",
) -> ContextStream:
    """As ``KnowledgeGraph.stream_context``."""
    if not question.strip():
        raise UsageError("The question is empty.")
    if only == "prompt" and opened.parts.chat is None:
        raise UsageError(
            "A prompt is sent to a language model, and none is set.",
            "Set `chat.base_url` or OPENAI_API_KEY, or ask for the context alone.",
        )
    asked = in_turn(question, _history(opened, history))
    state = _knowledge(opened, filters, as_of)
    method = _method(opened, asked, mode, state)
    chat = opened.parts.chat
    more = {ONLY: only, **({WRITER: chat.agent.name} if chat is not None else {})}
    with _run(opened, asked, method, state, more) as (run, given):
        return (yield from run.context(*given))


def suggest(opened: OpenCollection, count: int, history: Sequence[Turn] | None) -> Answer:
    """As ``KnowledgeGraph.suggest``."""
    question = f"Which {count} questions could be asked next?"
    asked = Question(question, _history(opened, history))
    state = AskedKnowledge(opened, NO_FILTERS)
    return result_of(_asked(opened, asked, suggesting(opened.parts, count), state, count))


def prepare(opened: OpenCollection, mode: str) -> None:
    """Build what the mode needs and no index run has built."""
    need = _lacking(mode, opened.context())
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
        PrepareRun(opened.setup(progress, message)).prepare(need)


def _lacking(mode: str, context: Context) -> Need | None:
    """What the mode needs and the state of the graph hasn't."""
    found = mode_named(mode)
    need = found.need if found is not None else None
    if need is None:
        return None
    is_lacking = context.once(f"lacks {need.what}", lambda: _MISSING[need.what](context.store))
    return need if is_lacking else None


def in_turn(text: str, turns: tuple[Turn, ...]) -> Question:
    """The question after these turns, read for whether it needs them."""
    return Question(text, turns, stands_alone=bool(turns) and stands_alone(text, turns))


def _history(opened: OpenCollection, history: Sequence[Turn] | None) -> tuple[Turn, ...]:
    turns = tuple(opened.turns if history is None else history)
    return turns[-opened.settings.graph.history_turns :] if turns else ()


def _method(opened: OpenCollection, question: Question, mode: str, state: AskedKnowledge) -> Method:
    if mode != AUTO:
        return in_steps(method_of(mode, opened.parts), question.text, opened.parts)
    context = state.context()
    method = chosen(question, opened.parts, context)
    need = _lacking(method.mode, opened.context())
    if need is None or not opened.folder.replica.exists():
        opened.message(f"Mode: {method.mode}, because {method.about.reason}.")
        return method
    mode = mode_for_form(method.about.form, opened.settings.auto, context)
    opened.message(
        f"Mode: {mode}. {method.mode} would be better: {method.about.reason}, but this"
        f" replica has {_LACKS[need.what]} (`{need.setting}`)."
    )
    return in_steps(method_of(mode, opened.parts), question.text, opened.parts)


def _asked(
    opened: OpenCollection,
    question: Question,
    method: Method,
    state: AskedKnowledge,
    count: int | None = None,
) -> Stream:
    with _run(opened, question, method, state, {}, count) as (run, asked):
        return (yield from run.stream(*asked))


@contextmanager
def _run(
    opened: OpenCollection,
    question: Question,
    method: Method,
    state: AskedKnowledge,
    more: Mapping[str, Value],
    count: int | None = None,
) -> Iterator[tuple[QuestionRun, tuple[Question, Mapping[str, Value], int, str, str]]]:
    """The run of a question and what it is asked and recorded with; ``more`` are parameters."""
    opened.ledger.check_key()
    state.prepare(method.mode)
    with opened.asking():
        yield _prepared_run(opened, question, method, state, more, count)


def _prepared_run(
    opened: OpenCollection,
    question: Question,
    method: Method,
    state: AskedKnowledge,
    more: Mapping[str, Value],
    count: int | None,
) -> tuple[QuestionRun, tuple[Question, Mapping[str, Value], int, str, str]]:
    context = state.context()
    if state.filters and is_empty(context):
        opened.message("The filters leave nothing to answer from.")
        method = without_retrieval(method)
    record = opened.record(SessionRecord)
    settings = opened.settings
    context = by_words_if_foreign(question.text, context)
    asking = QuestionRun(method, context, record, settings.explain_collection, settings.person)
    auto, history = isinstance(method, Chosen), question.history
    own = recorded(settings, method.mode, history, count, chosen=auto)
    alone = {STANDS_ALONE: True} if question.stands_alone else {}
    parameters = {**own, **alone, **more, **state.filters.parameters}
    point = state.point.name if state.point else ""
    return asking, (question, parameters, context.generation, opened.folder.name, point)
