"""The parts that a graph works with, made from its settings when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tgraph.errors import UsageError
from tgraph.models.base import ChatModel, Embedder
from tgraph.resources import names
from tgraph.retrieve.modes.base import PROMPT
from tgraph.settings import ChatSettings, EmbeddingSettings, Settings

if TYPE_CHECKING:
    from tgraph.answer.base import ConceptFinder, Selector, Synthesiser
    from tgraph.answer.choosing import Chooser
    from tgraph.answer.drift import Explorer
    from tgraph.answer.keywords import KeywordFinder
    from tgraph.answer.model import ModelSynthesiser
    from tgraph.answer.support import SupportJudge
    from tgraph.engine.evaluating import Judge
    from tgraph.extract.base import Extractor
    from tgraph.extract.claims import ClaimExtractor
    from tgraph.extract.summaries import Summariser
    from tgraph.index.cluster_summaries import ClusterWriter
    from tgraph.index.contexts import Situator
    from tgraph.index.reports import ReportWriter
    from tgraph.models.endpoint import Endpoint
    from tgraph.models.exchange import Client
    from tgraph.models.rerank import Reranker

C = TypeVar("C", bound="Client")


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
        self.settings = settings
        self._cache = cache
        self._own_chat = chat
        self._own_embedder = embedder
        self._clients: list[tuple[Client, Callable[[], Endpoint]]] = []
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._cancelled = False
        _check_prompts(settings.prompts)

    @cached_property
    def chat(self) -> ChatModel | None:
        """The language model, or None where the embedded default does its work."""
        if self._own_chat is not None or not self.settings.uses_model():
            return self._own_chat
        from tgraph.models.openai import OpenAIChat

        chat = self.settings.chat
        make = partial(self._endpoint, chat)
        return self._known(OpenAIChat(chat.model, make()), make)

    def cancel(self) -> None:
        """End the calls that are under way, and let that run make no more of them.

        The next run, which begins by asking for its ``extractor`` or ``concepts``, calls again.
        """
        self._cancelled = True
        for endpoint in self._endpoints.values():
            endpoint.limiter.cancellation.set()

    def close(self) -> None:
        """Let go of connections."""
        for endpoint in self._endpoints.values():
            endpoint.close()

    def _remembering(self, chat: ChatModel) -> ChatModel:
        """The model with a memory, so that an interrupted run does not pay for a reply twice."""
        from tgraph.models.cache import CachedChat

        return CachedChat(chat, self._cache / "replies")

    def _known(self, client: C, make: Callable[[], Endpoint]) -> C:
        self._clients.append((client, make))
        return client

    def _renew(self) -> None:
        """Open endpoints that were cancelled again; steps and contexts keep their clients."""
        if self._cancelled:
            self._cancelled = False
            for endpoint in self._endpoints.values():
                endpoint.close()
            self._endpoints.clear()
            for client, make in self._clients:
                client.endpoint = make()

    def _endpoint(self, chat: ChatSettings) -> Endpoint:
        """One endpoint for each server and key: connections and rate limits are theirs."""
        from tgraph.models.endpoint import OPENAI_URL

        key = chat.api_key.get_secret_value() if chat.api_key else ""
        server = chat.base_url or OPENAI_URL, key
        if server not in self._endpoints:
            self._endpoints[server] = _endpoint(*server, chat)
        return self._endpoints[server]

    @cached_property
    def embedder(self) -> Embedder:
        if self._own_embedder is not None:
            return self._own_embedder
        embedding = self.settings.embedding
        if embedding.provider == "openai":
            from tgraph.models.openai_embedder import OpenAIEmbedder

            make = partial(self._endpoint, _as_chat(embedding, self.settings.chat))
            return self._known(
                OpenAIEmbedder(embedding.model, make(), batch_size=embedding.batch_size), make
            )
        if embedding.provider == "hashing":
            from tgraph.models.hashing import HashingEmbedder

            return HashingEmbedder()
        from tgraph.models.minilm import MiniLMEmbedder, default_embedder

        if embedding.provider == "embedded":
            return MiniLMEmbedder(embedding.threads)
        return default_embedder(embedding.threads)

    @property
    def extractor(self) -> Extractor:
        self._renew()
        return self._extractor

    @cached_property
    def _extractor(self) -> Extractor:
        if self.settings.extract.method == "fast":
            from tgraph.extract.fast import FastExtractor

            return FastExtractor(self.settings.fast.max_word_length)
        chat = self.chat
        if chat is None:
            from tgraph.extract.cache import CachedExtractor
            from tgraph.extract.embedded import EmbeddedExtractor

            return CachedExtractor(EmbeddedExtractor(), self._cache / "extractions")
        from tgraph.extract.language_model import ModelExtractor

        extract = self.settings.extract
        return ModelExtractor(
            self._remembering(chat),
            extract.entity_types,
            extract.gleanings,
            self.settings.prompts,
            **self._options,
        )

    @cached_property
    def claims(self) -> ClaimExtractor:
        """``UsageError`` where there is no model: claims need one."""
        chat = self.chat
        if chat is None:
            raise UsageError(
                "Claims are read by a language model, and none is set.",
                "Set `chat.base_url` or OPENAI_API_KEY, or leave claims out.",
            )
        from tgraph.extract.claims import ModelClaims

        return ModelClaims(
            self._remembering(chat),
            self.settings.claims.gleanings,
            self.settings.prompts,
            **self._options,
        )

    @property
    def summariser(self) -> Summariser | None:
        """Who makes one description of several; None where the settings leave them be."""
        self._renew()
        return self._summariser

    @cached_property
    def _summariser(self) -> Summariser | None:
        limits = self.settings.summaries
        if not limits.enabled:
            return None
        if self.chat is None:
            from tgraph.extract.summaries import DistinctSentences

            return DistinctSentences(limits.max_words)
        from tgraph.extract.model_summaries import ModelSummariser

        return ModelSummariser(
            self._remembering(self.chat),
            limits.max_words,
            limits.max_input_tokens,
            self.settings.prompts,
            **self._options,
        )

    @property
    def situator(self) -> Situator:
        """Who says where in its document a chunk stands. ``UsageError`` where a model should and
        none is set."""
        self._renew()
        return self._situator

    @cached_property
    def _situator(self) -> Situator:
        contextual = self.settings.contextual_search
        if not contextual.by_model:
            from tgraph.index.contexts import StructuralSituator

            return StructuralSituator(contextual.names)
        if self.chat is None:
            raise UsageError(
                "Contexts should be written by a language model, and none is set.",
                "Set `chat.base_url` or OPENAI_API_KEY, or `contextual_search.by_model` to false.",
            )
        from tgraph.index.situate_model import ModelSituator

        chat, prompts = self._remembering(self.chat), self.settings.prompts
        return ModelSituator(chat, contextual.max_document_tokens, prompts, **self._options)

    @property
    def cluster_writer(self) -> ClusterWriter:
        """Who summarises clusters of passages."""
        self._renew()
        return self._cluster_writer

    @cached_property
    def _cluster_writer(self) -> ClusterWriter:
        raptor = self.settings.raptor
        if self.chat is None:
            from tgraph.index.cluster_summaries import QuotingWriter

            return QuotingWriter(raptor.max_words)
        from tgraph.index.cluster_summaries import ModelWriter

        chat, prompts = self._remembering(self.chat), self.settings.prompts
        return ModelWriter(
            chat, raptor.max_words, raptor.max_cluster_tokens, prompts, **self._options
        )

    @cached_property
    def reranker(self) -> Reranker | None:
        """The server that ranks texts anew, where one is set."""
        rerank = self.settings.rerank
        if rerank.base_url is None:
            return None
        from tgraph.models.rerank import Reranker

        own = {"base_url": rerank.base_url, "api_key": rerank.api_key}
        make = partial(self._endpoint, self.settings.chat.model_copy(update=own))
        return self._known(Reranker(rerank.model, make()), make)

    @property
    def report_writer(self) -> ReportWriter:
        self._renew()
        return self._report_writer

    @cached_property
    def _report_writer(self) -> ReportWriter:
        if self.chat is None:
            from tgraph.index.report_extractive import ExtractiveWriter

            return ExtractiveWriter()
        from tgraph.index.report_model import ModelReportWriter

        chat = self.settings.chat
        return ModelReportWriter(
            self._remembering(self.chat),
            self.settings.prompts,
            max_output_tokens=self.settings.reports.max_output_tokens,
            temperature=chat.temperature,
            seed=chat.seed,
        )

    @property
    def concepts(self) -> ConceptFinder:
        self._renew()
        return self._concepts

    @cached_property
    def _concepts(self) -> ConceptFinder:
        if self.chat is None:
            from tgraph.answer.embedded import EmbeddedConcepts

            return EmbeddedConcepts()
        from tgraph.answer.model import ModelConcepts

        return ModelConcepts(self.chat, self.settings.prompts, **self._options)

    @property
    def keywords(self) -> KeywordFinder:
        self._renew()
        return self._keywords

    @cached_property
    def _keywords(self) -> KeywordFinder:
        from tgraph.answer.keywords import EmbeddedKeywords, ModelKeywords

        if self.chat is None:
            return EmbeddedKeywords()
        return ModelKeywords(self.chat, self.settings.prompts, **self._options)

    def support_judge(self) -> SupportJudge:
        """Who says whether a sentence is entailed by what it cites."""
        from tgraph.answer.support import LexicalJudge, ModelJudge

        if self.chat is None:
            return LexicalJudge()
        self._renew()
        return ModelJudge(self.chat, self.settings.prompts, **self._options)

    def chooser(self) -> Chooser:
        """Who tells which mode a question asks for."""
        from tgraph.answer.choosing import EmbeddedChooser, ModelChooser

        if self.chat is None or not self.settings.auto.by_model:
            return EmbeddedChooser()
        self._renew()
        return ModelChooser(self.chat, self.settings.prompts, **self._options)

    def alone(self) -> Synthesiser:
        """The model without any documents. ``UsageError`` where there is none."""
        if self.chat is None:
            raise UsageError(
                "The mode bypass asks the language model alone, and none is set.",
                "Set `chat.base_url` or OPENAI_API_KEY, or choose another mode.",
            )
        from tgraph.answer.alone import ModelAlone

        self._renew()
        form = self.settings.answer.response_type
        return ModelAlone(self.chat, self.settings.prompts, response_type=form, **self._options)

    @cached_property
    def selector(self) -> Selector:
        if self.chat is None:
            from tgraph.answer.embedded import EmbeddedSelector

            return EmbeddedSelector()
        from tgraph.answer.model import ModelSelector

        budget = self.settings.graph.max_context_tokens
        return ModelSelector(
            self.chat, self.settings.prompts, max_context_tokens=budget, **self._options
        )

    def synthesiser(self, budget: int) -> Synthesiser:
        """Who writes an answer, from at most ``budget`` tokens of prompt."""
        if self.chat is None:
            from tgraph.answer.embedded import EmbeddedSynthesiser

            return EmbeddedSynthesiser()
        return self.writer(self.chat, budget)

    def writer(
        self, chat: ChatModel, budget: int, max_words: int | None = None
    ) -> ModelSynthesiser:
        """The same where a model does it, told to write ``max_words`` at most."""
        from tgraph.answer.model import ModelSynthesiser

        form = self.settings.answer
        return ModelSynthesiser(
            chat,
            self.settings.prompts,
            response_type=form.response_type,
            general_knowledge=form.general_knowledge,
            max_words=max_words,
            max_context_tokens=budget,
            **self._options,
        )

    def suggester(self, count: int, budget: int) -> Synthesiser:
        """Who proposes ``count`` questions, from at most ``budget`` tokens of prompt."""
        from tgraph.answer.suggest import EmbeddedSuggester, ModelSuggester

        if self.chat is None:
            return EmbeddedSuggester(count)
        return ModelSuggester(
            self.chat,
            self.settings.prompts,
            count=count,
            max_context_tokens=budget,
            **self._options,
        )

    def explorer(self) -> Explorer:
        """Who answers on the way of a DRIFT search, and proposes what to ask next."""
        self._renew()
        drift = self.settings.drift_search
        if self.chat is None:
            from tgraph.answer.drift_embedded import EmbeddedExplorer

            return EmbeddedExplorer(drift.follow_ups)
        from tgraph.answer.drift_model import ModelExplorer

        return ModelExplorer(
            self.chat,
            self.settings.prompts,
            follow_ups=drift.follow_ups,
            max_context_tokens=drift.max_context_tokens + PROMPT,
            **self._options,
        )

    @property
    def judge(self) -> Judge:
        """Who takes answers apart and checks them."""
        self._renew()
        return self._judge

    @cached_property
    def _judge(self) -> Judge:
        from tgraph.engine.evaluating import Judge

        if self.chat is None:
            from tgraph.answer.judging_embedded import LikenessEntailment, SentenceStatements

            return Judge(SentenceStatements(), LikenessEntailment(self.embedder))
        from tgraph.answer.judging_model import ModelEntailment, ModelStatements
        from tgraph.models.cache import CachedChat

        chat = CachedChat(self.chat, self._cache / "replies")
        prompts = self.settings.prompts
        return Judge(
            ModelStatements(chat, prompts, **self._options),
            ModelEntailment(chat, prompts, **self._options),
        )

    @property
    def many(self) -> Mapping[str, Any]:
        """The options of a model's step that makes several calls at the same time."""
        self._renew()
        concurrency = self.settings.chat.concurrency
        return {**self._options, "concurrency": concurrency, "cancel": self.cancel}

    @property
    def _options(self) -> Mapping[str, Any]:
        chat = self.settings.chat
        return {
            "temperature": chat.temperature,
            "seed": chat.seed,
            "max_tokens": chat.max_tokens,
        }


