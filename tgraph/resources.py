"""The prompts, SPARQL queries and ontology that ship with tgraph.

They live at the top of the repository, where people edit them, and are copied into the wheel under
``tgraph/_data`` (see ``pyproject.toml``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

_PACKAGED = files("tgraph").joinpath("_data")
_CHECKOUT = Path(__file__).resolve().parent.parent


def find_resource(kind: str, name: str) -> Traversable:
    """Return the file ``name`` (folders separated by ``/``) of ``prompts``, ``sparql`` or
    ``ontology``."""
    root: Traversable = _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
    return root.joinpath(kind, *name.split("/"))


@cache
def read_text(kind: str, name: str) -> str:
    """Return the file's text, constant during a process."""
    return find_resource(kind, name).read_text("utf-8")


def list_names(kind: str, folder: str = "") -> Iterator[str]:
    """Yield sorted file names of a resource kind, optionally below a folder."""
    base = find_resource(kind, folder) if folder else find_resource(kind, "").joinpath()
    for entry in sorted(base.iterdir(), key=lambda item: item.name):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir():
            yield from list_names(kind, path)
        elif not entry.name.startswith((".", "_")):
            yield path


def data_file(name: str) -> Traversable:
    """Return a file shipped inside the package, such as a tokenizer or word list."""
    return files("tgraph").joinpath("data", name)


@cache
def word_set(name: str, *keys: str) -> frozenset[str]:
    """Return the words of a list in ``data/NAME.toml``; the file explains purpose and source."""
    return frozenset(word_list(name, *keys))


def word_list(name: str, *keys: str) -> list[str]:
    """Return a list's words in file order; several lists are concatenated."""
    lists = load_tables(name)
    return [word for key in keys for word in lists[key].split()]


def name_list(name: str, key: str) -> list[str]:
    """Return a comma-separated list whose entries may contain spaces."""
    return [" ".join(entry.split()) for entry in load_tables(name)[key].split(",")]


def load_weights(name: str) -> tuple[float, ...]:
    """Return the numbers of a table in ``data/weights.toml``; the file explains the fitting
    data."""
    return tuple(load_tables("weights")[name].values())


@cache
def load_tables(name: str) -> dict[str, Any]:
    """Return all tables of ``data/NAME.toml``, read on first request."""
    import tomllib

    return tomllib.loads(data_file(f"{name}.toml").read_text("utf-8"))


@cache
def common_words() -> frozenset[str]:
    """Return English words revealing nothing about their source: about 22,000 words from the
    tokenizer's vocabulary (BERT; Devlin et al., 2019)."""
    vocabulary = json.loads(data_file("minilm-tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    return frozenset(word for word in vocabulary if word.isalpha())
