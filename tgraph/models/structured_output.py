"""Structured replies: requested schema, and tolerant reading of the reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from tgraph.errors import EndpointError, ModelError, RefusedPromptError
from tgraph.models.base import Call, CallSink, ChatModel, ChatReply, ChatRequest, no_sink
from tgraph.models.json_parsing import Read, read_reply
from tgraph.resources import read_text

T = TypeVar("T", bound=BaseModel)
ReplyParser = Callable[[str, type[T]], Read[T] | str]
"""Reads a reply as a schema; one sentence on what is wrong where it is none."""

_QUOTED_REPLY = 4_000
_UNSUPPORTED = frozenset(
    {"default", "title", "examples", "minLength", "maxLength", "discriminator"}
)


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """A reply parsed into a value.

    ``repaired``: the text was not plain JSON of the wanted shape. ``dropped``: number of
    malformed or truncated list items. ``truncated``: the reply ended before its JSON. ``asked``
    is the number of calls made (2: the model was told the problem)."""

    value: T
    reply: ChatReply
    repaired: bool = False
    dropped: int = 0
    truncated: bool = False
    asked: int = 1


@runtime_checkable
class Forgetful(Protocol):
    """A model with stored replies, able to forget a useless reply."""

    def forget(self, request: ChatRequest) -> None: ...


def ask_structured(
    model: ChatModel,
    request: ChatRequest,
    schema: type[T],
    sink: CallSink = no_sink,
    *,
    read: ReplyParser[T] | None = None,
) -> Structured[T]:
    """Return the reply to ``request`` as a ``schema`` value, however wrapped by the model.

    ``read`` replaces the reader of replies for a step whose models also know another format.

    After an unusable reply, the request is repeated once, with an explanation of the problem.
    Each call goes to ``sink`` once, with ``repaired`` set if its text had to be mended. Raises
    ``ModelError`` if the second reply is unusable too (a ``Forgetful`` model then forgets both,
    so that the next run asks again), and ``EndpointError`` like the model."""
    base_request = request
    if base_request.schema is None:
        base_request = replace(base_request, schema=strict_schema(schema))
    problem, reply_text = "", ""
    failure: ModelError | None = None
    tried: list[ChatRequest] = []
    for attempt in (1, 2):
        sent_request = (
            base_request if attempt == 1 else _repeat_request(base_request, reply_text, problem)
        )
        tried.append(sent_request)
        try:
            outcome = _try_request(model, sent_request, schema, sink, read or read_reply)
        except (EndpointError, RefusedPromptError):
            raise
        except ModelError as error:
            problem, reply_text, failure = str(error), "", error
            continue
        if isinstance(outcome, Structured):
            return replace(outcome, asked=attempt)
        (problem, reply_text), failure = outcome, None
    if isinstance(model, Forgetful):
        for sent_request in tried:
            model.forget(sent_request)
    raise failure or ModelError(
        f"The reply of {model.agent.name} to the step {request.prompt.name}"
        f" can't be used: {problem}",
        "A larger model, or one that supports structured output, does better.",
    )


def _try_request(
    model: ChatModel, request: ChatRequest, schema: type[T], sink: CallSink, reader: ReplyParser[T]
) -> Structured[T] | tuple[str, str]:
    """Return the structured value, or the problem with the reply, plus reply text."""
    calls: list[Call] = []
    mended = False
    try:
        reply = model.complete(request, calls.append)
        read = reader(reply.text, schema)
        if isinstance(read, str):
            return read, reply.text
        mended = read.repaired
        cut = read.truncated or reply.finish_reason == "length"
        return Structured(read.value, reply, read.repaired, read.dropped, cut)
    finally:
        for call in calls:
            sink(replace(call, repaired=mended))


def _repeat_request(request: ChatRequest, said: str, problem: str) -> ChatRequest:
    """Return the request extended by the unusable reply and a problem description."""
    text = read_text("prompts", "parts/reask.txt").format(problem=problem).strip()
    messages = [dict(m) for m in request.messages]
    if said:
        messages.append({"role": "assistant", "content": said[:_QUOTED_REPLY]})
    return replace(request, messages=[*messages, {"role": "user", "content": text}])


@cache
def strict_schema(schema: type[BaseModel]) -> Mapping[str, Any]:
    """Return a model's JSON schema, read-only, in the subset supported by OpenAI's strict mode.

    Every object lists all its properties as required and allows no others (OpenAI, "Structured
    Outputs: supported schemas"). Raises ``TypeError`` for a mapping with free keys, which the
    subset can't express."""
    strict = _make_strict(json.loads(json.dumps(schema.model_json_schema())))
    assert isinstance(strict, dict)
    return strict


def _make_strict(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            result[key] = {name: _make_strict(sub) for name, sub in value.items()}
        elif key in ("anyOf", "oneOf", "allOf"):
            result["anyOf" if key == "oneOf" else key] = [_make_strict(sub) for sub in value]
        elif key == "items":
            result[key] = _make_strict(value)
        elif key not in _UNSUPPORTED:
            result[key] = value
    if schema.get("type") == "object":
        if isinstance(schema.get("additionalProperties"), Mapping) or "properties" not in schema:
            raise TypeError("a mapping with free keys has no strict schema")
        result["additionalProperties"] = False
        result["required"] = list(result["properties"])
    return {"$ref": result["$ref"]} if "$ref" in result else result
