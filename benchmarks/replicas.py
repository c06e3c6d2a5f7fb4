"""What replicas cost and give: shipping, catching up, the way of one session back, and questions a
second of several readers.

The graph is made as in ``benchmarks.scale``. Readers are processes, each with a replica of its own;
with more of them than there are cores they share these. Times are of the clock.

Run: python -m benchmarks.replicas [--edges 10000] [--readers 1,2,3]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tgraph
from benchmarks.scale import DIMENSIONS, ForgetfulModel, index, opened, question, write_corpus
from tgraph.engine.components import Components
from tgraph.engine.open_collection import now
from tgraph.models.hashing import HashingEmbedder
from tgraph.settings import load_settings

QUESTIONS = 30


def timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def replica(folder: Path) -> tgraph.KnowledgeGraph:
    parts = Components(
        load_settings(None, {}),
        folder / "cache",
        chat=ForgetfulModel(clock=now),
        embedder=HashingEmbedder(DIMENSIONS),
    )
    return tgraph.open(folder / "graph", create=True, parts=parts)


def read(folder: Path, names: list[str], ready: object, rates: object) -> None:
    """Ask, when all are ready; tells how long it took."""
    with replica(folder) as graph:
        graph.ask(question(names, 40), "graph", history=())
        ready.wait()  # type: ignore[attr-defined]
        work = [question(names, 2 + n) for n in range(QUESTIONS)]
        rates.put(timed(lambda: [graph.ask(q, "graph", history=()) for q in work]))  # type: ignore[attr-defined]


def readers(base: Path, count: int, names: list[str]) -> float:
    """Questions a second of so many readers together."""
    spawn = multiprocessing.get_context("spawn")
    ready, rates = spawn.Barrier(count), spawn.Queue()
    started = [
        spawn.Process(target=read, args=(base / f"r{n}", names, ready, rates)) for n in range(count)
    ]
    for each in started:
        each.start()
    took: list[float] = [rates.get() for _ in started]
    for each in started:
        each.join()
    return count * QUESTIONS / max(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=10_000)
    parser.add_argument("--readers", default="1,2,3")
    options = parser.parse_args()
    counts = [int(each) for each in options.readers.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        base, url = Path(scratch), f"{scratch}/shipped"
        names = write_corpus(base / "writer" / "corpus", options.edges)[:200]
        (base / "writer" / "names.json").write_text(json.dumps(names), "utf-8")
        edges = index(base / "writer")["edges"]
        print(f"| a graph of {edges:,.0f} edges | |\n|---|---|")
        with opened(base / "writer") as writer:
            print(f"| shipped for the first time | {timed(lambda: writer.ship(url)):.1f} s |")
            for n in range(max(counts)):
                with replica(base / f"r{n}") as graph:
                    took = timed(lambda: graph.follow(url))
            print(
                f"| a new replica catches up | {took:.1f} s ({edges / took:,.0f} edges a second) |"
            )
            writer.ask(question(names, 60), "graph", history=())
            shipped = timed(lambda: writer.ship(url))
            with replica(base / "r0") as graph:
                followed = timed(lambda: graph.follow(url))
            print(f"| one session more: shipped, followed | {shipped:.2f} s, {followed:.2f} s |")
        for count in counts:
            found = readers(base, count, names)
            print(f"| questions a second, mode graph, {count} readers | {found:.1f} |", flush=True)


if __name__ == "__main__":
    main()
