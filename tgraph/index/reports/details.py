"""Community details, read only as far as needed.

Edges are ordered by the combined degree of the ends, then by weight (GraphRAG's order). Degrees
are counted inside the community, so that a report depends on its community alone and stays
unchanged while the rest of the graph grows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import chain, islice
from typing import NamedTuple, Protocol, TypeVar

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.index.claims import claims_of
from tgraph.index.communities.communities import (
    IriPair,
    Outline,
    attributes_of,
    read_label,
    relations_between,
    weight_in,
)
from tgraph.index.evidence import EvidenceReader
from tgraph.index.reports.context import ClaimDetail, EdgeDetail, EntityDetail
from tgraph.index.sources import Texts, document_of_chunk, source_value, standing_documents
from tgraph.model import Claim, Community, Edge, Evidence
from tgraph.store.base import Store, Term

QUOTES = 2
"""The evidence that is shown for an edge."""

TOGETHER = 64
"""Edges whose evidence is looked up together: not all may be wanted."""

KEPT = 50_000
"""Edges and entities that are kept for the next level of communities."""

_SUMMARY = v.tg("summary")
_EVIDENCE = 5
"""The evidence that an entity's descriptions are traced to, at most."""

H = TypeVar("H", bound=Hashable)


class StatedEdge(NamedTuple):
    """An edge, plus the IRI of the summary describing the edge; empty if no summary exists."""

    edge: Edge
    summary: str = ""


class DetailSource(Protocol):
    """A source of entity and edge details for communities."""

    def label(self, entity: str) -> str:
        """Return the entity's label."""

    def entity(self, entity: str) -> EntityDetail:
        """Return details of the entity, leaving out links."""

    def read_edges_between(self, pair: IriPair) -> Sequence[StatedEdge]:
        """Return edges between two entities, in both directions."""

    def attributes(self, entity: str) -> Sequence[StatedEdge]:
        """Return edges from the entity to literals."""

    def evidence(self, edges: Sequence[str]) -> Mapping[str, tuple[Evidence, ...]]:
        """Return displayable evidence by edge."""


@dataclass(frozen=True)
class Details:
    """A community with its details: members, edges between members or to attributes, and claims
    by subject."""

    community: Community
    outline: Outline
    claims: Mapping[str, Sequence[ClaimDetail]]
    source: DetailSource

    @cached_property
    def links(self) -> Mapping[str, int]:
        """Number of edges at each member, inside the community."""
        link_counts = Counter(dict.fromkeys(self.community.members, 0))
        for pair, count in self.outline.ties.items():
            for end in pair:
                link_counts[end] += count
        link_counts.update(self.outline.attributes)
        return link_counts

    @property
    def relationships(self) -> int:
        """Number of edges between members."""
        return sum(self.outline.ties.values())

    def claims_of(self, members: Iterable[str]) -> list[ClaimDetail]:
        """Return claims with the given members as subjects, most important member first."""
        claimed_members = [member for member in members if self.claims.get(member)]
        return [
            claim for entity in self.entities(claimed_members) for claim in self.claims[entity.iri]
        ]

    def entities(self, of: Iterable[str]) -> Iterator[EntityDetail]:
        """Yield details of the given members, most important first."""
        for group in _group_by_rank(of, lambda one: self.links[one]):
            labelled_members = sorted((self.source.label(member), member) for member in group)
            yield from (
                replace(self.source.entity(o), links=self.links[o]) for _, o in labelled_members
            )

    def edges(self, ties: Iterable[IriPair], attributes: Iterable[str]) -> Iterator[EdgeDetail]:
        """Yield edges of the given ties, plus attribute edges of the given members, most
        important first."""
        ends: Iterable[tuple[str, ...]] = chain(ties, ((item,) for item in attributes))
        waiting: list[tuple[StatedEdge, int]] = []
        for group in _group_by_rank(ends, self._combined_degree):
            stated_edges = chain.from_iterable(map(self._read_edges, group))
            ordered = sorted(stated_edges, key=lambda one: (-one.edge.weight, one.edge.iri))
            waiting += ((item, self._combined_degree(group[0])) for item in ordered)
            if len(waiting) >= TOGETHER:
                yield from self._with_evidence(waiting)
                waiting = []
        yield from self._with_evidence(waiting)

    def _combined_degree(self, ends: tuple[str, ...]) -> int:
        return sum(self.links[end] for end in ends)

    def _read_edges(self, ends: tuple[str, ...]) -> Sequence[StatedEdge]:
        source = self.source
        return (
            source.attributes(ends[0])
            if len(ends) == 1
            else source.read_edges_between((ends[0], ends[1]))
        )

    def _with_evidence(self, stated: Sequence[tuple[StatedEdge, int]]) -> Iterator[EdgeDetail]:
        evidence = self.source.evidence([stated_edge.edge.iri for stated_edge, _ in stated])
        for stated_edge, rank in stated:
            yield EdgeDetail(
                stated_edge.edge, rank, evidence.get(stated_edge.edge.iri, ()), stated_edge.summary
            )


