"""Question operations: answers, answer streams, and writing context."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, JsonValue
from starlette.responses import Response

from tgraph.engine.ask.question_run import SentenceMessage
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.json_answers import (
    AskContextOut,
    AskOut,
    answer_json,
    context_json,
    event_json,
)
from tgraph.errors import UsageError
from tgraph.explain.trace.generations import names_session
from tgraph.extensions.server.access import Access
from tgraph.extensions.server.events import event_stream, format_event
from tgraph.extensions.server.linked_data import provenance_links
from tgraph.extensions.server.requests import BodyParameters, TurnIn
from tgraph.extensions.server.rest.request_settings import check_settings
from tgraph.extensions.server.rest.routes import (
    EVENTS,
    CollectionCall,
    CollectionRestCall,
    json_response,
    media,
    needs,
    rest_router,
)
from tgraph.extensions.server.service import Message
from tgraph.model import Answer, Turn
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.contextual import CONTEXTUAL
from tgraph.retrieve.modes.registry import AUTO, MODES

if TYPE_CHECKING:
    Mode = str
else:
    Mode = Literal[(AUTO, *MODES)]


class FiltersIn(BodyParameters):
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


class QuestionIn(BodyParameters):
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

    def to_arguments(self) -> dict[str, Any]:
        """The question as ``KnowledgeGraph.ask`` takes it."""
        return {
            "question": self.question,
            "mode": self.mode,
            "history": tuple(Turn(turn.question, turn.answer) for turn in self.history),
            "filters": self.filters.filters(),
            "as_of": self.as_of,
        }

    def check_point(self, access: Access, collection: str) -> None:
        """Raise ``ForbiddenError`` for a point in time that is a session, without the right to read
        sessions."""
        if self.as_of is not None and names_session(str(self.as_of)):
            access.check("read", collection)

    def overrides(self) -> dict[str, Any]:
        """Return setting overrides; raise ``UsageError`` for settings beyond request control."""
        return check_settings(self.settings)


class Asking(QuestionIn):
    stream: bool = Field(False, description="server-sent events, as it happens")


class ContextAsked(QuestionIn):
    only: Literal["context", "prompt"] = Field("context", description="or the whole prompt")


class SearchAsked(BodyParameters):
    """What is looked for."""

    text: str = Field(min_length=1, max_length=20_000, description="what is looked for")
    mode: Mode = Field(CONTEXTUAL.name, description="how to retrieve")


class Suggesting(BodyParameters):
    """How many questions to propose, after which conversation."""

    count: int = Field(5, ge=1, le=50)
    history: list[TurnIn] = Field([], max_length=200)


router = rest_router("questions")


@router.post(
    "/collections/{collection}/ask",
    summary="Answer a question, with proof",
    response_model=AskOut,
    responses=media(EVENTS),
    dependencies=needs("ask", gives="answer"),
)
async def ask(call: CollectionCall, asking: Asking) -> Response:
    """Answer the question, or stream the answer."""
    settings = asking.overrides()
    asking.check_point(call.access, call.collection)
    if not asking.question.strip():
        raise UsageError("The question is empty.")
    if asking.stream:
        return event_stream(_stream_events(call, asking, settings))
    notes: list[str] = []
    answer = await call.service.run(
        call.access,
        call.collection,
        lambda graph: graph.ask(**asking.to_arguments()),
        pool="ask",
        settings=settings,
        message=notes.append,
    )
    links = provenance_links(call.request, call.collection, answer.session)
    return json_response(answer_json(answer), headers={"Link": links})


async def _stream_events(
    call: CollectionRestCall, asking: Asking, settings: Mapping[str, Any]
) -> AsyncIterator[bytes]:
    """Yield the messages of the specification in their order; the last has the whole answer."""
    stream = call.service.stream(
        call.access,
        call.collection,
        lambda graph: graph.stream(**asking.to_arguments()),
        settings=settings,
    )
    last = None
    async for part in stream:
        if isinstance(part, Message):
            message = part.value
            last = message if message.end_of_session else None
            sentence = message.sentence if isinstance(message, SentenceMessage) else None
            if last is None:
                yield format_event(event_json(message, sentence))
        else:
            assert isinstance(part, Answer)
            assert last is not None
            yield format_event(event_json(last, None, part))


@router.post(
    "/collections/{collection}/context",
    summary="Retrieve and select, and write no answer",
    response_model=AskContextOut,
    dependencies=needs("ask", gives="answer"),
)
async def context(call: CollectionCall, asked: ContextAsked) -> Response:
    """Return what the writer of an answer would be shown."""
    settings = asked.overrides()
    asked.check_point(call.access, call.collection)

    def work(graph: KnowledgeGraph) -> dict[str, Any]:
        return context_json(graph.gather_context(**asked.to_arguments(), only=asked.only))

    return json_response(
        await call.service.run(call.access, call.collection, work, pool="ask", settings=settings)
    )


@router.post(
    "/collections/{collection}/search",
    summary="Find passages or facts, with their places",
    response_model=AskContextOut,
    dependencies=needs("ask", gives="answer"),
)
async def search(call: CollectionCall, asked: SearchAsked) -> Response:
    """Return what the documents say on something, without an answer."""

    def work(graph: KnowledgeGraph) -> dict[str, Any]:
        return context_json(graph.gather_context(asked.text, asked.mode, history=()))

    return json_response(await call.graph(work, "ask"))


@router.post(
    "/collections/{collection}/suggest",
    summary="Propose questions that the documents can answer",
    response_model=AskOut,
    dependencies=needs("ask", gives="answer"),
)
async def suggest(call: CollectionCall, asked: Suggesting) -> Response:
    """Return questions that the documents can answer."""
    history = tuple(Turn(turn.question, turn.answer) for turn in asked.history)
    return json_response(
        await call.graph(
            lambda graph: answer_json(graph.suggest(asked.count, history=history)), "ask"
        )
    )
