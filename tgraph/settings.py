"""Settings: defaults < ``tgraph.toml`` in the graph's folder < environment < flags.

Environment variables are ``TGRAPH_`` with ``__`` between levels (``TGRAPH_CHAT__MODEL``); the
standard ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` are honoured. Keys are secrets: they are never
written. A relative path is relative to the graph's folder in ``tgraph.toml``, and to the working
folder elsewhere.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from tgraph.errors import UsageError
from tgraph.foreign_bytes import check_file_size
from tgraph.plugins import CHAT_MODELS, EMBEDDERS, VECTOR_STORES
from tgraph.retrieve.modes.base import ADDRESS, Address, Section, admit_added
from tgraph.retrieve.modes.registry import ModeSettings

FILE = "tgraph.toml"
DEFAULT_CHAT_MODEL = "gpt-4.1-mini"
DEFAULT_EMBEDDING_MODEL = "text-embedding-3-small"


REPLY_LIMIT = 16_384
"""Tokens of a reply by default: OpenAI's limit for GPT-4o, and room for thoughts."""


class ChatSettings(Section):
    """The language model. Without a key and a base URL the embedded default does its work."""

    provider: Annotated[Literal["auto", "openai", "embedded"], admit_added(CHAT_MODELS)] = Field(
        "auto", description="auto: a model if a key or base URL is set, else the embedded default"
    )
    model: str = Field(DEFAULT_CHAT_MODEL, description="the model's name at the endpoint")
    base_url: Annotated[str | None, ADDRESS] = Field(
        None, description="an OpenAI-compatible endpoint", examples=["http://localhost:8000/v1"]
    )
    api_key: SecretStr | None = Field(None, description="the key (or OPENAI_API_KEY)")
    temperature: float = Field(0.0, ge=0, le=2, description="0: the likeliest words")
    seed: int | None = Field(None, description="sent to the endpoint, which may ignore it")
    max_tokens: int | None = Field(
        None,
        gt=0,
        description=f"limit of a reply, thoughts included; unset: {REPLY_LIMIT:,} tokens, so that"
        " no model writes for ever",
    )
    structured_output: Literal["json_schema", "json_object", "none"] = Field(
        "json_schema",
        description="how replies are asked for as JSON; what a server refuses is found out and left"
        " out all the same, at the price of the refused call",
    )
    thinking: Literal["default", "off"] = Field(
        "default", description="off: the server is told to let the model reply without thinking"
    )
    timeout: float = Field(120.0, gt=0, description="seconds without a byte before giving up")
    retries: int = Field(5, ge=0, description="of a call that failed in a way that may pass")
    concurrency: int = Field(4, ge=1, description="calls at the same time")
    requests_per_minute: int | None = Field(None, gt=0, description="calls that may begin")
    tokens_per_minute: int | None = Field(None, gt=0, description="tokens sent and received")


class EmbeddingSettings(Section):
    """Embeddings; chat and embeddings may come from different endpoints."""

    provider: Annotated[
        Literal["auto", "openai", "embedded", "hashing"], admit_added(EMBEDDERS)
    ] = Field("auto", description="auto: the embedded default (MiniLM if installed, else hashing)")
    model: str = Field(DEFAULT_EMBEDDING_MODEL, description="the model's name at the endpoint")
    base_url: Annotated[str | None, ADDRESS] = Field(
        None, description="its endpoint; unset: that of chat", examples=["http://localhost:8000/v1"]
    )
    api_key: SecretStr | None = Field(None, description="its key; unset: that of chat")
    batch_size: int = Field(64, ge=1, description="texts of a call")
    threads: int = Field(
        1, ge=1, description="batches that the embedded model works on at the same time"
    )


class VectorSettings(Section):
    """How vectors are kept and searched."""

    store: Annotated[Literal["inverted-lists"], admit_added(VECTOR_STORES)] = Field(
        "inverted-lists",
        description="tgraph's own (exact for small sets, else HNSW over inverted lists), or a store"
        " of an extension; after a change `tgraph index` makes the vectors anew",
    )


