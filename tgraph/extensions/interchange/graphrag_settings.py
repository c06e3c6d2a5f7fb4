"""Settings of Microsoft GraphRAG, of every generation, converted to tgraph settings.

``data/graphrag_settings.csv`` says which tgraph setting takes a GraphRAG setting, or why none does.
Keys are never read: users are told the environment variable to set instead."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from pydantic import BaseModel, ValidationError

from tgraph.engine.effective_settings import display_value
from tgraph.errors import UsageError
from tgraph.foreign_bytes import OversizeError, parse_yaml
from tgraph.masking import MASK, mask_urls
from tgraph.resources import data_file
from tgraph.settings import Settings, is_trusted_only

NAMES = ("settings.yaml", "settings.yml", "settings.json")
KEY_VARIABLES = {
    "chat.api_key": "OPENAI_API_KEY",
    "embedding.api_key": "TGRAPH_EMBEDDING__API_KEY",
}
_LARGEST = 1_000_000
_MOST_ALIASES = 12
"""Aliases unfold each other; so few unfold to no more than a hundred times the text."""
_DEEPEST = 12
_SECRET = re.compile(r"(^|[._])(api_key|connection_string|.*secret.*|.*password.*)$")
NOT_CONFIRMED = "an address is taken over after a confirmation alone"
_OWN_VARIABLES = "GRAPHRAG_"
_SECRET_VARIABLE = re.compile(r"key|secret|pass|token|cred|connection", re.I)
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_BRACED = re.compile(r"\$\{(\w+)\}")
_OPEN, _CLOSE = "\ue000", "\ue001"
"""Replacements of a variable's braces, which mean something else in YAML."""


@dataclass(frozen=True, slots=True)
class MovedSetting:
    """A moved setting: GraphRAG's dotted name, tgraph's name, and the value."""

    source: str
    setting: str
    value: Any

    @property
    def display_value(self) -> Any:
        """The value, with secrets removed from addresses."""
        return display_value(self.setting, self.value)


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
class _GivenSetting:
    """A GraphRAG value with its dotted name, its name in the table of settings, and the settings of
    its model."""

    source: str
    name: str
    value: Any
    model: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SettingRule:
    """A row of the table: patterns of GraphRAG's names, tgraph's setting with the conversion of the
    value, or the reason without a setting."""

    names: tuple[str, ...]
    setting: str
    conversion: str
    reason: str


@cache
def load_rules() -> tuple[SettingRule, ...]:
    """Return the table of settings; the first rule that matches a name counts."""
    lines = data_file("graphrag_settings.csv").read_text("utf-8").splitlines()
    return tuple(
        SettingRule(tuple(row.pop("names").split()), **row) for row in csv.DictReader(lines)
    )


class _LeftOutError(ValueError):
    """A value that no tgraph setting takes, with the reason."""


def import_graphrag_settings(
    path: str | Path, *, accept_settings: bool = False
) -> ImportedSettings:
    """Convert GraphRAG's settings to tgraph's; ``path`` is the settings file or its folder.

    Addresses are taken over with ``accept_settings`` alone: a key would be sent there. References
    to variables of ``.env`` beside the file, and to ``GRAPHRAG_...`` of the environment, are
    filled in, except in keys and addresses and where the name is one of a secret. Raises
    ``UsageError`` for a file that can't be read as GraphRAG settings."""
    file = _find_file(Path(path))
    tree = _read_mapping(file)
    variables = _known_variables(file.with_name(".env"))
    moved: dict[str, MovedSetting] = {}
    left: list[LeftSetting] = []
    keys: dict[str, NeededKey] = {}
    for given in _name_settings(list(_list_leaves(tree, "", 0)), tree):
        if variable := KEY_VARIABLES.get(given.name):
            match = _VARIABLE.fullmatch(str(given.value).strip())
            keys[variable] = NeededKey(given.source, match[1] if match else "", variable)
        elif _SECRET.search(given.name):
            left.append(LeftSetting(given.source, MASK, "a secret is not copied"))
        else:
            try:
                for setting in _move_setting(given, variables, accept_settings):
                    moved.setdefault(setting.setting, setting)
            except _LeftOutError as error:
                text = " ".join(str(given.value).split())
                left.append(LeftSetting(given.source, mask_urls(text), str(error)))
    chat, embedding = (keys.get(variable) for variable in KEY_VARIABLES.values())
    if chat and embedding and embedding.named == chat.named != "":
        del keys[embedding.variable]  # the chat key serves both
    return ImportedSettings(file, tuple(moved.values()), tuple(left), tuple(keys.values()))


def _find_file(path: Path) -> Path:
    candidates = [path / name for name in NAMES] if path.is_dir() else [path]
    if (file := next(filter(Path.is_file, candidates), None)) is None:
        raise UsageError(f"There is no {' or '.join(NAMES)} at {path}.")
    return file


