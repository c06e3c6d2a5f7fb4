"""Local retrieval: everything around the entities that a question is about.

The order in which candidates are considered is Microsoft GraphRAG's (3.3.0, mixed context of local
search): reports of the entities' communities, the entities, the edges among them and out of them,
claims about them, and the chunks that speak of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode

from tgraph.errors import TgraphError, UsageError
from tgraph.index.claims import claims_of
from tgraph.index.communities.communities import read_communities
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
from tgraph.models.recorded_calls import UnrecordedError
from tgraph.retrieve.base import Context, Question, Retriever, Services, in_conversation, of_section
from tgraph.retrieve.candidates import (
    KnownEntity,
    chunk_candidates,
    chunk_evidence,
    chunks_naming,
    cost_of,
    degrees,
    edge_candidate,
    edge_cost,
    entity_candidate,
    known_entities,
    ranked,
)
from tgraph.retrieve.entity_matching import (
    entities_named,
    labelled,
    match_names,
    names_within,
)
from tgraph.retrieve.labels import Triple, labels_of, with_labels
from tgraph.retrieve.modes.local import LocalSearchSettings
from tgraph.retrieve.orders import (
    AskedAction,
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    above_level,
    first_cut,
    flat,
    iris,
    nearest,
    nth,
)
from tgraph.retrieve.reports import item_of, reports_at_hand
from tgraph.retrieve.search.drift_actions import NO_CALLS, NO_ROUND, TOO_DEEP
from tgraph.retrieve.subgraph import edges_of, ends, weights_of
from tgraph.settings import Settings

if TYPE_CHECKING:
    from tgraph.retrieve.modes.drift import DriftSearchSettings


MOST_REPORTS = 20
"""Reports considered; the budget holds fewer."""

MOST_CHUNKS = 40
"""Chunks considered; the budget holds far fewer."""


_RANKED_BY = {
    "rank": "its ends have {} relationships",
    "weight": "its weight is {:g}",
    "text_unit_count": "{} chunks state it",
}


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
    """The entities to start from: those to include, beside a large graph those that the question
    names, then the nearest, at most ``top_k_entities``.

    More are looked at than are kept, since some are excluded. ``UsageError`` for a name to include
    or exclude that no entity has; to exclude, filters may have left out who has it.
    """
    return labelled(_matched(question, settings, context), context.graph)


def _matched(
    question: Question, settings: LocalSearchSettings, context: Context
) -> list[EntityMatch]:
    """As ``match_by_vector``, without labels."""
    included = [entities_named(name, context) for name in settings.include]
    excluded = {
        entity
        for name in settings.exclude
        for entity in (
            match_names(name, context.graph) if context.filters else entities_named(name, context)
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
    if context.large_graphs:  # what they state has no vectors
        for entity, name in names_within(text, context.graph)[: settings.top_k_entities]:
            if entity not in excluded:
                found.setdefault(entity, EntityMatch(entity, "", name, 1.0, "name"))
    for entity, score in hits:
        if entity not in excluded and len(found) < settings.top_k_entities + len(settings.include):
            found.setdefault(
                entity, EntityMatch(entity, "", question.text, max(0.0, score), "vector")
            )
    return list(found.values())


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
        counts = Counter(chain.from_iterable(known.communities_of(inside).values()))
        touched = [*known.by_community.some(counts).values()]
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

    def edges(self) -> Iterator[tuple[str, float]]:
        """The edges, best first, with their rank (combined degree, unless the settings rank them by
        something else): those among the entities, then so many of those out of them."""
        among, out, rank = self.edge_orders()
        most = self.settings.top_k_relationships * len(self.entities)
        yield from ((iri, rank[iri]) for iri in (*among, *out[:most]))

    def edge_orders(self) -> tuple[list[str], list[str], Mapping[str, float]]:
        """The edges among the entities, those out of them, by how many of the entities the other
        end is tied to, each best first, and the rank of all."""
        inside = {entity.iri for entity in self.entities}
        found = {iri: ends(triple) for iri, triple in self._triples().items()}
        rank = self._ranks(found)
        among = [iri for iri, both in found.items() if inside.issuperset(both)]
        outside = {iri: end for iri, both in found.items() for end in both if end not in inside}
        links = Counter(
            end for end, _ in {(end, tied) for iri, end in outside.items() for tied in found[iri]}
        )
        among.sort(key=lambda i: (-rank[i], i))
        out = sorted(outside, key=lambda i: (-links[outside[i]], -rank[i], i))
        return among, out, rank

    def _ranks(self, edges: Mapping[str, Sequence[str]]) -> Mapping[str, float]:
        """What edges, with their ends, are ranked by."""
        context, by = self.context, self.settings.relationship_ranking_attribute
        if by == "weight":
            known = weights_of(context, list(edges))
            return {iri: known[iri][0] if iri in known else 1.0 for iri in edges}
        if by == "text_unit_count":
            places = context.evidence.of_edges(list(edges), limit=MOST_CHUNKS)
            return {iri: len({e.chunk for e in places.get(iri, ())}) for iri in edges}
        links = degrees(context, chain.from_iterable(edges.values()))
        return {iri: sum(links[end] for end in ends) for iri, ends in edges.items()}

    def _triples(self) -> dict[str, Triple]:
        around = (edges_of(entity.iri, self.context) for entity in self.entities)
        return {iri: triple for edges in around for iri, triple in edges.items()}

    def labelled(self, ranked: Sequence[tuple[str, float]]) -> list[tuple[Edge, float]]:
        triples = self._triples()
        edges = with_labels(self.context.graph, [triples[iri] for iri, _ in ranked])
        return [(edge, rank) for edge, (_, rank) in zip(edges, ranked, strict=True)]

    def described(self, scores: Mapping[str, float]) -> Iterator[Candidate]:
        """The entities themselves, in the order of their matches."""
        limit = self.context.limits.evidence_limit
        for entity in self.entities:
            why = f"the question leads to {entity.label}"
            yield entity_candidate(entity, scores[entity.iri], why, limit)

    def related(self, edges: Sequence[tuple[Edge, float]]) -> Iterator[Candidate]:
        limit = self.context.limits.evidence_limit
        evidence = self._places(edges)
        inside = {entity.iri for entity in self.entities}
        most = max((rank for _, rank in edges), default=1)
        by = self.settings.relationship_ranking_attribute or "rank"
        for edge, rank in edges:
            places = evidence.get(edge.iri, ())[:limit]
            if not places:
                continue
            among = inside.issuperset(ends((edge.subject, edge.predicate, edge.object)))
            why = "it ties entities of the question" if among else "it leads out of them"
            why = f"{why}, and {_RANKED_BY[by].format(rank)}"
            cost = edge_cost(edge, places, self.context)
            yield edge_candidate(edge, round(rank / max(most, 1), 6), why, places, cost)

    def claimed(self) -> Iterator[Candidate]:
        """The claims about the entities, each once, in the order of the entities."""
        context = self.context
        iris = [entity.iri for entity in self.entities]
        labels = {entity.iri: entity.label for entity in self.entities}
        told = [entity.iri for entity in self.entities if entity.claimed]
        claims = claims_of(context.store, context.texts, told, context.doubt)
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

    def speaking(self, edges: Sequence[tuple[Edge, float]]) -> Iterator[tuple[str, int, int, str]]:
        """The chunks that name the entities: by the first entity that they name, then by how many
        of its relationships they state; with these and its label."""
        stated = self._stated(edges)
        seen: set[str] = set()
        for place, entity in enumerate(self.entities):
            named = chunks_naming(self.context, [entity.iri]).get(entity.iri, ())
            fresh = [(-stated[(entity.iri, chunk)], chunk) for chunk in named if chunk not in seen]
            yield from ((chunk, place, -count, entity.label) for count, chunk in sorted(fresh))
            seen.update(named)

    def spoken_of(self, edges: Sequence[tuple[Edge, float]]) -> Iterator[Candidate]:
        """The first of these chunks."""
        why = "it names {} and states {} of the edges around it"
        found = (
            (chunk, round(1 / (1 + place), 6), (why.format(label, count),))
            for chunk, place, count, label in islice(self.speaking(edges), MOST_CHUNKS)
        )
        yield from chunk_candidates(self.context, found)

    def _stated(self, edges: Sequence[tuple[Edge, float]]) -> Counter[tuple[str, str]]:
        """How many edges of an entity a chunk states."""
        evidence = self._places(edges)
        return Counter(
            (end, chunk)
            for edge, _ in edges
            for end in ends((edge.subject, edge.predicate, edge.object))
            for chunk in {e.chunk for e in evidence.get(edge.iri, ())[:MOST_CHUNKS]}
        )

    def _places(self, edges: Sequence[tuple[Edge, float]]) -> Mapping[str, tuple[Evidence, ...]]:
        """The evidence of the edges, the best first."""
        most = max(MOST_CHUNKS, self.context.limits.evidence_limit)
        memory = self.context.remembered("places of edges", 5_000)
        return memory.get_all(
            (edge.iri for edge, _ in edges), partial(self.context.evidence.of_edges, limit=most)
        )


local_retriever = of_section(LocalRetriever, "local_search")


def drift_retriever(settings: Settings, services: Services) -> Retriever:
    """Local search within the limits of a DRIFT search."""
    return LocalRetriever(_local_settings(settings.drift_search))


def read_ahead(
    questions: Sequence[Question], settings: DriftSearchSettings, context: Context
) -> None:
    """Read what the questions of a DRIFT search lead to at once, so that it is known then."""
    own = _local_settings(settings)
    matched = (match_by_vector(question, own, context) for question in questions)
    known_entities(context, [match.entity for matches in matched for match in matches])


def _local_settings(own: DriftSearchSettings) -> LocalSearchSettings:
    shared = LocalSearchSettings.model_fields.keys() & type(own).model_fields.keys()
    return LocalSearchSettings(**{name: getattr(own, name) for name in shared})


# --- overview ---


class OverviewRetriever:
    """For questions that are still to be found: around the entities that the conversation was
    about, or, before it has begun, around the centres of the largest communities."""

    step = "ContextBuilding"
    matches_entities = True

    def __init__(self, settings: LocalSearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        if question.history:
            *before, last = question.history
            said = Question(f"{last.question} {last.answer}", tuple(before))
            matches = match_by_vector(said, self._settings, context)
        else:
            matches = self._centres(context)
        if not matches:
            raise UsageError("There is nothing to ask about yet.", "Index documents first.")
        return around(matches, self._settings, context)

    def _centres(self, context: Context) -> list[EntityMatch]:
        top = [c for c in read_communities(context.store) if c.parent is None]
        top.sort(key=lambda c: (-len(c.members), c.iri))
        chosen = []
        for community in top[: self._settings.top_k_entities]:
            links = degrees(context, community.members)
            chosen.append(min(links, key=lambda entity: (-links[entity], entity)))
        known = known_entities(context, chosen)
        most = max((entity.links for entity in known.values()), default=1)
        return [
            EntityMatch(e.iri, e.label, "", round(e.links / max(most, 1), 6), "centre")
            for e in known.values()
        ]


overview_retriever = of_section(OverviewRetriever, "local_search")


# --- cut-offs of local search ---


def local_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The entities by likeness, and what is around those that the question led to."""
    own = context.settings.local_search
    try:
        matches = search.matches or match_by_vector(search.question, own, context)
        yield from LocalOrders(missing, search.question, own, context, matches).all()
    except TgraphError:
        yield from unmatched(missing, search, own.top_k_entities, context)


