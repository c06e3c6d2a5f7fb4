"""Build and search of vector sets: CPU seconds, recall and size, as a Markdown table.

Clustered unit vectors of dimension 384 (as text embeddings are, unlike uniform noise), one thread.
Run: python benchmarks/vectors.py [--sizes 1000,20000,50000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tgraph.index.vectors.inverted_list_store import build_vectors, open_vectors
from tgraph.index.vectors.inverted_lists import IvfParameters
from tgraph.index.vectors.vector_set import VectorSet
from tgraph.model import Agent
from tgraph.models.base import CallSink, no_sink

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

T = TypeVar("T")
DIMENSION, CLUSTER, QUERIES, K = 384, 50, 200, 10
HEADERS = (
    "rows", "search", "build s", "save s", "MB", "load ms", "first query ms", "query ms",
    "filtered query ms", f"recall@{K}",
)  # fmt: skip


class Table:
    """An embedder that looks up prepared vectors, so that only the index is measured."""

    agent = Agent("model", "table", "1")
    dimension = DIMENSION
    max_tokens: int | None = None
    lexical = False

    def __init__(self, rows: NDArray[float32]) -> None:
        self._rows = rows

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        return self._rows[[int(text) for text in texts]]


def clustered(count: int, centres: NDArray[float32], seed: int) -> NDArray[float32]:
    random = np.random.default_rng(seed)
    noise = random.standard_normal((count, DIMENSION), dtype=np.float32)
    rows = centres[random.integers(0, len(centres), count)] + 0.7 * noise
    unit: NDArray[float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def cpu(action: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    result = action()
    return result, time.process_time() - start


def row(count: int, folder: Path) -> list[str]:
    random = np.random.default_rng(0)
    shape = (max(1, count // CLUSTER), DIMENSION)
    centres = random.standard_normal(shape, dtype=np.float32)
    data, queries = clustered(count, centres, 1), clustered(QUERIES, centres, 2)
    items = [(f"urn:{i:07}", str(i)) for i in range(count)]
    built, build_s = cpu(lambda: build_vectors("entity", items, Table(data)))
    _, save_s = cpu(lambda: built.save(folder, 1))
    size = sum(path.stat().st_size for path in folder.iterdir())
    opened, load_s = cpu(lambda: open_vectors(folder, "entity", generation=1))
    _, first_s = cpu(lambda: opened.search(queries[:1], K))
    found, query_s = cpu(lambda: opened.search(queries, K))
    allowed = {iri for iri, _ in items[:: max(1, count // 100)]}
    _, filtered_s = cpu(lambda: [opened.search(query, K, allowed) for query in queries])
    kind = "lists" if count >= opened.parameters.threshold else "exact"
    figures = [build_s, save_s, size / 1e6, load_s * 1e3, first_s * 1e3]
    figures += [query_s * 1e3 / QUERIES, filtered_s * 1e3 / QUERIES, recall(built, queries, found)]
    return [f"{count:,}", kind, *(f"{figure:.3g}" for figure in figures)]


def recall(
    built: VectorSet, queries: NDArray[float32], found: list[list[tuple[str, float]]]
) -> float:
    everything = np.ones(len(built), dtype=bool)
    exact = built.search(queries, K, everything)
    shared = (len(dict(a).keys() & dict(b).keys()) for a, b in zip(exact, found, strict=True))
    return sum(shared) / (K * len(queries))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,20000,50000")
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    print(f"CPU time of one process; inverted lists: {IvfParameters()}\n")
    print("| " + " | ".join(HEADERS) + " |\n|" + " --- |" * len(HEADERS))
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            print("| " + " | ".join(row(size, Path(folder))) + " |", flush=True)


if __name__ == "__main__":
    main()
