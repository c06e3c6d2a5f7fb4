"""Settings of Microsoft GraphRAG, of every generation, converted to tgraph settings.

Settings with an equivalent in ``tgraph.toml`` are moved there, other settings are listed with a
reason. Keys are never read: users are told the environment variable to set instead."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

from pydantic import BaseModel, ValidationError

from tgraph.engine.effective_settings import MASK, without_secrets
from tgraph.errors import UsageError
from tgraph.settings import Settings

NAMES = ("settings.yaml", "settings.yml", "settings.json")
_LARGEST = 1_000_000
_MOST_ALIASES = 12
"""Aliases unfold each other; so few unfold to no more than a hundred times the text."""
_DEEPEST = 12
_SECRET = re.compile(r"(^|[._])(api_key|connection_string|.*secret.*|.*password.*)$")
_BRACED = re.compile(r"\$\{(\w+)\}")
_OPEN, _CLOSE = "\ue000", "\ue001"
"""What stands for the braces of a variable, which mean something else in YAML."""
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True, slots=True)
class MovedSetting:
    """A moved setting: GraphRAG's dotted name, tgraph's name, and the value."""

    source: str
    setting: str
    value: Any

    @property
    def shown(self) -> Any:
        """The value, with secrets removed from addresses."""
        return without_secrets(self.value) if self.setting.endswith("base_url") else self.value


@dataclass(frozen=True, slots=True)
class LeftSetting:
    """A GraphRAG setting without equivalent in tgraph: displayed value and reason."""

    source: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class NeededKey:
    """A key given or named in GraphRAG's settings, and tgraph's environment variable for the
    key."""

    source: str
    named: str
    variable: str


@dataclass(frozen=True, slots=True)
class ImportedSettings:
    """The results of a GraphRAG settings import."""

    file: Path
    moved: tuple[MovedSetting, ...]
    left: tuple[LeftSetting, ...]
    keys: tuple[NeededKey, ...]

    @property
    def values(self) -> dict[str, Any]:
        """Imported values by tgraph setting name."""
        return {setting.setting: setting.value for setting in self.moved}


@dataclass(frozen=True, slots=True)
class _Given:
    """A GraphRAG value, with its position and lookup name."""

    source: str
    name: str
    value: Any


Outcome = dict[str, Any] | str
"""tgraph's settings with their values, or why there is none; an empty text: nothing is lost."""

_NEEDS_NOTHING = "nothing to set: tgraph finds it out, or does so anyway"


def import_graphrag_settings(path: str | Path) -> ImportedSettings:
    """Convert GraphRAG's settings to tgraph's; ``path`` is the settings file or its folder.

    Variable references are filled in from the environment and from ``.env`` beside the file,
    except in keys. Raises ``UsageError`` for a file that can't be read as GraphRAG settings."""
    file = _find_file(Path(path))
    tree = _read_mapping(file)
    leaves = list(_list_leaves(tree, "", 0))
    renamed = _rename_leaves(leaves, tree)
    variables = {**_read_variables(file.with_name(".env")), **os.environ}
    moved: dict[str, MovedSetting] = {}
    left_settings: list[LeftSetting] = []
    keys: list[NeededKey] = []
    for source_value in renamed:
        if _SECRET.search(source_value.name):
            keys += _needed_keys(source_value)
            left_settings += _kept_secret(source_value)
            continue
        try:
            source_value = _filled_in(source_value, variables)
        except KeyError as error:
            left_settings.append(
                _left_setting(source_value, f"the variable {error.args[0]} is not set")
            )
            continue
        outcome = _convert_setting(source_value, tree)
        if isinstance(outcome, str):
            left_settings.append(_left_setting(source_value, outcome or _NEEDS_NOTHING))
            continue
        for setting, value in outcome.items():
            value, problem = _check_value(setting, value)
            if problem:
                left_settings.append(_left_setting(source_value, problem))
            else:
                moved.setdefault(setting, MovedSetting(source_value.source, setting, value))
    return ImportedSettings(
        file, tuple(moved.values()), tuple(left_settings), tuple(_distinct_keys(keys))
    )


