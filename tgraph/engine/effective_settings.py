"""Settings that count, each with its origin and without secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr

from tgraph.masking import MASK, mask_url
from tgraph.settings import FILE, PREFIX, find_setting, is_address, load_settings, read_file

_STANDARD = {"chat.api_key": "OPENAI_API_KEY", "chat.base_url": "OPENAI_BASE_URL"}


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """An effective setting.

    Attributes: dotted name, value (secrets masked, paths as text), origin (``default``,
    ``flag``, file path or environment variable name), and whether the setting is used under the
    other current settings."""

    name: str
    value: Any
    origin: str
    used: bool = True

    @property
    def display_text(self) -> str:
        """The value as human-readable text."""
        if self.value is None:
            return "-"
        if not self.used:
            return f"{self.value} (not used)"
        if isinstance(self.value, list):
            return ", ".join(map(str, self.value))
        return str(self.value)


def effective_settings(
    root: Path | None, overrides: Mapping[str, Any] | None = None
) -> list[EffectiveSetting]:
    """Return every setting in section order; raise errors like ``load_settings``."""
    settings = load_settings(root, overrides)
    file = root / FILE if root is not None else None
    written = dict(flatten_settings(read_file(file))) if file else {}
    flags = {key for key, value in (overrides or {}).items() if value is not None}
    return [
        EffectiveSetting(
            name,
            display_value(name, value),
            _setting_origin(name, value, flags, written, file),
            settings.is_used(name),
        )
        for name, value in flatten_settings(settings)
    ]


def _setting_origin(
    name: str, value: object, flags: set[str], written: Mapping[str, Any], file: Path | None
) -> str:
    if name in flags:
        return "flag"
    variable = f"{PREFIX}{name.replace('.', '__').upper()}"
    for variable_name in os.environ:
        if variable_name.upper() == variable:
            return variable_name
    if name in written:
        return str(file)
    standard = _STANDARD.get(name, "")
    if value is not None and os.environ.get(standard):
        return standard
    return "default"


def flatten_settings(
    values: BaseModel | Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield section values by dotted name."""
    for name, value in values if isinstance(values, BaseModel) else values.items():
        if isinstance(value, BaseModel | dict):
            yield from flatten_settings(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def display_value(name: str, value: object) -> Any:
    """Return the value of a setting, by dotted name, without secrets."""
    definition = find_setting(name)
    annotation = definition.annotation if definition else None
    is_secret = SecretStr in (annotation, *get_args(annotation))
    if isinstance(value, SecretStr) or (is_secret and value is not None):
        return MASK
    if isinstance(value, str) and (is_address(name) or "://" in value):
        return mask_url(value)
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
