"""Settings: defaults < ``tgraph.toml`` in the graph's folder < environment < flags.

Environment variables are ``TGRAPH_`` with ``__`` between levels (``TGRAPH_CHAT__MODEL``); the
standard ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` are honoured. Keys are secrets: they are never
written. A relative path is relative to the graph's folder in ``tgraph.toml``, and to the working
folder elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from tgraph.errors import UsageError

FILE = "tgraph.toml"
DEFAULT_CHAT_MODEL = "gpt-4.1-mini"
DEFAULT_EMBEDDING_MODEL = "text-embedding-3-small"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ChatSettings(_Section):
    """The language model. Without a key and a base URL the embedded default does its work."""

    provider: Literal["auto", "openai", "embedded"] = Field(
        "auto", description="auto: a model if a key or base URL is set, else the embedded default"
    )
    model: str = Field(DEFAULT_CHAT_MODEL, description="the model's name at the endpoint")
    base_url: str | None = Field(None, description="an OpenAI-compatible endpoint")
    api_key: SecretStr | None = Field(None, description="the key (or OPENAI_API_KEY)")
    temperature: float = Field(0.0, ge=0, le=2)
    seed: int | None = Field(None, description="sent to the endpoint, which may ignore it")
    max_tokens: int | None = Field(None, gt=0, description="limit of a reply")
    timeout: float = Field(120.0, gt=0, description="seconds without a byte before giving up")
    retries: int = Field(5, ge=0)
    concurrency: int = Field(4, ge=1, description="calls at the same time")
    requests_per_minute: int | None = Field(None, gt=0)
    tokens_per_minute: int | None = Field(None, gt=0)


class EmbeddingSettings(_Section):
    """Embeddings; chat and embeddings may come from different endpoints."""

    provider: Literal["auto", "openai", "embedded", "hashing"] = Field(
        "auto", description="auto: the embedded default (MiniLM if installed, else hashing)"
    )
    model: str = Field(DEFAULT_EMBEDDING_MODEL)
    base_url: str | None = None
    api_key: SecretStr | None = None
    batch_size: int = Field(64, ge=1)
    threads: int = Field(1, ge=1, description="threads of the embedded model")


class ChunkSettings(_Section):
    by: Literal["tokens", "sentences"] = "tokens"
    size: int = Field(1200, ge=20, description="tokens in a chunk")
    overlap: int = Field(100, ge=0, description="tokens shared with the chunk before")
    encoding: str = Field("o200k_base", description="tiktoken's name of the tokenizer")


class ExtractSettings(_Section):
    method: Literal["standard", "fast"] = Field(
        "standard", description="fast: names and what stands together, without a model"
    )
    entity_types: tuple[str, ...] = ("person", "organization", "place", "event", "work", "concept")
    gleanings: int = Field(1, ge=0, description="extra rounds that ask for what was missed")


class SummarySettings(_Section):
    """Where an entity or an edge has several descriptions, one takes their place."""

    enabled: bool = True
    max_words: int = Field(500, ge=10, description="the longest summary")
    max_input_tokens: int = Field(
        4000, ge=500, description="tokens of a prompt; what is more is folded into the summary"
    )


class FastSettings(_Section):
    """The method ``fast``; the limits are those of GraphRAG 3.3.0's ``prune_graph``."""

    window: Literal["sentence", "neighbours", "chunk"] = Field(
        "neighbours", description="where two names must stand: one sentence, or two in a row, ..."
    )
    max_word_length: int = Field(15, ge=1, description="of the words of a noun phrase")
    min_node_freq: int = Field(2, ge=1, description="windows that a name must stand in")
    max_node_freq_std: float | None = Field(None, gt=0, description="standard deviations")
    min_node_degree: int = Field(1, ge=0, description="names that a name must be tied to")
    max_node_degree_std: float | None = Field(None, gt=0, description="standard deviations")
    min_edge_weight_pct: float = Field(40, ge=0, le=100, description="lightest pairs left out")
    remove_ego_nodes: bool = Field(
        False,
        description="leave out the name tied to most others (GraphRAG does; it may be the subject)",
    )


class AnswerSettings(_Section):
    """The form of an answer, in every mode that has a model write it."""

    response_type: str = Field("", description='such as "multiple paragraphs" or "a list"')
    general_knowledge: bool = Field(
        False, description="let the model add what it knows itself, marked [LLM: verify]"
    )


