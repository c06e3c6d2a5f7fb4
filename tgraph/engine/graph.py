"""The library's face: ``KnowledgeGraph``, an open graph, and ``open_graph``.

Each method delegates to the module that does the work, imported on first use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from tgraph.engine.components import Components
from tgraph.engine.open_collection import OpenCollection, new_uuid
from tgraph.engine.progress import OnMessage, OnProgress, Watching, ignore_message, ignore_progress
from tgraph.engine.session_reader import SessionReader
from tgraph.model import Answer, GraphRagResponse, Only, ShownContext, Turn
from tgraph.models.base import current_time
from tgraph.retrieve.base import Context
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.settings import Settings, load_settings, with_overrides
from tgraph.store.folder import GraphFolder

if TYPE_CHECKING:
    from pyoxigraph import QueryBoolean, QuerySolutions, Triple

    from tgraph.compute.computation import QueryPlan
    from tgraph.engine.ask.question_run import AnswerStream, ContextStream
    from tgraph.engine.change.entity_curation import Retraction
    from tgraph.engine.change.purge import Purge
    from tgraph.engine.documents import Documents
    from tgraph.engine.entities import Entities
    from tgraph.engine.history import KnowledgeHistory
    from tgraph.engine.index.inputs import Paths, Table
    from tgraph.engine.index.run import IndexReport
    from tgraph.engine.ontologies import Ontologies
    from tgraph.engine.rerun.replay import Replay
    from tgraph.engine.sessions import Sessions
    from tgraph.explain.assess.verification import Verification
    from tgraph.explain.audit.impact import Impact
    from tgraph.explain.audit.named_audits import AuditResult
    from tgraph.explain.integrity.check import Integrity
    from tgraph.explain.query.sparql import Bounds
    from tgraph.explain.trace.reader import Trace
    from tgraph.explain.whynot.causes import WhyNot
    from tgraph.extract.base import Extractor
    from tgraph.index.catalogue import Catalogue
    from tgraph.ingest.files import SourceFile
    from tgraph.models.base import ChatModel, Embedder
    from tgraph.retrieve.base import Rank


class KnowledgeGraph:
    """One open collection of a graph folder, a context manager: index, ask, trace, audit.

    Methods for sessions, documents, entities, ontologies and the history of knowledge are in
    ``sessions``, ``documents``, ``entities``, ``ontologies`` and ``history``. ``opened`` is the
    open collection (``tgraph.engine.open_collection.OpenCollection``), the store included, for
    extensions.

    Any number of processes may have the same folder open. ``clock`` and ``uuid`` make the times and
    names of a record; tests put their own in.
    """

    def __init__(
        self,
        folder: GraphFolder,
        settings: Settings,
        *,
        create: bool = False,
        clock: Callable[[], datetime] = current_time,
        uuid: Callable[[], str] = new_uuid,
        parts: Components | None = None,
        message: OnMessage = ignore_message,
        watching: Watching | None = None,
    ) -> None:
        self.root = folder.path
        self.settings = settings
        place = folder.collection(settings.collection, create=create)
        self.opened = OpenCollection(place, settings, clock, uuid, parts, message, watching)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"KnowledgeGraph({str(self.root)!r}, collection={self.settings.collection!r})"

    def close(self) -> None:
        """Fold sessions asked here into the store, and release the folder."""
        self.opened.close()

    @contextmanager
    def view(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        message: OnMessage = ignore_message,
        watching: Watching | None = None,
    ) -> Iterator[KnowledgeGraph]:
        """Return a view of the graph for a single caller in a separate thread.

        Opened data stays open until the end, and the view's questions follow only earlier turns
        of the view. ``settings`` are overrides such as ``{"graph.edge_limit": 10}``; models,
        embeddings and collection stay those of the graph. Raises ``UsageError`` for an unknown
        setting."""
        changed = with_overrides(self.settings, settings) if settings else self.settings
        graph = object.__new__(type(self))
        graph.root, graph.settings = self.root, changed
        graph.opened = self.opened.view(changed, message, watching)
        with graph.opened.reading():
            yield graph

    @cached_property
    def sessions(self) -> Sessions:
        """Recorded sessions: listed, found, compared."""
        from tgraph.engine.sessions import Sessions

        return Sessions(self.opened)

    @cached_property
    def documents(self) -> Documents:
        """Indexed documents: listed, read, weighed by authority."""
        from tgraph.engine.documents import Documents

        return Documents(self.opened)

    @cached_property
    def entities(self) -> Entities:
        """Entities and facts: read and corrected."""
        from tgraph.engine.entities import Entities

        return Entities(self.opened)

    @cached_property
    def ontologies(self) -> Ontologies:
        """Ontologies guiding the graph: added, removed, read."""
        from tgraph.engine.ontologies import Ontologies

        return Ontologies(self.opened)

    @cached_property
    def history(self) -> KnowledgeHistory:
        """Generations of knowledge, changes between generations, and decisions of people."""
        from tgraph.engine.history import KnowledgeHistory

        return KnowledgeHistory(self.opened)

    # --- index ---

    def index(
        self,
        paths: Paths,
        *,
        reinstate: bool = False,
        prune: bool = False,
        progress: OnProgress = ignore_progress,
        message: OnMessage | None = None,
    ) -> IndexReport:
        """Index the documents at one path or several, and publish the graph; see ``IndexReport``.

        Retracted documents stay out unless ``reinstate`` is true. A file that can't be read is
        listed in the report and does not stop the others. Of a folder, the report lists the
        documents whose files are gone; ``prune`` retracts these, unless the folder is empty. If
        the run is interrupted nothing is published, and the next run continues from the
        interrupted run's results."""
        from tgraph.engine.change.pruning import index_paths
        from tgraph.engine.index.inputs import list_paths

        names = list_paths(paths)
        return index_paths(self.opened, names, progress, message, reinstate=reinstate, prune=prune)

    def index_data(self, data: bytes | BinaryIO, name: str, **options: Any) -> IndexReport:
        """Index bytes, or an open binary file from where it stands, as a document called ``name``,
        whose suffix says the format; otherwise as ``index``.

        The same name again is a new version of the document. The text is kept in the graph; no
        file is left. ``options`` are ``reinstate``, ``progress`` and ``message``."""
        from tgraph.engine.index.inputs import wrap_data

        return self._index_source(wrap_data(data, name), **options)

    def index_text(self, text: str, title: str, **options: Any) -> IndexReport:
        """Index a text as a document called after its title, plain text unless the title ends
        with another suffix (".md"); otherwise as ``index_data``."""
        from tgraph.engine.index.inputs import wrap_text

        return self._index_source(wrap_text(text, title), **options)

    def index_table(self, table: Table, title: str, **options: Any) -> IndexReport:
        """Index a DataFrame of pandas or polars, or a list of rows as mappings, as a CSV file
        called after its title; otherwise as ``index_data``. Questions may compute with the rows."""
        from tgraph.engine.index.inputs import wrap_table

        return self._index_source(wrap_table(table, title), **options)

    def _index_source(
        self,
        source: SourceFile,
        *,
        reinstate: bool = False,
        progress: OnProgress = ignore_progress,
        message: OnMessage | None = None,
    ) -> IndexReport:
        from tgraph.engine.index.run import IndexRun

        run = IndexRun(self.opened.setup(progress, message))
        return run.run([source], reinstate=reinstate)

    def reread(
        self,
        paths: Paths = (),
        *,
        progress: OnProgress = ignore_progress,
        message: OnMessage | None = None,
    ) -> IndexReport:
        """Read documents anew whose stored text an earlier version made otherwise: those at or
        below the paths, or all without paths.

        The new text belongs to a document of its own, which supersedes the earlier one under its
        path; what was answered from the earlier text stays exact."""
        from tgraph.engine.index.inputs import list_paths
        from tgraph.engine.index.run import IndexRun

        run = IndexRun(self.opened.setup(progress, message))
        return run.reread(list_paths(paths))

    def follow(
        self,
        folders: Paths,
        *,
        reinstate: bool = False,
        prune: bool = False,
        stop: Event | None = None,
        progress: OnProgress = ignore_progress,
        message: OnMessage | None = None,
    ) -> Iterator[IndexReport]:
        """Index folders now and after every change in them, and yield the report of each round.

        Options are those of ``index``; ``progress`` is shown for the first round. A later round
        that fails is told in a ``message`` and repeated. Setting ``stop`` ends the iteration.
        Raise ``UsageError`` for a path that is no folder."""
        from tgraph.engine.folder_watch import follow_folders
        from tgraph.engine.index.inputs import list_paths

        def index(progress: OnProgress) -> IndexReport:
            try:
                return self.index(
                    names, reinstate=reinstate, prune=prune, progress=progress, message=message
                )
            finally:
                self.opened.release()

        names = list_paths(folders)
        notify = message or self.opened.message
        return follow_folders(names, index, stop, progress, notify)

    def update(self, text: str, bounds: Bounds | None = None) -> tuple[int, int]:
        """Apply a SPARQL update, completely or not at all; return the numbers of added and
        removed quads.

        The update is recorded as an activity and published. Raises ``QueryError`` if the update
        is wrong, was stopped, or would change the record of sessions."""
        from tgraph.engine.change.update import UpdateRun
        from tgraph.explain.query.sparql import Bounds

        return UpdateRun(self.opened.setup()).update(text, bounds or Bounds())

    def impact(self, document: str, *, all_copies: bool = False) -> Impact:
        """Return facts resting on the document alone, and answers resting on the document: at
        the path named, or at all paths of the same content."""
        from tgraph.explain.audit.impact import read_impact

        return read_impact(
            self.opened.read(), self.opened.catalogue, document, all_copies=all_copies
        )

    def retract(self, document: str, *, reason: str, all_copies: bool = False) -> Retraction:
        """Retract a document (named by path, title, IRI or hash): derive knowledge without the
        document, and question dependent answers.

        One path is retracted, and the content stands as long as another path stands
        (``impact.copies``); ``all_copies`` retracts all paths. Raises ``UsageError`` for a name
        that means several paths, without ``all_copies``.

        The record stays; the retraction is recorded with the reason and, if ``person`` is set,
        with the deciding person. A repeated call after an interruption finishes the work.
        Raises ``UsageError`` if nothing is left to do."""
        from tgraph.engine.change.entity_curation import retract_document

        return retract_document(self.opened, document, reason, all_copies=all_copies)

    def purge(
        self,
        document: str,
        *,
        reason: str,
        all_copies: bool = False,
        patience: float = 30.0,
        progress: OnProgress | None = None,
        message: OnMessage | None = None,
    ) -> Purge:
        """Erase a document (named as for ``retract``) permanently: retract the document, and
        erase its text from all stored data. While the same content stands at another path, the
        path is only retracted; ``all_copies`` erases the content at all paths.

        Each bundle with erased text is sealed again, and the chain says so; statements shared
        by other documents stay. Nobody else may have the graph open: the call waits
        ``patience`` seconds for other users, then raises ``StoreError``. A repeated call after
        an interruption finishes the work. Raises ``UsageError`` for a reason that repeats the
        text, since reasons stay on record."""
        from tgraph.engine.change.purge import purge_document

        return purge_document(
            self.opened,
            document,
            reason,
            patience,
            progress or ignore_progress,
            message,
            all_copies=all_copies,
        )

    # --- ask ---

    def ask(
        self,
        question: str,
        mode: str = "auto",
        *,
        history: Sequence[Turn] | None = None,
        filters: Filters = NO_FILTERS,
        as_of: str | int | datetime | date | None = None,
    ) -> Answer:
        """Return the proven answer, in the given mode or in a mode chosen by question form
        (``auto``).

        ``history`` replaces earlier turns asked here; ``filters`` restrict the sources of the
        answer. Raises ``UsageError`` if a filter names something missing. ``as_of`` answers
        from earlier knowledge: at a time (of a date at its end, in UTC unless stated
        otherwise), in a generation by number, or as a session knew it. Raises ``UsageError`` if
        there was no such knowledge, or if it lacks structures searched by the mode;
        ``StoreError`` if earlier knowledge can't be read any more."""
        from tgraph.engine.ask.streams import result_of

        return result_of(self.stream(question, mode, history=history, filters=filters, as_of=as_of))

    def stream(
        self,
        question: str,
        mode: str = "auto",
        *,
        history: Sequence[Turn] | None = None,
        filters: Filters = NO_FILTERS,
        as_of: str | int | datetime | date | None = None,
    ) -> AnswerStream:
        """Messages as they happen (design, section 6.3); the generator returns the ``Answer``."""
        from tgraph.engine.ask.conversation import QuestionRequest, stream_answer, write_point

        request = QuestionRequest(question, mode, history, filters, write_point(as_of))
        return stream_answer(self.opened, request)

    def stream_context(
        self,
        question: str,
        mode: str = "auto",
        *,
        only: Only = "context",
        history: Sequence[Turn] | None = None,
        filters: Filters = NO_FILTERS,
        as_of: str | int | datetime | date | None = None,
    ) -> ContextStream:
        """Stream stages up to the selection; the generator returns ``ShownContext``, the
        context for an answer writer.

        Raises ``UsageError`` for ``only="prompt"`` without a language model. The session is
        recorded, without an answer."""
        from tgraph.engine.ask.conversation import QuestionRequest, context, write_point

        request = QuestionRequest(question, mode, history, filters, write_point(as_of), only)
        return context(self.opened, request)

    def gather_context(
        self,
        question: str,
        mode: str = "auto",
        *,
        only: Only = "context",
        history: Sequence[Turn] | None = None,
        filters: Filters = NO_FILTERS,
        as_of: str | int | datetime | date | None = None,
    ) -> ShownContext:
        """Return the context for an answer writer, as ``stream_context`` does at its end."""
        from tgraph.engine.ask.streams import result_of

        return result_of(
            self.stream_context(
                question, mode, only=only, history=history, filters=filters, as_of=as_of
            )
        )

    def suggest(self, count: int = 5, *, history: Sequence[Turn] | None = None) -> Answer:
        """Return answerable questions as answer sentences, each citing its source.

        ``history`` replaces earlier turns asked here."""
        from tgraph.engine.ask.conversation import suggest_questions

        return suggest_questions(self.opened, count, history)

    def context(self, mode: str = "graph") -> Context:
        """Return the mode's retrieval context: newest published knowledge, texts and vectors.

        Structures that the mode needs, and that no index run has built, are built first."""
        from tgraph.engine.ask.conversation import prepare_mode

        prepare_mode(self.opened, mode)
        return self.opened.context()

    # --- the same for asyncio ---

    async def aindex(self, paths: Paths, **options: Any) -> IndexReport:
        """``index`` without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.index, paths, **options)

    async def aask(self, question: str, mode: str = "auto", **options: Any) -> Answer:
        """``ask`` without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.ask, question, mode, **options)

    async def astream(
        self, question: str, mode: str = "auto", **options: Any
    ) -> AsyncIterator[GraphRagResponse]:
        """``stream`` without blocking the event loop; a stream that is left is interrupted."""
        from tgraph.engine.ask.streams import ThreadStream

        messages = ThreadStream(self.stream(question, mode, **options)).messages()
        async with aclosing(messages):
            async for message in messages:
                yield message

    # --- sessions ---

    def trace(self, session: str = "last") -> Trace:
        """Return the session record as a tree; ``to_html`` writes a report."""
        return SessionReader(self.opened).trace(session)

    def export(
        self,
        session: str = "last",
        format: str = "trig",
        *,
        vocabulary: str = "tgraph",
        classic: bool = False,
        core: bool = False,
    ) -> bytes:
        """Export a session record with everything referenced: RDF, a PROV format, or a picture.

        The IRI of a verification, an influence analysis or another separate record exports that
        record. ``vocabulary`` may be ``trustgraph``, whose reader then parses the export;
        ``classic`` writes edges without triple terms; ``core`` leaves out calls, ratings,
        rejected candidates, and anything that the answer does not rest on. Raises
        ``UsageError`` for an unknown format or vocabulary."""
        reader = SessionReader(self.opened)
        return reader.export(session, format, vocabulary, classic=classic, core=core)

    def why_not(self, session: str, expected: str) -> WhyNot:
        """Explain why an expected entity, fact, chunk, document or text is missing from a
        session's answer.

        ``expected`` is named in any way; exactly one cause is given, from the record and the
        store alone."""
        return SessionReader(self.opened).why_not(session, expected)

    def verify(
        self,
        session: str = "last",
        *,
        lexical: bool = False,
        progress: OnProgress = ignore_progress,
    ) -> Verification:
        """Verify whether each answer sentence is entailed by its citations, and locate the
        cause of failures.

        The verdicts are recorded in a separate bundle. The model judges; without a model the
        reader, if capable; otherwise, or with ``lexical``, shared words decide. Raises
        ``UsageError`` if the session has no answer."""
        from tgraph.engine.rerun.verification import verify_session

        summary = self.sessions.find(session)
        return verify_session(self.opened, summary, progress, lexical=lexical)

    def replay(self, session: str = "last", *, live: bool = False) -> Replay:
        """Repeat a recorded session with recorded replies, without calls, and compare both
        records.

        ``live`` calls the models again. The replay itself is not recorded. Raises
        ``UsageError`` if the session has no end, or if parts of it were erased."""
        from tgraph.engine.rerun.replay import SessionReplay
        from tgraph.explain.integrity.erasures import check_whole

        summary = self.sessions.find(session)
        check_whole(self.opened.read(), summary.bundle, summary.explain_id)
        return SessionReplay.from_summary(self.opened, summary).run(live=live)

    # --- questions about the record ---

    def find_audit(self, question: str) -> tuple[str, ...]:
        """Return the name of the audit that a question asks for, and its arguments.

        Raises ``UsageError`` for a question that no audit answers, or several."""
        from tgraph.explain.audit.asked_audits import find_asked_audit

        asked = find_asked_audit(self.opened.read(), question)
        return asked.audit.name, *asked.arguments

    def audit(self, name: str, *arguments: str) -> AuditResult:
        """Run a named audit (``tgraph.explain.audit.named_audits.list_audits`` has them all)."""
        from tgraph.explain.audit.named_audits import (
            INTEGRITY,
            KNOWLEDGE,
            ONTOLOGY,
            find_audit,
            run_audit,
        )

        if name == INTEGRITY.name:
            from tgraph.engine.checks.integrity import audit_integrity

            return audit_integrity(self.opened, *arguments)
        if name == KNOWLEDGE.name:
            from tgraph.engine.checks.rederivation import audit_knowledge

            return audit_knowledge(self.opened, *arguments)
        if name == ONTOLOGY.name:
            from tgraph.explain.audit.ontology import audit_ontology

            opened = self.opened
            return audit_ontology(
                opened.read(), opened.librarian, self.settings, opened.message, *arguments
            )
        return run_audit(self.opened.read(), self.opened.catalogue, find_audit(name), arguments)

    def integrity(
        self, head: str | None = None, *, public_key: str | Path | None = None
    ) -> Integrity:
        """Check that all records are as sealed, and that the chain contains the saved ``head``.

        With the file of a ``public_key``, its owner's signatures are checked too. Writers wait
        meanwhile; in a read-only folder there are no writers."""
        from tgraph.engine.checks.integrity import check_integrity_of

        return check_integrity_of(self.opened, head, public_key)

    def catalogue(self) -> Catalogue:
        """Return the classes, tables and properties of knowledge, with counts and values; what
        only sentences state too, which is counted."""
        from tgraph.index.catalogue import count_catalogue

        return count_catalogue(self.opened.context().store, is_whole=True)

    def plan_query(self, question: str) -> QueryPlan:
        """Return the queries that a question may mean, as the mode ``sparql`` makes them: by a
        language model, if one is set, whose calls are then in no record."""
        from tgraph.engine.written_query import plan_question

        return plan_question(self.opened, question)

    def ask_query(
        self,
        query: str,
        *,
        question: str = "",
        after: str = "",
        filters: Filters = NO_FILTERS,
        as_of: str | int | datetime | date | None = None,
    ) -> Answer:
        """Return the computed answer of a query in SPARQL that a person wrote, as a session of its
        own, with the witnesses, sentences and record of the mode ``sparql``.

        ``after`` names the session whose query it was made from: the new query derives from that
        one, and answers the same question unless ``question`` gives another. Raises
        ``QueryError``, with a remedy, for a query that computed answers don't allow."""
        from tgraph.engine.ask.streams import result_of

        return result_of(
            self.stream_query(query, question=question, after=after, filters=filters, as_of=as_of)
        )

    def stream_query(
        self,
        query: str,
        *,
        question: str = "",
        after: str = "",
        filters: Filters = NO_FILTERS,
        as_of: str | int | datetime | date | None = None,
    ) -> AnswerStream:
        """Messages as they happen, of ``ask_query``; the generator returns the ``Answer``."""
        from tgraph.engine.ask.conversation import stream_answer, write_point
        from tgraph.engine.written_query import request_query

        request = request_query(self.opened, query, question, after, filters, write_point(as_of))
        return stream_answer(self.opened, request)

    def sparql(self, query: str, **bounds: Any) -> QuerySolutions | QueryBoolean | list[Triple]:
        """Return the result of a read-only query over the union of all graphs.

        ``bounds`` are ``timeout`` (seconds), ``memory`` (bytes), ``limit`` (rows), ``base`` (an
        IRI that others are relative to) and ``size`` (bytes of the result). Raises
        ``QueryError`` if the query is wrong, refused, or was stopped."""
        from pyoxigraph import QueryResultsFormat, RdfFormat, parse, parse_query_results

        from tgraph.engine.sparql_results import stream_query_results
        from tgraph.explain.query.sparql import Bounds
        from tgraph.store.query_guard import gives_triples

        triples = gives_triples(query)
        chosen = "ntriples" if triples else "json"
        data = b"".join(stream_query_results(self.opened, query, chosen, Bounds(**bounds)))
        if triples:
            return [quad.triple for quad in parse(data, RdfFormat.N_TRIPLES)]
        return parse_query_results(data, QueryResultsFormat.JSON)


