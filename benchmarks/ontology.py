"""What an ontology makes of a corpus: how much of what was read is kept, retyped, or outside.

    python -m benchmarks.ontology examples/antarctica --ontology examples/polar.ttl

The corpus is indexed without a model and without the ontology; then the ontology is added, decided
to be strict, and removed, each with its CPU time. What is kept has the ontology's own word for it
already, what is retyped means it in other words or the other way round.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyoxigraph import NamedNode

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.extract.ontology import Ontology
from tgraph.index.standing_knowledge import StandingEvidence, term_value
from tgraph.store.base import Store

STRUCTURE = (v.relation_iri("mentions"), v.relation_iri("have section"))
"""What tgraph itself says of a document, in no words of the text."""


def entities(store: Store, ontology: Ontology) -> Iterator[str]:
    """Of each entity of knowledge: kept, retyped, or why it is outside."""
    texts = StandingEvidence(store, lambda chunk: True)
    for quad in store.match(None, v.RDF_TYPE, v.tg("Entity"), v.KNOWLEDGE_GRAPH):
        entity = term_value(quad.subject)
        kinds = store.match(quad.subject, v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH)
        found = {term_value(kind.object) for kind in kinds} & ontology.classes.keys()
        own = {t.value.casefold() for i in texts.of_entity(entity) for t in i["entityType"]}
        same = any(ontology.label(iri).casefold() in own for iri in found)
        yield _outside(store, entity) or ("kept" if same else "retyped")


def edges(store: Store, ontology: Ontology) -> Iterator[tuple[str, str]]:
    """Of each edge of knowledge its predicate, and the same."""
    texts = StandingEvidence(store, lambda chunk: True)
    for quad in store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH):
        edge = term_value(quad.subject)
        originals = store.match(quad.subject, v.tg("original"), None, v.KNOWLEDGE_GRAPH)
        found = [texts.triple(one) for one in (edge, *(term_value(q.object) for q in originals))]
        said = {triple.predicate.value for triple in found if triple is not None}
        predicate = found[0].predicate.value if found[0] else ""
        labels = {v.relation_iri(p.label) for p in ontology.properties.values()}
        how = "kept" if said == {predicate} or said & labels else "retyped"
        yield predicate, _outside(store, edge) or how


def _outside(store: Store, subject: str) -> str:
    predicate = v.tg("outsideOntology")
    found = store.match(NamedNode(subject), predicate, None, v.KNOWLEDGE_GRAPH)
    return next((term_value(quad.object) for quad in found), "")


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
        _, adding = timed(lambda: graph.ontologies.add(ontology))
        terms, store = graph.ontologies.read_terms(), graph.opened.read()
        found = list(edges(store, terms))
        print(f"{len(terms.classes)} classes, {len(terms.properties)} properties\n")
        print("| | all | kept | retyped | outside |\n|---|---|---|---|---|")
        print(row("entities", Counter(entities(store, terms))))
        print(row("edges", Counter(how for _, how in found)))
        stated = (how for predicate, how in found if predicate not in STRUCTURE)
        print(row("edges but `mentions` and `have section`", Counter(stated)))
    with opened(True) as graph:
        _, tightening = timed(lambda: graph.index([]))
        store = graph.opened.read()
        kept = sum(1 for _ in store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH))
        outside = store.query("SELECT ?e { ?e a tg:Edge ; tg:outsideOntology ?why }")
        print(f"\nStrict: {kept} edges in knowledge, {len(list(outside))} of them outside.")  # type: ignore[arg-type]
        _, removing = timed(lambda: graph.ontologies.remove(ontology.name, reason="Measured."))
        holds = graph.audit("knowledge").passed
    times = f"read {reading:.1f}, ontology added {adding:.1f}, strict {tightening:.1f}"
    print(f"CPU seconds: {times}, removed {removing:.1f}.")
    print(f"Knowledge follows from the record: {'yes' if holds else 'no'}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--ontology", type=Path, required=True)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        measure(arguments.corpus, arguments.ontology, Path(folder))


if __name__ == "__main__":
    main()