class ClaimSettings(_Section):
    """Claims: what the documents say of an entity that may be true, false or suspected."""

    enabled: bool = Field(False, description="read claims from every chunk (more calls)")
    gleanings: int = Field(1, ge=0, description="extra rounds that ask for what was missed")


class CommunitySettings(_Section):
    """How entities are grouped; the first two with GraphRAG's defaults."""

    max_size: int = Field(10, ge=2, description="entities; a larger community is divided again")
    quality: Literal["modularity", "cpm", "surprise"] = Field(
        "modularity", description="what Leiden maximises"
    )
    resolution: float = Field(
        1.0, gt=0, description="above 1 for smaller communities; surprise has no resolution"
    )


class ReportSettings(_Section):
    """Community reports, with GraphRAG's limits."""

    max_input_tokens: int = Field(
        8_000, ge=1_000, description="tokens of a prompt; sub-reports stand in for what is more"
    )
    max_output_tokens: int = Field(2_000, ge=200, description="tokens of a report")


class GraphSettings(_Section):
    """The limits of the graph mode, with TrustGraph's defaults."""

    entity_limit: int = Field(50, ge=1)
    triple_limit: int = Field(30, ge=1, description="triples taken from one entity")
    max_subgraph_size: int = Field(150, ge=1, description="candidate edges")
    max_path_length: int = Field(2, ge=1, description="hops from a seed entity")
    edge_limit: int = Field(25, ge=1, description="edges selected")
    evidence_limit: int = Field(3, ge=1, description="quotes shown for an edge")
    history_turns: int = Field(5, ge=0, description="earlier turns that a question may refer to")
    max_context_tokens: int = Field(
        12_000, ge=500, description="tokens of a prompt; edges that don't fit are rejected"
    )


class GlobalSearchSettings(_Section):
    """Global search, with GraphRAG's defaults; the limits of dynamic selection are tgraph's."""

    community_level: int = Field(2, ge=0, description="reports are read down to this level")
    min_rating: float = Field(0.0, ge=0, le=10, description="reports rated lower are left out")
    seed: int = Field(86, description="of the shuffle that spreads the reports over batches")
    map_context_tokens: int = Field(
        12_000, ge=500, description="tokens of the prompt in which a batch of reports is read"
    )
    map_max_length: int = Field(1000, ge=1, description="words of the points of a batch")
    reduce_context_tokens: int = Field(
        12_000, ge=500, description="tokens of the prompt in which points become the answer"
    )
    reduce_max_length: int = Field(2000, ge=1, description="words of the answer")
    dynamic: bool = Field(
        False, description="rate reports from the top and read only what is relevant"
    )
    dynamic_threshold: int = Field(1, ge=1, le=5, description="the rating that is relevant, of 5")
    dynamic_keep_parent: bool = Field(
        False, description="read a relevant report also where parts of it are relevant"
    )
    dynamic_max_level: int = Field(2, ge=0, description="reports are rated down to this level")
    dynamic_max_calls: int = Field(100, ge=1, description="ratings asked of the model")
    dynamic_num_repeats: int = Field(1, ge=1, description="ratings of a report, of which most win")


class IntegritySettings(_Section):
    """How the record is protected."""

    signing_key: Path | None = Field(
        None, description="the file of an Ed25519 private key that signs the chain's head"
    )


class _GraphFile(TomlConfigSettingsSource):
    """The graph's file, whose paths are relative to the folder that it stands in."""

    def __call__(self) -> dict[str, Any]:
        values = self._located(super().__call__(), "prompts")
        integrity = values.get("integrity")
        if isinstance(integrity, dict):
            values = {**values, "integrity": self._located(integrity, "signing_key")}
        return values

    def _located(self, values: dict[str, Any], name: str) -> dict[str, Any]:
        path = values.get(name)
        if isinstance(path, str) and isinstance(self.toml_file_path, Path):
            return {**values, name: self.toml_file_path.parent / path}
        return values


class BasicSearchSettings(_Section):
    """The mode ``basic``, with Microsoft GraphRAG's defaults."""

    k: int = Field(10, ge=1, description="chunks retrieved")
    least_score: float = Field(-1.0, ge=-1, le=1, description="cosine below which a chunk is left")
    max_context_tokens: int = Field(12_000, ge=500, description="tokens of chunks in a prompt")


