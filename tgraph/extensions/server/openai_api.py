"""OpenAI API: ``/v1/models`` and ``/v1/chat/completions``, letting OpenAI clients query a
graph.

Each mode is a model; sentence citations become message annotations. Routes below ``/cited`` add
numbered links to the text, for clients without annotation display."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from tgraph.engine.ask.question_run import SentenceMessage
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import TgraphError, UnknownNameError, UsageError
from tgraph.extensions.server.access import Declaration
from tgraph.extensions.server.declared import DeclaredRoute
from tgraph.extensions.server.events import format_event, keep_stream_alive
from tgraph.extensions.server.problems import problem_of
from tgraph.extensions.server.requests import json_body
from tgraph.extensions.server.service import Message, Service
from tgraph.extensions.server.sign_in import access_of
from tgraph.model import Answer, Citation, GraphRagResponse, Sentence, Turn, Usage
from tgraph.retrieve.modes.registry import AUTO, MODES
from tgraph.store.folder import GraphFolder
from tgraph.vocabulary import document_iri, session_iri

_NAME = "tgraph-"
_MOST = 1_000_000
"""Characters of a conversation."""


class _ContentPart(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str
    text: str = ""


class _ChatMessage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[_ContentPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class _Completion(BaseModel):
    """What of a request counts; what else clients send, such as a temperature, has no meaning for
    an answer that is made of quotes, or is set where the server is."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(max_length=300)
    messages: list[_ChatMessage] = Field(min_length=1, max_length=1_000)
    stream: bool = False
    stream_options: _StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    response_format: dict[str, Any] | None = None

    def split_question(self) -> tuple[str, tuple[Turn, ...]]:
        """Return the question and earlier turns; raise ``UsageError`` without a question."""
        if sum(len(message.text) for message in self.messages) > _MOST:
            raise UsageError(f"The conversation has more than {_MOST:,} characters.")
        if self.n not in (None, 1):
            raise UsageError("There is one answer to a question: n has to be 1.")
        if self.tools:
            raise UsageError("These models call no tools.", "tgraph serves tools by MCP.")
        if (self.response_format or {}).get("type", "text") != "text":
            raise UsageError("The answer is a text: response_format can't be another.")
        dialogue = [message for message in self.messages if message.role in ("user", "assistant")]
        if not dialogue or dialogue[-1].role != "user" or not dialogue[-1].text.strip():
            raise UsageError("The last message has to be the user's question.")
        return dialogue[-1].text, tuple(_pair_turns(dialogue[:-1]))


def _pair_turns(said: Sequence[_ChatMessage]) -> list[Turn]:
    """Pair questions with replies."""
    turns: list[Turn] = []
    question = ""
    for message in said:
        if message.role == "user":
            question = f"{question}\n{message.text}".strip()
        elif question:
            turns.append(Turn(question, message.text))
            question = ""
    return turns


