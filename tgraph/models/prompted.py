"""A step that asks a chat model by one prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict, TypeVar, Unpack

from pydantic import BaseModel

from tgraph.errors import ModelError
from tgraph.model import Agent, Prompt
from tgraph.models.base import CallSink, ChatModel, ChatRequest
from tgraph.models.prompts import messages
from tgraph.models.structured import Forgetful, Structured, ask, strict_schema
from tgraph.vocabulary import digest

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
        self._options = (
            options.get("temperature", 0.0),
            options.get("seed"),
            options.get("max_tokens"),
        )

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
