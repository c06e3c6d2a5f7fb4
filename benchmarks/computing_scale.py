"""Computed questions over a million triples: CPU seconds of planning and evaluating each.

    python -m benchmarks.computing scale

Makes the statements that an import of ``--resources`` things leaves in knowledge, in five classes,
each with a label, a type and five edges, in a store of their own in a temporary folder
(``--folder`` keeps it), and counts their catalogue. Each question has a process of its own: its
first asking is cold, the least of three more is warm. The answer's text, evidence and record are
not measured.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad, Store

from tgraph import vocabulary as v
from tgraph.compute.computation import Computation, compute_plan, plan_query
from tgraph.index.catalogue import count_knowledge
from tgraph.index.catalogue_table import CatalogueTable, load_catalogue
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.retrieve.base import Context
from tgraph.settings import load_settings
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder

BASE = "http://example.org/"
CLASSES = ("City", "Museum", "Company", "Bridge", "Festival")
PROPERTIES = ("locatedIn", "owner", "twinnedWith", "visitors", "founded")
SYLLABLES = ("ka", "lo", "min", "ter", "su", "ra", "bel", "do", "vi", "nor", "tal", "eg")
GENERATION = 1
QUESTIONS = (
    "How many museums are there?",
    "How many museums have more than 4,990,000 visitors?",
    "How many bridges were founded before 1300?",
    "What is the average visitors of the bridges?",
    "Which company has the most visitors?",
    "Which museum was founded first?",
)


def node(name: str) -> NamedNode:
    return NamedNode(BASE + name)


def make_quads(count: int) -> Iterator[Quad]:
    """Yield the statements of things that mostly refer to their neighbours, drawn by seed."""
    draw = random.Random(1)
    for name in CLASSES:
        yield Quad(node(name), v.RDF_TYPE, v.tg("EntityType"))
    for name in PROPERTIES:
        yield Quad(node(name), v.RDF_TYPE, v.tg("Relation"))

    def near(number: int) -> int:
        is_near = draw.random() < 0.9
        return (number + draw.randint(1, 40)) % count if is_near else draw.randrange(count)

    for number in range(count):
        row = node(f"e{number}")
        name = "".join(draw.choices(SYLLABLES, k=3)).capitalize()
        yield Quad(row, v.RDFS_LABEL, Literal(f"{name} {number}"))
        yield Quad(row, v.RDF_TYPE, node(CLASSES[number % len(CLASSES)]))
        yield Quad(row, node("locatedIn"), node(f"e{near(number) // 5 * 5}"))
        yield Quad(row, node("owner"), node(f"e{near(number) // 5 * 5 + 2}"))
        yield Quad(row, node("twinnedWith"), node(f"e{near(number)}"))
        visitors = str(draw.randrange(5_000_000))
        yield Quad(row, node("visitors"), Literal(visitors, datatype=v.xsd("integer")))
        year = str(draw.randrange(1200, 2020))
        yield Quad(row, node("founded"), Literal(year, datatype=v.xsd("gYear")))


def make_store(folder: Path, count: int) -> None:
    """Write the store and its catalogue."""
    store = Store(str(folder / "store"))
    store.bulk_extend(make_quads(count))
    store.flush()
    print(f"{len(store):,} triples")
    del store
    started = time.process_time()
    stored = OxigraphStore.open(folder / "store")
    table = CatalogueTable.from_counts(stored, count_knowledge(stored))
    print(f"counting the catalogue: {time.process_time() - started:.1f} CPU seconds")
    table.save(folder, GENERATION)


def open_context(folder: Path) -> Context:
    store = OxigraphStore.open(folder / "store")
    table = load_catalogue(folder, GENERATION)
    texts = Texts(store, Librarian(folder))
    settings = load_settings(None, {})
    return Context(store, texts, {}, HashingEmbedder(), settings, catalogue=lambda: table)


def ask_question(question: str, context: Context) -> tuple[float, Computation]:
    """Return the CPU seconds of a question, and its result."""
    started = time.process_time()
    computation = compute_plan(plan_query(question, context), context)
    return time.process_time() - started, computation


def measure_question(question: str, folder: Path) -> None:
    """Print the seconds of a question asked for the first time, and again."""
    context = open_context(folder)
    cold, computation = ask_question(question, context)
    warm = min(ask_question(question, context)[0] for _ in range(3))
    computed = computation.computed
    rows = computed.row_count if computed else None
    print(json.dumps({"cold": cold, "warm": warm, "rows": rows}))


def measure_all(folder: Path, count: int) -> None:
    if not (folder / "store").exists():
        make_store(folder, count)
    print(f"{'cold':>6} {'warm':>6} {'rows':>7}")
    for question in QUESTIONS:
        command = [sys.executable, "-m", "benchmarks.computing", "scale", "--folder", str(folder)]
        run = subprocess.run(
            [*command, "--question", question], check=True, capture_output=True, text=True
        )
        figures = json.loads(run.stdout)
        print(
            f"{figures['cold']:6.2f} {figures['warm']:6.2f} {figures['rows']!s:>7}  {question}",
            flush=True,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is measured."""
    parser.add_argument("--resources", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, help="where the store is kept, or lies")
    parser.add_argument("--question", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> None:
    """Make the store where it isn't there, and measure each question in a process of its own."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.question:
            measure_question(arguments.question, folder)
        else:
            measure_all(folder, arguments.resources)
