"""What an ontology makes of a corpus: how much of what was read is kept, retyped, or outside.

    python -m benchmarks.ontology examples/antarctica --ontology examples/polar.ttl

The corpus is indexed without a model and without the ontology; then the ontology is added, decided
to be strict, and removed, each with its CPU time. What is kept has the ontology's own word for it
already, what is retyped means it in other words or the other way round.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.extract.ontology_reader import read_ontology
from tgraph.index.ontology_fit import EdgeFit, EntityFit, OntologyFit
from tgraph.index.standing_knowledge import StandingEvidence, value
from tgraph.record.merges import standing_merges
from tgraph.store.base import Store

STRUCTURE = (v.relation_iri("mentions"), v.relation_iri("have section"))
"""What tgraph itself says of a document, in no words of the text."""


class Fitted:
    """Every entity and edge of knowledge, and how it fits."""

    def __init__(self, store: Store, fit: OntologyFit) -> None:
        self._store = store
        self._fit = fit
        self._texts = StandingEvidence(store, lambda chunk: True)
        self._absorbed: defaultdict[str, list[str]] = defaultdict(list)
        for name, entity in standing_merges(store).items():
            self._absorbed[entity].append(name)
        self._known: dict[str, EntityFit] = {}

    def entity(self, entity: str) -> EntityFit:
        if entity not in self._known:
            members = sorted({entity, *self._absorbed[entity]})
            evidence = [item for name in members for item in self._texts.of_entity(name)]
            self._known[entity] = self._fit.entity(evidence)
        return self._known[entity]

    def entities(self) -> Iterator[EntityFit]:
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH):
            yield self.entity(value(quad.subject))

    def edges(self) -> Iterator[tuple[str, EdgeFit]]:
        """Each with its predicate."""
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH):
            triple = self._texts.triple(value(quad.subject))
            assert triple is not None
            yield triple.predicate.value, self._fit.edge(triple, self.entity)


def counted(fits: Iterator[EntityFit] | Iterator[EdgeFit]) -> Counter[str]:
    """How many are kept, retyped, and outside for each reason."""
    return Counter(fit.reason or fit.how or "kept" for fit in fits)


def row(name: str, found: Counter[str]) -> str:
    total = sum(found.values()) or 1
    outside = {reason: n for reason, n in found.items() if reason not in ("kept", "retyped")}
    why = ", ".join(f"{n} {reason}" for reason, n in sorted(outside.items(), key=lambda r: -r[1]))
    cells = [f"{n} ({n / total:.0%})" for n in (found["kept"], found["retyped"])]
    gone = sum(outside.values())
    return f"| {name} | {total} | {' | '.join(cells)} | {gone} ({gone / total:.0%}): {why} |"


def timed(what: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the seconds of CPU that it took."""
    began = time.process_time()
    return what(), time.process_time() - began


def measure(corpus: Path, ontology: Path, folder: Path) -> None:
    def opened(strict: bool) -> KnowledgeGraph:
        values = {"ontology.strict": strict}
        return tgraph.open(folder / "graph", create=True, settings=values)

    with opened(False) as graph:
        _, reading = timed(lambda: graph.index([corpus]))
        fit = OntologyFit(read_ontology(ontology.read_bytes(), ontology.name))
        fitted = Fitted(graph.read(), fit)
        edges = list(fitted.edges())
        print(f"{len(fit.ontology.classes)} classes, {len(fit.ontology.properties)} properties\n")
        print("| | all | kept | retyped | outside |\n|---|---|---|---|---|")
        print(row("entities", counted(fitted.entities())))
        print(row("edges", counted(each for _, each in edges)))
        stated = (each for predicate, each in edges if predicate not in STRUCTURE)
        print(row("edges but `mentions` and `have section`", counted(stated)))
        _, adding = timed(lambda: graph.add_ontology(ontology))
    with opened(True) as graph:
        _, tightening = timed(lambda: graph.index([]))
        store = graph.read()
        kept = sum(1 for _ in store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH))
        outside = store.query("SELECT ?e { ?e a tg:Edge ; tg:outsideOntology ?why }", union=False)
        print(f"\nStrict: {kept} edges in knowledge, {len(list(outside))} of them outside.")  # type: ignore[arg-type]
        _, removing = timed(lambda: graph.remove_ontology(ontology.name, reason="Measured."))
        holds = graph.audit("knowledge").passed
    times = f"read {reading:.1f}, ontology added {adding:.1f}, strict {tightening:.1f}"
    print(
        f"CPU seconds: {times}, removed {removing:.1f}. Knowledge follows from the record: {holds}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--ontology", type=Path, required=True)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        measure(arguments.corpus, arguments.ontology, Path(folder))


if __name__ == "__main__":
    main()