@dataclass
class _CompletionReply:
    """A partly written reply: text, plus annotations linking text ranges to evidence."""

    request: Request
    collection: str
    model: str
    cited: bool
    created: int = field(default_factory=lambda: int(time.time()))
    text: str = ""
    annotations: list[dict[str, Any]] = field(default_factory=list)
    session: str = ""
    _links: dict[str, int] = field(default_factory=dict)

    def add(self, message: GraphRagResponse) -> str:
        """Append a message and return the added text."""
        if message.explain_id and not self.session:
            self.session = message.explain_id
        if message.message_type != "chunk" or not message.response:
            return ""
        sentence = message.sentence if isinstance(message, SentenceMessage) else None
        added = message.response
        if sentence is not None:
            self._annotate_sentence(sentence, added)
            added += self._format_links(sentence) if self.cited else ""
        self.text += added
        return added

    def _annotate_sentence(self, sentence: Sentence, added: str) -> None:
        start = len(self.text) + len(added) - len(added.lstrip())
        for citation in sentence.citations:
            annotation = {
                "start_index": start,
                "end_index": len(self.text) + len(added),
                "title": _citation_title(citation),
                "url": self._citation_url(citation),
            }
            self.annotations.append({"type": "url_citation", "url_citation": annotation})

    def _format_links(self, sentence: Sentence) -> str:
        """Return a numbered link for each cited place of a sentence."""
        marks = []
        for url in dict.fromkeys(map(self._citation_url, sentence.citations)):
            number = self._links.setdefault(url, len(self._links) + 1)
            marks.append(f" [[{number}]]({url})")
        return "".join(marks)

    def _citation_url(self, citation: Citation) -> str:
        return str(self.request.base_url).rstrip("/") + quote_path(self.collection, citation)

    def body(self, kind: str, choice: dict[str, Any], usage: Usage | None) -> dict[str, Any]:
        """Return the JSON body of a reply or reply chunk."""
        reply_body: dict[str, Any] = {
            "id": f"chatcmpl-{self.session.removeprefix(session_iri(''))}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": [{"index": 0, "logprobs": None, **choice}],
            "explain_id": self.session,
        }
        return reply_body if usage is None else {**reply_body, "usage": _format_usage(usage)}


def quote_path(collection: str, citation: Citation) -> str:
    """Return the workbench path showing a quote within its page."""
    digest = citation.document.removeprefix(document_iri(""))
    place = {"start": citation.start, "end": citation.end}
    page = {"page": citation.page} if citation.page is not None else {}
    return f"/workbench/{collection}/documents/{digest}?{urlencode({**page, **place})}#quote"


def _citation_title(citation: Citation) -> str:
    page = f", page {citation.page}" if citation.page is not None else ""
    return f"{citation.title}{page}: “{citation.quote}”"


def _format_usage(usage: Usage) -> dict[str, int]:
    tokens = (usage.input_tokens, usage.output_tokens)
    return {
        "prompt_tokens": tokens[0],
        "completion_tokens": tokens[1],
        "total_tokens": sum(tokens),
    }


_LISTING = Declaration(("ask",), ("collections",))
_ASKING = Declaration(("ask",), ("answer",))


def openai_routes(service: Service) -> list[DeclaredRoute]:
    """Return OpenAI routes: plain texts below ``/v1``, texts with links below ``/cited/v1``."""
    routes = []
    for base, cited in (("", False), ("/cited", True)):
        completions = _handle_errors(partial(_serve_completions, service, cited))
        models, model = (
            _handle_errors(partial(_list_models, service)),
            _handle_errors(partial(_show_model, service)),
        )
        routes += [
            DeclaredRoute(f"{base}/v1/models", models, _LISTING),
            DeclaredRoute(f"{base}/v1/models/{{model}}", model, _LISTING),
            DeclaredRoute(f"{base}/v1/chat/completions", completions, _ASKING, methods=["POST"]),
        ]
    return routes


