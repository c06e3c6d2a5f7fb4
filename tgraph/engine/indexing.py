"""Indexing: documents in, a published graph out; all of it, or, if it is interrupted, none of it.

The run works on a private copy of the store. Model replies and extractions are kept as they come,
so that the next run continues where this one was stopped. Design, sections 3.4 to 3.6.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.engine.progress import OnMessage, OnProgress, Progress, mute, silent
from tgraph.errors import EndpointError, IngestError, ModelError, StoreError
from tgraph.extract.base import Extractor, with_endpoints
from tgraph.index.items import KINDS, items_of
from tgraph.index.knowledge import Derivation, Touched
from tgraph.index.sources import (
    document_of_accession,
    document_of_chunk,
    evidence_of_document,
    latest_accession,
    standing_documents,
    text_value,
    value,
)
from tgraph.index.vectors import VectorSet, build
from tgraph.index.vectors import load as load_vectors
from tgraph.ingest.chunk import chunk_document
from tgraph.ingest.discover import Found, SourceFile, Unread
from tgraph.ingest.loaders import load
from tgraph.model import Agent, Chunk, Document, Extraction, Prompt, Usage
from tgraph.models.base import Call, Embedder
from tgraph.models.cache import CachedEmbedder
from tgraph.record.agents import SOFTWARE, agent_quads, prompt_quads
from tgraph.record.calls import call_content, describe_call
from tgraph.record.ledger import Ledger, batch_text
from tgraph.record.merges import merge_quads, standing_merges
from tgraph.record.sources import (
    ExtractionRecord,
    accession_quads,
    chunk_quads,
    document_quads,
    run_quads,
)
from tgraph.settings import ChunkSettings
from tgraph.store.base import Store
from tgraph.store.files import exclusive
from tgraph.store.snapshot import read_pointer
from tgraph.store.statements import Statements
from tgraph.store.writer import WorkingCopy, abandoned

PATIENCE = 300.0
"""Seconds to wait for a writer, who should be done in one. A change that is committed by then is
not lost: the next command applies it."""


EMBEDDINGS = "embeddings"


_PLURALS = {"entity": "entities", "edge": "edges", "chunk": "chunks"}


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a run of ``index`` did.

    ``failed`` names each file that could not be taken in, with the reason. ``generation`` is that
    of the published knowledge. ``dropped`` counts what extractors left out, by reason.
    """

    run: str
    indexed: tuple[str, ...]
    unchanged: tuple[str, ...]
    superseded: tuple[str, ...]
    failed: tuple[IngestError, ...]
    chunks: int
    entities: int
    relationships: int
    merged: int
    dropped: dict[str, int]
    usage: Usage
    generation: int


@dataclass(slots=True)
class _Intake:
    """A content that is new under its path. ``document`` is None where the content is known,
    under another path or from before; ``supersedes`` tells whether ``previous`` still stood."""

    path: str
    iri: str
    document: Document | None
    content: bytes
    previous: str | None
    supersedes: bool
    accession: str