def _find_file(path: Path) -> Path:
    candidates = (
        [path / name for name in NAMES if (path / name).is_file()] if path.is_dir() else [path]
    )
    if not candidates or not candidates[0].is_file():
        raise UsageError(f"There is no {' or '.join(NAMES)} at {path}.")
    return candidates[0]


def _read_mapping(file: Path) -> Mapping[str, Any]:
    """Return the file's mapping, leaving variable references unresolved."""
    import yaml

    if file.stat().st_size > _LARGEST:
        raise UsageError(f"{file} is too large for settings.")
    text = _BRACED.sub(rf"{_OPEN}\1{_CLOSE}", file.read_text("utf-8-sig", errors="replace"))
    try:
        tokens = yaml.scan(text, yaml.SafeLoader)
        if sum(isinstance(token, yaml.AliasToken) for token in tokens) > _MOST_ALIASES:
            raise UsageError(f"{file} has more than {_MOST_ALIASES} aliases.")
        tree = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        place = "" if line is None else f" (line {line + 1})"
        raise UsageError(f"{file} is not YAML{place}.") from error
    if not isinstance(tree, Mapping):
        raise UsageError(f"{file} has no settings.")
    return tree


def _list_leaves(value: object, name: str, depth: int) -> Iterator[_Given]:
    """Yield every non-mapping value with its dotted name."""
    if depth > _DEEPEST:
        raise UsageError(f"{name} is nested too deep for a setting.")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _list_leaves(inner, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, str):
        yield _Given(name, name, value.replace(_OPEN, "${").replace(_CLOSE, "}"))
    elif value is not None:
        yield _Given(name, name, value)


# --- the generations ----------------------------------------------------------------------------

_SECTIONS = {
    "chunking": "chunks",
    "entity_extraction": "extract_graph",
    "claim_extraction": "extract_claims",
    "embed_text": "embeddings",
    "community_report": "community_reports",
}
"""Sections that changed their names."""


def _rename_leaves(leaves: Sequence[_Given], tree: Mapping[str, Any]) -> Iterator[_Given]:
    """Yield values under names shared by all generations; unused models keep their names."""
    places = {place: kind for kind, place in _model_places(tree).items() if place}
    for leaf in leaves:
        for place, kind in places.items():
            if leaf.source.startswith(f"{place}."):
                yield replace(leaf, name=f"{kind}{leaf.source.removeprefix(place)}")
                break
        else:
            section, dot, suffix = leaf.source.partition(".")
            yield replace(leaf, name=f"{_SECTIONS.get(section, section)}{dot}{suffix}")


def _model_places(tree: Mapping[str, Any]) -> dict[str, str]:
    """Return the places of chat model and embedding model in the settings."""
    if "completion_models" in tree or "embedding_models" in tree:  # 3
        return {
            "chat": _model_place(tree, "completion_models", "completion_model_id"),
            "embedding": _model_place(tree, "embedding_models", "embedding_model_id"),
        }
    if isinstance(models := tree.get("models"), Mapping):  # 2
        embedders = {name for name, model in models.items() if "embedding" in _model_type(model)}
        chat_models = [name for name in models if name not in embedders]
        return {
            "chat": _choose_place("models", chat_models, "default_chat_model"),
            "embedding": _choose_place("models", sorted(embedders), "default_embedding_model"),
        }
    return {"chat": "llm", "embedding": "embeddings.llm"}  # 0 and 1


def _model_type(model: object) -> str:
    return str(model.get("type", "")) if isinstance(model, Mapping) else ""


def _model_place(tree: Mapping[str, Any], section: str, reference: str) -> str:
    """Return the place of the model used for extraction, else the first model."""
    models = tree.get(section)
    if not isinstance(models, Mapping):
        return ""
    used = [
        inner[reference]
        for name in ("extract_graph", "local_search", "embed_text")
        if isinstance(inner := tree.get(name), Mapping) and reference in inner
    ]
    return _choose_place(section, [name for name in models if isinstance(name, str)], *used[:1])


