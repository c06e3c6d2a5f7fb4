"""Retrieval by keywords on two levels, in the manner of LightRAG (1.5.7; Guo and others 2024).

What a question names leads to entities and the edges around them (local), its themes to edges and
their ends (global). Both together are hybrid, and with the chunks nearest to the question, mix.
Unlike there, each keyword is linked by itself, and whatever is retrieved keeps its evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from tgraph.model import Candidate, EntityMatch, RankedOrder, Retrieval
from tgraph.retrieve.base import Context, Question, in_conversation
from tgraph.retrieve.candidates import (
    KnownEntity,
    chunk_candidates,
    chunks_naming,
    degrees,
    edge_candidate,
    entity_candidate,
    known_entities,
    ranked,
    within,
)
from tgraph.retrieve.entity_matching import labelled, match_all, triples_of
from tgraph.retrieve.labels import Triple, with_labels
from tgraph.retrieve.modes.lightrag import (
    LegName,
    LightragSearchSettings,
)
from tgraph.retrieve.orders import (
    MOST_BEYOND,
    Hits,
    cut_order,
    iris,
    left_out_order,
    unlike_order,
)
from tgraph.retrieve.search.vector import likeness_candidates, nearest_chunks
from tgraph.retrieve.subgraph import edges_of, ends, weights_of

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


# --- linking ---


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Link:
    """An entity or edge with the keyword that led to it; ``method`` is ``name`` or ``vector``."""

    iri: str
    keyword: str
    score: float
    method: str


@dataclass(frozen=True, slots=True)
class LinkedItems:
    """What keywords lead to, best first, and what limits cut off of it."""

    links: Sequence[Link] = ()
    orders: tuple[RankedOrder, ...] = ()


def linked_entities(
    keywords: Sequence[str], count: int, least_score: float, context: Context
) -> LinkedItems:
    """At most ``count`` entities, the keywords taking turns: first what is called so, then what is
    nearest to the keyword, down to ``least_score`` (cosine)."""
    near = _nearest("entity", keywords, count, context)
    called = match_all(keywords, context.graph)
    named = {each: [Link(entity, each, 1.0, "name") for entity in called[each]] for each in near}
    return _linked("entity", "entities", near, named, count, least_score, context)


def linked_edges(
    keywords: Sequence[str], count: int, least_score: float, context: Context
) -> LinkedItems:
    """At most ``count`` edges, the keywords taking turns, the nearest to each first."""
    near = _nearest("edge", keywords, count, context)
    return _linked("edge", "edges", near, {}, count, least_score, context)


def _nearest(
    kind: str, keywords: Sequence[str], count: int, context: Context
) -> dict[str, list[tuple[str, float]]]:
    """The nearest of the kind to each keyword, and some more."""
    if not keywords:
        return {}
    vectors = context.embed(list(keywords))
    results = context.vectors[kind].search(vectors, count, beyond=MOST_BEYOND)
    return dict(zip(keywords, results, strict=True))


def _linked(
    kind: str,
    plural: str,
    near: Mapping[str, Hits],
    named: Mapping[str, Sequence[Link]],
    count: int,
    least_score: float,
    context: Context,
) -> LinkedItems:
    """The first ``count`` of the links, the keywords taking turns."""
    lists = [
        [
            *named.get(word, ()),
            *(Link(iri, word, max(0.0, s), "vector") for iri, s in hits if s >= least_score),
        ]
        for word, hits in near.items()
    ]
    links = in_turn(lists, attrgetter("iri"))
    why = (
        f"{{item}} is {{place}} {plural} that the keywords lead to, and {count} were taken (top-k)"
    )
    is_whole = all(hits and hits[-1][1] < least_score for hits in near.values())
    total = 0 if is_whole else len(context.vectors[kind])
    linked = {link.iri for link in links}
    return LinkedItems(
        links[:count],
        (
            *cut_order(kind, "top-k", count, [link.iri for link in links], why, total=total),
            *(
                order
                for word, hits in near.items()
                for order in unlike_order(kind, hits, least_score, f"“{word}”", linked)
            ),
        ),
    )


def in_turn(lists: Iterable[Sequence[T]], key: Callable[[T], Hashable]) -> list[T]:
    """The first of each list, then the second of each, and so on; what has come is passed over."""
    absent = object()
    found: dict[Hashable, T] = {}
    for row in zip_longest(*lists, fillvalue=absent):
        for item in row:
            if item is not absent:
                found.setdefault(key(item), item)  # type: ignore[arg-type]
    return list(found.values())


# --- picking ---


Groups = Sequence[Sequence[str]]
"""The chunks of each entity or edge, the most important entity or edge first. The two ways to pick
of them are LightRAG's (1.5.7, ``kg_chunk_pick_method``)."""


