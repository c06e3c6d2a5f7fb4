"""What there is to say of a community, read as far as it is asked for.

The order of importance is the combined degree of an edge's ends, then its weight (GraphRAG's
order). Degrees are counted inside the community, so that a report depends on its community alone
and stays as it is while the rest of the graph grows.
"""

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
    Outline,
    Pair,
    attributes_of,
    label,
    relations_between,
    weight_in,
)
from tgraph.index.evidence import EvidenceReader
from tgraph.index.reports.context import ClaimDetail, EdgeDetail, EntityDetail
from tgraph.index.sources import Texts, document_of_chunk, standing_documents, value
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
    """An edge, and the summary that its description is; empty for none."""

    edge: Edge
    summary: str = ""


class DetailSource(Protocol):
    """Who knows what there is to say."""

    def label(self, entity: str) -> str:
        """What the entity is called."""

    def entity(self, entity: str) -> EntityDetail:
        """What there is to say of it; nothing is said of its links."""

    def between(self, pair: Pair) -> Sequence[StatedEdge]:
        """The edges between two entities, both ways."""

    def attributes(self, entity: str) -> Sequence[StatedEdge]:
        """The edges from the entity to literals."""

    def evidence(self, edges: Sequence[str]) -> Mapping[str, tuple[Evidence, ...]]:
        """The evidence to show for the edges."""


@dataclass(frozen=True)
class Details:
    """A community with all that there is to say of it: its members, the edges between them and to
    their attributes, and the claims of which they are the subject, which are at hand by it."""

    community: Community
    outline: Outline
    claims: Mapping[str, Sequence[ClaimDetail]]
    source: DetailSource

    @cached_property
    def links(self) -> Mapping[str, int]:
        """The edges at each member, inside the community."""
        found = Counter(dict.fromkeys(self.community.members, 0))
        for pair, count in self.outline.ties.items():
            for end in pair:
                found[end] += count
        found.update(self.outline.attributes)
        return found

    @property
    def relationships(self) -> int:
        """The edges between members."""
        return sum(self.outline.ties.values())

    def claims_of(self, members: Iterable[str]) -> list[ClaimDetail]:
        """The claims of which these are the subject, of the most important member first."""
        told = [member for member in members if self.claims.get(member)]
        return [claim for entity in self.entities(told) for claim in self.claims[entity.iri]]

    def entities(self, of: Iterable[str]) -> Iterator[EntityDetail]:
        """These of the members, the most important first."""
        for group in _ranked(of, lambda one: self.links[one]):
            named = sorted((self.source.label(one), one) for one in group)
            yield from (replace(self.source.entity(o), links=self.links[o]) for _, o in named)

    def edges(self, ties: Iterable[Pair], attributes: Iterable[str]) -> Iterator[EdgeDetail]:
        """Those of the ties and those to attributes of some members, the most important first."""
        ends: Iterable[tuple[str, ...]] = chain(ties, ((one,) for one in attributes))
        waiting: list[tuple[StatedEdge, int]] = []
        for group in _ranked(ends, self._rank):
            stated = chain.from_iterable(map(self._stated, group))
            ordered = sorted(stated, key=lambda one: (-one.edge.weight, one.edge.iri))
            waiting += ((one, self._rank(group[0])) for one in ordered)
            if len(waiting) >= TOGETHER:
                yield from self._with_evidence(waiting)
                waiting = []
        yield from self._with_evidence(waiting)

    def _rank(self, ends: tuple[str, ...]) -> int:
        return sum(self.links[end] for end in ends)

    def _stated(self, ends: tuple[str, ...]) -> Sequence[StatedEdge]:
        source = self.source
        return source.attributes(ends[0]) if len(ends) == 1 else source.between((ends[0], ends[1]))

    def _with_evidence(self, stated: Sequence[tuple[StatedEdge, int]]) -> Iterator[EdgeDetail]:
        evidence = self.source.evidence([one.edge.iri for one, _ in stated])
        for one, rank in stated:
            yield EdgeDetail(one.edge, rank, evidence.get(one.edge.iri, ()), one.summary)


def entity_order(entity: EntityDetail) -> tuple[object, ...]:
    """The most important first."""
    return -entity.links, entity.name, entity.iri


def edge_order(edge: EdgeDetail) -> tuple[object, ...]:
    """The most important first."""
    return -edge.links, -edge.edge.weight, edge.iri


def _ranked(items: Iterable[H], rank: Callable[[H], int]) -> Iterator[list[H]]:
    """The items of equal rank together, the highest rank first."""
    groups: defaultdict[int, list[H]] = defaultdict(list)
    for item in items:
        groups[rank(item)].append(item)
    return (groups[each] for each in sorted(groups, reverse=True))


