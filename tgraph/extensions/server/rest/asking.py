"""Questions: asked, streamed, and what an answer would be written from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, JsonValue
from starlette.responses import JSONResponse

from tgraph.engine.ask.question_run import SentenceMessage
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.schemas import ASK, ASK_CONTEXT, event_json
from tgraph.errors import UsageError
from tgraph.extensions.server.events import event, event_stream
from tgraph.extensions.server.linked_data import provenance_links
from tgraph.extensions.server.operations import Operation, Parameters, RestCall
from tgraph.extensions.server.service import Message
from tgraph.model import Answer, Turn
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.contextual import CONTEXTUAL
from tgraph.retrieve.modes.registry import AUTO, MODES, ModeSettings

_NOT_THEIRS = {"base_url", "api_key", "provider", "model"}
"""Fields of a mode's section that say which server is asked: that is for who keeps this one."""

if TYPE_CHECKING:
    Mode = str
else:
    Mode = Literal[(AUTO, *MODES)]


class TurnIn(Parameters):
    question: str = Field(max_length=20_000)
    answer: str = Field(max_length=200_000)


class FiltersIn(Parameters):
    """What a question may be answered from; see ``tgraph ask --help``."""

    documents: list[str] = Field([], max_length=1_000)
    since: str | None = None
    until: str | None = None
    types: list[str] = Field([], max_length=100)
    languages: list[str] = Field([], max_length=100)
    valid_at: str | None = None

    def filters(self) -> Filters:
        lists = (tuple(self.documents), tuple(self.types), tuple(self.languages))
        documents, types, languages = lists
        return Filters(documents, self.since, self.until, types, languages, self.valid_at)


class QuestionIn(Parameters):
    """A question, and how it is to be answered."""

    question: str = Field(min_length=1, max_length=20_000, description="the question")
    mode: Mode = Field(AUTO, description="how to retrieve; auto chooses by the question")
    history: list[TurnIn] = Field([], max_length=200, description="the turns before it")
    filters: FiltersIn = Field(FiltersIn(), description="what it may be answered from")
    as_of: str | int | None = Field(
        None, description="a date or time, a generation or a session: knowledge as it was"
    )
    settings: dict[str, JsonValue] = Field(
        {}, description="settings of modes and of answers by name, such as graph.edge_limit"
    )

    def asked(self) -> dict[str, Any]:
        """The question as ``KnowledgeGraph.ask`` takes it."""
        return {
            "question": self.question,
            "mode": self.mode,
            "history": tuple(Turn(turn.question, turn.answer) for turn in self.history),
            "filters": self.filters.filters(),
            "as_of": self.as_of,
        }

    def overrides(self) -> dict[str, Any]:
        """The settings. ``UsageError`` for one that is not a question's to set."""
        sections = {*ModeSettings.model_fields, "answer"}
        for name in self.settings:
            section, _, field = name.partition(".")
            if name != "integrity.strict" and (section not in sections or field in _NOT_THEIRS):
                raise UsageError(
                    f"The setting {name} can't be set by a request.",
                    "Those of modes and of answers can, as section.name.",
                )
        return dict(self.settings)


class Asking(QuestionIn):
    stream: bool = Field(False, description="server-sent events, as it happens")


class ContextAsked(QuestionIn):
    only: Literal["context", "prompt"] = Field("context", description="or the whole prompt")


class SearchAsked(Parameters):
    """What is looked for."""

    text: str = Field(min_length=1, max_length=20_000, description="what is looked for")
    mode: Mode = Field(CONTEXTUAL.name, description="how to retrieve")


class Suggesting(Parameters):
    """How many questions to propose, after which conversation."""

    count: int = Field(5, ge=1, le=50)
    history: list[TurnIn] = Field([], max_length=200)


async def ask(call: RestCall) -> Any:
    """The answer, or its stream."""
    asking: Asking = call.body
    settings = asking.overrides()
    if not asking.question.strip():
        raise UsageError("The question is empty.")
    if asking.stream:
        return event_stream(_events(call, asking, settings))
    notes: list[str] = []
    answer = await call.service.run(
        call.access,
        call.collection,
        lambda graph: graph.ask(**asking.asked()),
        pool="ask",
        settings=settings,
        message=notes.append,
    )
    links = provenance_links(call.request, call.collection, answer.session)
    return JSONResponse(ASK.plain(answer), headers={"Link": links})


async def _events(
    call: RestCall, asking: Asking, settings: Mapping[str, Any]
) -> AsyncIterator[bytes]:
    """The specification's messages in its order; the last has the whole answer."""
    stream = call.service.stream(
        call.access,
        call.collection,
        lambda graph: graph.stream(**asking.asked()),
        settings=settings,
    )
    last = None
    async for told in stream:
        if isinstance(told, Message):
            message = told.value
            last = message if message.end_of_session else None
            sentence = message.sentence if isinstance(message, SentenceMessage) else None
            if last is None:
                yield event(event_json(message, sentence))
        else:
            assert isinstance(told, Answer)
            assert last is not None
            yield event(event_json(last, None, told))


async def context(call: RestCall) -> Any:
    """What the writer of an answer would be shown."""
    asked: ContextAsked = call.body
    settings = asked.overrides()

    def work(graph: KnowledgeGraph) -> Any:
        return ASK_CONTEXT.plain(graph.context_of(**asked.asked(), only=asked.only))

    return await call.service.run(call.access, call.collection, work, pool="ask", settings=settings)


async def search(call: RestCall) -> Any:
    """What the documents say on something, without an answer."""
    asked: SearchAsked = call.query

    def work(graph: KnowledgeGraph) -> Any:
        return ASK_CONTEXT.plain(graph.context_of(asked.text, asked.mode, history=()))

    return await call.graph(work, "ask")


async def suggest(call: RestCall) -> Any:
    """Questions that the documents can answer."""
    asked: Suggesting = call.body
    history = tuple(Turn(turn.question, turn.answer) for turn in asked.history)
    return await call.graph(
        lambda graph: ASK.plain(graph.suggest(asked.count, history=history)), "ask"
    )


_BASE = "/api/v1/collections/{collection}"
OPERATIONS = (
    Operation(
        "POST",
        f"{_BASE}/ask",
        "ask",
        "Answer a question, with proof",
        ask,
        "ask",
        "ask",
        body=Asking,
        media=("text/event-stream",),
        tags=("questions",),
    ),
    Operation(
        "POST",
        f"{_BASE}/context",
        "context",
        "Retrieve and select, and write no answer",
        context,
        "ask",
        "ask-context",
        body=ContextAsked,
        tags=("questions",),
    ),
    Operation(
        "GET",
        f"{_BASE}/search",
        "search",
        "Find passages or facts, with their places",
        search,
        "ask",
        "ask-context",
        query=SearchAsked,
        tags=("questions",),
    ),
    Operation(
        "POST",
        f"{_BASE}/suggest",
        "suggest",
        "Propose questions that the documents can answer",
        suggest,
        "ask",
        "ask",
        body=Suggesting,
        tags=("questions",),
    ),
)
