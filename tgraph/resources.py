"""The prompts, SPARQL queries and ontology that ship with tgraph.

They live at the top of the repository, where people edit them, and are copied into the wheel under
``tgraph/_data`` (see ``pyproject.toml``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

_PACKAGED = files("tgraph").joinpath("_data")
_CHECKOUT = Path(__file__).resolve().parent.parent


def resource(kind: str, name: str) -> Traversable:
    """The file ``name`` (with ``/`` between folders) of ``prompts``, ``sparql`` or ``ontology``."""
    root: Traversable = _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
    return root.joinpath(kind, *name.split("/"))


@cache
def read_text(kind: str, name: str) -> str:
    """The text of the file, which doesn't change while a process runs."""
    return resource(kind, name).read_text("utf-8")


def names(kind: str, folder: str = "") -> Iterator[str]:
    """The names of the files of a kind (below a folder), sorted."""
    base = resource(kind, folder) if folder else resource(kind, "").joinpath()
    for entry in sorted(base.iterdir(), key=lambda item: item.name):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir():
            yield from names(kind, path)
        elif not entry.name.startswith((".", "_")):
            yield path


def data(name: str) -> Traversable:
    """A file that ships inside the package, such as a tokenizer or a list of words."""
    return files("tgraph").joinpath("data", name)


def word_set(name: str, *keys: str) -> frozenset[str]:
    """The words of a list of ``data/NAME.toml``, which says what it is for and where it is from."""
    return frozenset(word_list(name, *keys))


def word_list(name: str, *keys: str) -> list[str]:
    """The same in the order of the file; of several lists one after the other."""
    lists = tables(name)
    return [word for key in keys for word in lists[key].split()]


def name_list(name: str, key: str) -> list[str]:
    """A list whose entries may hold spaces and are parted by commas."""
    return [" ".join(entry.split()) for entry in tables(name)[key].split(",")]


def weights(name: str) -> tuple[float, ...]:
    """The numbers of a table of ``data/weights.toml``, which says what they were fitted to."""
    return tuple(tables("weights")[name].values())


@cache
def tables(name: str) -> dict[str, Any]:
    """All of ``data/NAME.toml``, read when it is first asked for."""
    import tomllib

    return tomllib.loads(data(f"{name}.toml").read_text("utf-8"))