def open_graph(
    root: str | Path | None = None,
    *,
    create: bool = False,
    collection: str | None = None,
    settings: Mapping[str, Any] | None = None,
    chat: ChatModel | None = None,
    embedder: Embedder | None = None,
    extractor: Extractor | None = None,
    reranker: Rank | None = None,
    **options: Any,
) -> KnowledgeGraph:
    """Open the graph in the folder ``root``, or the nearest graph above the current folder.

    ``create`` makes missing folders and collections. ``settings`` are overrides such as
    ``{"graph.edge_limit": 10}``. ``chat`` and ``embedder`` (protocols of ``tgraph.models.base``),
    ``extractor`` (``tgraph.extract.base.Extractor``) and ``reranker``, a function of the type
    ``tgraph.retrieve.base.Rank``, are used in place of those that settings name. ``options`` are
    those of ``KnowledgeGraph``."""
    if root is None and not create:
        folder = GraphFolder.find(Path.cwd())
    else:
        path = Path(root) if root is not None else Path.cwd()
        folder = GraphFolder.create(path) if create else GraphFolder.open(path)
    values = load_settings(folder.path, {**(settings or {}), "collection": collection})
    if any(own is not None for own in (chat, embedder, extractor, reranker)):
        options["parts"] = Components(
            values,
            folder.collection(values.collection, create=create).cache,
            chat=chat,
            embedder=embedder,
            extractor=extractor,
            rank=reranker,
        )
    return KnowledgeGraph(folder, values, create=create, **options)