class IngestSettings(Section):
    """Which files are taken in, and what parsing one may cost; one that needs more is left out, and
    said so."""

    follow_links: bool = Field(
        False, description="symbolic links that lead out of the folder that was named, too"
    )
    memory_mb: int = Field(512, ge=128, description="memory of the process that parses")
    seconds: float = Field(60.0, gt=0, description="until it is stopped")
    output_mb: int = Field(100, ge=1, description="text that a document may come to")
    date_order: Literal["language", "day-first", "month-first"] = Field(
        "language",
        description="what is first in a document's date such as 3/4/2024, where the numbers don't"
        " tell: as in the document's language, the day, or the month",
    )
    ocr: bool = Field(
        False,
        description="recognise the text of PDF pages that are images; needs the extra `ocr`,"
        " memory_mb of 1700 or more, and about 5 of seconds a page",
    )


class ChunkSettings(Section):
    by: Literal["tokens", "sentences"] = Field("tokens", description="what a chunk is filled with")
    size: int = Field(1200, ge=20, description="tokens in a chunk")
    overlap: int = Field(100, ge=0, description="tokens shared with the chunk before")
    prepend_metadata: tuple[str, ...] = Field(
        (),
        description="what of a document stands before its chunks where these are read by a model,"
        " embedded and shown: title, author, date, language, description, tags, or a key of its"
        " front matter",
    )
    size_includes_metadata: bool = Field(
        False, description="count what stands before a chunk within its size"
    )
    encoding: str = Field("o200k_base", description="tiktoken's name of the tokenizer")


class ExtractSettings(Section):
    method: Literal["standard", "fast"] = Field(
        "standard", description="fast: names and what stands together, without a model"
    )
    entity_types: tuple[str, ...] = Field(
        ("person", "organization", "place", "event", "work", "concept"),
        description="what entities there are, in the prompt that reads them",
    )
    gleanings: int = Field(1, ge=0, description="extra rounds that ask for what was missed")
    ontology_limit: int = Field(
        60,
        ge=1,
        description="classes, and properties, of an ontology that a prompt shows: the nearest",
    )


class ExecutorSettings(Section):
    """Who works besides the process that indexes. What is found doesn't depend on it."""

    workers: int = Field(
        1, ge=1, description="processes of this machine that do what no model is asked for"
    )
    address: Annotated[str, ADDRESS] = Field(
        "",
        description="a Dask cluster that does it, and asks models too (extra `dask`)",
        examples=["dask://10.0.0.7:8786"],
    )


class StoreSettings(Section):
    """Where questions read the graph."""

    url: Annotated[str, ADDRESS] = Field(
        "",
        description="a SPARQL endpoint that the graph was published to, instead of the folder's"
        " store; it needs triple terms",
        examples=["http://localhost:7878/query"],
    )
    user: str = Field("", description="who reads there, if it asks")
    password: SecretStr | None = Field(None, description="their password")
    timeout: float = Field(60, gt=0, description="seconds that an answer of it may take")


class PublishSettings(Section):
    """A triple store of others that the graph is published to."""

    to: Annotated[str, ADDRESS] = Field(
        "",
        description="where it takes SPARQL updates",
        examples=["http://localhost:7878/update"],
    )
    query: Annotated[str, ADDRESS] = Field(
        "", description="where it takes queries, if that can't be told from `to`"
    )
    user: str = Field("", description="who writes there, if it asks")
    password: SecretStr | None = Field(None, description="their password")
    timeout: float = Field(600, gt=0, description="seconds that an update may take")


class OntologySettings(Section):
    """What an ontology that was added does (`tgraph ontology add`)."""

    strict: bool | None = Field(
        None,
        description="keep what does not fit out of knowledge; unset: as was last decided",
    )


class SummarySettings(Section):
    """Where an entity or an edge has several descriptions, one takes their place."""

    enabled: bool = Field(True, description="without, descriptions stand one after the other")
    max_words: int = Field(500, ge=10, description="the longest summary")
    max_input_tokens: int = Field(
        4000, ge=500, description="tokens of a prompt; of more, runs are summarised first"
    )


class FastSettings(Section):
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


AUTO_READER, EMBEDDED_READER, NO_READER = "auto", "embedded", "none"


