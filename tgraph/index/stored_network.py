"""The network of graph ranking as the store has it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from pyoxigraph import Literal, Triple

from tgraph import vocabulary as v
from tgraph.index.evidence import StoredEvidence
from tgraph.index.network_ties import (
    Headings,
    NetworkTies,
    WeightedPairs,
    Wording,
    merged_names,
    synonym_pairs,
)
from tgraph.index.vectors.base import VectorIndex
from tgraph.store.base import Store, text_of


class StoredNetwork:
    """A ``NetworkSource`` that reads the statements of the store."""

    def __init__(self, store: Store, vectors: Mapping[str, VectorIndex], wording: Wording) -> None:
        self._store = store
        self._vectors = vectors
        self._wording = wording

    def ties(self, least: float) -> NetworkTies:
        entities, chunks = self._vectors["entity"].keys, self._vectors["chunk"].keys
        nodes = {iri: node for node, iri in enumerate((*entities, *chunks))}
        into = {name: nodes.get(entity, -1) for name, entity in self._merge_targets.items()}
        entity_nodes = {iri: nodes[iri] for iri in entities} | into
        mentions = [
            (entity_nodes.get(entity, -1), nodes.get(chunk, -1))
            for entity, places in StoredEvidence(self._store).mentions().items()
            for chunk in places
        ]
        subjects = [
            (entity_nodes.get(entity, -1), nodes[chunk])
            for chunk in chunks
            for entity in self._headings.subjects(chunk)
        ]
        facts = [
            (nodes.get(source, -1), nodes.get(target, -1)) for source, target in self._relations()
        ]
        return NetworkTies(
            _pairs(facts),
            _pairs(mentions, add=False),
            _pairs(subjects, add=False),
            synonym_pairs(self._vectors["entity"], least, self._wording),
        )

    def merged_into(self, names: Iterable[str]) -> dict[str, str]:
        return {name: self._merge_targets[name] for name in names if name in self._merge_targets}

    def find_named_resources(self, forms: Iterable[str]) -> dict[str, set[str]]:
        index = self._resources_by_form
        return {form: index[form] for form in set(forms) if form in index}

    def _relations(self) -> Iterator[tuple[str, str]]:
        """The ends of the relationships that have vectors, under the names of the texts."""
        edges = frozenset(self._vectors["edge"].keys)
        for quad in self._store.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
            if text_of(quad.subject) in edges and isinstance(quad.object, Triple):
                yield text_of(quad.object.subject), text_of(quad.object.object)

    @cached_property
    def _merge_targets(self) -> Mapping[str, str]:
        return merged_names(self._store)

    @cached_property
    def _headings(self) -> Headings:
        return Headings(self._store)

    @cached_property
    def _resources_by_form(self) -> Mapping[str, set[str]]:
        resources: defaultdict[str, set[str]] = defaultdict(set)
        for predicate in (v.RDFS_LABEL, v.SKOS_ALT_LABEL):
            for quad in self._store.match(None, predicate, None, v.KNOWLEDGE_GRAPH):
                if isinstance(quad.object, Literal):
                    for form in self._wording.name_forms(quad.object.value):
                        resources[form].add(text_of(quad.subject))
        for chunk in self._vectors["chunk"].keys:
            for title in self._headings.titles(chunk):
                for form in self._wording.title_forms(title):
                    resources[form].add(chunk)
        return resources


def _pairs(ends: Collection[tuple[int, int]], *, add: bool = True) -> WeightedPairs:
    """The pairs with the weight 1 each time that they come, or once."""
    sources, targets = zip(*ends, strict=True) if ends else ((), ())
    return WeightedPairs.from_ends(sources, targets, [1.0] * len(ends), add=add)
