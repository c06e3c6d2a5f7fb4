"""From chunks to contexts: each chunk that has none by who is asked now gets one, on record."""

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
from tgraph.index.cooccurrence import decode
from tgraph.index.sources import (
    Texts,
    chunks_of_document,
    derived,
    page_of_chunk,
    standing_chunks,
    stored_chunk,
    text_value,
)
from tgraph.model import Chunk
from tgraph.models.base import CallSink
from tgraph.record.activities import is_recorded
from tgraph.record.summaries import ChunkContext, context_link, context_quads
from tgraph.store.base import Store, select, text_of


def update_contexts(context: IndexContext, *, wanted: bool = False) -> int:
    """Bring the contexts up to date with the standing chunks; how many were made.

    They are kept where ``contextual_search.enabled`` says so, where ``wanted``, and where they were
    made before.
    """
    store = context.copy.store
    linked = standing_contexts(store)
    if not (linked or wanted or context.settings.contextual_search.enabled):
        return 0
    standing = {chunk: document for document, chunk in standing_chunks(store)}
    for chunk, known in linked.items():
        if chunk not in standing:
            context.copy.remove([context_link(chunk, known)])
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
        """``standing`` maps chunks to their documents, ``linked`` to the contexts they have."""
        super().__init__(context, maker)
        self._standing = standing
        self._linked = linked
        self._written: dict[str, str] = {}

    def missing(self) -> Iterator[Setting]:
        """The chunks that lack a context, each in its document."""
        store, key, made_with = self.context.copy.store, self.maker.key, v.tg("inputHash")
        known = {c for c, iri in self._linked.items() if text_value(store, iri, made_with) == key}
        wanted = [chunk for chunk in self._standing if chunk not in known]
        self._written = _written(store, wanted, key) if self.by_model else {}
        texts = Texts(store, self.context.librarian)
        for document in dict.fromkeys(self._standing[chunk] for chunk in wanted):
            yield from self._of_document(document, texts, set(wanted))

    def _of_document(self, document: str, texts: Texts, wanted: set[str]) -> Iterator[Setting]:
        store = self.context.copy.store
        chunks = [stored_chunk(store, texts, c) for c in chunks_of_document(store, document)]
        named = _names(store, texts, document)
        most = self.context.settings.contextual_search.names
        names = names_that_matter(((c.text, named.get(c.iri, ())) for c in chunks), most)
        title = text_value(store, document, v.dcterms("title"))
        whole, starts = _joined(texts, document, chunks)
        for chunk in sorted(chunks, key=lambda chunk: chunk.index):
            if chunk.iri in wanted:
                yield Setting(chunk, title, whole, starts[chunk.page] + chunk.start, names)

    def make(self, item: Setting, maker: Situator, sink: CallSink) -> str:
        known = self._written.get(item.chunk.iri) if maker.agent.kind == "model" else None
        return maker.situate(item, sink) if known is None else known

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


def _written(store: Store, chunks: Sequence[str], key: str) -> dict[str, str]:
    """The contexts that a model once wrote for these chunks: what comes back finds its own."""
    return {
        chunk: text_value(store, context, v.tg("text"))
        for chunk in chunks
        for context in sorted(derived(store, chunk, "ChunkContext"))
        if text_value(store, context, v.tg("inputHash")) == key
    }


def _joined(
    texts: Texts, document: str, chunks: Sequence[Chunk]
) -> tuple[str, dict[int | None, int]]:
    """The pages' texts as one, and where each page that has chunks starts in it."""
    whole, starts = "", {}
    for page in sorted({chunk.page for chunk in chunks}, key=lambda number: number or 0):
        starts[page] = len(whole)
        whole += texts.of_page(document, page) + "\n\n"
    return whole.rstrip("\n"), starts


def _names(store: Store, texts: Texts, document: str) -> dict[str, list[str]]:
    """The names that were found in each chunk of the document: of fast readings all of them, for
    which of these are kept depends on other documents."""
    chunks = list(chunks_of_document(store, document))
    nodes = [NamedNode(chunk) for chunk in chunks]
    found: dict[str, list[str]] = {}
    for row in select(store, "index/names-in-chunks", {"chunks": nodes}) if nodes else []:
        found.setdefault(text_of(row["chunk"]), []).append(text_of(row["name"]))
    for chunk in chunks:
        for reading in derived(store, chunk, "Subgraph"):
            if kept := text_value(store, reading, v.tg("occurrences")):
                content = texts.librarian.get_text(kept)
                read = decode(
                    reading, chunk, content, texts.of_page(document, page_of_chunk(chunk))
                )
                found[chunk] = sorted({entity.name for entity in read.entities})
    return found
