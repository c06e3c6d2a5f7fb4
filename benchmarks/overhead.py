"""What tgraph itself costs: CPU seconds and peak memory of its commands, as a Markdown table.

The language model is the scripted server of ``tgraph.testing`` in a process of its own, so that its
time is not counted. Every figure is the best of some runs, because anything else that runs on the
machine only adds to it.

Run: python benchmarks/overhead.py [--data FILE] [--runs 3]
"""

from __future__ import annotations

import argparse
import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

import tgraph
from tgraph.engine.graph import KnowledgeGraph
from tgraph.store.journal import Journal
from tgraph.store.oxigraph import OxigraphStore

REPOSITORY = Path(__file__).resolve().parent.parent
TEXT = REPOSITORY.parent / "shared" / "data" / "christmas_carol" / "mock_data.txt"
QUESTION = "Who visited Scrooge on Christmas Eve?"
ASK = ("-q", QUESTION)
WARM_RUNS = 20
OTHERS = (
    "What did Marley's Ghost wear?",
    "Who is Tiny Tim?",
    "Where did Scrooge live?",
    "What is the name of Scrooge's nephew?",
    "Who was Fezziwig?",
    "What did Bob Cratchit earn?",
    "Who is Belle?",
    "What did the Ghost of Christmas Present show?",
    "Who bought the turkey?",
    "What did the charwoman steal?",
)

AIM_COLD = "1.0 s, 120 MB"
AIM_OWN = "0.9 s, 160 MB"
AIM_RECORD = "0.3 s"
AIM_INDEX = "3 s"
NONE = ""

# A process inherits the peak of the one that starts it, so a small one has to.
LAUNCHER = """
import os, sys
nowhere = os.open(os.devnull, os.O_WRONLY)
to = [(os.POSIX_SPAWN_DUP2, nowhere, 1)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=to)
_, status, used = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds (user and system) and peak resident memory in MB of a process."""

    cpu: float
    memory: float

    def __str__(self) -> str:
        return f"{self.cpu:.2f} s | {self.memory:.0f} MB"


class FailedError(Exception):
    """The command did not end with exit code 0."""


def compile_package() -> None:
    """Have the modules compiled, as an installer leaves them."""
    compileall.compile_dir(REPOSITORY / "tgraph", quiet=1)


def measure(arguments: Sequence[str], runs: int = 1) -> Cost:
    """The cheapest of several runs of this Python with these arguments."""
    costs = [_once(arguments) for _ in range(runs)]
    return Cost(min(c.cpu for c in costs), min(c.memory for c in costs))


def _once(arguments: Sequence[str]) -> Cost:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TGRAPH_", "OPENAI_", "PYTHON"))
    }
    done = subprocess.run(
        [sys.executable, "-S", "-c", LAUNCHER, sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**environment, "PYTHONPATH": str(REPOSITORY)},
    )
    code, cpu, kilobytes = done.stdout.split()
    if code != "0":
        raise FailedError(done.stderr.strip()[-500:])
    return Cost(float(cpu), int(kilobytes) / 1024)


def command(*arguments: str) -> list[str]:
    return ["-c", "from tgraph.cli.scripts import main; main()", *arguments]