class ReaderSettings(Section):
    """What reads the sentences that were found."""

    model: str = Field(
        AUTO_READER,
        description="auto (embedded, but none beside a language model), embedded (tgraph's own, for"
        " English), none, the name of one that was pulled (`tgraph models pull`), or a folder with"
        " model.onnx and tokenizer.json",
    )


class AnswerSettings(Section):
    """The form of an answer; where no model writes it, when there is one."""

    least_confidence: float = Field(
        0.14,
        ge=0,
        le=1,
        description="probability that the documents answer, below which there is no evidence",
    )
    sure_confidence: float = Field(
        0.25,
        ge=0,
        le=1,
        description="probability that the documents answer, below which the answer is uncertain",
    )
    longest_quote: int = Field(
        350, ge=60, description="characters of a quoted sentence around what answers"
    )
    longest_question: int = Field(20_000, ge=1, description="characters that a question may have")
    language: str = Field(
        "",
        pattern=r"^[\w ()-]{0,40}$",
        description="what a model writes in (answers, reports, summaries), as de or German;"
        " unset: the language of the question, or of the texts",
    )
    response_type: str = Field("", description='such as "multiple paragraphs" or "a list"')
    general_knowledge: bool = Field(
        False, description="let the model add what it knows itself, marked [LLM: verify]"
    )


class ClaimSettings(Section):
    """Claims: what the documents say of an entity that may be true, false or suspected."""

    enabled: bool = Field(False, description="read claims from every chunk (more calls)")
    gleanings: int = Field(1, ge=0, description="extra rounds that ask for what was missed")
    description: str = Field(
        "", description="which claims count, in your words; empty: all that can be checked"
    )
    entity_specs: tuple[str, ...] = Field(
        (), description="whom claims are to be about, by name or type; empty: anybody"
    )


class CommunitySettings(Section):
    """How entities are grouped; the first two with GraphRAG's defaults."""

    max_size: int = Field(10, ge=2, description="entities; a larger community is divided again")
    quality: Literal["modularity", "cpm", "surprise"] = Field(
        "modularity", description="what Leiden maximises"
    )
    resolution: float = Field(
        1.0, gt=0, description="above 1 for smaller communities; surprise has no resolution"
    )
    seed: int | None = Field(
        None, ge=0, description="from which Leiden starts; unset: GraphRAG's, 3735928559"
    )
    use_lcc: bool = Field(
        False,
        description="only the largest connected part has communities, as in GraphRAG; what is not"
        " tied to it is in no report",
    )


class ReportSettings(Section):
    """Community reports, with GraphRAG's limits."""

    max_input_tokens: int = Field(
        8_000, ge=1_000, description="tokens of a prompt; sub-reports stand in for what is more"
    )
    max_output_tokens: int = Field(2_000, ge=200, description="tokens of a report")


class ImportSettings(Section):
    """Imported RDF."""

    embedded: int = Field(
        20_000,
        ge=0,
        description="relationships of an imported file up to which it gets vectors; a larger one is"
        " found by names and words",
    )
    reports: int = Field(200, ge=0, description="communities with a report beside so large a file")


class IntegritySettings(Section):
    """How the record is protected."""

    signing_key: Path | None = Field(
        None, description="the file of an Ed25519 private key that signs the chain's head"
    )
    strict: bool = Field(
        False,
        description="end a question with an error where evidence is not what the stored text says,"
        " instead of leaving it out with a note",
    )


class TelemetrySettings(Section):
    """Spans of questions and index runs for OpenTelemetry. Where they go is said by the standard
    variables OTEL_*, or by the application that uses tgraph."""

    enabled: bool = Field(False, description="make spans (extra `otel`)")
    content: bool = Field(
        False,
        description="with questions, prompts, replies, texts and errors; else IRIs, counts, times,"
        " tokens and the names of models alone",
    )
    flush_seconds: float = Field(
        2.0, ge=0, description="how long the end waits for a backend that takes spans slowly"
    )