def _read_mapping(file: Path) -> Mapping[str, Any]:
    """Return the file's mapping, leaving variable references unresolved."""
    import yaml

    if file.stat().st_size > _LARGEST:
        raise UsageError(f"{file} is too large for settings.")
    text = _BRACED.sub(rf"{_OPEN}\1{_CLOSE}", file.read_text("utf-8-sig", errors="replace"))
    try:
        tree = parse_yaml(text, _MOST_ALIASES)
    except OversizeError as error:
        raise UsageError(f"{file} is not read: {error}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        place = "" if line is None else f" (line {line + 1})"
        raise UsageError(f"{file} is not YAML{place}.") from error
    if not isinstance(tree, Mapping):
        raise UsageError(f"{file} has no settings.")
    return tree


def _known_variables(file: Path) -> dict[str, str]:
    """Return the variables that settings may refer to, by name alone."""
    own = {name: value for name, value in os.environ.items() if name.startswith(_OWN_VARIABLES)}
    variables = {**_read_variables(file), **own}
    return {name: value for name, value in variables.items() if not _SECRET_VARIABLE.search(name)}


def _read_variables(file: Path) -> dict[str, str]:
    """Return the variables of a ``.env`` file."""
    lines = file.read_text("utf-8-sig", errors="replace").splitlines() if file.is_file() else []
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines)
    return {
        name.strip(): value.strip().strip("\"'")
        for name, equals, value in pairs
        if equals and not name.startswith("#")
    }


