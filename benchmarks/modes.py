"""What indexing and each retrieval mode cost: CPU seconds, memory, calls and prompt tokens.

The language model is the scripted server of ``tgraph.testing`` in a process of its own, without
latency; vectors are hashed, so that only tgraph's own work is counted. A text larger than the data
is made of copies of it whose names are changed, so that the graph grows with the text.

With ``--graphrag PYTHON`` Microsoft GraphRAG is measured in the same run on the same text, with
``--lightrag PYTHON`` LightRAG, as it is shipped and with one TLS context for all its calls. PYTHON
is the one of an environment of its own, made by ``python -m venv V && V/bin/pip install graphrag``
(or ``lightrag-hku openai``): V/bin/python. Their calls are those of chat and of the embedder;
beside each warm question stands what tgraph's takes of its CPU.

Run: python -m benchmarks.modes [--data FILE] [--size MEGABYTES] [--runs 2] [--modes local,global]
[--graphrag PYTHON] [--lightrag PYTHON]
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tgraph
from benchmarks.overhead import TEXT, Cost, FailedError, command, compile_package, measure, server
from benchmarks.peers import GraphRag, LightRag, LightRagShared, Peer, figures, version
from tgraph.retrieve.modes.registry import MODES

QUESTIONS = (
    "Who is Scrooge and how does he change?",
    "What did Marley's Ghost warn Scrooge of?",
    "Who is Tiny Tim?",
    "What are the main themes of the story?",
    "Where did Bob Cratchit work?",
)
GRAPHRAG: dict[str, str] = {
    "index": "13.4 s (0.19 MB), 101 s (3.2 MB)",
    "local": "0.117 s (0.19 MB), 0.32 s (3.2 MB), 1 call",
    "global": "0.077 s (0.19 MB), 0.56 s (3.2 MB), 3 and 20 calls",
    "drift": "3.6 s (0.19 MB), 7.4 s (3.2 MB), 67 calls, 700,000 tokens",
    "basic": "0.11 s (0.19 MB), 0.08 s (3.2 MB), 1 call",
}
"""Microsoft GraphRAG 3.3.0, measured elsewhere on two cores against a stub without latency.
CPU seconds, of the modes warm ones."""

_NAME = re.compile(r"\b[A-Z][a-z]{3,}\b")


@dataclass(frozen=True, slots=True)
class Asked:
    """What one question cost in a process that had asked before."""

    cpu: float
    calls: int
    tokens: int


def corpus(source: Path, size: float, folder: Path) -> list[Path]:
    """Files of about ``size`` megabytes altogether: the source and copies with other names."""
    text = source.read_text("utf-8")
    copies = max(1, round(size * 1e6 / len(text.encode())))
    files = []
    for number in range(copies):
        file = folder / f"text-{number:03d}.txt"
        suffix = "" if number == 0 else chr(ord("a") + number % 26) * (1 + number // 26)
        file.write_text(_NAME.sub(lambda m, s=suffix: m.group() + s, text), "utf-8")  # type: ignore[misc]
        files.append(file)
    return files


def model_options(root: Path, url: str) -> list[str]:
    return ["-r", str(root), "--base-url", url, "--embedding-provider", "hashing"]


def index(root: Path, files: Sequence[Path], url: str) -> tuple[Cost, dict[str, Any]]:
    """The cost of indexing the files, and what the run said of itself when asked again."""
    options = model_options(root, url)
    cost = measure(command("index", *map(str, files), "--quiet", *options))
    again = subprocess.run(
        [sys.executable, *command("index", *map(str, files), "--quiet", "--json", *options)],
        capture_output=True,
        text=True,
        check=True,
    )
    return cost, json.loads(again.stdout)


def warm(root: Path, mode: str, url: str) -> Iterator[Asked]:
    settings = {"chat.base_url": url, "chat.model": "scripted", "embedding.provider": "hashing"}
    with tgraph.open(root, settings=settings) as kg:
        kg.ask(QUESTIONS[0], mode, history=[])
        for question in QUESTIONS[1:]:
            start = time.process_time()
            answer = kg.ask(question, mode, history=[])
            spent = time.process_time() - start
            yield Asked(spent, answer.usage.calls, answer.usage.input_tokens)


@dataclass(frozen=True, slots=True)
class Beside:
    """A column of another system: what it is called, its cells, and the CPU seconds of its warm
    questions by mode, where they were measured now."""

    name: str
    cells: Mapping[str, str]
    warm: Mapping[str, float] = field(default_factory=dict)

    def cell(self, what: str, cpu: float | None = None) -> str:
        """The cell, with the ratio of tgraph's CPU seconds of a warm question to its own."""
        cell = self.cells.get(what, "")
        if cpu is None or what not in self.warm:
            return cell
        return f"{cell}; tgraph's is {cpu / self.warm[what]:.2f} of it"


