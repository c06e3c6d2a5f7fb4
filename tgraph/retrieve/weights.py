"""What knowledge says of edges beside their terms."""

from __future__ import annotations

from collections.abc import Sequence

from pyoxigraph import Literal, NamedNode

from tgraph.retrieve.base import Context
from tgraph.store.base import select


def weights_of(context: Context, edges: Sequence[str]) -> dict[str, tuple[float, str]]:
    """The weight and the description of each edge that knowledge holds."""
    nodes = [NamedNode(iri) for iri in edges]
    rows = select(context.store, "retrieve/edges", {"edges": nodes}, union=False)
    return {
        _text(row["edge"]): (float(_text(row["weight"]) or 1.0), _text(row["description"]))
        for row in rows
    }


def _text(term: object) -> str:
    return term.value if isinstance(term, Literal | NamedNode) else ""
