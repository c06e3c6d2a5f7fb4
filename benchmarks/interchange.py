"""Knowledge out and in again: what is the same, by counts and by the RDFC-1.0 hash.

    python -m benchmarks.interchange [GRAPH...]

Without arguments: the example corpus, indexed, and the example graphs, imported. A folder that
``tgraph import`` reads may be named, such as tables of GraphRAG.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import tgraph
from tgraph.extensions.interchange import export_knowledge, hash_knowledge, import_graph
from tgraph.extensions.interchange.knowledge.statements import KnowledgeHash

EXAMPLES = Path(__file__).parent.parent / "examples"
FORMATS = {
    "trig": "knowledge.trig",
    "turtle": "knowledge.ttl",
    "nquads": "knowledge.nq",
    "graphml": "knowledge.graphml",
    "graphrag": "tables",
}
SETTINGS = {"embedding.provider": "hashing"}
_SHOWN = 12


def opened(root: Path) -> tgraph.KnowledgeGraph:
    return tgraph.open(root, create=True, settings=SETTINGS)


def shown(found: KnowledgeHash) -> str:
    counts = f"{found.entities:,} | {found.edges:,} | {found.claims:,} | {found.quads:,}"
    return f"{counts} | `{found.hash[:_SHOWN]}`"


def tell(name: str, graph: tgraph.KnowledgeGraph, scratch: Path) -> None:
    """A row for what the graph knows, and one for each format that comes back."""
    known = hash_knowledge(graph)
    print(f"| {name} | | {shown(known)} | |")
    for form, file in FORMATS.items():
        export_knowledge(graph, scratch / file, form)
        with opened(scratch / f"g-{form}") as fresh:
            import_graph(fresh, [scratch / file])
            found = hash_knowledge(fresh)
        print(f"| | {form} | {shown(found)} | {'yes' if found == known else 'no'} |", flush=True)


def main(graphs: list[str]) -> None:
    print("| graph | through | entities | edges | claims | statements | hash | the same |")
    print("|---|---|---|---|---|---|---|---|")
    for number, given in enumerate(graphs or ("corpus", "graphs")):
        with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "g") as graph:
            if not graphs and number == 0:
                graph.index([EXAMPLES / "antarctica"])
            else:
                import_graph(graph, [given if graphs else EXAMPLES / "graphs"])
            tell(Path(given).name, graph, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
