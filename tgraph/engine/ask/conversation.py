"""What only some modes need is built by the first question that does, and kept up to date by every
index run from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from tgraph.engine.ask.method_factory import (
    chosen,
    in_steps,
    method_of,
    other_mode,
    suggesting,
)
from tgraph.engine.ask.methods import Chosen, Method, without_retrieval
from tgraph.engine.ask.parameters import ONLY, WRITER, recorded
from tgraph.engine.ask.question_run import ContextStream, QuestionRun, Stream
from tgraph.engine.index.chunk_context import lacks_contexts, update_contexts
from tgraph.engine.index.embeddings import embed
from tgraph.engine.index.run import Run, describe_run
from tgraph.errors import UsageError
from tgraph.index.sources import standing_chunks
from tgraph.index.summary_tree import standing_tree
from tgraph.model import Answer, Only, Turn
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Question
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.retrieve.modes.base import Need
from tgraph.retrieve.modes.registry import AUTO, mode_named
from tgraph.retrieve.subset import is_empty, narrowed
from tgraph.store.base import Store
from tgraph.store.statements import Value

if TYPE_CHECKING:
    from tgraph.engine.open_collection import OpenCollection


class PrepareRun(Run):
    """An index run without files."""

    def prepare(self, need: Need) -> None:
        """Build it and publish the graph with it; nothing where another process has done so."""
        with self._workshop() as shop:
            started = shop.clock()
            if need.what == "contexts":
                update_contexts(shop, wanted=True)
            if embed(shop, self._ledger, tree=need.what == "tree"):
                describe_run(shop, started)
                self._commit(shop)
            self._publish(shop)


def _lacks_tree(store: Store) -> bool:
    """Whether there are chunks enough for a tree, and none."""
    return not standing_tree(store) and len(list(islice(standing_chunks(store), 2))) == 2


_MISSING: Mapping[str, Callable[[Store], bool]] = {
    "contexts": lacks_contexts,
    "tree": _lacks_tree,
}
"""Whether a state of the graph lacks what a mode needs."""


def stream(
    opened: OpenCollection,
    question: str,
    mode: str,
    history: Sequence[Turn] | None,
    filters: Filters,
) -> Stream:
    """As ``KnowledgeGraph.stream``."""
    if not question.strip():
        raise UsageError("The question is empty.")
    asked = Question(question, _history(opened, history))
    method = _method(opened, asked, mode, filters)
    if isinstance(method, Chosen):
        opened.message(f"Mode: {method.mode}, because {method.about.reason}.")
    answer = yield from _asked(opened, asked, method, filters)
    if answer.no_evidence and mode != AUTO:
        context = narrowed(opened.context(), filters)
        other = "" if is_empty(context) else other_mode(asked, mode, opened.parts, context)
        if other:
            opened.message(other)
    if history is None:
        opened.turns.append(Turn(question, answer.text))
    return answer


def context(
    opened: OpenCollection,
    question: str,
    mode: str,
    only: Only,
    history: Sequence[Turn] | None,
    filters: Filters,
) -> ContextStream:
    """As ``KnowledgeGraph.stream_context``."""
    if not question.strip():
        raise UsageError("The question is empty.")
    if only == "prompt" and opened.parts.chat is None:
        raise UsageError(
            "A prompt is sent to a language model, and none is set.",
            "Set `chat.base_url` or OPENAI_API_KEY, or ask for the context alone.",
        )
    asked = Question(question, _history(opened, history))
    method = _method(opened, asked, mode, filters)
    if isinstance(method, Chosen):
        opened.message(f"Mode: {method.mode}, because {method.about.reason}.")
    chat = opened.parts.chat
    more = {ONLY: only, **({WRITER: chat.agent.name} if chat is not None else {})}
    with _run(opened, asked, method, filters, more) as (run, parameters):
        return (yield from run.context(asked, parameters, opened.generation, opened.folder.name))


def suggest(opened: OpenCollection, count: int, history: Sequence[Turn] | None) -> Answer:
    """As ``KnowledgeGraph.suggest``."""
    question = f"Which {count} questions could be asked next?"
    asked = Question(question, _history(opened, history))
    return last(_asked(opened, asked, suggesting(opened.parts, count), count=count))


def last(stream: Stream) -> Answer:
    """What a stream returns when it has ended."""
    while True:
        try:
            next(stream)
        except StopIteration as end:
            answer = end.value
            assert isinstance(answer, Answer)
            return answer


def prepare(opened: OpenCollection, mode: str) -> None:
    """Build what the mode needs and no index run has built."""
    found = mode_named(mode)
    need = found.need if found is not None else None
    if need is not None and _MISSING[need.what](opened.context().store):
        with opened.watching() as (progress, message):
            message(need.message)
            PrepareRun(opened.setup(progress, message)).prepare(need)


def _history(opened: OpenCollection, history: Sequence[Turn] | None) -> tuple[Turn, ...]:
    turns = tuple(opened.turns if history is None else history)
    return turns[-opened.settings.graph.history_turns :] if turns else ()


def _method(opened: OpenCollection, question: Question, mode: str, filters: Filters) -> Method:
    if mode != AUTO:
        return in_steps(method_of(mode, opened.parts), question.text, opened.parts)
    return chosen(question, opened.parts, narrowed(opened.context(), filters))


def _asked(
    opened: OpenCollection,
    question: Question,
    method: Method,
    filters: Filters = NO_FILTERS,
    count: int | None = None,
) -> Stream:
    with _run(opened, question, method, filters, {}, count) as (run, parameters):
        return (yield from run.stream(question, parameters, opened.generation, opened.folder.name))


@contextmanager
def _run(
    opened: OpenCollection,
    question: Question,
    method: Method,
    filters: Filters,
    more: Mapping[str, Value],
    count: int | None = None,
) -> Iterator[tuple[QuestionRun, Mapping[str, Value]]]:
    """The run of a question and the parameters that it is recorded with; ``more`` are some."""
    opened.ledger.check_key()
    prepare(opened, method.mode)
    context = narrowed(opened.context(), filters)
    if filters and is_empty(context):
        opened.message("The filters leave nothing to answer from.")
        method = without_retrieval(method)
    record = opened.record(SessionRecord)
    settings = opened.settings
    asking = QuestionRun(method, context, record, settings.explain_collection, settings.person)
    auto, history = isinstance(method, Chosen), question.history
    own = recorded(settings, method.mode, history, count, chosen=auto)
    opened.asking += 1
    try:
        yield asking, {**own, **more, **filters.parameters}
    finally:
        opened.asking -= 1