def unmatched(missing: Missing, search: RecordedSearch, cutoff: int, context: Context) -> Orders:
    """The entities nearest to the question are others; which, can't be known any more."""
    if missing.entities and not nearest(context, "entity", in_conversation(search.question)):
        why = f"it is not among the {cutoff} entities nearest to the question (top-k-entities)"
        yield CutOff("top-k-entities", cutoff, None, why)


@dataclass(frozen=True)
class LocalOrders:
    """The orders of one search: the session's, or that of a question on DRIFT's way, which
    ``what`` names; ``matches`` are the entities that it led to. ``UnrecordedError`` where a vector
    that is needed is on no record."""

    missing: Missing
    question: Question
    settings: LocalSearchSettings
    context: Context
    matches: Sequence[EntityMatch]
    what: str = "the question"

    def all(self) -> Orders:
        """The orders, those of what is missing first."""
        ways = {
            "entity": (self.entities, self.edges, self.chunks, self.reports),
            "fact": (self.edges, self.chunks, self.reports, self.entities),
        }
        others = (self.chunks, self.edges, self.reports, self.entities)
        for way in ways.get(self.missing.kind, others):
            yield from way()

    def entities(self) -> Orders:
        """The question leads to so many entities, the nearest, and none of these to the missing."""
        own, context, missing = self.settings, self.context, self.missing
        if any(match.method == "centre" for match in self.matches):
            return  # no question led to them
        leading = missing.ends(context.store)
        leading |= set() if missing.entities else missing.spoken_of(context.store)
        excluded = {e for name in own.exclude for e in match_names(name, context.graph)}
        if leading and leading <= excluded:
            yield CutOff("exclude", None, None, "it is left out by the setting exclude")
            return
        count = max(1, len(context.vectors["entity"]))
        wide = own.model_copy(update={"top_k_entities": count, "oversampling": 1})
        order = [match.entity for match in _matched(self.question, wide, context)]
        name, most = "top-k-entities", len(self.matches)
        why = f"entities by likeness to {self.what}, of which the first {most} were taken ({name})"
        yield RankedOrder(name, most, order, leading, why, self._who)

    def _who(self, entity: str) -> str:
        if entity in self.missing.entities:
            return "it"
        [label] = labels_of(self.context.graph, [NamedNode(entity)]).values()
        return f"{flat(label)}, the nearest of the entities that it speaks of,"

    def edges(self) -> Orders:
        """So many edges are taken of those that lead out of the matched entities."""
        each, inside = self.settings.top_k_relationships, len({m.entity for m in self.matches})
        name, most = "top-k-relationships", each * inside
        why = f"edges that lead out of the {inside} entities matched with {self.what}, and {most}"
        why = f"{why} were taken ({each} for each, {name})"
        if self.missing.edges:
            out = self._around.edge_orders()[1]
            yield RankedOrder(name, most, out, self.missing.edges, why)

    def chunks(self) -> Orders:
        """A fixed number of the chunks that speak of the matched entities is considered."""
        if not self.missing.chunks:
            return
        most = self.context.limits.max_subgraph_size
        shown = self._around.labelled(list(self._around.edges())[:most])
        order = [chunk for chunk, *_ in self._around.speaking(shown)]
        standing = chunk_evidence(self.context, order)
        order = [chunk for chunk in order if chunk in standing]
        why = f"that name an entity matched with {self.what}, of which the first {MOST_CHUNKS} are"
        why = f"{why} considered (fixed)"
        wanted = self.missing.chunks
        yield RankedOrder("most-chunks", MOST_CHUNKS, order, wanted, why, "its chunk")

    def reports(self) -> Orders:
        """A fixed number of the reports of their communities is considered, down to a level."""
        levels = {report.iri: report.level for report, _ in self._around.touched()}
        telling = {report for report in levels if self.missing.tells(report)}
        level, name, who = self.settings.community_level, "most-reports", "the report that speaks"
        read = [report for report, at in levels.items() if at <= level]
        why = f"on communities of the entities matched with {self.what}, of which the first"
        why = f"{why} {MOST_REPORTS} are considered (fixed)"
        yield RankedOrder(name, MOST_REPORTS, read, telling, why, f"{who} of it")
        yield above_level(level, levels, telling)

    @cached_property
    def _around(self) -> Surroundings:
        return Surroundings.of(self.matches, self.settings, self.context)


