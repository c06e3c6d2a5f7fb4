"""A knowledge graph, open: index documents into it, ask it, read its record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgraph.engine.governing import Governing
from tgraph.engine.progress import OnMessage, OnProgress, silent
from tgraph.errors import UsageError
from tgraph.model import Answer, GraphRagResponse, Turn
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.settings import load_settings
from tgraph.store.folder import GraphFolder

if TYPE_CHECKING:
    from tgraph.engine.asking import Stream
    from tgraph.engine.evaluating_graph import Questions
    from tgraph.engine.indexing import IndexReport
    from tgraph.engine.methods import Method
    from tgraph.explain.evaluated import Evaluation
    from tgraph.explain.sparql import Bounds


class KnowledgeGraph(Governing):
    """One collection of a graph folder. Use it as a context manager, or ``close`` it.

    Any number of processes may have the same folder open. ``clock`` and ``uuid`` make the times and
    names of a record; tests put their own in.
    """

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
        from tgraph.engine.modes import suggesting

        question = f"Which {count} questions could be asked next?"
        asked = Question(question, self._history(history))
        return _last(self._asked(asked, suggesting(self._parts, count), count=count))

    def _history(self, history: Sequence[Turn] | None) -> tuple[Turn, ...]:
        turns = tuple(self._turns if history is None else history)
        return turns[-self.settings.graph.history_turns :] if turns else ()

    def _method(self, question: Question, mode: str, filters: Filters) -> Method:
        from tgraph.engine.modes import method_of
        from tgraph.retrieve.modes.registry import AUTO
        from tgraph.retrieve.narrowing import narrowed

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
        from tgraph.engine.asking import Asking
        from tgraph.engine.methods import without_retrieval
        from tgraph.record.session import SessionRecord
        from tgraph.retrieve.narrowing import is_empty, narrowed

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

    def context(self, mode: str = "graph") -> Context:
        """What a retriever of the mode reads: the newest published knowledge, its texts and its
        vectors. What the mode needs and no index run has built is built first."""
        self._prepare(mode)
        return self._open_context()

    def _prepare(self, mode: str) -> None:
        from tgraph.retrieve.modes.registry import mode_named

        found = mode_named(mode)
        if found is None or found.need is None:
            return
        from tgraph.engine.preparing import PrepareRun, is_missing

        need = found.need
        if is_missing(need, self._open_context().store):
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
        import asyncio

        return await asyncio.to_thread(self.index, paths, **options)

    async def aask(self, question: str, mode: str = "graph", **options: Any) -> Answer:
        """``ask`` without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.ask, question, mode, **options)

    async def aevaluate(
        self, questions: Questions, mode: str = "graph", *, progress: OnProgress = silent
    ) -> Evaluation:
        """``evaluate`` without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.evaluate, questions, mode, progress=progress)

    async def astream(
        self, question: str, mode: str = "graph", **options: Any
    ) -> AsyncIterator[GraphRagResponse]:
        """``stream`` without blocking the event loop; a stream that is left is interrupted."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        stream = self.stream(question, mode, **options)
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(1, "ask")  # one thread from beginning to end
        try:
            while (message := await loop.run_in_executor(pool, next, stream, None)) is not None:
                yield message
        finally:
            pool.submit(stream.close)
            pool.shutdown(wait=True)

    def _parameters(
        self, question: Question, method: Method, filters: Filters, count: int | None
    ) -> Mapping[str, Any]:
        """What the answer depends on beside the question and the knowledge."""
        from tgraph.engine.methods import Chosen
        from tgraph.engine.parameters import recorded

        chosen = isinstance(method, Chosen)
        own = recorded(self.settings, method.mode, question.history, count, chosen=chosen)
        return {**own, **filters.parameters}


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