@contextmanager
def server() -> Iterator[str]:
    """The base URL of a scripted server in another process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tgraph.testing"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


# --- rows ---------------------------------------------------------------------------------------


class Table:
    """Prints rows as they are measured."""

    def __init__(self) -> None:
        print("| what | CPU | peak memory | aim |\n|---|---|---|---|")

    def row(self, what: str, figures: Callable[[], object], aim: str = NONE) -> None:
        try:
            shown = str(figures())
        except FailedError as error:
            print(f"{what}: {error}", file=sys.stderr)
            shown = "failed | "
        print(f"| {what} | {shown} | {aim} |", flush=True)


EMBEDDINGS = {"hashing": "hashed vectors", "embedded": "MiniLM", "openai": "vectors over HTTP"}


def commands(table: Table, folder: Path, text: Path, url: str, runs: int) -> None:
    """The rows that are processes of their own."""

    def row(what: str, arguments: list[str], times: int, aim: str = NONE) -> None:
        table.row(what, partial(measure, arguments, times), aim)

    row("`import tgraph`", ["-c", "import tgraph"], runs, "0.15 s")
    row("`tgraph --help`", command("--help"), runs, "0.15 s")
    for embedding, name in EMBEDDINGS.items():
        root = ["-r", str(folder / embedding)]
        model = [*root, "--base-url", url, "--embedding-provider", embedding]
        index, ask = command("index", str(text), "--quiet", *model), command("ask", *ASK, *model)
        row(f"index, a model and {name}", index, 1, AIM_INDEX)
        row(f"cold ask, a model and {name}", ask, runs, AIM_COLD)
    tight = ["-r", str(folder / "hashing"), "--base-url", url, "--embedding-provider", "hashing"]
    with settings_file(folder / "hashing", "[graph]\nmax_context_tokens = 4000\n"):
        what = "cold ask, a model and hashed vectors, edges counted against the token budget"
        row(what, command("ask", *ASK, *tight), runs, AIM_COLD)
    own = ["-r", str(folder / "own")]
    row("index, embedded default", command("index", str(text), "--quiet", *own), 1)
    row("cold ask, embedded default", command("ask", *ASK, *own), runs, AIM_OWN)
    few = "SELECT ?s WHERE { ?s ?p ?o } LIMIT 3"
    reading = (("sessions",), ("trace", "last"), ("audit", "--list"), ("source", text.name))
    for arguments in (*reading, ("sparql", few)):
        row(f"`tgraph {' '.join(arguments)}`", command(*arguments, *own), runs, AIM_RECORD)


@contextmanager
def settings_file(root: Path, text: str) -> Iterator[None]:
    file = root / "tgraph.toml"
    before = file.read_text("utf-8") if file.exists() else ""
    file.write_text(text, "utf-8")
    try:
        yield
    finally:
        file.write_text(before, "utf-8")


# --- in one process -----------------------------------------------------------------------------


def counted(store_class: type[Any]) -> tuple[Counts, Callable[[], None]]:
    """Counts the calls of a store's reading methods from now on; the second undoes it."""
    counts = Counts()
    originals = {name: getattr(store_class, name) for name in ("match", "query")}

    def counting(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            counts.calls += 1
            return originals[name](*arguments, **options)

        return call

    for name in originals:
        setattr(store_class, name, counting(name))

    def undo() -> None:
        for name, original in originals.items():
            setattr(store_class, name, original)

    return counts, undo


@dataclass(slots=True)
class Counts:
    calls: int = 0


def warm(kg: KnowledgeGraph, questions: Sequence[str]) -> str:
    """The median of the questions in a process that has asked before."""
    costs = []
    for question in questions:
        start = time.process_time()
        kg.ask(question, history=[])
        costs.append(time.process_time() - start)
    return f"{statistics.median(costs):.3f} s | "


def store_calls(kg: KnowledgeGraph) -> int:
    """Calls of the store by one question, its recording included, in a process that is warm."""
    counts, undo = counted(OxigraphStore)
    try:
        kg.ask(QUESTION, history=[])
    finally:
        undo()
    return counts.calls


@dataclass(frozen=True, slots=True)
class Recording:
    quads: int
    wall: float
    cpu: float
    fold_wall: float
    fold_cpu: float


def recording(kg: KnowledgeGraph) -> Recording:
    """Journal of one session (synced at each stage), and its folding into the store: medians."""
    writes: list[tuple[float, float]] = []
    original = Journal.append

    def append(journal: Journal, frame: Any, *, sync: bool = True) -> None:
        start = time.perf_counter(), time.process_time()
        original(journal, frame, sync=sync)
        writes.append((time.perf_counter() - start[0], time.process_time() - start[1]))

    Journal.append = append  # type: ignore[method-assign, assignment]
    sessions, folds = [], []
    try:
        for _ in range(WARM_RUNS // 2):
            writes.clear()
            kg.ask(QUESTION, history=[])
            sessions.append((sum(w for w, _ in writes), sum(c for _, c in writes)))
            start = time.perf_counter(), time.process_time()
            kg.opened.read()
            folds.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    finally:
        Journal.append = original  # type: ignore[method-assign]
    bundle = kg.sessions.summaries()[0].bundle
    graph = NamedNode(bundle)
    quads = sum(1 for _ in kg.opened.read().match(None, None, None, graph))
    middle = [statistics.median(column) for column in zip(*sessions, strict=True)]
    folded = [statistics.median(column) for column in zip(*folds, strict=True)]
    return Recording(quads, middle[0], middle[1], folded[0], folded[1])


def in_process(table: Table, folder: Path, url: str) -> None:
    """The rows that are measured inside one process that has asked before."""
    model = {"chat.base_url": url, "chat.model": "scripted", "embedding.provider": "hashing"}
    one = _asked_again(table, folder / "hashing", "a model and hashed vectors", model)
    _asked_again(table, folder / "own", "embedded default", {})
    table.row(
        f"recording a session ({one.quads} quads): its journal, synced",
        lambda: _milliseconds(one.cpu, one.wall),
        "20 ms (300 quads)",
    )
    table.row(
        "folding it into the store: sealing, chaining, publishing",
        lambda: _milliseconds(one.fold_cpu, one.fold_wall),
    )


def _asked_again(table: Table, root: Path, name: str, settings: dict[str, Any]) -> Recording:
    with tgraph.open(root, settings=settings) as kg:
        kg.ask(QUESTION, history=[])
        table.row(f"warm ask, a new question, {name}", partial(warm, kg, OTHERS))
        again = [QUESTION] * WARM_RUNS
        table.row(f"warm ask, the same question, {name}", partial(warm, kg, again))
        calls, retrieved = store_calls(kg), kg.trace().edge_count
        what = f"store calls of a question, {name} ({retrieved} edges retrieved)"
        table.row(what, lambda: f"{calls} calls | ", "a handful")
        return recording(kg)


def _milliseconds(cpu: float, wall: float) -> str:
    return f"{cpu * 1e3:.1f} ms ({wall * 1e3:.1f} ms wall) | "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=TEXT, help="a text to index")
    parser.add_argument("--runs", type=int, default=3, help="the best of so many")
    options = parser.parse_args()
    compile_package()
    table = Table()
    with tempfile.TemporaryDirectory() as folder, server() as url:
        commands(table, Path(folder), options.data.resolve(), url, options.runs)
        in_process(table, Path(folder), url)


if __name__ == "__main__":
    main()