PICK = "related-chunk-number"


def pick_by_vector(
    groups: Groups, each: int, question: NDArray[float32], context: Context
) -> tuple[list[str], tuple[RankedOrder, ...]]:
    """The chunks most similar to the question, ``each`` for every two groups, and the others."""
    wanted = {chunk for group in groups for chunk in group}
    count = each * len(groups) // 2
    compared = iris(
        context.vectors["chunk"].search(question, max(count, 1), wanted, beyond=MOST_BEYOND)[0]
        if wanted
        else ()
    )
    least = {c: -(-2 * n // len(groups)) for n, c in enumerate(compared, 1) if n > count}
    why = f"its chunk is among the candidates from {PICK} {{rank}} on, and it was {each}"
    return compared[:count], left_out_order("chunk", PICK, each, least, why)


def pick_by_weight(groups: Groups, each: int) -> tuple[list[str], tuple[RankedOrder, ...]]:
    """The chunks that most of the groups share, ``each`` of the first group, evenly fewer of those
    after it, one of the last; what a group can't use is dealt out to the others in turn."""
    own = _owned(groups)
    last = max(1, len(own) - 1)
    quotas = [round(each - place * (each - 1) / last) for place in range(len(own))]
    taken = [group[:quota] for group, quota in zip(own, quotas, strict=True)]
    left = sum(quotas) - sum(map(len, taken))
    while left and any(len(a) < len(b) for a, b in zip(taken, own, strict=True)):
        for place, group in enumerate(own):
            if left and len(taken[place]) < len(group):
                taken[place] = group[: len(taken[place]) + 1]
                left -= 1
    picked = [chunk for group in taken for chunk in group]
    why = "its chunk is {place} chunks of an entity or edge, of which"
    orders = [
        order
        for group, some in zip(own, taken, strict=True)
        for order in cut_order(
            "chunk", PICK, len(some), group, f"{why} {len(some)} were picked ({PICK} {each})"
        )
    ]
    return picked, tuple(orders)


def shared_by(groups: Groups) -> Mapping[str, int]:
    """How many of the groups each chunk is in."""
    return Counter(chunk for group in groups for chunk in set(group))


def _owned(groups: Groups) -> list[list[str]]:
    """Each chunk in the first group that has it, those that most groups share first."""
    counts = shared_by(groups)
    seen: set[str] = set()
    owned = []
    for group in groups:
        own = {chunk for chunk in group if chunk not in seen}
        seen |= own
        owned.append(sorted(own, key=lambda chunk: (-counts[chunk], chunk)))
    return owned


# --- retrieval ---


_PLACES = 40
"""Places of an edge that are looked at for chunks."""


@dataclass(frozen=True, slots=True)
class FoundEdge:
    """An edge with its score and why it was found."""

    iri: str
    triple: Triple
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class Leg:
    """What one level of keywords leads to, best first."""

    matches: Sequence[EntityMatch] = ()
    edges: Sequence[FoundEdge] = ()
    orders: tuple[RankedOrder, ...] = ()


class LightRetriever:
    """What the ``legs`` lead to, in turn."""

    step = "ContextBuilding"
    matches_entities = True

    def __init__(self, legs: Sequence[LegName], settings: LightragSearchSettings) -> None:
        self._legs = legs
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        legs = [self._leg(name, question, context) for name in self._legs if name != "chunks"]
        matches = in_turn([leg.matches for leg in legs], lambda match: match.entity)
        edges = in_turn([leg.edges for leg in legs], lambda edge: edge.iri)
        most = context.limits.max_subgraph_size
        gathered = _KeywordCandidates(matches, edges[:most], question, self._settings, context)
        near, orders = self._near(question, context) if "chunks" in self._legs else ([], ())
        candidates = ranked(gathered.candidates(near))
        by_keyword = [order for leg in legs for order in leg.orders]
        by_keyword.sort(key=lambda order: order.limit == "least-score")
        return Retrieval(
            candidates,
            total=len(edges),
            items=sum(candidate.item.kind != "edge" for candidate in candidates),
            matches=tuple(labelled(matches, context.graph)),
            cut=tuple(edge.iri for edge in edges) if len(edges) > most else (),
            orders=(*by_keyword, *orders, *gathered.orders),
        )

    def _leg(self, name: str, question: Question, context: Context) -> Leg:
        """Where no keyword leads anywhere, the question as a whole may."""
        low, high, whole = question.keywords.low, question.keywords.high, (question.text,)
        if name == "local" and low:
            found = local_leg(low, self._settings, context)
            return found if found.matches else local_leg(whole, self._settings, context)
        if name == "global" and high:
            found = global_leg(high, self._settings, context)
            return found if found.matches else global_leg(whole, self._settings, context)
        return Leg()

    def _near(
        self, question: Question, context: Context
    ) -> tuple[list[Candidate], tuple[RankedOrder, ...]]:
        own = self._settings
        hits, orders = nearest_chunks(
            question, own.chunk_top_k, "chunk-top-k", own.least_score, context
        )
        return likeness_candidates(hits, context), orders


def local_leg(keywords: Sequence[str], settings: LightragSearchSettings, context: Context) -> Leg:
    """The entities that the keywords lead to, and all edges of them: those whose ends have most
    relationships first, then those of most weight."""
    linked = linked_entities(keywords, settings.top_k, settings.least_score, context)
    links = linked.links
    matches = [EntityMatch(x.iri, "", x.keyword, x.score, x.method) for x in links]
    triples = {iri: triple for x in links for iri, triple in edges_of(x.iri, context).items()}
    both = {iri: ends(triple) for iri, triple in triples.items()}
    tied = degrees(context, chain.from_iterable(both.values()))
    ranks = {iri: sum(tied[end] for end in own) for iri, own in both.items()}
    most = max(ranks.values(), default=1)
    weights = weights_of(context, list(triples))
    order = sorted(triples, key=lambda i: (-ranks[i], -(weights[i][0] if i in weights else 0), i))
    return Leg(
        matches,
        [
            FoundEdge(
                iri,
                triples[iri],
                round(ranks[iri] / most, 6),
                f"it is an edge of what the question names, and its ends have {ranks[iri]}"
                " relationships",
            )
            for iri in order
        ],
        linked.orders,
    )


def global_leg(keywords: Sequence[str], settings: LightragSearchSettings, context: Context) -> Leg:
    """The edges nearest to the keywords, and the entities at their ends in the order of the
    edges."""
    linked = linked_edges(keywords, settings.top_k, settings.least_score, context)
    triples = triples_of([link.iri for link in linked.links], context)
    found = [(link, triples[link.iri]) for link in linked.links if link.iri in triples]
    matches = [
        EntityMatch(entity, "", link.keyword, link.score, "edge")
        for link, triple in found
        for entity in ends(triple)
    ]
    edges = [
        FoundEdge(
            link.iri,
            triple,
            link.score,
            f"it is {link.score:.2f} similar in meaning to “{link.keyword}”",
        )
        for link, triple in found
    ]
    return Leg(in_turn([matches], lambda match: match.entity), edges, linked.orders)


@dataclass(slots=True)
class _KeywordCandidates:
    """The entities and edges of all legs, as candidates, and the chunks that they come from;
    ``orders`` are what limits on chunks cut off."""

    matches: Sequence[EntityMatch]
    edges: Sequence[FoundEdge]
    question: Question
    settings: LightragSearchSettings
    context: Context
    orders: list[RankedOrder] = field(default_factory=list)
    _known: dict[str, KnownEntity] = field(init=False)

    def __post_init__(self) -> None:
        self._known = known_entities(self.context, [match.entity for match in self.matches])

    def candidates(self, near: Sequence[Candidate]) -> list[Candidate]:
        """Entities, edges, and chunks: those near the question, those of the entities and those of
        the edges take turns. Only what the budgets have room for brings its chunks."""
        entities, edges = self._entities(), self._edges()
        budget = self.settings
        kept = within(entities, budget.max_entity_tokens)
        named = chunks_naming(self.context, [c.item.iri for c in kept])
        speaking = [sorted(named.get(c.item.iri, ())) for c in kept]
        by_entities = self._chunks(speaking, "it speaks of {} of the entities found")
        kept_edges = within(edges, budget.max_relationship_tokens)
        by_edges = self._chunks(self._stating(kept_edges), "it states {} of the edges found")
        chunks = in_turn([near, by_entities, by_edges], lambda c: c.item.iri)
        most = budget.chunk_top_k
        why = "its chunk is {place} chunks that the entities and edges lead to, of which the first"
        reason, order = f"{why} {most} were taken (chunk-top-k)", [c.item.iri for c in chunks]
        self.orders[:0] = cut_order("chunk", "chunk-top-k", most, order, reason)
        self.orders += [
            *_over_budget("entity", "max-entity-tokens", budget.max_entity_tokens, entities, kept),
            *_over_budget(
                "edge", "max-relationship-tokens", budget.max_relationship_tokens, edges, kept_edges
            ),
        ]
        return [*entities, *edges, *chunks[:most]]

    def _entities(self) -> list[Candidate]:
        limit = self.context.limits.evidence_limit
        found = [
            entity_candidate(self._known[match.entity], match.score, _why(match), limit)
            for match in self.matches
            if match.entity in self._known
        ]
        return [candidate for candidate in found if candidate.evidence]

    def _edges(self) -> list[Candidate]:
        context = self.context
        iris = [edge.iri for edge in self.edges]
        limit = context.limits.evidence_limit
        evidence = context.evidence.of_edges(iris, limit)
        edges = with_labels(context.graph, [edge.triple for edge in self.edges])
        return [
            edge_candidate(edge, found.score, found.why, evidence[found.iri])
            for edge, found in zip(edges, self.edges, strict=True)
            if evidence.get(found.iri)
        ]

    def _stating(self, edges: Sequence[Candidate]) -> Groups:
        context = self.context
        iris = [candidate.item.iri for candidate in edges]
        evidence = context.evidence.of_edges(iris, _PLACES)
        return [[place.chunk for place in evidence.get(iri, ())] for iri in iris]

    def _chunks(self, groups: Groups, why: str) -> list[Candidate]:
        context, each = self.context, self.settings.related_chunk_number
        vector = context.embed([in_conversation(self.question)])
        if self.settings.chunk_pick == "vector":
            picked, orders = pick_by_vector(groups, each, vector, context)
        else:
            picked, orders = pick_by_weight(groups, each)
        self.orders += orders
        counts = shared_by(groups)
        found = ((c, round(counts[c] / len(groups), 6), (why.format(counts[c]),)) for c in picked)
        return chunk_candidates(context, found)


def _over_budget(
    kind: str, limit: str, budget: int, ordered: Sequence[Candidate], kept: Sequence[Candidate]
) -> tuple[RankedOrder, ...]:
    """The candidates whose chunks were not read, each with the budget that has room for it."""
    has_room = {candidate.item.iri for candidate in kept}
    spent = accumulate(candidate.tokens or 0 for candidate in ordered)
    needed = {c.item.iri: tokens for c, tokens in zip(ordered, spent, strict=True)}
    least = {iri: tokens for iri, tokens in needed.items() if iri not in has_room}
    why = f"its chunk is among the candidates from {limit} {{rank}} on, and it was {budget}"
    return left_out_order(f"{kind} of chunks", limit, budget, least, why)


def _why(match: EntityMatch) -> str:
    if match.method == "name":
        return f"it is called “{match.concept}”"
    if match.method == "edge":
        return f"an edge that is similar in meaning to “{match.concept}” leads to it"
    return f"it is {match.score:.2f} similar in meaning to “{match.concept}”"
