"""Results of read-only SPARQL queries over an open collection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from tgraph.explain.query.sparql import stream_query

if TYPE_CHECKING:
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.query.sparql import Bounds, Dataset


def stream_query_results(
    opened: OpenCollection,
    query: str,
    format: str,
    bounds: Bounds,
    dataset: Dataset | None = None,
) -> Iterator[bytes]:
    """Stream query results in a format from ``tgraph.explain.query.sparql.FORMATS``; query only
    ``dataset`` graphs if given."""
    opened.read()
    with closing(opened.snapshot()) as snapshot:
        yield from stream_query(snapshot.path / "store", query, format, bounds, dataset)
