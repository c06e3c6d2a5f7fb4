"""What knowledge says of edges beside their terms."""

from __future__ import annotations

from collections.abc import Sequence

from pyoxigraph import NamedNode

from tgraph.retrieve.base import Context
from tgraph.store.base import select, text_of


def weights_of(context: Context, edges: Sequence[str]) -> dict[str, tuple[float, str]]:
    """The weight and the description of each edge that knowledge holds."""
    nodes = [NamedNode(iri) for iri in edges]
    rows = select(context.store, "retrieve/edges", {"edges": nodes}, union=False)
    return {
        text_of(row["edge"]): (float(text_of(row["weight"]) or 1.0), text_of(row["description"]))
        for row in rows
    }
