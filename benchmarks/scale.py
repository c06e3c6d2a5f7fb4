"""How what tgraph costs grows with the graph.

Graphs of so many edges are made: sentences of ``examples/antarctica`` with two names or more, other
names in the place of these, drawn so that a few are in many sentences (Zipf), read by the scripted
model's extraction in this process, and embedded by hashed words (384 dimensions). So texts and
sentences have real lengths, and no model or network is needed. Every figure is of a process of its
own, which has nothing open; CPU is user and system time.

An exponent is the slope of a line fitted to the logarithms of the figure and of the edges: 0 does
not grow, 1 grows as the graph does. Store calls are those of a warm question, or of a trace.

Run: python -m benchmarks.scale [--edges 10000,100000] [--keep FOLDER] [--modes graph,local]
[--plot FILE.svg]
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import tgraph
from benchmarks.overhead import measure
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.models.base import CallSink, current_time, no_sink
from tgraph.models.hashing import HashingEmbedder
from tgraph.settings import load_settings
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import ScriptedModel

CORPUS = Path(__file__).resolve().parent.parent / "examples" / "antarctica"
MODES = ("graph", "local", "global", "basic", "ppr", "lightrag-mix")
DIMENSIONS = 384
SENTENCES = 60
"""Sentences of a document."""
EDGES_FOR_NAME = 4
SEED = 7
_NAME = re.compile(r"\b[A-Z][a-z]+(?: (?:of the |of )?[A-Z][a-z]+)*\b")
_SENTENCE = re.compile(r"[A-Z][^.!?\n]{40,300}[.!?]")
_CONSONANTS, _VOWELS = "bcdfghklmnprstvwz", "aeiou"


class ForgetfulModel(ScriptedModel):
    """The scripted model, which does not keep what it was asked."""

    def complete(self, request: Any, sink: CallSink = no_sink) -> Any:
        reply = super().complete(request, sink)
        self.requests.clear()
        return reply


# --- the graph ------------------------------------------------------------------------------------


def templates() -> list[list[str]]:
    """Sentences of the example corpus as what stands between their names, two names or more."""
    texts = (file.read_text("utf-8") for file in sorted(CORPUS.glob("*.[mt][dx]*")))
    found = [_NAME.split(" " + match[0]) for text in texts for match in _SENTENCE.finditer(text)]
    return [parts for parts in found if len(parts) > 2]


def names(count: int, chance: random.Random) -> list[str]:
    """So many names of two words, each another."""
    made: dict[str, None] = {}
    while len(made) < count:
        made[f"{_word(chance)} {_word(chance)}"] = None
    return list(made)


def _word(chance: random.Random) -> str:
    syllables = (chance.choice(_CONSONANTS) + chance.choice(_VOWELS) for _ in range(3))
    return "".join(syllables).capitalize()


def write_corpus(folder: Path, edges: int) -> list[str]:
    """Documents that say about so many edges below ``folder``, and two more pages beside it: one of
    the names that are said most, and one as the documents are. The names, those first that are said
    most."""
    chance = random.Random(SEED)
    known = names(max(20, edges // EDGES_FOR_NAME), chance)
    weights = list(accumulate(1 / (place + 10) for place in range(len(known))))
    patterns = templates()
    said, document, number = 0, [], 0
    folder.mkdir(parents=True)

    def sentence() -> tuple[str, int]:
        parts = chance.choice(patterns)
        drawn = chance.choices(known, cum_weights=weights, k=len(parts) - 1)
        text = "".join(a + b for a, b in zip(parts, [*drawn, ""], strict=True)).strip()
        return text, sum(one != other for one, other in pairwise(drawn))

    while said < edges:
        text, count = sentence()
        document.append(text)
        said += count
        if len(document) == SENTENCES or said >= edges:
            (folder / f"{number:06d}.txt").write_text(" ".join(document) + "\n", "utf-8")
            document, number = [], number + 1
    page = " ".join(f"{a} met {b} in {c}." for a, b, c in zip(known, known[3:], known[9:]))  # noqa: B905
    usual = " ".join(sentence()[0] for _ in range(SENTENCES))
    for name, text in (("page.txt", page), ("usual.txt", usual)):
        (folder.parent / name).write_text(text[:4000].rpartition(".")[0] + ".\n", "utf-8")
    return known


@contextmanager
def opened(folder: Path) -> Iterator[KnowledgeGraph]:
    """The graph with the scripted model."""
    parts = Components(
        load_settings(None, {}),
        folder / "cache",
        chat=ForgetfulModel(clock=current_time),
        embedder=HashingEmbedder(DIMENSIONS),
    )
    with tgraph.open(folder / "graph", create=True, parts=parts) as graph:
        yield graph


# --- what is measured, each in a process of its own -----------------------------------------------


def index(folder: Path) -> dict[str, float]:
    """All documents into a graph; how many edges it has."""
    with opened(folder) as graph:
        report = graph.index([folder / "corpus"])
        if report.failed:
            raise SystemExit(str(report.failed[0]))
        found = list(graph.opened.read().match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH))
        return {"edges": float(len(found))}


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    done = work()
    return done, time.process_time() - began


def question(known: Sequence[str], place: int) -> str:
    return f"What did {known[place]} do with {known[place + 5]}?"


def ask(folder: Path, modes: Sequence[str]) -> dict[str, float]:
    """Opening, and a first and five further questions of each mode; a trace, a why-not and an
    audit."""
    known = json.loads((folder / "names.json").read_text("utf-8"))
    told: dict[str, float] = {}
    with opened(folder) as graph, store_calls() as calls:
        _, told["open"] = _timed(graph.opened.read)
        for number, mode in enumerate(modes):
            first = graph_question(graph, question(known, 40), mode)
            before = calls.total()
            warm = [graph_question(graph, question(known, 2 + 7 * n), mode) for n in range(5)]
            if not number:
                told["first question"] = first
            told[f"question, {mode}"] = statistics.median(warm)
            told[f"store calls, {mode}"] = (calls.total() - before) / len(warm)
        graph.opened.read()  # which brings the sessions into the store
        before = calls.total()
        _, told["trace"] = _timed(graph.trace)
        told["store calls, trace"] = calls.total() - before
        _, told["why-not"] = _timed(lambda: graph.why_not("last", known[50]))
        _, told["audit"] = _timed(lambda: graph.audit("uncited"))
    return told


@contextmanager
def store_calls() -> Iterator[Counter[str]]:
    """Counts what is asked of stores meanwhile."""
    counts: Counter[str] = Counter()
    with ExitStack() as patched:
        for name in ("match", "query", "lines", "has", "missing"):
            patched.enter_context(_counted(name, counts))
        yield counts


@contextmanager
def _counted(name: str, counts: Counter[str]) -> Iterator[None]:
    method = getattr(OxigraphStore, name)

    def counted(self: OxigraphStore, *arguments: Any, **named: Any) -> Any:
        counts[name] += 1
        return method(self, *arguments, **named)

    setattr(OxigraphStore, name, counted)
    try:
        yield
    finally:
        setattr(OxigraphStore, name, method)


def graph_question(graph: KnowledgeGraph, question: str, mode: str) -> float:
    """CPU seconds of a question."""
    return _timed(lambda: graph.ask(question, mode, history=()))[1]


def change(folder: Path) -> dict[str, float]:
    """Two pages more, and one document taken back."""
    told: dict[str, float] = {}
    with opened(folder) as graph:
        _, told["one page more"] = _timed(lambda: graph.index([folder / "usual.txt"]))
        _, told["one of the commonest names"] = _timed(lambda: graph.index([folder / "page.txt"]))
        _, told["a retraction"] = _timed(
            lambda: graph.retract("000000.txt", reason="a measurement")
        )
    return told


def check(folder: Path) -> dict[str, float]:
    """The whole record checked."""
    with opened(folder) as graph:
        return {"integrity": _timed(graph.integrity)[1]}


STEPS: Mapping[str, Callable[[Path, Sequence[str]], dict[str, float]]] = {
    "index": lambda folder, modes: index(folder),
    "ask": ask,
    "change": lambda folder, modes: change(folder),
    "check": lambda folder, modes: check(folder),
}
MEMORY = {"index": "the index", "ask": "questions", "change": "changes", "check": "the check"}


# --- the table ------------------------------------------------------------------------------------


def measured(folder: Path, edges: int, modes: Sequence[str]) -> dict[str, float]:
    """All figures of a graph of about so many edges; what the folder has of them is not measured
    again."""
    if not (folder / "names.json").exists():
        known = write_corpus(folder / "corpus", edges)
        (folder / "names.json").write_text(json.dumps(known[:200]), "utf-8")
    told: dict[str, float] = {}
    for step in STEPS:
        done = folder / f"{step}.json"
        if not done.exists():
            done.write_text(json.dumps(_measure(folder, step, modes)), "utf-8")
        told |= json.loads(done.read_text("utf-8"))
        print(f"{edges:,} edges, {step}: done", file=sys.stderr, flush=True)
    return told


def _measure(folder: Path, step: str, modes: Sequence[str]) -> dict[str, float]:
    """What a step says, and what its process took."""
    if step == "index":  # of one that was broken off
        for part in ("graph", "cache"):
            shutil.rmtree(folder / part, ignore_errors=True)
    out = folder / "said.json"
    own = ["-m", "benchmarks.scale", "--step", step, str(folder), "--modes", ",".join(modes)]
    cost = measure([*own, "--out", str(out)])
    told: dict[str, float] = json.loads(out.read_text("utf-8"))
    if step == "index":
        told |= {"index": cost.cpu, "folder, MB": size(folder / "graph") / 1e6}
    return {**told, f"memory of {MEMORY[step]}, MB": cost.memory}


def size(folder: Path) -> int:
    """Bytes of the files below; what is linked counts once."""
    found = (each.stat() for each in folder.rglob("*") if each.is_file())
    return sum({(each.st_dev, each.st_ino): each.st_size for each in found}.values())


def exponent(edges: Sequence[int], figures: Sequence[float]) -> float:
    """The slope of the logarithms."""
    points = [(math.log(e), math.log(max(f, 1e-4))) for e, f in zip(edges, figures, strict=True)]
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def show(results: Mapping[int, Mapping[str, float]]) -> None:
    """The table; seconds where nothing else is said."""
    edges = sorted(results)
    print(f"\n| what | {' | '.join(f'{each:,} edges' for each in edges)} | exponent |")
    print(f"|---|{'---|' * (len(edges) + 1)}")
    for name in results[edges[0]]:
        figures = [results[each][name] for each in edges]
        plain = "MB" in name or name == "edges" or "calls" in name
        shown = " | ".join(f"{f:,.0f}" if plain else f"{f:.3f} s" for f in figures)
        growth = f"{exponent(edges, figures):.2f}" if len(edges) > 1 else ""
        print(f"| {name} | {shown} | {growth} |")


PLOTTED = (
    *("index", "first question", "question, graph", "question, local", "question, ppr"),
    *("question, lightrag-mix", "trace", "one page more", "integrity"),
)
_PLOT = 900, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 250, 20, 50


def plot(results: Mapping[int, Mapping[str, float]]) -> str:
    """CPU seconds over edges, both logarithmic, as SVG."""
    edges = sorted(results)
    known = [name for name in PLOTTED if name in results[edges[0]]]
    values = [max(results[each][name], 1e-3) for each in edges for name in known]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    width, height = _PLOT
    wide, tall = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM

    def x(count: float) -> float:
        span = math.log10(edges[-1] / edges[0]) or 1
        return _LEFT + wide * math.log10(count / edges[0]) / span

    def y(seconds: float) -> float:
        return _TOP + tall * (high - math.log10(max(seconds, 1e-3))) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for power in range(low, high + 1):
        at = y(10**power)
        parts.append(f'<path d="M{_LEFT} {at:.1f}h{wide}" stroke="#ddd"/>')
        label = f"{10**power:g} s"
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    for each in edges:
        parts.append(
            f'<text x="{x(each):.1f}" y="{height - 20}" text-anchor="middle">{each:,} edges</text>'
        )
    ends = _apart([(y(results[edges[-1]][name]), name) for name in known])
    for number, name in enumerate(known):
        line = " ".join(f"{x(each):.1f},{y(results[each][name]):.1f}" for each in edges)
        colour = f"hsl({number * 360 // len(known)} 60% 40%)"
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        growth = exponent(edges, [results[each][name] for each in edges])
        parts.append(
            f'<text x="{_LEFT + wide + 8}" y="{ends[name] + 4:.1f}" fill="{colour}">'
            f"{name} ({growth:.2f})</text>"
        )
    return "\n".join([*parts, "</svg>", ""])


def _apart(places: Sequence[tuple[float, str]]) -> dict[str, float]:
    """The heights, moved so that no two names cover each other."""
    found: dict[str, float] = {}
    above = -math.inf
    for height, name in sorted(places):
        above = found[name] = max(height, above + 15)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", default="10000,100000")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--keep", type=Path, help="where graphs and figures stay")
    parser.add_argument("--plot", type=Path, help="where a plot of it is written, as SVG")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("folder", nargs="?", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    modes = options.modes.split(",")
    if options.step:
        found = STEPS[options.step](options.folder, modes)
        options.out.write_text(json.dumps(found), "utf-8")
        return
    with tempfile.TemporaryDirectory() as scratch:
        base = options.keep or Path(scratch)
        sizes = [int(each) for each in options.edges.split(",")]
        results = {each: measured(base / str(each), each, modes) for each in sizes}
        show(results)
        if options.plot and len(sizes) > 1:
            options.plot.write_text(plot(results), "utf-8")


if __name__ == "__main__":
    main()
