"""Prompts: files that people can read and replace, filled in so that data stays data.

A prompt file has a part ``=== system`` and a part ``=== user``. ``{{name}}`` is replaced by plain
text; data stands in blocks between the lines ``<<<NAME`` and ``NAME>>>``, and no data can contain
such a line. What stands between the lines ``{{#name}}`` and ``{{/name}}`` is left out where that
text is empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypedDict, TypeVar, Unpack

from pydantic import BaseModel

from tgraph.errors import ModelError, UsageError
from tgraph.model import Agent, Prompt
from tgraph.models.base import CallSink, ChatModel, ChatRequest
from tgraph.models.structured_output import Forgetful, Structured, ask, strict_schema
from tgraph.resources import read_text
from tgraph.vocabulary import digest

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_SECTION = re.compile(r"^\{\{#(\w+)\}\}\n(.*?)^\{\{/\1\}\}\n", re.MULTILINE | re.DOTALL)
_PART = re.compile(r"^=== (system|user)\s*$", re.MULTILINE)
_FENCE = re.compile(r"<<<|>>>")
_DEFUSED = {"<<<": "‹‹‹", ">>>": "›››"}


def load_prompt(name: str, folder: Path | None = None) -> Prompt:
    """The prompt of that name: the user's file in ``folder`` if there is one, else tgraph's."""
    file = f"{name}.md"
    own = folder / file if folder is not None else None
    text = own.read_text("utf-8") if own and own.is_file() else read_text("prompts", file)
    if _PART.findall(text) != ["system", "user"]:
        raise UsageError(f"The prompt {own or file} needs a part `=== system` and then `=== user`.")
    return Prompt(name, text, sha256(text.encode()).hexdigest())


def with_addition(prompt: Prompt, addition: Prompt) -> Prompt:
    """The prompt with another's instructions after its own, and the other's data before its own; it
    keeps its name."""
    _, _, system, _, user = _PART.split(prompt.text)
    _, _, more, _, data = _PART.split(addition.text)
    text = f"=== system{system.rstrip()}\n{more.rstrip()}\n=== user{data.rstrip()}\n{user}"
    return Prompt(prompt.name, text, sha256(text.encode()).hexdigest())


def placeholders(prompt: Prompt) -> set[str]:
    sections = (match[1] for match in _SECTION.finditer(prompt.text))
    return {*_PLACEHOLDER.findall(prompt.text), *sections}


def messages(prompt: Prompt, values: Mapping[str, str]) -> list[dict[str, str]]:
    """The chat messages of the prompt with every placeholder filled in.

    ``UsageError`` where the prompt asks for something that the step doesn't have.
    """
    unknown = placeholders(prompt) - set(values)
    if unknown:
        raise UsageError(
            f"The prompt {prompt.name} uses {', '.join(sorted(unknown))}, which that step has not.",
            f"It has: {', '.join(sorted(values))}.",
        )
    text = _SECTION.sub(lambda m: m[2] if values[m[1]].strip() else "", prompt.text)
    _, _, system, _, user = _PART.split(text)
    safe = {name: _FENCE.sub(lambda m: _DEFUSED[m[0]], text) for name, text in values.items()}
    return [
        {"role": role, "content": _PLACEHOLDER.sub(lambda m: safe[m.group(1)], part).strip()}
        for role, part in (("system", system), ("user", user))
    ]


T = TypeVar("T", bound=BaseModel)


class Options(TypedDict, total=False):
    """How the model is asked; by default coldly, without a seed or a limit."""

    temperature: float
    seed: int | None
    max_tokens: int | None


class Prompted:
    """Who is asked, by which prompt and how. ``limits`` are the sizes that a reply depends on."""

    def __init__(
        self,
        model: ChatModel,
        prompt: Prompt,
        limits: Sequence[int],
        **options: Unpack[Options],
    ) -> None:
        self._model = model
        self._prompt = prompt
        self._limits = tuple(limits)
        temperature = options.get("temperature", 0.0)
        self._options = (temperature, options.get("seed"), options.get("max_tokens"))

    @property
    def agent(self) -> Agent:
        return self._model.agent

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._prompt,)

    @property
    def key(self) -> str:
        """What of the asking a reply depends on, beside what is shown."""
        options = map(str, (*self._limits, *self._options))
        return digest(self.agent.iri, self._prompt.sha256, *options)

    def _request(self, values: Mapping[str, str], schema: type[BaseModel]) -> ChatRequest:
        temperature, seed, max_tokens = self._options
        return ChatRequest(
            self._prompt,
            messages(self._prompt, values),
            strict_schema(schema),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )

    def _ask(self, request: ChatRequest, schema: type[T], sink: CallSink) -> Structured[T]:
        return ask(self._model, request, schema, sink)

    def _refuse(self, request: ChatRequest, why: str) -> ModelError:
        """The error for a reply that can't be used, which is forgotten."""
        if isinstance(self._model, Forgetful):
            self._model.forget(request)
        return ModelError(
            f"The reply of {self.agent.name} to the step {self._prompt.name} is {why}.",
            "A larger model does better.",
        )