def _choose_place(section: str, names: Sequence[str], *wanted: str) -> str:
    matches = [name for name in wanted if name in names] or list(names[:1])
    return f"{section}.{matches[0]}" if matches else ""


# --- variables and keys -------------------------------------------------------------------------


def _read_variables(file: Path) -> dict[str, str]:
    """What the file of variables sets, line by line."""
    if not file.is_file():
        return {}
    values = {}
    for line in file.read_text("utf-8-sig", errors="replace").splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            values[name.strip()] = value.strip().strip("\"'")
    return values


def _filled_in(given: _Given, variables: Mapping[str, str]) -> _Given:
    """Return the value with variables filled in.

    Raises ``KeyError`` for a variable that isn't set."""
    if not isinstance(given.value, str) or "$" not in given.value:
        return given
    import yaml

    try:
        text = Template(given.value).substitute(variables)
    except ValueError:  # a dollar that begins no name
        return given
    try:
        value = yaml.safe_load(text) if text != given.value else text
    except yaml.YAMLError:
        value = text
    return replace(given, value=text if isinstance(value, list | dict) else value)


def _needed_keys(given: _Given) -> Iterator[NeededKey]:
    variable = _KEY_VARIABLES.get(given.name)
    if variable:
        match = _VARIABLE.fullmatch(str(given.value).strip())
        yield NeededKey(given.source, match[1] if match else "", variable)


def _distinct_keys(keys: Sequence[NeededKey]) -> Iterator[NeededKey]:
    """Yield keys, omitting an embeddings key equal to the chat key, which serves both."""
    chat = {key.named for key in keys if key.variable == _KEY_VARIABLES["chat.api_key"]} - {""}
    for key in keys:
        if key.variable == _KEY_VARIABLES["chat.api_key"] or key.named not in chat:
            yield key


_KEY_VARIABLES = {
    "chat.api_key": "OPENAI_API_KEY",
    "embedding.api_key": "TGRAPH_EMBEDDING__API_KEY",
}


def _kept_secret(given: _Given) -> Iterator[LeftSetting]:
    if given.name not in _KEY_VARIABLES:
        yield LeftSetting(given.source, MASK, "a secret is not copied")


def _left_setting(given: _Given, reason: str) -> LeftSetting:
    text = " ".join(str(given.value).split())
    return LeftSetting(given.source, without_secrets(text) if "://" in text else text, reason)


# --- what becomes of each -----------------------------------------------------------------------


def _convert_setting(given: _Given, tree: Mapping[str, Any]) -> Outcome:
    if given.name in _TO:
        target, convert = _TO[given.name]
        return _convert_value(target, convert, given.value)
    if given.name.startswith(("chat.", "embedding.")):
        return _of_model(given, tree)
    for pattern, reason in _WHY:
        if pattern.fullmatch(given.name):
            return reason
    return "tgraph has no such setting"


def _convert_value(target: str, convert: Callable[[Any], Any], value: object) -> Outcome:
    try:
        result = convert(value)
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return f"it is not a value of {target}"
    return {target: result} if result is not None else ""


def _check_value(setting: str, value: object) -> tuple[Any, str]:
    """Return the value validated by tgraph's setting, and an error text; empty for valid
    values."""
    section, _, key = setting.partition(".")
    model: type[BaseModel] = type(getattr(Settings.model_construct(), section))
    try:
        checked_value = getattr(model.model_validate({key: value}), key)
    except ValidationError as error:
        return None, f"{setting}: {error.errors()[0]['msg']}"
    return list(checked_value) if isinstance(checked_value, tuple) else checked_value, ""


def _identity(value: object) -> object:
    return value


def _parse_limit(value: object) -> int | None:
    """Parse a limit; 0 and "auto" mean no limit."""
    if isinstance(value, str) and value.strip().lower() in ("auto", "none", ""):
        return None
    number = float(str(value))
    if not math.isfinite(number):
        raise ValueError(value)
    return int(number) or None


