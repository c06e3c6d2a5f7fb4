"""The components that a graph works with, made from its settings when they are first needed.

Each step is a row of a table: the class that does it by itself, and the one that asks a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from tgraph.errors import UsageError
from tgraph.models.base import ChatModel, Embedder
from tgraph.models.prompts import PromptFiles
from tgraph.plugins import CHAT_MODELS, EMBEDDERS
from tgraph.resources import names
from tgraph.retrieve.modes.base import PROMPT
from tgraph.settings import EMBEDDED_READER, NO_READER, ChatSettings, EmbeddingSettings, Settings

if TYPE_CHECKING:
    from tgraph.answer.base import ConceptFinder, Selector, Synthesiser
    from tgraph.answer.drift import Explorer
    from tgraph.answer.entailment import EntailmentChecker, StatementExtractor
    from tgraph.answer.keywords import KeywordFinder
    from tgraph.answer.mode_choice import Chooser
    from tgraph.answer.model import ModelSynthesiser
    from tgraph.answer.step_answers_model import ModelDecomposer, ModelStepAnswerer
    from tgraph.answer.support import SupportJudge
    from tgraph.extract.base import Extractor
    from tgraph.extract.model.claims import ClaimExtractor
    from tgraph.extract.summaries import Summariser
    from tgraph.index.chunk_contexts import Situator
    from tgraph.index.cluster_summaries import ClusterWriter
    from tgraph.index.reports.report import ReportWriter
    from tgraph.models.client import Client
    from tgraph.models.endpoint import Endpoint
    from tgraph.models.reader import Reader
    from tgraph.models.rerank import Reranker

C = TypeVar("C", bound="Client")
T = TypeVar("T")

Given = Mapping[str, Any]
"""What a class is made with, by the name of the parameter."""


@dataclass(frozen=True, eq=False)
class StepFactory(Generic[T]):
    """A step: the dotted names of the classes that do it, imported when they are needed, and what
    the settings have for both and for the one that asks a model.

    A model is asked where there is one and the settings agree (``by_model``); ``missing`` is the
    ``UsageError`` where there has to be one and is none. With ``remembers`` an interrupted run does
    not pay for a reply twice.
    """

    embedded: str
    model: str
    both: Callable[[Settings], Given] = lambda s: {}
    own: Callable[[Settings], Given] = lambda s: {}
    _: KW_ONLY
    by_model: Callable[[Settings], bool] = lambda s: True
    missing: tuple[str, str] | None = None
    remembers: bool = False

    @overload
    def __get__(self, parts: None, owner: type) -> StepFactory[T]: ...

    @overload
    def __get__(self, parts: Components, owner: type) -> T: ...

    def __get__(self, parts: Components | None, owner: type) -> StepFactory[T] | T:
        """Who does the step, made once."""
        return self if parts is None else parts.once(self)

    def make(self, parts: Components, **given: Any) -> T:
        """Who does the step, with what else is ``given``; ``max_context_tokens`` is for a model."""
        settings, chat = parts.settings, parts.chat
        by_model = self.by_model(settings)
        if chat is None and by_model and self.missing:
            why, instead = self.missing
            raise UsageError(why, f"Set `chat.base_url` or OPENAI_API_KEY, or {instead}")
        if chat is None or not by_model:
            given.pop("max_context_tokens", None)
            return self._class(self.embedded)(**self.both(settings), **given)
        chat = parts.remembering(chat) if self.remembers else chat
        own = {**parts.options, **self.both(settings), **self.own(settings), **given}
        return self._class(self.model)(chat, prompts=parts.prompts, **own)

    def _class(self, path: str) -> Callable[..., T]:
        module, _, name = path.rpartition(".")
        found: Callable[..., T] = getattr(import_module(module), name)
        return found


_PARSED = (
    "The steps of a question are asked of a language model, and none is set.",
    "without one they come of its parse.",
)


class Components:
    """Model or embedded default, for each step. Pass ``chat`` or ``embedder`` to use your own."""

    _fast: StepFactory[Extractor] = StepFactory(
        "tgraph.extract.fast.FastExtractor",
        "",
        lambda s: {"max_word_length": s.fast.max_word_length},
        by_model=lambda s: False,
    )
    _model_extractor: StepFactory[Extractor] = StepFactory(
        "",
        "tgraph.extract.model.extractor.ModelExtractor",
        lambda s: {"entity_types": s.extract.entity_types, "gleanings": s.extract.gleanings},
        remembers=True,
    )
    claims: StepFactory[ClaimExtractor] = StepFactory(
        "",
        "tgraph.extract.model.claims.ModelClaims",
        lambda s: {
            "gleanings": s.claims.gleanings,
            "description": s.claims.description,
            "entity_specs": s.claims.entity_specs,
        },
        missing=("Claims are read by a language model, and none is set.", "leave claims out."),
        remembers=True,
    )
    _summariser: StepFactory[Summariser] = StepFactory(
        "tgraph.extract.summaries.DistinctSentences",
        "tgraph.extract.model.summariser.ModelSummariser",
        lambda s: {"max_words": s.summaries.max_words},
        lambda s: {"max_input_tokens": s.summaries.max_input_tokens},
        remembers=True,
    )
    _structural_situator: StepFactory[Situator] = StepFactory(
        "tgraph.index.chunk_contexts.StructuralSituator",
        "",
        lambda s: {"most_names": s.contextual_search.names},
        by_model=lambda s: False,
    )
    _model_situator: StepFactory[Situator] = StepFactory(
        "",
        "tgraph.index.chunk_context_model.ModelSituator",
        lambda s: {"max_document_tokens": s.contextual_search.max_document_tokens},
        missing=(
            "Contexts should be written by a language model, and none is set.",
            "`contextual_search.by_model` to false.",
        ),
        remembers=True,
    )
    cluster_writer: StepFactory[ClusterWriter] = StepFactory(
        "tgraph.index.cluster_summaries.QuotingWriter",
        "tgraph.index.cluster_summaries.ModelWriter",
        lambda s: {"max_words": s.raptor.max_words},
        lambda s: {"max_tokens_in": s.raptor.max_cluster_tokens},
        remembers=True,
    )
    """Who summarises clusters of passages."""
    report_writer: StepFactory[ReportWriter] = StepFactory(
        "tgraph.index.reports.extractive.ExtractiveWriter",
        "tgraph.index.reports.language_model.ModelReportWriter",
        own=lambda s: {"max_tokens": s.reports.max_output_tokens},
        remembers=True,
    )
    concepts: StepFactory[ConceptFinder] = StepFactory(
        "tgraph.answer.embedded.EmbeddedConcepts", "tgraph.answer.model.ModelConcepts"
    )
    keywords: StepFactory[KeywordFinder] = StepFactory(
        "tgraph.answer.keywords.EmbeddedKeywords", "tgraph.answer.keywords.ModelKeywords"
    )
    chooser: StepFactory[Chooser] = StepFactory(
        "tgraph.answer.mode_choice.EmbeddedChooser",
        "tgraph.answer.mode_choice.ModelChooser",
        by_model=lambda s: s.auto.by_model,
    )
    decomposer: StepFactory[ModelDecomposer] = StepFactory(
        "",
        "tgraph.answer.step_answers_model.ModelDecomposer",
        missing=_PARSED,
    )
    """Who takes questions apart where there is a model; without one their parse does."""
    _step_answerer: StepFactory[ModelStepAnswerer] = StepFactory(
        "", "tgraph.answer.step_answers_model.ModelStepAnswerer", missing=_PARSED
    )
    selector: StepFactory[Selector] = StepFactory(
        "tgraph.answer.embedded.EmbeddedSelector",
        "tgraph.answer.model.ModelSelector",
        own=lambda s: {"max_context_tokens": s.graph.max_context_tokens},
    )
    alone: StepFactory[Synthesiser] = StepFactory(
        "",
        "tgraph.answer.model.ModelAlone",
        lambda s: {"response_type": s.answer.response_type},
        missing=(
            "The mode bypass asks the language model alone, and none is set.",
            "choose another mode.",
        ),
    )
    """The model without any documents. ``UsageError`` where there is none."""
    _suggester: StepFactory[Synthesiser] = StepFactory(
        "tgraph.answer.suggestions.EmbeddedSuggester", "tgraph.answer.suggestions.ModelSuggester"
    )
    explorer: StepFactory[Explorer] = StepFactory(
        "tgraph.answer.drift.EmbeddedExplorer",
        "tgraph.answer.drift_model.ModelExplorer",
        lambda s: {"follow_ups": s.drift_search.follow_ups},
        lambda s: {"max_context_tokens": s.drift_search.max_context_tokens + PROMPT},
    )
    _support_judge: StepFactory[SupportJudge] = StepFactory(
        "tgraph.answer.support.LexicalJudge", "tgraph.answer.support.ModelJudge"
    )
    statements: StepFactory[StatementExtractor] = StepFactory(
        "tgraph.answer.entailment.SentenceStatements",
        "tgraph.answer.entailment_model.ModelStatements",
        remembers=True,
    )
    _entailment: StepFactory[EntailmentChecker] = StepFactory(
        "tgraph.answer.entailment.LikenessEntailment",
        "tgraph.answer.entailment_model.ModelEntailment",
        remembers=True,
    )

    def __init__(
        self,
        settings: Settings,
        cache: Path,
        *,
        chat: ChatModel | None = None,
        embedder: Embedder | None = None,
        reader: Reader | None = None,
    ) -> None:
        self.settings = settings
        self._cache = cache
        self._own_chat = chat
        self._own_embedder = embedder
        self._own_reader = reader
        self._steps: dict[object, Any] = {}
        self._clients: list[tuple[Client, Callable[[], Endpoint]]] = []
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._cancelled = False
        _check_prompts(settings.prompts)

    def with_settings(self, settings: Settings) -> Components:
        """The same models, asked with other settings; their connections are those of these."""
        made = Components(
            settings, self._cache, chat=self.chat, embedder=self.embedder, reader=self.reader
        )
        made.__dict__["reranker"] = self.reranker
        return made

    def once(self, step: StepFactory[T]) -> T:
        """Who does the step, the same each time; calls that were cancelled may be made again."""
        self._renew()
        if step not in self._steps:
            self._steps[step] = step.make(self)
        made: T = self._steps[step]
        return made

    @property
    def extractor(self) -> Extractor:
        """Who reads chunks."""
        if self.settings.extract.method == "fast":
            return self._fast
        return self._embedded_extractor if self.chat is None else self._model_extractor

    @cached_property
    def _embedded_extractor(self) -> Extractor:
        from tgraph.extract.base import CachedExtractor
        from tgraph.extract.embedded import EmbeddedExtractor

        return CachedExtractor(EmbeddedExtractor(), self._cache / "extractions")

    @property
    def summariser(self) -> Summariser | None:
        """Who makes one description of several; None where the settings leave them be."""
        return self._summariser if self.settings.summaries.enabled else None

    @property
    def situator(self) -> Situator:
        """Who says where in its document a chunk stands. ``UsageError`` where a model should and
        none is set."""
        by_model = self.settings.contextual_search.by_model
        return self._model_situator if by_model else self._structural_situator

    @cached_property
    def checker(self) -> EntailmentChecker:
        """Who says whether a text entails a statement."""
        own = {"embedder": self.embedder} if self.chat is None else {}
        return Components._entailment.make(self, **own)

    @property
    def support_judge(self) -> SupportJudge:
        """Who says whether texts prove a statement; without a model the reader, if it can."""
        reader = self.reader if self.chat is None else None
        if reader is None or reader.supports("", ()) is None:
            return self._support_judge
        from tgraph.answer.support import ReaderJudge

        return ReaderJudge(reader)

    def suggester(self, count: int, budget: int) -> Synthesiser:
        """Who proposes ``count`` questions, from at most ``budget`` tokens of prompt."""
        return Components._suggester.make(self, count=count, max_context_tokens=budget)

    def step_answerer(self, budget: int) -> ModelStepAnswerer:
        """Who answers the steps of a question where there is a model, from at most ``budget``
        tokens of prompt."""
        return Components._step_answerer.make(self, max_context_tokens=budget)

    def synthesiser(self, budget: int) -> Synthesiser:
        """Who writes an answer, from at most ``budget`` tokens of prompt."""
        if self.chat is None:
            from tgraph.answer.embedded import EmbeddedSynthesiser

            return EmbeddedSynthesiser(self.settings.answer.least_confidence)
        return self.writer(self.chat, budget)

    def writer(
        self, chat: ChatModel, budget: int, max_words: int | None = None
    ) -> ModelSynthesiser:
        """The same where a model does it, told to write ``max_words`` at most."""
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

    @property
    def prompts(self) -> PromptFiles:
        """The prompts of the settings, in the language that is set."""
        return PromptFiles(self.settings.prompts, self.settings.answer.language)

    @property
    def many(self) -> Mapping[str, Any]:
        """The options of a model's step that makes several calls at the same time."""
        self._renew()
        concurrency = self.settings.chat.concurrency
        return {**self.options, "concurrency": concurrency, "cancel": self.cancel}

    @property
    def options(self) -> Mapping[str, Any]:
        """How models are asked in every step."""
        chat = self.settings.chat
        return {"temperature": chat.temperature, "seed": chat.seed, "max_tokens": chat.max_tokens}

    def remembering(self, chat: ChatModel) -> ChatModel:
        """The model with a memory of its replies."""
        from tgraph.models.reply_cache import CachedChat

        return CachedChat(chat, self._cache / "replies")

    @cached_property
    def chat(self) -> ChatModel | None:
        """The language model, or None where the embedded default does its work."""
        if self._own_chat is not None or not self.settings.uses_model():
            return self._own_chat
        chat = self.settings.chat
        if make_chat := CHAT_MODELS.get(chat.provider):
            added: ChatModel = make_chat(self.settings)
            return added
        from tgraph.models.openai import OpenAIChat

        make = partial(self._endpoint, chat)
        thinks = chat.thinking == "default"
        return self._known(
            OpenAIChat(chat.model, make(), structured=chat.structured_output, thinking=thinks), make
        )

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

    @cached_property
    def embedder(self) -> Embedder:
        if self._own_embedder is not None:
            return self._own_embedder
        embedding = self.settings.embedding
        if make_embedder := EMBEDDERS.get(embedding.provider):
            added: Embedder = make_embedder(self.settings)
            return added
        if embedding.provider == "openai":
            from tgraph.models.openai import OpenAIEmbedder

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

    @cached_property
    def reader(self) -> Reader | None:
        """Who reads passages; None where the settings want nobody, or nothing is installed."""
        wanted = self.settings.reader.model
        if self._own_reader is not None or wanted == NO_READER:
            return self._own_reader
        if wanted == EMBEDDED_READER:
            from tgraph.models.reader import default_reader

            return default_reader()
        from tgraph.models.reader_store import reader_named

        return reader_named(wanted)

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
    """A folder that isn't there, or a file that replaces nothing, is a slip of the pen."""
    if folder is None:
        return
    if not folder.is_dir():
        raise UsageError(f"The folder of prompts {folder} does not exist.", "Check `prompts`.")
    known = [name for name in names("prompts") if name.endswith(".md")]
    for path in sorted(folder.glob("*.md")):
        if path.name not in known and path.name != "README.md":
            raise UsageError(f"{path} replaces no prompt.", f"There are: {', '.join(known)}.")


def _as_chat(embedding: EmbeddingSettings, chat: ChatSettings) -> ChatSettings:
    """The embeddings' own endpoint; what it doesn't say is as for the chat."""
    url, key = embedding.base_url or chat.base_url, embedding.api_key or chat.api_key
    return chat.model_copy(update={"base_url": url, "api_key": key})