class _CommonSettings(BaseModel):
    """What is set for all modes."""

    collection: str = Field("default", description="the collection, where -C names none")
    explain_collection: str = Field(
        "explainability", description="the name of the catalogue of sessions in the record"
    )
    person: str | None = Field(
        None,
        min_length=1,
        description="who is on record for questions and decisions made by hand; unset: nobody",
    )
    prompts: Path | None = Field(
        None, description="a folder whose files replace tgraph's prompts", examples=["prompts"]
    )
    chat: ChatSettings = ChatSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    vectors: VectorSettings = VectorSettings()
    integrity: IntegritySettings = IntegritySettings()
    ingest: IngestSettings = IngestSettings()
    chunk: ChunkSettings = ChunkSettings()
    extract: ExtractSettings = ExtractSettings()
    executor: ExecutorSettings = ExecutorSettings()
    publish: PublishSettings = PublishSettings()
    store: StoreSettings = StoreSettings()
    ontology: OntologySettings = OntologySettings()
    summaries: SummarySettings = SummarySettings()
    fast: FastSettings = FastSettings()
    reader: ReaderSettings = ReaderSettings()
    answer: AnswerSettings = AnswerSettings()
    claims: ClaimSettings = ClaimSettings()
    communities: CommunitySettings = CommunitySettings()
    reports: ReportSettings = ReportSettings()
    graphs: ImportSettings = ImportSettings()
    telemetry: TelemetrySettings = TelemetrySettings()


class Settings(ModeSettings, _CommonSettings):
    """Everything that can be set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def uses_model(self) -> bool:
        """Return whether a language model does the work, instead of the embedded default."""
        if self.chat.provider == "auto":
            return self.chat.api_key is not None or self.chat.base_url is not None
        return self.chat.provider != "embedded"

    def is_used(self, name: str) -> bool:
        """Return whether current providers use a setting."""
        section, _, key = name.partition(".")
        if key == "provider":
            return True
        if section == "chat":
            return self.uses_model()
        if section == "embedding":
            return key == "threads" or self.embedding.provider == "openai"
        return section != "rerank" or self.rerank.provider is not None


def find_setting(name: str) -> FieldInfo | None:
    """Return the definition of a setting by dotted name; None for a section or no setting."""
    fields: Mapping[str, FieldInfo] = Settings.model_fields
    *sections, key = name.split(".")
    for section in sections:
        kind = fields[section].annotation if section in fields else None
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return None
        fields = kind.model_fields
    return fields.get(key)


def is_address(name: str) -> bool:
    """Return whether a setting names where data or keys are sent."""
    definition = find_setting(name)
    return definition is not None and any(isinstance(mark, Address) for mark in definition.metadata)


def is_trusted_only(name: str) -> bool:
    """Return whether a setting is believed of its owner alone, never of a received file: an
    address, a secret, a file or folder that is read, and whatever is no setting."""
    definition = find_setting(name)
    if definition is None or is_address(name):
        return True
    kinds = {definition.annotation, *get_args(definition.annotation)}
    return bool(kinds & {SecretStr, Path}) or name == "reader.model"


_SEE = f"See `tgraph config show` and {FILE}."
PREFIX = "TGRAPH_"
_NOT_SETTINGS = {"TGRAPH_ROOT", "TGRAPH_SHARED_DATA", "TGRAPH_DEBUG"}


def load_settings(root: Path | None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Return effective settings of the graph in ``root``.

    ``overrides`` are flags, with ``section.key`` for nested settings; None values are not set.
    Unknown keys and invalid values raise a ``UsageError`` naming the key."""
    flags = _nest_values({k: value for k, value in (overrides or {}).items() if value is not None})
    _check_environment()
    file = _file_values(root / FILE) if root is not None else {}
    try:
        settings = Settings(**_merge_sections(_merge_sections(file, _environment_values()), flags))
    except ValidationError as error:
        raise UsageError(_explain_error(error), _SEE) from error
    return _with_openai_variables(settings)


