"""Local retrieval: everything around the entities that a question is about.

The order in which candidates are considered is Microsoft GraphRAG's (3.3.0, mixed context of local
search): reports of the entities' communities, the entities, the edges among them and out of them,
claims about them, and the chunks that speak of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from pyoxigraph import NamedNode

from tgraph.errors import UsageError, nearest_names
from tgraph.index.claims import claims_of
from tgraph.model import (
    Candidate,
    Claim,
    CommunityReport,
    Edge,
    EntityMatch,
    Evidence,
    Item,
    Retrieval,
)
from tgraph.retrieve.base import Context, Question, Retriever, Services
from tgraph.retrieve.basic import in_conversation
from tgraph.retrieve.candidates import chunk_candidate, edge_candidate, entity_candidate, ranked
from tgraph.retrieve.chunks import chunk_evidence, chunk_tokens
from tgraph.retrieve.costs import cost_of, edge_cost
from tgraph.retrieve.entities import KnownEntity, degree, known_entities
from tgraph.retrieve.labels import labels_of, with_labels
from tgraph.retrieve.modes.local import LocalSearchSettings
from tgraph.retrieve.reports import item_of, reports_at_hand
from tgraph.retrieve.seeds import entity_names, match_names
from tgraph.retrieve.subgraph import edges_of, ends
from tgraph.settings import Settings

MOST_REPORTS = 20
"""Reports considered; the budget holds fewer."""

MOST_CHUNKS = 40
"""Chunks considered; the budget holds far fewer."""


class LocalRetriever:
    """The mode ``local``."""

    step = "ContextBuilding"
    matches_entities = True

    def __init__(self, settings: LocalSearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        return around(match_by_vector(question, self._settings, context), self._settings, context)


def around(
    matches: Sequence[EntityMatch], settings: LocalSearchSettings, context: Context
) -> Retrieval:
    """Everything around the matched entities, in the order in which it is considered."""
    found = Surroundings.of(matches, settings, context)
    scores = {match.entity: match.score for match in matches}
    edges = list(found.edges())
    most = context.limits.max_subgraph_size
    shown = found.labelled(edges[:most])
    ordered = [
        *found.told(),
        *found.described(scores),
        *found.related(shown),
        *found.claimed(),
        *found.spoken_of(shown),
    ]
    candidates = ranked(ordered)
    cut = [iri for iri, _ in edges] if len(edges) > most else []
    return Retrieval(
        candidates=candidates,
        total=len(edges),
        items=sum(not isinstance(c.item, Edge) for c in candidates),
        matches=tuple(matches),
        cut=tuple(cut),
    )


def match_by_vector(
    question: Question, settings: LocalSearchSettings, context: Context
) -> list[EntityMatch]:
    """The entities to start from: those to include, then the nearest, at most ``top_k_entities``.

    More are looked at than are kept, since some are excluded. ``UsageError`` for a name to include
    or exclude that no entity has; to exclude, filters may have left out who has it.
    """
    included = [_named(name, context) for name in settings.include]
    excluded = {
        entity
        for name in settings.exclude
        for entity in (
            match_names(name, context.store) if context.filters else _named(name, context)
        )
    }
    text = in_conversation(question)
    wanted = settings.top_k_entities * settings.oversampling + len(excluded)
    hits = context.vectors["entity"].search(context.embed([text]), wanted)[0]
    found = {
        entity: EntityMatch(entity, "", name, 1.0, "name")
        for name, entities in zip(settings.include, included, strict=True)
        for entity in entities
    }
    for entity, score in hits:
        if entity not in excluded and len(found) < settings.top_k_entities + len(settings.include):
            found.setdefault(
                entity, EntityMatch(entity, "", question.text, max(0.0, score), "vector")
            )
    labels = labels_of(context.store, [NamedNode(entity) for entity in found])
    return [replace(m, label=labels[NamedNode(m.entity)]) for m in found.values()]


def _named(name: str, context: Context) -> list[str]:
    found = match_names(name, context.store)
    if not found:
        nearest = nearest_names(name, entity_names(context.store))
        raise UsageError(f"There is no entity called {name!r}.", nearest)
    return found


def claim_item(claim: Claim) -> Item:
    """The claim in words, with whether and when it holds."""
    about = f"{claim.subject_label} → {claim.object_label}" if claim.object else claim.subject_label
    dates = " to ".join(date.value for date in (claim.started, claim.ended) if date is not None)
    text = f"{claim.type} ({claim.status}{f', {dates}' if dates else ''}): {claim.description}"
    return Item("claim", claim.iri, about, text)


@dataclass(slots=True)
class Surroundings:
    """What lies around the entities."""

    entities: Sequence[KnownEntity]
    settings: LocalSearchSettings
    context: Context

    @classmethod
    def of(
        cls, matches: Sequence[EntityMatch], settings: LocalSearchSettings, context: Context
    ) -> Surroundings:
        """What lies around the entities that were matched."""
        known = known_entities(context, [match.entity for match in matches])
        return cls(list(known.values()), settings, context)

    def touched(self) -> list[tuple[CommunityReport, int]]:
        """The reports of the entities' communities, of all levels, with how many of the entities
        these have: those with most first, then those rated highest."""
        known = reports_at_hand(self.context)
        if known is None:
            return []
        inside = {entity.iri for entity in self.entities}
        counts = Counter(c for entity in inside for c in known.communities_of.get(entity, ()))
        touched = [known.by_community[iri] for iri in counts if iri in known.by_community]
        touched.sort(key=lambda r: (-counts[r.community], -r.rating, r.iri))
        return [(report, counts[report.community]) for report in touched]

    def told(self) -> Iterator[Candidate]:
        """The first of these reports down to the level. Their evidence is read of those that are
        cited (``grounded``)."""
        known, level = reports_at_hand(self.context), self.settings.community_level
        near = ((r, count) for r, count in self.touched() if r.level <= level)
        inside = len({entity.iri for entity in self.entities})
        for report, count in islice(near, MOST_REPORTS):
            assert known is not None
            yield Candidate(
                item_of(report),
                0,
                round(count / max(inside, 1), 6),
                reasons=(f"its community has {count} of the entities",),
                tokens=known.cost(report),
            )

    def edges(self) -> Iterator[tuple[str, int]]:
        """The edges, best first, with their rank (combined degree): those among the entities, then
        so many of those out of them."""
        among, out, rank = self.edge_orders()
        most = self.settings.top_k_relationships * len(self.entities)
        yield from ((iri, rank[iri]) for iri in (*among, *out[:most]))

    def edge_orders(self) -> tuple[list[str], list[str], Mapping[str, int]]:
        """The edges among the entities, those out of them, by how many of the entities the other
        end is tied to, each best first, and the rank of all."""
        inside = {entity.iri for entity in self.entities}
        found = {
            iri: ends(triple)
            for entity in self.entities
            for iri, triple in edges_of(entity.iri, self.context).items()
        }
        rank = {iri: sum(degree(self.context, end) for end in both) for iri, both in found.items()}
        among = [iri for iri, both in found.items() if inside.issuperset(both)]
        outside = {iri: end for iri, both in found.items() for end in both if end not in inside}
        links = Counter(
            end for end, _ in {(end, tied) for iri, end in outside.items() for tied in found[iri]}
        )
        among.sort(key=lambda i: (-rank[i], i))
        out = sorted(outside, key=lambda i: (-links[outside[i]], -rank[i], i))
        return among, out, rank

    def labelled(self, ranked: Sequence[tuple[str, int]]) -> list[tuple[Edge, int]]:
        triples = {
            iri: triple
            for entity in self.entities
            for iri, triple in edges_of(entity.iri, self.context).items()
        }
        edges = with_labels(self.context.store, [triples[iri] for iri, _ in ranked])
        return [(edge, rank) for edge, (_, rank) in zip(edges, ranked, strict=True)]

    def described(self, scores: Mapping[str, float]) -> Iterator[Candidate]:
        """The entities themselves, in the order of their matches."""
        limit = self.context.limits.evidence_limit
        for entity in self.entities:
            why = f"the question leads to {entity.label}"
            yield entity_candidate(entity, scores[entity.iri], why, limit)

    def related(self, edges: Sequence[tuple[Edge, int]]) -> Iterator[Candidate]:
        limit = self.context.limits.evidence_limit
        evidence = self._places(edges)
        inside = {entity.iri for entity in self.entities}
        most = max((rank for _, rank in edges), default=1)
        for edge, rank in edges:
            places = evidence.get(edge.iri, ())[:limit]
            if not places:
                continue
            among = inside.issuperset(ends((edge.subject, edge.predicate, edge.object)))
            why = "it ties entities of the question" if among else "it leads out of them"
            why = f"{why}, and its ends have {rank} relationships"
            cost = edge_cost(edge, places, self.context)
            yield edge_candidate(edge, round(rank / max(most, 1), 6), why, places, cost)

    def claimed(self) -> Iterator[Candidate]:
        """The claims about the entities, each once, in the order of the entities."""
        context = self.context
        iris = [entity.iri for entity in self.entities]
        labels = {entity.iri: entity.label for entity in self.entities}
        claims = claims_of(context.store, context.texts, iris)
        found = {
            claim.iri: (claim, place, entity)
            for place, entity in reversed(list(enumerate(iris)))
            for claim in claims.get(entity, ())
        }
        for claim, place, entity in sorted(found.values(), key=lambda f: (f[1], f[0].iri)):
            item = claim_item(claim)
            yield Candidate(
                item,
                0,
                round(1 / (1 + place), 6),
                evidence=claim.evidence[: context.limits.evidence_limit],
                reasons=(f"it is a claim about {labels[entity]}",),
                tokens=cost_of(item),
            )

    def speaking(self, edges: Sequence[tuple[Edge, int]]) -> dict[str, tuple[int, int, str]]:
        """The chunks that name the entities: by the first entity that they name, then by how many
        of its relationships they state; with these and its label."""
        stated = self._stated(edges)
        order: dict[str, tuple[int, int, str]] = {}
        for place, entity in enumerate(self.entities):
            for evidence in entity.named:
                count = stated[(entity.iri, evidence.chunk)]
                order.setdefault(evidence.chunk, (place, -count, entity.label))
        return dict(sorted(order.items(), key=lambda each: (each[1][:2], each[0])))

    def spoken_of(self, edges: Sequence[tuple[Edge, int]]) -> Iterator[Candidate]:
        """The first of these chunks."""
        order = self.speaking(edges)
        chunks = list(islice(order, MOST_CHUNKS))
        whole = chunk_evidence(self.context, chunks)
        tokens = chunk_tokens(self.context, list(whole))
        for chunk in chunks:
            if chunk in whole:
                place, count, label = order[chunk]
                why = f"it names {label} and states {-count} of the edges around it"
                score = round(1 / (1 + place), 6)
                yield chunk_candidate(whole[chunk], score, why, tokens.get(chunk))

    def _stated(self, edges: Sequence[tuple[Edge, int]]) -> Counter[tuple[str, str]]:
        """How many edges of an entity a chunk states."""
        evidence = self._places(edges)
        return Counter(
            (end, chunk)
            for edge, _ in edges
            for end in ends((edge.subject, edge.predicate, edge.object))
            for chunk in {e.chunk for e in evidence.get(edge.iri, ())[:MOST_CHUNKS]}
        )

    def _places(self, edges: Sequence[tuple[Edge, int]]) -> Mapping[str, tuple[Evidence, ...]]:
        """The evidence of the edges, the best first."""
        most = max(MOST_CHUNKS, self.context.limits.evidence_limit)
        memory = self.context.remembered("places of edges", 5_000)
        return memory.get_all(
            (edge.iri for edge, _ in edges), partial(self.context.evidence.of_edges, limit=most)
        )


def local_retriever(settings: Settings, services: Services) -> Retriever:
    """The retriever of ``local``."""
    return LocalRetriever(settings.local_search)


def drift_retriever(settings: Settings, services: Services) -> Retriever:
    """Local search within the limits of a DRIFT search."""
    own = settings.drift_search
    return LocalRetriever(
        LocalSearchSettings(
            top_k_entities=own.top_k_entities,
            top_k_relationships=own.top_k_relationships,
            community_level=own.community_level,
            report_share=own.report_share,
            chunk_share=own.chunk_share,
            max_context_tokens=own.max_context_tokens,
        )
    )