def _check_prompts(folder: Path | None) -> None:
    """A folder that isn't there, or a file that replaces nothing, is a slip of the pen."""
    if folder is None:
        return
    if not folder.is_dir():
        raise UsageError(f"The folder of prompts {folder} does not exist.", "Check `prompts`.")
    known = [name for name in names("prompts") if name.endswith(".md")]
    for path in sorted(folder.glob("*.md")):
        if path.name not in known and path.name != "README.md":
            raise UsageError(f"{path} replaces no prompt.", f"There are: {', '.join(known)}.")


def _endpoint(url: str, key: str, chat: ChatSettings) -> Endpoint:
    from tgraph.models.endpoint import Endpoint
    from tgraph.models.limits import Limiter

    return Endpoint(
        url,
        key,
        timeout=chat.timeout,
        retries=chat.retries,
        limiter=Limiter(chat.concurrency, chat.requests_per_minute, chat.tokens_per_minute),
    )


def _as_chat(embedding: EmbeddingSettings, chat: ChatSettings) -> ChatSettings:
    """The embeddings' own endpoint; what it doesn't say is as for the chat."""
    changes = {
        "base_url": embedding.base_url or chat.base_url,
        "api_key": embedding.api_key or chat.api_key,
    }
    return chat.model_copy(update=changes)
