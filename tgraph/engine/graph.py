"""A knowledge graph, open: index documents into it, ask it, read its record.

``KnowledgeGraph`` says what can be done; what does it is held, or called with what is open.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tgraph.engine.components import Components
from tgraph.engine.open_collection import OpenCollection, new_uuid, utc_now
from tgraph.engine.progress import OnMessage, OnProgress, Watching, ignore_message, ignore_progress
from tgraph.engine.session_reader import SessionReader
from tgraph.librarian import Librarian
from tgraph.model import Answer, GraphRagResponse, Only, ShownContext, Turn
from tgraph.retrieve.base import Context
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.settings import Settings, load_settings, with_overrides
from tgraph.store.folder import GraphFolder

if TYPE_CHECKING:
    from pyoxigraph import QueryBoolean, QuerySolutions, Triple

    from tgraph.engine.ask.question_run import ContextStream, Stream
    from tgraph.engine.change.corrections import Correction
    from tgraph.engine.change.entity_curation import Retraction
    from tgraph.engine.change.ontology_curation import AddedOntology
    from tgraph.engine.change.purge import Purge
    from tgraph.engine.index.run import IndexReport
    from tgraph.engine.rerun.replay import Replay
    from tgraph.explain.assess.verification import Verification
    from tgraph.explain.audit.impact import Impact
    from tgraph.explain.audit.named_audits import AuditResult
    from tgraph.explain.integrity.check import Integrity
    from tgraph.explain.query.sparql import Bounds, Dataset
    from tgraph.explain.trace.comparison import Comparison
    from tgraph.explain.trace.curations import Curation
    from tgraph.explain.trace.documents import DocumentSummary, SourceTree
    from tgraph.explain.trace.entities import Merge, Split
    from tgraph.explain.trace.facts import KnownFact
    from tgraph.explain.trace.generations import Generation
    from tgraph.explain.trace.knowledge_diff import KnowledgeDiff
    from tgraph.explain.trace.reader import Trace
    from tgraph.explain.trace.sessions import SessionList, SessionSummary
    from tgraph.explain.whynot.causes import WhyNot
    from tgraph.extract.ontology import Ontology
    from tgraph.record.ontologies import RecordedOntology
    from tgraph.store.base import Store


class KnowledgeGraph:
    """One collection of a graph folder. Use it as a context manager, or ``close`` it.

    Any number of processes may have the same folder open. ``clock`` and ``uuid`` make the times and
    names of a record; tests put their own in.

    ``opened`` is the open collection (``tgraph.engine.open_collection.OpenCollection``), with which
    extensions work.
    """

    def __init__(
        self,
        folder: GraphFolder,
        settings: Settings,
        *,
        create: bool = False,
        clock: Callable[[], datetime] = utc_now,
        uuid: Callable[[], str] = new_uuid,
        parts: Components | None = None,
        message: OnMessage = ignore_message,
        watching: Watching | None = None,
    ) -> None:
        self.root = folder.path
        self.settings = settings
        place = folder.collection(settings.collection, create=create)
        self.opened = OpenCollection(place, settings, clock, uuid, parts, message, watching)
        self._sessions = SessionReader(self.opened)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"KnowledgeGraph({str(self.root)!r}, collection={self.collection!r})"

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
        graph = copy.copy(self)
        graph.settings = changed
        graph.opened = self.opened.view(changed, message, watching)
        graph._sessions = SessionReader(graph.opened)
        with graph.opened.reading():
            yield graph

    def fold(self) -> None:
        """Fold ended sessions into the store, where sessions become readable; reading folds
        sessions too."""
        self.opened.fold()

    @property
    def collection(self) -> str:
        return self.opened.folder.name

    @property
    def librarian(self) -> Librarian:
        return self.opened.librarian

    def read(self) -> Store:
        """Return the newest published state, including finished sessions, for reading.

        If a writer keeps the lock for too long, the state lacks the newest sessions, and
        ``message`` says so."""
        return self.opened.read()

    # --- index ---

    def index(
        self,
        paths: Sequence[str | Path],
        *,
        reinstate: bool = False,
        progress: OnProgress = ignore_progress,
        message: OnMessage | None = None,
    ) -> IndexReport:
        """Index documents and publish the graph; see ``IndexReport``.

        Retracted documents stay out unless ``reinstate`` is true. A file that can't be read is
        listed in the report and does not stop the others. If the run is interrupted nothing is
        published, and the next run continues from the interrupted run's results."""
        from tgraph.engine.index.run import IndexRun
        from tgraph.ingest.files import discover_files

        run = IndexRun(self.opened.setup(progress, message))
        follow = self.settings.ingest.follow_links
        files = discover_files([str(path) for path in paths], follow_links=follow)
        return run.run(files, reinstate=reinstate)

    def update(self, text: str, bounds: Bounds | None = None) -> tuple[int, int]:
        """Apply a SPARQL update, completely or not at all; return the numbers of added and
        removed quads.

        The update is recorded as an activity and published. Raises ``QueryError`` if the update
        is wrong, was stopped, or would change the record of sessions."""
        from tgraph.engine.change.update import UpdateRun
        from tgraph.explain.query.sparql import Bounds

        return UpdateRun(self.opened.setup()).update(text, bounds or Bounds())

    def split(self, name: str, other: str | None = None, *, reason: str) -> str:
        """Split two names that entity resolution made one entity; the split's IRI.

        ``other`` is by default the entity that ``name`` was merged into. The decision lasts: later
        index runs honour it until ``rejoin`` takes it back. It is recorded with the reason and, if
        ``person`` is set, with who made it. ``UsageError`` where the names are not one entity.
        """
        from tgraph.engine.change.entity_curation import CurationRun

        return CurationRun(self.opened.setup()).split(name, other, reason)

    def rejoin(self, name: str, other: str, *, reason: str) -> str:
        """Undo a split; return the split's IRI. The names form one entity again if the texts
        still say so.

        Raises ``UsageError`` if the names have not been split."""
        from tgraph.engine.change.entity_curation import CurationRun

        return CurationRun(self.opened.setup()).rejoin(name, other, reason)

    def weigh(self, target: str, authority: float | None, *, reason: str) -> str:
        """Set document authority, a factor from 0 to 1 on ranking scores (0: nothing is
        answered from the documents).

        Returns the path or pattern with the new authority. ``target`` is a document, named as
        for ``retract``, or a pattern of paths (``minutes/*``; ``*`` for all): the path itself
        goes before patterns, a longer pattern before a shorter. Later versions under the path
        keep the authority. None removes the authority. The decision is recorded like a
        ``split``. Raises ``UsageError`` if nothing would change, or if the value is no weight."""
        from tgraph.engine.change.entity_curation import CurationRun

        return CurationRun(self.opened.setup()).weigh(target, authority, reason)

    def add_fact(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        reason: str,
        literal: bool = False,
        datatype: str | None = None,
        description: str = "",
        weight: float | None = None,
    ) -> Correction:
        """State a fact by hand, about known or new entities; see ``Correction``.

        The fact is evidence of its own kind, a note: cited, traced and weighed like document
        statements, until ``undo`` removes the note. ``object`` is a value rather than a name
        with ``literal`` or a ``datatype``; ``weight`` is 1 to 10. The fact is recorded with the
        reason and, if ``person`` is set, with its author. Raises ``UsageError`` for a denied
        fact, or for a value outside the datatype."""
        from tgraph.engine.change.corrections import apply_correction
        from tgraph.engine.change.curation_notes import NewFact

        new_fact = NewFact(
            subject, predicate, object, literal, datatype, description or None, weight
        )
        return apply_correction(self.opened, reason, lambda run: run.add_fact(new_fact, reason))

    def edit_fact(self, *fact: str, reason: str, **values: Any) -> Correction:
        """Replace a fact, denying the old fact, as one decision; or change its ``description``
        or ``weight``.

        ``fact`` and the ``values`` are named as for ``deny_fact`` and ``add_fact``; omitted
        values stay. Raises ``UsageError`` as there."""
        from tgraph.engine.change.corrections import apply_correction
        from tgraph.engine.change.curation_notes import NewFact

        new_fact = NewFact(**values)
        return apply_correction(
            self.opened, reason, lambda run: run.edit_fact(fact, new_fact, reason)
        )

    def deny_fact(self, *fact: str, reason: str) -> Correction:
        """Keep a fact out of knowledge, whatever documents say now or later, until ``undo``.

        ``fact`` is the edge's IRI or its beginning, or subject, predicate and object. Document
        statements of the fact stay on record; answers resting on the fact are called into
        question. Raises ``UsageError`` if no fact or several facts match."""
        from tgraph.engine.change.corrections import apply_correction

        return apply_correction(self.opened, reason, lambda run: run.deny_fact(fact, reason))

    def facts(self, entity: str) -> list[KnownFact]:
        """Return facts about an entity, sorted by wording.

        Raises ``UsageError`` for an unknown entity."""
        from tgraph.explain.trace.facts import Facts

        facts = Facts(self.read())
        return facts.about(facts.entity(entity))

    def create_entity(
        self,
        name: str,
        *,
        reason: str,
        type: str | None = None,
        description: str | None = None,
        aliases: Sequence[str] = (),
    ) -> Correction:
        """State by hand that an entity exists.

        Raises ``UsageError`` if the entity is known, or deleted."""
        from tgraph.engine.change.corrections import apply_correction
        from tgraph.engine.change.curation_notes import EntityValues

        values = EntityValues(None, type, description, tuple(aliases))
        return apply_correction(
            self.opened, reason, lambda run: run.create_entity(name, values, reason)
        )

    def edit_entity(self, name: str, *, reason: str, **values: Any) -> Correction:
        """Override document statements about an entity: ``label``, ``type``, ``description``,
        ``aliases``, ``not_aliases``.

        Raises ``UsageError`` for an unknown entity."""
        from tgraph.engine.change.corrections import apply_correction
        from tgraph.engine.change.curation_notes import EntityValues

        new_values = EntityValues(**{k: _to_tuple(value) for k, value in values.items()})
        return apply_correction(
            self.opened, reason, lambda run: run.edit_entity(name, new_values, reason)
        )

    def delete_entity(self, name: str, *, reason: str) -> Correction:
        """Keep an entity and its facts out of knowledge, under all current names, until
        ``undo``.

        Answers resting on those facts are called into question."""
        from tgraph.engine.change.corrections import apply_correction

        return apply_correction(self.opened, reason, lambda run: run.delete_entity(name, reason))

    def merge_entities(self, name: str, other: str, *, reason: str) -> Correction:
        """Merge two entities until ``undo``, regardless of names in documents; the fuller name
        is kept.

        Raises ``UsageError`` if the entities are merged already, or were told apart by
        ``split``."""
        from tgraph.engine.change.corrections import apply_correction

        return apply_correction(self.opened, reason, lambda run: run.merge(name, other, reason))

    def curations(self) -> list[Curation]:
        """Return decisions by people about the graph, newest first."""
        from tgraph.explain.trace.curations import read_curations

        return read_curations(self.read())

    def curation(self, name: str) -> Curation:
        """Return a decision by IRI, UUID, the beginning of either, its result, or ``last``.

        Raises ``UsageError`` if no decision or several decisions match."""
        from tgraph.explain.trace.curations import find_curation

        return find_curation(self.curations(), name)

    def undo(self, curation: str, *, reason: str) -> Correction:
        """Undo a decision, named as for ``curation`` (``last`` is the last standing decision).

        Knowledge is then as if the decision had not been made, and answers resting on its
        statements are called into question. Raises ``UsageError`` if the decision is undone
        already, or is undone by another method (retractions, weights)."""
        from tgraph.engine.change.corrections import apply_correction

        return apply_correction(self.opened, reason, lambda run: run.undo(curation, reason))

    def add_ontology(
        self,
        file: str | Path,
        *,
        reason: str = "",
        progress: OnProgress = ignore_progress,
        message: OnMessage | None = None,
    ) -> AddedOntology:
        """Guide the graph by an ontology (OWL, RDFS, SKOS or SHACL, in any RDF syntax), and map
        existing extractions to its terms.

        Nothing is read again. With the setting ``ontology.strict``, extractions that do not fit
        are kept out of knowledge. An ontology with the IRI of a standing ontology replaces that
        ontology. Raises ``UsageError`` if the file is no ontology, or if the ontology stands
        already."""
        from tgraph.engine.change.ontology_curation import add_ontology

        setup = self.opened.setup(progress, message)
        return add_ontology(self.opened, setup, Path(file), reason)

    def remove_ontology(
        self,
        name: str,
        *,
        reason: str,
        progress: OnProgress = ignore_progress,
        message: OnMessage | None = None,
    ) -> RecordedOntology:
        """Remove an ontology, named by file, IRI or its own name; knowledge is derived without
        the ontology.

        Raises ``UsageError`` if no standing ontology matches."""
        from tgraph.engine.change.ontology_curation import OntologyRun

        return OntologyRun(self.opened.setup(progress, message)).remove(name, reason)

    def impact(self, document: str) -> Impact:
        """Return facts resting on the document alone, and answers resting on the document."""
        from tgraph.explain.audit.impact import read_impact

        return read_impact(self.read(), self.opened.catalogue, document)

    def retract(self, document: str, *, reason: str) -> Retraction:
        """Retract a document (named by path, title, IRI or hash): derive knowledge without the
        document, and question dependent answers.

        The record stays; the retraction is recorded with the reason and, if ``person`` is set,
        with the deciding person. A repeated call after an interruption finishes the work.
        Raises ``UsageError`` if nothing is left to do."""
        from tgraph.engine.change.entity_curation import retract_document

        return retract_document(self.opened, document, reason)

    def purge(
        self,
        document: str,
        *,
        reason: str,
        patience: float = 30.0,
        progress: OnProgress | None = None,
        message: OnMessage | None = None,
    ) -> Purge:
        """Erase a document (named as for ``retract``) permanently: retract the document, and
        erase its text from all stored data.

        Each bundle with erased text is sealed again, and the chain says so; statements shared
        by other documents stay. Nobody else may have the graph open: the call waits
        ``patience`` seconds for other users, then raises ``StoreError``. A repeated call after
        an interruption finishes the work. Raises ``UsageError`` for a reason that repeats the
        text, since reasons stay on record."""
        from tgraph.engine.change.purge import purge_document

        return purge_document(
            self.opened, document, reason, patience, progress or ignore_progress, message
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
    ) -> Stream:
        """Messages as they happen (design, section 6.3); the generator returns the ``Answer``."""
        from tgraph.engine.ask.conversation import QuestionRequest, stream_answer

        point = "" if as_of is None else _point_name(as_of)
        request = QuestionRequest(question, mode, history, filters, point)
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
        from tgraph.engine.ask.conversation import QuestionRequest, context

        point = "" if as_of is None else _point_name(as_of)
        request = QuestionRequest(question, mode, history, filters, point, only)
        return context(self.opened, request)

    def context_of(
        self,
        question: str,
        mode: str = "auto",
        *,
        only: Only = "context",
        history: Sequence[Turn] | None = None,
        filters: Filters = NO_FILTERS,
        as_of: str | int | datetime | date | None = None,
    ) -> ShownContext:
        """What ``stream_context`` returns."""
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

    async def aindex(self, paths: Sequence[str | Path], **options: Any) -> IndexReport:
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

    async def apurge(self, document: str, **options: Any) -> Purge:
        """``purge`` without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.purge, document, **options)

    # --- sessions ---

    def history(self) -> list[Generation]:
        """Return knowledge generations, newest first, with publication time and cause."""
        from tgraph.explain.trace.generations import list_generations

        return list_generations(self.read())

    def knowledge_diff(
        self, before: str | int | datetime | date, after: str | int | datetime | date = "now"
    ) -> KnowledgeDiff:
        """Compare entities, facts and claims between two points in time, and give causes of
        changes.

        Points are named as for ``ask``; 0 is before the first generation. Raises ``UsageError``
        for an invalid point, ``StoreError`` if the record of a change can't be read."""
        from tgraph.engine.ask.conversation import point_in_time
        from tgraph.explain.trace.knowledge_diff import knowledge_diff

        start_point, end_point = (
            point_in_time(self.opened, _point_name(p)) for p in (before, after)
        )
        return knowledge_diff(self.read(), self.librarian, start_point, end_point)

    def sessions(self, limit: int | None = None) -> SessionList:
        """The recorded sessions, newest first; a notebook shows the list as a table."""
        from tgraph.explain.trace.sessions import list_sessions

        return list_sessions(self.read(), self.opened.catalogue, limit)

    def find_session(self, name: str) -> SessionSummary:
        """Return a session by IRI, UUID, unambiguous beginning of either, or ``last``."""
        return self._sessions.find(name)

    def trace(self, session: str = "last") -> Trace:
        """Return the session record as a tree; ``to_html`` writes a report."""
        return self._sessions.trace(session)

    def report(self, session: str = "last") -> str:
        """Return the session record as a single HTML file, including RDF."""
        return self._sessions.report(session)

    def trace_so_far(self, session: str) -> Trace:
        """Return the partial record of a session still running in this process."""
        return self._sessions.trace_so_far(session)

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
        return self._sessions.export(session, format, vocabulary, classic=classic, core=core)

    def why_not(self, session: str, expected: str) -> WhyNot:
        """Explain why an expected entity, fact, chunk, document or text is missing from a
        session's answer.

        ``expected`` is named in any way; exactly one cause is given, from the record and the
        store alone."""
        return self._sessions.why_not(session, expected)

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

        summary = self.find_session(session)
        return verify_session(self.opened, summary, progress, lexical=lexical)

    def replay(self, session: str = "last", *, live: bool = False) -> Replay:
        """Repeat a recorded session with recorded replies, without calls, and compare both
        records.

        ``live`` calls the models again. The replay itself is not recorded. Raises
        ``UsageError`` if the session has no end, or if parts of it were erased."""
        from tgraph.engine.rerun.replay import SessionReplay
        from tgraph.explain.integrity.erasures import check_whole

        summary = self.find_session(session)
        check_whole(self.read(), summary.bundle, summary.explain_id)
        return SessionReplay.of(self.opened, summary).run(live=live)

    def compare(self, before: str, after: str = "last") -> Comparison:
        """What differs between two sessions: what was asked, retrieved, selected, said, cited."""
        from tgraph.explain.trace.comparison import compare_sessions

        return compare_sessions(self.trace(before), self.trace(after))

    # --- documents ---

    def documents(self) -> list[DocumentSummary]:
        """Return documents under every indexed path, standing documents first."""
        from tgraph.explain.trace.documents import list_documents

        return list_documents(self.read())

    def source(self, document: str) -> SourceTree:
        """Return extractions from a document (named by path, title, IRI or hash), with their
        places."""
        from tgraph.explain.trace.documents import read_source

        return read_source(self.read(), self.librarian, document)

    def source_text(self, document: str, page: int | None = None) -> str:
        """Return the stored text of a page, or of the whole document; citation offsets refer to
        this text."""
        from tgraph.explain.trace.documents import source_text

        return source_text(self.read(), self.librarian, document, page)

    # --- names ---

    def merges(self) -> list[Merge]:
        """Return names merged into another entity, with grounds."""
        from tgraph.explain.trace.entities import EntityMerges

        return EntityMerges(self.read()).merges()

    def splits(self) -> list[Split]:
        """Return names told apart by ``split``, unless undone by ``rejoin``."""
        from tgraph.explain.trace.entities import EntityMerges

        return EntityMerges(self.read()).splits()

    # --- ontologies ---

    def ontologies(self) -> list[RecordedOntology]:
        """Return ontologies currently guiding the graph."""
        from tgraph.record.ontologies import standing_ontologies

        return standing_ontologies(self.read())

    def ontology(self, name: str | None = None) -> Ontology:
        """Return classes and properties of a standing ontology, or of all ontologies together."""
        from tgraph.engine.change.ontology_curation import find_ontology
        from tgraph.record.ontologies import read_standing

        recorded = [find_ontology(self.read(), name)] if name else self.ontologies()
        return read_standing(self.librarian, recorded)

    # --- questions about the record ---

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
            from tgraph.engine.checks import audit_integrity

            return audit_integrity(self.opened, *arguments)
        if name == KNOWLEDGE.name:
            from tgraph.engine.rederivation import audit_knowledge

            return audit_knowledge(self.opened, *arguments)
        if name == ONTOLOGY.name:
            from tgraph.explain.audit.ontology import audit_ontology

            opened = self.opened
            return audit_ontology(
                self.read(), self.librarian, self.settings, opened.message, *arguments
            )
        return run_audit(self.read(), self.opened.catalogue, find_audit(name), arguments)

    def integrity(
        self, head: str | None = None, *, public_key: str | Path | None = None
    ) -> Integrity:
        """Check that all records are as sealed, and that the chain contains the saved ``head``.

        With the file of a ``public_key``, its owner's signatures are checked too. Writers wait
        meanwhile; in a read-only folder there are no writers."""
        from tgraph.engine.checks import check_integrity_of

        return check_integrity_of(self.opened, head, public_key)

    def sparql(self, query: str, **bounds: Any) -> QuerySolutions | QueryBoolean | list[Triple]:
        """Return the result of a read-only query over the union of all graphs.

        ``bounds`` are ``timeout`` (seconds), ``memory`` (bytes) and ``limit`` (rows). Raises
        ``QueryError`` if the query is wrong, refused, or was stopped."""
        from pyoxigraph import QueryResultsFormat, RdfFormat, parse, parse_query_results

        from tgraph.explain.query.guard import gives_triples
        from tgraph.explain.query.sparql import Bounds

        triples = gives_triples(query)
        chosen = "ntriples" if triples else "json"
        data = b"".join(self.sparql_stream(query, chosen, Bounds(**bounds)))
        if triples:
            return [quad.triple for quad in parse(data, RdfFormat.N_TRIPLES)]
        return parse_query_results(data, QueryResultsFormat.JSON)

    def sparql_stream(
        self, query: str, format: str, bounds: Bounds, dataset: Dataset | None = None
    ) -> Iterator[bytes]:
        """Stream query results in a format from ``tgraph.explain.query.sparql.FORMATS``; query
        only ``dataset`` graphs if given."""
        from tgraph.explain.query.sparql import stream_query

        self.read()
        with closing(self.opened.snapshot()) as snapshot:
            yield from stream_query(snapshot.path / "store", query, format, bounds, dataset)


def _to_tuple(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else tuple(value)


def _point_name(point: str | int | datetime | date) -> str:
    """Return the written form of a point in time."""
    return point.isoformat() if isinstance(point, date) else str(point)


def open_graph(
    root: str | Path | None = None,
    *,
    create: bool = False,
    collection: str | None = None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> KnowledgeGraph:
    """Open the graph in the folder ``root``, or the nearest graph above the current folder.

    ``create`` makes missing folders and collections. ``settings`` are overrides such as
    ``{"graph.edge_limit": 10}``."""
    if root is None and not create:
        folder = GraphFolder.find(Path.cwd())
    else:
        path = Path(root) if root is not None else Path.cwd()
        folder = GraphFolder.create(path) if create else GraphFolder.open(path)
    values = load_settings(folder.path, {**(settings or {}), "collection": collection})
    return KnowledgeGraph(folder, values, create=create, **options)
