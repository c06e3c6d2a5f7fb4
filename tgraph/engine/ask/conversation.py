"""Questions to an open collection, one after the other: each in its mode, with what was said before
it, over what the filters leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tgraph.engine.asking import Asking, Stream
from tgraph.engine.methods import Chosen, Method, without_retrieval
from tgraph.engine.modes import AUTO, method_of, suggesting
from tgraph.engine.parameters import recorded
from tgraph.engine.preparing import PrepareRun, need_of
from tgraph.errors import UsageError
from tgraph.model import Answer, Turn
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Question
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.retrieve.narrowing import is_empty, narrowed

if TYPE_CHECKING:
    from tgraph.engine.opened import OpenCollection


def stream(
    opened: OpenCollection,
    question: str,
    mode: str,
    history: Sequence[Turn] | None,
    filters: Filters,
) -> Stream:
    """As ``KnowledgeGraph.stream``."""
    if not question.strip():
        raise UsageError("The question is empty.", "Ask with -q 'QUESTION'.")
    asked = Question(question, _history(opened, history))
    answer = yield from _asked(opened, asked, _method(opened, asked, mode, filters), filters)
    if history is None:
        opened.turns.append(Turn(question, answer.text))
    return answer


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
    need = need_of(mode)
    if need is not None and need.is_missing(opened.context().store):
        opened.message(need.message)
        PrepareRun(opened.setup()).prepare(need)


def _history(opened: OpenCollection, history: Sequence[Turn] | None) -> tuple[Turn, ...]:
    turns = tuple(opened.turns if history is None else history)
    return turns[-opened.settings.graph.history_turns :] if turns else ()


def _method(opened: OpenCollection, question: Question, mode: str, filters: Filters) -> Method:
    if mode != AUTO:
        return method_of(mode, opened.parts)
    from tgraph.engine.auto import chosen

    return chosen(question, opened.parts, narrowed(opened.context(), filters))


def _asked(
    opened: OpenCollection,
    question: Question,
    method: Method,
    filters: Filters = NO_FILTERS,
    count: int | None = None,
) -> Stream:
    opened.ledger.check_key()
    prepare(opened, method.mode)
    context = narrowed(opened.context(), filters)
    if filters and is_empty(context):
        opened.message("The filters leave nothing to answer from.")
        method = without_retrieval(method)
    record = opened.record(SessionRecord)
    asking = Asking(method, context, record, opened.settings.explain_collection)
    parameters = _parameters(opened, question, method, filters, count)
    opened.asking += 1
    try:
        return (
            yield from asking.stream(question, parameters, opened.generation, opened.folder.name)
        )
    finally:
        opened.asking -= 1


def _parameters(
    opened: OpenCollection,
    question: Question,
    method: Method,
    filters: Filters,
    count: int | None,
) -> Mapping[str, Any]:
    """What the answer depends on beside the question and the knowledge."""
    chosen = isinstance(method, Chosen)
    own = recorded(opened.settings, method.mode, question.history, count, chosen=chosen)
    return {**own, **filters.parameters}
