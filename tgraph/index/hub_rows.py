"""Hubs in the tables: a row each, which depends on the edges of the entity and their evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.index.changed_keys import ChangedKeys
from tgraph.index.evidence import EvidenceReader
from tgraph.index.graph_source import HUB, Edges
from tgraph.index.hub import Hub, HubRow, term_marks
from tgraph.index.lookup_rows import TERMS, EvidenceRows, statements_of
from tgraph.index.sources import Texts
from tgraph.index.table_reader import TableReader, packed_edge, unpacked_edge

KEPT_HUB = 20
"""Edges beyond which those of an entity are kept with their words."""

READ_EVIDENCE = 12
"""Sentences read of one edge."""

_HUBS_AT_ONCE = 100
_EDGES_AT_ONCE = 2_000
_EDGE_IRI = re.compile(re.escape(f"{v.URN}edge:") + "[0-9a-f]{40}")

_HUB = "SELECT iri, edges, places, sizes, terms FROM hub WHERE iri = ?"
_STATED = f"{TERMS} WHERE iri = ? AND stated"
_DEGREES = "SELECT iri, degree FROM entity WHERE degree > ? ORDER BY iri"
_AT_END = "SELECT iri FROM edge WHERE {} = (SELECT number FROM text WHERE text = ?) AND stated"
_ENDS = tuple(f"{_AT_END.format(end)} ORDER BY iri LIMIT ?" for end in ("subject", "object"))

Terms = Callable[[str], Collection[str]]
"""Returns the terms of a sentence that a question is compared with."""


class HubRows:
    """A ``EntityHubSource``: the entities with more than ``KEPT_HUB`` edges."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader

    def hubs(self, entities: Iterable[str]) -> dict[str, Hub]:
        rows = self._reader.rows_by_key("hub", _HUB, zip(entities))
        return {entity: Hub.from_row(HubRow(*columns)) for entity, *columns in rows}

    def triples(self, edges: Iterable[str]) -> Edges:
        keys = zip(map(packed_edge, edges))
        return statements_of(self._reader.rows_by_key("edge", _STATED, keys))


def write_hub_rows(
    reader: TableReader, texts: Texts, terms_of: Terms, changed: ChangedKeys | None = None
) -> None:
    """Write the rows of all hubs, or of the hubs among the ``changed`` resources."""
    # a question that reads the evidence is told of doubts
    evidence = EvidenceReader(EvidenceRows(reader), texts, lambda error: None)
    degrees = reader.matching_rows("entity", _DEGREES, [(KEPT_HUB,)])[0]
    keys = None if changed is None else set(changed.resources)
    entities = sorted(entity for entity, _ in degrees if keys is None or entity in keys)
    sentences: dict[str, tuple[bytes, ...]] = {}
    rows = []
    for start in range(0, len(entities), _HUBS_AT_ONCE):
        batch = entities[start : start + _HUBS_AT_ONCE]
        edges_by_entity = {entity: _edges_at(reader, entity) for entity in batch}
        if changed is not None:
            for hub in HubRows(reader).hubs(batch).values():
                unchanged = hub.sentences().items()
                sentences |= {edge: s for edge, s in unchanged if edge not in changed.edges}
        missing = [e for e in dict.fromkeys(chain(*edges_by_entity.values())) if e not in sentences]
        sentences |= _read_sentences(missing, evidence, terms_of)
        rows += [
            (entity, *HubRow.from_sentences({edge: sentences[edge] for edge in edges}))
            for entity, edges in edges_by_entity.items()
            if len(edges) > KEPT_HUB and all(map(_EDGE_IRI.fullmatch, edges))
        ]
    reader.write("hub", rows, keys)


def _edges_at(reader: TableReader, entity: str) -> list[str]:
    """The edges that ``StatementRows.read_edges_around`` gives, in the order of their IRIs."""
    values = [(str(NamedNode(entity)), HUB + len(reader.changed_keys["edge"]))]
    edges: set[str] = set()
    for query in _ENDS:
        [rows] = reader.matching_rows("edge", query, values)
        edges.update(sorted(unpacked_edge(iri) for (iri,) in rows)[:HUB])
    return sorted(edges)


def _read_sentences(
    edges: Sequence[str], evidence: EvidenceReader, terms_of: Terms
) -> dict[str, tuple[bytes, ...]]:
    """For each edge the marks of the terms of each of its sentences."""
    sentences: dict[str, tuple[bytes, ...]] = {}
    for start in range(0, len(edges), _EDGES_AT_ONCE):
        batch = edges[start : start + _EDGES_AT_ONCE]
        places = evidence.of_edges(batch, READ_EVIDENCE)
        for edge in batch:
            quotes = (place.quote for place in places.get(edge, ()))
            sentences[edge] = tuple(term_marks(terms_of(quote)) for quote in quotes)
    return sentences