class NaiveSearchSettings(BasicSearchSettings):
    """The mode ``naive``: the same with the defaults of LightRAG 1.5.7."""

    k: int = Field(20, ge=1, description="chunks retrieved")
    least_score: float = Field(0.2, ge=-1, le=1, description="cosine below which a chunk is left")
    max_context_tokens: int = Field(26_000, ge=500, description="tokens of chunks in a prompt")


class LightragSearchSettings(_Section):
    """The modes ``lightrag-*``, with the defaults of LightRAG 1.5.7."""

    top_k: int = Field(40, ge=1, description="entities, and edges, that keywords lead to")
    least_score: float = Field(0.2, ge=-1, le=1, description="cosine below which nothing is found")
    chunk_top_k: int = Field(20, ge=0, description="chunks retrieved")
    related_chunk_number: int = Field(5, ge=1, description="chunks of an entity or an edge")
    chunk_pick: Literal["vector", "weight"] = Field(
        "vector",
        description="how they are picked: by likeness to the question, or by how many share",
    )
    max_entity_tokens: int = Field(6_000, ge=0, description="tokens of entities in a prompt")
    max_relationship_tokens: int = Field(8_000, ge=0, description="tokens of edges in a prompt")
    max_total_tokens: int = Field(30_000, ge=5_000, description="tokens of a prompt")
    low_keywords: tuple[str, ...] = Field((), description="what the question names; else found")
    high_keywords: tuple[str, ...] = Field((), description="its themes; else found")


class AutoSettings(_Section):
    """The mode ``auto``: which mode is for what a question is about."""

    by_model: bool = Field(False, description="let the model, where there is one, tell")
    one: str = Field("local", description="the mode for questions about one thing")
    several: str = Field("graph", description="the mode for questions about several linked things")
    whole: str = Field("global", description="the mode for questions about everything")


class ContextualSearchSettings(_Section):
    """The mode ``contextual``, after Anthropic's "Contextual Retrieval" (2024)."""

    enabled: bool = Field(
        False, description="situate chunks when indexing, not only from the first question on"
    )
    by_model: bool = Field(
        False, description="contexts written by the model: one call a chunk, the document in each"
    )
    max_document_tokens: int = Field(
        30_000, ge=500, description="of a longer document the model sees the part around the chunk"
    )
    names: int = Field(20, ge=0, description="names of the document in a context without a model")
    k: int = Field(20, ge=1, description="chunks retrieved")
    pool: int = Field(150, ge=1, description="chunks that each of the two searches contributes")
    rrf_k: int = Field(
        10, ge=0, description="of reciprocal rank fusion (Cormack et al. 2009, with 60): steeper"
    )
    max_context_tokens: int = Field(12_000, ge=500, description="tokens of chunks in a prompt")


class RaptorSettings(_Section):
    """The tree of summaries; levels, dimensions and threshold are RAPTOR's (Sarthi et al. 2024)."""

    enabled: bool = Field(
        False, description="grow the tree when indexing, not only from the first question on"
    )
    levels: int = Field(5, ge=1, description="the greatest height of the tree")
    dimensions: int = Field(10, ge=1, description="principal components that are clustered")
    threshold: float = Field(
        0.1, gt=0, lt=1, description="likelihood from which something belongs to a cluster"
    )
    max_cluster_tokens: int = Field(
        12_000, ge=500, description="tokens of a cluster; what is larger is divided"
    )
    max_words: int = Field(130, ge=20, description="the longest summary; RAPTOR's have 131 tokens")


class RaptorSearchSettings(_Section):
    """The modes ``raptor`` and ``raptor-traversal``, with the paper's limits."""

    max_context_tokens: int = Field(
        2_000, ge=500, description="tokens of summaries and chunks in a prompt"
    )
    k: int = Field(20, ge=1, description="nodes of the tree retrieved at once (raptor)")
    top_k: int = Field(5, ge=1, description="nodes taken of each level (raptor-traversal)")
    evidence_limit: int = Field(3, ge=1, description="chunks that a summary is cited by")


class RerankSettings(_Section):
    """A server that ranks texts for a question (POST ``/rerank``: Cohere, Jina, vLLM and others);
    unset: chunks stay in the order of their search."""

    base_url: str | None = Field(None, description="up to and without /rerank")
    model: str = Field("", description="the model's name at the endpoint")
    api_key: SecretStr | None = None
    pool: int = Field(150, ge=1, description="chunks that are ranked anew")


