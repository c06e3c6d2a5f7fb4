"""Graphs in memory, written to a file for the time of an import."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse, serialize

from tgraph.errors import UsageError

if TYPE_CHECKING:
    from rdflib import Graph


@contextmanager
def written_graph(graph: Graph, title: str) -> Iterator[tuple[str, str]]:
    """Yield the path of a file of N-Triples with a graph of rdflib, and the name of the document.

    Blank nodes are named canonically (RDFC-1.0) and lines are sorted, so that equal graphs are
    equal documents. Raise ``UsageError`` without a title."""
    if not title.strip():
        raise UsageError("A graph in memory needs a title.", "Give `title`: answers cite it.")
    text = graph.serialize(format="nt", encoding="utf-8")
    dataset = Dataset(parse(text, RdfFormat.N_TRIPLES))
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    triples = (quad.triple for quad in dataset)
    lines = serialize(triples, format=RdfFormat.N_TRIPLES) or b""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.nt")
        path.write_bytes(b"\n".join(sorted(lines.splitlines())) + b"\n")
        name = title if title.endswith(".nt") else f"{title}.nt"
        yield str(path), name
