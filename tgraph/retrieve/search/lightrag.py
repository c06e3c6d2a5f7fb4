"""Retrieval by keywords on two levels, in the manner of LightRAG (1.5.7; Guo and others 2024).

What a question names leads to entities and the edges around them (local), its themes to edges and
their ends (global). Both together are hybrid, and with the chunks nearest to the question, mix.
Unlike there, each keyword is linked by itself, and whatever is retrieved keeps its evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from tgraph.errors import TgraphError
from tgraph.model import Candidate, EntityMatch, Retrieval
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
    LEGS,
    LegName,
    LightragSearchSettings,
)
from tgraph.retrieve.orders import (
    ALL,
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    iris,
    nearest,
    place_in,
    rerun,
    unlike,
)
from tgraph.retrieve.search.vector import (
    likeness_candidates,
    nearest_chunk_orders,
    nearest_chunks,
)
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


def linked_entities(
    keywords: Sequence[str], count: int, least_score: float, context: Context
) -> list[Link]:
    """At most ``count`` entities, the keywords taking turns: first what is called so, then what is
    nearest to the keyword, down to ``least_score`` (cosine)."""
    near = _nearest("entity", keywords, count, least_score, context)
    called = match_all(keywords, context.graph)
    named = [[Link(entity, each, 1.0, "name") for entity in called[each]] for each in keywords]
    pairs = zip(named, near, strict=True)
    return in_turn([[*exact, *others] for exact, others in pairs], attrgetter("iri"))[:count]


def linked_edges(
    keywords: Sequence[str], count: int, least_score: float, context: Context
) -> list[Link]:
    """At most ``count`` edges, the keywords taking turns, the nearest to each first."""
    near = _nearest("edge", keywords, count, least_score, context)
    return in_turn(near, attrgetter("iri"))[:count]


def _nearest(
    kind: str, keywords: Sequence[str], count: int, least_score: float, context: Context
) -> list[list[Link]]:
    if not keywords:
        return []
    results = context.vectors[kind].search(context.embed(list(keywords)), count)
    return [
        [Link(iri, keyword, max(0.0, s), "vector") for iri, s in hits if s >= least_score]
        for keyword, hits in zip(keywords, results, strict=True)
    ]


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


def pick_by_vector(
    groups: Groups, each: int, question: NDArray[float32], context: Context
) -> list[str]:
    """The chunks most similar to the question, ``each`` for every two groups."""
    wanted = {chunk for group in groups for chunk in group}
    hits = context.vectors["chunk"].search(question, each * len(groups) // 2, wanted)[0]
    return [chunk for chunk, _ in hits]


def pick_by_weight(groups: Groups, each: int) -> list[str]:
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
    return [chunk for group in taken for chunk in group]


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
        near = self._near(question, context) if "chunks" in self._legs else []
        candidates = ranked(gathered.candidates(near))
        return Retrieval(
            candidates,
            total=len(edges),
            items=sum(candidate.item.kind != "edge" for candidate in candidates),
            matches=tuple(labelled(matches, context.graph)),
            cut=tuple(edge.iri for edge in edges) if len(edges) > most else (),
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

    def _near(self, question: Question, context: Context) -> list[Candidate]:
        settings = self._settings
        hits = nearest_chunks(question, settings.chunk_top_k, settings.least_score, context)
        return likeness_candidates(hits, context)


def local_leg(keywords: Sequence[str], settings: LightragSearchSettings, context: Context) -> Leg:
    """The entities that the keywords lead to, and all edges of them: those whose ends have most
    relationships first, then those of most weight."""
    links = linked_entities(keywords, settings.top_k, settings.least_score, context)
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
    )


def global_leg(keywords: Sequence[str], settings: LightragSearchSettings, context: Context) -> Leg:
    """The edges nearest to the keywords, and the entities at their ends in the order of the
    edges."""
    linked = linked_edges(keywords, settings.top_k, settings.least_score, context)
    triples = triples_of([link.iri for link in linked], context)
    found = [(link, triples[link.iri]) for link in linked if link.iri in triples]
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
    return Leg(in_turn([matches], lambda match: match.entity), edges)


@dataclass(slots=True)
class _KeywordCandidates:
    """The entities and edges of all legs, as candidates, and the chunks that they come from."""

    matches: Sequence[EntityMatch]
    edges: Sequence[FoundEdge]
    question: Question
    settings: LightragSearchSettings
    context: Context
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
        stating = self._stating(within(edges, budget.max_relationship_tokens))
        by_edges = self._chunks(stating, "it states {} of the edges found")
        chunks = in_turn([near, by_entities, by_edges], lambda c: c.item.iri)
        return [*entities, *edges, *chunks[: budget.chunk_top_k]]

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
            picked = pick_by_vector(groups, each, vector, context)
        else:
            picked = pick_by_weight(groups, each)
        counts = shared_by(groups)
        found = ((c, round(counts[c] / len(groups), 6), (why.format(counts[c]),)) for c in picked)
        return chunk_candidates(context, found)


def _why(match: EntityMatch) -> str:
    if match.method == "name":
        return f"it is called “{match.concept}”"
    if match.method == "edge":
        return f"an edge that is similar in meaning to “{match.concept}” leads to it"
    return f"it is {match.score:.2f} similar in meaning to “{match.concept}”"


# --- cut-offs ---


_LIFTED = {
    "chunk_top_k": 1 << 20,
    "related_chunk_number": 1 << 12,
    "max_entity_tokens": 1 << 24,
    "max_relationship_tokens": 1 << 24,
}
"""The limits on chunks in the order in which they are lifted, each beside those before it, and how
far."""


def lightrag_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The entities and edges in the order of the keywords, then the chunks: those nearest to the
    question, and those of what the keywords lead to."""
    own = context.settings.lightrag_search
    try:
        yield from _linked(missing, search, context)
        if "chunks" in LEGS[search.mode]:
            name, most = "chunk-top-k", own.chunk_top_k
            yield from nearest_chunk_orders(name, most, own.least_score, missing, search, context)
        if missing.chunks:
            yield from _picked(missing, search, context)
    except TgraphError:
        yield from _unpicked(missing, search, context)


