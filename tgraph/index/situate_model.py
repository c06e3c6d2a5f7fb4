"""Contexts by a language model, which is shown the document and then the chunk.

The document comes first and is the same for all of its chunks, so that endpoints which remember the
beginning of a prompt read it once.
"""

from __future__ import annotations

from pathlib import Path

from tgraph.errors import ModelError
from tgraph.extract.parse import Row, Text
from tgraph.index.contexts import Setting
from tgraph.model import Agent, Prompt
from tgraph.models.base import CallSink, ChatModel, ChatRequest, no_sink
from tgraph.models.prompts import load_prompt, messages
from tgraph.models.structured import Forgetful, ask, strict_schema
from tgraph.models.tokens import encoding_for, token_offsets
from tgraph.vocabulary import digest

NAME = "situate_chunk"
MOST_WORDS = 80
"""Words that are asked for; Anthropic's contexts have 50 to 100 tokens."""

_LONGEST = 1_500


class ContextReply(Row):
    context: Text


class ModelSituator:
    """A ``Situator`` that asks a language model by the prompt ``situate_chunk``.

    Of a document of more than ``max_document_tokens`` it is shown the part that the chunk begins
    in; parts are the same for all chunks.
    """

    def __init__(
        self,
        model: ChatModel,
        max_document_tokens: int,
        prompts: Path | None = None,
        *,
        temperature: float = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._model = model
        self._budget = max_document_tokens
        self._prompt = load_prompt(NAME, prompts)
        self._options = (temperature, seed, max_tokens)

    @property
    def agent(self) -> Agent:
        return self._model.agent

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._prompt,)

    @property
    def key(self) -> str:
        options = map(str, (self._budget, *self._options))
        return digest(self.agent.iri, self._prompt.sha256, *options)

    def situate(self, setting: Setting, sink: CallSink = no_sink) -> str:
        """As ``Situator.situate``."""
        temperature, seed, max_tokens = self._options
        values = {
            "title": setting.title,
            "document": self._part(setting),
            "chunk": setting.chunk.text,
            "max_words": str(MOST_WORDS),
        }
        request = ChatRequest(
            self._prompt,
            messages(self._prompt, values),
            strict_schema(ContextReply),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )
        reply = ask(self._model, request, ContextReply, sink)
        context = " ".join(reply.value.context.split())
        if not context or len(context) > _LONGEST:
            if isinstance(self._model, Forgetful):
                self._model.forget(request)
            raise ModelError(
                f"The reply of {self.agent.name} to the step {NAME} is"
                f" {'empty' if not context else 'no short context'}.",
                "A larger model does better.",
            )
        return context

    def _part(self, setting: Setting) -> str:
        """The document, or the part of it that the chunk begins in."""
        text = setting.document
        if len(text.encode("utf-8", "surrogatepass")) <= self._budget:
            return text  # a token has at least one byte
        starts = token_offsets(text, encoding_for(self.agent.name))
        edges = [starts[at] for at in range(0, len(starts), self._budget)]
        begin = max(edge for edge in edges if edge <= max(setting.start, edges[0]))
        end = next((edge for edge in edges if edge > begin), len(text))
        return text[begin:end]
