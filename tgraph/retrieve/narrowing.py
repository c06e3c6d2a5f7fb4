"""Narrowing: a state as if only what the filters admit had been indexed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tgraph import vocabulary as v
from tgraph.index.items import KINDS, items_of
from tgraph.retrieve.admitted import Admitted
from tgraph.retrieve.base import Context
from tgraph.retrieve.filters import Filters, admitted_documents, admitted_entities
from tgraph.store.oxigraph import OxigraphStore

if TYPE_CHECKING:
    from tgraph.index.vectors import VectorSet
    from tgraph.store.base import Store

KEPT = 4
"""Copies that are kept of one state."""


def narrowed(context: Context, filters: Filters) -> Context:
    """The context that sees only what the filters admit. ``UsageError`` as for its parts.

    The state is copied, as far as it is admitted, and every mode reads the copy: so nothing from
    outside can come back in any mode. A copy costs what it holds, and is kept for the next
    question.
    """
    if not filters:
        return context
    found = context.remembered("narrowed", KEPT).get(filters, lambda: _narrow(context, filters))
    assert isinstance(found, Context)
    return replace(found, sink=context.sink)


def is_empty(context: Context) -> bool:
    """Whether there is nothing at all to answer from."""
    chunks = context.store.match(None, v.RDF_TYPE, v.tg("Chunk"), v.SOURCE_GRAPH)
    return next(chunks, None) is None


def _narrow(context: Context, filters: Filters) -> Context:
    documents = admitted_documents(filters, context.store)
    entities = admitted_entities(filters, context.store)
    store = OxigraphStore.memory(Admitted(context.store, documents, entities).quads())
    texts = context.texts.over(store)
    return Context(
        store,
        texts,
        NarrowedVectors(context, store),
        context.embedder,
        context.settings,
        filters=filters,
    )


class NarrowedVectors(Mapping[str, "VectorSet"]):
    """The vectors of what a narrowed store holds, taken from those of the whole state."""

    def __init__(self, whole: Context, store: Store) -> None:
        self._whole = whole
        self._store = store
        self._sets: dict[str, VectorSet] = {}

    def __getitem__(self, kind: str) -> VectorSet:
        if kind not in self._sets:
            from tgraph.index.vectors import build

            whole = self._whole.vectors[kind]
            items = items_of(kind, self._store, self._whole.texts.librarian)
            exact = replace(whole.parameters, threshold=2**62)
            self._sets[kind] = build(kind, items, self._whole.embedder, whole, parameters=exact)
        return self._sets[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)
