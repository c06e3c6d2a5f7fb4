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
    """Of how many entities and edges of knowledge the ontology has the class and the property, how
    many are outside it, by reason, and how many of these are kept out of knowledge."""

    entities: int
    edges: int
    outside_entities: dict[str, int]
    outside_edges: dict[str, int]
    left_out: int


@dataclass(frozen=True, slots=True)
class AddedOntology:
    """An ontology that was added: its IRI on record, what it holds, which standing ones it took the
    place of, what it imports and nobody has added, and how knowledge fits now."""

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
    """One decision about ontologies."""

    def add(self, content: bytes, name: str, iris: Sequence[str], reason: str) -> tuple[str, ...]:
        """Put an ontology on record and derive knowledge by it: its IRI on record, and those of
        which it took the place. ``UsageError`` where it stands already; then nothing changed."""
        with self._workshop() as context:
            started = context.clock()
            recorded = standing_ontologies(context.copy.store)
            previous = [o for o in recorded if o.is_version_of(name, iris)]
            strict = is_strict(context.settings, recorded)
            key = context.record.keep(content)
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
        return _iri(quads), *replaced

    def remove(self, name: str, reason: str) -> RecordedOntology:
        """Take an ontology back, found by ``find_ontology``, and derive knowledge without it."""
        check_reason(reason)
        with self._workshop() as context:
            started = context.clock()
            found = find_ontology(context.copy.store, name)
            quads = removal_quads(self.iri, found.ontology, context.clock())
            self._decide(context, "Ontology removed", reason, started, Touched(), quads)
        return found


def add_ontology(opened: OpenCollection, setup: RunSetup, path: Path, reason: str) -> AddedOntology:
    """As ``KnowledgeGraph.add_ontology``."""
    content, name = _read(path), path.name
    ontology = read_ontology(content, name)
    why = reason if reason.strip() else f"{name} leads the graph from now on."
    added, *replaced = OntologyRun(setup).add(content, name, ontology.iris, why)
    store = opened.read()
    recorded = standing_ontologies(store)
    known = {iri for each in recorded for iri in each.iris}
    return AddedOntology(
        added,
        name,
        len(ontology.classes),
        len(ontology.properties),
        ontology.has_shapes,
        is_strict(setup.settings, recorded),
        tuple(replaced),
        tuple(iri for iri in ontology.imports if iri not in known),
        count_fit(store),
    )


def _iri(quads: Sequence[Quad]) -> str:
    node = quads[0].subject
    assert isinstance(node, NamedNode)
    return node.value


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise too_large(str(path))
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from error


def find_ontology(store: Store, name: str) -> RecordedOntology:
    """The standing ontology that a name means: that of its file, with its ending or without, what
    it calls itself, or its IRI on record. ``UsageError`` where there is none, or several."""
    recorded = standing_ontologies(store)
    found = [
        each
        for each in recorded
        if name in (each.ontology, each.name, Path(each.name).stem, *each.iris)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{name!r} may be any of {len(found)}.", "Give its IRI.")
    known = [each.name for each in recorded]
    remedy = nearest_names(name, known, most=len(known)) if known else "None has been added."
    raise UsageError(f"No ontology {name!r} stands.", remedy)


def count_fit(store: Store) -> FitCounts:
    """How knowledge fits the ontologies that it was derived by."""
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
