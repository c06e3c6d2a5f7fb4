"""A knowledge graph, open: index documents into it, ask it, read its record.

``KnowledgeGraph`` says what can be done; what does it is held, or called with what is open.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from tgraph.engine.components import Components
from tgraph.engine.open_collection import OpenCollection, new_uuid, now
from tgraph.engine.progress import OnMessage, OnProgress, Progress, Watching, mute, silent
from tgraph.engine.session_reader import SessionReader
from tgraph.explain.assess import REPEATS, SAMPLES
from tgraph.librarian import Librarian
from tgraph.model import Answer, GraphRagResponse, Only, ShownContext, Turn
from tgraph.retrieve.base import Context
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.settings import Settings, load_settings, with_overrides
from tgraph.store.folder import GraphFolder

if TYPE_CHECKING:
    from pyoxigraph import QueryBoolean, QuerySolutions, Triple

    from tgraph.engine.ask.question_run import ContextStream, Stream
    from tgraph.engine.backup import Backup
    from tgraph.engine.change.corrections import Correction
    from tgraph.engine.change.entity_curation import Retraction
    from tgraph.engine.change.ontology_curation import AddedOntology
    from tgraph.engine.change.prompt_tuning import Selecting, Tuning
    from tgraph.engine.change.purge import Purge
    from tgraph.engine.checks import HealthFinding
    from tgraph.engine.index.graph_import import ImportReport
    from tgraph.engine.index.run import IndexReport
    from tgraph.engine.replica_log import Shipment
    from tgraph.engine.rerun.crates.package import EvidencePackage
    from tgraph.engine.rerun.evaluation import Questions
    from tgraph.engine.rerun.influence import InfluenceAnalysis
    from tgraph.engine.rerun.replay import Replay
    from tgraph.explain.assess.evaluation import Evaluation
    from tgraph.explain.assess.influence import Influence, InfluenceEstimate
    from tgraph.explain.assess.verification import Verification
    from tgraph.explain.audit.impact import Impact
    from tgraph.explain.audit.named_audits import AuditResult
    from tgraph.explain.export.knowledge import KnowledgeHash
    from tgraph.explain.export.publishing import Publication
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
    """

    def __init__(
        self,
        folder: GraphFolder,
        settings: Settings,
        *,
        create: bool = False,
        clock: Callable[[], datetime] = now,
        uuid: Callable[[], str] = new_uuid,
        parts: Components | None = None,
        message: OnMessage = mute,
        watching: Watching | None = None,
    ) -> None:
        self.root = folder.path
        self.settings = settings
        place = folder.collection(settings.collection, create=create)
        self._opened = OpenCollection(place, settings, clock, uuid, parts, message, watching)
        self._sessions = SessionReader(self._opened)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"KnowledgeGraph({str(self.root)!r}, collection={self.collection!r})"

    def close(self) -> None:
        """Fold the sessions asked here into the store and let go of the folder."""
        self._opened.close()

    @contextmanager
    def view(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        message: OnMessage = mute,
        watching: Watching | None = None,
    ) -> Iterator[KnowledgeGraph]:
        """The same graph for one caller among many, in a thread of its own: what it reads stays
        open until the end, and its questions have no turns before them but their own.

        ``settings`` are overrides such as ``{"graph.edge_limit": 10}``; models, embeddings and
        collection stay those of the graph. ``UsageError`` for what is no setting.
        """
        changed = with_overrides(self.settings, settings) if settings else self.settings
        made = copy.copy(self)
        made.settings = changed
        made._opened = self._opened.view(changed, message, watching)
        made._sessions = SessionReader(made._opened)
        with made._opened.reading():
            yield made

    def fold(self) -> None:
        """Bring the sessions that have ended into the store, where they can be read; reading does
        it too."""
        self._opened.fold()

    @property
    def collection(self) -> str:
        return self._opened.folder.name

    @property
    def librarian(self) -> Librarian:
        return self._opened.librarian

    def read(self) -> Store:
        """The newest published state with every finished session in it, for reading.

        Where a writer keeps the lock for too long it is the state without the newest sessions, and
        ``message`` says so.
        """
        return self._opened.read()

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
        from tgraph.engine.index.run import IndexRun
        from tgraph.ingest.files import discover

        run = IndexRun(self._opened.setup(progress, message))
        follow = self.settings.ingest.follow_links
        found = discover([str(path) for path in paths], follow_links=follow)
        return run.run(found, reinstate=reinstate)

    def import_graph(
        self,
        paths: Sequence[str | Path],
        *,
        format: str | None = None,
        languages: Sequence[str] = (),
        base: str = "",
        reinstate: bool = False,
        progress: OnProgress = silent,
        message: OnMessage | None = None,
    ) -> ImportReport:
        """Take graphs of others in and publish the graph with them; see ``ImportReport``.

        A file is a document, what it states rests on its lines. Its format is recognised unless
        ``format`` names it; ``languages`` are those of names, the best first, and ``base`` is what
        relative IRIs are read against. A line that can't be read is in the report and does not stop
        the others. ``UsageError`` for a format that there is not.
        """
        from tgraph.engine.index.graph_import import GraphImport, ImportRun

        wanted = GraphImport(tuple(map(str, paths)), format, tuple(languages), base, reinstate)
        return ImportRun(self._opened.setup(progress, message)).run(wanted)

    def update(self, text: str, bounds: Bounds | None = None) -> tuple[int, int]:
        """Apply a SPARQL update, all of it or nothing; how many quads it added and removed.

        It is recorded as an activity and published. Raises ``QueryError`` where it is wrong, was
        stopped, or would change the record of sessions.
        """
        from tgraph.engine.change.update import UpdateRun
        from tgraph.explain.query.sparql import Bounds

        return UpdateRun(self._opened.setup()).update(text, bounds or Bounds())

    def split(self, name: str, other: str | None = None, *, reason: str) -> str:
        """Tell two names apart that entity resolution made one entity; the split's IRI.

        ``other`` is by default the entity that ``name`` was merged into. The decision lasts: later
        index runs honour it until ``rejoin`` takes it back. It is recorded with the reason and, if
        ``person`` is set, with who made it. ``UsageError`` where the names are not one entity.
        """
        from tgraph.engine.change.entity_curation import CurationRun

        return CurationRun(self._opened.setup()).split(name, other, reason)

    def rejoin(self, name: str, other: str, *, reason: str) -> str:
        """Take a split back; its IRI. The names are one entity again if the texts still say so.
        ``UsageError`` where they have not been split."""
        from tgraph.engine.change.entity_curation import CurationRun

        return CurationRun(self._opened.setup()).rejoin(name, other, reason)

    def weigh(self, target: str, authority: float | None, *, reason: str) -> str:
        """Give documents an authority from 0 to 1, by which ranking multiplies what was found in
        them (0: nothing is answered from them); the path or pattern that has it now.

        ``target`` is a document, named as for ``retract``, or a pattern of paths (``minutes/*``;
        ``*`` for all): the path itself goes before patterns, a longer pattern before a shorter.
        Later versions under the path keep it. None takes the weight back. Recorded as ``split``
        is. ``UsageError`` where nothing would change, or for what is no weight.
        """
        from tgraph.engine.change.entity_curation import CurationRun

        return CurationRun(self._opened.setup()).weigh(target, authority, reason)

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
        """State a fact by hand, about entities that are known or new; see ``Correction``.

        It is evidence of its own kind, a note: cited, traced and weighed as what documents say,
        until ``undo`` takes it back. ``object`` is a value rather than a name with ``literal`` or
        a ``datatype``; ``weight`` is 1 to 10. Recorded with the reason and, if ``person`` is set,
        with who stated it. ``UsageError`` for what was denied, or is no value of the datatype.
        """
        from tgraph.engine.change.corrections import correct
        from tgraph.engine.change.curation_notes import NewFact

        wanted = NewFact(subject, predicate, object, literal, datatype, description or None, weight)
        return correct(self._opened, reason, lambda run: run.add_fact(wanted, reason))

    def edit_fact(self, *fact: str, reason: str, **values: Any) -> Correction:
        """State something else in place of a fact, which is denied, as one decision; or another
        ``description`` or ``weight`` of the same. ``fact`` and the ``values`` are named as for
        ``deny_fact`` and ``add_fact``; what is not given stays. ``UsageError`` as there."""
        from tgraph.engine.change.corrections import correct
        from tgraph.engine.change.curation_notes import NewFact

        wanted = NewFact(**values)
        return correct(self._opened, reason, lambda run: run.edit_fact(fact, wanted, reason))

    def deny_fact(self, *fact: str, reason: str) -> Correction:
        """Keep a fact out of knowledge, whatever documents say now or later, until ``undo``.

        ``fact`` is the edge's IRI or the beginning of it, or subject, predicate and object. What
        documents say of it stays on record; answers that rest on it are called into question.
        ``UsageError`` where none or several are meant.
        """
        from tgraph.engine.change.corrections import correct

        return correct(self._opened, reason, lambda run: run.deny_fact(fact, reason))

    def facts(self, entity: str) -> list[KnownFact]:
        """The facts about an entity, by their words. ``UsageError`` where there is none such."""
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
        """State by hand that there is an entity. ``UsageError`` where it is known, or deleted."""
        from tgraph.engine.change.corrections import correct
        from tgraph.engine.change.curation_notes import EntityValues

        values = EntityValues(None, type, description, tuple(aliases))
        return correct(self._opened, reason, lambda run: run.create_entity(name, values, reason))

    def edit_entity(self, name: str, *, reason: str, **values: Any) -> Correction:
        """State what is true of an entity in place of what documents say: ``label``, ``type``,
        ``description``, ``aliases``, ``not_aliases``. ``UsageError`` where there is none such."""
        from tgraph.engine.change.corrections import correct
        from tgraph.engine.change.curation_notes import EntityValues

        given = EntityValues(**{k: _tuple(value) for k, value in values.items()})
        return correct(self._opened, reason, lambda run: run.edit_entity(name, given, reason))

    def delete_entity(self, name: str, *, reason: str) -> Correction:
        """Keep an entity out of knowledge with all facts about it, under every name that it has
        now, until ``undo``. Answers that rest on those facts are called into question."""
        from tgraph.engine.change.corrections import correct

        return correct(self._opened, reason, lambda run: run.delete_entity(name, reason))

    def merge_entities(self, name: str, other: str, *, reason: str) -> Correction:
        """Make two entities one, whatever documents call them, until ``undo``. The fuller name is
        the entity's. ``UsageError`` where they are one, or were told apart by ``split``."""
        from tgraph.engine.change.corrections import correct

        return correct(self._opened, reason, lambda run: run.merge(name, other, reason))

    def curations(self) -> list[Curation]:
        """All that people decided about the graph, the last first."""
        from tgraph.explain.trace.curations import read_curations

        return read_curations(self.read())

    def curation(self, name: str) -> Curation:
        """The decision of an IRI, a UUID, the beginning of one, what it made, or ``last``.
        ``UsageError`` for none or several."""
        from tgraph.explain.trace.curations import find_curation

        return find_curation(self.curations(), name)

    def undo(self, curation: str, *, reason: str) -> Correction:
        """Take a decision back, named as for ``curation`` (``last`` is the last that stands):
        knowledge is then as if it had not been made. Answers that rest on what it stated are called
        into question. ``UsageError`` where it was taken back, or is taken back otherwise
        (retractions, weights)."""
        from tgraph.engine.change.corrections import correct

        return correct(self._opened, reason, lambda run: run.undo(curation, reason))

    def add_ontology(
        self,
        file: str | Path,
        *,
        reason: str = "",
        progress: OnProgress = silent,
        message: OnMessage | None = None,
    ) -> AddedOntology:
        """Lead the graph by an ontology (OWL, RDFS, SKOS or SHACL, in any syntax of RDF), and bring
        what has been read under its terms; nothing is read again.

        With the setting ``ontology.strict`` what does not fit is kept out of knowledge. What has
        the same IRI as one that stands takes its place. ``UsageError`` where the file is no
        ontology, or stands already.
        """
        from tgraph.engine.change.ontology_curation import add_ontology

        setup = self._opened.setup(progress, message)
        return add_ontology(self._opened, setup, Path(file), reason)

    def remove_ontology(
        self,
        name: str,
        *,
        reason: str,
        progress: OnProgress = silent,
        message: OnMessage | None = None,
    ) -> RecordedOntology:
        """Take an ontology back, named by its file, its IRI or what it calls itself: knowledge is
        as without it. ``UsageError`` where none of the name stands."""
        from tgraph.engine.change.ontology_curation import OntologyRun

        return OntologyRun(self._opened.setup(progress, message)).remove(name, reason)

    def impact(self, document: str) -> Impact:
        """The facts that rest on a document alone, and the answers that rest on it."""
        from tgraph.explain.audit.impact import read_impact

        return read_impact(self.read(), self._opened.catalogue, document)

    def retract(self, document: str, *, reason: str) -> Retraction:
        """Take a document (named by path, title, IRI or hash) back: knowledge is derived without
        it, and the answers that rest on it lose their standing. The record stays.

        Recorded with the reason and, if ``person`` is set, with who decided. Called again after it
        was interrupted, it does what is left. ``UsageError`` where nothing is left to do.
        """
        from tgraph.engine.change.entity_curation import retract

        return retract(self._opened, document, reason)

    def purge(
        self,
        document: str,
        *,
        reason: str,
        patience: float = 30.0,
        progress: OnProgress | None = None,
        message: OnMessage | None = None,
    ) -> Purge:
        """Erase a document (named as for ``retract``) for good: it is retracted, and its text goes
        from all that is kept. Each bundle that held some of it is sealed again, and the chain
        says so; what other documents say too stays.

        Nobody else may have the graph open: who does is waited for, ``patience`` seconds, then it
        is a ``StoreError``. Called again after it was interrupted, it does what is left.
        ``UsageError`` for a reason that repeats the text, since reasons stay on record.
        """
        from tgraph.engine.change.purge import purge

        return purge(self._opened, document, reason, patience, progress or silent, message)

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
        """The answer, proven, in a mode or in the one that is chosen for the form of the question
        (``auto``). ``history`` replaces the turns asked here before; ``filters`` say
        what it may be answered from. ``UsageError`` where they name what there is not.

        ``as_of`` has it answered from knowledge as it was: at a time (of a date at its end, in UTC
        unless it says otherwise), in a generation by number, or as a session knew it.
        ``UsageError`` where there was none, or it lacks what the mode searches; ``StoreError``
        where it can't be read any more.
        """
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
        from tgraph.engine.ask.conversation import stream

        of = "" if as_of is None else _point_name(as_of)
        return (yield from stream(self._opened, question, mode, history, filters, of))

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
        """As ``stream``, as far as the selection; the generator returns the ``ShownContext``, what
        the writer of an answer would be shown. With ``only="prompt"`` ``UsageError`` where there is
        no language model. The session is recorded, without an answer."""
        from tgraph.engine.ask.conversation import context

        of = "" if as_of is None else _point_name(as_of)
        return (yield from context(self._opened, question, mode, only, history, filters, of))

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
        """Questions that the documents can answer: the sentences of the answer, each citing what
        led to it. ``history`` replaces the turns asked here before."""
        from tgraph.engine.ask.conversation import suggest

        return suggest(self._opened, count, history)

    def context(self, mode: str = "graph") -> Context:
        """What a retriever of the mode reads: the newest published knowledge, its texts and its
        vectors. What the mode needs and no index run has built is built first."""
        from tgraph.engine.ask.conversation import prepare

        prepare(self._opened, mode)
        return self._opened.context()

    def evaluate(
        self,
        questions: Questions,
        mode: str = "graph",
        *,
        metrics: Sequence[str] = (),
        progress: OnProgress = silent,
    ) -> Evaluation:
        """Judge answers: those that ``questions`` bring (RAGChecker's JSON), and the graph's own in
        the ``mode`` where they bring none.

        ``questions`` is a file (JSON, JSON Lines, TOML) or the questions themselves; ``metrics``
        are RAGChecker's groups and names, all where none is given: what others need is not judged.
        What goes wrong with one is in the evaluation and doesn't stop the others. It is recorded in
        a bundle of its own. ``UsageError`` for a file that can't be used, ``EndpointError`` where
        the model fails again and again.
        """
        from tgraph.engine.rerun.evaluation import GraphEvaluation

        return GraphEvaluation(self._opened).run(questions, mode, progress, metrics)

    # --- the same for asyncio ---

    async def aindex(self, paths: Sequence[str | Path], **options: Any) -> IndexReport:
        """``index`` without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.index, paths, **options)

    async def aask(self, question: str, mode: str = "auto", **options: Any) -> Answer:
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

    def tune(
        self,
        *,
        select: Selecting = "random",
        limit: int = 15,
        dry_run: bool = False,
        force: bool = False,
        progress: OnProgress = silent,
    ) -> Tuning:
        """Make prompts for this collection, from at most ``limit`` of its chunks, and write them
        where the next index run reads them: into the folder of the setting ``prompts``, else into
        ``prompts`` of the graph, which ``tgraph.toml`` then names. On record as an activity.

        ``dry_run`` writes and records nothing. ``UsageError`` where nothing is indexed, or a file
        is there already and ``force`` is false.
        """
        from tgraph.engine.change.prompt_tuning import tune

        return tune(
            self._opened,
            self.root,
            select=select,
            limit=limit,
            dry_run=dry_run,
            force=force,
            progress=progress,
        )

    def untune(self) -> list[str]:
        """Delete the files of tuned prompts, but for those that were changed since; their paths.
        The record of the tuning stays."""
        from tgraph.engine.change.prompt_tuning import undo

        return undo(self._opened, self.root)

    # --- sessions ---

    def history(self) -> list[Generation]:
        """The generations of knowledge, the newest first: when each was published, and by what."""
        from tgraph.explain.trace.generations import list_generations

        return list_generations(self.read())

    def knowledge_diff(
        self, before: str | int | datetime | date, after: str | int | datetime | date = "now"
    ) -> KnowledgeDiff:
        """What entities, facts and claims came, went and changed from one point in time (as for
        ``ask``; 0 is before the first generation) to another, and because of what.

        ``UsageError`` for what is no such point, ``StoreError`` where the record of a change can't
        be read.
        """
        from tgraph.engine.ask.conversation import point_in_time
        from tgraph.explain.trace.knowledge_diff import knowledge_diff

        one, other = (point_in_time(self._opened, _point_name(p)) for p in (before, after))
        return knowledge_diff(self.read(), self.librarian, one, other)

    def sessions(self, limit: int | None = None) -> SessionList:
        """The recorded sessions, newest first; a notebook shows the list as a table."""
        from tgraph.explain.trace.sessions import list_sessions

        return list_sessions(self.read(), self._opened.catalogue, limit)

    def find_session(self, name: str) -> SessionSummary:
        """The session of an IRI, a UUID, an unambiguous beginning of one, or ``last``."""
        return self._sessions.find(name)

    def trace(self, session: str = "last") -> Trace:
        """The record of a session as a tree; ``to_html`` writes it as a report."""
        return self._sessions.trace(session)

    def report(self, session: str = "last") -> str:
        """The record of a session as one HTML file, its RDF included."""
        return self._sessions.report(session)

    def trace_so_far(self, session: str) -> Trace:
        """The record of a session that is being asked in this process, as far as it has come."""
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
        """The record of a session with all that it refers to: RDF, a format of PROV, or a picture.

        The IRI of a verification, an influence analysis or another record of its own gives that.
        ``vocabulary`` may be ``trustgraph``, whose reader then parses it; ``classic`` writes edges
        without triple terms; ``core`` leaves out calls, ratings, what was rejected, and what the
        answer does not rest on. ``UsageError`` for a format or vocabulary that there is not.
        """
        return self._sessions.export(session, format, vocabulary, classic=classic, core=core)

    def package(self, session: str = "last", *, texts: bool = True) -> EvidencePackage:
        """The session as an evidence package, a Provenance Run Crate: answer, quotes, pages,
        record, prompts, calls and report. The same session gives the same bytes. Without ``texts``
        it has the hashes of pages and calls only. ``tgraph.verify_package`` checks and replays it.

        ``EvidenceError`` where a quote in the record is not what the stored text says.
        """
        from tgraph.engine.rerun.crates.package import make_package

        return make_package(self._opened, self.find_session(session), texts=texts)

    def export_knowledge(
        self, output: str | Path | BinaryIO, format: str = "trig", *, sources: bool = False
    ) -> None:
        """Write what the graph knows: ``trig``, ``turtle``, ``nquads`` and ``graphml`` to a file or
        a binary stream, ``csv`` (Neo4j), ``graphrag`` (parquet) and ``markdown`` into a new folder.

        ``sources`` adds the quotes that it rests on. ``UsageError`` for a format that there is not,
        and for a place that can't be written to.
        """
        from tgraph.engine.session_reader import knowledge_source
        from tgraph.explain.export.knowledge_formats import write_knowledge

        target = Path(output) if isinstance(output, str) else output
        write_knowledge(knowledge_source(self._opened), format, target, sources=sources)

    def knowledge_hash(self) -> KnowledgeHash:
        """The RDFC-1.0 hash of what the graph knows, which an export that is imported into a fresh
        collection keeps; communities, reports and summaries are derived from it and not in it."""
        from tgraph.explain.export.knowledge import Knowledge

        return Knowledge(self.read()).hash()

    def why_not(self, session: str, expected: str) -> WhyNot:
        """Why an entity, fact, chunk, document or text, named in whatever way, is not in the answer
        of a session: exactly one cause, from the record and the store alone."""
        return self._sessions.why_not(session, expected)

    def verify(
        self, session: str = "last", *, lexical: bool = False, progress: OnProgress = silent
    ) -> Verification:
        """Whether each sentence of a session's answer is entailed by what it cites, and where that
        was lost if it is not; the verdicts are recorded in a bundle of their own.

        The model judges; where there is none the reader, if it can; else, or with ``lexical``, the
        words. ``UsageError`` where the session has no answer.
        """
        from tgraph.engine.rerun.verification import verify

        found = self.find_session(session)
        return verify(self._opened, found, progress, lexical=lexical)

    def influence(
        self,
        session: str = "last",
        *,
        budget: int | None = None,
        repeats: int = REPEATS,
        samples: int = SAMPLES,
        progress: OnProgress = silent,
    ) -> Influence:
        """Which of the selected items a session's answer depends on: it is written again without
        them. Recorded in a bundle of its own.

        It makes at most ``budget`` calls; ``repeats`` of them with nothing removed, ``samples``
        with random halves where more than twenty items were selected. Replies are kept, so that
        the same analysis costs nothing again. ``UsageError`` where there is no answer, nothing was
        selected for it, its selection can't be had as it was, parts of it were erased, or the
        budget is too small.
        """
        from tgraph.engine.rerun.influence import InfluenceRun
        from tgraph.record.assessments import InfluenceRecord

        prepared = self._influencing(session, budget, repeats, samples)
        if told := prepared.told():
            self._opened.message(told)
        run = InfluenceRun(prepared, self._opened.record(InfluenceRecord), progress)
        return run.run(self.settings.explain_collection)

    def influence_estimate(
        self,
        session: str = "last",
        *,
        budget: int | None = None,
        repeats: int = REPEATS,
        samples: int = SAMPLES,
    ) -> InfluenceEstimate:
        """What ``influence`` with the same arguments would cost; nothing is called or recorded."""
        return self._influencing(session, budget, repeats, samples).estimate()

    def _influencing(
        self, session: str, budget: int | None, repeats: int, samples: int
    ) -> InfluenceAnalysis:
        from tgraph.engine.rerun.influence import influencing

        return influencing(self._sessions, self._opened, session, budget, repeats, samples)

    def replay(self, session: str = "last", *, live: bool = False) -> Replay:
        """Ask a recorded session once more, with its recorded replies and without any call, and
        compare the two records. ``live`` calls the models again. Nothing of it is recorded.

        ``UsageError`` where the session has no end, or parts of it were erased.
        """
        from tgraph.engine.rerun.replay import SessionReplay
        from tgraph.explain.integrity.erasures import check_whole

        found = self.find_session(session)
        check_whole(self.read(), found.bundle, found.explain_id)
        return SessionReplay.of(self._opened, found).run(live=live)

    def compare(self, before: str, after: str = "last") -> Comparison:
        """What differs between two sessions: what was asked, retrieved, selected, said, cited."""
        from tgraph.explain.trace.comparison import compare

        return compare(self.trace(before), self.trace(after))

    # --- documents ---

    def documents(self) -> list[DocumentSummary]:
        """Every document under every path it was taken in by, those that stand first."""
        from tgraph.explain.trace.documents import list_documents

        return list_documents(self.read())

    def source(self, document: str) -> SourceTree:
        """What was extracted from a document (named by path, title, IRI or hash), and where."""
        from tgraph.explain.trace.documents import read_source

        return read_source(self.read(), self.librarian, document)

    def source_text(self, document: str, page: int | None = None) -> str:
        """The stored text of a page, or of the whole document: what citations count in."""
        from tgraph.explain.trace.documents import source_text

        return source_text(self.read(), self.librarian, document, page)

    # --- names ---

    def merges(self) -> list[Merge]:
        """The names that stand for another entity, each with the grounds for it."""
        from tgraph.explain.trace.entities import EntityMerges

        return EntityMerges(self.read()).merges()

    def splits(self) -> list[Split]:
        """The names that ``split`` told apart, as far as ``rejoin`` has not taken it back."""
        from tgraph.explain.trace.entities import EntityMerges

        return EntityMerges(self.read()).splits()

    # --- ontologies ---

    def ontologies(self) -> list[RecordedOntology]:
        """The ontologies that lead the graph now."""
        from tgraph.record.ontologies import standing_ontologies

        return standing_ontologies(self.read())

    def ontology(self, name: str | None = None) -> Ontology:
        """The classes and properties of an ontology that stands, or of all together."""
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

            return audit_integrity(self._opened, *arguments)
        if name == KNOWLEDGE.name:
            from tgraph.engine.rederivation import audit_knowledge

            return audit_knowledge(self._opened, *arguments)
        if name == ONTOLOGY.name:
            from tgraph.explain.audit.ontology import audit_ontology

            opened = self._opened
            return audit_ontology(
                self.read(), self.librarian, self.settings, opened.message, *arguments
            )
        return run_audit(self.read(), self._opened.catalogue, find_audit(name), arguments)

    def integrity(
        self, head: str | None = None, *, public_key: str | Path | None = None
    ) -> Integrity:
        """Whether everything is as it was sealed, and the chain contains the ``head`` that was
        saved earlier; with the file of a ``public_key``, what its owner has signed of it. Writers
        wait meanwhile; in a folder that can't be written there are none."""
        from tgraph.engine.checks import check_integrity_of

        return check_integrity_of(self._opened, head, public_key)

    def repair(self, *, progress: OnProgress = silent) -> list[HealthFinding]:
        """Make anew what is derived and damaged, and name what is truth and damaged: what was
        found, the one and the other. Writers wait meanwhile."""
        from tgraph.engine.repair import repair

        return list(repair(self._opened, progress))

    def publish(
        self,
        to: str = "",
        *,
        classic: bool | None = None,
        anew: bool = False,
        progress: OnProgress = silent,
    ) -> Publication:
        """Bring a SPARQL 1.1 endpoint up to date with knowledge, sources and record: ``to``, by
        default that of the settings (``publish``).

        It goes on where the last publication ended, may be interrupted and repeated. ``classic``
        leaves triple terms out, None asks the endpoint whether it knows them; ``anew`` deletes
        first. ``UsageError`` where the endpoint has something else, ``EndpointError`` where it
        can't be reached.
        """
        from tgraph.explain.export.publishing import publish
        from tgraph.store.sparql_endpoint import SparqlEndpoint

        endpoint, librarian = SparqlEndpoint.of(self.settings.publish, to), self._opened.librarian
        self.read()
        with closing(self._opened.snapshot()) as snapshot:
            return publish(
                snapshot.store,
                librarian,
                endpoint,
                without_terms=classic,
                anew=anew,
                progress=_counting(progress, "Publishing"),
            )

    def ship(self, url: str, *, progress: OnProgress = silent) -> Shipment:
        """Write what is new to object storage, or a folder, from where replicas follow
        (``follow``), and take in what they recorded."""
        from tgraph.engine.replica_shipping import ship

        return ship(self._opened, url, _counting(progress, "Shipping"))

    def follow(self, url: str, *, progress: OnProgress = silent) -> Shipment:
        """Bring this replica up to date, and hand over what was recorded here. ``UsageError`` where
        it is a graph of its own, ``VerificationError`` where what was shipped is not as it was
        sealed."""
        from tgraph.engine.replicas import follow

        return follow(self._opened, url, _counting(progress, "Following"))

    def backup(
        self, file: str | Path, *, progress: OnProgress = silent, message: OnMessage | None = None
    ) -> Backup:
        """Write the whole folder, all its collections, into a new file, while others go on;
        ``tgraph.restore`` makes a folder of it. ``UsageError`` where the file is there already."""
        from tgraph.engine.backup import back_up

        return back_up(
            self.root, Path(file), progress=progress, message=message or self._opened.message
        )

    def sparql(self, query: str, **bounds: Any) -> QuerySolutions | QueryBoolean | list[Triple]:
        """The result of a read-only query over the union of all graphs.

        ``bounds`` are ``timeout`` (seconds), ``memory`` (bytes) and ``limit`` (rows). Raises
        ``QueryError`` where the query is wrong, refused, or was stopped.
        """
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
        """The same in a format of ``tgraph.explain.query.sparql.FORMATS``, piece by piece; over the
        graphs of a ``dataset`` where there is one."""
        from tgraph.explain.query.sparql import stream_query

        self.read()
        with closing(self._opened.snapshot()) as snapshot:
            yield from stream_query(snapshot.path / "store", query, format, bounds, dataset)


def _counting(progress: OnProgress, stage: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(Progress(stage, done, total))


def _tuple(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else tuple(value)


def _point_name(point: str | int | datetime | date) -> str:
    """How a point in time is written."""
    return point.isoformat() if isinstance(point, date) else str(point)


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
