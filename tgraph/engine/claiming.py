"""From chunks to claims, where they are wanted: a reading of its own, with its own record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.engine.workshop import Workshop
from tgraph.errors import EndpointError, ModelError
from tgraph.extract.claims import ClaimExtractor
from tgraph.index.knowledge import Touched
from tgraph.index.sources import (
    Texts,
    chunks_of_document,
    derived,
    document_of_chunk,
    page_of_chunk,
    range_of_chunk,
    standing_documents,
    text_value,
)
from tgraph.model import Chunk, Extraction
from tgraph.record.agents import agent_quads
from tgraph.record.sources import ExtractionRecord
from tgraph.store.base import Store

STAGE = "Claims"
KIND = "ClaimExtraction"


def claim(shop: Workshop, touched: Touched) -> int:
    """Read the claims of every standing chunk that was not read for claims before, those of
    earlier runs too; how many were found. What evidence was found for is touched."""
    if not shop.settings.claims.enabled:
        return 0
    extractor = shop.parts.claims
    store = shop.copy.store
    chunks = _unread(store, Texts(store, shop.librarian))
    work = [(chunk, _title(store, chunk), _names(store, chunk)) for chunk in chunks]
    if work:
        shop.copy.add(agent_quads([extractor.agent]))
        shop.copy.add(shop.record.prompts(extractor.prompts))
        shop.show(STAGE, 0, len(work))
    found = 0
    results = shop.each(
        work,
        lambda item: _extract_one(shop, extractor, *item),
        by_model=extractor.agent.kind == "model",
    )
    for done, ((chunk, *_), extraction, began) in enumerate(results, 1):
        record = _record(shop, extractor, chunk, extraction, began)
        touched.entities |= record.entities
        touched.claims |= record.claims
        found += len(record.claims)
        shop.show(STAGE, done, len(work))
    return found


def _unread(store: Store, texts: Texts) -> Iterator[Chunk]:
    """The standing chunks that no claim extraction has read, in the order of their IRIs."""
    read = {
        used.object.value
        for kind in store.match(None, v.RDF_TYPE, v.tg(KIND), v.SOURCE_GRAPH)
        for used in store.match(kind.subject, v.prov("used"), None, v.SOURCE_GRAPH)
        if isinstance(used.object, NamedNode)
    }
    for document in sorted(standing_documents(store)):
        for chunk in sorted(chunks_of_document(store, document)):
            if chunk not in read:
                yield stored_chunk(store, texts, chunk)


def stored_chunk(store: Store, texts: Texts, chunk: str) -> Chunk:
    """The chunk as it was made, read back."""
    heading = text_value(store, chunk, v.tg("heading"))
    start, end = range_of_chunk(chunk)
    return Chunk(
        sha256=document_of_chunk(chunk).removeprefix(v.document_iri("")),
        page=page_of_chunk(chunk),
        index=int(text_value(store, chunk, v.tg("chunkIndex"))),
        start=start,
        end=end,
        text=texts.of_chunk(chunk),
        tokens=int(text_value(store, chunk, v.tg("tokenCount"))),
        headings=tuple(heading.split(" > ")) if heading else (),
    )


def _title(store: Store, chunk: Chunk) -> str:
    return text_value(store, v.document_iri(chunk.sha256), v.dcterms("title"))


def _names(store: Store, chunk: Chunk) -> list[str]:
    """The names that were found in the chunk."""
    found = derived(store, chunk.iri, "Evidence")
    evidence = [item for item in found if text_value(store, item, v.tg("entity"))]
    return sorted({text_value(store, item, v.tg("name")) for item in evidence})


def _extract_one(
    shop: Workshop, extractor: ClaimExtractor, chunk: Chunk, title: str, names: Sequence[str]
) -> Extraction:
    """The claims; a reply that can't be used costs its chunk, not the run."""
    try:
        return extractor.claims(chunk, title, names, shop.record.call)
    except EndpointError:
        raise
    except ModelError as error:
        shop.message(f"No claims were read from {title}, chunk {chunk.index + 1}: {error}")
        return Extraction(chunk.iri, (), (), dropped={"chunk whose claims can't be used": 1})


def _record(
    shop: Workshop,
    extractor: ClaimExtractor,
    chunk: Chunk,
    extraction: Extraction,
    began: datetime,
) -> ExtractionRecord:
    shop.record.write_calls(shop.copy)
    record = ExtractionRecord(shop.uuid, chunk, extraction, extractor.key, KIND)
    shop.copy.add(record.quads(shop.run, extractor.agent, extractor.prompts, began, shop.clock()))
    shop.record.dropped.update(extraction.dropped)
    return record
