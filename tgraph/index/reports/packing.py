"""A community's details within a budget of tokens, or its sub-communities' reports in their place.

The substitution is GraphRAG's (Edge et al., 2024, "From Local to Global", on the summaries of
higher-level communities): the sub-communities with the most to say are replaced first. What still
has no room is counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.index.communities.communities import relations_between
from tgraph.index.evidence import EvidenceReader
from tgraph.index.knowledge import claims_of, is_statement
from tgraph.index.reports.context import (
    Child,
    ClaimDetail,
    Details,
    EdgeDetail,
    EntityDetail,
    Parts,
    ReportContext,
    SubReport,
    claim_parts,
    edge_parts,
    entity_parts,
    report_parts,
)
from tgraph.index.sources import Texts, document_of_chunk, standing_documents, value
from tgraph.model import Claim, Community, Edge
from tgraph.store.base import Store, Term

CENTRAL = 10
"""The most linked entities are shown even where sub-reports stand for them."""

_ROW = 9  # tokens: the id of a row, its end, and the joints of its parts
_JOINT = 4


class Sizes:
    """The tokens of texts, each text counted once."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._known: dict[str, int] = {}

    def of(self, text: str) -> int:
        if text not in self._known:
            from tgraph.models.tokens import count_tokens

            self._known[text] = count_tokens(text, self._encoding)
        return self._known[text]


def pack(details: Details, children: Sequence[Child], budget: int, sizes: Sizes) -> ReportContext:
    """The details, as far as ``budget`` tokens hold them.

    A community that fits is shown whole. Otherwise the sub-communities' reports stand in for their
    details, those with the most to say first, until the rest fits; a report that is no shorter than
    what it stands for is not used. Where even that is too much, the most important comes first, in
    brief, and what has no room is counted in ``left_out``.
    """
    room = budget
    while True:
        context = _pack(details, children, room, sizes)
        size = len(context.text.encode("utf-8", "surrogatepass"))  # a token has at least one byte
        over = 0 if size <= budget else sizes.of(context.text) - budget
        if over <= 0 or room <= 0:
            return context
        room -= over  # tokens join differently at the seams of some texts


def _pack(details: Details, children: Sequence[Child], budget: int, sizes: Sizes) -> ReportContext:
    packing = _Packing(details, sizes)
    if packing.cost <= budget:
        return packing.context()
    by_size = sorted(children, key=lambda c: (-packing.size_of(c.community), c.community.iri))
    for child in by_size:
        packing.replace(child)
        if packing.cost <= budget:
            return packing.context()
    return packing.squeezed(budget)