class LocalSearchSettings(_Section):
    """The mode ``local``, with Microsoft GraphRAG's defaults."""

    top_k_entities: int = Field(10, ge=1, description="entities that a question leads to")
    oversampling: int = Field(2, ge=1, description="times as many are looked at, then cut back")
    top_k_relationships: int = Field(
        10, ge=0, description="edges that lead out of the entities, for each of them"
    )
    community_level: int = Field(2, ge=0, description="the deepest level of reports that is used")
    max_context_tokens: int = Field(12_000, ge=500, description="tokens of evidence in a prompt")
    report_share: float = Field(0.15, ge=0, le=1, description="share of reports in these tokens")
    chunk_share: float = Field(
        0.5, ge=0, le=1, description="share of chunks; entities, edges and claims have the rest"
    )
    include: tuple[str, ...] = Field((), description="entities to start from in any case")
    exclude: tuple[str, ...] = Field((), description="entities to leave out")


class PprSearchSettings(_Section):
    """The mode ``ppr``: numbers of HippoRAG 2, weights by cross-validation (``docs/reference/
    retrieval.md``)."""

    passages: int = Field(10, ge=1, description="chunks retrieved")
    top_k_edges: int = Field(5, ge=0, description="edges nearest to the question")
    top_k_entities: int = Field(5, ge=0, description="of their ends that the walk starts from")
    dense_chunks: int = Field(500, ge=1, description="chunks nearest to the question")
    edge_weight: float = Field(1.0, ge=0, description="share of the edges' ends in the starts")
    name_weight: float = Field(2.0, ge=0, description="share of entities that the question names")
    passage_weight: float = Field(1.0, ge=0, description="share of the chunks nearest to it")
    subject_weight: float = Field(
        1.0, ge=0, description="of the tie between a chunk and what its document is called after"
    )
    synonymy: float = Field(0.8, ge=0, description="cosine from which entities are synonyms")
    damping: float = Field(0.85, gt=0, lt=1, description="chance that the walk goes on")
    likeness: float = Field(
        6.0, ge=0, description="weight of a chunk's own cosine beside the logarithm of the walk"
    )
    head: int = Field(0, ge=0, description="chunks nearest to the question that stand first")
    read: int = Field(
        2, ge=0, description="chunks that go before them, in which the mode graph reads the answer"
    )
    filter: bool = Field(True, description="let the model choose among the edges to start from")
    max_context_tokens: int = Field(12_000, ge=500, description="tokens of evidence in a prompt")
    edge_share: float = Field(0.15, ge=0, le=1, description="share of edges in these tokens")


class DriftSearchSettings(_Section):
    """The mode ``drift``: reports, shares and depth as in Microsoft GraphRAG, the rest tgraph's."""

    k: int = Field(20, ge=1, description="reports, the nearest, that the primer reads")
    community_level: int = Field(2, ge=0, description="the deepest level of reports that is used")
    folds: int = Field(3, ge=1, description="parts in which the primer reads the reports")
    depth: int = Field(3, ge=0, description="follow-ups of follow-ups are asked so deep")
    breadth: int = Field(4, ge=1, description="follow-up questions asked at the same time")
    follow_ups: int = Field(5, ge=1, description="follow-up questions that one answer may propose")
    call_budget: int = Field(
        13, ge=3, description="calls of the model in all; those of an embedder come on top"
    )
    duplicate: float = Field(
        0.95, gt=0, le=1, description="similarity from which two questions are the same"
    )
    top_k_entities: int = Field(10, ge=1, description="entities that a question leads to")
    top_k_relationships: int = Field(
        10, ge=0, description="edges that lead out of the entities, for each of them"
    )
    report_share: float = Field(
        0.1, ge=0, le=1, description="share of reports in the evidence of a question"
    )
    chunk_share: float = Field(
        0.9, ge=0, le=1, description="share of chunks; entities, edges and claims have the rest"
    )
    primer_context_tokens: int = Field(
        12_000, ge=500, description="tokens of reports in a prompt of the primer"
    )
    max_context_tokens: int = Field(
        12_000, ge=500, description="tokens of evidence in a prompt of a question"
    )
    reduce_context_tokens: int = Field(
        12_000, ge=500, description="tokens of the prompt in which points become the answer"
    )