AT_ONCE = 5_000
"""Members whose claims are looked up together."""


class DetailReader:
    """A ``DetailSource`` that reads a store. ``outline`` says what is between some entities."""

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
        self.label = lru_cache(KEPT)(partial(label, store))
        self.entity = lru_cache(KEPT)(self._read_entity)
        self.between = lru_cache(KEPT)(self._read_between)
        self.attributes = lru_cache(KEPT)(self._read_attributes)

    def read(self, communities: Iterable[Community]) -> Iterator[Details]:
        """The details of each community."""
        batch: list[Community] = []
        size = 0
        for community in communities:
            batch.append(community)
            size += len(community.members)
            if size >= AT_ONCE:
                yield from self._details(batch)
                batch, size = [], 0
        yield from self._details(batch)

    def _details(self, batch: Sequence[Community]) -> Iterator[Details]:
        members = sorted({member for community in batch for member in community.members})
        found = claims_of(self._store, self._texts, members, self._places.doubt)
        claims = {
            subject: [_claim(claim) for claim in known if claim.subject == subject]
            for subject, known in found.items()
        }
        for community in batch:
            yield Details(community, self._outline(community.members), claims, self)

    def evidence(self, edges: Sequence[str]) -> Mapping[str, tuple[Evidence, ...]]:
        """As ``DetailSource.evidence``."""
        return self._places.of_edges(sorted(edges), QUOTES)

    # --- edges ---

    def _read_between(self, pair: Pair) -> Sequence[StatedEdge]:
        ways = pair, pair[::-1]
        triples = (triple for way in ways for triple in relations_between(self._store, *way))
        return tuple(filter(None, map(self._read_edge, triples)))

    def _read_attributes(self, entity: str) -> Sequence[StatedEdge]:
        triples = attributes_of(self._store, entity)
        return tuple(filter(None, map(self._read_edge, triples)))

    def _read_edge(self, triple: Triple) -> StatedEdge | None:
        """None where knowledge has no such edge."""
        subject, predicate, obj = triple.subject, triple.predicate, triple.object
        assert isinstance(subject, NamedNode)
        assert isinstance(obj, NamedNode | Literal)
        said = self._said(v.edge_iri(subject, predicate, obj))
        weight = weight_in(said)
        if weight is None:
            return None
        ends = subject, predicate, obj
        labels = [t.value if isinstance(t, Literal) else self.label(t.value) for t in ends]
        described = " ".join(_texts_of(said, v.tg("description")))
        edge = Edge(*ends, labels[0], labels[1], labels[2], weight, described)
        return StatedEdge(edge, _summary(said))

    # --- entities ---

    def _read_entity(self, iri: str) -> EntityDetail:
        said = [quad for name in _TOLD for quad in self._said(iri, name)]
        named = sorted(
            self.label(kind.value)
            for kind in _values_of(said, v.RDF_TYPE)
            if isinstance(kind, NamedNode) and kind != v.tg("Entity")
        )
        described = _texts_of(said, v.tg("description"))
        summary = _summary(said)
        evidence = (summary,) if summary else self._evidence(iri, described)
        return EntityDetail(iri, self.label(iri), ", ".join(named), 0, tuple(described), evidence)

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
        exact: list[str] = []
        telling: list[str] = []
        silent: list[str] = []
        for iri in standing:
            text = value(self._store, iri, v.tg("description"))
            says_so = isinstance(text, Literal) and text.value in described
            (exact if says_so else telling if text else silent).append(iri)
            if len(exact) == _EVIDENCE:
                break
        return tuple((exact or telling or silent)[:_EVIDENCE])

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

    def _said(self, iri: str, predicate: NamedNode | None = None) -> tuple[Quad, ...]:
        return tuple(self._store.match(NamedNode(iri), predicate, None, v.KNOWLEDGE_GRAPH))


_TOLD = (v.RDF_TYPE, v.tg("description"), _SUMMARY)
"""What is said of an entity beside its name and its edges, which may be many."""


def _summary(said: Iterable[Quad]) -> str:
    """The summary that the description is, which is derived from evidence; empty for none."""
    found = _values_of(said, _SUMMARY)
    return next((term.value for term in found if isinstance(term, NamedNode)), "")


def _texts_of(said: Iterable[Quad], predicate: NamedNode) -> list[str]:
    found = _values_of(said, predicate)
    return sorted(term.value for term in found if isinstance(term, Literal))


def _values_of(said: Iterable[Quad], predicate: NamedNode) -> Iterator[Term]:
    return (quad.object for quad in said if quad.predicate == predicate)


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
