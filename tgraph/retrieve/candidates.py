"""Candidates: entities, edges and chunks relevant to a question, with token costs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from pyoxigraph import NamedNode

from tgraph.index.prepended_metadata import standing_prefaces
from tgraph.index.sources import document_of_chunk, page_of_chunk, range_of_chunk
from tgraph.model import Candidate, Edge, Evidence, Item
from tgraph.models.tokens import count_tokens
from tgraph.retrieve.base import BoundedCache, Context
from tgraph.retrieve.reasons import THIRD_WORDING
from tgraph.store.base import select_rows, text_of

MOST_PLACES = 40
"""Places of an entity that are read; more are shown of none."""

FRAME = 24
"""Tokens of the JSON around an item: its id, keys and quotation marks."""


UNTITLED_FRAME = 16
"""The same of an item that is shown without a title."""


def cost_of(
    item: Edge | Item, tokens: int | None = None, evidence: tuple[Evidence, ...] = ()
) -> int:
    """Return the token count of the line showing a model the item.

    ``tokens`` is the text length, where known; an edge is shown with its evidence's quotes."""
    if isinstance(item, Edge):
        texts = [item.text, *(place.quote for place in evidence)]
        return FRAME + sum(map(count_tokens, texts))
    text = count_tokens(item.text) if tokens is None else tokens
    before = count_tokens(item.preface) if item.preface else 0
    head = UNTITLED_FRAME if item.title == "" else FRAME + count_tokens(item.shown_title)
    return head + before + text


def edge_cost(edge: Edge, places: Sequence[Evidence], context: Context) -> int:
    """Return an edge's cost like ``cost_of``, counting the tokens of each text and quote only
    once."""
    token_counts: BoundedCache[str, int] = context.open_cache("tokens of edges and quotes", 100_000)
    texts = [(edge.iri, edge.text), *((place.iri, place.quote) for place in places)]
    return FRAME + sum(
        token_counts.load_item(iri, partial(count_tokens, text)) for iri, text in texts
    )


def chunk_evidence(context: Context, chunks: Sequence[str]) -> dict[str, Evidence]:
    """Return each complete chunk as evidence of itself; omit chunks of documents no longer
    standing."""
    documents = context.evidence.documents({document_of_chunk(chunk) for chunk in chunks})
    evidence_by_chunk = {}
    for chunk in chunks:
        document = document_of_chunk(chunk)
        if document in documents:
            title, path = documents[document]
            start, end = range_of_chunk(chunk)
            text = context.texts.of_chunk(chunk)
            page = page_of_chunk(chunk)
            evidence_by_chunk[chunk] = Evidence(
                chunk, chunk, chunk, document, title, path, page, start, end, text
            )
    return evidence_by_chunk


def chunk_item(evidence: Evidence, context: Context) -> Item:
    """Return the chunk item for evidence covering the complete chunk; a prompt shows its document's
    title, unless the text begins with it."""
    prefaces = context.read_once("prefaces", lambda: standing_prefaces(context.store))
    page = f", page {evidence.page}" if evidence.page is not None else ""
    label = f"{evidence.title}{page}, characters {evidence.start}–{evidence.end}"
    title = None
    if context.wording >= THIRD_WORDING:
        begins = evidence.quote.lstrip("# ").startswith(evidence.title)
        title = "" if begins else f"{evidence.title}{page}"
    preface = prefaces.get(evidence.chunk, "")
    return Item("chunk", evidence.chunk, label, evidence.quote, preface, title)


def chunk_tokens(context: Context, chunks: Sequence[str]) -> dict[str, int]:
    """Return chunk lengths in tokens, counted when creating the chunks."""
    read = context.graph.counts.chunk_tokens
    return context.open_cache("chunk tokens", 50_000).get_all(chunks, read)


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """A knowledge graph entity with a relationship count.

    ``places`` contains the first places of the descriptions, or else places naming the entity;
    ``claimed`` tells whether a claim concerns the entity."""

    iri: str
    label: str
    type: str
    description: str
    links: int
    places: tuple[Evidence, ...]
    claimed: bool = False

    @property
    def item(self) -> Item:
        summary = ". ".join(part for part in (self.type, self.description) if part)
        count = f"{self.links} relationship{'' if self.links == 1 else 's'}"
        return Item("entity", self.iri, self.label, f"{summary} ({count})".strip())