def entity_order(entity: EntityDetail) -> tuple[object, ...]:
    """Return a sort key placing important entities first."""
    return -entity.links, entity.name, entity.iri


def edge_order(edge: EdgeDetail) -> tuple[object, ...]:
    """Return a sort key placing important edges first."""
    return -edge.links, -edge.edge.weight, edge.iri


def _group_by_rank(items: Iterable[H], rank: Callable[[H], int]) -> Iterator[list[H]]:
    """Yield groups of equally ranked items, highest rank first."""
    groups: defaultdict[int, list[H]] = defaultdict(list)
    for item in items:
        groups[rank(item)].append(item)
    return (groups[rank_value] for rank_value in sorted(groups, reverse=True))


AT_ONCE = 5_000
"""Members whose claims are looked up together."""


class DetailReader:
    """A ``DetailSource`` reading from a store; ``outline`` returns ties and attribute counts of
    entities."""

    def __init__(
        self,
        store: Store,
        texts: Texts,
        evidence: EvidenceReader,
        outline: Callable[[Iterable[str]], Outline],
    ) -> None:
        self._store = store
        self._outline = outline
        self._texts = texts
        self._places = evidence
        self._standing = standing_documents(store)
        self.label = lru_cache(KEPT)(partial(read_label, store))
        self.entity = lru_cache(KEPT)(self._read_entity)
        self.read_edges_between = lru_cache(KEPT)(self._load_edges_between)
        self.attributes = lru_cache(KEPT)(self._read_attributes)

    def read(self, communities: Iterable[Community]) -> Iterator[Details]:
        """Yield the details of each community."""
        batch: list[Community] = []
        size = 0
        for community in communities:
            batch.append(community)
            size += len(community.members)
            if size >= AT_ONCE:
                yield from self._read_details(batch)
                batch, size = [], 0
        yield from self._read_details(batch)

    def _read_details(self, batch: Sequence[Community]) -> Iterator[Details]:
        members = sorted({member for community in batch for member in community.members})
        claims_by_subject = claims_of(self._store, self._texts, members, self._places.doubt)
        claims = {
            subject: [
                _describe_claim(claim) for claim in subject_claims if claim.subject == subject
            ]
            for subject, subject_claims in claims_by_subject.items()
        }
        for community in batch:
            yield Details(community, self._outline(community.members), claims, self)

    def evidence(self, edges: Sequence[str]) -> Mapping[str, tuple[Evidence, ...]]:
        """As ``DetailSource.evidence``."""
        return self._places.of_edges(sorted(edges), QUOTES)

    # --- edges ---

    def _load_edges_between(self, pair: IriPair) -> Sequence[StatedEdge]:
        ways = pair, pair[::-1]
        triples = (triple for way in ways for triple in relations_between(self._store, *way))
        return tuple(filter(None, map(self._read_edge, triples)))

    def _read_attributes(self, entity: str) -> Sequence[StatedEdge]:
        triples = attributes_of(self._store, entity)
        return tuple(filter(None, map(self._read_edge, triples)))

    def _read_edge(self, triple: Triple) -> StatedEdge | None:
        """Read an edge; return None if knowledge lacks the edge."""
        subject, predicate, obj = triple.subject, triple.predicate, triple.object
        assert isinstance(subject, NamedNode)
        assert isinstance(obj, NamedNode | Literal)
        edge_quads = self._knowledge_quads(v.edge_iri(subject, predicate, obj))
        weight = weight_in(edge_quads)
        if weight is None:
            return None
        ends = subject, predicate, obj
        labels = [t.value if isinstance(t, Literal) else self.label(t.value) for t in ends]
        described = " ".join(_texts_of(edge_quads, v.tg("description")))
        edge = Edge(*ends, labels[0], labels[1], labels[2], weight, described)
        return StatedEdge(edge, _summary_iri(edge_quads))

    # --- entities ---

    def _read_entity(self, iri: str) -> EntityDetail:
        entity_quads = [quad for name in _TOLD for quad in self._knowledge_quads(iri, name)]
        type_labels = sorted(
            self.label(kind.value)
            for kind in _values_of(entity_quads, v.RDF_TYPE)
            if isinstance(kind, NamedNode) and kind != v.tg("Entity")
        )
        described = _texts_of(entity_quads, v.tg("description"))
        summary = _summary_iri(entity_quads)
        evidence = (summary,) if summary else self._entity_evidence(iri, described)
        return EntityDetail(
            iri, self.label(iri), ", ".join(type_labels), 0, tuple(described), evidence
        )

    def _entity_evidence(self, entity: str, described: Sequence[str]) -> tuple[str, ...]:
        """Return standing evidence of the descriptions; without descriptions, evidence of the
        name."""
        evidence_iris = sorted(
            quad.subject.value
            for name in [entity, *self._absorbed_names(entity)]
            for quad in self._store.match(None, v.tg("entity"), NamedNode(name), v.SOURCE_GRAPH)
            if isinstance(quad.subject, NamedNode)
        )
        standing = filter(self._evidence_stands, evidence_iris)
        if not described:
            return tuple(islice(standing, 1))
        exact: list[str] = []
        telling: list[str] = []
        silent: list[str] = []
        for iri in standing:
            text = source_value(self._store, iri, v.tg("description"))
            says_so = isinstance(text, Literal) and text.value in described
            (exact if says_so else telling if text else silent).append(iri)
            if len(exact) == _EVIDENCE:
                break
        return tuple((exact or telling or silent)[:_EVIDENCE])

    def _absorbed_names(self, entity: str) -> Iterable[str]:
        for quad in self._store.match(None, v.tg("canonical"), NamedNode(entity), v.SOURCE_GRAPH):
            merge = quad.subject
            undone = self._store.match(merge, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH)
            if next(undone, None) is None:
                for absorption in self._store.match(merge, v.tg("absorbed"), None, v.SOURCE_GRAPH):
                    if isinstance(absorption.object, NamedNode):
                        yield absorption.object.value

    def _evidence_stands(self, evidence: str) -> bool:
        chunk = source_value(self._store, evidence, v.prov("wasDerivedFrom"))
        return isinstance(chunk, NamedNode) and document_of_chunk(chunk.value) in self._standing

    # --- both ---

    def _knowledge_quads(self, iri: str, predicate: NamedNode | None = None) -> tuple[Quad, ...]:
        return tuple(self._store.match(NamedNode(iri), predicate, None, v.KNOWLEDGE_GRAPH))