class IndexRun:
    """One run over some files. The index lock is held from beginning to end."""

    def __init__(
        self,
        ledger: Ledger,
        extractor: Extractor,
        embedder: Embedder,
        chunking: ChunkSettings,
        concurrency: int,
        uuid: str,
        clock: Callable[[], datetime],
        catalogue: str,
        progress: OnProgress = silent,
        message: OnMessage = mute,
        cancel: Callable[[], None] = lambda: None,
    ) -> None:
        self.iri = f"{v.URN}run:{uuid}"
        self._uuid = uuid
        self._ledger = ledger
        self._extractor = extractor
        self._embedder = _remembering(embedder, ledger.folder.cache / EMBEDDINGS)
        self._chunking = chunking
        self._concurrency = concurrency
        self._clock = clock
        self._catalogue = catalogue
        self._progress = progress
        self._message = message
        self._cancel = cancel
        self._usage = Usage()
        self._dropped: Counter[str] = Counter()
        self._touched = Touched()
        self._content: set[str] = set()
        self._calls = _CallLog()
        self._failed: list[IngestError] = []
        self._unchanged: list[str] = []

    def run(self, files: Iterable[Found]) -> IndexReport:
        """Take the files in and publish. Raises ``TgraphError`` where the run as a whole fails."""
        folder = self._ledger.folder
        busy = "Another index run is at work on this collection; waiting for it to finish."
        with exclusive(folder.index_lock, timeout=None, waiting=lambda: self._message(busy)):
            for leftover in abandoned(folder):
                shutil.rmtree(leftover, ignore_errors=True)
            with self._ledger.open(timeout=PATIENCE, waiting=self._say_waiting) as (store, _):
                copy = WorkingCopy(folder, self._uuid, store)
            try:
                report = self._run(copy, files)
            finally:
                copy.close()
            shutil.rmtree(
                folder.cache / EMBEDDINGS, ignore_errors=True
            )  # the vectors are published
            return report

    def _run(self, copy: WorkingCopy, files: Iterable[Found]) -> IndexReport:
        started = self._clock()
        intakes = self._take_in(copy, files)
        extracted = self._extract(copy, intakes)
        derived = self._derive(copy, started)
        vectors = self._embed(copy)
        if copy.changed or vectors:
            self._describe_run(copy, started)
            self._commit(copy)
        copy.close()
        self._ledger.fold(timeout=PATIENCE, waiting=self._say_waiting)
        pointer = read_pointer(self._ledger.folder)
        return IndexReport(
            run=self.iri,
            indexed=tuple(intake.path for intake in intakes),
            unchanged=tuple(self._unchanged),
            superseded=tuple(i.path for i in intakes if i.supersedes),
            failed=tuple(self._failed),
            chunks=extracted.chunks,
            entities=extracted.entities,
            relationships=extracted.relationships,
            merged=derived,
            dropped=dict(self._dropped),
            usage=self._usage,
            generation=pointer.generation if pointer else 0,
        )

    def _say_waiting(self) -> None:
        self._message("Another process is writing to the graph; waiting for it to finish.")

    # --- documents ---

    def _take_in(self, copy: WorkingCopy, files: Iterable[Found]) -> list[_Intake]:
        """Load what is new or changed; a file that can't be read is reported, not fatal."""
        found = list(files)
        intakes = []
        for done, file in enumerate(found):
            self._progress(Progress("Reading", done, len(found), detail=file.name))
            if isinstance(file, Unread):
                self._note_unread(file)
                continue
            try:
                intake = self._load(copy.store, file)
            except IngestError as error:
                self._failed.append(error)
                continue
            if intake is None:
                self._unchanged.append(file.name)
            else:
                self._record_intake(copy, intake)
                intakes.append(intake)
        self._progress(Progress("Reading", len(found), len(found)))
        return intakes

    def _note_unread(self, file: Unread) -> None:
        if file.skipped:
            self._message(f"Skipped {file.name}: {file.reason}")
        else:
            self._failed.append(IngestError(file.name, file.reason))

    def _load(self, store: Store, file: SourceFile) -> _Intake | None:
        content = file.read()
        digest = sha256(content).hexdigest()
        iri = v.document_iri(digest)
        standing = latest_accession(store, file.name)
        if standing is not None and standing[1] == iri:
            return None
        known = value(store, iri, v.tg("contentHash")) is not None
        document = None if known else load(content, file.name)
        previous = standing[0] if standing else _withdrawn_accession(store, file.name)
        accession = v.accession_iri(file.name, digest, previous)
        return _Intake(file.name, iri, document, content, previous, standing is not None, accession)

    def _record_intake(self, copy: WorkingCopy, intake: _Intake) -> None:
        if intake.previous:
            self._touch_document(copy.store, document_of_accession(copy.store, intake.previous))
        if intake.document is not None:
            self._record_document(copy, intake.document, intake.content)
        copy.add(
            accession_quads(
                intake.accession,
                intake.iri,
                intake.path,
                self.iri,
                self._clock(),
                intake.previous,
                supersedes=intake.supersedes,
            )
        )
        self._touch_document(copy.store, intake.iri)

    def _record_document(self, copy: WorkingCopy, document: Document, content: bytes) -> None:
        librarian = self._ledger.librarian
        bytes_hash = librarian.put(content)
        texts = [librarian.put_text(page.text) for page in document.pages]
        self._content.update([bytes_hash, *texts])
        copy.add(document_quads(document, bytes_hash, texts))

    def _touch_document(self, store: Store, document: str) -> None:
        """Everything that the document is evidence for has to be derived again."""
        for evidence in evidence_of_document(store, document):
            if entity := text_value(store, evidence, v.tg("entity")):
                self._touched.entities.add(entity)
            if edge := text_value(store, evidence, v.tg("edge")):
                triple = value(store, edge, v.RDF_REIFIES)
                assert isinstance(triple, Triple)
                self._touched.edges[edge] = triple

    # --- extraction ---

    def _extract(self, copy: WorkingCopy, intakes: Sequence[_Intake]) -> _Extracted:
        work = [
            (chunk, intake.document.title)
            for intake in intakes
            if intake.document is not None
            for chunk in self._chunks(intake.document)
        ]
        counts = _Extracted(len(work))
        stage = "Extracting"
        self._progress(Progress(stage, 0, len(work)))
        for done, (chunk, extraction, began) in enumerate(self._results(work), 1):
            self._record_extraction(copy, chunk, extraction, began, counts)
            self._progress(Progress(stage, done, len(work), self._usage))
        return counts

    def _chunks(self, document: Document) -> list[Chunk]:
        c = self._chunking
        return chunk_document(document, c.size, c.overlap, c.by, c.encoding)

    def _results(
        self, work: Sequence[tuple[Chunk, str]]
    ) -> Iterator[tuple[Chunk, Extraction, datetime]]:
        """Extractions in the order of the chunks, up to ``concurrency`` at the same time."""
        if self._extractor.agent.kind != "model":
            for chunk, title in work:
                began = self._clock()
                yield chunk, self._extract_one(chunk, title), began
            return
        pool = ThreadPoolExecutor(self._concurrency, "extract")
        try:
            began = self._clock()
            futures: list[Future[Extraction]] = [
                pool.submit(self._extract_one, chunk, title) for chunk, title in work
            ]
            for (chunk, _), future in zip(work, futures, strict=True):
                while not future.done():
                    wait([future], timeout=0.2, return_when=FIRST_COMPLETED)
                yield chunk, future.result(), began
        except BaseException:
            self._cancel()  # calls under way end at once; their replies are not lost if they came
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _extract_one(self, chunk: Chunk, title: str) -> Extraction:
        """The extraction; a reply that can't be used costs its chunk, not the run."""
        try:
            return self._extractor.extract(chunk, title, self._calls.add)
        except EndpointError:
            raise
        except ModelError as error:
            self._message(f"Nothing was extracted from {title}, chunk {chunk.index + 1}: {error}")
            return Extraction(chunk.iri, (), (), dropped={"chunk whose reply can't be used": 1})

    def _record_extraction(
        self,
        copy: WorkingCopy,
        chunk: Chunk,
        extraction: Extraction,
        began: datetime,
        counts: _Extracted,
    ) -> None:
        self._record_calls(copy)
        extraction = with_endpoints(extraction)
        record = ExtractionRecord(self._uuid, chunk, extraction, self._extractor.key)
        quads = chunk_quads(chunk) + record.quads(
            self.iri, self._extractor.agent, self._extractor.prompts, began, self._clock()
        )
        copy.add(quads)
        self._dropped.update(extraction.dropped)
        self._touched.entities |= record.entities
        self._touched.edges |= record.edges
        counts.entities += len(record.entities)
        counts.relationships += len(record.edges)

    def _record_calls(self, copy: WorkingCopy) -> None:
        """What the model was asked and what it said, by content, as for a session."""
        agents: dict[str, Agent] = {}
        prompts: dict[str, Prompt] = {}
        out = Statements(v.SOURCE_GRAPH)
        for call in self._calls.take():
            key = self._ledger.librarian.put_text(call_content(call))
            self._content.add(key)
            describe_call(out, self._uuid, self.iri, call, key)
            agents[call.agent.iri] = call.agent
            if call.prompt:
                prompts[call.prompt.iri] = call.prompt
            self._usage += call.usage
        copy.add([*out.quads, *agent_quads(agents.values()), *self._prompts(prompts.values())])

    def _prompts(self, prompts: Iterable[Prompt]) -> list[Quad]:
        known = list(prompts)
        for prompt in known:
            self._content.add(self._ledger.librarian.put_text(prompt.text))
        return prompt_quads(known)

    # --- knowledge and vectors ---

    def _derive(self, copy: WorkingCopy, started: datetime) -> int:
        standing = standing_documents(copy.store)
        derivation = Derivation(
            copy.store,
            standing_merges(copy.store),
            lambda chunk: document_of_chunk(chunk) in standing,
        )
        change = derivation.run(
            self._touched,
            lambda done, total: self._progress(Progress("Resolving", done, total, self._usage)),
        )
        copy.remove(change.removed)
        copy.add(change.added)
        copy.add(
            merge_quads(
                copy.store, self.iri, started, self._clock(), change.merged, change.unmerged
            )
        )
        return len(change.merged)

    def _embed(self, copy: WorkingCopy) -> bool:
        """The vector sets of the new knowledge; vectors of texts that did not change are kept."""
        generation = self._ledger.generation(copy.store) + 1
        previous = {kind: self._previous(kind) for kind in KINDS}
        if not copy.changed and all(vectors is not None for vectors in previous.values()):
            return False
        for kind in KINDS:
            items = items_of(kind, copy.store, self._ledger.librarian)
            shown = partial(self._show_embedding, kind)
            vectors = build(kind, items, self._embedder, previous[kind], shown, self._calls.add)
            vectors.save(copy.vectors, generation)
        self._record_calls(copy)
        return True

    def _show_embedding(self, kind: str, done: int, total: int) -> None:
        self._progress(Progress("Embedding", done, total, self._usage, _PLURALS[kind]))

    def _previous(self, kind: str) -> VectorSet | None:
        """The vectors of the knowledge before, if they are whole and of the same embedder."""
        folder = self._ledger.folder
        pointer = read_pointer(folder)
        if pointer is None:
            return None
        embedder = self._embedder
        try:
            return load_vectors(
                folder.vectors,
                kind,
                generation=pointer.generation,
                agent=embedder.agent,
            )
        except StoreError as error:
            if pointer.generation:
                self._message(f"The {kind} vectors are made anew: {error.message}")
            return None

    # --- the end ---

    def _describe_run(self, copy: WorkingCopy, started: datetime) -> None:
        agents = [SOFTWARE, self._extractor.agent, self._embedder.agent]
        copy.add(agent_quads(agents))
        copy.add(self._prompts(self._extractor.prompts))
        copy.add(run_quads(self.iri, started, self._clock(), agents, dict(self._dropped)))

    def _commit(self, copy: WorkingCopy) -> None:
        self._progress(Progress("Publishing", 0, 1, self._usage))
        added, removed = copy.changes()
        key = self._ledger.librarian.put_text(batch_text(added, removed, sorted(self._content)))
        copy.commit(
            {
                "batch": f"{v.URN}batch:{key}",
                "hash": key,
                "catalogue": self._catalogue,
                "run": self.iri,
            }
        )
        self._progress(Progress("Publishing", 1, 1, self._usage))


