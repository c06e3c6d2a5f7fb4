"""Settings that count, each with its origin and without secrets."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from pydantic import BaseModel, SecretStr

from tgraph.settings import FILE, PREFIX, load_settings

MASK = "********"
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
    written = (
        dict(_flatten_values(tomllib.loads(file.read_text("utf-8"))))
        if file and file.is_file()
        else {}
    )
    flags = {key for key, value in (overrides or {}).items() if value is not None}
    return [
        EffectiveSetting(
            name,
            _plain_value(name, value),
            _setting_origin(name, value, flags, written, file),
            settings.is_used(name),
        )
        for name, value in _flatten_values(settings)
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


def _flatten_values(
    values: BaseModel | Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield section values by dotted name."""
    for name, value in values if isinstance(values, BaseModel) else values.items():
        if isinstance(value, BaseModel | dict):
            yield from _flatten_values(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


_SECRET = re.compile(r"key|token|secret|pass|sig|auth|cred", re.I)
"""A parameter of an address so called is shown masked."""


def without_secrets(url: str) -> str:
    """Return a displayable URL with user, password and secret parameters masked; mask
    unparsable URLs completely."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return MASK
    _, at, host = parts.netloc.rpartition("@")
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    query = "&".join(
        f"{name}={MASK if _SECRET.search(name) else value}" for name, value in parameters
    )
    masked_parts = parts._replace(netloc=f"{MASK}@{host}" if at else host, query=query)
    return urlunsplit(masked_parts)


def _plain_value(name: str, value: object) -> Any:
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, str) and name.endswith("base_url"):
        return without_secrets(value)
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