def _handle_errors(answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Wrap an endpoint, converting errors into OpenAI API error format."""

    async def answer_request(request: Request) -> Response:
        try:
            response: Response = await answer(request)
        except TgraphError as error:
            details = problem_of(error)
            return JSONResponse({"error": _format_error(details)}, int(details["status"]))
        return response

    return answer_request


def _format_error(told: dict[str, Any]) -> dict[str, Any]:
    message = f"{told['detail']} {told.get('remedy', '')}".strip()
    kind = "invalid_request_error" if told["status"] < 500 else "server_error"
    code = str(told["type"]).rpartition(":")[2]
    return {"message": message, "type": kind, "param": None, "code": code}


# --- models ---


async def _list_models(service: Service, request: Request) -> Response:
    access = access_of(request)
    _LISTING.check(access)
    names = await service.call(lambda: list(GraphFolder(service.root).collections()))
    mine = [name for name in names if access.admits(name)]
    return JSONResponse(
        {"object": "list", "data": list(map(_model_card, _model_names(service, mine)))}
    )


async def _show_model(service: Service, request: Request) -> Response:
    access = access_of(request)
    _LISTING.check(access)
    name = str(request.path_params["model"])
    _, collection = _parse_model_name(service, name)
    _LISTING.check(access, collection)
    return JSONResponse(_model_card(name))


def _model_names(service: Service, collections: Sequence[str]) -> list[str]:
    default = service.default_collection
    return [
        f"{_NAME}{mode}" + ("" if collection == default else f"@{collection}")
        for collection in sorted(collections, key=lambda name: (name != default, name))
        for mode in (AUTO, *MODES)
    ]


def _model_card(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "tgraph"}


def _parse_model_name(service: Service, name: str) -> tuple[str, str]:
    """Return mode and collection of a model name; raise ``UnknownNameError`` for unknown
    models."""
    mode, _, collection = name.removeprefix(_NAME).partition("@")
    if not name.startswith(_NAME) or mode not in (AUTO, *MODES):
        raise UnknownNameError(
            f"There is no model {name!r}.", f"There are {_NAME}{AUTO} and others: see /v1/models."
        )
    return mode, collection or service.default_collection


# --- completions ---


async def _serve_completions(service: Service, cited: bool, request: Request) -> Response:
    access = access_of(request)
    _ASKING.check(access)
    try:
        completion = _Completion.model_validate(await json_body(request, service))
    except ValidationError as error:
        reasons = "; ".join(
            f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5]
        )
        raise UsageError(f"The request is wrong: {reasons}.") from None
    mode, collection = _parse_model_name(service, completion.model)
    _ASKING.check(access, collection)
    question, history = completion.split_question()
    reply = _CompletionReply(request, collection, completion.model, cited)

    def begin(graph: KnowledgeGraph) -> Any:
        return graph.stream(question, mode, history=history)

    messages = service.stream(access, collection, begin)
    if completion.stream:
        includes_usage = (
            completion.stream_options is not None and completion.stream_options.include_usage
        )
        first = await anext(messages)  # what is wrong with the question is told by the status
        if isinstance(first, Message):
            reply.add(first.value)
        return _stream_response(_stream_chunks(reply, messages, usage=includes_usage))
    return JSONResponse(await _collect_reply(reply, messages))


AnswerMessages = AsyncIterator[Message[GraphRagResponse] | Answer]


async def _collect_reply(reply: _CompletionReply, messages: AnswerMessages) -> dict[str, Any]:
    usage = Usage(0, 0, 0)
    async for stream_item in messages:
        if isinstance(stream_item, Message):
            reply.add(stream_item.value)
        else:
            usage = stream_item.usage
    message = {
        "role": "assistant",
        "content": reply.text,
        "refusal": None,
        "annotations": reply.annotations,
    }
    choice = {"message": message, "finish_reason": "stop"}
    return reply.body("chat.completion", choice, usage)


def _stream_response(chunks: AsyncIterator[bytes]) -> StreamingResponse:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        keep_stream_alive(chunks), headers=headers, media_type="text/event-stream"
    )


async def _stream_chunks(
    reply: _CompletionReply, messages: AnswerMessages, *, usage: bool
) -> AsyncIterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"delta": delta, "finish_reason": finish}
        return format_event(reply.body("chat.completion.chunk", choice, None))

    yield chunk({"role": "assistant", "content": ""})
    cost = Usage(0, 0, 0)
    try:
        async for stream_item in messages:
            if not isinstance(stream_item, Message):
                cost = stream_item.usage
            elif added := reply.add(stream_item.value):
                yield chunk({"content": added})
    except TgraphError as error:
        yield format_event({"error": _format_error(problem_of(error))})
        return
    yield chunk({"annotations": reply.annotations}, "stop")
    if usage:
        last = reply.body("chat.completion.chunk", {}, cost)
        yield format_event({**last, "choices": []})
    yield b"data: [DONE]\n\n"
