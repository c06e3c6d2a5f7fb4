"""Keyword retrieval on two levels, after LightRAG (1.5.7; Guo and others 2024).

Low-level keywords (names in a question) lead to entities and their edges (mode local);
high-level keywords (themes) lead to edges and their ends (mode global). Mode hybrid joins both;
mode mix adds the chunks nearest to the question. Unlike LightRAG, each keyword is linked
separately, and every retrieved item keeps its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from tgraph.model import Candidate, EntityMatch, RankedOrder, Retrieval
from tgraph.retrieve.base import Context, Question, in_conversation
from tgraph.retrieve.candidates import (
    KnownEntity,
    assign_ranks,
    chunk_candidates,
    chunks_naming,
    count_degrees,
    count_fitting,
    edge_candidate,
    entity_candidate,
    fit_budget,
    known_entities,
)
from tgraph.retrieve.entity_matching import add_labels, match_all, triples_of
from tgraph.retrieve.labels import Triple, with_labels
from tgraph.retrieve.modes.base import PROMPT, Level, Mode
from tgraph.retrieve.modes.lightrag import USUAL_CHUNKS, LightragSearchSettings
from tgraph.retrieve.orders import (
    MOST_BEYOND,
    Hits,
    cut_order,
    left_out_order,
    list_hit_iris,
    unlike_order,
)
from tgraph.retrieve.reasons import THIRD_WORDING, explain
from tgraph.retrieve.search.vector import fill_room, likeness_candidates, nearest_chunks
from tgraph.retrieve.subgraph import edges_of, ends, weights_of

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


# --- linking ---


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Link:
    """A keyword's link to an entity or edge; possible values of ``method``: ``name``,
    ``vector``."""

    iri: str
    keyword: str
    score: float
    method: str


@dataclass(frozen=True, slots=True)
class LinkedItems:
    """Items linked by keywords, best first, and orders cut off by limits."""

    links: Sequence[Link] = ()
    orders: tuple[RankedOrder, ...] = ()


def linked_entities(
    keywords: Sequence[str], count: int, least_score: float, context: Context
) -> LinkedItems:
    """Link keywords to entities, at most ``count``; keywords take turns.

    For each keyword, entities of exactly this name come first, then the nearest entities by
    vector, down to ``least_score`` (cosine)."""
    near = _nearest_links("entity", keywords, count, context)
    called = match_all(keywords, context.graph)
    name_links = {
        keyword: [Link(entity, keyword, 1.0, "name") for entity in called[keyword]]
        for keyword in near
    }
    return _keyword_orders("entity", "entities", near, name_links, count, least_score, context)


def linked_edges(
    keywords: Sequence[str], count: int, least_score: float, context: Context
) -> LinkedItems:
    """Link keywords to their nearest edges, at most ``count``; keywords take turns, nearest
    edges first."""
    near = _nearest_links("edge", keywords, count, context)
    return _keyword_orders("edge", "edges", near, {}, count, least_score, context)


def _nearest_links(
    kind: str, keywords: Sequence[str], count: int, context: Context
) -> dict[str, list[tuple[str, float]]]:
    """Return items of a kind nearest to each keyword, and further items beyond the count."""
    if not keywords:
        return {}
    vectors = context.embed(list(keywords))
    results = context.vectors[kind].search(vectors, count, beyond=MOST_BEYOND)
    return dict(zip(keywords, results, strict=True))


def _keyword_orders(
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
    why = f"{{item}} is {{place}} {plural} matched to the keywords, and {count} were taken (top-k)"
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
    """Interleave lists: first items of all lists, then second items, and so on, skipping
    repeated keys."""
    absent = object()
    items_by_key: dict[Hashable, T] = {}
    for row in zip_longest(*lists, fillvalue=absent):
        for item in row:
            if item is not absent:
                items_by_key.setdefault(key(item), item)  # type: ignore[arg-type]
    return list(items_by_key.values())


# --- picking ---


ItemGroups = Sequence[Sequence[str]]
"""The chunks of each entity or edge, the most important entity or edge first. The two ways to pick
of them are LightRAG's (1.5.7, ``kg_chunk_pick_method``)."""


