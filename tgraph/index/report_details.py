"""All that knowledge says of communities, ordered by importance: the material of their reports.

Importance is the combined degree of an edge's ends, then its weight (GraphRAG's order). Degrees are
counted inside the community, so that a report depends on its community alone and stays as it is
while the rest of the graph grows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.claims import claims_of
from tgraph.index.evidence import EvidenceReader
from tgraph.index.knowledge import is_statement
from tgraph.index.report_context import ClaimDetail, Details, EdgeDetail, EntityDetail
from tgraph.index.sources import Texts, document_of_chunk, standing_documents, value
from tgraph.model import Claim, Community, Edge
from tgraph.store.base import Store

QUOTES = 2
"""The evidence that is shown for an edge."""

AT_ONCE = 5_000
"""Edges whose evidence is looked up together."""

_EVIDENCE = 5
"""The evidence that an entity's descriptions are traced to, at most."""


class DetailReader:
    """Reads the details of communities from a store."""

    def __init__(self, store: Store, texts: Texts, evidence: EvidenceReader) -> None:
        self._store = store
        self._texts = texts
        self._places = evidence
        self._standing = standing_documents(store)
        self._label = lru_cache(maxsize=None)(self._read_label)
        self._edge = lru_cache(maxsize=None)(self._read_edge)
        self._entity = lru_cache(maxsize=None)(self._read_entity)

    def read(self, communities: Iterable[Community]) -> Iterator[Details]:
        """Everything about each community: its members, all edges between them, the attributes of
        its members (edges to literals), and the claims of which they are the subject."""
        batch: list[tuple[Community, dict[str, Edge]]] = []
        size = 0
        for community in communities:
            edges = [*map(self._edge_of, community.edges), *self._attributes(community.members)]
            known = {edge.iri: edge for edge in edges if edge is not None}
            batch.append((community, known))
            size += len(known)
            if size >= AT_ONCE:
                yield from self._details(batch)
                batch, size = [], 0
        yield from self._details(batch)

    def _details(self, batch: Sequence[tuple[Community, dict[str, Edge]]]) -> Iterator[Details]:
        wanted = sorted({iri for _, edges in batch for iri in edges})
        evidence = self._places.of_edges(wanted, QUOTES)
        entities = sorted({member for community, _ in batch for member in community.members})
        claims = claims_of(self._store, self._texts, entities)
        for community, edges in batch:
            links = Counter(end for edge in edges.values() for end in _ends(edge))
            rank = {iri: sum(links[end] for end in _ends(edge)) for iri, edge in edges.items()}
            ordered = sorted(edges, key=lambda iri: (-rank[iri], -edges[iri].weight, iri))
            members = [replace(self._entity(iri), links=links[iri]) for iri in community.members]
            members.sort(key=lambda entity: (-entity.links, entity.name, entity.iri))
            yield Details(
                community,
                tuple(members),
                tuple(
                    EdgeDetail(edges[iri], rank[iri], evidence.get(iri, ()), self._summary(iri))
                    for iri in ordered
                ),
                tuple(
                    _claim(claim)
                    for member in members
                    for claim in claims.get(member.iri, ())
                    if claim.subject == member.iri
                ),
            )

    # --- edges ---

    def _edge_of(self, iri: str) -> Edge | None:
        """The edge behind an IRI; None where knowledge does not hold it any more."""
        triple = value(self._store, iri, v.RDF_REIFIES)
        return self._edge(triple) if isinstance(triple, Triple) else None

    def _attributes(self, members: Iterable[str]) -> Iterable[Edge | None]:
        for member in members:
            for quad in self._store.match(NamedNode(member), None, None, v.KNOWLEDGE_GRAPH):
                if isinstance(quad.object, Literal) and is_statement(quad.predicate):
                    yield self._edge(quad.triple)

    def _read_edge(self, triple: Triple) -> Edge | None:
        subject, predicate, obj = triple.subject, triple.predicate, triple.object
        assert isinstance(subject, NamedNode)
        assert isinstance(obj, NamedNode | Literal)
        iri = v.edge_iri(subject, predicate, obj)
        weights = self._texts_of(iri, v.tg("weight"))
        if not weights:
            return None
        ends = subject, predicate, obj
        labels = [t.value if isinstance(t, Literal) else self._label(t.value) for t in ends]
        described = " ".join(self._texts_of(iri, v.tg("description")))
        return Edge(*ends, labels[0], labels[1], labels[2], float(weights[0]), described)

    # --- entities ---

    def _read_entity(self, iri: str) -> EntityDetail:
        types = self._store.match(NamedNode(iri), v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH)
        named = sorted(
            self._label(quad.object.value)
            for quad in types
            if isinstance(quad.object, NamedNode) and quad.object != v.tg("Entity")
        )
        described = self._texts_of(iri, v.tg("description"))
        summary = self._summary(iri)
        evidence = (summary,) if summary else self._evidence(iri, described)
        return EntityDetail(iri, self._label(iri), ", ".join(named), 0, tuple(described), evidence)

    def _evidence(self, entity: str, described: Sequence[str]) -> tuple[str, ...]:
        """The standing evidence of the descriptions; of the name alone where there is none."""
        found = sorted(
            quad.subject.value
            for name in [entity, *self._absorbed(entity)]
            for quad in self._store.match(None, v.tg("entity"), NamedNode(name), v.SOURCE_GRAPH)
            if isinstance(quad.subject, NamedNode)
        )
        standing = filter(self._stands, found)
        if not described:
            return tuple(islice(standing, 1))
        said = [(iri, value(self._store, iri, v.tg("description"))) for iri in standing]
        exact = [iri for iri, text in said if isinstance(text, Literal) and text.value in described]
        telling = exact or [iri for iri, text in said if text] or [iri for iri, _ in said]
        return tuple(telling[:_EVIDENCE])

    def _absorbed(self, entity: str) -> Iterable[str]:
        for quad in self._store.match(None, v.tg("canonical"), NamedNode(entity), v.SOURCE_GRAPH):
            merge = quad.subject
            undone = self._store.match(merge, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH)
            if next(undone, None) is None:
                for other in self._store.match(merge, v.tg("absorbed"), None, v.SOURCE_GRAPH):
                    if isinstance(other.object, NamedNode):
                        yield other.object.value

    def _stands(self, evidence: str) -> bool:
        chunk = value(self._store, evidence, v.prov("wasDerivedFrom"))
        return isinstance(chunk, NamedNode) and document_of_chunk(chunk.value) in self._standing

    # --- both ---

    def _summary(self, iri: str) -> str:
        """The summary that the description is, which is derived from evidence; empty for none."""
        found = self._store.match(NamedNode(iri), v.tg("summary"), None, v.KNOWLEDGE_GRAPH)
        return next((q.object.value for q in found if isinstance(q.object, NamedNode)), "")

    def _texts_of(self, iri: str, predicate: NamedNode) -> list[str]:
        found = self._store.match(NamedNode(iri), predicate, None, v.KNOWLEDGE_GRAPH)
        return sorted(quad.object.value for quad in found if isinstance(quad.object, Literal))

    def _read_label(self, iri: str) -> str:
        return next(iter(self._texts_of(iri, v.RDFS_LABEL)), iri)


def _ends(edge: Edge) -> list[str]:
    return [node.value for node in (edge.subject, edge.object) if isinstance(node, NamedNode)]


def _claim(claim: Claim) -> ClaimDetail:
    """The claim in one line: what sort, whether it holds, of whom, when, and what is said."""
    about = f"{claim.subject_label} and {claim.object_label}" if claim.object else ""
    parts = [f"{claim.type} ({claim.status})", about or claim.subject_label]
    dates = [term.value for term in (claim.started, claim.ended) if term is not None]
    parts += [" to ".join(dict.fromkeys(dates))] if dates else []
    evidence = tuple(item.iri for item in claim.evidence)
    return ClaimDetail(
        claim.iri, claim.subject, f"{', '.join(parts)}: {claim.description}", evidence
    )
