"""The graph surroundings of entities: reports, edges, claims and chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

from tgraph.index.claims import claims_of
from tgraph.model import (
    Candidate,
    Claim,
    CommunityReport,
    Edge,
    EntityMatch,
    Evidence,
    Item,
    RankedOrder,
)
from tgraph.retrieve.base import Context
from tgraph.retrieve.candidates import (
    KnownEntity,
    chunk_candidates,
    chunks_naming,
    cost_of,
    count_degrees,
    edge_candidate,
    edge_cost,
    entity_candidate,
    known_entities,
)
from tgraph.retrieve.labels import Triple, with_labels
from tgraph.retrieve.modes.local import LocalSearchSettings
from tgraph.retrieve.orders import MOST_BEYOND, cut_order, left_out_order
from tgraph.retrieve.reasons import explain, join_reasons
from tgraph.retrieve.reports import item_of, reports_at_hand
from tgraph.retrieve.subgraph import edges_of, ends, weights_of

MOST_REPORTS = 20
"""Reports considered; the budget holds fewer."""

MOST_CHUNKS = 40
"""Chunks considered; the budget holds far fewer."""

_RANKED_BY = {"rank": "edge-degree", "weight": "edge-weight", "text_unit_count": "edge-chunks"}
"""The kind of reason of each ranking of relationships."""


def claim_item(claim: Claim) -> Item:
    """Return the claim as an item in words, with status and dates."""
    title = f"{claim.subject_label} → {claim.object_label}" if claim.object else claim.subject_label
    dates = " to ".join(date.value for date in (claim.started, claim.ended) if date is not None)
    text = f"{claim.type} ({claim.status}{f', {dates}' if dates else ''}): {claim.description}"
    return Item("claim", claim.iri, title, text)


@dataclass(slots=True)
class Surroundings:
    """The graph surroundings of entities: reports, edges, claims and chunks."""

    entities: Sequence[KnownEntity]
    settings: LocalSearchSettings
    context: Context

    @classmethod
    def from_matches(
        cls, matches: Sequence[EntityMatch], settings: LocalSearchSettings, context: Context
    ) -> Surroundings:
        """Return the matched entities' surroundings."""
        entities_by_iri = known_entities(context, [match.entity for match in matches])
        return cls(list(entities_by_iri.values()), settings, context)

    def list_reports(self) -> list[tuple[CommunityReport, int]]:
        """Return community reports of all levels with each community's entity count.

        Reports with most entities come first, then the highest-rated reports."""
        reports = reports_at_hand(self.context)
        if reports is None:
            return []
        inside = {entity.iri for entity in self.entities}
        counts = Counter(chain.from_iterable(reports.communities_of(inside).values()))
        touched = [*reports.by_community.read_rows(counts).values()]
        touched.sort(key=lambda r: (-counts[r.community], -r.rating, r.iri))
        return [(report, counts[report.community]) for report in touched]

    def report_candidates(
        self, touched: Sequence[tuple[CommunityReport, int]]
    ) -> Iterator[Candidate]:
        """Yield the first community reports down to the community level as candidates; evidence
        is read only for cited reports (``grounded``)."""
        reports, level = reports_at_hand(self.context), self.settings.community_level
        near = ((r, count) for r, count in touched if r.level <= level)
        inside = len({entity.iri for entity in self.entities})
        for report, count in islice(near, MOST_REPORTS):
            assert reports is not None
            yield Candidate(
                item_of(report),
                0,
                round(count / max(inside, 1), 6),
                reasons=(explain("report-entities", count=count),),
                tokens=reports.cost(report),
            )

    def edge_orders(self) -> tuple[list[str], list[str], Mapping[str, float]]:
        """The edges among the entities, those out of them, by how many of the entities the other
        end is tied to, each best first, and the rank of all (combined degree, unless the settings
        rank them by something else)."""
        inside = {entity.iri for entity in self.entities}
        ends_by_edge = {iri: ends(triple) for iri, triple in self._edge_triples().items()}
        rank = self._rank_edges(ends_by_edge)
        among = [iri for iri, edge_ends in ends_by_edge.items() if inside.issuperset(edge_ends)]
        outside = {
            iri: end
            for iri, edge_ends in ends_by_edge.items()
            for end in edge_ends
            if end not in inside
        }
        links = Counter(
            end
            for end, _ in {
                (end, tied) for iri, end in outside.items() for tied in ends_by_edge[iri]
            }
        )
        among.sort(key=lambda i: (-rank[i], i))
        out = sorted(outside, key=lambda i: (-links[outside[i]], -rank[i], i))
        return among, out, rank

    def _rank_edges(self, edges: Mapping[str, Sequence[str]]) -> Mapping[str, float]:
        """Rank edges by the configured ranking attribute; ``edges`` maps edges to their ends."""
        context, by = self.context, self.settings.relationship_ranking_attribute
        if by == "weight":
            attributes = weights_of(context, list(edges))
            return {iri: attributes[iri][0] if iri in attributes else 1.0 for iri in edges}
        if by == "text_unit_count":
            places = context.evidence.of_edges(list(edges), limit=MOST_CHUNKS)
            return {iri: len({e.chunk for e in places.get(iri, ())}) for iri in edges}
        links = count_degrees(context, chain.from_iterable(edges.values()))
        return {iri: sum(links[end] for end in ends) for iri, ends in edges.items()}

    def _edge_triples(self) -> dict[str, Triple]:
        edge_maps = (edges_of(entity.iri, self.context) for entity in self.entities)
        return {iri: triple for edges in edge_maps for iri, triple in edges.items()}

    def load_edges(self, ranked: Sequence[tuple[str, float]]) -> list[tuple[Edge, float]]:
        triples = self._edge_triples()
        edges = with_labels(self.context.graph, [triples[iri] for iri, _ in ranked])
        return [(edge, rank) for edge, (_, rank) in zip(edges, ranked, strict=True)]

    def entity_candidates(self, scores: Mapping[str, float]) -> Iterator[Candidate]:
        """Yield the entities as candidates, in match order."""
        limit = self.context.limits.evidence_limit
        for entity in self.entities:
            why = explain("entity", label=entity.label)
            yield entity_candidate(entity, scores[entity.iri], why, limit)

    def edge_candidates(self, edges: Sequence[tuple[Edge, float]]) -> Iterator[Candidate]:
        limit = self.context.limits.evidence_limit
        evidence = self._read_evidence(edges)
        inside = {entity.iri for entity in self.entities}
        top_rank = max((rank for _, rank in edges), default=1)
        by = self.settings.relationship_ranking_attribute or "rank"
        for edge, rank in edges:
            places = evidence.get(edge.iri, ())[:limit]
            if not places:
                continue
            among = inside.issuperset(ends((edge.subject, edge.predicate, edge.object)))
            kinds = "edge-between" if among else "edge-outwards", _RANKED_BY[by]
            why = join_reasons((explain(kind, rank=rank) for kind in kinds), ", and ")
            cost = edge_cost(edge, places, self.context)
            yield edge_candidate(edge, round(rank / max(top_rank, 1), 6), why, places, cost)

    def claim_candidates(self) -> Iterator[Candidate]:
        """Yield the claims about the entities, each claim once, in entity order."""
        context = self.context
        iris = [entity.iri for entity in self.entities]
        labels = {entity.iri: entity.label for entity in self.entities}
        entities_with_claims = [entity.iri for entity in self.entities if entity.claimed]
        claims = claims_of(context.store, context.texts, entities_with_claims, context.doubt)
        claims_by_iri = {
            claim.iri: (claim, place, entity)
            for place, entity in reversed(list(enumerate(iris)))
            for claim in claims.get(entity, ())
        }
        for claim, place, entity in sorted(claims_by_iri.values(), key=lambda f: (f[1], f[0].iri)):
            item = claim_item(claim)
            yield Candidate(
                item,
                0,
                round(1 / (1 + place), 6),
                evidence=claim.evidence[: context.limits.evidence_limit],
                reasons=(explain("claim", label=labels[entity]),),
                tokens=cost_of(item),
            )

    def speaking(self, edges: Sequence[tuple[Edge, float]]) -> Iterator[tuple[str, int, int, str]]:
        """Yield chunks naming the entities, with entity place, relationship count and entity
        label.

        Chunks are ordered by the first entity named, then by the number of the entity's
        relationships stated in the chunk."""
        statement_counts = self._count_statements(edges)
        earlier_chunks: set[str] = set()
        for place, entity in enumerate(self.entities):
            naming_chunks = chunks_naming(self.context, [entity.iri]).get(entity.iri, ())
            fresh = [
                (-statement_counts[(entity.iri, chunk)], chunk)
                for chunk in naming_chunks
                if chunk not in earlier_chunks
            ]
            yield from ((chunk, place, -count, entity.label) for count, chunk in sorted(fresh))
            earlier_chunks.update(naming_chunks)

    def rank_chunks(
        self, chunks: Sequence[tuple[str, int, int, str]], text: str
    ) -> list[tuple[str, int, int, str]]:
        """Return what ``speaking`` yields, chunks most similar to the text first; chunks without
        vectors keep their order, at the end."""
        vectors, iris = self.context.vectors["chunk"], [chunk for chunk, *_ in chunks]
        hits = vectors.search(self.context.embed([text]), len(iris), iris)[0] if iris else ()
        place_by_chunk = {iri: place for place, (iri, _) in enumerate(hits)}
        return sorted(chunks, key=lambda row: place_by_chunk.get(row[0], len(place_by_chunk)))

    def spoken_of(self, chunks: Sequence[tuple[str, int, int, str]]) -> Iterator[Candidate]:
        """Yield the first chunks naming the entities as candidates."""
        chunk_rows = (
            (
                chunk,
                round(1 / (1 + place), 6),
                (explain("chunk-of-entity", label=label, count=count),),
            )
            for chunk, place, count, label in chunks[:MOST_CHUNKS]
        )
        yield from chunk_candidates(self.context, chunk_rows)

    def cut_orders(
        self,
        out: Sequence[str],
        chunks: Sequence[str],
        touched: Sequence[tuple[CommunityReport, int]],
    ) -> tuple[RankedOrder, ...]:
        """Return edges out of the entities, chunks and reports cut off by limits."""
        per_entity, inside = self.settings.top_k_relationships, len(self.entities)
        level, edge_limit = self.settings.community_level, per_entity * inside
        edges = f"{{item}} is {{place}} edges that lead out of the {inside} entities matched with"
        edges = f"{edges} {{question}}, and {edge_limit} were taken ({per_entity} for each,"
        edges = f"{edges} top-k-relationships)"
        naming = "{item} is {place} chunks that name an entity matched to {question}, and"
        naming = f"{naming} the first {MOST_CHUNKS} are considered (fixed)"
        telling = "{item} is {place} on communities of the entities matched with {question}, of"
        telling = f"{telling} which the first {MOST_REPORTS} are considered (fixed)"
        below = f"only reports below level {level} are about it, the first at level {{rank}}"
        near = [report.iri for report, _ in touched if report.level <= level]
        deep = sorted((r.level, r.iri) for r, _ in touched if r.level > level)
        levels = {iri: depth for depth, iri in deep}
        total = None if len(chunks) == MOST_CHUNKS + MOST_BEYOND else len(chunks)
        return (
            *cut_order("edge", "top-k-relationships", edge_limit, out, edges),
            *cut_order("chunk", "most-chunks", MOST_CHUNKS, chunks, naming, total=total),
            *cut_order("report", "most-reports", MOST_REPORTS, near, telling),
            *left_out_order(
                "report", "community-level", level, levels, f"{below} (community-level)"
            ),
        )

    def _count_statements(self, edges: Sequence[tuple[Edge, float]]) -> Counter[tuple[str, str]]:
        """Count each entity's edges stated in each chunk, by pair (entity, chunk)."""
        evidence = self._read_evidence(edges)
        return Counter(
            (end, chunk)
            for edge, _ in edges
            for end in ends((edge.subject, edge.predicate, edge.object))
            for chunk in {e.chunk for e in evidence.get(edge.iri, ())[:MOST_CHUNKS]}
        )

    def _read_evidence(
        self, edges: Sequence[tuple[Edge, float]]
    ) -> Mapping[str, tuple[Evidence, ...]]:
        """Return the evidence of the edges, best first."""
        evidence_limit = max(MOST_CHUNKS, self.context.limits.evidence_limit)
        memory = self.context.open_cache("places of edges", 5_000)
        return memory.get_all(
            (edge.iri for edge, _ in edges),
            partial(self.context.evidence.of_edges, limit=evidence_limit),
        )
