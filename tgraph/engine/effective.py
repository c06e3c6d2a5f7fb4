"""The settings in effect, each with where its value comes from."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from tgraph.settings import FILE, load_settings

MASK = "********"
_STANDARD = {"chat.api_key": "OPENAI_API_KEY", "chat.base_url": "OPENAI_BASE_URL"}


@dataclass(frozen=True, slots=True)
class Effective:
    """A setting: its dotted name, its value (secrets masked, paths as texts), and its origin, which
    is ``default``, ``flag``, the file's path, or the name of the environment variable."""

    name: str
    value: Any
    origin: str

    @property
    def shown(self) -> str:
        """The value for people."""
        if self.value is None:
            return "-"
        if isinstance(self.value, list):
            return ", ".join(map(str, self.value))
        return str(self.value)


def effective_settings(
    root: Path | None, overrides: Mapping[str, Any] | None = None
) -> list[Effective]:
    """Every setting in the order of the sections. Raises as ``load_settings`` does."""
    settings = load_settings(root, overrides)
    file = root / FILE if root is not None else None
    written = dict(_flat(tomllib.loads(file.read_text("utf-8")))) if file and file.is_file() else {}
    flags = {key for key, value in (overrides or {}).items() if value is not None}
    return [
        Effective(name, _plain(value), _origin(name, value, flags, written, file))
        for name, value in _fields(settings)
    ]


def _origin(
    name: str, value: object, flags: set[str], written: Mapping[str, Any], file: Path | None
) -> str:
    if name in flags:
        return "flag"
    variable = f"TGRAPH_{name.replace('.', '__').upper()}"
    for found in os.environ:
        if found.upper() == variable:
            return found
    if name in written:
        return str(file)
    standard = _STANDARD.get(name, "")
    if value is not None and os.environ.get(standard):
        return standard
    return "default"


def _fields(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _fields(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _plain(value: object) -> Any:
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