# --- cut-offs of DRIFT search ---


_BY_PROMISE = {NO_CALLS: "call_budget", NO_ROUND: "breadth"}


def drift_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The questions in line, the closest that a local search came to it, and the first reports."""
    own = context.settings.drift_search
    named = [a for a in search.actions if a.status == "pruned" and missing.names(a.query)]
    pruned = [_pruned(action, search, own) for action in named]
    around = [_searched(action, missing, search, context) for action in search.actions]
    for found in (pruned, filter(None, around)):
        yield from sorted(found, key=lambda cut: cut.distance)
    with suppress(UnrecordedError):
        yield from _primer(missing, search, context)
    yield from unmatched(missing, search, own.top_k_entities, context)


def _pruned(action: AskedAction, search: RecordedSearch, own: DriftSearchSettings) -> CutOff:
    """A follow-up question about it was not asked."""
    why = f"the question “{flat(action.query)}” was not asked: {action.reason}"
    if action.reason == TOO_DEEP:
        why = f"{why} (it lies {action.depth} deep, and {own.depth} were gone; depth)"
        return CutOff("depth", own.depth, action.depth, why)
    field = _BY_PROMISE.get(action.reason)
    if field is None:  # nearly the same as another, or the session ended
        is_twin = action.reason.startswith("nearly")
        least = own.duplicate if is_twin else None
        return CutOff("duplicate" if is_twin else "session", least, None, why)
    follow_ups = [a for a in search.actions if a.kind == "follow-up"]
    waiting = [a for a in follow_ups if a.reason == action.reason]
    waiting.sort(key=lambda a: (-(a.promise or 0.0), a.number))
    taken = sum(a.status != "pruned" for a in follow_ups)
    rank, name = taken + waiting.index(action) + 1, field.replace("_", "-")
    why = f"{why} ({name} {getattr(own, field)}); by its promise it was the {nth(rank)} in line,"
    return CutOff(name, taken, rank, f"{why} and {taken} were asked")


def _searched(
    action: AskedAction, missing: Missing, search: RecordedSearch, context: Context
) -> CutOff | None:
    """How close the local search for a question came to it."""
    if action.kind == "fold" or not action.retrieved:
        return None
    root, own = action.kind == "question", context.settings.drift_search
    question = search.question if root else Question(action.query)
    what = "the question" if root else f"the question on the way “{flat(action.query)}”"
    local = _local_settings(own)
    with suppress(UnrecordedError):
        matches = match_by_vector(question, local, context)
        return first_cut(LocalOrders(missing, question, local, context, matches, what).all())
    return None


def _primer(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """So many reports are read first: those nearest to the question put as an answer."""
    reports, own = reports_at_hand(context), context.settings.drift_search
    if not search.hypothesis or reports is None:
        return
    allowed = reports.iris_at_level(own.community_level)
    vector = context.embed([search.hypothesis])
    order = iris(context.vectors["report"].search(vector, len(allowed), allowed)[0])
    telling = {report for report in order if missing.tells(report)}
    why = f"by likeness to the question put as an answer, of which the first {own.k} were read (k)"
    yield RankedOrder("k", own.k, order, telling, why, "the report that speaks of it")