def _linked(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The entities that the keywords of the low level lead to, and the edges by the others; then
    what no keyword leads to, for it is too unlike."""
    own, words = context.settings.lightrag_search, search.question.keywords
    ends = missing.ends(context.store)
    entities = _known(linked_entities, words.low, own.least_score, context)
    edges = _known(linked_edges, words.high, own.least_score, context)
    orders = [
        RankedOrder(
            "top-k",
            own.top_k,
            [link.iri for link in links],
            wanted,
            f"{many} that the keywords lead to, and {own.top_k} were taken (top-k)",
        )
        for many, links, wanted in (("entities", entities, ends), ("edges", edges, missing.edges))
    ]
    yield from orders
    kinds = (("entity", words.low), ("edge", words.high))
    for order, (kind, keywords) in zip(orders, kinds, strict=True):
        if order.standing is None:
            yield from _unlike(kind, keywords, order.wanted, own.least_score, context)


def _known(
    links: Callable[[Sequence[str], int, float, Context], list[Link]],
    keywords: Sequence[str],
    least: float,
    context: Context,
) -> list[Link]:
    """All that the keywords lead to; nothing where the vector of one is on no record."""
    with suppress(TgraphError):
        return links(keywords, ALL, least, context)
    return []


def _unlike(
    kind: str, keywords: Sequence[str], wanted: Collection[str], least: float, context: Context
) -> Orders:
    """The keyword that it is most like, and not enough."""
    hits = {word: nearest(context, kind, word) for word in keywords}
    scores = {
        word: found[place - 1][1]
        for word, found in hits.items()
        if (place := place_in(iris(found), wanted))
    }
    if scores:
        best = max(scores, key=lambda word: scores[word])
        yield from unlike(hits[best], wanted, least, f"“{best}”")


def _picked(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """Chunks are taken of what the keywords lead to, as far as that has room: the first limit that
    lets one in when it is lifted after those before it."""
    own = context.settings.lightrag_search

    def lets_in(values: Mapping[str, int]) -> bool:
        settings = own.model_copy(update=dict(values))
        found = LightRetriever(LEGS[search.mode], settings).retrieve(search.question, context)
        return any(candidate.item.iri in missing.chunks for candidate in found.candidates)

    beside: dict[str, int] = {}
    for limit, most in _LIFTED.items():
        yield from rerun(own, limit, most, beside, lets_in, "its chunk is among the candidates")
        beside[limit] = most


def _unpicked(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """As ``_picked``, where the order of the chunks can't be known any more."""
    named = missing.spoken_of(context.store)
    labels = [match.label for match in search.matches if match.entity in named]
    if labels and missing.chunks:
        own = context.settings.lightrag_search
        why = f"its chunk speaks of {labels[0]}, and {own.chunk_top_k} chunks at most were taken,"
        why = f"{why} {own.related_chunk_number} of an entity (chunk-top-k, related-chunk-number)"
        yield CutOff("chunk-top-k", own.chunk_top_k, None, why)
