"""From documents to evidence: chunks are made, read by the extractor, and put on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tgraph import vocabulary as v
from tgraph.engine.intake import Intake
from tgraph.engine.workshop import Workshop
from tgraph.errors import EndpointError, ModelError
from tgraph.extract.base import with_endpoints
from tgraph.index.cooccurrence import encode
from tgraph.index.knowledge import Touched
from tgraph.index.sources import text_value
from tgraph.ingest.chunk import chunk_document
from tgraph.model import Chunk, Document, Extraction
from tgraph.record.nquads import quads_of
from tgraph.record.occurrences import occurrence_quads
from tgraph.record.sources import ExtractionRecord, chunk_quads

STAGE = "Extracting"
UNUSABLE = "chunk whose reply can't be used"


@dataclass(slots=True)
class Extracted:
    """How much was read and found."""

    chunks: int
    entities: int = 0
    relationships: int = 0


def extract(shop: Workshop, intakes: Sequence[Intake], touched: Touched) -> Extracted:
    """Extract from every chunk of the new documents; what evidence was found for is touched."""
    work = [
        (chunk, intake.document.title)
        for intake in intakes
        if intake.document is not None
        for chunk in _chunks(shop, intake.document)
    ]
    counts = Extracted(len(work))
    shop.show(STAGE, 0, len(work))
    results = shop.each(
        work, lambda item: _extract_one(shop, *item), by_model=shop.extractor.agent.kind == "model"
    )
    for done, ((chunk, _), extraction, began) in enumerate(results, 1):
        record = _record(shop, chunk, extraction, began)
        touched.entities |= record.entities
        touched.edges |= record.edges
        counts.entities += len(record.entities)
        counts.relationships += len(record.edges)
        shop.show(STAGE, done, len(work))
    return counts


def _chunks(shop: Workshop, document: Document) -> list[Chunk]:
    c = shop.settings.chunk
    return chunk_document(document, c.size, c.overlap, c.by, c.encoding)


def _extract_one(shop: Workshop, chunk: Chunk, title: str) -> Extraction:
    """The extraction; a reply that can't be used costs its chunk, not the run."""
    try:
        return shop.extractor.extract(chunk, title, shop.record.call)
    except EndpointError:
        raise
    except ModelError as error:
        shop.message(f"Nothing was extracted from {title}, chunk {chunk.index + 1}: {error}")
        return Extraction(chunk.iri, (), (), dropped={UNUSABLE: 1})


def _record(
    shop: Workshop, chunk: Chunk, extraction: Extraction, began: datetime
) -> ExtractionRecord:
    shop.record.write_calls(shop.copy)
    extractor = shop.extractor
    stated = extraction if not extraction.sentences else replace(extraction, entities=())
    record = ExtractionRecord(shop.uuid, chunk, with_endpoints(stated), extractor.key)
    known = text_value(shop.copy.store, record.subgraph, v.RDF_TYPE)
    quads, lines = record.state(shop.run, extractor.agent, extractor.prompts, began, shop.clock())
    shop.copy.add([*chunk_quads(chunk), *quads])
    if known:  # the same was found in this chunk before
        shop.copy.add(quads_of(lines))
    else:
        shop.copy.add_new(lines)
    if extraction.sentences:  # what of them is worth knowing, only the whole collection tells
        shop.copy.add(occurrence_quads(record.subgraph, shop.record.keep(encode(extraction))))
    shop.record.dropped.update(extraction.dropped)
    return record
