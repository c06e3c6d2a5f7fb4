"""The parts that a graph works with, made from its settings when they are first needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgraph.errors import UsageError
from tgraph.models.base import ChatModel, Embedder
from tgraph.settings import ChatSettings, EmbeddingSettings, Settings

if TYPE_CHECKING:
    from tgraph.answer.base import ConceptFinder, Selector, Synthesiser
    from tgraph.extract.base import Extractor
    from tgraph.models.endpoint import Endpoint
    from tgraph.retrieve.base import Retriever

MODES = {"graph": ("tgraph.retrieve.graph", "GraphRetriever")}
"""The retrieval modes: where each one's retriever lives."""


class Parts:
    """Model or embedded default, for each step. Pass ``chat`` or ``embedder`` to use your own."""

    def __init__(
        self,
        settings: Settings,
        cache: Path,
        *,
        chat: ChatModel | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._settings = settings
        self._cache = cache
        self._own_chat = chat
        self._own_embedder = embedder
        self._endpoints: list[Endpoint] = []

    @cached_property
    def chat(self) -> ChatModel | None:
        """The language model, or None where the embedded default does its work."""
        if self._own_chat is not None or not self._settings.uses_model():
            return self._own_chat
        from tgraph.models.openai import OpenAIChat

        chat = self._settings.chat
        return OpenAIChat(chat.model, self._opened(_endpoint(chat)))

    def cancel(self) -> None:
        """End the calls that are under way; the parts make no more of them."""
        for endpoint in self._endpoints:
            endpoint.limiter.cancellation.set()

    def close(self) -> None:
        """Let go of connections."""
        for endpoint in self._endpoints:
            endpoint.close()

    @cached_property
    def embedder(self) -> Embedder:
        if self._own_embedder is not None:
            return self._own_embedder
        embedding = self._settings.embedding
        if embedding.provider == "openai":
            from tgraph.models.openai_embedder import OpenAIEmbedder

            return OpenAIEmbedder(
                embedding.model,
                self._opened(_embedding_endpoint(embedding, self._settings.chat)),
                batch_size=embedding.batch_size,
            )
        if embedding.provider == "hashing":
            from tgraph.models.hashing import HashingEmbedder

            return HashingEmbedder()
        from tgraph.models.minilm import MiniLMEmbedder, default_embedder

        if embedding.provider == "embedded":
            return MiniLMEmbedder(embedding.threads)
        return default_embedder(embedding.threads)

    @cached_property
    def extractor(self) -> Extractor:
        chat = self.chat
        if chat is None:
            from tgraph.extract.cache import CachedExtractor
            from tgraph.extract.embedded import EmbeddedExtractor

            return CachedExtractor(EmbeddedExtractor(), self._cache / "extractions")
        from tgraph.extract.language_model import ModelExtractor
        from tgraph.models.cache import CachedChat

        extract = self._settings.extract
        return ModelExtractor(
            CachedChat(chat, self._cache / "replies"),
            extract.entity_types,
            extract.gleanings,
            self._settings.prompts,
            **self._options,
        )

    @cached_property
    def concepts(self) -> ConceptFinder:
        if self.chat is None:
            from tgraph.answer.embedded import EmbeddedConcepts

            return EmbeddedConcepts()
        from tgraph.answer.model import ModelConcepts

        return ModelConcepts(self.chat, self._settings.prompts, **self._options)

    @cached_property
    def selector(self) -> Selector:
        if self.chat is None:
            from tgraph.answer.embedded import EmbeddedSelector

            return EmbeddedSelector()
        from tgraph.answer.model import ModelSelector

        return ModelSelector(self.chat, self._settings.prompts, **self._options)

    @cached_property
    def synthesiser(self) -> Synthesiser:
        if self.chat is None:
            from tgraph.answer.embedded import EmbeddedSynthesiser

            return EmbeddedSynthesiser()
        from tgraph.answer.model import ModelSynthesiser

        return ModelSynthesiser(self.chat, self._settings.prompts, **self._options)

    def _opened(self, endpoint: Endpoint) -> Endpoint:
        self._endpoints.append(endpoint)
        return endpoint

    def retriever(self, mode: str) -> Retriever:
        """The retriever of a mode. ``UsageError`` for a mode that there is not."""
        from importlib import import_module

        if mode not in MODES:
            raise UsageError(f"There is no mode {mode!r}.", f"There are: {', '.join(MODES)}.")
        module, name = MODES[mode]
        retriever: Retriever = getattr(import_module(module), name)()
        return retriever

    @property
    def _options(self) -> Mapping[str, Any]:
        chat = self._settings.chat
        return {
            "temperature": chat.temperature,
            "seed": chat.seed,
            "max_tokens": chat.max_tokens,
        }


def _endpoint(chat: ChatSettings) -> Endpoint:
    from tgraph.models.endpoint import OPENAI_URL, Endpoint
    from tgraph.models.limits import Limiter

    return Endpoint(
        chat.base_url or OPENAI_URL,
        chat.api_key.get_secret_value() if chat.api_key else "",
        timeout=chat.timeout,
        retries=chat.retries,
        limiter=Limiter(chat.concurrency, chat.requests_per_minute, chat.tokens_per_minute),
    )


def _embedding_endpoint(embedding: EmbeddingSettings, chat: ChatSettings) -> Endpoint:
    """The embeddings' own endpoint; what it doesn't say is as for the chat."""
    changes = {
        "base_url": embedding.base_url or chat.base_url,
        "api_key": embedding.api_key or chat.api_key,
    }
    return _endpoint(chat.model_copy(update=changes))
