"""A knowledge graph, open: index documents into it, ask it, read its record."""

from __future__ import annotations

import asyncio
import uuid as uuids
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tgraph import vocabulary as v
from tgraph.engine.asking import Asking, Stream
from tgraph.engine.governing import Governing
from tgraph.engine.methods import Chosen, Method, without_retrieval
from tgraph.engine.modes import AUTO, method_of, suggesting
from tgraph.engine.parameters import recorded
from tgraph.engine.parts import Parts
from tgraph.engine.progress import OnMessage, OnProgress, mute, silent
from tgraph.engine.vectors import LazyVectors
from tgraph.errors import StoreError, UsageError
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.model import Answer, GraphRagResponse, Turn
from tgraph.record.ledger import Ledger
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.retrieve.narrowing import is_empty, narrowed
from tgraph.settings import Settings, load_settings
from tgraph.store.folder import GraphFolder
from tgraph.store.snapshot import Snapshot, must_be_mended, read_pointer

if TYPE_CHECKING:
    from tgraph.engine.evaluating_graph import Questions
    from tgraph.engine.indexing import IndexReport
    from tgraph.explain.evaluated import Evaluation
    from tgraph.explain.sparql import Bounds
    from tgraph.index.vectors import VectorSet
    from tgraph.store.base import Store

FOLD_PATIENCE = 10.0
"""Seconds to wait for a writer before the record is read as it was last published."""


def now() -> datetime:
    return datetime.now(UTC)


def new_uuid() -> str:
    return str(uuids.uuid4())