class _Packing:
    """What is shown so far, from everything on, and what it costs."""

    def __init__(self, details: Details, sizes: Sizes) -> None:
        self._details = details
        self._sizes = sizes
        self._entities = {entity.iri: entity for entity in details.entities}
        self._edges = {edge.iri: edge for edge in details.edges}
        self._claims = {claim.iri: claim for claim in details.claims}
        self._parts_of: dict[str, Parts] = {
            **{iri: entity_parts(entity) for iri, entity in self._entities.items()},
            **{iri: edge_parts(edge) for iri, edge in self._edges.items()},
            **{iri: claim_parts(claim) for iri, claim in self._claims.items()},
        }
        self._ends = {iri: frozenset(edge.ends) for iri, edge in self._edges.items()}
        self._edges_at, self._claims_of = defaultdict(list), defaultdict(list)
        for iri, ends in self._ends.items():
            for end in ends:
                self._edges_at[end].append(iri)
        for claim in details.claims:
            self._claims_of[claim.subject].append(claim.iri)
        self._central = [entity.iri for entity in details.entities[:CENTRAL]]
        self._reports: list[SubReport] = []
        self._uses: Counter[Hashable] = Counter()
        self.cost = 0
        for parts in self._parts_of.values():
            self._add(parts)

    def context(self) -> ReportContext:
        return ReportContext(
            self._details.community,
            tuple(self._entities.values()),
            tuple(self._edges.values()),
            tuple(self._claims.values()),
            tuple(self._reports),
        )

    def size_of(self, community: Community) -> int:
        """What the details of a sub-community cost by themselves."""
        parts: dict[Hashable, str] = {}
        for iri in chain(*self._inside(community.members)):
            parts.update(self._parts_of[iri])
        return sum(map(self._cost, parts.values()))

    def replace(self, child: Child) -> None:
        """Let the child's report stand for its details, unless that saves nothing."""
        entities, edges, claims = self._inside(child.community.members)
        entities = [iri for iri in entities if iri not in self._central]
        report = SubReport(child.report)
        before = self.cost
        removed = [self._parts_of[iri] for iri in chain(entities, edges, claims)]
        for parts in removed:
            self._remove(parts)
        self._add(report_parts(report))
        if self.cost >= before:
            self._remove(report_parts(report))
            for parts in removed:
                self._add(parts)
            return
        everything = (self._entities, entities), (self._edges, edges), (self._claims, claims)
        for kept, gone in everything:
            for iri in gone:
                del kept[iri]
        self._reports.append(report)

    def squeezed(self, budget: int) -> ReportContext:
        """What is most important, in brief, as far as it fits."""
        squeeze = _Squeeze(budget, self._cost)
        for iri in self._central:
            squeeze.entity(self._entities[iri])
        for sub in self._reports:
            squeeze.report(sub)
        for sub in self._reports:
            squeeze.findings(sub)
        for edge in self._edges.values():
            for end in edge.ends:
                if end in self._entities:
                    squeeze.entity(self._entities[end])
            squeeze.edge(edge)
        for entity in self._entities.values():
            squeeze.entity(entity)
        for claim in self._claims.values():
            squeeze.claim(claim)
        return squeeze.context(self.context())

    def _inside(self, members: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
        """What is shown of the members alone: entities, edges and claims."""
        within = set(members)
        around = dict.fromkeys(edge for member in members for edge in self._edges_at[member])
        about = (claim for member in members for claim in self._claims_of[member])
        return (
            [iri for iri in members if iri in self._entities],
            [iri for iri in around if iri in self._edges and within >= self._ends[iri]],
            [iri for iri in about if iri in self._claims],
        )

    def _add(self, parts: Parts) -> None:
        for key, text in parts.items():
            self._uses[key] += 1
            if self._uses[key] == 1:
                self.cost += self._cost(text)

    def _remove(self, parts: Parts) -> None:
        for key, text in parts.items():
            self._uses[key] -= 1
            if not self._uses[key]:
                self.cost -= self._cost(text)

    def _cost(self, text: str) -> int:
        return self._sizes.of(text) + (_ROW if text.startswith("{") else _JOINT)


class _Squeeze:
    """Takes things one after another while there is room, and counts those that had none."""

    def __init__(self, budget: int, cost: Callable[[str], int]) -> None:
        self._room = budget
        self._cost = cost
        self._paid: set[Hashable] = set()
        self._seen: set[str] = set()
        self._taken: set[str] = set()
        self._whole: set[str] = set()
        self._left_out: Counter[str] = Counter()

    def entity(self, entity: EntityDetail) -> None:
        parts = entity_parts(entity, brief=True)
        taken = self._take(entity.iri, parts, "entity with no room")
        self._left_out["entity shown in brief"] += taken and parts != entity_parts(entity)

    def edge(self, edge: EdgeDetail) -> None:
        parts = edge_parts(edge, brief=True)
        taken = self._take(edge.iri, parts, "edge with no room")
        self._left_out["edge shown in brief"] += taken and parts != edge_parts(edge)

    def claim(self, claim: ClaimDetail) -> None:
        self._take(claim.iri, claim_parts(claim), "claim with no room")

    def report(self, sub: SubReport) -> None:
        brief = SubReport(sub.report, whole=False)
        self._take(sub.report.iri, report_parts(brief), "sub-report with no room")

    def findings(self, sub: SubReport) -> None:
        if sub.report.iri not in self._taken or not sub.report.findings:
            return
        key = f"{sub.report.iri} findings"
        if self._take(key, report_parts(sub), "sub-report shown without its findings"):
            self._whole.add(sub.report.iri)

    def _take(self, key: str, parts: Parts, otherwise: str) -> bool:
        """Whether it is taken now; what was offered before is not offered again."""
        if key in self._seen:
            return False
        self._seen.add(key)
        new = {part: text for part, text in parts.items() if part not in self._paid}
        cost = sum(map(self._cost, new.values()))
        if cost > self._room:
            self._left_out[otherwise] += 1
            return False
        self._room -= cost
        self._paid |= set(new)
        self._taken.add(key)
        return True

    def context(self, everything: ReportContext) -> ReportContext:
        taken = self._taken
        return ReportContext(
            everything.community,
            tuple(entity for entity in everything.entities if entity.iri in taken),
            tuple(edge for edge in everything.edges if edge.iri in taken),
            tuple(claim for claim in everything.claims if claim.iri in taken),
            tuple(
                SubReport(sub.report, sub.report.iri in self._whole)
                for sub in everything.reports
                if sub.report.iri in taken
            ),
            brief=True,
            left_out={reason: count for reason, count in self._left_out.items() if count},
        )


QUOTES = 2
"""The evidence that is shown for an edge."""

AT_ONCE = 5_000
"""Edges whose evidence is looked up together."""

_SUMMARY = v.tg("summary")
_EVIDENCE = 5
"""The evidence that an entity's descriptions are traced to, at most."""


KEPT = 50_000
"""Edges and entities that are kept for the next level of communities."""


TiesWithin = Callable[[Sequence[str]], Iterable[tuple[str, str]]]
"""Which two of some entities edges are between."""


class _StatedEdge(NamedTuple):
    """An edge, and the summary that its description is; empty for none."""

    edge: Edge
    summary: str


class DetailReader:
    """Reads the details of communities from a store, ordered by importance.

    That is the combined degree of an edge's ends, then its weight (GraphRAG's order). Degrees are
    counted inside the community, so that a report depends on its community alone and stays as it is
    while the rest of the graph grows.
    """

    def __init__(
        self, store: Store, texts: Texts, evidence: EvidenceReader, ties_within: TiesWithin
    ) -> None:
        self._store = store
        self._ties_within = ties_within
        self._texts = texts
        self._places = evidence
        self._standing = standing_documents(store)
        self._label = lru_cache(KEPT)(
            lambda iri: next(iter(_texts_of(self._said(iri), v.RDFS_LABEL)), iri)
        )
        self._said = lru_cache(KEPT)(self._read_statements)
        self._attributes = lru_cache(KEPT)(self._read_attributes)
        self._between = lru_cache(KEPT)(self._read_between)
        self._entity = lru_cache(KEPT)(self._read_entity)

    def read(self, communities: Iterable[Community]) -> Iterator[Details]:
        """Everything about each community, which gets its edges: its members, all edges between
        them, the attributes of its members (edges to literals), and the claims of which they are
        the subject."""
        batch: list[tuple[Community, dict[str, _StatedEdge]]] = []
        size = 0
        for community in communities:
            ties = map(self._between, self._ties_within(community.members))
            edges = {one.edge.iri: one for one in chain.from_iterable(ties)}
            attributes = chain.from_iterable(map(self._attributes, community.members))
            known = edges | {one.edge.iri: one for one in attributes}
            batch.append((replace(community, edges=tuple(sorted(edges))), known))
            size += len(known)
            if size >= AT_ONCE:
                yield from self._details(batch)
                batch, size = [], 0
        yield from self._details(batch)

    def _details(
        self, batch: Sequence[tuple[Community, dict[str, _StatedEdge]]]
    ) -> Iterator[Details]:
        wanted = sorted({iri for _, known in batch for iri in known})
        evidence = self._places.of_edges(wanted, QUOTES)
        entities = sorted({member for community, _ in batch for member in community.members})
        claims = claims_of(self._store, self._texts, entities, self._places.doubt)
        for community, known in batch:
            edges = {iri: one.edge for iri, one in known.items()}
            ends = {iri: EdgeDetail(edge, 0).ends for iri, edge in edges.items()}
            links = Counter(end for of_edge in ends.values() for end in of_edge)
            rank = {iri: sum(links[end] for end in of_edge) for iri, of_edge in ends.items()}
            ordered = sorted(edges, key=lambda iri: (-rank[iri], -edges[iri].weight, iri))
            members = [replace(self._entity(iri), links=links[iri]) for iri in community.members]
            members.sort(key=lambda entity: (-entity.links, entity.name, entity.iri))
            yield Details(
                community,
                tuple(members),
                tuple(
                    EdgeDetail(edges[iri], rank[iri], evidence.get(iri, ()), known[iri].summary)
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

    def _read_between(self, pair: tuple[str, str]) -> tuple[_StatedEdge, ...]:
        """The edges between two entities, both ways."""
        ways = pair, pair[::-1]
        triples = (triple for way in ways for triple in relations_between(self._store, *way))
        return tuple(filter(None, map(self._read_edge, triples)))

    def _read_attributes(self, member: str) -> tuple[_StatedEdge, ...]:
        stated = (quad for quad in self._said(member) if isinstance(quad.object, Literal))
        triples = (quad.triple for quad in stated if is_statement(quad.predicate))
        return tuple(filter(None, map(self._read_edge, triples)))

    def _read_edge(self, triple: Triple) -> _StatedEdge | None:
        """None where knowledge has no such edge."""
        subject, predicate, obj = triple.subject, triple.predicate, triple.object
        assert isinstance(subject, NamedNode)
        assert isinstance(obj, NamedNode | Literal)
        said = self._read_statements(v.edge_iri(subject, predicate, obj))
        weights = _texts_of(said, v.tg("weight"))
        if not weights or v.tg("Edge") not in _values_of(said, v.RDF_TYPE):
            return None
        ends = subject, predicate, obj
        labels = [t.value if isinstance(t, Literal) else self._label(t.value) for t in ends]
        described = " ".join(_texts_of(said, v.tg("description")))
        edge = Edge(*ends, labels[0], labels[1], labels[2], float(weights[0]), described)
        return _StatedEdge(edge, _summary(said))

    # --- entities ---

    def _read_entity(self, iri: str) -> EntityDetail:
        said = self._said(iri)
        named = sorted(
            self._label(kind.value)
            for kind in _values_of(said, v.RDF_TYPE)
            if isinstance(kind, NamedNode) and kind != v.tg("Entity")
        )
        described = _texts_of(said, v.tg("description"))
        summary = _summary(said)
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

    def _read_statements(self, iri: str) -> tuple[Quad, ...]:
        return tuple(self._store.match(NamedNode(iri), None, None, v.KNOWLEDGE_GRAPH))


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
