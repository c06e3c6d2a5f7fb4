"""The choice of a vector store: the one module that names an implementation."""

from __future__ import annotations

from typing import Final

from tgraph.errors import UsageError
from tgraph.index.vectors import inverted_list_store
from tgraph.index.vectors.base import VectorStore
from tgraph.index.vectors.inverted_list_store import exact_index
from tgraph.plugins import VECTOR_STORES

__all__ = ["INVERTED_LISTS", "exact_index", "vector_store"]

INVERTED_LISTS: Final = "inverted-lists"

_STORES: Final[dict[str, VectorStore]] = {INVERTED_LISTS: inverted_list_store}


def vector_store(name: str = INVERTED_LISTS) -> VectorStore:
    """Return the vector store of a name, of tgraph or of an extension.

    Raises ``UsageError`` for an unknown name."""
    if name in _STORES:
        return _STORES[name]
    make_store = VECTOR_STORES.find_contribution(name)
    if make_store is None:
        names = ", ".join([*_STORES, *VECTOR_STORES.names()])
        raise UsageError(f"There is no vector store {name!r}.", f"Known: {names}.")
    store: VectorStore = make_store()
    return store