def known_entities(context: Context, entities: Sequence[str]) -> dict[str, KnownEntity]:
    """Return entities held by knowledge, in the given order."""
    memory = context.open_cache("entities", 20_000)
    return memory.get_all(entities, lambda missing: _read_entities(missing, context))


def _read_entities(entities: list[str], context: Context) -> dict[str, KnownEntity]:
    nodes = [NamedNode(entity) for entity in entities]
    columns_by_entity: dict[str, dict[str, list[str]]] = {}
    for row in select_rows(context.store, "retrieve/entities", {"entities": nodes}):
        columns = columns_by_entity.setdefault(text_of(row["entity"]), {})
        for column in ("label", "type", "description", "claimed"):
            values = columns.setdefault(column, [])
            if (value := text_of(row[column])) and value not in values:
                values.append(value)
    links = count_degrees(context, columns_by_entity)
    places = context.evidence.telling(
        list(columns_by_entity), max(MOST_PLACES, context.limits.evidence_limit)
    )
    return {
        entity: KnownEntity(
            entity,
            entity_columns["label"][0],
            ", ".join(entity_columns["type"]),
            " ".join(entity_columns["description"]),
            links[entity],
            places.get(entity, ()),
            "true" in entity_columns["claimed"],
        )
        for entity, entity_columns in columns_by_entity.items()
    }


def chunks_naming(context: Context, entities: Sequence[str]) -> Mapping[str, Collection[str]]:
    """Return chunks of standing documents mentioning each entity."""
    memory = context.open_cache("chunks of entities", 100)
    return memory.get_all(entities, context.evidence.mentions)


def count_degrees(context: Context, entities: Iterable[str]) -> Mapping[str, int]:
    """The number of relationships and attributes of each entity, as of ``CountSource``."""
    count = context.graph.counts.degrees
    return context.open_cache("degrees", 100_000).get_all(entities, count)


def entity_candidate(entity: KnownEntity, score: float, why: str, limit: int) -> Candidate:
    """Return an entity candidate; evidence places are limited to ``limit``."""
    places = entity.places[:limit]
    item = entity.item
    return Candidate(item, 0, score, evidence=places, reasons=(why,), tokens=cost_of(item))


def edge_candidate(
    edge: Edge, score: float, why: str, places: tuple[Evidence, ...], tokens: int | None = None
) -> Candidate:
    """Return an edge candidate, shown with evidence quotes; ``tokens`` is the cost, where
    known."""
    cost = cost_of(edge, evidence=places) if tokens is None else tokens
    return Candidate(edge, 0, score, evidence=places, reasons=(why,), tokens=cost)


def chunk_candidates(
    context: Context,
    chunks: Iterable[tuple[str, float, tuple[str, ...]]],
    known: Mapping[str, Evidence] | None = None,
) -> list[Candidate]:
    """Return chunk candidates with scores and reasons; omit chunks of documents no longer
    standing.

    ``known`` is the chunks' ``chunk_evidence``, if already read."""
    scored_chunks = list(chunks)
    evidence_by_chunk = (
        chunk_evidence(context, [chunk for chunk, _, _ in scored_chunks])
        if known is None
        else known
    )
    standing = [entry for entry in scored_chunks if entry[0] in evidence_by_chunk]
    tokens = chunk_tokens(context, [chunk for chunk, _, _ in standing])
    items = [chunk_item(evidence_by_chunk[chunk], context) for chunk, _, _ in standing]
    return [
        Candidate(
            item,
            0,
            score,
            evidence=(evidence_by_chunk[chunk],),
            reasons=reasons,
            tokens=cost_of(item, tokens.get(chunk)),
        )
        for item, (chunk, score, reasons) in zip(items, standing, strict=True)
    ]


def count_fitting(chunks: Sequence[str], least: int, budget: int, context: Context) -> int:
    """Return how many of the chunks, in order, fit the token budget; at least ``least``."""
    tokens = chunk_tokens(context, chunks)
    spent = accumulate(UNTITLED_FRAME + tokens.get(chunk, 0) for chunk in chunks)
    return max(least, sum(total <= budget for total in spent))


def assign_ranks(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates with ranks from 1, in the given order."""
    return tuple(replace(candidate, rank=rank) for rank, candidate in enumerate(candidates, 1))


def fit_budget(candidates: Sequence[Candidate], budget: int) -> list[Candidate]:
    """Return candidates fitting the token budget, in order; larger candidates are skipped."""
    fitting = []
    for candidate in candidates:
        cost = candidate.tokens or 0
        if cost <= budget:
            budget -= cost
            fitting.append(candidate)
    return fitting