def _withdrawn_accession(store: Store, path: str) -> str | None:
    """The last accession of a path none of which stands: the one that no other revises."""
    quads = store.match(None, v.tg("path"), Literal(path), v.SOURCE_GRAPH)
    for quad in quads:
        revised = store.match(None, v.prov("wasRevisionOf"), quad.subject, v.SOURCE_GRAPH)
        if isinstance(quad.subject, NamedNode) and next(revised, None) is None:
            return quad.subject.value
    return None


def _remembering(embedder: Embedder, cache: Path) -> Embedder:
    """A paid embedder with a memory, so that an interrupted run does not pay for a text twice."""
    return CachedEmbedder(embedder, cache) if embedder.agent.kind == "model" else embedder


@dataclass(slots=True)
class _Extracted:
    chunks: int
    entities: int = 0
    relationships: int = 0


class _CallLog:
    """Calls from the worker threads, waiting to be recorded; equal requests are numbered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._seen: Counter[str] = Counter()

    def add(self, call: Call) -> None:
        with self._lock:
            occurrence = self._seen[call.request_hash]
            self._seen[call.request_hash] += 1
            self._calls.append(replace(call, occurrence=occurrence))

    def take(self) -> list[Call]:
        with self._lock:
            calls, self._calls = self._calls, []
        return calls