class Settings(BaseSettings):
    """Everything that can be set."""

    model_config = SettingsConfigDict(
        env_prefix="TGRAPH_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    collection: str = "default"
    explain_collection: str = "explainability"
    person: str | None = Field(
        None, min_length=1, description="who is on record for decisions made by hand; unset: nobody"
    )
    prompts: Path | None = Field(None, description="a folder whose files replace tgraph's prompts")
    chat: ChatSettings = ChatSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    integrity: IntegritySettings = IntegritySettings()
    chunk: ChunkSettings = ChunkSettings()
    extract: ExtractSettings = ExtractSettings()
    summaries: SummarySettings = SummarySettings()
    fast: FastSettings = FastSettings()
    answer: AnswerSettings = AnswerSettings()
    claims: ClaimSettings = ClaimSettings()
    communities: CommunitySettings = CommunitySettings()
    reports: ReportSettings = ReportSettings()
    graph: GraphSettings = GraphSettings()
    local_search: LocalSearchSettings = LocalSearchSettings()
    basic_search: BasicSearchSettings = BasicSearchSettings()
    naive_search: NaiveSearchSettings = NaiveSearchSettings()
    lightrag_search: LightragSearchSettings = LightragSearchSettings()
    contextual_search: ContextualSearchSettings = ContextualSearchSettings()
    raptor: RaptorSettings = RaptorSettings()
    raptor_search: RaptorSearchSettings = RaptorSearchSettings()
    rerank: RerankSettings = RerankSettings()
    auto: AutoSettings = AutoSettings()
    ppr_search: PprSearchSettings = PprSearchSettings()
    global_search: GlobalSearchSettings = GlobalSearchSettings()
    drift_search: DriftSearchSettings = DriftSearchSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, _GraphFile(settings_cls)

    def uses_model(self) -> bool:
        """Whether a language model does the work, rather than the embedded default."""
        if self.chat.provider == "auto":
            return self.chat.api_key is not None or self.chat.base_url is not None
        return self.chat.provider == "openai"


_NOT_SETTINGS = {"TGRAPH_ROOT", "TGRAPH_SHARED_DATA", "TGRAPH_DEBUG"}


def load_settings(root: Path | None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """The effective settings of the graph in ``root``.

    ``overrides`` are flags, with ``section.key`` for nested ones; None values are not set. A key
    that doesn't exist, or a value that doesn't fit, is a ``UsageError`` that names it.
    """
    source = root / FILE if root is not None else None
    values = _nested({k: value for k, value in (overrides or {}).items() if value is not None})
    _check_environment()
    try:
        settings = _load(source if source and source.is_file() else None, values)
    except ValidationError as error:
        raise UsageError(_explain(error), f"See `tgraph config show` and {FILE}.") from error
    except ValueError as error:
        raise UsageError(f"{source} can't be read: {error}.") from error
    return _with_openai_variables(settings)


def _load(source: Path | None, values: Mapping[str, Any]) -> Settings:
    config = SettingsConfigDict(**{**Settings.model_config, "toml_file": source})

    class Located(Settings):
        model_config = config

    return Located(**values)


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, name = key.split(".")
        target = nested
        for section in sections:
            target = target.setdefault(section, {})
        target[name] = value
    return nested


def _check_environment() -> None:
    """An unknown ``TGRAPH_*`` variable is a typing error that would otherwise pass in silence."""
    known = {f"TGRAPH_{name.upper()}" for name in Settings.model_fields} | _NOT_SETTINGS
    for name in os.environ:
        upper = name.upper()
        if upper.startswith("TGRAPH_") and upper.split("__")[0] not in known:
            raise UsageError(
                f"The environment variable {name} is not a setting.",
                "`tgraph config show` lists them all.",
            )


def _with_openai_variables(settings: Settings) -> Settings:
    """``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` count where nothing of tgraph's own is set."""
    changes: dict[str, Any] = {}
    key, url = os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENAI_BASE_URL")
    if key and settings.chat.api_key is None:
        changes["api_key"] = SecretStr(key)
    if url and settings.chat.base_url is None:
        changes["base_url"] = url
    if not changes:
        return settings
    return settings.model_copy(update={"chat": settings.chat.model_copy(update=changes)})


def _explain(error: ValidationError) -> str:
    parts = []
    for item in error.errors():
        where = ".".join(str(part) for part in item["loc"])
        wrong = item["type"] == "extra_forbidden"
        parts.append(f"{where} is not a setting" if wrong else f"{where}: {item['msg']}")
    return f"The settings are wrong: {'; '.join(parts)}."
