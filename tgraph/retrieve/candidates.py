"""Candidates: entities, edges and chunks as a question sees them, and what each costs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyoxigraph import NamedNode

from tgraph.index.prepended_metadata import standing_prefaces
from tgraph.index.sources import document_of_chunk, page_of_chunk, range_of_chunk
from tgraph.model import Candidate, Edge, Evidence, Item
from tgraph.models.tokens import count_tokens
from tgraph.retrieve.base import BoundedCache, Context
from tgraph.store.base import select, text_of

MOST_PLACES = 40
"""Places of an entity that are read; more are shown of none."""

FRAME = 24
"""Tokens of the JSON around an item: its id, keys and quotation marks."""


def cost_of(
    item: Edge | Item, tokens: int | None = None, evidence: tuple[Evidence, ...] = ()
) -> int:
    """The tokens of the line by which a model is shown the item. ``tokens`` is the length of its
    text where that is known; an edge is shown with the quotes of its evidence."""
    if isinstance(item, Edge):
        texts = [item.text, *(each.quote for each in evidence)]
        return FRAME + sum(map(count_tokens, texts))
    text = count_tokens(item.text) if tokens is None else tokens
    before = count_tokens(item.preface) if item.preface else 0
    return FRAME + count_tokens(item.label) + before + text


def edge_cost(edge: Edge, places: Sequence[Evidence], context: Context) -> int:
    """As ``cost_of`` an edge; what its text and each quote cost is counted once."""
    known: BoundedCache[str, int] = context.remembered("tokens of edges and quotes", 100_000)
    texts = [(edge.iri, edge.text), *((place.iri, place.quote) for place in places)]
    return FRAME + sum(known.get(iri, partial(count_tokens, text)) for iri, text in texts)


def chunk_evidence(context: Context, chunks: Sequence[str]) -> dict[str, Evidence]:
    """The whole of each chunk as evidence of itself; chunks of what no longer stands are left
    out."""
    documents = context.evidence.documents({document_of_chunk(chunk) for chunk in chunks})
    found = {}
    for chunk in chunks:
        document = document_of_chunk(chunk)
        if document in documents:
            title, path = documents[document]
            start, end = range_of_chunk(chunk)
            text = context.texts.of_chunk(chunk)
            page = page_of_chunk(chunk)
            found[chunk] = Evidence(
                chunk, chunk, chunk, document, title, path, page, start, end, text
            )
    return found


def chunk_item(evidence: Evidence, context: Context) -> Item:
    """The chunk that the evidence is the whole of."""
    prefaces = context.once("prefaces", lambda: standing_prefaces(context.store))
    page = f", page {evidence.page}" if evidence.page is not None else ""
    label = f"{evidence.title}{page}, characters {evidence.start}–{evidence.end}"
    return Item("chunk", evidence.chunk, label, evidence.quote, prefaces.get(evidence.chunk, ""))


def chunk_tokens(context: Context, chunks: Sequence[str]) -> dict[str, int]:
    """The lengths in tokens, as counted when the chunks were made."""
    read = context.graph.counts.chunk_tokens
    return context.remembered("chunk tokens", 50_000).get_all(chunks, read)


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """An entity of the knowledge graph with its relationships counted.

    ``places`` are the first that its descriptions come from, or else that name it; ``claimed``
    tells whether a claim is about it.
    """

    iri: str
    label: str
    type: str
    description: str
    links: int
    places: tuple[Evidence, ...]
    claimed: bool = False

    @property
    def item(self) -> Item:
        about = ". ".join(part for part in (self.type, self.description) if part)
        count = f"{self.links} relationship{'' if self.links == 1 else 's'}"
        return Item("entity", self.iri, self.label, f"{about} ({count})".strip())


def known_entities(context: Context, entities: Sequence[str]) -> dict[str, KnownEntity]:
    """Those of the entities that knowledge holds, in the order given."""
    memory = context.remembered("entities", 20_000)
    return memory.get_all(entities, lambda missing: _read(missing, context))


def _read(entities: list[str], context: Context) -> dict[str, KnownEntity]:
    nodes = [NamedNode(entity) for entity in entities]
    said: dict[str, dict[str, list[str]]] = {}
    for row in select(context.store, "retrieve/entities", {"entities": nodes}, union=False):
        known = said.setdefault(text_of(row["entity"]), {})
        for column in ("label", "type", "description", "claimed"):
            values = known.setdefault(column, [])
            if (value := text_of(row[column])) and value not in values:
                values.append(value)
    links = degrees(context, said)
    places = context.evidence.telling(list(said), max(MOST_PLACES, context.limits.evidence_limit))
    return {
        entity: KnownEntity(
            entity,
            about["label"][0],
            ", ".join(about["type"]),
            " ".join(about["description"]),
            links[entity],
            places.get(entity, ()),
            "true" in about["claimed"],
        )
        for entity, about in said.items()
    }


def chunks_naming(context: Context, entities: Sequence[str]) -> Mapping[str, Collection[str]]:
    """The chunks of standing documents that speak of each of the entities."""
    memory = context.remembered("chunks of entities", 100)
    return memory.get_all(entities, context.evidence.mentions)


def degrees(context: Context, entities: Iterable[str]) -> Mapping[str, int]:
    """The number of relationships and attributes of each entity, as of ``CountSource``."""
    count = context.graph.counts.degrees
    return context.remembered("degrees", 100_000).get_all(entities, count)


def entity_candidate(entity: KnownEntity, score: float, why: str, limit: int) -> Candidate:
    """The entity with its first places, at most ``limit``."""
    places = entity.places[:limit]
    item = entity.item
    return Candidate(item, 0, score, evidence=places, reasons=(why,), tokens=cost_of(item))


def edge_candidate(
    edge: Edge, score: float, why: str, places: tuple[Evidence, ...], tokens: int | None = None
) -> Candidate:
    """The edge, which is shown with the quotes of its evidence; ``tokens`` is what it costs so,
    where that is known."""
    cost = cost_of(edge, evidence=places) if tokens is None else tokens
    return Candidate(edge, 0, score, evidence=places, reasons=(why,), tokens=cost)


def chunk_candidates(
    context: Context,
    chunks: Iterable[tuple[str, float, tuple[str, ...]]],
    known: Mapping[str, Evidence] | None = None,
) -> list[Candidate]:
    """Chunks, each with its score and reasons; those of what no longer stands are left out.
    ``known`` is their ``chunk_evidence``, where it has been read already."""
    found = list(chunks)
    whole = chunk_evidence(context, [chunk for chunk, _, _ in found]) if known is None else known
    standing = [each for each in found if each[0] in whole]
    tokens = chunk_tokens(context, [chunk for chunk, _, _ in standing])
    items = [chunk_item(whole[chunk], context) for chunk, _, _ in standing]
    return [
        Candidate(
            item,
            0,
            score,
            evidence=(whole[chunk],),
            reasons=reasons,
            tokens=cost_of(item, tokens.get(chunk)),
        )
        for item, (chunk, score, reasons) in zip(items, standing, strict=True)
    ]


def ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The candidates with their ranks, from 1 in this order."""
    return tuple(replace(candidate, rank=rank) for rank, candidate in enumerate(candidates, 1))


def within(candidates: Sequence[Candidate], budget: int) -> list[Candidate]:
    """The candidates in their order as far as their tokens fit; what doesn't fit is passed over."""
    fitting = []
    for candidate in candidates:
        cost = candidate.tokens or 0
        if cost <= budget:
            budget -= cost
            fitting.append(candidate)
    return fitting
