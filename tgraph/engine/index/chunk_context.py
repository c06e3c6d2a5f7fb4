"""Chunk contexts: each chunk without a context by the current situator receives a recorded
context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.engine.index.phase import IndexContext, Made, Phase
from tgraph.index.chunk_contexts import (
    Setting,
    Situator,
    StructuralSituator,
    names_that_matter,
    standing_contexts,
)
from tgraph.index.cooccurrence import decode_occurrences
from tgraph.index.sources import (
    Texts,
    chunks_of_document,
    derived_items,
    page_of_chunk,
    standing_chunks,
    stored_chunk,
    text_value,
)
from tgraph.model import Chunk
from tgraph.models.base import CallSink
from tgraph.record.activities import is_recorded
from tgraph.record.summaries import ChunkContext, context_link, context_quads
from tgraph.store.base import Store, select_rows, text_of


def update_contexts(context: IndexContext, *, wanted: bool = False) -> int:
    """Update contexts of standing chunks; return the number of new contexts.

    Contexts are kept where ``contextual_search.enabled`` says so, where ``wanted``, and where
    contexts were made before."""
    store = context.copy.store
    linked = standing_contexts(store)
    if not (linked or wanted or context.settings.contextual_search.enabled):
        return 0
    standing = {chunk: document for document, chunk in standing_chunks(store)}
    for chunk, context_iri in linked.items():
        if chunk not in standing:
            context.copy.remove([context_link(chunk, context_iri)])
    phase = _Contexts(context, context.parts.situator, standing, linked)
    work = list(phase.missing())
    phase.run(work)
    return len(work)


class _Contexts(Phase[Setting, str, Situator]):
    stage = "Situating"
    unusable = "context whose reply can't be used"

    def __init__(
        self,
        context: IndexContext,
        maker: Situator,
        standing: Mapping[str, str],
        linked: Mapping[str, str],
    ) -> None:
        """Store chunk mappings: ``standing`` maps chunks to documents, ``linked`` to existing
        contexts."""
        super().__init__(context, maker)
        self._standing = standing
        self._linked = linked
        self._written: dict[str, str] = {}

    def missing(self) -> Iterator[Setting]:
        """Yield chunks without context, each within its document."""
        store, key, made_with = self.context.copy.store, self.maker.key, v.tg("inputHash")
        current_chunks = {
            c for c, iri in self._linked.items() if text_value(store, iri, made_with) == key
        }
        missing_chunks = [chunk for chunk in self._standing if chunk not in current_chunks]
        self._written = _written_contexts(store, missing_chunks, key) if self.by_model else {}
        texts = Texts(store, self.context.librarian)
        for document in dict.fromkeys(self._standing[chunk] for chunk in missing_chunks):
            yield from self._of_document(document, texts, set(missing_chunks))

    def _of_document(self, document: str, texts: Texts, wanted: set[str]) -> Iterator[Setting]:
        store = self.context.copy.store
        chunks = [stored_chunk(store, texts, c) for c in chunks_of_document(store, document)]
        names_by_chunk = _names_by_chunk(store, texts, document)
        name_limit = self.context.settings.contextual_search.names
        names = names_that_matter(
            ((c.text, names_by_chunk.get(c.iri, ())) for c in chunks), name_limit
        )
        title = text_value(store, document, v.dcterms("title"))
        document_text, starts = _join_pages(texts, document, chunks)
        for chunk in sorted(chunks, key=lambda chunk: chunk.index):
            if chunk.iri in wanted:
                yield Setting(chunk, title, document_text, starts[chunk.page] + chunk.start, names)

    def produce_result(self, item: Setting, maker: Situator, sink: CallSink) -> str:
        earlier_context = self._written.get(item.chunk.iri) if maker.agent.kind == "model" else None
        return maker.situate(item, sink) if earlier_context is None else earlier_context

    def stand_in(self) -> Situator:
        return StructuralSituator(self.context.settings.contextual_search.names)

    def complaint(self, item: Setting, made: Made[str, Situator]) -> str:
        number = item.chunk.index + 1
        return f"{item.title}, chunk {number}, is situated by its document: {made.error}"

    def record(self, item: Setting, made: Made[str, Situator], began: datetime) -> None:
        context, chunk = self.context, item.chunk.iri
        situated = ChunkContext(chunk, self._standing[chunk], made.result, made.by.key)
        if not is_recorded(context.copy.store, situated.iri):
            context.copy.add(context_quads(situated, self.authorship(made, began)))
            self.credit(made.by)
        before = self._linked.get(chunk)
        if before is not None and before != situated.iri:
            context.copy.remove([context_link(chunk, before)])
        context.copy.add([context_link(chunk, situated.iri)])


def _written_contexts(store: Store, chunks: Sequence[str], key: str) -> dict[str, str]:
    """Return contexts once written by a model, by chunk; reinstated chunks reuse their
    contexts."""
    return {
        chunk: text_value(store, context, v.tg("text"))
        for chunk in chunks
        for context in sorted(derived_items(store, chunk, "ChunkContext"))
        if text_value(store, context, v.tg("inputHash")) == key
    }


def _join_pages(
    texts: Texts, document: str, chunks: Sequence[Chunk]
) -> tuple[str, dict[int | None, int]]:
    """Return the joined page texts, and the start of each page that has chunks."""
    text, starts = "", {}
    for page in sorted({chunk.page for chunk in chunks}, key=lambda number: number or 0):
        starts[page] = len(text)
        text += texts.of_page(document, page) + "\n\n"
    return text.rstrip("\n"), starts


def _names_by_chunk(store: Store, texts: Texts, document: str) -> dict[str, list[str]]:
    """Return names found in each chunk of the document.

    For fast readings all names are returned, because the choice of kept names depends on other
    documents."""
    chunks = list(chunks_of_document(store, document))
    nodes = [NamedNode(chunk) for chunk in chunks]
    names_in_chunks: dict[str, list[str]] = {}
    for row in select_rows(store, "index/names-in-chunks", {"chunks": nodes}) if nodes else []:
        names_in_chunks.setdefault(text_of(row["chunk"]), []).append(text_of(row["name"]))
    for chunk in chunks:
        for reading in derived_items(store, chunk, "Subgraph"):
            if occurrences_key := text_value(store, reading, v.tg("occurrences")):
                content = texts.librarian.get_text(occurrences_key)
                read = decode_occurrences(
                    reading, chunk, content, texts.of_page(document, page_of_chunk(chunk))
                )
                names_in_chunks[chunk] = sorted({entity.name for entity in read.entities})
    return names_in_chunks