ELSEWHERE = Beside("GraphRAG 3.3.0, measured elsewhere", GRAPHRAG)
PEERS: Mapping[str, Sequence[tuple[type[Peer], str]]] = {
    "graphrag": ((GraphRag, "GraphRAG {}, same run"),),
    "lightrag-hku": (
        (LightRag, "LightRAG {}, as shipped, same run"),
        (LightRagShared, "LightRAG {}, TLS context shared, same run"),
    ),
}


def beside(
    pythons: Mapping[str, str], files: Sequence[Path], folder: Path, modes: Sequence[str]
) -> Iterator[Beside]:
    """The figures of the packages that a Python is named for, measured now."""
    versions = {package: version(python, package) for package, python in pythons.items() if python}
    for package, found in versions.items():
        for made, name in PEERS[package]:
            root = folder / made.__name__
            measured = figures(made, pythons[package], files, root, QUESTIONS, modes)
            yield Beside(name.format(found), measured.cells, measured.warm)


def report(
    root: Path,
    files: Sequence[Path],
    url: str,
    modes: Sequence[str],
    runs: int,
    others: Sequence[Beside],
) -> None:
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"\n{size:.2f} MB of text in {len(files)} files\n")
    heads = ["what", "cold CPU", "memory", "warm CPU", "calls", "prompt tokens"]
    print(_row([*heads, *(other.name for other in others)]))
    print("|---" * (len(heads) + len(others)) + "|")

    def row(what: str, *cells: str, cpu: float | None = None) -> None:
        print(_row([what, *cells, *(other.cell(what, cpu) for other in others)]), flush=True)

    cost, _ = index(root, files, url)
    row("index", f"{cost.cpu:.1f} s", f"{cost.memory:.0f} MB", "", "", "")
    for mode in modes:
        options = model_options(root, url)
        cold = measure(command("ask", "-q", QUESTIONS[0], "-m", mode, *options), runs)
        asked = list(warm(root, mode, url))
        cpu = statistics.median(a.cpu for a in asked)
        calls = max(a.calls for a in asked)
        tokens = statistics.median(a.tokens for a in asked)
        cells = f"{cold.cpu:.2f} s", f"{cold.memory:.0f} MB", f"{cpu:.3f} s", str(calls)
        row(mode, *cells, f"{tokens:,.0f}", cpu=cpu)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=TEXT, help="a text to index")
    parser.add_argument("--size", type=float, default=0.0, help="megabytes; default: the data's")
    parser.add_argument("--runs", type=int, default=2, help="cold: the best of so many")
    parser.add_argument("--modes", default=",".join(MODES))
    for package in PEERS:
        parser.add_argument(
            f"--{package.removesuffix('-hku')}",
            default="",
            dest=package,
            metavar="PYTHON",
            help=f"a Python that has {package}: measure it too",
        )
    options = parser.parse_args()
    modes = options.modes.split(",")
    compile_package()
    with tempfile.TemporaryDirectory() as name, server() as url:
        folder = Path(name)
        files = corpus(options.data.resolve(), options.size, folder)
        pythons = {package: getattr(options, package) for package in PEERS}
        try:
            others = [*beside(pythons, files, folder, modes)]
        except FailedError as error:
            parser.error(str(error))
        report(folder / "graph", files, url, modes, options.runs, others or [ELSEWHERE])


if __name__ == "__main__":
    main()
