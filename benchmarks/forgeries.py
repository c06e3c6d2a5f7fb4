"""What becomes of single changes to a graph: each is refused, or found, or lawful and on record.

One statement of any graph, evidence and bundles included, is altered, taken away, moved or doubled,
each change in a fresh copy of the folder: by a SPARQL update, or by writing into the store or into
the snapshot that readers see. A change is found where `audit integrity` names what was changed. An
update may change knowledge; that it did is on record, with its text.

    python -m benchmarks.forgeries [COUNT] [SEED]
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import QueryError
from tgraph.settings import load_settings
from tgraph.store.base import Graph
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder, ScriptedModel

TEXTS = {
    "curie.txt": "Marie Curie discovered Polonium in Paris. Pierre Curie loved Marie Curie.\n",
    "radium.txt": "Marie Curie discovered Radium in Paris. Pierre Curie taught Marie Curie.\n",
}
WAYS = ("update", "store", "snapshot")
CHANGES = ("altered", "removed", "moved", "doubled")


def opened(root: Path, *, create: bool = False) -> KnowledgeGraph:
    parts = Components(
        load_settings(None), root / "c", chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    return tgraph.open(root, create=create, parts=parts)


def make(folder: Path) -> Path:
    """A small graph with a document that was superseded, and two sessions."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    with opened(folder / "graph", create=True) as graph:
        graph.index([folder / name for name in TEXTS])
        graph.ask("What did Marie Curie discover?", history=[])
        (folder / "radium.txt").write_text(TEXTS["radium.txt"].replace("Radium", "Actinium"))
        graph.index([folder / name for name in TEXTS])
        graph.ask("Who taught Marie Curie?", history=[])
        assert graph.integrity().ok
    return folder / "graph"


def quads_of(root: Path) -> list[Quad]:
    with opened(root) as graph:
        return sorted(graph.opened.read().match(), key=str)


def changed(quad: Quad, change: str, rng: random.Random) -> tuple[list[Quad], list[Quad]]:
    """What the change removes and adds; an altered text has the length that it had."""
    if change == "removed":
        return [quad], []
    subject, predicate, term, graph = quad
    if change == "moved":
        graphs: list[Graph] = [DefaultGraph(), v.SOURCE_GRAPH, NamedNode("urn:x:mine")]
        target = rng.choice([each for each in graphs if each != graph])
        return [quad], [Quad(subject, predicate, term, target)]
    forged: NamedNode | Literal
    if isinstance(term, Literal):
        forged = Literal(_other(term.value, rng), datatype=term.datatype)
    else:
        forged = NamedNode(f"{str(term).strip('<>').split(' ')[0]}0")
    new = Quad(subject, predicate, forged, graph)
    return ([quad] if change == "altered" else []), [new]


def _other(text: str, rng: random.Random) -> str:
    """The text with one letter or digit changed for another."""
    places = [at for at, sign in enumerate(text) if sign.isalnum()] or [0]
    at = rng.choice(places)
    sign = text[at : at + 1]
    signs = "0123456789" if sign.isdecimal() else "abcdefghijklmnopqrstuvwxyz"
    return text[:at] + rng.choice([each for each in signs if each != sign]) + text[at + 1 :]


def update_of(removed: Sequence[Quad], added: Sequence[Quad]) -> str:
    """The change as an update, the statements as they are."""
    parts = [("DELETE", removed), ("INSERT", added)]
    return " ; ".join(
        f"{word} DATA {{ {' '.join(map(_pattern, quads))} }}" for word, quads in parts if quads
    )


def _pattern(quad: Quad) -> str:
    triple = f"{quad.subject} {quad.predicate} {quad.object} ."
    graph = quad.graph_name
    return triple if isinstance(graph, DefaultGraph) else f"GRAPH {graph} {{ {triple} }}"


def outcome(root: Path, way: str, removed: Sequence[Quad], added: Sequence[Quad]) -> str:
    """``refused``, ``found``, ``on record`` or ``nothing`` of the change in this folder, which is
    what it was if it was refused."""
    if way == "update":
        with opened(root) as graph:
            try:
                counts = graph.update(update_of(removed, added))
            except QueryError:
                return "refused"
            if counts == (0, 0):
                return "unchanged"
            known = all(_is_knowledge(quad) for quad in (*removed, *added))
            return "on record" if known and graph.integrity().ok else "nothing"
    pattern = "store" if way == "store" else "snapshots/*/store"
    *_, folder = sorted((root / "collections" / "default").glob(pattern))
    store = OxigraphStore.open(folder)
    before = set(store.match())
    store.remove(removed)
    store.extend(added)
    after = set(store.match())
    store.flush()
    store.close()
    if before == after:  # another form of the same value
        return "unchanged"
    with opened(root) as graph:
        return "nothing" if graph.integrity().ok else "found"


def _is_knowledge(quad: Quad) -> bool:
    own = NamedNode("urn:x:mine")
    return isinstance(quad.graph_name, DefaultGraph) or quad.graph_name == own


def trials(root: Path, count: int, seed: int) -> Iterator[tuple[str, str, str, Quad]]:
    """Way, change, outcome and statement of so many changes."""
    rng = random.Random(seed)
    quads = quads_of(root)
    by_graph: dict[str, list[Quad]] = {}
    for quad in quads:
        by_graph.setdefault(str(quad.graph_name), []).append(quad)
    with tempfile.TemporaryDirectory() as place:
        for number in range(count):
            way, change = WAYS[number % len(WAYS)], rng.choice(CHANGES)
            quad = rng.choice(by_graph[rng.choice(sorted(by_graph))])
            copied = Path(place) / str(number)
            shutil.copytree(root, copied)
            removed, added = changed(quad, change, rng)
            yield way, change, outcome(copied, way, removed, added), quad
            shutil.rmtree(copied)


def main(count: int = 500, seed: int = 1) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            for way, change, what, quad in trials(make(Path(folder)), count, seed):
                counts[way, what] += 1
                if what == "nothing":
                    print(f"{way} {change}: {quad}", flush=True)
        finally:
            for (way, what), number in sorted(counts.items()):
                print(f"{way:10} {what:10} {number:5}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