def _split_texts(value: object) -> list[str]:
    """Return a list of texts, splitting a single text at commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list):
        raise TypeError(value)
    return [str(part).strip() for part in parts]


def _parse_fields(value: object) -> list[str] | None:
    """The fields that stand before chunks; true means all, false none."""
    if isinstance(value, bool):
        return ["title", "author", "date", "tags"] if value else None
    return _split_texts(value)


_CUT = {"tokens": "tokens", "sentence": "sentences", "sentences": "sentences"}

_TO: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "encoding_model": ("chunk.encoding", _identity),
    "concurrent_requests": ("chat.concurrency", _parse_limit),
    "parallelization.num_threads": ("chat.concurrency", _parse_limit),
    "chunks.size": ("chunk.size", _identity),
    "chunks.overlap": ("chunk.overlap", _identity),
    "chunks.prepend_metadata": ("chunk.prepend_metadata", _parse_fields),
    "chunks.chunk_size_includes_metadata": ("chunk.size_includes_metadata", _identity),
    "chunks.encoding_model": ("chunk.encoding", _identity),
    "chunks.strategy": ("chunk.by", lambda value: _CUT[str(value)]),
    "chunks.type": ("chunk.by", lambda value: _CUT[str(value)]),
    "embeddings.batch_size": ("embedding.batch_size", _identity),
    "extract_graph.entity_types": ("extract.entity_types", _split_texts),
    "extract_graph.max_gleanings": ("extract.gleanings", _identity),
    "extract_graph_nlp.text_analyzer.max_word_length": ("fast.max_word_length", _identity),
    "prune_graph.min_node_freq": ("fast.min_node_freq", _identity),
    "prune_graph.max_node_freq_std": ("fast.max_node_freq_std", _identity),
    "prune_graph.min_node_degree": ("fast.min_node_degree", _identity),
    "prune_graph.max_node_degree_std": ("fast.max_node_degree_std", _identity),
    "prune_graph.min_edge_weight_pct": ("fast.min_edge_weight_pct", _identity),
    "prune_graph.remove_ego_nodes": ("fast.remove_ego_nodes", _identity),
    "summarize_descriptions.max_length": ("summaries.max_words", _identity),
    "summarize_descriptions.max_input_tokens": ("summaries.max_input_tokens", _identity),
    "extract_claims.enabled": ("claims.enabled", _identity),
    "extract_claims.description": ("claims.description", _identity),
    "extract_claims.entity_specs": ("claims.entity_specs", _split_texts),
    "extract_claims.max_gleanings": ("claims.gleanings", _identity),
    "cluster_graph.max_cluster_size": ("communities.max_size", _identity),
    "cluster_graph.use_lcc": ("communities.use_lcc", _identity),
    "cluster_graph.seed": ("communities.seed", _identity),
    "community_reports.max_length": ("reports.max_output_tokens", _identity),
    "community_reports.max_input_length": ("reports.max_input_tokens", _identity),
    "local_search.text_unit_prop": ("local_search.chunk_share", _identity),
    "local_search.community_prop": ("local_search.report_share", _identity),
    "local_search.conversation_history_max_turns": ("graph.history_turns", _identity),
    "local_search.top_k_entities": ("local_search.top_k_entities", _identity),
    "local_search.top_k_mapped_entities": ("local_search.top_k_entities", _identity),
    "local_search.top_k_relationships": ("local_search.top_k_relationships", _identity),
    "local_search.max_tokens": ("local_search.max_context_tokens", _identity),
    "local_search.max_context_tokens": ("local_search.max_context_tokens", _identity),
    "local_search.max_data_tokens": ("local_search.max_context_tokens", _identity),
    "global_search.max_tokens": ("global_search.map_context_tokens", _identity),
    "global_search.max_context_tokens": ("global_search.map_context_tokens", _identity),
    "global_search.data_max_tokens": ("global_search.reduce_context_tokens", _identity),
    "global_search.map_max_length": ("global_search.map_max_length", _identity),
    "global_search.reduce_max_length": ("global_search.reduce_max_length", _identity),
    "global_search.dynamic_search_threshold": ("global_search.dynamic_threshold", _identity),
    "global_search.dynamic_search_keep_parent": ("global_search.dynamic_keep_parent", _identity),
    "global_search.dynamic_search_num_repeats": ("global_search.dynamic_num_repeats", _identity),
    "global_search.dynamic_search_max_level": ("global_search.dynamic_max_level", _identity),
    "drift_search.drift_k_followups": ("drift_search.k", _identity),
    "drift_search.primer_folds": ("drift_search.folds", _identity),
    "drift_search.n_depth": ("drift_search.depth", _identity),
    "drift_search.primer_llm_max_tokens": ("drift_search.primer_context_tokens", _identity),
    "drift_search.data_max_tokens": ("drift_search.reduce_context_tokens", _identity),
    "drift_search.max_tokens": ("drift_search.reduce_context_tokens", _identity),
    "drift_search.local_search_text_unit_prop": ("drift_search.chunk_share", _identity),
    "drift_search.local_search_community_prop": ("drift_search.report_share", _identity),
    "drift_search.local_search_top_k_mapped_entities": ("drift_search.top_k_entities", _identity),
    "drift_search.local_search_top_k_relationships": (
        "drift_search.top_k_relationships",
        _identity,
    ),
    "drift_search.local_search_max_data_tokens": ("drift_search.max_context_tokens", _identity),
    "basic_search.k": ("basic_search.k", _identity),
    "basic_search.text_unit_count": ("basic_search.k", _identity),
    "basic_search.max_tokens": ("basic_search.max_context_tokens", _identity),
    "basic_search.max_context_tokens": ("basic_search.max_context_tokens", _identity),
    "chat.max_tokens": ("chat.max_tokens", _parse_limit),
    "chat.max_completion_tokens": ("chat.max_tokens", _parse_limit),
    "chat.call_args.max_tokens": ("chat.max_tokens", _parse_limit),
    "chat.call_args.temperature": ("chat.temperature", _identity),
    "chat.request_timeout": ("chat.timeout", _identity),
    "chat.temperature": ("chat.temperature", _identity),
    "chat.tokens_per_minute": ("chat.tokens_per_minute", _parse_limit),
    "chat.requests_per_minute": ("chat.requests_per_minute", _parse_limit),
    "chat.max_retries": ("chat.retries", _identity),
    "chat.retry.max_retries": ("chat.retries", _identity),
    "chat.concurrent_requests": ("chat.concurrency", _parse_limit),
}
"""tgraph's setting for each of GraphRAG's, and what the value comes to."""

_OPENAI = ("openai", "azure")
_AZURE_PATH = "/openai/v1"


def _of_model(given: _Given, tree: Mapping[str, Any]) -> Outcome:
    """Convert a model setting whose meaning depends on the provider."""
    kind, _, key = given.name.partition(".")
    model = _settings_at(tree, given.source.removesuffix(f".{key}"))
    if key in ("type", "model_provider"):
        is_openai = str(given.value).startswith(_OPENAI)
        return "" if is_openai else _OTHER_PROVIDER
    if key in ("model", "deployment_name", "azure_deployment_name"):
        deployed = model.get("deployment_name") or model.get("azure_deployment_name")
        if key == "model" and deployed:
            return "the deployment stands in its place"
        chosen = {f"{kind}.model": given.value}
        return chosen if kind == "chat" else {**chosen, "embedding.provider": "openai"}
    if key == "api_base":
        return {f"{kind}.base_url": _openai_address(str(given.value), model)}
    if key.startswith("rate_limit."):
        return _rate_limit(kind, key, given.value, model)
    if kind == "embedding":
        return "" if key in _NEEDLESS else "tgraph sets it for chat, and embeds by the same limits"
    return "" if key in _NEEDLESS else _OF_MODELS.get(key, "tgraph doesn't send it")


def _settings_at(tree: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    node: Any = tree
    for name in place.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def _openai_address(base: str, model: Mapping[str, Any]) -> str:
    """Return the address speaking OpenAI's protocol, adding Azure's path where needed."""
    provider = str(model.get("type") or model.get("model_provider") or "")
    if provider.startswith("azure") and _AZURE_PATH not in base:
        return base.rstrip("/").removesuffix("/openai") + _AZURE_PATH
    return base


def _rate_limit(kind: str, key: str, value: object, model: Mapping[str, Any]) -> Outcome:
    name = {"requests_per_period": "requests", "tokens_per_period": "tokens"}.get(
        key.removeprefix("rate_limit.")
    )
    if name is None or kind != "chat":
        return "" if name is None else "tgraph's limits are those of chat"
    limit = model.get("rate_limit")
    period = limit.get("period_in_seconds", 60) if isinstance(limit, Mapping) else 60
    return _convert_value(
        f"chat.{name}_per_minute", lambda given: _parse_limit(given * 60 // period), value
    )


_NEEDLESS = frozenset(
    (
        "api_version",
        "async_mode",
        "auth_method",
        "auth_type",
        "encoding_model",
        "model_supports_json",
        "n",
        "retry.type",
        "retry_strategy",
        "type",
    )
)
"""Settings of a model that say what tgraph finds out, or does in any case."""

_OTHER_PROVIDER = "tgraph speaks OpenAI's protocol: set base_url to where this provider speaks it"
_OF_MODELS = dict.fromkeys(
    ("max_retry_wait", "retry.base_delay", "retry.jitter", "retry.max_delay"),
    "tgraph waits as the server says (Retry-After), else longer each time",
) | dict.fromkeys(("sleep_on_rate_limit_recommendation",), "tgraph always waits as the server says")

_WHY: Sequence[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern), reason)
    for pattern, reason in (
        (
            r".+\.(\w+_)?prompt(_file)?",
            "prompts have other placeholders: `tgraph init --prompts` copies tgraph's to edit",
        ),
        (r"(models|completion_models|embedding_models)\..+", "tgraph has one model for each use"),
        (r".+\.(\w+_)?model_id", ""),
        (r".+\.llm\..+", "one model does all steps"),
        (r".+\.(async_mode|concurrent_requests|concurrency|num_threads)", ""),
        (r"async_mode|parallelization\..+|.+\.parallelization\..+", ""),
        (
            r"input(\..+)?",
            "say it to the command: `tgraph index FOLDER` takes the files it can read",
        ),
        (
            r"(output|storage|cache|reporting|logs|update_\w+|table_provider|vector_store"
            r"|input_storage|output_storage)(\..+)?",
            "a graph's folder holds everything",
        ),
        (r".+\.vector_store(_id|\..+)?", "a graph's folder holds everything"),
        (r"(umap|embed_graph)(\..+)?", "tgraph embeds texts, not nodes of the graph"),
        (r"snapshots(\..+)?", "every state is kept and can be exported (`tgraph export`)"),
        (r"workflows|skip_workflows", "tgraph's phases follow from what is set"),
        (r"root_dir|base_dir", "say it to the command: --root"),
        (r"chunks\.group_by_columns", ""),
        (r".+\.strategy(\..+)?", ""),
        (r"extract_graph_nlp\..+", "the method fast reads names by tgraph's own rules"),
        (r"prune_graph\.lcc_only", "no part of a graph is left out because it is small"),
        (r"embeddings\.(batch_max_tokens)", "tgraph divides texts that are too long"),
        (r"embeddings\.(target|names|skip)", "tgraph embeds entities, edges, chunks and reports"),
        (
            r"global_search\.(map_max_tokens|reduce_max_tokens)",
            "tgraph limits words: global_search.map_max_length and reduce_max_length",
        ),
        (
            r"global_search\.dynamic_search_\w+",
            "reports are rated whole, with up to chat.concurrency at a time",
        ),
        (
            r"\w+_search\.(\w+_)?(temperature|top_p|n|llm_max_tokens|llm_max_gen_tokens|"
            r"llm_max_gen_completion_tokens|max_completion_tokens|reduce_max_tokens|"
            r"reduce_max_completion_tokens)",
            "it is set for chat as a whole",
        ),
        (r"\w+_search\.(chat_model_id|embedding_model_id)", ""),
    )
]
"""Why other settings have no place; the first that fits counts."""
