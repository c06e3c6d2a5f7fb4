"""Components of a graph, made from settings on first use.

A component uses a model if one is configured, otherwise the embedded default. Properties and
methods import the modules of the components that they make."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from tgraph.errors import UsageError
from tgraph.models.base import ChatModel, Embedder
from tgraph.models.prompts import Options, PromptFiles
from tgraph.plugins import CHAT_MODELS, EMBEDDERS
from tgraph.resources import list_names
from tgraph.retrieve.modes.base import PROMPT
from tgraph.settings import (
    AUTO_READER,
    EMBEDDED_READER,
    NO_READER,
    REPLY_LIMIT,
    ChatSettings,
    EmbeddingSettings,
    Settings,
)

if TYPE_CHECKING:
    from tgraph.answer.base import ConceptFinder, Selector, Synthesiser
    from tgraph.answer.drift import Explorer
    from tgraph.answer.entailment import EntailmentChecker, StatementExtractor
    from tgraph.answer.keywords import KeywordFinder
    from tgraph.answer.mode_choice import Chooser
    from tgraph.answer.model import ModelSynthesiser
    from tgraph.answer.query_writer import QueryWriter
    from tgraph.answer.step_answers_model import ModelDecomposer, ModelStepAnswerer
    from tgraph.answer.support import SupportJudge
    from tgraph.extract.base import Extractor
    from tgraph.extract.model.claims import ClaimExtractor
    from tgraph.extract.summaries import Summariser
    from tgraph.index.chunk_contexts import Situator
    from tgraph.index.cluster_summaries import ClusterWriter
    from tgraph.index.reports.report import ReportWriter
    from tgraph.index.vectors.base import VectorStore
    from tgraph.models.client import Client
    from tgraph.models.endpoint import Endpoint
    from tgraph.models.reader import Reader
    from tgraph.models.rerank import Reranker
    from tgraph.retrieve.base import Rank

C = TypeVar("C", bound="Client")
T = TypeVar("T")


class ConcurrentOptions(Options, total=False):
    """Model options for steps making several concurrent calls."""

    concurrency: int
    cancel: Callable[[], None]


class ComponentProperty(Generic[T]):
    """A property of ``Components``, computed on first use.

    Every use reopens endpoints whose calls were cancelled."""

    def __init__(self, make: Callable[[Components], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, components: None, owner: type) -> ComponentProperty[T]: ...

    @overload
    def __get__(self, components: Components, owner: type) -> T: ...

    def __get__(self, components: Components | None, owner: type) -> ComponentProperty[T] | T:
        """Return the component; on the class, return the property itself."""
        return self if components is None else components.get_component(self._make)


class Components:
    """Model or embedded default, for each step. What a caller passes is used in its place."""

    def __init__(
        self,
        settings: Settings,
        cache: Path,
        *,
        chat: ChatModel | None = None,
        embedder: Embedder | None = None,
        reader: Reader | None = None,
        extractor: Extractor | None = None,
        rank: Rank | None = None,
    ) -> None:
        self.settings = settings
        self._cache = cache
        self._own_chat = chat
        self._own_embedder = embedder
        self._own_reader = reader
        self._own_extractor = extractor
        self.rank = rank
        self._made: dict[Callable[[Components], Any], Any] = {}
        self._clients: list[tuple[Client, Callable[[], Endpoint]]] = []
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._cancelled = False
        _check_prompts(settings.prompts)

    def with_settings(self, settings: Settings) -> Components:
        """Return components with the same models but other settings; connections are shared."""
        components = Components(
            settings,
            self._cache,
            chat=self.chat,
            embedder=self.embedder,
            extractor=self._own_extractor,
            rank=self.rank,
        )
        components.__dict__ |= {
            "reader": self.reader,
            "passage_reader": self.passage_reader,
            "reranker": self.reranker,
        }
        return components

    def get_component(self, make: Callable[[Components], T]) -> T:
        """Return the cached component of a factory function.

        Endpoints whose calls were cancelled are opened again."""
        self._reopen_endpoints()
        if make not in self._made:
            self._made[make] = make(self)
        component: T = self._made[make]
        return component

    # --- documents ---

    @property
    def extractor(self) -> Extractor:
        """The extractor that reads chunks."""
        if self._own_extractor is not None:
            return self._own_extractor
        if self.settings.extract.method == "fast":
            return self._fast_extractor
        return self._embedded_extractor if self.chat is None else self._model_extractor

    @ComponentProperty
    def _fast_extractor(self) -> Extractor:
        from tgraph.extract.fast import FastExtractor

        return FastExtractor(self.settings.fast.max_word_length)

    @cached_property
    def _embedded_extractor(self) -> Extractor:
        from tgraph.extract.base import CachedExtractor
        from tgraph.extract.embedded import EmbeddedExtractor

        return CachedExtractor(EmbeddedExtractor(), self._cache / "extractions")

    @ComponentProperty
    def _model_extractor(self) -> Extractor:
        from tgraph.extract.model.extractor import ModelExtractor

        assert self.chat is not None
        extract = self.settings.extract
        return ModelExtractor(
            self.remembering(self.chat),
            extract.entity_types,
            extract.gleanings,
            self.prompts,
            **self.options,
        )

    @ComponentProperty
    def claims(self) -> ClaimExtractor:
        """The claim extractor. ``UsageError`` without a model."""
        from tgraph.extract.model.claims import ModelClaims

        chat = self._required_chat(
            "The extraction of claims needs a language model, and no language model is set.",
            "leave claims out.",
        )
        claims = self.settings.claims
        return ModelClaims(
            self.remembering(chat),
            claims.gleanings,
            self.prompts,
            description=claims.description,
            entity_specs=claims.entity_specs,
            **self.options,
        )

    @property
    def summariser(self) -> Summariser | None:
        """The summariser merging several descriptions into one; None if settings disable
        summaries."""
        return self._summariser if self.settings.summaries.enabled else None

    @ComponentProperty
    def _summariser(self) -> Summariser:
        summaries = self.settings.summaries
        if self.chat is None:
            from tgraph.extract.summaries import DistinctSentences

            return DistinctSentences(summaries.max_words)
        from tgraph.extract.model.summariser import ModelSummariser

        chat, limits = (
            self.remembering(self.chat),
            (summaries.max_words, summaries.max_input_tokens),
        )
        return ModelSummariser(chat, *limits, self.prompts, **self.options)

    @ComponentProperty
    def situator(self) -> Situator:
        """The situator that says where in its document a chunk stands. ``UsageError`` where the
        settings want a model and none is set."""
        contexts = self.settings.contextual_search
        if not contexts.by_model:
            from tgraph.index.chunk_contexts import StructuralSituator

            return StructuralSituator(contexts.names)
        from tgraph.index.chunk_context_model import ModelSituator

        chat = self._required_chat(
            "Contexts of chunks need a language model, and no language model is set.",
            "`contextual_search.by_model` to false.",
        )
        return ModelSituator(
            self.remembering(chat), contexts.max_document_tokens, self.prompts, **self.options
        )

    @ComponentProperty
    def cluster_writer(self) -> ClusterWriter:
        """The writer that summarises clusters of passages."""
        from tgraph.index.cluster_summaries import ModelWriter, QuotingWriter

        raptor = self.settings.raptor
        if self.chat is None:
            return QuotingWriter(raptor.max_words)
        return ModelWriter(
            self.remembering(self.chat),
            raptor.max_words,
            raptor.max_cluster_tokens,
            self.prompts,
            **self.options,
        )

    @ComponentProperty
    def report_writer(self) -> ReportWriter:
        """The writer of community reports."""
        if self.chat is None:
            from tgraph.index.reports.extractive import ExtractiveWriter

            return ExtractiveWriter()
        from tgraph.index.reports.language_model import ModelReportWriter

        return ModelReportWriter(
            self.remembering(self.chat),
            self.prompts,
            max_tokens=self.settings.reports.max_output_tokens,
            temperature=self.settings.chat.temperature,
            seed=self.settings.chat.seed,
        )

    # --- questions ---

    @ComponentProperty
    def concepts(self) -> ConceptFinder:
        """The finder of a question's concepts."""
        if self.chat is None:
            from tgraph.answer.embedded import EmbeddedConcepts

            return EmbeddedConcepts()
        from tgraph.answer.model import ModelConcepts

        return ModelConcepts(self.chat, self.prompts, **self.options)

    @ComponentProperty
    def keywords(self) -> KeywordFinder:
        """The finder of a question's keywords."""
        from tgraph.answer.keywords import EmbeddedKeywords, ModelKeywords

        if self.chat is None:
            return EmbeddedKeywords()
        return ModelKeywords(self.chat, self.prompts, **self.options)

    @ComponentProperty
    def chooser(self) -> Chooser:
        """The component choosing a mode for each question."""
        from tgraph.answer.mode_choice import EmbeddedChooser, ModelChooser

        if self.chat is None or not self.settings.auto.by_model:
            return EmbeddedChooser()
        return ModelChooser(self.chat, self.prompts, **self.options)

    @ComponentProperty
    def decomposer(self) -> ModelDecomposer:
        """The model's decomposer of questions. ``UsageError`` where there is no model: then the
        parse of a question gives its steps."""
        from tgraph.answer.step_answers_model import ModelDecomposer

        return ModelDecomposer(self._chat_for_steps(), self.prompts, **self.options)

    @ComponentProperty
    def query_writer(self) -> QueryWriter | None:
        """The writer of the queries of questions; None where the grammar makes them."""
        search = self.settings.sparql_search
        if self.chat is None or not search.by_model:
            return None
        from tgraph.answer.query_writer import QueryWriter

        budget = search.max_context_tokens
        return QueryWriter(self.chat, self.prompts, max_context_tokens=budget, **self.options)

    def step_answerer(self, budget: int) -> ModelStepAnswerer:
        """The model's answerer of the steps of a question, from prompts of at most ``budget``
        tokens. ``UsageError`` where there is no model."""
        from tgraph.answer.step_answers_model import ModelStepAnswerer

        chat = self._chat_for_steps()
        return ModelStepAnswerer(chat, self.prompts, max_context_tokens=budget, **self.options)

    @ComponentProperty
    def selector(self) -> Selector:
        """The selector judging edges individually."""
        if self.chat is None:
            from tgraph.answer.embedded import EmbeddedSelector

            return EmbeddedSelector()
        from tgraph.answer.model import ModelSelector

        budget = self.settings.graph.max_context_tokens
        return ModelSelector(self.chat, self.prompts, max_context_tokens=budget, **self.options)

    @ComponentProperty
    def explorer(self) -> Explorer:
        """The explorer of DRIFT, which answers and proposes follow-up questions."""
        drift = self.settings.drift_search
        if self.chat is None:
            from tgraph.answer.drift import EmbeddedExplorer

            return EmbeddedExplorer(drift.follow_ups)
        from tgraph.answer.drift_model import ModelExplorer

        return ModelExplorer(
            self.chat,
            self.prompts,
            follow_ups=drift.follow_ups,
            max_context_tokens=drift.max_context_tokens + PROMPT,
            **self.options,
        )

    def synthesiser(self, budget: int) -> Synthesiser:
        """The writer of answers, from prompts of at most ``budget`` tokens."""
        if self.chat is None:
            from tgraph.answer.embedded import EmbeddedSynthesiser

            return EmbeddedSynthesiser(self.settings.answer.least_confidence)
        return self.writer(self.chat, budget)

    def writer(
        self, chat: ChatModel, budget: int, max_words: int | None = None
    ) -> ModelSynthesiser:
        """Return a model synthesiser, limited to ``max_words`` words."""
        from tgraph.answer.model import ModelSynthesiser

        form = self.settings.answer
        return ModelSynthesiser(
            chat,
            self.prompts,
            response_type=form.response_type,
            general_knowledge=form.general_knowledge,
            max_words=max_words,
            max_context_tokens=budget,
            **self.options,
        )

    @ComponentProperty
    def model_alone(self) -> Synthesiser:
        """The model answering without documents. ``UsageError`` without a model."""
        from tgraph.answer.model import ModelAlone

        chat = self._required_chat(
            "The mode bypass needs a language model, and no language model is set.",
            "choose another mode.",
        )
        response_type = self.settings.answer.response_type
        return ModelAlone(chat, self.prompts, response_type=response_type, **self.options)

    def suggester(self, count: int, budget: int) -> Synthesiser:
        """The writer that proposes ``count`` questions, from prompts of at most ``budget``
        tokens."""
        from tgraph.answer.suggestions import EmbeddedSuggester, ModelSuggester

        if self.chat is None:
            return EmbeddedSuggester(count)
        return ModelSuggester(
            self.chat, self.prompts, count=count, max_context_tokens=budget, **self.options
        )

    # --- judgements of answers ---

    @ComponentProperty
    def support_judge(self) -> SupportJudge:
        """The judge of statement support: the model, otherwise a capable reader, otherwise word
        overlap."""
        from tgraph.answer.support import LexicalJudge, ModelJudge, ReaderJudge

        if self.chat is not None:
            return ModelJudge(self.chat, self.prompts, **self.options)
        reader = self.reader
        if reader is None or reader.supports("", ()) is None:
            return LexicalJudge()
        return ReaderJudge(reader)

    @ComponentProperty
    def statements(self) -> StatementExtractor:
        """The extractor of statements from a text."""
        if self.chat is None:
            from tgraph.answer.entailment import SentenceStatements

            return SentenceStatements()
        from tgraph.answer.entailment_model import ModelStatements

        return ModelStatements(self.remembering(self.chat), self.prompts, **self.options)

    @ComponentProperty
    def checker(self) -> EntailmentChecker:
        """The checker of whether a text entails a statement."""
        if self.chat is None:
            from tgraph.answer.entailment import LikenessEntailment

            return LikenessEntailment(self.embedder)
        from tgraph.answer.entailment_model import ModelEntailment

        return ModelEntailment(self.remembering(self.chat), self.prompts, **self.options)

    # --- models ---

    @property
    def prompts(self) -> PromptFiles:
        """The prompts from the settings, in the set language."""
        return PromptFiles(self.settings.prompts, self.settings.answer.language)

    @property
    def concurrent_options(self) -> ConcurrentOptions:
        """The options for model steps making concurrent calls."""
        self._reopen_endpoints()
        concurrency = self.settings.chat.concurrency
        return {**self.options, "concurrency": concurrency, "cancel": self.cancel}

    @property
    def options(self) -> Options:
        """Model options shared by every step."""
        chat = self.settings.chat
        return {"temperature": chat.temperature, "seed": chat.seed, "max_tokens": chat.max_tokens}

    def _required_chat(self, problem: str, remedy: str) -> ChatModel:
        """Return the language model.

        Without a model, raise ``UsageError`` with the problem; the remedy names an alternative
        to configuring a model."""
        if self.chat is None:
            raise UsageError(problem, f"Set `chat.base_url` or OPENAI_API_KEY, or {remedy}")
        return self.chat

    def _chat_for_steps(self) -> ChatModel:
        return self._required_chat(
            "The steps of a question need a language model, and no language model is set.",
            "without a model, the steps come from the parse of the question.",
        )

    def remembering(self, chat: ChatModel) -> ChatModel:
        """Return the model wrapped with a reply cache."""
        from tgraph.models.reply_cache import CachedChat

        return CachedChat(chat, self._cache / "replies")

    @cached_property
    def chat(self) -> ChatModel | None:
        """The language model; None if the embedded default is used."""
        if self._own_chat is not None or not self.settings.uses_model():
            return self._own_chat
        chat = self.settings.chat
        if make_chat := CHAT_MODELS.find_contribution(chat.provider):
            added: ChatModel = make_chat(self.settings)
            return added
        from tgraph.models.openai import OpenAIChat

        make = partial(self._shared_endpoint, chat)
        thinks = chat.thinking == "default"
        return self._register_client(
            OpenAIChat(
                chat.model,
                make(),
                structured=chat.structured_output,
                thinking=thinks,
                max_tokens=REPLY_LIMIT,
            ),
            make,
        )

    def cancel(self) -> None:
        """Cancel running calls, and prevent further calls of the same run.

        The next run, which begins by asking for its ``extractor`` or ``concepts``, calls again."""
        self._cancelled = True
        for endpoint in self._endpoints.values():
            endpoint.limiter.cancellation.set()

    def close(self) -> None:
        """Close connections."""
        for endpoint in self._endpoints.values():
            endpoint.close()

    @property
    def vector_store(self) -> VectorStore:
        """The store of vectors of the settings. ``UsageError`` where no extension has the store."""
        from tgraph.index.vectors.stores import vector_store

        return vector_store(self.settings.vectors.store)

    @cached_property
    def embedder(self) -> Embedder:
        if self._own_embedder is not None:
            return self._own_embedder
        embedding = self.settings.embedding
        if make_embedder := EMBEDDERS.find_contribution(embedding.provider):
            added: Embedder = make_embedder(self.settings)
            return added
        if embedding.provider == "openai":
            from tgraph.models.openai import OpenAIEmbedder

            make = partial(self._shared_endpoint, _as_chat(embedding, self.settings.chat))
            return self._register_client(
                OpenAIEmbedder(embedding.model, make(), batch_size=embedding.batch_size), make
            )
        if embedding.provider == "hashing":
            from tgraph.models.hashing import HashingEmbedder

            return HashingEmbedder()
        from tgraph.models.minilm import MiniLMEmbedder, default_embedder

        if embedding.provider == "embedded":
            return MiniLMEmbedder(embedding.threads)
        return default_embedder(embedding.threads)

    @cached_property
    def passage_reader(self) -> Reader | None:
        """The reader of what a question retrieves: beside a language model only a reader that was
        chosen, by the caller or in the settings."""
        chosen = self._own_reader is not None or self.settings.reader.model != AUTO_READER
        return self.reader if chosen or self.chat is None else None

    @cached_property
    def reader(self) -> Reader | None:
        """The reader; None if disabled in the settings, or not installed."""
        reader_name = self.settings.reader.model
        if self._own_reader is not None or reader_name == NO_READER:
            return self._own_reader
        if reader_name in (AUTO_READER, EMBEDDED_READER):
            from tgraph.models.reader import default_reader

            return default_reader()
        from tgraph.models.reader_store import reader_named

        return reader_named(reader_name)

    @cached_property
    def reranker(self) -> Reranker | None:
        """The reranking server, if set."""
        rerank = self.settings.rerank
        if rerank.base_url is None:
            return None
        from tgraph.models.rerank import Reranker

        overrides = {"base_url": rerank.base_url, "api_key": rerank.api_key}
        make = partial(self._shared_endpoint, self.settings.chat.model_copy(update=overrides))
        return self._register_client(Reranker(rerank.model, make()), make)

    def _register_client(self, client: C, make: Callable[[], Endpoint]) -> C:
        self._clients.append((client, make))
        return client

    def _reopen_endpoints(self) -> None:
        """Reopen cancelled endpoints; steps and contexts keep their clients."""
        if self._cancelled:
            self._cancelled = False
            for endpoint in self._endpoints.values():
                endpoint.close()
            self._endpoints.clear()
            for client, make in self._clients:
                client.endpoint = make()

    def _shared_endpoint(self, chat: ChatSettings) -> Endpoint:
        """One endpoint for each server and key: connections and rate limits are theirs."""
        from tgraph.models.concurrency import Limiter
        from tgraph.models.endpoint import OPENAI_URL, Endpoint

        key = chat.api_key.get_secret_value() if chat.api_key else ""
        server = chat.base_url or OPENAI_URL, key
        if server not in self._endpoints:
            requests, tokens = chat.requests_per_minute, chat.tokens_per_minute
            limiter = Limiter(chat.concurrency, requests, tokens)
            self._endpoints[server] = Endpoint(
                *server, timeout=chat.timeout, retries=chat.retries, limiter=limiter
            )
        return self._endpoints[server]


def _check_prompts(folder: Path | None) -> None:
    """Reject a missing prompts folder, and files that replace no prompt."""
    if folder is None:
        return
    if not folder.is_dir():
        raise UsageError(f"The folder of prompts {folder} does not exist.", "Check `prompts`.")
    prompt_names = [name for name in list_names("prompts") if name.endswith(".md")]
    for path in sorted(folder.glob("*.md")):
        if path.name not in prompt_names and path.name != "README.md":
            raise UsageError(
                f"{path} replaces no prompt.", f"There are: {', '.join(prompt_names)}."
            )


def _as_chat(embedding: EmbeddingSettings, chat: ChatSettings) -> ChatSettings:
    """Return embedding endpoint settings; missing values are taken from the chat settings."""
    url, key = embedding.base_url or chat.base_url, embedding.api_key or chat.api_key
    return chat.model_copy(update={"base_url": url, "api_key": key})
