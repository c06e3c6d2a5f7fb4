"""Local retrieval: graph surroundings of a question's entities.

Candidate order follows Microsoft GraphRAG (3.3.0, mixed context of local search): community
reports of the entities, the entities, edges among the entities, edges leading out, claims about
the entities, and chunks naming the entities. Unlike GraphRAG, the chunks most similar to the
question come first, whichever entity they name, and beside a model chunks near the question that
name none of the entities fill the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tgraph.model import Edge, EntityMatch, RankedOrder, Retrieval
from tgraph.retrieve.base import Context, Question, in_conversation
from tgraph.retrieve.candidates import assign_ranks
from tgraph.retrieve.entity_matching import add_labels, entities_named, match_names, names_within
from tgraph.retrieve.modes.local import LocalSearchSettings
from tgraph.retrieve.orders import MOST_BEYOND, cut_order, left_out_order
from tgraph.retrieve.reasons import THIRD_WORDING
from tgraph.retrieve.search.surroundings import MOST_CHUNKS, Surroundings
from tgraph.retrieve.search.vector import fill_room


class LocalRetriever:
    """The mode ``local``."""

    step = "ContextBuilding"
    matches_entities = True

    def __init__(self, settings: LocalSearchSettings, fills_prompts: bool = False) -> None:
        self._settings = settings
        self._room = settings.max_context_tokens if fills_prompts else 0

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        matches, orders = match_by_vector(question, self._settings, context)
        if context.wording < THIRD_WORDING:
            return retrieve_surroundings(matches, orders, self._settings, context)
        text = in_conversation(question)
        return retrieve_surroundings(matches, orders, self._settings, context, text, self._room)


def retrieve_surroundings(
    matches: Sequence[EntityMatch],
    orders: tuple[RankedOrder, ...],
    settings: LocalSearchSettings,
    context: Context,
    text: str = "",
    room: int = 0,
) -> Retrieval:
    """Everything around the matched entities, in the order in which it is considered; ``orders``
    are what limits cut off of the entities. Chunks most similar to ``text`` come first; others
    nearest to it follow while ``room`` tokens last."""
    surroundings = Surroundings.from_matches(matches, settings, context)
    scores = {match.entity: match.score for match in matches}
    among, out, rank = surroundings.edge_orders()
    most_out = settings.top_k_relationships * len(surroundings.entities)
    edges = [(iri, rank[iri]) for iri in (*among, *out[:most_out])]
    edge_limit = context.limits.max_subgraph_size
    labelled_edges = surroundings.load_edges(edges[:edge_limit])
    touched = surroundings.list_reports()
    chunks = list(islice(surroundings.speaking(labelled_edges), MOST_CHUNKS + MOST_BEYOND))
    if text:
        chunks = surroundings.rank_chunks(chunks, text)
    spoken_of = list(surroundings.spoken_of(chunks))
    named = {candidate.item.iri for candidate in spoken_of}
    nearest = fill_room(text, room, context) if text and room else []
    ordered = [
        *surroundings.report_candidates(touched),
        *surroundings.entity_candidates(scores),
        *surroundings.edge_candidates(labelled_edges),
        *surroundings.claim_candidates(),
        *spoken_of,
        *(candidate for candidate in nearest if candidate.item.iri not in named),
    ]
    candidates = assign_ranks(ordered)
    cut = [iri for iri, _ in edges] if len(edges) > edge_limit else []
    return Retrieval(
        candidates=candidates,
        total=len(edges),
        items=sum(not isinstance(c.item, Edge) for c in candidates),
        matches=tuple(matches),
        cut=tuple(cut),
        orders=(*orders, *surroundings.cut_orders(out, [chunk for chunk, *_ in chunks], touched)),
    )


def match_by_vector(
    question: Question, settings: LocalSearchSettings, context: Context
) -> tuple[list[EntityMatch], tuple[RankedOrder, ...]]:
    """The entities to start from: those to include, beside a large graph those that the question
    names, then the nearest, at most ``top_k_entities``; and the entities that were left out.

    More are looked at than are kept, since some are excluded. ``UsageError`` for a name to include
    or exclude that no entity has; to exclude, filters may have left out who has it.
    """
    included = [entities_named(name, context) for name in settings.include]
    excluded = {
        entity
        for name in settings.exclude
        for entity in (
            match_names(name, context.graph) if context.filters else entities_named(name, context)
        )
    }
    text = in_conversation(question)
    hit_limit = settings.top_k_entities * settings.oversampling + len(excluded)
    vectors = context.vectors["entity"]
    compared = vectors.search(context.embed([text]), hit_limit, beyond=MOST_BEYOND)[0]
    matched = {
        entity: EntityMatch(entity, "", name, 1.0, "name")
        for name, entities in zip(settings.include, included, strict=True)
        for entity in entities
    }
    if context.large_graphs:  # what they state has no vectors
        for entity, name in names_within(text, context.graph)[: settings.top_k_entities]:
            if entity not in excluded:
                matched.setdefault(entity, EntityMatch(entity, "", name, 1.0, "name"))
    for entity, score in compared[:hit_limit]:
        if entity not in excluded and len(matched) < settings.top_k_entities + len(
            settings.include
        ):
            matched.setdefault(
                entity, EntityMatch(entity, "", question.text, max(0.0, score), "vector")
            )
    unmatched = [e for e, _ in compared if e not in matched and e not in excluded]
    match_count = len(matched)
    why = f"and the first {match_count} were taken (top-k-entities)"
    reason = f"{{item}} is {{place}} entities by similarity to {{question}}, {why}"
    excluded_ranks = dict.fromkeys(sorted(excluded), 0)
    return add_labels(list(matched.values()), context.graph), (
        *left_out_order(
            "excluded", "exclude", None, excluded_ranks, "the setting exclude leaves out the entity"
        ),
        *cut_order(
            "entity",
            "top-k-entities",
            match_count,
            [*matched, *unmatched],
            reason,
            total=len(vectors) - len(excluded),
        ),
    )