def _list_leaves(value: object, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the dotted name of every value except mappings, with the value."""
    if depth > _DEEPEST:
        raise UsageError(f"{name} is nested too deep for a setting.")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _list_leaves(inner, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, str):
        yield name, value.replace(_OPEN, "${").replace(_CLOSE, "}")
    elif value is not None:
        yield name, value


# --- the generations ----------------------------------------------------------------------------

_SECTIONS = {
    "chunking": "chunks",
    "entity_extraction": "extract_graph",
    "claim_extraction": "extract_claims",
    "embed_text": "embeddings",
    "community_report": "community_reports",
}
"""Sections that changed their names."""


def _name_settings(
    leaves: Sequence[tuple[str, Any]], tree: Mapping[str, Any]
) -> Iterator[_GivenSetting]:
    """Yield values under names shared by all generations; unused models keep their names."""
    places = {place: kind for kind, place in _find_models(tree).items() if place}
    for source, value in leaves:
        place = next((place for place in places if source.startswith(f"{place}.")), "")
        if place:
            name = f"{places[place]}{source.removeprefix(place)}"
            yield _GivenSetting(source, name, value, _section_at(tree, place))
        else:
            section, dot, suffix = source.partition(".")
            name = f"{_SECTIONS.get(section, section)}{dot}{suffix}"
            yield _GivenSetting(source, name, value, {})


def _find_models(tree: Mapping[str, Any]) -> dict[str, str]:
    """Return the places of chat model and embedding model in the settings."""
    if "completion_models" in tree or "embedding_models" in tree:  # 3
        sections = {"chat": "completion_model", "embedding": "embedding_model"}
        return {
            kind: _choose_model(
                f"{section}s",
                _section_at(tree, f"{section}s"),
                *(
                    reference
                    for user in ("extract_graph", "local_search", "embed_text")
                    if (reference := _section_at(tree, user).get(f"{section}_id"))
                ),
            )
            for kind, section in sections.items()
        }
    if isinstance(models := tree.get("models"), Mapping):  # 2
        types = {name: str(_section_at(models, name).get("type", "")) for name in models}
        embedders = sorted(name for name in models if "embedding" in types[name])
        chat_models = [name for name in models if name not in embedders]
        return {
            "chat": _choose_model("models", chat_models, "default_chat_model"),
            "embedding": _choose_model("models", embedders, "default_embedding_model"),
        }
    return {"chat": "llm", "embedding": "embeddings.llm"}  # 0 and 1


def _choose_model(section: str, names: Sequence[str] | Mapping[str, Any], *wanted: str) -> str:
    """Return the place of the first wanted model, else of the first model."""
    candidates = [*(name for name in wanted[:1] if name in names), *names]
    return f"{section}.{candidates[0]}" if candidates else ""


def _section_at(tree: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    node: Any = tree
    for name in place.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


# --- values -------------------------------------------------------------------------------------


def _fill_variables(value: object, variables: Mapping[str, str]) -> object:
    """Return the value with variables filled in. Raises ``_LeftOutError`` for a variable that is
    not known."""
    if not isinstance(value, str) or "$" not in value:
        return value
    import yaml

    try:
        text = Template(value).substitute(variables)
        filled = yaml.safe_load(text) if text != value else text
    except KeyError as error:
        raise _LeftOutError(
            f"the variable {error.args[0]} is not set, or is none of GraphRAG's"
        ) from error
    except ValueError:  # a dollar that begins no name
        return value
    except yaml.YAMLError:
        return text
    return text if isinstance(filled, list | dict) else filled


def _move_setting(
    given: _GivenSetting, variables: Mapping[str, str], accept_settings: bool
) -> Iterator[MovedSetting]:
    """Yield tgraph's settings for a value. Raises ``_LeftOutError`` if there is none."""
    rules = (r for r in load_rules() if any(fnmatchcase(given.name, name) for name in r.names))
    if (rule := next(rules, None)) is None:
        raise _LeftOutError("tgraph has no such setting")
    if rule.setting and is_trusted_only(rule.setting):
        _check_trusted(rule, given, accept_settings)
    else:
        given = replace(given, value=_fill_variables(given.value, variables))
    value = _convert_value(rule, given)
    if not rule.setting:
        raise _LeftOutError(rule.reason)
    yield MovedSetting(given.source, rule.setting, _check_value(rule.setting, value))
    if rule.setting == "embedding.model":
        yield MovedSetting(given.source, "embedding.provider", "openai")


def _check_trusted(rule: SettingRule, given: _GivenSetting, accept_settings: bool) -> None:
    """Raise ``_LeftOutError`` for an address that is not accepted, or holds a variable."""
    if "$" in str(given.value):
        raise _LeftOutError(f"no variable is filled into an address; set {rule.setting}")
    if not accept_settings:
        raise _LeftOutError(NOT_CONFIRMED)


def _convert_value(rule: SettingRule, given: _GivenSetting) -> object:
    """Return tgraph's value. Raises ``_LeftOutError`` for a value without equivalent."""
    try:
        converted = _CONVERSIONS[rule.conversion](given.value, given.model)
    except _LeftOutError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise _LeftOutError(f"it is not a value of {rule.setting}") from error
    if converted is None:
        raise _LeftOutError("nothing to set: tgraph finds it out, or does so anyway")
    return converted


def _check_value(setting: str, value: object) -> object:
    """Return the value validated by tgraph's setting. Raises ``_LeftOutError`` for a value that the
    setting refuses."""
    section, _, key = setting.partition(".")
    model: type[BaseModel] = type(getattr(Settings.model_construct(), section))
    try:
        checked_value = getattr(model.model_validate({key: value}), key)
    except ValidationError as error:
        raise _LeftOutError(f"{setting}: {error.errors()[0]['msg']}") from error
    return list(checked_value) if isinstance(checked_value, tuple) else checked_value


def _parse_limit(value: object) -> int | None:
    """Parse a limit; 0 and "auto" mean no limit."""
    if isinstance(value, str) and value.strip().lower() in ("auto", "none", ""):
        return None
    number = float(str(value))
    if not math.isfinite(number):
        raise ValueError(value)
    return int(number) or None


def _limit_per_minute(value: Any, model: Mapping[str, Any]) -> int | None:
    period = _section_at(model, "rate_limit").get("period_in_seconds", 60)
    return _parse_limit(value * 60 // period)


def _split_texts(value: object) -> list[str]:
    """Return a list of texts, splitting a single text at commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list):
        raise TypeError(value)
    return [str(part).strip() for part in parts]


def _list_fields(value: object) -> list[str] | None:
    """Return the fields that stand before chunks; true means all, false none."""
    if isinstance(value, bool):
        return ["title", "author", "date", "tags"] if value else None
    return _split_texts(value)


def _openai_address(value: object, model: Mapping[str, Any]) -> str:
    """Return the address speaking OpenAI's protocol, adding Azure's path where needed."""
    provider, path = str(model.get("type") or model.get("model_provider") or ""), "/openai/v1"
    if provider.startswith("azure") and path not in str(value):
        return str(value).rstrip("/").removesuffix("/openai") + path
    return str(value)


def _model_name(value: object, model: Mapping[str, Any]) -> object:
    if model.get("deployment_name") or model.get("azure_deployment_name"):
        raise _LeftOutError("the deployment stands in its place")
    return value


def _check_provider(value: object, model: Mapping[str, Any]) -> None:
    if not str(value).startswith(("openai", "azure")):
        raise _LeftOutError(
            "tgraph speaks OpenAI's protocol: set base_url to where this provider speaks it"
        )


_UNITS = {"tokens": "tokens", "sentence": "sentences", "sentences": "sentences"}
_CONVERSIONS: Mapping[str, Callable[[Any, Mapping[str, Any]], object]] = {
    "": lambda value, _: value,
    "address": _openai_address,
    "fields": lambda value, _: _list_fields(value),
    "limit": lambda value, _: _parse_limit(value),
    "limit per minute": _limit_per_minute,
    "model": _model_name,
    "provider": _check_provider,
    "texts": lambda value, _: _split_texts(value),
    "unit": lambda value, _: _UNITS[str(value)],
}
"""Conversions of the table: tgraph's value for a value and the settings of its model; None sets
nothing."""