PICK = "related-chunk-number"

NAMED = 0.1
"""What the match of an entity that a chunk names counts for, beside the chunk's own cosine."""


def pick_by_vector(
    groups: ItemGroups, each: int, question: NDArray[float32], context: Context
) -> tuple[list[str], tuple[RankedOrder, ...]]:
    """Return chunks most similar to the question, ``each`` for every two groups, and the
    remaining chunks."""
    chunk_iris = {chunk for group in groups for chunk in group}
    count = each * len(groups) // 2
    compared = list_hit_iris(
        context.vectors["chunk"].search(question, max(count, 1), chunk_iris, beyond=MOST_BEYOND)[0]
        if chunk_iris
        else ()
    )
    least = {c: -(-2 * n // len(groups)) for n, c in enumerate(compared, 1) if n > count}
    why = f"{{item}} becomes a candidate with {PICK} {{rank}} or more; the setting is {each}"
    return compared[:count], left_out_order("chunk", PICK, each, least, why)


def pick_by_weight(groups: ItemGroups, each: int) -> tuple[list[str], tuple[RankedOrder, ...]]:
    """Return the chunks shared by most groups, following a quota for each group.

    The first group gets ``each`` chunks, the following groups evenly fewer, the last group one
    chunk. Places that a group can't fill go to the other groups in turn."""
    distinct_groups = _deduplicate_groups(groups)
    last = max(1, len(distinct_groups) - 1)
    quotas = [round(each - place * (each - 1) / last) for place in range(len(distinct_groups))]
    picks = [group[:quota] for group, quota in zip(distinct_groups, quotas, strict=True)]
    remaining = sum(quotas) - sum(map(len, picks))
    while remaining and any(len(a) < len(b) for a, b in zip(picks, distinct_groups, strict=True)):
        for place, group in enumerate(distinct_groups):
            if remaining and len(picks[place]) < len(group):
                picks[place] = group[: len(picks[place]) + 1]
                remaining -= 1
    picked = [chunk for group in picks for chunk in group]
    why = "{item} is {place} chunks of an entity or edge, and"
    orders = [
        order
        for group, count in zip(distinct_groups, picks, strict=True)
        for order in cut_order(
            "chunk", PICK, len(count), group, f"{why} {len(count)} were picked ({PICK} {each})"
        )
    ]
    return picked, tuple(orders)


def shared_by(groups: ItemGroups) -> Mapping[str, int]:
    """Count the groups containing each chunk."""
    return Counter(chunk for group in groups for chunk in set(group))


def _deduplicate_groups(groups: ItemGroups) -> list[list[str]]:
    """Deduplicate groups: every chunk stays in its first group; widely shared chunks come
    first."""
    counts = shared_by(groups)
    earlier_chunks: set[str] = set()
    owned = []
    for group in groups:
        new_chunks = {chunk for chunk in group if chunk not in earlier_chunks}
        earlier_chunks |= new_chunks
        owned.append(sorted(new_chunks, key=lambda chunk: (-counts[chunk], chunk)))
    return owned


# --- retrieval ---


_PLACES = 40
"""Places of an edge that are looked at for chunks."""


@dataclass(frozen=True, slots=True)
class FoundEdge:
    """An edge with its score and retrieval reason."""

    iri: str
    triple: Triple
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class Leg:
    """The entities and edges found by one keyword level, best first."""

    matches: Sequence[EntityMatch] = ()
    edges: Sequence[FoundEdge] = ()
    orders: tuple[RankedOrder, ...] = ()


class LightRetriever:
    """A retriever for keyword modes: candidates of the keyword levels take turns."""

    step = "ContextBuilding"
    matches_entities = True

    def __init__(
        self, mode: Mode, settings: LightragSearchSettings, fills_prompts: bool = False
    ) -> None:
        assert mode.keywords is not None
        fills = fills_prompts and settings.chunk_top_k is None
        self._room = settings.max_total_tokens - PROMPT if fills else 0
        self._levels = mode.keywords.levels
        self._reads_chunks = mode.reads_text
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        legs = [self._build_leg(level, question, context) for level in self._levels]
        matches = in_turn([leg.matches for leg in legs], lambda match: match.entity)
        edges = in_turn([leg.edges for leg in legs], lambda edge: edge.iri)
        if context.wording >= THIRD_WORDING:
            edges = _sort_edges(edges, question, context)
        edge_limit = context.limits.max_subgraph_size
        gathered = _KeywordCandidates(
            matches, edges[:edge_limit], question, self._settings, context, self._room
        )
        near, orders = (
            self._nearest_candidates(question, context) if self._reads_chunks else ([], ())
        )
        candidates = assign_ranks(gathered.candidates(near))
        by_keyword = [order for leg in legs for order in leg.orders]
        by_keyword.sort(key=lambda order: order.limit == "least-score")
        return Retrieval(
            candidates,
            total=len(edges),
            items=sum(candidate.item.kind != "edge" for candidate in candidates),
            matches=tuple(add_labels(matches, context.graph)),
            cut=tuple(edge.iri for edge in edges) if len(edges) > edge_limit else (),
            orders=(*by_keyword, *orders, *gathered.orders),
        )

    def _build_leg(self, level: Level, question: Question, context: Context) -> Leg:
        """Build a leg from keywords; if no keyword matches, use the full question text."""
        is_low = level == "low"
        keywords = question.keywords.low if is_low else question.keywords.high
        build = local_leg if is_low else global_leg
        if not keywords:
            return Leg()
        leg = build(keywords, self._settings, context)
        return leg if leg.matches else build((question.text,), self._settings, context)

    def _nearest_candidates(
        self, question: Question, context: Context
    ) -> tuple[list[Candidate], tuple[RankedOrder, ...]]:
        settings = self._settings
        hits, orders = nearest_chunks(
            question,
            count_chunks(settings),
            "chunk-top-k",
            settings.least_score,
            context,
            self._room,
        )
        return likeness_candidates(hits, context), orders


def count_chunks(settings: LightragSearchSettings) -> int:
    """Return how many chunks are retrieved in any case."""
    return USUAL_CHUNKS if settings.chunk_top_k is None else settings.chunk_top_k


def _sort_edges(
    edges: Sequence[FoundEdge], question: Question, context: Context
) -> list[FoundEdge]:
    """Sort edges by similarity to the question; edges without a vector come last."""
    likeness = _compare_items("edge", [edge.iri for edge in edges], question, context)
    return sorted(edges, key=lambda edge: -likeness.get(edge.iri, -1.0))


def _compare_items(
    kind: str, iris: Sequence[str], question: Question, context: Context
) -> dict[str, float]:
    """Return the cosine similarity of each item of a kind to the question."""
    if not iris:
        return {}
    vector = context.embed([in_conversation(question)])
    return dict(context.vectors[kind].search(vector, len(iris), iris)[0])


def local_leg(keywords: Sequence[str], settings: LightragSearchSettings, context: Context) -> Leg:
    """Return keyword-linked entities with all their edges.

    Edges whose ends have most relationships come first, then edges with most weight."""
    linked = linked_entities(keywords, settings.top_k, settings.least_score, context)
    links = linked.links
    matches = [EntityMatch(x.iri, "", x.keyword, x.score, x.method) for x in links]
    triples = {iri: triple for x in links for iri, triple in edges_of(x.iri, context).items()}
    ends_by_edge = {iri: ends(triple) for iri, triple in triples.items()}
    tied = count_degrees(context, chain.from_iterable(ends_by_edge.values()))
    ranks = {iri: sum(tied[end] for end in edge_ends) for iri, edge_ends in ends_by_edge.items()}
    top_degree = max(ranks.values(), default=1)
    weights = weights_of(context, list(triples))
    order = sorted(triples, key=lambda i: (-ranks[i], -(weights[i][0] if i in weights else 0), i))
    return Leg(
        matches,
        [
            FoundEdge(
                iri,
                triples[iri],
                round(ranks[iri] / top_degree, 6),
                explain("edge-of-entity", count=ranks[iri]),
            )
            for iri in order
        ],
        linked.orders,
    )


def global_leg(keywords: Sequence[str], settings: LightragSearchSettings, context: Context) -> Leg:
    """Return the edges nearest to the keywords, with end entities in edge order."""
    linked = linked_edges(keywords, settings.top_k, settings.least_score, context)
    triples = triples_of([link.iri for link in linked.links], context)
    linked_triples = [(link, triples[link.iri]) for link in linked.links if link.iri in triples]
    matches = [
        EntityMatch(entity, "", link.keyword, link.score, "edge")
        for link, triple in linked_triples
        for entity in ends(triple)
    ]
    edges = [
        FoundEdge(
            link.iri,
            triple,
            link.score,
            explain("edge-similarity", score=link.score, keyword=link.keyword),
        )
        for link, triple in linked_triples
    ]
    return Leg(in_turn([matches], lambda match: match.entity), edges, linked.orders)


@dataclass(slots=True)
class _KeywordCandidates:
    """The entities and edges of all legs, as candidates, and the chunks that they come from, more
    than the usual number while ``room`` tokens last; ``orders`` are what limits on chunks cut off.
    """

    matches: Sequence[EntityMatch]
    edges: Sequence[FoundEdge]
    question: Question
    settings: LightragSearchSettings
    context: Context
    room: int = 0
    orders: list[RankedOrder] = field(default_factory=list)
    _known: dict[str, KnownEntity] = field(init=False)

    def __post_init__(self) -> None:
        self._known = known_entities(self.context, [match.entity for match in self.matches])

    def candidates(self, near: Sequence[Candidate]) -> list[Candidate]:
        """Return entities, edges and chunks as candidates.

        Chunks are those near the question, those naming the entities and those stating the edges;
        only entities and edges within the token budgets contribute chunks. What adds least to a
        prompt comes last: an edge whose quotes earlier edges have, after other edges; an entity
        with a name and nothing else, after the chunks."""
        entities, edges = self._entity_candidates(), self._edge_candidates()
        ranks_by_use = self.context.wording >= THIRD_WORDING
        if ranks_by_use:
            edges = _put_repeats_last(edges)
        budget = self.settings
        budgeted_entities = fit_budget(entities, budget.max_entity_tokens)
        chunks_by_entity = chunks_naming(self.context, [c.item.iri for c in budgeted_entities])
        speaking = [sorted(chunks_by_entity.get(c.item.iri, ())) for c in budgeted_entities]
        by_entities = self._chunk_candidates(speaking, "chunk-entities")
        kept_edges = fit_budget(edges, budget.max_relationship_tokens)
        by_edges = self._chunk_candidates(self._read_edge_chunks(kept_edges), "chunk-edges")
        chunks = in_turn([near, by_entities, by_edges], lambda c: c.item.iri)
        if self.room:
            known = {chunk.item.iri for chunk in chunks}
            others = fill_room(in_conversation(self.question), self.room, self.context)
            chunks += [chunk for chunk in others if chunk.item.iri not in known]
        if ranks_by_use and budget.chunk_pick == "vector":
            chunks = self._sort_chunks(chunks, chunks_by_entity)
        order = [c.item.iri for c in chunks]
        limit = count_chunks(budget)
        if self.room:
            limit = count_fitting(order, limit, self.room, self.context)
        why = "{item} is {place} chunks of the matched entities and edges, and the first"
        reason = f"{why} {limit} were taken (chunk-top-k)"
        self.orders[:0] = cut_order("chunk", "chunk-top-k", limit, order, reason)
        self.orders += [
            *_over_budget(
                "entity", "max-entity-tokens", budget.max_entity_tokens, entities, budgeted_entities
            ),
            *_over_budget(
                "edge", "max-relationship-tokens", budget.max_relationship_tokens, edges, kept_edges
            ),
        ]
        bare = {c.item.iri for c in entities if ranks_by_use and self._is_bare(c.item.iri)}
        return [
            *(entity for entity in entities if entity.item.iri not in bare),
            *edges,
            *chunks[:limit],
            *(entity for entity in entities if entity.item.iri in bare),
        ]

    def _is_bare(self, entity: str) -> bool:
        """Whether nothing but a name and a type is known of the entity itself."""
        known = self._known[entity]
        return not known.description and not known.claimed

    def _sort_chunks(
        self, chunks: Sequence[Candidate], chunks_by_entity: Mapping[str, Collection[str]]
    ) -> list[Candidate]:
        """Sort chunks by similarity to the question, and by the best match among the entities that
        a chunk names."""
        iris = [chunk.item.iri for chunk in chunks]
        scores = _compare_items("chunk", iris, self.question, self.context)
        named: dict[str, float] = {}
        for match in self.matches:
            for chunk in chunks_by_entity.get(match.entity, ()):
                named[chunk] = max(named.get(chunk, 0.0), match.score)
        worth = {iri: scores.get(iri, -1.0) + NAMED * named.get(iri, 0.0) for iri in iris}
        return sorted(chunks, key=lambda chunk: -round(worth[chunk.item.iri], 6))

    def _entity_candidates(self) -> list[Candidate]:
        limit = self.context.limits.evidence_limit
        candidates = [
            entity_candidate(self._known[match.entity], match.score, _match_reason(match), limit)
            for match in self.matches
            if match.entity in self._known
        ]
        return [candidate for candidate in candidates if candidate.evidence]

    def _edge_candidates(self) -> list[Candidate]:
        context = self.context
        iris = [edge.iri for edge in self.edges]
        limit = context.limits.evidence_limit
        evidence = context.evidence.of_edges(iris, limit)
        edges = with_labels(context.graph, [edge.triple for edge in self.edges])
        return [
            edge_candidate(edge, found_edge.score, found_edge.why, evidence[found_edge.iri])
            for edge, found_edge in zip(edges, self.edges, strict=True)
            if evidence.get(found_edge.iri)
        ]

    def _read_edge_chunks(self, edges: Sequence[Candidate]) -> ItemGroups:
        context = self.context
        iris = [candidate.item.iri for candidate in edges]
        evidence = context.evidence.of_edges(iris, _PLACES)
        return [[place.chunk for place in evidence.get(iri, ())] for iri in iris]

    def _chunk_candidates(self, groups: ItemGroups, kind: str) -> list[Candidate]:
        context, chunks_per_item = self.context, self.settings.related_chunk_number
        vector = context.embed([in_conversation(self.question)])
        if self.settings.chunk_pick == "vector":
            picked, orders = pick_by_vector(groups, chunks_per_item, vector, context)
        else:
            picked, orders = pick_by_weight(groups, chunks_per_item)
        self.orders += orders
        counts = shared_by(groups)
        chunk_rows = (
            (c, round(counts[c] / len(groups), 6), (explain(kind, count=counts[c]),))
            for c in picked
        )
        return chunk_candidates(context, chunk_rows)


def _put_repeats_last(edges: Sequence[Candidate]) -> list[Candidate]:
    """Return edges with a quote that no earlier edge has, then the other edges."""
    quoted: set[tuple[str, int, int]] = set()
    new: list[Candidate] = []
    repeated: list[Candidate] = []
    for edge in edges:
        places = {(place.chunk, place.start, place.end) for place in edge.evidence}
        (new if places - quoted else repeated).append(edge)
        quoted |= places
    return [*new, *repeated]


def _over_budget(
    kind: str, limit: str, budget: int, ordered: Sequence[Candidate], kept: Sequence[Candidate]
) -> tuple[RankedOrder, ...]:
    """Return candidates with unread chunks, each with the budget required."""
    has_room = {candidate.item.iri for candidate in kept}
    spent = accumulate(candidate.tokens or 0 for candidate in ordered)
    needed = {c.item.iri: tokens for c, tokens in zip(ordered, spent, strict=True)}
    least = {iri: tokens for iri, tokens in needed.items() if iri not in has_room}
    why = f"{{item}} becomes a candidate with {limit} {{rank}} or more; the setting is {budget}"
    return left_out_order(f"{kind} of chunks", limit, budget, least, why)


def _match_reason(match: EntityMatch) -> str:
    if match.method == "name":
        return explain("entity-name", keyword=match.concept)
    if match.method == "edge":
        return explain("entity-edge", keyword=match.concept)
    return explain("entity-similarity", score=match.score, keyword=match.concept)