_TOLD = (v.RDF_TYPE, v.tg("description"), _SUMMARY)
"""What is said of an entity beside its name and its edges, which may be many."""


def _summary_iri(said: Iterable[Quad]) -> str:
    """Return the IRI of the evidence-based summary serving as description; empty if missing."""
    summary_terms = _values_of(said, _SUMMARY)
    return next((term.value for term in summary_terms if isinstance(term, NamedNode)), "")


def _texts_of(said: Iterable[Quad], predicate: NamedNode) -> list[str]:
    terms = _values_of(said, predicate)
    return sorted(term.value for term in terms if isinstance(term, Literal))


def _values_of(said: Iterable[Quad], predicate: NamedNode) -> Iterator[Term]:
    return (quad.object for quad in said if quad.predicate == predicate)


def _describe_claim(claim: Claim) -> ClaimDetail:
    """Return the claim as a single line: type, status, subjects, dates and description."""
    pair_label = f"{claim.subject_label} and {claim.object_label}" if claim.object else ""
    parts = [f"{claim.type} ({claim.status})", pair_label or claim.subject_label]
    dates = [term.value for term in (claim.started, claim.ended) if term is not None]
    parts += [" to ".join(dict.fromkeys(dates))] if dates else []
    evidence = tuple(item.iri for item in claim.evidence)
    return ClaimDetail(
        claim.iri, claim.subject, f"{', '.join(parts)}: {claim.description}", evidence
    )
