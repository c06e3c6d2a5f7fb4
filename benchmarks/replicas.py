"""What replicas cost and give: shipping, catching up, the way of one session back, the requests of
a round, and questions a second of several readers.

The graph is made as in ``benchmarks.scale``. Readers are processes, each with a replica of its own;
with more of them than there are cores they share these. Times are of the clock, but for CPU
seconds. A request is what the storage is asked for, a list one for each 1,000 files.

Run: python -m benchmarks.replicas [--edges 10000] [--readers 1,2,3]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

import tgraph
from benchmarks.scale import DIMENSIONS, ForgetfulModel, index, opened, question, write_corpus
from tgraph.engine.components import Components
from tgraph.extensions.operations import (
    follow,
    replica_shipping,
    replica_storage,
    replicas,
    ship,
)
from tgraph.models.base import current_time
from tgraph.models.hashing import HashingEmbedder
from tgraph.settings import load_settings

QUESTIONS = 30


def timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


class Counting(replica_storage.Storage):
    """Counts what it is asked for."""

    requests: ClassVar[Counter[str]] = Counter()

    def names(self, folder: str) -> set[str]:
        found = super().names(folder)
        self.requests["list"] += 1 + len(found) // 1_000
        return found

    def has_file(self, folder: str, name: str) -> bool:
        self.requests["head"] += 1
        return super().has_file(folder, name)

    def find(self, folder: str, name: str) -> bytes | None:
        self.requests["get"] += 1
        return super().find(folder, name)

    def create(self, folder: str, name: str, data: bytes) -> bool:
        self.requests["put"] += 1
        return super().create(folder, name, data)

    def write(self, folder: str, name: str, data: bytes) -> None:
        self.requests["put"] += 1
        super().write(folder, name, data)

    def delete(self, folder: str, names: Iterable[str]) -> None:
        given = list(names)
        self.requests["delete"] += len(given)
        super().delete(folder, given)


def told(what: str, work: Callable[[], object]) -> None:
    """A row of what a round takes."""
    Counting.requests.clear()
    cpu = time.process_time()
    took = timed(work)
    cpu = time.process_time() - cpu
    requests = ", ".join(f"{n} {kind}" for kind, n in sorted(Counting.requests.items()) if n)
    total = Counting.requests.total()
    print(f"| {what} | {took:.2f} s, {cpu:.2f} CPU s, {total} requests ({requests}) |", flush=True)


def replica(folder: Path) -> tgraph.KnowledgeGraph:
    parts = Components(
        load_settings(None, {}),
        folder / "cache",
        chat=ForgetfulModel(clock=current_time),
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
    for module in (replicas, replica_shipping):
        vars(module)["Storage"] = Counting
    counts = [int(each) for each in options.readers.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        base, url = Path(scratch), f"{scratch}/shipped"
        names = write_corpus(base / "writer" / "corpus", options.edges)[:200]
        (base / "writer" / "names.json").write_text(json.dumps(names), "utf-8")
        edges = index(base / "writer")["edges"]
        print(f"| a graph of {edges:,.0f} edges | |\n|---|---|")
        with opened(base / "writer") as writer:
            told("shipped for the first time", lambda: ship(writer, url))
            for n in range(max(counts)):
                with replica(base / f"r{n}") as graph:
                    told("a new replica catches up", lambda: follow(graph, url))
            contents = sum(1 for _ in Path(url, "contents").iterdir())
            print(f"| contents there | {contents:,} |")
            with replica(base / "r0") as graph:
                told("ship, nothing new", lambda: ship(writer, url))
                told("follow, nothing new", lambda: follow(graph, url))
                writer.ask(question(names, 60), "graph", history=())
                told("ship, a session more", lambda: ship(writer, url))
                told("follow, a session more", lambda: follow(graph, url))
                graph.ask(question(names, 61), "graph", history=())
                told("follow, a session handed over", lambda: follow(graph, url))
                told("ship, a session taken in", lambda: ship(writer, url))
                told("follow, a session come back", lambda: follow(graph, url))
        for count in counts:
            found = readers(base, count, names)
            print(f"| questions a second, mode graph, {count} readers | {found:.1f} |", flush=True)


if __name__ == "__main__":
    main()
