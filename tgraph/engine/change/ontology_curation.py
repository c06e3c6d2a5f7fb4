"""Ontologies are added and removed: decisions of a user, from which knowledge is derived anew.

No document is read again and no extraction is asked for: what was read is evidence in the words of
the texts, and another ontology is another way to fit it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.change.entity_curation import CurationRun, check_reason
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import RunSetup
from tgraph.errors import UsageError, nearest_names
from tgraph.extract.ontology_reader import MOST_BYTES, read_ontology, too_large
from tgraph.index.touched import Touched
from tgraph.record.ontologies import (
    RecordedOntology,
    is_strict,
    ontology_quads,
    removal_quads,
    standing_ontologies,
)
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class FitCounts:
    """Ontology fit counts: entities and edges inside, those outside by reason, and the number
    left out of knowledge."""

    entities: int
    edges: int
    outside_entities: dict[str, int]
    outside_edges: dict[str, int]
    left_out: int


@dataclass(frozen=True, slots=True)
class AddedOntology:
    """An added ontology: recorded IRI, contents, superseded ontologies, missing imports, and
    current knowledge fit."""

    ontology: str
    name: str
    classes: int
    properties: int
    shapes: bool
    strict: bool
    superseded: tuple[str, ...]
    missing: tuple[str, ...]
    fit: FitCounts


class OntologyRun(CurationRun):
    """A decision about ontologies."""

    def add(self, content: bytes, name: str, iris: Sequence[str], reason: str) -> tuple[str, ...]:
        """Record an ontology and derive knowledge from it; return the ontology's IRI and
        superseded IRIs.

        Raises ``UsageError`` if the ontology stands already; then nothing changed."""
        with self._workshop() as context:
            started = context.clock()
            recorded = standing_ontologies(context.copy.store)
            previous = [o for o in recorded if o.is_version_of(name, iris)]
            strict = is_strict(context.settings, recorded)
            key = context.record.keep_content(content)
            if any(o.content == key and o.strict == strict for o in previous):
                raise UsageError(f"{name} stands already.", "`tgraph ontology list` lists them.")
            replaced = [o.ontology for o in previous]
            quads = ontology_quads(
                self.iri,
                name,
                iris,
                key,
                context.clock(),
                strict=strict,
                previous=replaced,
            )
            self._decide(context, "Ontology added", reason, started, Touched(), quads)
        return _subject_iri(quads), *replaced

    def remove(self, name: str, reason: str) -> RecordedOntology:
        """Remove an ontology, found by ``find_ontology``, and derive knowledge without it."""
        check_reason(reason)
        with self._workshop() as context:
            started = context.clock()
            ontology = find_ontology(context.copy.store, name)
            quads = removal_quads(self.iri, ontology.ontology, context.clock())
            self._decide(context, "Ontology removed", reason, started, Touched(), quads)
        return ontology


def add_ontology(opened: OpenCollection, setup: RunSetup, path: Path, reason: str) -> AddedOntology:
    """As ``KnowledgeGraph.add_ontology``."""
    content, name = _read_ontology(path), path.name
    ontology = read_ontology(content, name)
    why = reason if reason.strip() else f"{name} leads the graph from now on."
    added, *replaced = OntologyRun(setup).add(content, name, ontology.iris, why)
    store = opened.read()
    recorded = standing_ontologies(store)
    known_iris = {iri for entry in recorded for iri in entry.iris}
    return AddedOntology(
        added,
        name,
        len(ontology.classes),
        len(ontology.properties),
        ontology.has_shapes,
        is_strict(setup.settings, recorded),
        tuple(replaced),
        tuple(iri for iri in ontology.imports if iri not in known_iris),
        count_fit(store),
    )


def _subject_iri(quads: Sequence[Quad]) -> str:
    node = quads[0].subject
    assert isinstance(node, NamedNode)
    return node.value


def _read_ontology(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise too_large(str(path))
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from error


def find_ontology(store: Store, name: str) -> RecordedOntology:
    """Return the standing ontology matching a name.

    A name is a file name with or without its ending, the ontology's own name, or its IRI on
    record. Raises ``UsageError`` for no match, or several."""
    recorded = standing_ontologies(store)
    matches = [
        entry
        for entry in recorded
        if name in (entry.ontology, entry.name, Path(entry.name).stem, *entry.iris)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"{name!r} may be any of {len(matches)}.", "Give its IRI.")
    ontology_names = [entry.name for entry in recorded]
    remedy = (
        nearest_names(name, ontology_names, most=len(ontology_names))
        if ontology_names
        else "There is no ontology."
    )
    raise UsageError(f"No ontology {name!r} stands.", remedy)


def count_fit(store: Store) -> FitCounts:
    """Count knowledge inside and outside the ontologies used for its derivation."""
    outside: dict[str, dict[str, int]] = {"entity": {}, "edge": {}}
    left_out = 0
    for quad in store.match(None, v.tg("outsideOntology"), None, v.KNOWLEDGE_GRAPH):
        assert isinstance(quad.subject, NamedNode)
        kind = "edge" if quad.subject.value.startswith(f"{v.URN}edge:") else "entity"
        reason = quad.object.value  # type: ignore[union-attr]
        outside[kind][reason] = outside[kind].get(reason, 0) + 1
        types = store.match(quad.subject, v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH)
        left_out += next(types, None) is None
    entities, edges = (
        sum(1 for _ in store.match(None, v.RDF_TYPE, v.tg(kind), v.KNOWLEDGE_GRAPH))
        for kind in ("Entity", "Edge")
    )
    return FitCounts(
        entities,
        edges,
        dict(sorted(outside["entity"].items())),
        dict(sorted(outside["edge"].items())),
        left_out,
    )
