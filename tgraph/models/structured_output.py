"""Structured replies: the schema that is asked for, and a tolerant reading of what comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from tgraph.errors import EndpointError, ModelError
from tgraph.models.base import Call, CallSink, ChatModel, ChatReply, ChatRequest, no_sink
from tgraph.models.json_parsing import Read, read_reply
from tgraph.resources import read_text

T = TypeVar("T", bound=BaseModel)
Reader = Callable[[str, type[T]], Read[T] | str]
"""Reads a reply as a schema; one sentence on what is wrong where it is none."""

_QUOTED_REPLY = 4_000
_UNSUPPORTED = frozenset(
    {"default", "title", "examples", "minLength", "maxLength", "discriminator"}
)


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """A reply as a value.

    ``repaired``: the text was not plain JSON of the wanted shape. ``dropped``: items of lists that
    were malformed or cut off. ``truncated``: the reply ended before its JSON did. ``asked`` is the
    number of calls made (2: the model was told what was wrong).
    """

    value: T
    reply: ChatReply
    repaired: bool = False
    dropped: int = 0
    truncated: bool = False
    asked: int = 1


@runtime_checkable
class Forgetful(Protocol):
    """A model that keeps replies and can be told that one is of no use."""

    def forget(self, request: ChatRequest) -> None: ...


def ask(
    model: ChatModel,
    request: ChatRequest,
    schema: type[T],
    sink: CallSink = no_sink,
    *,
    read: Reader[T] | None = None,
) -> Structured[T]:
    """The reply to ``request`` as a ``schema``, whatever the model wrapped it in.

    ``read`` replaces the reader of replies for a step whose models also know another format.

    A reply that can't be used is asked for once more, with what was wrong with it. Each call goes
    to ``sink`` once, with ``repaired`` set where its text had to be mended. Raises ``ModelError``
    when the second reply can't be used either (a ``Forgetful`` model then forgets both, so that the
    next run asks anew), and ``EndpointError`` as the model does.
    """
    wanted = request
    if wanted.schema is None:
        wanted = replace(wanted, schema=strict_schema(schema))
    problem, said = "", ""
    failure: ModelError | None = None
    tried: list[ChatRequest] = []
    for attempt in (1, 2):
        asked = wanted if attempt == 1 else _again(wanted, said, problem)
        tried.append(asked)
        try:
            outcome = _try(model, asked, schema, sink, read or read_reply)
        except EndpointError:
            raise
        except ModelError as error:
            problem, said, failure = str(error), "", error
            continue
        if isinstance(outcome, Structured):
            return replace(outcome, asked=attempt)
        (problem, said), failure = outcome, None
    if isinstance(model, Forgetful):
        for asked in tried:
            model.forget(asked)
    raise failure or ModelError(
        f"The reply of {model.agent.name} to the step {request.prompt.name}"
        f" can't be used: {problem}",
        "A larger model, or one that supports structured output, does better.",
    )


def _try(
    model: ChatModel, request: ChatRequest, schema: type[T], sink: CallSink, reader: Reader[T]
) -> Structured[T] | tuple[str, str]:
    """The value, or what is wrong with the reply and its text."""
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


def _again(request: ChatRequest, said: str, problem: str) -> ChatRequest:
    """The request with the unusable reply and what is wrong with it."""
    text = read_text("prompts", "parts/reask.txt").format(problem=problem).strip()
    messages = [dict(m) for m in request.messages]
    if said:
        messages.append({"role": "assistant", "content": said[:_QUOTED_REPLY]})
    return replace(request, messages=[*messages, {"role": "user", "content": text}])


@cache
def strict_schema(schema: type[BaseModel]) -> Mapping[str, Any]:
    """The JSON schema of a model in the subset that OpenAI's strict mode takes, to be read only.

    Every object lists all its properties as required and allows no others (OpenAI, "Structured
    Outputs: supported schemas"). Raises ``TypeError`` for a mapping with free keys, which that
    subset can't express.
    """
    strict = _strict(json.loads(json.dumps(schema.model_json_schema())))
    assert isinstance(strict, dict)
    return strict


def _strict(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            result[key] = {name: _strict(sub) for name, sub in value.items()}
        elif key in ("anyOf", "oneOf", "allOf"):
            result["anyOf" if key == "oneOf" else key] = [_strict(sub) for sub in value]
        elif key == "items":
            result[key] = _strict(value)
        elif key not in _UNSUPPORTED:
            result[key] = value
    if schema.get("type") == "object":
        if isinstance(schema.get("additionalProperties"), Mapping) or "properties" not in schema:
            raise TypeError("a mapping with free keys has no strict schema")
        result["additionalProperties"] = False
        result["required"] = list(result["properties"])
    return {"$ref": result["$ref"]} if "$ref" in result else result