class KnowledgeGraph(Governing):
    """One collection of a graph folder. Use it as a context manager, or ``close`` it.

    Any number of processes may have the same folder open. ``clock`` and ``uuid`` make the times and
    names of a record; tests put their own in.
    """

    def __init__(
        self,
        folder: GraphFolder,
        settings: Settings,
        *,
        create: bool = False,
        clock: Callable[[], datetime] = now,
        uuid: Callable[[], str] = new_uuid,
        parts: Parts | None = None,
        message: OnMessage = mute,
    ) -> None:
        self.root = folder.path
        self.settings = settings
        self._folder = folder.collection(settings.collection, create=create)
        self._clock = clock
        self._uuid = uuid
        self._message = message
        self._catalogue = v.collection_iri(settings.explain_collection)
        signing_key = settings.integrity.signing_key
        self._ledger = Ledger(self._folder, self._catalogue, clock, signing_key)
        self._parts = parts or Parts(settings, self._folder.cache)
        self._record: Snapshot | None = None
        self._knowledge: Snapshot | None = None
        self._context: Context | None = None
        self._replaced: list[Snapshot] = []
        self._asking = 0
        self._turns: list[Turn] = []

    # --- life ---

    def __enter__(self) -> KnowledgeGraph:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Fold the sessions asked here into the store and let go of the folder."""
        self._release()
        self._parts.close()
        if self._ledger.waiting():
            try:
                self._ledger.fold(timeout=FOLD_PATIENCE)
            except StoreError as error:
                self._message(f"Sessions stay in their journals for now: {error.message}")

    def _release(self) -> None:
        """Let go of every snapshot."""
        snapshots = [*self._replaced, self._knowledge, self._record]
        self._context = self._knowledge = self._record = None
        self._replaced = []
        for snapshot in snapshots:
            if snapshot is not None:
                snapshot.close()

    @property
    def collection(self) -> str:
        return self._folder.name

    @property
    def librarian(self) -> Librarian:
        return self._ledger.librarian

    # --- index ---

    def index(
        self,
        paths: Sequence[str | Path],
        *,
        reinstate: bool = False,
        progress: OnProgress = silent,
        message: OnMessage | None = None,
    ) -> IndexReport:
        """Take documents in and publish the graph with them; see ``IndexReport``.

        What was retracted stays out unless ``reinstate`` is true.
        A file that can't be read is in the report and does not stop the others. If the run is
        interrupted nothing is published, and the next run continues from what it had.
        """
        from tgraph.engine.indexing import IndexRun
        from tgraph.ingest.discover import discover

        options = self._run_options(progress, message)
        found = discover([str(path) for path in paths])
        return IndexRun(**options).run(found, reinstate=reinstate)

    def update(self, text: str, bounds: Bounds | None = None) -> tuple[int, int]:
        """Apply a SPARQL update, all of it or nothing; how many quads it added and removed.

        It is recorded as an activity and published. Raises ``QueryError`` where it is wrong, was
        stopped, or would change the record of sessions.
        """
        from tgraph.engine.updating import UpdateRun
        from tgraph.explain.sparql import Bounds

        return UpdateRun(**self._run_options(silent, None)).update(text, bounds or Bounds())

    def split(self, name: str, other: str | None = None, *, reason: str) -> str:
        """Tell two names apart that entity resolution made one entity; the split's IRI.

        ``other`` is by default the entity that ``name`` was merged into. The decision lasts: later
        index runs honour it until ``rejoin`` takes it back. It is recorded with the reason and, if
        ``person`` is set, with who made it. ``UsageError`` where the names are not one entity.
        """
        from tgraph.engine.curating import CurationRun

        return CurationRun(**self._run_options(silent, None)).split(
            name, other, reason, self.settings.person
        )

    def rejoin(self, name: str, other: str, *, reason: str) -> str:
        """Take a split back; its IRI. The names are one entity again if the texts still say so.
        ``UsageError`` where they have not been split."""
        from tgraph.engine.curating import CurationRun

        return CurationRun(**self._run_options(silent, None)).rejoin(
            name, other, reason, self.settings.person
        )

    def _run_options(self, progress: OnProgress, message: OnMessage | None) -> dict[str, Any]:
        self._ledger.check_key()
        return {
            "ledger": self._ledger,
            "parts": self._parts,
            "settings": self.settings,
            "uuid": self._uuid(),
            "clock": self._clock,
            "catalogue": self._catalogue,
            "progress": progress,
            "message": message or self._message,
        }

    # --- ask ---

    def ask(
        self,
        question: str,
        mode: str = "graph",
        *,
        history: Sequence[Turn] | None = None,
        filters: Filters = NO_FILTERS,
    ) -> Answer:
        """The answer, proven. ``history`` replaces the turns asked here before; ``filters`` say
        what it may be answered from. ``UsageError`` where they name what there is not."""
        return _last(self.stream(question, mode, history=history, filters=filters))

    def stream(
        self,
        question: str,
        mode: str = "graph",
        *,
        history: Sequence[Turn] | None = None,
        filters: Filters = NO_FILTERS,
    ) -> Stream:
        """Messages as they happen (design, section 6.3); the generator returns the ``Answer``."""
        if not question.strip():
            raise UsageError("The question is empty.", "Ask with -q 'QUESTION'.")
        asked = Question(question, self._history(history))
        answer = yield from self._asked(asked, self._method(asked, mode, filters), filters)
        if history is None:
            self._turns.append(Turn(question, answer.text))
        return answer

    def suggest(self, count: int = 5, *, history: Sequence[Turn] | None = None) -> Answer:
        """Questions that the documents can answer: the sentences of the answer, each citing what
        led to it. ``history`` replaces the turns asked here before."""
        question = f"Which {count} questions could be asked next?"
        asked = Question(question, self._history(history))
        return _last(self._asked(asked, suggesting(self._parts, count), count=count))

    def _history(self, history: Sequence[Turn] | None) -> tuple[Turn, ...]:
        turns = tuple(self._turns if history is None else history)
        return turns[-self.settings.graph.history_turns :] if turns else ()

    def _method(self, question: Question, mode: str, filters: Filters) -> Method:
        if mode != AUTO:
            return method_of(mode, self._parts)
        from tgraph.engine.auto import chosen

        return chosen(question, self._parts, narrowed(self._open_context(), filters))

    def _asked(
        self,
        question: Question,
        method: Method,
        filters: Filters = NO_FILTERS,
        count: int | None = None,
    ) -> Stream:
        self._ledger.check_key()
        self._prepare(method.mode)
        context = narrowed(self._open_context(), filters)
        if filters and is_empty(context):
            self._message("The filters leave nothing to answer from.")
            method = without_retrieval(method)
        record = SessionRecord(self._folder.journals, self._uuid(), self._clock)
        asking = Asking(method, context, record, self.settings.explain_collection)
        generation = self._generation()
        self._asking += 1
        try:
            return (
                yield from asking.stream(
                    question,
                    self._parameters(question, method, filters, count),
                    generation,
                    self.collection,
                )
            )
        finally:
            self._asking -= 1

    def _prepare(self, mode: str) -> None:
        """Build what the mode needs and no index run has built yet."""
        from tgraph.engine.preparing import need_of

        need = need_of(mode)
        if need is not None and need.is_missing(self._open_context().store):
            from tgraph.engine.preparing import PrepareRun

            self._message(need.message)
            PrepareRun(**self._run_options(silent, None)).prepare(need)

    def evaluate(
        self,
        questions: Questions,
        mode: str = "graph",
        *,
        progress: OnProgress = silent,
    ) -> Evaluation:
        """Judge answers: those that ``questions`` bring (RAGChecker's JSON), and the graph's own in
        the ``mode`` where they bring none.

        ``questions`` is a file (JSON, JSON Lines, TOML) or the questions themselves. What goes
        wrong with one is in the evaluation and doesn't stop the others. It is recorded in a bundle
        of its own. ``UsageError`` for a file that can't be used, ``EndpointError`` where the model
        fails again and again.
        """
        from tgraph.engine.evaluating_graph import GraphEvaluation
        from tgraph.record.evaluation import EvaluationRecord

        def record() -> EvaluationRecord:
            return EvaluationRecord(self._folder.journals, self._uuid(), self._clock)

        run = GraphEvaluation(self, self._parts, record, self._open_context)
        return run.run(questions, mode, progress)

    # --- the same for asyncio ---

    async def aindex(self, paths: Sequence[str | Path], **options: Any) -> IndexReport:
        """``index`` without blocking the event loop."""
        return await asyncio.to_thread(self.index, paths, **options)

    async def aask(self, question: str, mode: str = "graph", **options: Any) -> Answer:
        """``ask`` without blocking the event loop."""
        return await asyncio.to_thread(self.ask, question, mode, **options)

    async def aevaluate(
        self, questions: Questions, mode: str = "graph", *, progress: OnProgress = silent
    ) -> Evaluation:
        """``evaluate`` without blocking the event loop."""
        return await asyncio.to_thread(self.evaluate, questions, mode, progress=progress)

    async def astream(
        self, question: str, mode: str = "graph", **options: Any
    ) -> AsyncIterator[GraphRagResponse]:
        """``stream`` without blocking the event loop; a stream that is left is interrupted."""
        stream = self.stream(question, mode, **options)
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(1, "ask")  # one thread from beginning to end
        try:
            while (message := await loop.run_in_executor(pool, next, stream, None)) is not None:
                yield message
        finally:
            pool.submit(stream.close)
            pool.shutdown(wait=True)

    # --- the record ---

    def read(self) -> Store:
        """The newest published state with every finished session in it, for reading.

        Where a writer keeps the lock for too long it is the state without the newest sessions, and
        ``message`` says so.
        """
        if self._ledger.waiting():
            try:
                self._ledger.fold(timeout=FOLD_PATIENCE)
            except StoreError as error:
                self._message(f"The newest sessions are not shown yet: {error.message}")
        pointer = read_pointer(self._folder)
        if self._record is None or self._record.pointer != pointer:
            if self._record is not None:
                self._record.close()
            self._record = self._open_snapshot()
        return self._record.store

    def _parameters(
        self, question: Question, method: Method, filters: Filters, count: int | None
    ) -> Mapping[str, Any]:
        """What the answer depends on beside the question and the knowledge."""
        chosen = isinstance(method, Chosen)
        own = recorded(self.settings, method.mode, question.history, count, chosen=chosen)
        return {**own, **filters.parameters}

    def _generation(self) -> int:
        return self._knowledge.pointer.generation if self._knowledge else 0

    def _open_context(self) -> Context:
        """The newest published knowledge, kept open until something newer is published."""
        if must_be_mended(self._folder):
            self.read()
        pointer = read_pointer(self._folder)
        fresh = self._knowledge and pointer and self._generation() == pointer.generation
        if self._context is None or not fresh:
            self._replace_knowledge()
            assert self._knowledge is not None
            self._context = Context(
                self._knowledge.store,
                Texts(self._knowledge.store, self.librarian),
                LazyVectors(
                    self._knowledge.vectors,
                    self._generation(),
                    self._parts.embedder,
                    self._rebuild_vectors,
                ),
                self._parts.embedder,
                self.settings,
            )
        return self._context

    def _replace_knowledge(self) -> None:
        """The newest snapshot; the one before stays open while a question is still answered."""
        if self._knowledge is not None:
            self._replaced.append(self._knowledge)
            self._context = self._knowledge = None
        if not self._asking:
            for snapshot in self._replaced:
                snapshot.close()
            self._replaced = []
        snapshot = self._open_snapshot()
        if snapshot.pointer.generation == 0:
            snapshot.close()
            raise self._nothing_indexed()
        self._knowledge = snapshot

    def _nothing_indexed(self) -> StoreError:
        return StoreError(
            f"Nothing has been indexed into the collection {self.collection!r} yet.",
            "Run `tgraph index PATH...` first.",
        )

    def _open_snapshot(self) -> Snapshot:
        snapshot = Snapshot.open(self._folder)
        if snapshot is None:
            raise self._nothing_indexed()
        return snapshot

    def _rebuild_vectors(self, kind: str, problem: str) -> VectorSet:
        """Vectors are derived: where they don't fit they are made again, and kept if possible."""
        from tgraph.index.items import items_of
        from tgraph.index.vectors import build

        assert self._knowledge is not None
        self._message(f"The {kind} vectors are rebuilt: {problem}")
        items = items_of(kind, self._knowledge.store, self.librarian)
        vectors = build(kind, items, self._parts.embedder)
        try:
            with self._ledger.open(timeout=FOLD_PATIENCE) as (store, _):
                if self._ledger.generation(store) == self._generation():
                    vectors.save(self._folder.vectors, self._generation())
                    self._ledger.publish(store)
                del store
        except StoreError as error:
            self._message(f"The rebuilt vectors could not be kept: {error.message}")
        return vectors


def _last(stream: Stream) -> Answer:
    """What a stream returns when it has ended."""
    while True:
        try:
            next(stream)
        except StopIteration as end:
            answer = end.value
            assert isinstance(answer, Answer)
            return answer


def open_graph(
    root: str | Path | None = None,
    *,
    create: bool = False,
    collection: str | None = None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> KnowledgeGraph:
    """The graph in the folder ``root``, or the nearest one above the current folder.

    ``create`` makes the folder and the collection where they are missing. ``settings`` are
    overrides such as ``{"graph.edge_limit": 10}``.
    """
    if root is None and not create:
        folder = GraphFolder.find(Path.cwd())
    else:
        path = Path(root) if root is not None else Path.cwd()
        folder = GraphFolder.create(path) if create else GraphFolder.open(path)
    values = load_settings(folder.path, {**(settings or {}), "collection": collection})
    return KnowledgeGraph(folder, values, create=create, **options)
