"""Which edges chunks state, and where: read once of a published state for many questions."""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import NamedNode

from tgraph.retrieve.base import Context
from tgraph.store.base import select, text_of

_KEPT = 500
"""Chunks of which it is kept, a hundred edges each."""


def stated_in(chunks: Iterable[str], context: Context) -> dict[str, list[tuple[int, str]]]:
    """For each chunk, in the order of their IRIs, the edges that it states as (start, IRI), from
    its beginning on; those that they were merged into are among them."""

    def read(missing: list[str]) -> dict[str, list[tuple[int, str]]]:
        nodes = [NamedNode(chunk) for chunk in missing]
        found: dict[str, list[tuple[int, str]]] = {chunk: [] for chunk in missing}
        for row in select(context.store, "retrieve/neighbours", {"chunks": nodes}):
            found[text_of(row["chunk"])].append((int(text_of(row["start"])), text_of(row["edge"])))
        return found

    return context.remembered("chunks", _KEPT).get_all(sorted(set(chunks)), read)
