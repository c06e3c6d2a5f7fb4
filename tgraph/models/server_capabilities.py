"""Capabilities of an OpenAI-compatible server, learned from refusals.

Servers accept different parameters: some have no ``response_format``, some want
``max_completion_tokens``, reasoning models refuse a temperature. A client starts with all
parameters and drops those named by a refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from typing import Literal as Choice

from tgraph.models.base import ChatRequest
from tgraph.resources import read_text

Format = Choice["json_schema", "json_object", "none"]
_LESS: Mapping[Format, Format] = {"json_schema": "json_object", "json_object": "none"}
_FORMAT_WORDS = re.compile(r"response[_ ]format|json[_ ]?schema|json_object|schema|grammar|strict")


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """Parameters accepted by a server."""

    format: Format = "json_schema"
    limit: Choice["max_tokens", "max_completion_tokens", "none"] = "max_tokens"
    temperature: bool = True
    seed: bool = True
    stream_options: bool = True
    effort: bool = False
    """``reasoning_effort`` "none" (OpenAI, Ollama): the model is not to think."""
    bound: int | None = None
    """The limit of tokens for requests without their own limit."""
    template: bool = False
    """The same by the chat template's ``enable_thinking`` (vLLM, llama.cpp, SGLang)."""

    def body(self, request: ChatRequest, model: str, *, stream: bool) -> dict[str, Any]:
        """Return the request body in the server's dialect; an unsendable schema is stated in
        the prompt."""
        body: dict[str, Any] = {"model": model, "messages": [dict(m) for m in request.messages]}
        if self.temperature:
            body["temperature"] = request.temperature
        limit = self.bound if request.max_tokens is None else request.max_tokens
        if limit is not None and self.limit != "none":
            body[self.limit] = limit
        if request.seed is not None and self.seed:
            body["seed"] = request.seed
        if self.effort:
            body["reasoning_effort"] = "none"
        if self.template:
            body["chat_template_kwargs"] = {"enable_thinking": False}
        if request.schema is not None:
            self._ask_for(request, request.schema, body)
        if stream:
            body["stream"] = True
            if self.stream_options:
                body["stream_options"] = {"include_usage": True}
        return body

    def _ask_for(
        self, request: ChatRequest, schema: Mapping[str, Any], body: dict[str, Any]
    ) -> None:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", request.prompt.name)[:64] or "reply"
        if self.format == "json_schema":
            schema_format = {"name": name, "strict": True, "schema": dict(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema_format}
            return
        if self.format == "json_object":
            body["response_format"] = {"type": "json_object"}
        text = read_text("prompts", "parts/reply_schema.txt").format(
            name=name, schema=json.dumps(schema, ensure_ascii=False)
        )
        body["messages"] = _with_instruction(body["messages"], text.strip())

    def adapt_to_refusal(self, refusal: str, body: Mapping[str, Any]) -> ServerCapabilities | None:
        """Return the dialect to try following a refusal of ``body``; None if no dialect would
        help."""
        refusal_text = refusal.lower()
        cure = next(
            (d for words, d in self._possible_cures(body) if re.search(words, refusal_text)), None
        )
        if cure is not None:
            return cure
        if "response_format" in body:
            return self.with_less_format()
        return replace(self, stream_options=False) if "stream_options" in body else None

    def _possible_cures(self, body: Mapping[str, Any]) -> Iterator[tuple[str, ServerCapabilities]]:
        if "max_completion_tokens" in body:
            yield r"max_completion_tokens", replace(self, limit="none")
        if "max_tokens" in body:
            yield r"max_(?:completion_)?tokens", replace(self, limit="max_completion_tokens")
        if "temperature" in body:
            yield r"\btemperature\b", replace(self, temperature=False)
        if "stream_options" in body:
            yield r"stream_options|include_usage", replace(self, stream_options=False)
        if "chat_template_kwargs" in body:
            yield r"chat_template|enable_thinking", replace(self, template=False)
        if "reasoning_effort" in body:
            yield r"reasoning|effort", replace(self, effort=False)
        if "response_format" in body:
            yield _FORMAT_WORDS.pattern, self.with_less_format()
        if "seed" in body:
            yield r"\bseed\b", replace(self, seed=False)

    def without_limit(self, body: Mapping[str, Any]) -> ServerCapabilities | None:
        """Return the dialect without limit of tokens; None if ``body`` has no limit."""
        return replace(self, limit="none") if self.limit in body else None

    def with_less_format(self) -> ServerCapabilities:
        return replace(self, format=_LESS.get(self.format, "none"))


def _with_instruction(messages: list[dict[str, str]], text: str) -> list[dict[str, str]]:
    """Return messages with ``text`` appended to the latest user message."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user":
            changed = dict(messages[index], content=f"{messages[index]['content']}\n\n{text}")
            return [*messages[:index], changed, *messages[index + 1 :]]
    return [*messages, {"role": "user", "content": text}]
