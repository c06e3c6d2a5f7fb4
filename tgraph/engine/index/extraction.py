"""Document extraction: an extractor reads chunks for evidence and, if enabled, for claims.

Every reading is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.engine.index.document_ingest import IngestedFile
from tgraph.engine.index.phase import IndexContext, M, Made, Phase
from tgraph.errors import UsageError
from tgraph.extract.base import Extractor, with_endpoints
from tgraph.extract.chinese import tagger_version
from tgraph.extract.model.claims import ClaimExtractor
from tgraph.extract.model.extractor import CUT_OFF, LOST_ROUND
from tgraph.index.cooccurrence import encode_occurrences
from tgraph.index.prepended_metadata import document_preface, stored_preface
from tgraph.index.sources import (
    Texts,
    derived_items,
    is_note,
    standing_chunks,
    stored_chunk,
    text_value,
)
from tgraph.index.touched import Touched
from tgraph.ingest.chunk import chunk_document
from tgraph.ingest.languages import detect_language
from tgraph.model import Chunk, Document, Extraction
from tgraph.models.base import CallSink
from tgraph.models.prompts import language_name
from tgraph.models.tokens import count_tokens
from tgraph.record.sources import ExtractionRecord, chunk_quads, occurrence_quads
from tgraph.settings import ChunkSettings
from tgraph.store.base import Store

UNUSABLE = "chunk whose reply can't be used"
CLAIMS = "ClaimExtraction"


@dataclass(frozen=True, slots=True)
class _ChunkToRead:
    """A chunk to read, with its document title and known names."""

    chunk: Chunk
    title: str
    names: Sequence[str] = ()

    @property
    def place_label(self) -> str:
        return f"{self.title}, chunk {self.chunk.index + 1}"


@dataclass(slots=True)
class Extracted:
    """Counts of chunks read, entities and relationships extracted."""

    chunks: int
    entities: int = 0
    relationships: int = 0


class _ReadingPhase(Phase[_ChunkToRead, Extraction, M]):
    """A phase that reads chunks and marks subjects of new evidence as touched.

    An unusable reply yields an empty extraction for its chunk."""

    def __init__(self, context: IndexContext, maker: M, touched: Touched) -> None:
        super().__init__(context, maker)
        self._touched = touched

    def fall_back(self, item: _ChunkToRead, error: str) -> Made[Extraction, M]:
        nothing = Extraction(item.chunk.iri, (), (), dropped={self.unusable: 1})
        return Made(nothing, self.maker, error)

    def count_dropped(self, made: Made[Extraction, M]) -> dict[str, int]:
        return dict(made.result.dropped)

    def partial_loss(self, item: _ChunkToRead, made: Made[Extraction, M]) -> str:
        dropped = made.result.dropped
        losses = [f"{dropped[r]} {r}" for r in (CUT_OFF, LOST_ROUND) if dropped.get(r)]
        if not losses:
            return ""
        remedy = " Raise chat.max_tokens, or use smaller chunks." if dropped.get(CUT_OFF) else ""
        return f"{item.place_label} is read in part: {', '.join(losses)}.{remedy}"


class _ExtractionPhase(_ReadingPhase[Extractor]):
    stage = "Extracting"
    unusable = UNUSABLE

    def __init__(self, context: IndexContext, touched: Touched, counts: Extracted) -> None:
        super().__init__(context, context.extractor, touched)
        self._counts = counts

    def produce_result(self, item: _ChunkToRead, maker: Extractor, sink: CallSink) -> Extraction:
        return maker.extract(item.chunk, item.title, sink)

    def complaint(self, item: _ChunkToRead, made: Made[Extraction, Extractor]) -> str:
        return f"Nothing was extracted from {item.place_label}: {made.error}"

    def record(
        self, item: _ChunkToRead, made: Made[Extraction, Extractor], began: datetime
    ) -> None:
        context, extraction = self.context, made.result
        evidence = extraction if not extraction.sentences else replace(extraction, entities=())
        how = self.authorship(made, began)
        known_terms = getattr(made.by, "ontologies", ())
        record = ExtractionRecord(
            how, item.chunk, with_endpoints(evidence), made.by.key, ontologies=known_terms
        )
        record_reading(context, item.chunk, record, self._touched, self._counts)
        if extraction.sentences:  # what of them is worth knowing, only the whole collection tells
            content_key = context.record.keep_content(encode_occurrences(extraction))
            context.copy.add(occurrence_quads(record.subgraph, content_key))


def record_reading(
    context: IndexContext,
    chunk: Chunk,
    record: ExtractionRecord,
    touched: Touched,
    counts: Extracted,
) -> None:
    """Record a chunk's extraction, mark its entities, edges and claims as touched, and update
    counts."""
    earlier_type = text_value(context.copy.store, record.subgraph, v.RDF_TYPE)
    shared, new = record.state()
    context.copy.add([*chunk_quads(chunk), *shared])
    if earlier_type:  # the same was found in this chunk before
        context.copy.add(new)
    else:
        context.copy.add_new(new)
    touched.entities |= record.entities
    touched.edges |= record.edges
    touched.claims |= record.claims
    counts.entities += len(record.entities)
    counts.relationships += len(record.edges)


def extract_documents(
    context: IndexContext, intakes: Sequence[IngestedFile], touched: Touched
) -> Extracted:
    """Extract evidence from every chunk of new documents, marking subjects of evidence as
    touched."""
    work = [
        _ChunkToRead(chunk, intake.document.title)
        for intake in intakes
        if intake.document is not None
        for chunk in chunks_of(intake.document, context.settings.chunk)
    ]
    counts = Extracted(len(work))
    _ExtractionPhase(context, touched, counts).run(work)
    if work and context.extractor.agent.kind == "method":
        for warning in _unread_languages([item.chunk.text for item in work]):
            context.message(warning)
    return counts


def chunks_of(document: Document, own: ChunkSettings) -> list[Chunk]:
    """Return document chunks according to chunk settings, each with its metadata preface.

    Raise ``UsageError`` if the preface alone fills a chunk."""
    preface = document_preface(document, own.prepend_metadata)
    size = own.size
    if preface and own.size_includes_metadata:
        size -= count_tokens(f"{preface}\n\n", own.encoding)
        if size <= own.overlap or size < own.size // 4:
            raise UsageError(
                f"The metadata of {document.title} leave {max(0, size)} of the {own.size} tokens of"
                " a chunk.",
                "Raise chunk.size, or leave fields out of chunk.prepend_metadata.",
            )
    chunks = chunk_document(document, size, own.overlap, own.by, own.encoding)
    return [replace(chunk, preface=preface) for chunk in chunks] if preface else chunks


def _unread_languages(texts: Sequence[str]) -> Iterator[str]:
    """Yield one message about languages that extraction without a model can't read in these
    texts."""
    counts = Counter(map(detect_language, texts))
    del counts["en"]
    if tagger_version():
        del counts["zh"]
    if not counts:
        return
    language_counts = [f"{n} in {language_name(c) if c != 'other' else 'another language'}"
             for c, n in counts.most_common()]  # fmt: skip
    introduction = "Names and relations are read from English only. Of the chunks"
    how = "their names are words with a capital, or words that recur, tied by standing together"
    chinese_hint = " The extra `zh` reads names of Chinese." if "zh" in counts else ""
    languages = ", ".join(language_counts)
    remedy = f"a language model reads more (chat.base_url).{chinese_hint}"
    yield f"{introduction} {languages}: {how}; {remedy}"


class _Claims(_ReadingPhase[ClaimExtractor]):
    stage = "Claims"
    unusable = "chunk whose claims can't be used"
    found = 0

    def produce_result(
        self, item: _ChunkToRead, maker: ClaimExtractor, sink: CallSink
    ) -> Extraction:
        return maker.claims(item.chunk, item.title, item.names, sink)

    def complaint(self, item: _ChunkToRead, made: Made[Extraction, ClaimExtractor]) -> str:
        return f"No claims were read from {item.place_label}: {made.error}"

    def record(
        self, item: _ChunkToRead, made: Made[Extraction, ClaimExtractor], began: datetime
    ) -> None:
        how = self.authorship(made, began)
        record = ExtractionRecord(how, item.chunk, made.result, made.by.key, CLAIMS)
        self.context.copy.add(record.quads())
        self._touched.entities |= record.entities
        self._touched.claims |= record.claims
        self.found += len(record.claims)


def extract_claims(context: IndexContext, touched: Touched) -> int:
    """Extract claims from every standing chunk not yet read for claims, including chunks of
    earlier runs, and return the claim count.

    Subjects of evidence are marked as touched."""
    if not context.settings.claims.enabled:
        return 0
    phase = _Claims(context, context.parts.claims, touched)
    store, fields = context.copy.store, context.settings.chunk.prepend_metadata
    chunks = _unread_chunks(store, Texts(store, context.librarian), fields)
    work = [
        _ChunkToRead(chunk, _document_title(store, chunk), _chunk_names(store, chunk))
        for chunk in chunks
    ]
    if work:
        phase.credit(phase.maker)
        phase.run(work)
    return phase.found


def _unread_chunks(store: Store, texts: Texts, fields: Sequence[str]) -> Iterator[Chunk]:
    """Yield standing chunks that no claim extraction has read, sorted by IRI, except notes
    written by hand."""
    read = {
        used.object.value
        for kind in store.match(None, v.RDF_TYPE, v.tg(CLAIMS), v.SOURCE_GRAPH)
        for used in store.match(kind.subject, v.prov("used"), None, v.SOURCE_GRAPH)
        if isinstance(used.object, NamedNode)
    }
    for document, chunk in standing_chunks(store):
        if chunk not in read and not is_note(store, document):
            before = stored_preface(store, texts, document, fields) if fields else ""
            yield replace(stored_chunk(store, texts, chunk), preface=before)


def _document_title(store: Store, chunk: Chunk) -> str:
    return text_value(store, v.document_iri(chunk.sha256), v.dcterms("title"))


def _chunk_names(store: Store, chunk: Chunk) -> list[str]:
    """Return sorted entity names extracted from a chunk."""
    evidence_iris = derived_items(store, chunk.iri, "Evidence")
    evidence = [item for item in evidence_iris if text_value(store, item, v.tg("entity"))]
    return sorted({text_value(store, item, v.tg("name")) for item in evidence})