def with_overrides(settings: Settings, overrides: Mapping[str, Any]) -> Settings:
    """Return settings with overrides named ``section.key``; raise ``UsageError`` for unknown
    settings and invalid values."""
    changed: dict[str, Any] = {}
    for section, section_values in _nest_values(overrides).items():
        current = getattr(settings, section, None)
        if isinstance(current, BaseModel) and isinstance(section_values, dict):
            section_values = {**current.model_dump(), **section_values}
        changed[section] = section_values
    try:
        kinds: dict[str, Any] = {
            name: type(settings).model_fields[name].annotation for name in changed
        }
        checked = {
            name: TypeAdapter(kind).validate_python(changed[name]) for name, kind in kinds.items()
        }
    except KeyError as error:
        raise UsageError(f"{error.args[0]} is not a setting.", _SEE) from None
    except ValidationError as error:
        raise UsageError(_explain_error(error), _SEE) from error
    return settings.model_copy(update=checked)


def _nest_values(flat: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, name = key.split(".")
        target = nested
        for section in sections:
            target = target.setdefault(section, {})
        target[name] = value
    return nested


def _merge_sections(values: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge values with overriding values, section by section."""
    merged = dict(values)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[key] = _merge_sections(below, value)
        else:
            merged[key] = value
    return merged


_LARGEST = 1_000_000
"""Bytes of a graph's settings, which may come from a backup."""


def read_file(path: Path) -> dict[str, Any]:
    """Return the values of a settings file, which may come from a backup; none without a file.
    Raise ``UsageError`` for a file that is none or too large."""
    if not path.is_file():
        return {}
    try:
        check_file_size(path, _LARGEST)
        return tomllib.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} can't be read: {error}.") from error


def _file_values(path: Path) -> dict[str, Any]:
    """Return settings from a graph file, resolving paths relative to the file's folder."""
    values = read_file(path)
    values = _resolve_path(values, "prompts", path)
    integrity, reader = values.get("integrity"), values.get("reader")
    if isinstance(integrity, dict):
        values = {**values, "integrity": _resolve_path(integrity, "signing_key", path)}
    if isinstance(reader, dict) and _is_folder(path.parent, reader.get("model")):
        values = {**values, "reader": {**reader, "model": str(path.parent / reader["model"])}}
    return values


def _is_folder(beside: Path, name: object) -> bool:
    """Return whether an ambiguous name denotes a folder."""
    return isinstance(name, str) and (beside / name).is_dir()


def _resolve_path(values: dict[str, Any], name: str, file: Path) -> dict[str, Any]:
    path = values.get(name)
    return {**values, name: file.parent / path} if isinstance(path, str) else values


def _environment_values() -> dict[str, Any]:
    """Return settings from ``TGRAPH_*`` variables.

    Sections and lists are JSON; within a JSON section, individual variables take precedence."""
    sections: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    for variable, text in os.environ.items():
        prefix, name = variable[: len(PREFIX)].upper(), variable[len(PREFIX) :].lower()
        name = name.replace("__", ".")
        if prefix != PREFIX or name.partition(".")[0] not in Settings.model_fields:
            continue
        target = keys if "." in name else sections
        target[name] = _parse_variable(variable, text) if _is_structured(name) else text
    return _merge_sections(sections, _nest_values(keys))


def _is_structured(name: str) -> bool:
    """Return whether a setting name denotes a section or list."""
    section, _, key = name.partition(".")
    kind = Settings.model_fields[section].annotation
    fields = kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}
    if not key:
        return bool(fields)
    return key in fields and get_origin(fields[key].annotation) is tuple


def _parse_variable(variable: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"The environment variable {variable} is not JSON: {error}.") from error


def _check_environment() -> None:
    """Raise ``UsageError`` for unknown ``TGRAPH_*`` variables, catching typing errors."""
    variable_names = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | _NOT_SETTINGS
    for name in os.environ:
        upper = name.upper()
        if upper.startswith(PREFIX) and upper.split("__")[0] not in variable_names:
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


def _explain_error(error: ValidationError) -> str:
    parts = []
    for item in error.errors():
        where = ".".join(str(part) for part in item["loc"])
        wrong = item["type"] == "extra_forbidden"
        parts.append(f"{where} is not a setting" if wrong else f"{where}: {item['msg']}")
    return f"The settings are wrong: {'; '.join(parts)}."
